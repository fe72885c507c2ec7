//! Private keys: in memory, and as a file holds them.

use std::io::{Read, Write};
use std::path::Path;

use ed25519_dalek::pkcs8::{
    EncodePrivateKey, KeypairBytes, SecretDocument, spki::der::pem::LineEnding,
};
use ed25519_dalek::{Signer, SigningKey};
use zeroize::Zeroizing;

use super::form::{Form, PRIVATE};
use super::{KeyError, Passphrase, PublicKey, encrypted, jwk, openssh, pem};

/// An Ed25519 private key. It is wiped from memory when dropped, and neither
/// printed nor compared.
pub struct PrivateKey(SigningKey);

impl PrivateKey {
    /// Makes a key from 32 random bytes, which the caller draws.
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        Self(SigningKey::from_bytes(seed))
    }

    /// Makes a key from its seed and the public key that a file states beside it.
    pub(super) fn from_pair(
        seed: &[u8; 32],
        stated: Option<&[u8; 32]>,
        kind: &'static str,
    ) -> Result<Self, KeyError> {
        let key = Self::from_seed(seed);
        // A signature under one key that is published beside another gives the seed away.
        if let Some(stated) = stated
            && PublicKey::from_bytes(stated)? != key.public()
        {
            return Err(KeyError::OtherHalf { kind });
        }
        Ok(key)
    }

    /// Reads the file of a private key that is under no passphrase.
    ///
    /// # Errors
    /// [`KeyError::Locked`] if it is under one; else as [`Stored::read`].
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        Stored::read(path)?.without_passphrase()
    }

    /// Writes the key to a new file that only its owner may read.
    ///
    /// # Errors
    /// [`KeyError::Io`], also if the file exists: a key is never overwritten.
    pub fn write_new(&self, path: &Path) -> Result<(), KeyError> {
        write_new(path, &self.to_pem())
    }

    /// Writes the key under a passphrase, as [`Self::write_new`]. `salt` and `iv` are
    /// random bytes, which the caller draws for this file alone.
    ///
    /// # Errors
    /// As [`Self::write_new`].
    pub fn write_new_encrypted(
        &self,
        path: &Path,
        with: &Passphrase,
        salt: &[u8; 16],
        iv: [u8; 16],
    ) -> Result<(), KeyError> {
        write_new(path, &encrypted::seal(&self.pair(), with, salt, iv))
    }

    /// The key as PKCS#8 PEM text, as OpenSSL writes it. The text is wiped from
    /// memory when dropped.
    pub fn to_pem(&self) -> impl std::ops::Deref<Target = String> + use<> {
        self.pair().to_pkcs8_pem(LineEnding::LF).expect("a valid key has a PEM form")
    }

    fn pair(&self) -> KeypairBytes {
        // Without the public key: that is version 1, which every OpenSSL reads.
        KeypairBytes { secret_key: self.0.to_bytes(), public_key: None }
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

/// A private key as its file holds it.
#[derive(Debug)]
pub enum Stored {
    /// Under no passphrase.
    Open(PrivateKey),
    /// Under one.
    Locked(Locked),
}

impl Stored {
    /// Reads a text: PKCS#8 PEM (RFC 8410), the same encrypted (RFC 8018), an
    /// OpenSSH private key file, or a JWK (RFC 8037).
    ///
    /// # Errors
    /// [`KeyError`], but none of those that name a file.
    pub fn from_text(text: &str) -> Result<Self, KeyError> {
        let text = text.trim();
        let public = |found| Err(KeyError::OtherFormat { found, expected: PRIVATE });
        match Form::of(text, PRIVATE)? {
            Form::Hex => public("this is a public key (64 hex digits)"),
            Form::Spki => public("this is a public key (SPKI PEM)"),
            Form::OpenSshLine => public("this is a public key (OpenSSH line)"),
            Form::Pkcs8 => pem::private_key(text).map(Self::Open),
            Form::Jwk => jwk::private_key(text).map(Self::Open),
            Form::EncryptedPkcs8 => {
                Ok(Self::Locked(Locked(Envelope::Pkcs8(encrypted::frame(text)?))))
            }
            Form::OpenSshFile => {
                let file = openssh::private_file(text)?;
                if file.is_encrypted() {
                    return Ok(Self::Locked(Locked(Envelope::OpenSsh(Box::new(file)))));
                }
                openssh::private_key(&file).map(Self::Open)
            }
        }
    }

    /// Reads a file, which only its owner may read.
    ///
    /// # Errors
    /// [`KeyError::Exposed`] if others may read it; else [`KeyError`].
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let failed = |source| KeyError::Io { path: path.to_owned(), source };
        let mut file = std::fs::File::open(path).map_err(failed)?;
        // Asked of the open file, so that it cannot be exchanged in between.
        check_mode(path, &file.metadata().map_err(failed)?)?;
        Self::from_text(&Zeroizing::new(read_text(&mut file, path)?))
    }

    /// The key, if it is under no passphrase.
    ///
    /// # Errors
    /// [`KeyError::Locked`].
    pub fn without_passphrase(self) -> Result<PrivateKey, KeyError> {
        match self {
            Self::Open(key) => Ok(key),
            Self::Locked(locked) => Err(KeyError::Locked { kind: locked.kind() }),
        }
    }
}

/// A private key under a passphrase.
pub struct Locked(Envelope);

enum Envelope {
    Pkcs8(SecretDocument),
    OpenSsh(Box<ssh_key::PrivateKey>),
}

impl Locked {
    /// Opens the key, which takes a moment: that is what a passphrase costs.
    ///
    /// # Errors
    /// [`KeyError::WrongPassphrase`]; of what is inside, as [`Stored::from_text`].
    pub fn open(&self, with: &Passphrase) -> Result<PrivateKey, KeyError> {
        match &self.0 {
            Envelope::Pkcs8(document) => encrypted::open(document, with),
            Envelope::OpenSsh(file) => openssh::open(file, with),
        }
    }

    /// What errors call it.
    pub fn kind(&self) -> &'static str {
        match self.0 {
            Envelope::Pkcs8(_) => encrypted::KIND,
            Envelope::OpenSsh(_) => openssh::FILE,
        }
    }
}

impl std::fmt::Debug for Locked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.kind())
    }
}

/// The text of a key file; one that is no text is no key.
pub(super) fn read_text(file: &mut std::fs::File, path: &Path) -> Result<String, KeyError> {
    let mut bytes = Vec::new();
    file.take(LIMIT + 1)
        .read_to_end(&mut bytes)
        .map_err(|source| KeyError::Io { path: path.to_owned(), source })?;
    if bytes.len() as u64 > LIMIT {
        return Err(KeyError::TooLong { path: path.to_owned(), limit: LIMIT });
    }
    String::from_utf8(bytes).map_err(|_| KeyError::Unrecognised)
}

fn write_new(path: &Path, text: &str) -> Result<(), KeyError> {
    let failed = |source| KeyError::Io { path: path.to_owned(), source };
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)
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

/// More than any key takes: an RSA key of 16,384 bits is 13 KB of PEM.
const LIMIT: u64 = 64 * 1024;
