//! Who is who: entries of one key or of one name are one party's.
//!
//! A threshold counts parties, not signatures: neither a second key under the same name
//! nor a second name for the same key makes a second auditor, nor a chain of both.

use std::collections::HashMap;

use super::TrustedKey;

/// A number for the party of each entry; the same number, the same party.
pub(super) fn of_each(keys: &[TrustedKey]) -> Vec<usize> {
    let mut above: Vec<usize> = (0..keys.len()).collect();
    let (mut of_key, mut of_name) = (HashMap::new(), HashMap::new());
    for (index, entry) in keys.iter().enumerate() {
        let same_key = *of_key.entry(entry.key.to_bytes()).or_insert(index);
        let same_name = *of_name.entry(entry.name.as_str()).or_insert(index);
        for other in [same_key, same_name] {
            let (a, b) = (top(&above, other), top(&above, index));
            above[a.max(b)] = a.min(b);
        }
    }
    (0..keys.len()).map(|index| top(&above, index)).collect()
}

/// The first entry of the party.
fn top(above: &[usize], mut index: usize) -> usize {
    while above[index] != index {
        index = above[index];
    }
    index
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::key::PrivateKey;
    use crate::verify::trust::{Models, Role};

    #[test]
    fn a_key_or_a_name_in_common_makes_one_party() {
        // (key, name, party)
        let entries = [
            (1, "a", 0),
            (2, "b", 1),
            (1, "c", 0),
            (3, "c", 0),
            (4, "d", 4),
            (4, "e", 4),
            (5, "e", 4),
            (2, "e", 1),
        ];
        let keys = entries.map(|(seed, name, _)| TrustedKey {
            name: name.into(),
            key: PrivateKey::from_seed(&[seed; 32]).public(),
            role: Role::Auditor,
            models: Models::Any,
            valid_from: None,
            valid_until: None,
            revocation: None,
        });
        assert_eq!(of_each(&keys[..7]), [0, 1, 0, 0, 4, 4, 4]);
        // The last entry joins b with d and e.
        assert_eq!(of_each(&keys), [0, 1, 0, 0, 1, 1, 1, 1]);
        assert_eq!(of_each(&[]), Vec::<usize>::new());
    }
}
