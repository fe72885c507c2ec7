//! A passphrase, wiped from memory when dropped.

use zeroize::Zeroizing;

use super::KeyError;

/// The bytes that open a private key. They are neither printed nor compared.
pub struct Passphrase(Zeroizing<Vec<u8>>);

impl Passphrase {
    /// Takes the bytes as they are.
    ///
    /// # Errors
    /// [`KeyError::NoPassphrase`] if there are none.
    pub fn new(bytes: Vec<u8>) -> Result<Self, KeyError> {
        if bytes.is_empty() {
            return Err(KeyError::NoPassphrase);
        }
        Ok(Self(Zeroizing::new(bytes)))
    }

    /// The bytes.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl std::fmt::Debug for Passphrase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Passphrase")
    }
}
