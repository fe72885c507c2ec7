//! MUFU.EX2, the power of two.

use super::interpolation::Interpolator;
use super::table::parse;
use super::{Fields, HIDDEN_BIT, pack};
use crate::num::F32;

/// Returns `2^x` as `ex2.approx.ftz.f32` computes it.
///
/// # Rounding
/// R4: `|x|` is first cut to 23 fraction bits; the fraction of a negative
/// argument is complemented, not negated. Not correctly rounded; within 2 ulp.
///
/// # Special values
/// Zero or subnormal gives 1; NaN the canonical NaN; `x ≥ 2^8` gives `+∞` and
/// `x ≤ -2^8` gives `+0`; a result below the normal range is `+0`.
///
/// # Source
/// `spec/mufu.md`; all 2^32 inputs compared on an H200.
#[inline]
pub fn ex2(x: F32) -> F32 {
    let Fields { sign, exponent, fraction } = Fields::of(x);
    let negative = sign != 0;
    match exponent {
        0 => return F32::ONE,
        255 if fraction != 0 => return F32::NAN,
        OUT_OF_RANGE.. => return if negative { F32::ZERO } else { F32::INFINITY },
        _ => {}
    }
    let significand = fraction | HIDDEN_BIT;
    // floor(|x| · 2^23), below 2^31
    let fixed = if exponent >= 127 {
        significand << (exponent - 127)
    } else {
        significand >> (127 - exponent).min(31)
    };
    let (whole, part) = ((fixed >> 23).cast_signed(), fixed & 0x007f_ffff);
    let (whole, part) = match (negative, part) {
        (false, _) => (whole, part),
        (true, 0) => (-whole, 0),
        (true, _) => (-whole - 1, part ^ 0x007f_ffff),
    };
    let y = TABLE.evaluate(part);
    pack(0, 127 + whole, y as u32)
}

/// Biased exponent of `2^8`.
const OUT_OF_RANGE: u32 = 127 + 8;

static TABLE: Interpolator<64> = Interpolator {
    rows: parse(include_str!("../../../profiles/mufu/ex2.csv")),
    x_bits: 17,
    square_shift: 0,
    c0_shift: 13,
    c2_shift: 0,
    result_shift: 15,
    bias: 0x77e2,
};
