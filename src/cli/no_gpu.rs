//! What the command line says where the CUDA engine is not built in.

use super::Exit;
use super::basis::Basis;
use super::error::Failure;
use super::produce::{Made, Work};
use crate::model::Content;
use crate::recipe::catalog::Catalog;

const REASON: &str = "this build has no CUDA engine";

/// Why the CUDA engine cannot be used here.
pub(super) fn why_not(_: &Catalog) -> Option<String> {
    Some(REASON.into())
}

/// The same, where a GPU would be described.
pub(super) fn describe() -> String {
    REASON.into()
}

/// A GPU that can do the work: there is none.
pub(super) enum Ready {}

/// Refuses the work.
pub(super) fn ready(_: &Content, _: &Basis, _: &[Vec<u32>], _: usize) -> Result<Ready, Failure> {
    Err(Failure::new(Exit::Incomplete, REASON)
        .hint("build with `cargo build --release --features cuda`, or choose --engine emulator"))
}

/// Cannot be reached.
pub(super) fn produce(ready: Ready, _: &Work<'_>) -> Result<Made, Failure> {
    match ready {}
}
