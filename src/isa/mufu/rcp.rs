//! MUFU.RCP, the reciprocal.

use super::interpolation::Interpolator;
use super::lanes::Quadratic;
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

/// Replaces every lane by [`rcp`] of it.
#[inline(always)]
pub(super) fn rcp_lanes<const N: usize>(values: &mut [F32; N]) {
    let y = LANES.evaluate(&values.map(|x| x.0 & 0x007f_ffff));
    for (value, y) in values.iter_mut().zip(y) {
        let x = value.0;
        let (sign, field) = (x & 0x8000_0000, (x >> 23 & 0xff).cast_signed());
        // The hidden bit of y, or its double, raises the exponent by 1 or 2.
        let base = 252i32.wrapping_sub(field);
        let flushed = base.wrapping_add(y >> 23) <= 0;
        let bits = (base << 23).wrapping_add(y).cast_unsigned();
        let bits = if flushed { 0 } else { bits };
        let bits = if field == 0 { F32::INFINITY.0 } else { bits };
        *value = if value.is_nan() { F32::NAN } else { F32(sign | bits) };
    }
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

static LANES: Quadratic<128> = Quadratic::new(&TABLE);
