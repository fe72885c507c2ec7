//! The transcript: a signed statement, then its sections.
//!
//! This layer says whether a file *is* a transcript and whether a key signed it.
//! Whether what it states is true is `verify`'s business. `spec/transcript.md`
//! describes the bytes, `schemas/transcript.cddl` the statement.

pub mod capture;
pub mod cells;
pub mod cose;
pub mod countersignature;
pub mod custody;
pub mod diff;
mod error;
pub mod key;
pub mod leaf;
pub mod merkle;
pub mod multiproof;
pub mod opening;
mod read;
pub mod record;
pub mod signed;
mod source;
mod spool;
pub mod statement;
pub mod strict;
pub mod tap;
mod wire;
pub mod write;

use std::borrow::Cow;
use std::ops::Range;

use crate::num::{Digest, sha256};

use cose::Envelope;
use key::{KeyId, PrivateKey, PublicKey};
use opening::Opening;
use source::Source;
use statement::LogitsMode;

pub use error::{RefusalClass, TranscriptError};
pub use statement::Statement;

/// Kind of the section that holds logits rows or their digests.
pub const LOGITS_SECTION: &str = "logits";
/// Kind of the section that holds digests of step outputs.
pub const TRACE_SECTION: &str = "trace";

/// A whole transcript whose parts fit together. Its signature is checked apart,
/// by [`Self::verify_signature`].
#[derive(Debug)]
pub struct Transcript {
    source: Source,
    envelope: Envelope,
    statement: Statement,
    /// Where each section's contents are; `None` if it is withheld.
    sections: Vec<Option<Range<u64>>>,
    /// Digests of the rows of logits, unless they are withheld.
    logits_digests: Option<Vec<Digest>>,
    /// Digests of the traced outputs, unless they are withheld or there are none.
    trace_digests: Option<Vec<Digest>>,
    opening: Option<Opening>,
}

impl Transcript {
    /// Signs a statement and puts its sections behind it.
    ///
    /// # Errors
    /// Whatever [`Self::parse`] finds wrong with the result, so that nothing is
    /// signed that cannot be read.
    pub fn seal(
        statement: &Statement,
        contents: &[Vec<u8>],
        key: &PrivateKey,
    ) -> Result<Self, TranscriptError> {
        let mut file = Envelope::seal(&statement.to_bytes()?, key);
        for content in contents {
            file.extend_from_slice(&wire::byte_string_head(content.len() as u64));
            file.extend_from_slice(content);
        }
        Self::parse(file)
    }

    /// Checks that `key` signed this statement.
    ///
    /// # Errors
    /// [`TranscriptError::OtherKey`] and [`TranscriptError::BadSignature`], both
    /// of class `Untrusted`.
    pub fn verify_signature(&self, key: &PublicKey) -> Result<(), TranscriptError> {
        if key.id() != self.envelope.key_id {
            let (expected, found) = (key.id().to_string(), self.envelope.key_id.to_string());
            return Err(TranscriptError::OtherKey { expected, found });
        }
        if !self.envelope.is_signed_by(key) {
            let (statement, key) = (self.digest(), key.id().to_string());
            return Err(TranscriptError::BadSignature { statement, key });
        }
        Ok(())
    }

    /// The statement: claims of whoever signed it.
    pub fn statement(&self) -> &Statement {
        &self.statement
    }

    /// The bytes that are signed.
    pub fn statement_bytes(&self) -> &[u8] {
        &self.source.held()[self.envelope.payload.clone()]
    }

    /// SHA-256 of the statement: the identity of the transcript.
    pub fn digest(&self) -> Digest {
        sha256(&[self.statement_bytes()])
    }

    /// The key that the envelope names. It selects from the trust store and
    /// proves nothing.
    pub fn key_id(&self) -> KeyId {
        self.envelope.key_id
    }

    /// The signature, which nothing here has checked.
    pub fn signature(&self) -> &[u8; 64] {
        self.envelope.signature()
    }

    /// What is held of the file: all of it if it came as bytes, else item 0.
    pub fn as_bytes(&self) -> &[u8] {
        self.source.held()
    }

    /// Item 0: the signed statement.
    pub fn item_0(&self) -> &[u8] {
        &self.source.held()[..self.envelope.end]
    }

    /// Length of the file (bytes).
    pub fn len_bytes(&self) -> u64 {
        self.source.len_bytes()
    }

    /// Whether a section of this kind is stated, but not in the file.
    pub fn withholds(&self, kind: &str) -> bool {
        self.place(kind).is_some_and(|place| place.is_none())
    }

    /// The openings, if there are any. Nothing here has checked them
    /// ([`cells::Opened`]).
    pub fn opening(&self) -> Option<&Opening> {
        self.opening.as_ref()
    }

    /// The contents of a section of this kind, if the file has it and came as bytes.
    pub fn section(&self, kind: &str) -> Option<&[u8]> {
        let place = self.place(kind)??;
        let (start, end) = (usize::try_from(place.start).ok()?, usize::try_from(place.end).ok()?);
        self.source.held().get(start..end)
    }

    /// The little-endian bytes of a row of logits, where they were recorded. Of a file
    /// that changed since it was opened a row that differs is not there any more.
    pub fn logits_row(&self, index: u64) -> Option<Cow<'_, [u8]>> {
        match self.statement.logits.mode {
            LogitsMode::Full => {
                let logits = &self.statement.logits;
                let width = logits.vocab.checked_mul(logits.dtype.size_bytes() as u64)?;
                let place = self.place(LOGITS_SECTION)??;
                let start = place.start.checked_add(index.checked_mul(width)?)?;
                let end = start.checked_add(width).filter(|&end| end <= place.end)?;
                let row = self.source.read(start..end).ok()?;
                let same = match &self.source {
                    Source::Memory(_) => true,
                    Source::File { .. } => self.logits_digest(index) == Some(sha256(&[&row])),
                };
                same.then_some(row)
            }
            LogitsMode::Hash => None,
        }
    }

    /// The SHA-256 of a row of logits, unless it is withheld.
    pub fn logits_digest(&self, index: u64) -> Option<Digest> {
        self.logits_digests.as_ref()?.get(usize::try_from(index).ok()?).copied()
    }

    /// The SHA-256 of a recorded step output, unless it is withheld; `index` counts
    /// leaves in order of (pass, step).
    pub fn trace_digest(&self, index: u64) -> Option<Digest> {
        self.trace_digests.as_ref()?.get(usize::try_from(index).ok()?).copied()
    }

    /// The bytes of a range of the file, as they are now.
    ///
    /// # Errors
    /// [`TranscriptError::Unreadable`].
    pub fn bytes(&self, range: Range<u64>) -> Result<Cow<'_, [u8]>, TranscriptError> {
        self.source.read(range)
    }

    fn place(&self, kind: &str) -> Option<Option<Range<u64>>> {
        let index = self.statement.sections.iter().position(|section| section.kind == kind)?;
        self.sections.get(index).cloned()
    }
}
