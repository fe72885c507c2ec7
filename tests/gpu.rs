//! The emulator against the hardware, bit for bit.
//!
//! Every test prints one line a comparison (what, compared, differing, first
//! difference) and skips with a sentence where there is no GPU. With
//! `ATTEST_EVIDENCE_DIR` set, results are appended to `gpu.jsonl` there.
//! Run with `cargo test --release --features cuda --test gpu -- --nocapture
//! --test-threads 1`; a test's name selects it.

#![cfg(feature = "cuda")]
#![allow(clippy::unwrap_used, clippy::panic)] // a test: a panic is its report
#![allow(missing_docs, unreachable_pub)] // a test has no users

#[path = "gpu/batches.rs"]
mod batches;
#[path = "gpu/generation.rs"]
mod generation;
#[path = "gpu/inputs.rs"]
mod inputs;
#[path = "gpu/instructions.rs"]
mod instructions;
#[path = "gpu/operators.rs"]
mod operators;
#[path = "gpu/products.rs"]
mod products;
#[path = "gpu/recording.rs"]
mod recording;
#[path = "gpu/tally.rs"]
mod tally;
