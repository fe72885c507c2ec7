//! MUFU.RSQ, the reciprocal square root.

use super::interpolation::Interpolator;
use super::lanes::Quadratic;
use super::table::parse;
use super::{Fields, HIDDEN_BIT, pack};
use crate::num::F32;

/// Returns `1/√x` as `rsqrt.approx.ftz.f32` computes it.
///
/// # Rounding
/// Not correctly rounded; within 2 ulp. Even powers of two are exact.
///
/// # Special values
/// Zero or subnormal gives infinity, sign kept; `+∞` gives `+0`; NaN, `-∞` and
/// negative normal numbers give the canonical NaN.
///
/// # Source
/// `spec/mufu.md`; all 2^32 inputs compared on an H200.
#[inline]
pub fn rsq(x: F32) -> F32 {
    let Fields { sign, exponent, fraction } = Fields::of(x);
    match exponent {
        0 => return F32(sign | F32::INFINITY.0),
        255 if fraction != 0 => return F32::NAN,
        _ if sign != 0 => return F32::NAN,
        255 => return F32::ZERO,
        _ => {}
    }
    // x = w · 4^half with w in [1, 4); bit 23 of `argument` says w >= 2.
    let odd = (exponent + 1) & 1;
    let half = (exponent.cast_signed() - 127 - odd.cast_signed()) / 2;
    let argument = odd << 23 | fraction;
    if argument == 0 {
        // R6: the table would give one unit less than 1.
        return pack(0, 127 - half, HIDDEN_BIT);
    }
    let y = TABLE.evaluate(argument);
    // y/2^24 in [1/2, 1], times 2^-half
    pack(0, 126 - half, y as u32)
}

/// Replaces every lane by [`rsq`] of it.
#[inline(always)]
pub(super) fn rsq_lanes<const N: usize>(values: &mut [F32; N]) {
    // Bit 23 is the lowest of the exponent field, inverted: odd = field + 1.
    let arguments = values.map(|x| (x.0 ^ HIDDEN_BIT) & (2 * HIDDEN_BIT - 1));
    let y = LANES.evaluate(&arguments);
    for lane in 0..N {
        let x = values[lane].0;
        let (sign, field) = (x & 0x8000_0000, (x >> 23 & 0xff).cast_signed());
        // R6: an even power of two is exact; 2^24 is 1 with the carry.
        let y = if arguments[lane] == 0 { 2 * HIDDEN_BIT.cast_signed() } else { y[lane] };
        // half = floor((field - 127) / 2), from -63 to 64: never flushed.
        let half = field.wrapping_sub(127) >> 1;
        let bits = (125i32.wrapping_sub(half) << 23).wrapping_add(y).cast_unsigned();
        let bits = if x == F32::INFINITY.0 { 0 } else { bits };
        let special = values[lane].is_nan() || (sign != 0 && field != 0);
        let bits = if special { F32::NAN.0 } else { bits };
        values[lane] = F32(if field == 0 { sign | F32::INFINITY.0 } else { bits });
    }
}

static TABLE: Interpolator<128> = Interpolator {
    rows: parse(include_str!("../../../profiles/mufu/rsq.csv")),
    x_bits: 17,
    square_shift: 0,
    c0_shift: 14,
    c2_shift: 2,
    result_shift: 16,
    bias: 0x7fff,
};

static LANES: Quadratic<128> = Quadratic::new(&TABLE);
