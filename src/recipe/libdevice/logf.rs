//! CUDA's `logf`.

use crate::isa::fp32::{fadd, ffma, fmul, from_u32};
use crate::num::F32;

/// Returns `ln x` as CUDA's `logf` computes it; the special-function unit is not used.
///
/// # Rounding
/// L1: a subnormal argument is scaled by `2^23`, exactly.
/// L2: the significand is taken in `[2/3, 4/3)`; a chain of FFMAs evaluates a polynomial in its
///     distance from 1.
/// L3: the exponent times ln 2 is added by one FFMA.
///
/// # Special values
/// `±0` gives `-∞`, `+∞` gives `+∞`; NaN and every negative number the canonical
/// NaN.
///
/// # Source
/// `spec/mufu.md`, L1 to L3 (PTX and SASS of CUDA 13.0.88, `sm_90`).
pub fn logf(x: F32) -> F32 {
    // L1: true for every number below 2^-126, negative ones included; never for NaN.
    let small = !x.is_nan() && x.0.cast_signed() < SMALLEST_NORMAL.cast_signed();
    let (x, scaling) = if small { (fmul(x, TWO_TO_23), MINUS_23) } else { (x, F32::ZERO) };
    if x.is_zero() {
        return F32::NEG_INFINITY;
    }
    if x.0 >= F32::INFINITY.0 {
        // Infinity stays; x · ∞ of a negative number is -∞ and the sum a NaN.
        return ffma(x, F32::INFINITY, F32::INFINITY);
    }
    // L2
    let exponent = x.0.wrapping_sub(TWO_THIRDS) & 0xff80_0000;
    let significand = F32(x.0.wrapping_sub(exponent));
    let t = fadd(significand, F32::ONE.negate());
    let mut p = POLYNOMIAL[0];
    for coefficient in &POLYNOMIAL[1..] {
        p = ffma(p, t, *coefficient);
    }
    let p = ffma(fmul(t, p), t, t);
    // L3: the exponent field still stands 23 bits too high, which the factor undoes.
    let exponent = ffma(from_i32(exponent.cast_signed()), TWO_TO_MINUS_23, scaling);
    ffma(exponent, LN_2, p)
}

/// I2F of a signed integer, to nearest even.
fn from_i32(value: i32) -> F32 {
    F32(from_u32(value.unsigned_abs()).0 | value.cast_unsigned() & 0x8000_0000)
}

/// Coefficients from the highest power down, as the compiler has them.
const POLYNOMIAL: [F32; 9] = [
    F32(0xbe05_5027),
    F32(0x3e10_39f6),
    F32(0xbdf8_cdcc),
    F32(0x3e0f_2955),
    F32(0xbe2a_d8b9),
    F32(0x3e4c_ed0b),
    F32(0xbe7f_ff22),
    F32(0x3eaa_aa78),
    F32(0xbf00_0000),
];
/// 2^-126.
const SMALLEST_NORMAL: u32 = 0x0080_0000;
/// 2^23.
const TWO_TO_23: F32 = F32(0x4b00_0000);
/// -23.
const MINUS_23: F32 = F32(0xc1b8_0000);
/// 2/3 as bits: the lower end of the significand's interval (-1059760811 is its negative).
const TWO_THIRDS: u32 = 0x3f2a_aaab;
/// 2^-23.
const TWO_TO_MINUS_23: F32 = F32(0x3400_0000);
/// ln 2.
const LN_2: F32 = F32(0x3f31_7218);
