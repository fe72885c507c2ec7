//! Why a transcript is refused.

use crate::num::Digest;

use super::strict::Fault;

/// Why a transcript is refused, with the place where it went wrong.
///
/// Offsets count bytes from the start of the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TranscriptError {
    /// The bytes are not the one allowed encoding.
    #[error("byte {offset}: {fault}")]
    Encoding {
        /// Where, in bytes from the start of the file.
        offset: usize,
        /// What is wrong there.
        fault: Fault,
    },
    /// Item 0 is not the signed envelope this format requires.
    #[error("byte {offset}: signed envelope: {reason}")]
    Envelope {
        /// Where the offending part starts.
        offset: usize,
        /// Which rule of `spec/transcript.md` is broken.
        reason: &'static str,
    },
    /// A field that every statement must have is absent.
    #[error("statement: {field} is missing")]
    MissingField {
        /// Path of the field.
        field: String,
    },
    /// A field has another type, or a value outside its range.
    #[error("statement: {field} must be {expected}")]
    WrongType {
        /// Path of the field.
        field: String,
        /// What the format asks for.
        expected: &'static str,
    },
    /// A map has a key that this version does not know and must not ignore.
    #[error("statement: {field} has the unknown key {key}")]
    UnknownKey {
        /// Path of the map.
        field: String,
        /// The key.
        key: u64,
    },
    /// Fields that are well formed one by one contradict each other.
    #[error("statement: {rule}")]
    Inconsistent {
        /// The rule that is broken, with the numbers found.
        rule: String,
    },
    /// The signed statement is longer than this version reads.
    #[error("statement of {found} bytes, at most {limit} are read")]
    TooLong {
        /// Length found.
        found: usize,
        /// The limit.
        limit: usize,
    },
    /// The file ends before a section that the statement lists.
    #[error("byte {offset}: section {index} ({kind}) is missing")]
    SectionMissing {
        /// Where it should start.
        offset: usize,
        /// Its place in the statement's list.
        index: usize,
        /// Its kind.
        kind: String,
    },
    /// A section is not as long as the statement says.
    #[error("byte {offset}: section {kind} has {found} bytes, the statement says {expected}")]
    SectionLength {
        /// Where the section starts.
        offset: usize,
        /// Its kind.
        kind: String,
        /// Length in the statement.
        expected: u64,
        /// Length found.
        found: u64,
    },
    /// A section's bytes are not those the statement commits to.
    #[error("section {kind} does not match the statement: {commitment} {expected}, found {found}")]
    SectionMismatch {
        /// Its kind.
        kind: String,
        /// `sha256` or `root`.
        commitment: &'static str,
        /// Value in the statement.
        expected: Digest,
        /// Value computed from the file.
        found: Digest,
    },
    /// The file continues after its last section.
    #[error("byte {offset}: {count} bytes after the last section")]
    TrailingBytes {
        /// Where they start.
        offset: usize,
        /// How many.
        count: usize,
    },
    /// The file cannot be read, or no more.
    #[error("byte {offset}: the file cannot be read: {reason}")]
    Unreadable {
        /// Where reading began.
        offset: u64,
        /// The system's reason.
        reason: String,
    },
    /// The signature is not one of this key over this statement.
    #[error("the signature of statement {statement} is not valid under key {key}")]
    BadSignature {
        /// Digest of the statement.
        statement: Digest,
        /// The key's id.
        key: String,
    },
    /// The envelope names another key than the one it is checked with.
    #[error("the transcript names key {found}, it is checked with key {expected}")]
    OtherKey {
        /// Id of the key at hand.
        expected: String,
        /// Id in the envelope.
        found: String,
    },
}

/// What a refusal says about the file; the command line maps it to an exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalClass {
    /// Not a transcript of this format: exit code 4.
    Malformed,
    /// A transcript, but not by the key it is checked with: exit code 3.
    Untrusted,
    /// Cannot be decided: the file cannot be read. Exit code 5.
    Unreadable,
}

impl TranscriptError {
    /// Says which exit code the refusal leads to.
    pub fn class(&self) -> RefusalClass {
        match self {
            Self::BadSignature { .. } | Self::OtherKey { .. } => RefusalClass::Untrusted,
            Self::Unreadable { .. } => RefusalClass::Unreadable,
            Self::Encoding { .. }
            | Self::Envelope { .. }
            | Self::MissingField { .. }
            | Self::WrongType { .. }
            | Self::UnknownKey { .. }
            | Self::Inconsistent { .. }
            | Self::TooLong { .. }
            | Self::SectionMissing { .. }
            | Self::SectionLength { .. }
            | Self::SectionMismatch { .. }
            | Self::TrailingBytes { .. } => RefusalClass::Malformed,
        }
    }
    /// The error of a part of a file that starts at this offset.
    pub(super) fn moved(self, by: u64) -> Self {
        match self {
            Self::Encoding { offset, fault } => {
                let by = usize::try_from(by).unwrap_or(usize::MAX);
                Self::Encoding { offset: offset.saturating_add(by), fault }
            }
            other @ (Self::Envelope { .. }
            | Self::MissingField { .. }
            | Self::WrongType { .. }
            | Self::UnknownKey { .. }
            | Self::Inconsistent { .. }
            | Self::TooLong { .. }
            | Self::SectionMissing { .. }
            | Self::SectionLength { .. }
            | Self::SectionMismatch { .. }
            | Self::TrailingBytes { .. }
            | Self::Unreadable { .. }
            | Self::BadSignature { .. }
            | Self::OtherKey { .. }) => other,
        }
    }
}
