//! Instruction orders of GPU kernels, as data and as slow, obvious functions.

pub mod argmax;
pub mod attention;
pub mod elementwise;
pub mod embedding;
pub mod gemm;
mod kind;
pub mod libdevice;
pub mod reduce;
pub mod rms_norm;
pub mod rope;

pub use kind::Recipe;
