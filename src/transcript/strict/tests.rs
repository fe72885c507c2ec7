//! See `tests/transcript.rs` for the refusals of whole files.
