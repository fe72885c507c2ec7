//! Instruction orders of GPU kernels, as data and as slow, obvious functions.
//!
//! A recipe says in which order, and with which roundings, a kernel combines its
//! inputs. The functions here compute one row (one token, or one head of one
//! token): rows never depend on each other, so callers may divide them freely.
//! What an instruction computes is [`crate::isa`]; which recipe a step uses is
//! the plan's business. Every rounding is numbered in `spec/ops.md`.

pub mod argmax;
pub mod attention;
pub mod catalog;
pub mod cublaslt;
pub mod elementwise;
pub mod embedding;
mod error;
pub mod gemm;
pub mod kernel_sets;
mod kind;
pub mod libdevice;
pub mod reduce;
pub mod rms_norm;
pub mod rope;
pub mod split_k;

pub use error::RecipeError;
pub use kind::Recipe;
pub use reduce::RowReduction;
