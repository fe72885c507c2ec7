//! The verifier's own tables in one digest, so that two parties can see whether they
//! verified by the same data.
//!
//! It is the SHA-256 of what `sha256sum` prints of these files of the source, in
//! ascending order of their paths: `profiles/`, `catalogs/`, `kernels/measured.json`.

use crate::data::{CATALOGS, KERNEL_SETS};
use crate::num::{Digest, sha256};

/// Returns the digest of the tables that this program carries.
pub fn digest() -> Digest {
    let mut files: Vec<(String, &str)> =
        PROFILES.iter().map(|(name, text)| (format!("profiles/{name}"), *text)).collect();
    files.extend(CATALOGS.iter().map(|(id, text)| (format!("catalogs/{id}.json"), *text)));
    files.push(("kernels/measured.json".into(), KERNEL_SETS));
    files.sort();
    let line = |(path, text): &(String, &str)| format!("{}  {path}\n", sha256(&[text.as_bytes()]));
    let lines: String = files.iter().map(line).collect();
    sha256(&[lines.as_bytes()])
}

/// Files of `profiles/` by name.
const PROFILES: &[(&str, &str)] = &[
    ("a100.toml", include_str!("../../profiles/a100.toml")),
    ("b200.toml", include_str!("../../profiles/b200.toml")),
    ("h100.toml", include_str!("../../profiles/h100.toml")),
    ("h200.toml", include_str!("../../profiles/h200.toml")),
    ("l40s.toml", include_str!("../../profiles/l40s.toml")),
    ("mufu/ex2.csv", include_str!("../../profiles/mufu/ex2.csv")),
    ("mufu/lg2.csv", include_str!("../../profiles/mufu/lg2.csv")),
    ("mufu/rcp.csv", include_str!("../../profiles/mufu/rcp.csv")),
    ("mufu/rsq.csv", include_str!("../../profiles/mufu/rsq.csv")),
    ("rope_inv_freq.json", include_str!("../../profiles/rope_inv_freq.json")),
    ("rtx-pro-6000.toml", include_str!("../../profiles/rtx-pro-6000.toml")),
    ("t4.toml", include_str!("../../profiles/t4.toml")),
    ("v100.toml", include_str!("../../profiles/v100.toml")),
];

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// The files below a folder of the source, by path.
    fn below(folder: &str) -> Vec<String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let entries = std::fs::read_dir(root.join(folder)).unwrap();
        let paths = entries.flat_map(|entry| {
            let entry = entry.unwrap();
            let path = format!("{folder}/{}", entry.file_name().to_str().unwrap());
            if entry.file_type().unwrap().is_dir() { below(&path) } else { vec![path] }
        });
        paths.collect()
    }

    #[test]
    fn the_digest_is_of_every_table_in_the_source() {
        let mut paths = [below("profiles"), below("catalogs")].concat();
        paths.push("kernels/measured.json".into());
        paths.sort();
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let line = |path: &String| {
            format!("{}  {path}\n", sha256(&[&std::fs::read(root.join(path)).unwrap()]))
        };
        let lines: String = paths.iter().map(line).collect();
        assert_eq!(digest(), sha256(&[lines.as_bytes()]));
    }
}
