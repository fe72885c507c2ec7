//! MUFU.RCP, the reciprocal.

use super::interpolation::Interpolator;
use super::table::parse;
use super::{Fields, pack};
use crate::num::F32;

/// Returns `1/x` as `rcp.approx.ftz.f32` computes it.
///
/// # Rounding
/// Not correctly rounded; within 1 ulp.
///
/// # Special values
/// Zero or subnormal gives infinity and infinity gives zero, sign kept; NaN the canonical NaN;
/// a result below the normal range (`|x| > 2^126`) is a zero of the same sign.
///
/// # Source
/// `spec/mufu.md`; all 2^32 inputs compared on an H200.
#[inline]
pub fn rcp(x: F32) -> F32 {
    let Fields { sign, exponent, fraction } = Fields::of(x);
    match exponent {
        0 => return F32(sign | F32::INFINITY.0),
        255 if fraction != 0 => return F32::NAN,
        255 => return F32(sign),
        _ => {}
    }
    let y = TABLE.evaluate(fraction);
    // y/2^24 in [1/2, 1], times 2^-(exponent - 127)
    pack(sign, 253 - exponent.cast_signed(), y as u32)
}

static TABLE: Interpolator<128> = Interpolator {
    rows: parse(include_str!("../../../profiles/mufu/rcp.csv")),
    x_bits: 16,
    square_shift: 1,
    c0_shift: 13,
    c2_shift: 0,
    result_shift: 15,
    bias: 0x47e7,
};
