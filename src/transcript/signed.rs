//! One small record under one signature: what counter-signatures and entries of a
//! custody log have in common.
//!
//! The envelope has the strict form of [`super::cose`]; its payload is one closed map in
//! deterministic CBOR, so that what was signed has one spelling.

use ciborium::Value;

use super::cose::{Envelope, Form};
use super::key::PrivateKey;
use super::wire::{Wire, encode, words, wrong};
use super::{TranscriptError, strict};

words! {
    /// A verdict as it is signed.
    StatedVerdict {
        /// Signer trusted, every check exact.
        Verified => "VERIFIED",
        /// Authentic, but re-execution or sampling differs.
        Mismatch => "MISMATCH",
        /// Signature bad, key not trusted, or no trust given.
        Untrusted => "UNTRUSTED",
        /// Not a valid transcript, or a file of the model is not valid.
        Malformed => "MALFORMED",
        /// It could not be decided.
        Incomplete => "INCOMPLETE",
        /// What was drawn is exact, but not everything was drawn.
        Partial => "PARTIAL",
    }
}

/// The version of a record's form: 1, and no other number is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormVersion;

impl Wire for FormVersion {
    fn to_value(&self) -> Value {
        Value::from(1)
    }

    fn from_value(value: Value, at: &str) -> Result<Self, TranscriptError> {
        match u64::from_value(value, at)? {
            1 => Ok(Self),
            _ => Err(wrong(at, "1")),
        }
    }
}

/// A record with the envelope that it was in. The signature is *not* checked yet.
#[derive(Debug)]
pub struct Signed<T> {
    /// Who signed, by their own account.
    pub envelope: Envelope,
    /// What was signed.
    pub record: T,
}

/// Longest record that is read (bytes): a note of 4 KiB and room for the rest.
pub const MAX_RECORD_LEN_BYTES: usize = 8 << 10;

/// Signs a record.
pub(super) fn seal<T: Wire>(form: Form, record: &T, key: &PrivateKey) -> Vec<u8> {
    Envelope::seal_as(form, &encode(&record.to_value()), key)
}

/// Reads the record at the start of `bytes`; [`Envelope::end`] says where it ends.
///
/// # Errors
/// [`TranscriptError`] of class `Malformed` for anything but the one form; offsets count
/// from the start of `bytes`, `name` is the record's in messages.
pub(super) fn open<T: Wire>(
    form: Form,
    bytes: &[u8],
    name: &str,
) -> Result<Signed<T>, TranscriptError> {
    let envelope = Envelope::open_as(form, bytes)?;
    let (payload, offset) = (&bytes[envelope.payload.clone()], envelope.payload.start);
    if payload.len() > MAX_RECORD_LEN_BYTES {
        let (found, limit) = (payload.len(), MAX_RECORD_LEN_BYTES);
        return Err(TranscriptError::TooLong { found, limit });
    }
    strict::check_item(payload, offset)?;
    let refuse = |reason| TranscriptError::Envelope { offset, reason };
    let value = ciborium::from_reader(payload).map_err(|_| refuse("undecodable payload"))?;
    let record = T::from_value(value, name)?;
    if encode(&record.to_value()) != payload {
        return Err(refuse("the payload is not in its canonical form"));
    }
    Ok(Signed { envelope, record })
}
