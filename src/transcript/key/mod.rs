//! Ed25519 keys: ids, files, strict verification.
//!
//! A public key in a message is never trusted; a [`KeyId`] only selects from the
//! trust store. Reading and writing key files is the only I/O of this layer. One
//! file a form: `pem`, `encrypted`, `openssh`, `jwk`; whatever the form, a
//! public key is made by [`PublicKey::from_bytes`] alone.

mod encrypted;
mod error;
mod form;
mod jwk;
mod openssh;
mod passphrase;
mod pem;
mod private;

pub use error::KeyError;
pub use passphrase::Passphrase;
pub use private::{Locked, PrivateKey, Stored};

use std::path::Path;

use ed25519_dalek::pkcs8::{EncodePublicKey, spki::der::pem::LineEnding};
use ed25519_dalek::{Signature, VerifyingKey};

use crate::num::sha256;
use form::{Form, PUBLIC};

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

    /// Reads a text: SPKI PEM (RFC 8410), the line of an OpenSSH public key, a JWK
    /// (RFC 8037), or 64 hex digits.
    ///
    /// # Errors
    /// [`KeyError`], but none of those that name a file.
    pub fn from_text(text: &str) -> Result<Self, KeyError> {
        let text = text.trim();
        let private = |found| Err(KeyError::OtherFormat { found, expected: PUBLIC });
        let bytes = match Form::of(text, PUBLIC)? {
            Form::Hex => {
                let mut bytes = [0; 32];
                hex::decode_to_slice(text, &mut bytes).map_err(|_| KeyError::Unrecognised)?;
                bytes
            }
            Form::Spki => pem::public_key(text)?,
            Form::OpenSshLine => openssh::public_key(text)?,
            Form::Jwk => jwk::public_key(text)?,
            Form::Pkcs8 => return private("this is a private key (PKCS#8 PEM)"),
            Form::EncryptedPkcs8 => return private("this is a private key under a passphrase"),
            Form::OpenSshFile => return private("this is an OpenSSH private key"),
        };
        Self::from_bytes(&bytes)
    }

    /// Reads the file of a public key, as [`Self::from_text`].
    ///
    /// # Errors
    /// [`KeyError`]
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let mut file = std::fs::File::open(path)
            .map_err(|source| KeyError::Io { path: path.to_owned(), source })?;
        Self::from_text(&private::read_text(&mut file, path)?)
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

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_forms;
