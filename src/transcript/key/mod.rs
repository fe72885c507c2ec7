//! Ed25519 keys: ids, files, strict verification.
//!
//! A public key in a message is never trusted; a [`KeyId`] only selects from the
//! trust store. Reading and writing key files is the only I/O of this layer.

mod pem;

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use ed25519_dalek::pkcs8::{
    EncodePrivateKey, EncodePublicKey, KeypairBytes, spki::der::pem::LineEnding,
};
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};

use crate::num::sha256;

/// Why a key is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// Neither PEM nor hex.
    #[error("not a key: neither PEM nor 64 hex digits")]
    Unrecognised,
    /// A key file of another tool.
    #[error("{found}, expected {expected}")]
    OtherFormat {
        /// What was found.
        found: &'static str,
        /// What was asked for.
        expected: &'static str,
    },
    /// A key for another algorithm.
    #[error("the key is for {found}, only Ed25519 keys are used here")]
    OtherAlgorithm {
        /// The algorithm or its object identifier.
        found: String,
    },
    /// PEM or DER that cannot be read.
    #[error("the {kind} is damaged: {reason}")]
    Damaged {
        /// Which kind of key.
        kind: &'static str,
        /// The parser's reason.
        reason: String,
    },
    /// 32 bytes that are no point of the curve.
    #[error("public key {key} is not a point of the curve")]
    NotAPoint {
        /// The key in hex.
        key: String,
    },
    /// Not the canonical encoding of its point.
    #[error("public key {key} is not in its canonical encoding")]
    NotCanonical {
        /// The key in hex.
        key: String,
    },
    /// A point of small order: one signature would fit many messages.
    #[error("public key {key} is weak: it has small order")]
    Weak {
        /// The key in hex.
        key: String,
    },
    /// A private key that others may read.
    #[error("{path} may be read by others (mode {mode:03o}, expected 600)")]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The file cannot be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
}

/// First eight bytes of the SHA-256 of a public key.
///
/// It selects a key and proves nothing, so its length is not a security bound.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(pub [u8; 8]);

impl std::fmt::Display for KeyId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl std::fmt::Debug for KeyId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

/// An Ed25519 public key, canonical and not weak.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    /// Makes a key from its 32 bytes.
    ///
    /// # Errors
    /// [`KeyError::NotAPoint`], [`KeyError::NotCanonical`], [`KeyError::Weak`].
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<Self, KeyError> {
        let key = hex::encode(bytes);
        let Ok(parsed) = VerifyingKey::from_bytes(bytes) else {
            return Err(KeyError::NotAPoint { key });
        };
        if parsed.is_weak() {
            return Err(KeyError::Weak { key });
        }
        // The parser keeps the bytes as given, so two spellings of one point
        // would count as two keys.
        if parsed.to_edwards().compress().as_bytes() != bytes {
            return Err(KeyError::NotCanonical { key });
        }
        Ok(Self(parsed))
    }

    /// Reads an SPKI PEM text (RFC 8410) or 64 hex digits.
    ///
    /// # Errors
    /// [`KeyError`], never [`KeyError::Io`] or [`KeyError::Exposed`].
    pub fn from_text(text: &str) -> Result<Self, KeyError> {
        let text = text.trim();
        let mut bytes = [0; 32];
        if hex::decode_to_slice(text, &mut bytes).is_err() {
            bytes = pem::public_key(text)?;
        }
        Self::from_bytes(&bytes)
    }

    /// Reads the file of a public key, as [`Self::from_text`].
    ///
    /// # Errors
    /// [`KeyError`]
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| KeyError::Io { path: path.to_owned(), source })?;
        Self::from_text(&text)
    }

    /// The 32 bytes.
    pub fn to_bytes(&self) -> [u8; 32] {
        self.0.to_bytes()
    }

    /// The key as 64 hex digits.
    pub fn to_hex(&self) -> String {
        hex::encode(self.to_bytes())
    }

    /// The key as SPKI PEM text, as OpenSSL writes it.
    pub fn to_pem(&self) -> String {
        self.0.to_public_key_pem(LineEnding::LF).expect("a valid key has a PEM form")
    }

    /// The id that selects this key.
    pub fn id(&self) -> KeyId {
        let digest = sha256(&[&self.to_bytes()]).0;
        KeyId(std::array::from_fn(|index| digest[index]))
    }

    /// Says whether `signature` is this key's over `message`.
    ///
    /// Strict: no small-order points, no second spelling of the scalar.
    pub fn verifies(&self, message: &[u8], signature: &[u8; 64]) -> bool {
        self.0.verify_strict(message, &Signature::from_bytes(signature)).is_ok()
    }
}

impl std::fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.to_hex())
    }
}

/// An Ed25519 private key. It is wiped from memory when dropped, and neither
/// printed nor compared.
pub struct PrivateKey(SigningKey);

impl PrivateKey {
    /// Makes a key from 32 random bytes, which the caller draws.
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        Self(SigningKey::from_bytes(seed))
    }

    /// Reads a PKCS#8 PEM text (RFC 8410).
    ///
    /// # Errors
    /// [`KeyError`], never [`KeyError::Io`] or [`KeyError::Exposed`].
    pub fn from_pem(text: &str) -> Result<Self, KeyError> {
        pem::private_key(text.trim()).map(Self)
    }

    /// Reads the file of a private key.
    ///
    /// # Errors
    /// [`KeyError::Exposed`] if others may read the file; else as
    /// [`Self::from_pem`].
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let failed = |source| KeyError::Io { path: path.to_owned(), source };
        let mut file = std::fs::File::open(path).map_err(failed)?;
        // Asked of the open file, so that it cannot be exchanged in between.
        check_mode(path, &file.metadata().map_err(failed)?)?;
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(failed)?;
        Self::from_pem(&text)
    }

    /// Writes the key to a new file that only its owner may read.
    ///
    /// # Errors
    /// [`KeyError::Io`], also if the file exists: a key is never overwritten.
    pub fn write_new(&self, path: &Path) -> Result<(), KeyError> {
        let failed = |source| KeyError::Io { path: path.to_owned(), source };
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path).map_err(failed)?;
        file.write_all(self.to_pem().as_bytes()).map_err(failed)
    }

    /// The key as PKCS#8 PEM text, as OpenSSL writes it. The text is wiped from
    /// memory when dropped.
    pub fn to_pem(&self) -> impl std::ops::Deref<Target = String> + use<> {
        // Without the public key: that is version 1, which every OpenSSL reads.
        let bytes = KeypairBytes { secret_key: self.0.to_bytes(), public_key: None };
        bytes.to_pkcs8_pem(LineEnding::LF).expect("a valid key has a PEM form")
    }

    /// The public half.
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    /// Signs a message; the same message always gets the same signature.
    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.0.sign(message).to_bytes()
    }
}

impl std::fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PrivateKey of {}", self.public().id())
    }
}

#[cfg(unix)]
fn check_mode(path: &Path, metadata: &std::fs::Metadata) -> Result<(), KeyError> {
    let mode = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o777;
    if mode & 0o077 == 0 {
        return Ok(());
    }
    Err(KeyError::Exposed { path: path.to_owned(), mode })
}

#[cfg(not(unix))]
fn check_mode(_: &Path, _: &std::fs::Metadata) -> Result<(), KeyError> {
    Ok(())
}

#[cfg(test)]
mod tests;
