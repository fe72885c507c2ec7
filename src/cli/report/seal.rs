//! The auditor's signature over a report: a COSE_Sign1 beside the file.
//!
//! Its payload is the SHA-256 of the report's bytes, so it binds the file as it is
//! and needs no canonical form of JSON.

use crate::num::{Digest, sha256};
use crate::transcript::TranscriptError;
use crate::transcript::cose::{Envelope, REPORT};
use crate::transcript::key::PrivateKey;

/// Signs the bytes of a report.
pub(super) fn seal(report: &[u8], key: &PrivateKey) -> Vec<u8> {
    Envelope::seal_as(REPORT, &sha256(&[report]).0, key)
}

/// A signature that was read; whose it is, is not checked yet.
pub(super) struct Seal {
    /// Who signed, and what.
    pub(super) envelope: Envelope,
    /// Digest of the report that was signed.
    pub(super) digest: Digest,
}

impl Seal {
    /// Reads a signature file.
    ///
    /// # Errors
    /// [`TranscriptError::Envelope`] and the like for anything but the one form.
    pub(super) fn read(file: &[u8]) -> Result<Self, TranscriptError> {
        let envelope = Envelope::open_as(REPORT, file)?;
        let offset = envelope.payload.start;
        let Ok(digest) = <[u8; 32]>::try_from(&file[envelope.payload.clone()]) else {
            return Err(TranscriptError::Envelope {
                offset,
                reason: "the payload must be a SHA-256",
            });
        };
        if envelope.end != file.len() {
            let (offset, count) = (envelope.end, file.len() - envelope.end);
            return Err(TranscriptError::TrailingBytes { offset, count });
        }
        Ok(Self { envelope, digest: Digest(digest) })
    }
}
