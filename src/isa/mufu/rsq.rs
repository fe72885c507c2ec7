//! MUFU.RSQ, the reciprocal square root.

use super::interpolation::Interpolator;
use super::table::parse;
use super::{Fields, pack};
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
        return pack(0, 127 - half, super::HIDDEN_BIT);
    }
    let y = TABLE.evaluate(argument);
    // y/2^24 in [1/2, 1], times 2^-half
    pack(0, 126 - half, y as u32)
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
