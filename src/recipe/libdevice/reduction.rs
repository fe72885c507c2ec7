//! Reduction of an angle to a quadrant and a remainder in about `[-π/4, π/4]`.
//!
//! Below 105,615 three FFMAs subtract the multiple of π/2 (Cody & Waite); from
//! there on the product with 2/π is formed in integers, from only those bits that matter
//! (Payne & Hanek). The constants are CUDA's.

use crate::isa::fp32::{ffma, fmul, from_u32};
use crate::num::F32;

/// An angle as `quadrant · π/2 + remainder`.
pub(super) struct Reduced {
    /// Multiple of π/2; only its two low bits matter.
    pub(super) quadrant: i32,
    /// What is left, in radians.
    pub(super) remainder: F32,
}

/// Reduces `x` (T1).
pub(super) fn reduce(x: F32) -> Reduced {
    let magnitude = x.0 & 0x7fff_ffff;
    // NaN is not "at least" the limit, so it takes the first path and survives it.
    if magnitude < LIMIT || x.is_nan() {
        cody_waite(x)
    } else if magnitude == F32::INFINITY.0 {
        Reduced { quadrant: 0, remainder: fmul(x, F32::ZERO) }
    } else {
        payne_hanek(x)
    }
}

/// T1a: π/2 in three parts, each subtracted by an FFMA.
fn cody_waite(x: F32) -> Reduced {
    let quadrant = round_to_integer(fmul(x, TWO_OVER_PI));
    let sign = quadrant.cast_unsigned() & 0x8000_0000;
    let multiple = F32(from_u32(quadrant.unsigned_abs()).0 | sign);
    let mut remainder = x;
    for part in MINUS_HALF_PI {
        remainder = ffma(multiple, part, remainder);
    }
    Reduced { quadrant, remainder }
}

/// F2I to nearest even for `|x| < 2^22`; a NaN gives 0 (its quadrant is never used:
/// the remainder is NaN in every quadrant).
fn round_to_integer(x: F32) -> i32 {
    let exponent = (x.0 >> 23 & 0xff).cast_signed() - 127;
    if x.is_nan() || exponent < -1 {
        return 0;
    }
    // Twice the magnitude, cut, with the bits below in `rest`: |x| < 2^22 keeps the shift positive.
    let significand = x.0 & 0x007f_ffff | 0x0080_0000;
    let shift = 22 - exponent.min(22);
    let (doubled, rest) = (significand >> shift, significand & ((1 << shift) - 1));
    let integer = doubled >> 1;
    let up = doubled & 1 == 1 && (rest != 0 || integer & 1 == 1);
    let rounded = (integer + u32::from(up)).cast_signed();
    if x.0 >> 31 == 0 { rounded } else { -rounded }
}

/// T1b: 96 bits of `|x| · 2/π` around its binary point, in integers.
fn payne_hanek(x: F32) -> Reduced {
    let exponent = (x.0 >> 23 & 0xff) - 128;
    let significand = u64::from(x.0 << 8 | 0x8000_0000);
    // The product of the 32-bit significand with 2/π, least significant word first.
    let mut words = [0_u32; 7];
    let mut carry = 0;
    for (word, part) in words.iter_mut().zip(TWO_OVER_PI_BITS) {
        let sum = u64::from(part) * significand + carry;
        *word = sum as u32;
        carry = sum >> 32;
    }
    words[6] = carry as u32;
    // The exponent chooses the three words that hold the two integer bits
    // (more would be multiples of a full turn) and the fraction.
    let top = 6 - (exponent / 32) as usize;
    let window = u128::from(words[top]) << 64
        | u128::from(words[top - 1]) << 32
        | u128::from(words[top - 2]);
    let fixed = (window << (exponent % 32) >> 32) as u64; // two integer, 62 fraction bits
    let fraction = fixed << 2;
    // The nearest multiple: from one half up, count one more and reflect the
    // fraction, by one's complement, not negation.
    let reflect = fraction >> 63 == 1;
    let quadrant = (fixed >> 62) as i32 + i32::from(reflect);
    let magnitude = half_pi_times(if reflect { !fraction } else { fraction });
    let negative = x.0 >> 31 == 1;
    Reduced {
        quadrant: if negative { -quadrant } else { quadrant },
        remainder: if negative == reflect { magnitude } else { magnitude.negate() },
    }
}

/// Returns `fraction · 2^-64 · π/2` with the roundings of I2F.F64, DMUL and
/// F2F.F32.F64, in this order, each to nearest even.
///
/// `fraction < 2^63`. No result is subnormal: the smallest nonzero one is `2^-64`.
fn half_pi_times(fraction: u64) -> F32 {
    if fraction == 0 {
        return F32::ZERO;
    }
    let (as_f64, shift_a) = round_to(u128::from(fraction), 53);
    let (product, shift_b) = round_to(as_f64 * HALF_PI_SIGNIFICAND, 53);
    let (significand, shift_c) = round_to(product, 24);
    // value = significand · 2^(shifts - 64 - 52), significand in [2^23, 2^24)
    let exponent = shift_a + shift_b + shift_c - (64 + 52) + 23 + 127;
    F32((exponent << 23).cast_unsigned() | (significand as u32 & 0x007f_ffff))
}

/// Rounds a positive integer to exactly `bits` significant bits, to nearest even:
/// returns `(significand, shift)` with value `significand · 2^shift`.
fn round_to(value: u128, bits: i32) -> (u128, i32) {
    let shift = 128 - value.leading_zeros().cast_signed() - bits;
    if shift <= 0 {
        return (value << -shift, shift);
    }
    let (kept, rest) = (value >> shift, value & ((1 << shift) - 1));
    let half = 1 << (shift - 1);
    let rounded = kept + u128::from(rest > half || (rest == half && kept & 1 == 1));
    // Rounding up to a power of two needs one bit less again.
    if rounded >> bits == 1 { (rounded >> 1, shift + 1) } else { (rounded, shift) }
}

/// 105,615: from here on the three parts of π/2 are too short.
const LIMIT: u32 = 0x47ce_4780;
/// 2/π.
const TWO_OVER_PI: F32 = F32(0x3f22_f983);
/// -π/2 as the sum of three numbers.
const MINUS_HALF_PI: [F32; 3] = [F32(0xbfc9_0fda), F32(0xb3a2_2168), F32(0xa7c2_34c5)];
/// The fraction bits of 2/π from 2^-1 down, least significant word first (`__cudart_i2opi_f`).
const TWO_OVER_PI_BITS: [u32; 6] =
    [0x3c43_9041, 0xdb62_9599, 0xf534_ddc0, 0xfc27_57d1, 0x4e44_1529, 0xa2f9_836e];
/// Significand of the binary64 number `3bf921fb54442d19`, π/2 · 2^-64.
const HALF_PI_SIGNIFICAND: u128 = 0x0019_21fb_5444_2d19;

#[cfg(test)]
mod tests {
    #![allow(clippy::float_arithmetic)] // the host's binary64 is the oracle of the integer roundings

    use super::*;

    #[test]
    fn half_pi_times_equals_the_host_in_binary64() {
        let mut fraction: u64 = 0x1234_5678_9abc_def1;
        for _ in 0..100_000 {
            // Xorshift (Marsaglia 2003), then every magnitude.
            fraction ^= fraction << 13;
            fraction ^= fraction >> 7;
            fraction ^= fraction << 17;
            let fraction = fraction >> 1 >> (fraction % 63);
            let host = fraction.cast_signed() as f64 * f64::from_bits(0x3bf9_21fb_5444_2d19);
            assert_eq!(half_pi_times(fraction), F32::from_host(host as f32), "{fraction:#x}");
        }
        assert_eq!(half_pi_times(0), F32::ZERO);
        let largest = (i64::MAX as f64 * f64::from_bits(0x3bf9_21fb_5444_2d19)) as f32;
        assert_eq!(half_pi_times(u64::MAX >> 1), F32::from_host(largest), "carries at 53 bits");
    }

    #[test]
    fn rounds_to_the_nearest_integer_ties_to_even() {
        for halves in -2_000..2_000 {
            for nudge in [-1_i32, 0, 1] {
                let x = halves as f32 / 2.0;
                let x = f32::from_bits(x.to_bits().wrapping_add_signed(nudge));
                if x.is_nan() {
                    continue; // the bits below +0
                }
                let expected = x.round_ties_even() as i32;
                assert_eq!(round_to_integer(F32::from_host(x)), expected, "{x}");
            }
        }
        assert_eq!(round_to_integer(F32::NAN), 0);
    }
}
