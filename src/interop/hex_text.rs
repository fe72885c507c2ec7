//! Bytes as lower-case hex digits in JSON, in one spelling.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::num::Digest;

/// A SHA-256 as 64 lower-case hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hex256(pub Digest);

/// Bytes as lower-case hex digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HexBytes(pub Vec<u8>);

impl Serialize for Hex256 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.to_string())
    }
}

impl<'de> Deserialize<'de> for Hex256 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let HexBytes(bytes) = HexBytes::deserialize(deserializer)?;
        let found = bytes.len();
        let digest = bytes
            .try_into()
            .map_err(|_| D::Error::custom(format_args!("a digest of {found} bytes, 32 are due")))?;
        Ok(Self(Digest(digest)))
    }
}

impl Serialize for HexBytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex::encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for HexBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match hex::decode(&text) {
            Ok(bytes) if hex::encode(&bytes) == text => Ok(Self(bytes)),
            Ok(_) | Err(_) => {
                Err(D::Error::custom(format_args!("{text:?} is not lower-case hex digits")))
            }
        }
    }
}

/// Reads a member that must be there, though it may be `null`.
pub(super) fn present<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::deserialize(deserializer)
}
