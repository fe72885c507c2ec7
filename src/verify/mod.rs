//! Checking a transcript.

mod compare;
pub mod report;
pub mod trust;
