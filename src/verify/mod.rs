//! Checking a transcript.

pub mod trust;
