//! Item 0: a COSE_Sign1 (RFC 9052) over the statement, in exactly one form. An
//! auditor's signature over a report, a counter-signature and an entry of a custody log
//! have the same form, each with a context of its own.
//!
//! coset parses leniently and signs what it received; every rule below closes a
//! gap between "valid COSE" and "the one form of this format": tag 18, a
//! protected header of `alg`, content type and `kid`, an empty unprotected
//! header, an embedded payload, and a 64-byte signature.

use std::ops::Range;

use coset::{
    Algorithm, CborSerializable, ContentType, CoseSign1, CoseSign1Builder, Header, HeaderBuilder,
    TaggedCborSerializable, iana,
};

use super::key::{KeyId, PrivateKey, PublicKey};
use super::{TranscriptError, strict};

/// Bound into the signature, so that no other use of the same key in COSE can
/// be passed off as a transcript.
pub const SIGNING_CONTEXT: &[u8] = b"attest transcript v1";

/// Media type of the payload, in the protected header.
pub const CONTENT_TYPE: &str = "application/attest-statement+cbor";

/// What an envelope is for: the parts of the form that keep its uses apart.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    context: &'static [u8],
    content_type: &'static str,
    other_type: &'static str,
    untagged: &'static str,
}

/// Of a transcript; the payload is its statement.
pub const STATEMENT: Form = Form {
    context: SIGNING_CONTEXT,
    content_type: CONTENT_TYPE,
    other_type: "the content type must be application/attest-statement+cbor",
    untagged: "not a transcript: it must start with tag 18 (COSE_Sign1)",
};

/// Of an auditor's signature over a report; the payload is the SHA-256 of the report.
pub const REPORT: Form = Form {
    context: b"attest report v1",
    content_type: "application/attest-report-sha256",
    other_type: "the content type must be application/attest-report-sha256",
    untagged: "not a signature: it must start with tag 18 (COSE_Sign1)",
};

/// Of an auditor's counter-signature; the payload is [`super::countersignature`]'s.
pub const COUNTERSIGNATURE: Form = Form {
    context: b"attest countersignature v1",
    content_type: "application/attest-countersignature+cbor",
    other_type: "the content type must be application/attest-countersignature+cbor",
    untagged: "not a counter-signature: it must start with tag 18 (COSE_Sign1)",
};

/// Of an entry of a custody log; the payload is [`super::custody`]'s.
pub const CUSTODY: Form = Form {
    context: b"attest custody entry v1",
    content_type: "application/attest-custody-entry+cbor",
    other_type: "the content type must be application/attest-custody-entry+cbor",
    untagged: "not a custody entry: it must start with tag 18 (COSE_Sign1)",
};

/// A parsed envelope. Its signature is *not* checked yet.
#[derive(Debug)]
pub struct Envelope {
    /// The key that the signer names.
    pub key_id: KeyId,
    /// Where the statement is in the file.
    pub payload: Range<usize>,
    /// Where the first section starts.
    pub end: usize,
    signed_bytes: Vec<u8>,
    signature: [u8; 64],
}

impl Envelope {
    /// Signs a statement.
    pub fn seal(statement: &[u8], key: &PrivateKey) -> Vec<u8> {
        Self::seal_as(STATEMENT, statement, key)
    }

    /// Signs a payload for what the form is for.
    pub fn seal_as(form: Form, payload: &[u8], key: &PrivateKey) -> Vec<u8> {
        CoseSign1Builder::new()
            .protected(protected_header(form, iana::Algorithm::EdDSA, key.public().id()))
            .payload(payload.to_vec())
            .create_signature(form.context, |bytes| key.sign(bytes).to_vec())
            .build()
            .to_tagged_vec()
            .expect("a message of bytes and integers has an encoding")
    }

    /// Reads the envelope at the start of a file.
    ///
    /// # Errors
    /// [`TranscriptError::Encoding`] and [`TranscriptError::Envelope`].
    pub fn open(file: &[u8]) -> Result<Self, TranscriptError> {
        Self::open_as(STATEMENT, file)
    }

    /// As [`Self::open`], an envelope of this form.
    ///
    /// # Errors
    /// [`TranscriptError::Encoding`] and [`TranscriptError::Envelope`].
    pub fn open_as(form: Form, file: &[u8]) -> Result<Self, TranscriptError> {
        let refuse = |offset, reason| Err(TranscriptError::Envelope { offset, reason });
        let first = |at: usize| file.get(at).copied();

        if first(0) == Some(ARRAY_OF_FOUR) {
            return refuse(0, "tag 18 (COSE_Sign1) is required");
        }
        if first(0).is_some_and(|byte| byte != TAG_18) {
            return refuse(0, form.untagged);
        }
        if first(1).is_some_and(|byte| byte != ARRAY_OF_FOUR) {
            return refuse(1, "an array of four is required");
        }
        let protected = strict::byte_string(file, 2)?;
        let unprotected = protected.end;
        if first(unprotected).is_some_and(|byte| byte != EMPTY_MAP) {
            return refuse(unprotected, "the unprotected header must be empty");
        }
        let payload_start = unprotected + 1;
        if first(payload_start) == Some(NIL) {
            return refuse(payload_start, "the payload must be embedded");
        }
        let payload = strict::byte_string(file, payload_start)?;
        let signature_start = payload.end;
        let signature = strict::byte_string(file, signature_start)?;
        let Ok(signature_bytes) = <[u8; 64]>::try_from(&file[signature.clone()]) else {
            return refuse(signature_start, "the signature must have 64 bytes");
        };

        let key_id = open_protected(form, &file[protected.clone()], protected.start)?;
        let Ok(message) = CoseSign1::from_tagged_slice(&file[..signature.end]) else {
            return refuse(0, "not a COSE_Sign1");
        };
        let signed_bytes = message.tbs_data(form.context);
        Ok(Self { key_id, payload, end: signature.end, signed_bytes, signature: signature_bytes })
    }

    /// The signature as it was read.
    pub fn signature(&self) -> &[u8; 64] {
        &self.signature
    }

    /// Says whether the signature is this key's.
    pub fn is_signed_by(&self, key: &PublicKey) -> bool {
        key.verifies(&self.signed_bytes, &self.signature)
    }
}

/// Reads the protected header and requires its one form.
fn open_protected(form: Form, bytes: &[u8], base: usize) -> Result<KeyId, TranscriptError> {
    let refuse = |reason| Err(TranscriptError::Envelope { offset: base, reason });
    if bytes.is_empty() {
        return refuse("the protected header is empty, alg is required");
    }
    strict::check_item(bytes, base)?;
    let Ok(header) = Header::from_slice(bytes) else {
        return refuse("the protected header is not a header map");
    };
    // Nothing is critical in version 1, so there is nothing that crit could name.
    if !header.crit.is_empty() {
        return refuse("crit names a header that is not understood");
    }
    let algorithm = match &header.alg {
        Some(Algorithm::Assigned(found @ iana::Algorithm::EdDSA)) => *found,
        Some(Algorithm::Assigned(found @ iana::Algorithm::Ed25519)) => *found,
        Some(_) => return refuse("alg must be EdDSA (-8) or Ed25519 (-19)"),
        None => return refuse("alg is required in the protected header"),
    };
    if header.content_type != Some(ContentType::Text(form.content_type.to_owned())) {
        return refuse(form.other_type);
    }
    let Ok(key_id) = <[u8; 8]>::try_from(header.key_id.as_slice()) else {
        return refuse("kid must have 8 bytes");
    };
    let key_id = KeyId(key_id);
    // Whatever else is in there makes the bytes differ.
    match protected_header(form, algorithm, key_id).to_vec() {
        Ok(canonical) if canonical == bytes => Ok(key_id),
        Ok(_) | Err(_) => {
            refuse("the protected header has other members than alg, content type, kid")
        }
    }
}

fn protected_header(form: Form, algorithm: iana::Algorithm, key_id: KeyId) -> Header {
    HeaderBuilder::new()
        .algorithm(algorithm)
        .content_type(form.content_type.to_owned())
        .key_id(key_id.0.to_vec())
        .build()
}

// First bytes of the items that the form fixes (RFC 8949 section 3.1).
const TAG_18: u8 = 0xd2;
const ARRAY_OF_FOUR: u8 = 0x84;
const EMPTY_MAP: u8 = 0xa0;
const NIL: u8 = 0xf6;
