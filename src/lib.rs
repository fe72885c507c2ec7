//! Verifiable AI inference, bit for bit.
//!
//! A provider runs a language model on a GPU and signs a transcript; an auditor
//! re-executes it on a CPU with an exact model of the GPU's arithmetic and
//! compares every bit. Five layers, each with its data and its page in `spec/`:
//!
//! | layer | modules | data |
//! |---|---|---|
//! | instruction: what one instruction computes | [`num`], [`isa`] | `profiles/` |
//! | kernel: in which order a kernel uses them | [`recipe`] | `catalogs/`, `kernels/` |
//! | program: the forward pass as a list of steps | [`plan`], [`model`], [`engine`] | `config.json` |
//! | evidence: what is signed | [`transcript`] | `schemas/` |
//! | verdict: the ordered list of checks | [`verify`] | the trust file |
//!
//! Each module uses those above it in this table only. [`conformance`] runs vector
//! files against the instruction layer, [`mod@bench`] measures speed, [`data`] embeds
//! kernels and catalogues, [`interop`] puts transcripts into the envelopes of other tools,
//! [`cli`] is the command line.
//!
//! ```no_run
//! use std::path::Path;
//!
//! use attest::isa::mma::Simd;
//! use attest::model::Content;
//! use attest::verify::trust::TrustStore;
//! use attest::verify::{Anchor, Input, Request, verify};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = TrustStore::from_toml(&std::fs::read_to_string("trust.toml")?)?;
//! let done = verify(Request {
//!     file: Input::File(std::fs::File::open("transcript.cbor")?),
//!     anchor: Anchor::Store(&store),
//!     nonce: None,
//!     challenge: None,
//!     simd: Simd::detect(),
//!     open_model: &|_| Content::open(Path::new("model")),
//!     progress: &mut |_| {},
//!     diagnosing: None,
//! });
//! println!("{}", done.report.verdict().word());
//! # Ok(())
//! # }
//! ```

pub mod bench;
pub mod cli;
pub mod conformance;
pub mod data;
pub mod engine;
pub mod interop;
pub mod isa;
pub mod model;
pub mod num;
pub mod plan;
pub mod recipe;
pub mod transcript;
pub mod verify;
