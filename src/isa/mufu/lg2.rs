//! MUFU.LG2, the binary logarithm.

use super::Fields;
use super::interpolation::Interpolator;
use super::table::parse;
use crate::num::F32;

/// Returns `log2 x` as `lg2.approx.ftz.f32` computes it.
///
/// # Rounding
/// A fixed-point logarithm of 36 fraction bits whatever the exponent, cut
/// toward zero when it is packed: near 1 the error is absolute, not relative.
///
/// # Special values
/// Zero or subnormal, either sign, gives `-∞`; NaN and every negative number
/// the canonical NaN; `+∞` gives `+∞`; exactly 1 gives `+0`.
///
/// # Source
/// `spec/mufu.md`; all 2^32 inputs compared on an H200.
#[inline]
pub fn lg2(x: F32) -> F32 {
    let Fields { sign, exponent, fraction } = Fields::of(x);
    match exponent {
        0 => return F32::NEG_INFINITY,
        255 if fraction != 0 => return F32::NAN,
        _ if sign != 0 => return F32::NAN,
        255 => return F32::INFINITY,
        _ => {}
    }
    if x == F32::ONE {
        // R6: the table would give 7377 · 2^-36; other powers of two do use it.
        return F32::ZERO;
    }
    let whole = i64::from(exponent) - 127;
    pack_fixed((whole << FRACTION_BITS) + TABLE.evaluate(fraction))
}

/// Packs a signed fixed-point number of 36 fraction bits (R5): one's complement when
/// negative, then cut to 24 significand bits. `2^9 ≤ |value| < 2^43`, so no
/// result is zero, subnormal or infinite.
#[inline]
fn pack_fixed(value: i64) -> F32 {
    let (sign, magnitude) =
        if value < 0 { (0x8000_0000, (!value) as u64) } else { (0, value as u64) };
    let top = magnitude.ilog2();
    let significand = if top >= 23 { magnitude >> (top - 23) } else { magnitude << (23 - top) };
    let exponent = top + 127 - FRACTION_BITS;
    F32(sign | exponent << 23 | (significand as u32 & 0x007f_ffff))
}

/// Fraction bits of the fixed-point logarithm.
const FRACTION_BITS: u32 = 36;

static TABLE: Interpolator<64> = Interpolator {
    rows: parse(include_str!("../../../profiles/mufu/lg2.csv")),
    x_bits: 17,
    square_shift: 0,
    c0_shift: 12,
    c2_shift: 1,
    result_shift: 2,
    bias: 0x3345,
};
