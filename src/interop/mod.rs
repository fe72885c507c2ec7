//! Transcripts in the envelopes of other tools.
//!
//! An export copies claims of a transcript into an in-toto Statement ([`in_toto`])
//! and signs it in a DSSE envelope ([`dsse`]). The signature says who exported,
//! never that the transcript was checked: that is `verify`'s business.
//! `spec/interop.md` describes the bytes, `schemas/in-toto.schema.json` the statement.

pub mod dsse;
mod error;
mod hex_text;
pub mod in_toto;
mod signer;

pub use error::InteropError;
pub use hex_text::{Hex256, HexBytes};
pub use signer::{Exporter, NotTrusted, exporter};
