//! What one instruction computes, bit for bit; no loops over tensors.

pub mod fp32;
pub mod mma;
pub mod mufu;
pub mod profile;
mod vectorise;

pub use vectorise::Vectorise;
