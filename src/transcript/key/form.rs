//! Which form a key text has, told by its first words, before anything is parsed.

use super::{KeyError, openssh};

/// A form that is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    /// A public key of 64 hex digits.
    Hex,
    /// A public key in SPKI PEM (RFC 8410).
    Spki,
    /// A private key in PKCS#8 PEM (RFC 8410).
    Pkcs8,
    /// The same under a passphrase (RFC 8018).
    EncryptedPkcs8,
    /// A public key as OpenSSH's one line.
    OpenSshLine,
    /// A private key file of OpenSSH.
    OpenSshFile,
    /// A JSON Web Key (RFC 8037), public or private.
    Jwk,
}

impl Form {
    /// Tells the form of a text without white space around it.
    ///
    /// # Errors
    /// [`KeyError::OtherFormat`] for what is often taken for the right file,
    /// [`KeyError::Unrecognised`] for the rest.
    pub(super) fn of(text: &str, expected: &'static str) -> Result<Self, KeyError> {
        if text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(Self::Hex);
        }
        if text.starts_with('{') {
            return Ok(Self::Jwk);
        }
        if openssh::is_key_type(text.split([' ', '\t']).next().unwrap_or_default()) {
            return Ok(Self::OpenSshLine);
        }
        if let Some(&(_, form)) = FORMS.iter().find(|(start, _)| text.starts_with(start)) {
            return Ok(form);
        }
        match OTHERS.iter().find(|(start, _)| text.starts_with(start)) {
            Some(&(_, found)) => Err(KeyError::OtherFormat { found, expected }),
            None => Err(KeyError::Unrecognised),
        }
    }
}

/// What is expected where a public key is.
pub(super) const PUBLIC: &str = "a public key (SPKI PEM, OpenSSH line, JWK or 64 hex digits)";
/// What is expected where a private key is.
pub(super) const PRIVATE: &str = "a private key (PKCS#8 PEM, OpenSSH or JWK)";

const FORMS: [(&str, Form); 4] = [
    ("-----BEGIN PUBLIC KEY-----", Form::Spki),
    ("-----BEGIN PRIVATE KEY-----", Form::Pkcs8),
    ("-----BEGIN ENCRYPTED PRIVATE KEY-----", Form::EncryptedPkcs8),
    ("-----BEGIN OPENSSH PRIVATE KEY-----", Form::OpenSshFile),
];

/// First words of files that are often taken for the right one.
const OTHERS: [(&str, &str); 10] = [
    ("-----BEGIN RSA PRIVATE KEY-----", "this is an RSA private key"),
    ("-----BEGIN RSA PUBLIC KEY-----", "this is an RSA public key"),
    ("-----BEGIN EC P", "this is an elliptic-curve (ECDSA) private key"),
    ("-----BEGIN DSA PRIVATE KEY-----", "this is a DSA private key"),
    ("-----BEGIN CERTIFICATE-----", "this is a certificate"),
    ("-----BEGIN PGP ", "this is an OpenPGP file"),
    ("---- BEGIN SSH2 PUBLIC KEY", "this is an SSH2 public key (RFC 4716)"),
    ("-----BEGIN SSH SIGNATURE-----", "this is an OpenSSH signature"),
    ("PuTTY-User-Key-File", "this is a PuTTY key file"),
    ("untrusted comment:", "this is a minisign or signify file"),
];
