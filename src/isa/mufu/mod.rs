//! The special-function unit: MUFU.EX2, .RCP, .RSQ and .LG2, bit for bit.
//!
//! Each function splits its argument, looks up one of 384 table rows,
//! interpolates with a quadratic in integers and packs the result. Only the
//! splitting, the packing and the special values differ; they are in one file a
//! function, the shared quadratic is in `interpolation.rs`, the rows are in
//! `profiles/mufu/*.csv`. The forms with flushed subnormals
//! (`*.approx.ftz.f32`) are modelled: they are what the unit itself computes.
//! `ex2.approx.f32` and the like, which scale subnormal arguments around the
//! same instruction, are instruction sequences and not here.
//!
//! # Source
//! `spec/mufu.md`: parameters, rules R1 to R6 and what was compared on the
//! hardware. The form of the interpolator follows Oberman & Siu, "A
//! High-Performance Area-Efficient Multifunction Interpolator", ARITH-17, 2005.

mod ex2;
mod interpolation;
mod lanes;
mod lg2;
mod rcp;
mod rsq;
mod table;

pub use ex2::ex2;
pub(crate) use ex2::ex2_lanes;
pub use lanes::{ex2_slice, rcp_slice, rsq_slice};
pub use lg2::lg2;
pub use rcp::rcp;
pub use rsq::rsq;

use crate::num::F32;

/// Hidden bit of a binary32 significand.
const HIDDEN_BIT: u32 = 1 << 23;

/// A binary32 pattern split into its three fields.
#[derive(Clone, Copy)]
struct Fields {
    /// The sign bit, in place.
    sign: u32,
    /// The biased exponent field.
    exponent: u32,
    /// The 23 stored significand bits.
    fraction: u32,
}

impl Fields {
    #[inline]
    fn of(x: F32) -> Self {
        Self { sign: x.0 & 0x8000_0000, exponent: x.0 >> 23 & 0xff, fraction: x.0 & 0x007f_ffff }
    }
}

/// Packs a significand in `[2^23, 2^24]` (R5): the upper end carries into the exponent,
/// overflow gives infinity, and a result below the normal range is flushed to
/// a zero of the same sign.
#[inline]
fn pack(sign: u32, biased_exponent: i32, significand: u32) -> F32 {
    let carry = significand == 2 * HIDDEN_BIT;
    let exponent = biased_exponent + i32::from(carry);
    let fraction = if carry { 0 } else { significand - HIDDEN_BIT };
    match exponent {
        ..=0 => F32(sign),
        1..=254 => F32(sign | exponent.unsigned_abs() << 23 | fraction),
        255.. => F32(sign | F32::INFINITY.0),
    }
}

#[cfg(test)]
pub(crate) mod tests;
