//! Pattern lists of OpenSSH (ssh_config(5), PATTERNS).

/// Whether a text matches a list: one pattern does, and none with `!` before it.
pub(super) fn list_matches(list: &str, text: &str) -> bool {
    let mut matched = false;
    for pattern in list.split(',') {
        match pattern.strip_prefix('!') {
            Some(pattern) if matches(pattern.as_bytes(), text.as_bytes()) => return false,
            Some(_) => {}
            None => matched |= matches(pattern.as_bytes(), text.as_bytes()),
        }
    }
    matched
}

/// Whether a text matches a pattern, in which `*` is any bytes and `?` is one.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    // Where the last star was, and how much of the text it has taken: linear space, and
    // no more than |pattern|·|text| steps whatever the number of stars.
    let (mut at, mut seen) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while seen < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, seen));
                at += 1;
            }
            Some(&byte) if byte == b'?' || byte == text[seen] => {
                at += 1;
                seen += 1;
            }
            Some(_) | None => {
                let Some((star_at, taken)) = star else { return false };
                star = Some((star_at, taken + 1));
                at = star_at + 1;
                seen = taken + 1;
            }
        }
    }
    pattern[at..].iter().all(|&byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_matches_as_in_ssh_config() {
        let cases = [
            ("attest", "attest", true, "the word"),
            ("file,attest", "attest", true, "one of two"),
            ("attest2", "attest", false, "a longer word"),
            ("", "attest", false, "nothing"),
            ("*", "attest", true, "anything"),
            ("a*t", "attest", true, "a star within"),
            ("a*e*t*", "attest", true, "several stars, the last empty"),
            ("a*x*t", "attest", false, "a star that finds nothing"),
            ("atte?t", "attest", true, "one byte"),
            ("attest?", "attest", false, "one byte too many"),
            ("*,!attest", "attest", false, "excluded after a match"),
            ("!attest,*", "attest", false, "excluded before one"),
            ("!file", "attest", false, "only an exclusion matches nothing"),
            ("Attest", "attest", false, "case counts"),
        ];
        for (list, text, expected, reason) in cases {
            assert_eq!(list_matches(list, text), expected, "{reason}");
        }
    }
}
