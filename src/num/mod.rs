//! Numbers and buffers; knows nothing about GPUs.
//!
//! Values are bit patterns with names: [`F32`] and [`Bf16`] have no arithmetic
//! operators, so every rounding above this layer is a named call.

mod bf16;
mod digest;
mod f32bits;
mod tensor;

pub use bf16::Bf16;
pub use digest::{Digest, Hashing, sha256, sha256_of};
pub use f32bits::F32;
pub use tensor::{Data, Dtype, Tensor};
