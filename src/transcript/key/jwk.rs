//! Keys as JSON Web Keys: octet key pairs (RFC 8037), public and private.
//!
//! A member that is not known is refused. RFC 7517 would have it ignored, but a
//! restriction that is not read is a restriction that does not hold.

use base64ct::{Base64UrlUnpadded, Encoding as _};
use serde::Deserialize;
use zeroize::Zeroizing;

use super::form::{PRIVATE, PUBLIC};
use super::{KeyError, PrivateKey};

/// Reads the bytes of a public key.
pub(super) fn public_key(text: &str) -> Result<[u8; 32], KeyError> {
    let jwk = Jwk::read(text, "verify", PUBLIC)?;
    if jwk.d.is_some() {
        let found = "this is a private key (JWK)";
        return Err(KeyError::OtherFormat { found, expected: PUBLIC });
    }
    Ok(*decode("x", &jwk.x)?)
}

/// Reads a private key, whose public half must be its own.
pub(super) fn private_key(text: &str) -> Result<PrivateKey, KeyError> {
    let jwk = Jwk::read(text, "sign", PRIVATE)?;
    let Some(d) = &jwk.d else {
        let found = "this is a public key (JWK)";
        return Err(KeyError::OtherFormat { found, expected: PRIVATE });
    };
    PrivateKey::from_pair(&*decode("d", d)?, Some(&*decode("x", &jwk.x)?), KIND)
}

/// What says which key it is; looked at first, since keys of other algorithms have
/// other members.
#[derive(Deserialize)]
struct Head {
    kty: Option<String>,
    crv: Option<String>,
    keys: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Jwk {
    #[serde(rename = "kty")]
    _kty: String,
    #[serde(rename = "crv")]
    _crv: String,
    x: String,
    d: Option<Zeroizing<String>>,
    alg: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    key_ops: Option<Vec<String>>,
    #[serde(rename = "kid")]
    _kid: Option<String>,
    #[serde(rename = "ext")]
    _ext: Option<bool>,
}

impl Jwk {
    fn read(text: &str, operation: &str, expected: &'static str) -> Result<Self, KeyError> {
        let parsed = |error: serde_json::Error| damaged(error.to_string());
        let head: Head = serde_json::from_str(text).map_err(parsed)?;
        let other = |found: String| Err(KeyError::OtherAlgorithm { found });
        match (head.kty.as_deref(), head.crv.as_deref()) {
            (Some("OKP"), Some("Ed25519")) => {}
            (None, _) if head.keys.is_some() => {
                let found = "this is a set of keys (JWKS)";
                return Err(KeyError::OtherFormat { found, expected });
            }
            (None, _) => return Err(damaged("it has no kty".into())),
            (Some("RSA"), _) => return other("RSA".into()),
            (Some("oct"), _) => return other("a symmetric algorithm".into()),
            (Some("EC"), Some(curve)) => return other(format!("ECDSA ({curve:?})")),
            (Some("OKP"), Some(curve)) => return other(format!("{curve:?}")),
            (Some(kty), _) => return other(format!("{kty:?}")),
        }
        let jwk: Self = serde_json::from_str(text).map_err(parsed)?;
        if let Some(alg) = jwk.alg.as_deref().filter(|alg| !["EdDSA", "Ed25519"].contains(alg)) {
            return other(format!("{alg:?}"));
        }
        if let Some(purpose) = jwk.purpose.as_deref().filter(|&purpose| purpose != "sig") {
            return Err(damaged(format!("its use is {purpose:?}, not \"sig\"")));
        }
        if let Some(allowed) = &jwk.key_ops
            && !allowed.iter().any(|allowed| allowed == operation)
        {
            return Err(damaged(format!("its key_ops do not have {operation:?}")));
        }
        Ok(jwk)
    }
}

/// 32 bytes of base64url without padding, in its one spelling.
fn decode(member: &str, text: &str) -> Result<Zeroizing<[u8; 32]>, KeyError> {
    let mut bytes = Zeroizing::new([0; 32]);
    match Base64UrlUnpadded::decode(text, bytes.as_mut_slice()) {
        Ok(decoded) if decoded.len() == 32 => Ok(bytes),
        Ok(_) | Err(_) => Err(damaged(format!("{member} is not 32 bytes in base64url"))),
    }
}

fn damaged(reason: String) -> KeyError {
    KeyError::Damaged { kind: KIND, reason }
}

const KIND: &str = "key (JWK)";
