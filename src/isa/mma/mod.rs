//! Tensor-core instructions, bit for bit.
//!
//! An instruction is a chain of block FMAs; [`block_fma`](fn@block_fma) is the
//! normative text for one of them and favours the reader. Which blocks a matrix
//! product consists of is a recipe's business. The rules R1 to R8 that comments
//! cite are in `spec/isa.md`.

mod block_fma;
mod block_scale;
mod dispatch;
mod emulated;
mod format;
mod fp64;
mod instruction;
pub mod lanes;
mod round;

pub use block_fma::{MAX_PRODUCTS, add_block, block_fma};
pub use block_scale::{ScaleFormat, Scales, block_scale};
pub(in crate::isa) use dispatch::Kind;
pub use dispatch::Simd;
pub use emulated::emulated_fp8;
pub use format::{Format, Number, Term};
pub use fp64::fma_chain;
pub use instruction::{Operands, chain};
pub use round::Rounding;

/// Tensor-core parameters of one GPU and instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MmaProfile {
    /// Products per block FMA (count).
    pub n_fma: u8,
    /// Extra alignment bits kept below the binary32 last place (bits; negative
    /// where the hardware keeps fewer, as for FP8).
    pub neab: i8,
    /// Smallest exponent that alignment uses; smaller maxima are raised to it
    /// (power of two).
    pub min_alignment_exponent: i16,
    /// Conversion of the finished sum.
    pub rounding: Rounding,
}
