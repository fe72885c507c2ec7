//! The transcript: a signed statement, then its sections.
//!
//! This layer says whether a file *is* a transcript and who signed it. Whether
//! what it states is true is `verify`'s. `spec/transcript.md` describes the
//! bytes.

mod error;
pub mod merkle;
pub mod statement;
pub mod strict;
mod wire;

pub use error::{RefusalClass, TranscriptError};
pub use statement::Statement;

/// Kind of the section that holds logits rows or their digests.
pub const LOGITS_SECTION: &str = "logits";
/// Kind of the section that holds digests of step outputs.
pub const TRACE_SECTION: &str = "trace";
