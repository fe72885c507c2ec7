//! Keys in PEM without a passphrase: SPKI and PKCS#8 (RFC 8410).

use pkcs8::spki::SubjectPublicKeyInfoRef;
use pkcs8::{ObjectIdentifier, PrivateKeyInfoRef, SecretDocument};

use ed25519_dalek::pkcs8::{ALGORITHM_OID, KeypairBytes, PublicKeyBytes};

use super::{KeyError, PrivateKey};

/// Reads the bytes of a public key from SPKI PEM.
pub(super) fn public_key(text: &str) -> Result<[u8; 32], KeyError> {
    let damaged = |reason: String| KeyError::Damaged { kind: SPKI, reason };
    let document = document(text, SPKI)?;
    let info = SubjectPublicKeyInfoRef::try_from(document.as_bytes())
        .map_err(|error| damaged(error.to_string()))?;
    require_ed25519(info.algorithm.oid)?;
    let key = PublicKeyBytes::try_from(info).map_err(|error| damaged(error.to_string()))?;
    Ok(key.to_bytes())
}

/// Reads a private key from PKCS#8 PEM.
pub(super) fn private_key(text: &str) -> Result<PrivateKey, KeyError> {
    private_key_info(document(text, PKCS8)?.as_bytes(), PKCS8)
}

/// Reads a private key from a PKCS#8 PrivateKeyInfo.
pub(super) fn private_key_info(der: &[u8], kind: &'static str) -> Result<PrivateKey, KeyError> {
    let damaged = |reason: String| KeyError::Damaged { kind, reason };
    let info = PrivateKeyInfoRef::try_from(der).map_err(|error| damaged(error.to_string()))?;
    require_ed25519(info.algorithm.oid)?;
    let pair = KeypairBytes::try_from(info).map_err(|error| damaged(error.to_string()))?;
    let stated = pair.public_key.map(|key| key.to_bytes());
    PrivateKey::from_pair(&pair.secret_key, stated.as_ref(), kind)
}

/// The bytes of a PEM text, whose label was looked at before.
pub(super) fn document(text: &str, kind: &'static str) -> Result<SecretDocument, KeyError> {
    match SecretDocument::from_pem(text) {
        Ok((_, document)) => Ok(document),
        Err(error) => Err(KeyError::Damaged { kind, reason: error.to_string() }),
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

const SPKI: &str = "public key (SPKI PEM)";
const PKCS8: &str = "private key (PKCS#8 PEM)";

// RFC 8017, RFC 5480, RFC 8410.
const ALGORITHMS: [(&str, &str); 5] = [
    ("1.2.840.113549.1.1.1", "RSA"),
    ("1.2.840.10045.2.1", "ECDSA"),
    ("1.3.101.110", "X25519"),
    ("1.3.101.111", "X448"),
    ("1.3.101.113", "Ed448"),
];
