//! The transcript: a signed statement, then its sections.
//!
//! This layer says whether a file *is* a transcript and whether a key signed it.
//! Whether what it states is true is `verify`'s business. `spec/transcript.md`
//! describes the bytes, `schemas/transcript.cddl` the statement.

pub mod capture;
pub mod cose;
pub mod diff;
mod error;
pub mod key;
pub mod leaf;
pub mod merkle;
pub mod record;
pub mod statement;
pub mod strict;
pub mod tap;
mod wire;

use std::ops::Range;

use crate::num::{Digest, sha256};

use cose::Envelope;
use key::{KeyId, PrivateKey, PublicKey};
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
    file: Vec<u8>,
    envelope: Envelope,
    statement: Statement,
    sections: Vec<Range<usize>>,
}

impl Transcript {
    /// Reads a file: item 0, then every section the statement lists, and no more.
    ///
    /// # Errors
    /// [`TranscriptError`] of class `Malformed`.
    pub fn parse(file: Vec<u8>) -> Result<Self, TranscriptError> {
        let envelope = Envelope::open(&file)?;
        let payload = envelope.payload.clone();
        let statement = Statement::from_bytes(&file[payload.clone()], payload.start)?;

        let mut sections = Vec::with_capacity(statement.sections.len());
        let mut at = envelope.end;
        for (index, section) in statement.sections.iter().enumerate() {
            let kind = section.kind.clone();
            if at == file.len() {
                return Err(TranscriptError::SectionMissing { offset: at, index, kind });
            }
            let range = strict::byte_string(&file, at)?;
            let (expected, found) = (section.len_bytes, range.len() as u64);
            if expected != found {
                let offset = at;
                return Err(TranscriptError::SectionLength { offset, kind, expected, found });
            }
            require(&kind, "sha256", section.sha256, sha256(&[&file[range.clone()]]))?;
            at = range.end;
            sections.push(range);
        }
        if at != file.len() {
            let count = file.len() - at;
            return Err(TranscriptError::TrailingBytes { offset: at, count });
        }

        let transcript = Self { file, envelope, statement, sections };
        let rows = (0..transcript.statement.logits.count)
            .filter_map(|index| transcript.logits_digest(index));
        let root = leaf::logits_root(&transcript.statement, rows);
        require(LOGITS_SECTION, "root", transcript.statement.logits.root, root)?;
        Ok(transcript)
    }

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
        &self.file[self.envelope.payload.clone()]
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

    /// The whole file.
    pub fn as_bytes(&self) -> &[u8] {
        &self.file
    }

    /// The contents of a section, if there is one of this kind.
    pub fn section(&self, kind: &str) -> Option<&[u8]> {
        let index = self.statement.sections.iter().position(|section| section.kind == kind)?;
        Some(&self.file[self.sections.get(index)?.clone()])
    }

    /// The little-endian bytes of a row of logits, where they were recorded.
    pub fn logits_row(&self, index: u64) -> Option<&[u8]> {
        match self.statement.logits.mode {
            LogitsMode::Full => self.leaf_bytes(LOGITS_SECTION, index),
            LogitsMode::Hash => None,
        }
    }

    /// The SHA-256 of a row of logits.
    pub fn logits_digest(&self, index: u64) -> Option<Digest> {
        let bytes = self.leaf_bytes(LOGITS_SECTION, index)?;
        match self.statement.logits.mode {
            LogitsMode::Full => Some(sha256(&[bytes])),
            LogitsMode::Hash => bytes.try_into().ok().map(Digest),
        }
    }

    /// The SHA-256 of a recorded step output; `index` counts leaves in order of
    /// (pass, step).
    pub fn trace_digest(&self, index: u64) -> Option<Digest> {
        self.leaf_bytes(TRACE_SECTION, index)?.try_into().ok().map(Digest)
    }

    fn leaf_bytes(&self, kind: &str, index: u64) -> Option<&[u8]> {
        let section = self.statement.sections.iter().find(|section| section.kind == kind)?;
        let width = usize::try_from(section.len_bytes.checked_div(section.leaf_count)?).ok()?;
        let start = usize::try_from(index).ok()?.checked_mul(width)?;
        self.section(kind)?.get(start..start.checked_add(width)?)
    }
}

fn require(
    kind: &str,
    commitment: &'static str,
    expected: Digest,
    found: Digest,
) -> Result<(), TranscriptError> {
    if expected == found {
        return Ok(());
    }
    let kind = kind.to_owned();
    Err(TranscriptError::SectionMismatch { kind, commitment, expected, found })
}
