//! CUDA's single-precision math functions as instruction sequences.
//!
//! `expf`, `logf`, `sinf` and `cosf` as the CUDA 13.0 compiler inlines them for `sm_90`
//! without fast-math: constants, order and fusing are read from its PTX and
//! SASS. The functions fuse explicitly, so `-fmad=true` and `-fmad=false` give
//! the same bits; what a caller's addition may do to `expf` is in
//! `spec/mufu.md`. The fast-math forms (`__expf`, `__sinf`) are not here.

mod expf;
mod logf;
mod reduction;
mod sincosf;
pub mod sweep;

pub use expf::expf;
pub use logf::logf;
pub use sincosf::{cosf, sinf};

#[cfg(test)]
mod tests;
