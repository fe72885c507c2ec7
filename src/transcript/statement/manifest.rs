//! Which model: every file that can change a bit, by path, length and digest.

use crate::num::{Digest, sha256};
use crate::transcript::TranscriptError;
use crate::transcript::wire::{Wire, encode, record};

record! {
    #[derive(PartialOrd, Ord)]
    /// One file of a model folder.
    ManifestFile {
        /// Path inside the folder, with `/` between components.
        1 => path: String,
        /// Length (bytes).
        2 => len_bytes: u64,
        /// SHA-256 of its contents.
        3 => sha256: Digest,
    }
}

record! {
    /// The files of a model: weights, config, generation config and tokenizer.
    ModelManifest {
        /// Name under which the model was asked for.
        1 => name: String,
        /// The files, in ascending order of their paths.
        2 => files: Vec<ManifestFile>,
        /// SHA-256 of the deterministic CBOR of `files`.
        3 => digest: Digest,
        /// Root of OpenSSF Model Signing, a secondary identifier: it covers
        /// neither names nor lengths.
        4 => oms_root: Option<Digest>,
    }
}

impl ModelManifest {
    /// Makes the manifest of some files: sorts them and takes the digest.
    pub fn new(name: &str, mut files: Vec<ManifestFile>) -> Self {
        files.sort();
        let digest = Self::digest_of(&files);
        Self { name: name.to_owned(), files, digest, oms_root: None }
    }

    /// Returns the file at `path`, if it is in the manifest.
    pub fn file(&self, path: &str) -> Option<&ManifestFile> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Says, one sentence each, how `found` differs from this manifest; empty if
    /// it does not.
    pub fn differences(&self, found: &Self) -> Vec<String> {
        let mut sentences = Vec::new();
        for file in &self.files {
            match found.file(&file.path) {
                None => sentences.push(format!("{} is missing", file.path)),
                Some(other) if other.len_bytes != file.len_bytes => sentences.push(format!(
                    "{} has {} bytes, expected {}",
                    file.path, other.len_bytes, file.len_bytes
                )),
                Some(other) if other.sha256 != file.sha256 => sentences.push(format!(
                    "{} has SHA-256 {}, expected {}",
                    file.path, other.sha256, file.sha256
                )),
                Some(_) => {}
            }
        }
        for file in found.files.iter().filter(|file| self.file(&file.path).is_none()) {
            sentences.push(format!("{} is not in the manifest", file.path));
        }
        sentences
    }

    /// Checks the rules C1 and C2 of `spec/transcript.md`.
    pub(super) fn check(&self) -> Result<(), TranscriptError> {
        let broken = |rule: String| Err(TranscriptError::Inconsistent { rule });
        if self.files.is_empty() {
            return broken("the model manifest lists no file".to_owned());
        }
        for file in &self.files {
            if !is_confined(&file.path) {
                return broken(format!("the manifest path {:?} leaves the folder", file.path));
            }
        }
        for pair in self.files.windows(2) {
            if pair[0].path >= pair[1].path {
                return broken(format!("the manifest path {:?} is out of order", pair[1].path));
            }
        }
        let digest = Self::digest_of(&self.files);
        if digest != self.digest {
            return broken(format!(
                "the manifest digest is {}, its files give {digest}",
                self.digest
            ));
        }
        Ok(())
    }

    fn digest_of(files: &[ManifestFile]) -> Digest {
        let list = ciborium::Value::Array(files.iter().map(Wire::to_value).collect());
        sha256(&[&encode(&list)])
    }
}

/// True for a relative path of plain components, the same on every system.
fn is_confined(path: &str) -> bool {
    let plain = |part: &str| !matches!(part, "" | "." | "..");
    path.split('/').all(plain) && !path.contains(['\\', ':', '\0'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_paths_that_leave_the_folder() {
        let cases = [
            ("model.safetensors", true, "a plain name"),
            ("tokenizer/tokenizer.json", true, "a subfolder"),
            ("", false, "empty"),
            ("/etc/passwd", false, "absolute"),
            ("../other.safetensors", false, "parent"),
            ("a/../../b", false, "parent further in"),
            ("a//b", false, "empty component: a second spelling of a/b"),
            ("./a", false, "a second spelling of a"),
            ("C:\\weights", false, "absolute on another system"),
            ("a\0b", false, "cut short by C code"),
        ];
        for (path, expected, reason) in cases {
            assert_eq!(is_confined(path), expected, "{reason}");
        }
    }

    #[test]
    fn the_digest_covers_names_and_lengths() {
        let file = |path: &str, len_bytes| ManifestFile {
            path: path.to_owned(),
            len_bytes,
            sha256: Digest([7; 32]),
        };
        let digest = |files| ModelManifest::new("m", files).digest;
        let original = digest(vec![file("a", 1), file("b", 2)]);
        assert_eq!(original, digest(vec![file("b", 2), file("a", 1)]));
        assert_ne!(original, digest(vec![file("a", 1), file("c", 2)]));
        assert_ne!(original, digest(vec![file("a", 2), file("b", 2)]));
    }

    #[test]
    fn differences_name_every_file() {
        let file = |path: &str, len_bytes, content| ManifestFile {
            path: path.to_owned(),
            len_bytes,
            sha256: Digest([content; 32]),
        };
        let manifest = |files| ModelManifest::new("m", files);
        let expected = manifest(vec![file("a", 1, 1), file("b", 1, 1), file("c", 1, 1)]);
        let found = manifest(vec![file("b", 2, 1), file("c", 1, 2), file("d", 1, 1)]);
        let sentences = [
            "a is missing".to_owned(),
            "b has 2 bytes, expected 1".to_owned(),
            format!("c has SHA-256 {}, expected {}", "02".repeat(32), "01".repeat(32)),
            "d is not in the manifest".to_owned(),
        ];
        assert_eq!(expected.differences(&found), sentences);
        assert!(expected.differences(&expected).is_empty());
    }
}
