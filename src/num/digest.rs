//! SHA-256 digests.

use sha2::{Digest as _, Sha256};

/// A SHA-256 digest, 32 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// Parses 64 lower-case or upper-case hex digits.
    pub fn from_hex(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes).ok()?;
        Some(Self(bytes))
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl std::fmt::Debug for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

/// Returns the SHA-256 of the concatenation of `parts`.
pub fn sha256(parts: &[&[u8]]) -> Digest {
    sha256_of(parts.iter().copied())
}

/// As [`sha256`], of parts that are asked for one after the other.
pub fn sha256_of<'a>(parts: impl Iterator<Item = &'a [u8]>) -> Digest {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part);
    }
    Digest(hasher.finalize().into())
}

/// A digest of bytes that come piece by piece.
#[derive(Clone, Default, Debug)]
pub struct Hashing(Sha256);

impl Hashing {
    /// Takes the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of everything taken.
    pub fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_sha256_of_the_concatenation() {
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256(&[b"a", b"bc"]).to_string(), expected); // FIPS 180-2, "abc"
        assert_eq!(sha256_of(b"abc".chunks(2)).to_string(), expected);
        let mut hashing = Hashing::default();
        hashing.update(b"ab");
        hashing.update(b"c");
        assert_eq!(hashing.finish().to_string(), expected);
    }
}
