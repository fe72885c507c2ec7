//! PEM key texts: which kind it is, before what is in it.

use ed25519_dalek::SigningKey;
use ed25519_dalek::pkcs8::{
    ALGORITHM_OID, KeypairBytes, ObjectIdentifier, PrivateKeyInfoRef, PublicKeyBytes,
    SecretDocument, spki::SubjectPublicKeyInfoRef,
};

use super::KeyError;

/// Reads the bytes of a public key from SPKI PEM.
pub(super) fn public_key(text: &str) -> Result<[u8; 32], KeyError> {
    let document = document(text, PUBLIC)?;
    let damaged = |reason: String| KeyError::Damaged { kind: PUBLIC.name, reason };
    let info = SubjectPublicKeyInfoRef::try_from(document.as_bytes())
        .map_err(|error| damaged(error.to_string()))?;
    require_ed25519(info.algorithm.oid)?;
    let key = PublicKeyBytes::try_from(info).map_err(|error| damaged(error.to_string()))?;
    Ok(key.to_bytes())
}

/// Reads a private key from PKCS#8 PEM.
pub(super) fn private_key(text: &str) -> Result<SigningKey, KeyError> {
    let document = document(text, PRIVATE)?;
    let damaged = |reason: String| KeyError::Damaged { kind: PRIVATE.name, reason };
    let info = PrivateKeyInfoRef::try_from(document.as_bytes())
        .map_err(|error| damaged(error.to_string()))?;
    require_ed25519(info.algorithm.oid)?;
    let pair = KeypairBytes::try_from(info).map_err(|error| damaged(error.to_string()))?;
    // Refuses a file whose public half belongs to another key.
    SigningKey::try_from(&pair).map_err(|error| damaged(error.to_string()))
}

struct Kind {
    label: &'static str,
    name: &'static str,
}

const PUBLIC: Kind = Kind { label: "PUBLIC KEY", name: "public key (SPKI PEM)" };
const PRIVATE: Kind = Kind { label: "PRIVATE KEY", name: "private key (PKCS#8 PEM)" };

/// Labels and first words of key files that are often taken for the right one.
const OTHERS: [(&str, &str); 9] = [
    ("-----BEGIN PUBLIC KEY-----", "this is a public key"),
    ("-----BEGIN PRIVATE KEY-----", "this is a private key"),
    ("-----BEGIN ENCRYPTED PRIVATE KEY-----", "this is a private key under a passphrase"),
    ("-----BEGIN OPENSSH PRIVATE KEY-----", "this is an OpenSSH private key"),
    ("-----BEGIN RSA PRIVATE KEY-----", "this is an RSA private key"),
    ("-----BEGIN RSA PUBLIC KEY-----", "this is an RSA public key"),
    ("-----BEGIN EC PRIVATE KEY-----", "this is an elliptic-curve (ECDSA) private key"),
    ("-----BEGIN CERTIFICATE-----", "this is a certificate"),
    ("ssh-", "this is an OpenSSH public key"),
];

fn document(text: &str, kind: Kind) -> Result<SecretDocument, KeyError> {
    if !text.starts_with(&format!("-----BEGIN {}-----", kind.label)) {
        return match OTHERS.iter().find(|(start, _)| text.starts_with(start)) {
            Some(&(_, found)) => Err(KeyError::OtherFormat { found, expected: kind.name }),
            None => Err(KeyError::Unrecognised),
        };
    }
    match SecretDocument::from_pem(text) {
        Ok((_, document)) => Ok(document),
        Err(error) => Err(KeyError::Damaged { kind: kind.name, reason: error.to_string() }),
    }
}

fn require_ed25519(found: ObjectIdentifier) -> Result<(), KeyError> {
    if found == ALGORITHM_OID {
        return Ok(());
    }
    let oid = found.to_string();
    let name = ALGORITHMS.iter().find(|(known, _)| *known == oid).map(|(_, name)| *name);
    Err(KeyError::OtherAlgorithm { found: name.map_or(oid, str::to_owned) })
}

// RFC 8017, RFC 5480, RFC 8410.
const ALGORITHMS: [(&str, &str); 5] = [
    ("1.2.840.113549.1.1.1", "RSA"),
    ("1.2.840.10045.2.1", "ECDSA"),
    ("1.3.101.110", "X25519"),
    ("1.3.101.111", "X448"),
    ("1.3.101.113", "Ed448"),
];
