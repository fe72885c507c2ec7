//! What the command line says where the CUDA engine is not built in.

use super::Exit;
use super::error::Failure;
use super::produce::{Made, Work};
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

/// Refuses the work.
pub(super) fn produce(_: &Work<'_>) -> Result<Made, Failure> {
    Err(Failure::new(Exit::Incomplete, REASON)
        .hint("build with `cargo build --release --features cuda`, or choose --engine emulator"))
}
