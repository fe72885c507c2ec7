//! MUFU.EX2, the power of two.

use super::interpolation::Interpolator;
use super::lanes::Quadratic;
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

/// Replaces every lane by [`ex2`] of it.
#[inline(always)]
pub(crate) fn ex2_lanes<const N: usize>(values: &mut [F32; N]) {
    let (mut fixed, mut parts) = ([0i32; N], [0u32; N]);
    for lane in 0..N {
        let x = values[lane].0;
        // An argument out of range becomes the last one in range of its sign, whose
        // result overflows or is flushed just as well.
        let magnitude = (x & 0x7fff_ffff).min((OUT_OF_RANGE << 23) - 1);
        let significand = (magnitude & 0x007f_ffff) | HIDDEN_BIT;
        // floor(|x| · 2^23): 7 = 134 - 127 places to the left first, so that one shift
        // to the right is left. An exponent field of 0 leaves nothing, and 2^0 is 1.
        let shift = (OUT_OF_RANGE - 1).wrapping_sub(magnitude >> 23).min(31);
        let magnitude = ((significand << 7) >> shift).cast_signed();
        // -(w + 1) and the complement of the part are together the complement of both;
        // without a part, the negative.
        let negative = x.cast_signed() >> 31;
        let whole = i32::from(magnitude & 0x007f_ffff == 0);
        let value = (magnitude ^ negative).wrapping_add(whole & negative & 1);
        fixed[lane] = value;
        parts[lane] = value.cast_unsigned() & 0x007f_ffff;
    }
    let y = LANES.evaluate(&parts);
    for lane in 0..N {
        // The hidden bit of y, or its double, raises the exponent by 1 or 2.
        let base = (fixed[lane] >> 23).wrapping_add(126);
        let exponent = base.wrapping_add(y[lane] >> 23);
        let bits = (base << 23).wrapping_add(y[lane]).cast_unsigned();
        let bits = if exponent >= 255 { F32::INFINITY.0 } else { bits };
        let bits = if exponent <= 0 { 0 } else { bits };
        values[lane] = if values[lane].is_nan() { F32::NAN } else { F32(bits) };
    }
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

static LANES: Quadratic<64> = Quadratic::new(&TABLE);
