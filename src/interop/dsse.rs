//! The DSSE envelope: bytes of a stated type, and signatures over both.
//!
//! What is signed is the payload as it is, so no canonical form of JSON is needed.
//! The pre-authentication encoding starts with `DSSEv1`, a COSE signature's input
//! with a CBOR array: no signature of one can pass for one of the other.
//!
//! # Source
//! DSSE 1.0.2, `protocol.md` and `envelope.md`.

use base64ct::{Base64, Base64Url, Encoding as _};
use serde::{Deserialize, Serialize};

use super::InteropError;
use crate::model::json;
use crate::transcript::key::{PrivateKey, PublicKey};

/// Payload type of an in-toto Statement.
pub const IN_TOTO: &str = "application/vnd.in-toto+json";

/// Longest envelope that is read or written (bytes). An export has about 2 KB.
pub const MAX_ENVELOPE_LEN_BYTES: usize = 1 << 20;

/// Most signatures that an envelope may have.
pub const MAX_SIGNATURES: usize = 64;

/// An envelope around an in-toto Statement. Its signatures are *not* checked yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The statement's bytes.
    pub payload: Vec<u8>,
    /// Who signed them, at least one.
    pub signatures: Vec<Signature>,
}

/// One signature of an envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// A hint for choosing a key, and nothing else; may be empty.
    pub key_id: String,
    /// The signature; one of another algorithm has another length.
    pub bytes: Vec<u8>,
}

impl Envelope {
    /// Signs a statement.
    pub fn seal(payload: Vec<u8>, key: &PrivateKey) -> Self {
        let bytes = key.sign(&pre_authentication_encoding(IN_TOTO, &payload)).to_vec();
        let key_id = key.public().id().to_string();
        Self { payload, signatures: vec![Signature { key_id, bytes }] }
    }

    /// Reads an envelope.
    ///
    /// Members that DSSE does not define are ignored, as it requires; a member that
    /// appears twice is refused, for readers disagree on which one counts.
    ///
    /// # Errors
    /// [`InteropError::TooLong`], [`InteropError::Envelope`],
    /// [`InteropError::PayloadType`].
    pub fn from_json(bytes: &[u8]) -> Result<Self, InteropError> {
        if bytes.len() > MAX_ENVELOPE_LEN_BYTES {
            let (found, limit) = (bytes.len(), MAX_ENVELOPE_LEN_BYTES);
            return Err(InteropError::TooLong { found, limit });
        }
        let refuse = |reason: String| InteropError::Envelope { reason };
        json::refuse_repeated_keys(bytes).map_err(refuse)?;
        let wire: Wire = serde_json::from_slice(bytes).map_err(|e| refuse(e.to_string()))?;
        if wire.payload_type != IN_TOTO {
            let found = wire.payload_type;
            return Err(InteropError::PayloadType { found, expected: IN_TOTO });
        }
        let count = wire.signatures.len();
        if !(1..=MAX_SIGNATURES).contains(&count) {
            return Err(refuse(format!("{count} signatures, 1 to {MAX_SIGNATURES} are read")));
        }
        let payload = decode("payload", &wire.payload)?;
        let mut signatures = Vec::new();
        for (index, WireSignature { keyid, sig }) in wire.signatures.into_iter().enumerate() {
            let bytes = decode(&format!("signatures[{index}].sig"), &sig)?;
            let signature = Signature { key_id: keyid.unwrap_or_default(), bytes };
            if signatures.contains(&signature) {
                return Err(refuse(format!("signatures[{index}] appears twice")));
            }
            signatures.push(signature);
        }
        Ok(Self { payload, signatures })
    }

    /// Writes the envelope as one line of JSON, base64 in the standard alphabet.
    pub fn to_json(&self) -> String {
        let signature = |signature: &Signature| WireSignature {
            keyid: Some(signature.key_id.clone()),
            sig: Base64::encode_string(&signature.bytes),
        };
        let wire = Wire {
            payload_type: IN_TOTO.to_owned(),
            payload: Base64::encode_string(&self.payload),
            signatures: self.signatures.iter().map(signature).collect(),
        };
        serde_json::to_string(&wire).expect("text and lists of text have a JSON form")
    }

    /// Says whether a signature is this key's over the payload and its type.
    pub fn is_signed_by(&self, signature: &Signature, key: &PublicKey) -> bool {
        let Ok(bytes) = <[u8; 64]>::try_from(signature.bytes.as_slice()) else { return false };
        key.verifies(&pre_authentication_encoding(IN_TOTO, &self.payload), &bytes)
    }
}

/// What is signed: version, type and body, each length in decimal digits.
pub fn pre_authentication_encoding(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let (type_len, len) = (payload_type.len(), payload.len());
    let mut bytes = format!("DSSEv1 {type_len} {payload_type} {len} ").into_bytes();
    bytes.extend_from_slice(payload);
    bytes
}

/// Decodes base64 with its padding, in either alphabet; bits beyond the last byte are
/// zero, so that a text has one spelling in each.
fn decode(member: &str, text: &str) -> Result<Vec<u8>, InteropError> {
    Base64::decode_vec(text).or_else(|_| Base64Url::decode_vec(text)).map_err(|_| {
        InteropError::Envelope { reason: format!("{member} is not base64 with padding") }
    })
}

#[derive(Serialize, Deserialize)]
struct Wire {
    #[serde(rename = "payloadType")]
    payload_type: String,
    payload: String,
    signatures: Vec<WireSignature>,
}

#[derive(Serialize, Deserialize)]
struct WireSignature {
    #[serde(default)]
    keyid: Option<String>,
    sig: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_encoding_is_that_of_the_protocol() {
        // The example of DSSE 1.0.2, `protocol.md`, "Test Vectors".
        let bytes = pre_authentication_encoding("http://example.com/HelloWorld", b"hello world");
        assert_eq!(bytes, b"DSSEv1 29 http://example.com/HelloWorld 11 hello world");
    }

    #[test]
    fn reads_both_alphabets_and_no_second_spelling() {
        let cases: [(&str, Option<&[u8]>, &str); 7] = [
            ("+/8=", Some(&[0xfb, 0xff]), "standard"),
            ("-_8=", Some(&[0xfb, 0xff]), "URL-safe"),
            ("", Some(&[]), "nothing"),
            ("+_8=", None, "both alphabets"),
            ("+/9=", None, "a bit beyond the last byte"),
            ("+/8", None, "without padding"),
            ("+/8=\n", None, "a line end"),
        ];
        for (text, expected, reason) in cases {
            assert_eq!(decode("payload", text).ok().as_deref(), expected, "{reason}");
        }
    }
}
