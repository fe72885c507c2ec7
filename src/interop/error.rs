//! Why an export is refused.

use crate::num::Digest;

/// Why an envelope, or the statement in it, is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InteropError {
    /// The file is longer than this version reads.
    #[error("envelope of {found} bytes, at most {limit} are read")]
    TooLong {
        /// Length found.
        found: usize,
        /// The limit.
        limit: usize,
    },
    /// The file is not a DSSE envelope.
    #[error("not a DSSE envelope: {reason}")]
    Envelope {
        /// What is wrong.
        reason: String,
    },
    /// The payload is of another type.
    #[error("the payload type is {found:?}, expected {expected:?}")]
    PayloadType {
        /// Type in the envelope.
        found: String,
        /// The one that is read.
        expected: &'static str,
    },
    /// The payload is not an export of a transcript.
    #[error("not an exported transcript: {reason}")]
    Statement {
        /// What is wrong.
        reason: String,
    },
    /// The statement or its predicate is of another type.
    #[error("{member} is {found:?}, expected {expected:?}")]
    OtherType {
        /// The member that names the type.
        member: &'static str,
        /// Type in the statement.
        found: String,
        /// The one that is read.
        expected: &'static str,
    },
    /// The export is of another transcript than the one at hand.
    #[error("the export is of transcript {found}, the file is transcript {expected}")]
    OtherTranscript {
        /// Digest of the transcript at hand.
        expected: Digest,
        /// Digest in the export.
        found: Digest,
    },
    /// The export says of its transcript what that does not state.
    #[error(
        "the export of transcript {transcript} does not say what the transcript states: {member}"
    )]
    Differs {
        /// Digest of the transcript.
        transcript: Digest,
        /// The member that differs.
        member: String,
    },
    /// A time that has no RFC 3339 form.
    #[error("the claimed time, {seconds} s since 1970, is after the year 9999")]
    Time {
        /// Unix time (seconds).
        seconds: u64,
    },
}
