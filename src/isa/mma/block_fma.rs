//! One tensor-core block FMA, bit for bit.
//!
//! A block FMA adds `n_fma` products and one accumulator in a single
//! fixed-point sum: one alignment, one truncation of each term, one conversion.
//! This file is the normative text.

use super::{Format, MmaProfile, Number};
use crate::num::{Bf16, F32};

/// Most products of one block FMA in any profile.
pub const MAX_PRODUCTS: usize = 32;

/// Returns `c + Σ a[i]·b[i]` as one block FMA of a profile with binary32 output.
///
/// # Shape
/// `a`, `b`: `[n_fma]` or shorter; missing products are zero, and a zero product
/// never changes a result.
///
/// # Rounding
/// R4: each term is cut, not rounded, below `2^(e_max − 23 − neab)`.
/// R6: the sum is truncated toward zero to 24 significant bits.
/// Products are not normalised first (R2), so a product may carry one extra
/// integer bit; the sum fits `i64` (2 + 25 + 6 bits).
///
/// # Special values
/// Any NaN, `0·∞` or `∞ − ∞` gives the canonical NaN `7fffffff`. A zero result
/// is `+0`.
///
/// # Panics
/// If `a` and `b` differ in length or hold more than [`MAX_PRODUCTS`].
///
/// # Source
/// Khattak & Mikaitis, arXiv:2512.07004; Xie et al., arXiv:2511.10909.
/// Vectors: `spec/vectors/bf16_*.bin`; the Hopper columns are confirmed on an H200.
pub fn block_fma(profile: &MmaProfile, a: &[Bf16], b: &[Bf16], c: F32) -> F32 {
    assert_eq!(a.len(), b.len(), "factors of a block FMA");
    let mut products = [Number::ZERO; MAX_PRODUCTS];
    for ((product, a), b) in products[..a.len()].iter_mut().zip(a).zip(b) {
        let b = Format::Bf16.decode(u32::from(b.0));
        *product = Format::Bf16.decode(u32::from(a.0)).times(b);
    }
    F32(add_block(profile, &products[..a.len()], Format::F32.decode(c.0)))
}

/// Adds exact products and an accumulator: the bits of the output format.
///
/// The order of `products` has no effect.
pub fn add_block(profile: &MmaProfile, products: &[Number], c: Number) -> u32 {
    let terms = || products.iter().copied().chain([c]);

    // R8: NaN and infinity are decided before any arithmetic.
    let (mut plus, mut minus) = (false, false);
    for number in terms() {
        match number {
            Number::Nan => return profile.rounding.nan(),
            Number::Infinite { negative: true } => minus = true,
            Number::Infinite { negative: false } => plus = true,
            Number::Finite(_) => {}
        }
    }
    match (plus, minus) {
        (true, true) => return profile.rounding.nan(),
        (true, false) | (false, true) => return profile.rounding.infinity(minus),
        (false, false) => {}
    }
    let terms = || {
        terms().filter_map(|number| match number {
            Number::Finite(term) => Some(term),
            Number::Nan | Number::Infinite { .. } => None,
        })
    };

    // R3: zeros do not count, whatever their partner's exponent was.
    let e_max = terms()
        .filter(|term| term.significand != 0)
        .map(|term| term.exponent)
        .fold(i32::from(profile.min_alignment_exponent), i32::max);

    let unit = e_max - (23 + i32::from(profile.neab));
    let sum = terms().map(|term| term.cut(unit)).sum(); // R4, R5
    profile.rounding.pack(sum, unit) // R6, R7
}

#[cfg(test)]
mod tests {
    use super::super::Rounding;
    use super::*;

    const HOPPER: MmaProfile = MmaProfile {
        n_fma: 16,
        neab: 2,
        min_alignment_exponent: -133,
        rounding: Rounding::TowardZeroF32,
    };

    const ONE: u16 = 0x3f80;

    /// Products, accumulator, result, reason.
    type Case = (&'static [(u16, u16)], u32, u32, &'static str);

    fn run(pairs: &[(u16, u16)], c: u32) -> u32 {
        let (a, b): (Vec<_>, Vec<_>) = pairs.iter().map(|&(a, b)| (Bf16(a), Bf16(b))).unzip();
        block_fma(&HOPPER, &a, &b, F32(c)).0
    }

    #[test]
    fn follows_each_rule() {
        let cases: [Case; 13] = [
            (
                &[(0x3fc0, 0x3fc0), (0xb381, ONE)],
                0x3f80_0000,
                0x404f_ffff,
                "the example of spec/isa.md",
            ),
            (&[(0x4000, 0x4040)], 0x3f80_0000, 0x40e0_0000, "2 * 3 + 1 = 7"),
            (&[(0x3300, ONE); 2], 0x3f80_0000, 0x3f80_0000, "2^-25 twice is below one ulp"),
            (&[(0x3300, ONE)], 0xbf80_0000, 0xbf7f_ffff, "-1 + 2^-25 is cut toward zero"),
            (&[(0x3280, ONE), (0xbf80, ONE)], 0x3f80_0000, 0, "2^-26 is below the window"),
            (&[(0x7f00, 0x7f00), (0xff00, 0x7f00)], 0x3f80_0000, 0, "2^254 cancels; 1 is lost"),
            (&[(0x7f00, 0x4000)], 0, 0x7f80_0000, "2^128 overflows"),
            (&[(0x0001, ONE)], 0, 0x0001_0000, "a subnormal factor is kept"),
            (&[(0x8000, ONE)], 0x8000_0000, 0, "a zero result is +0"),
            (&[(0, 0x7f00)], 0x0000_0001, 0x0000_0001, "a zero product sets no exponent"),
            (&[(0, 0x7f80)], 0, 0x7fff_ffff, "zero times infinity"),
            (&[(0x7f80, 0xbf80)], 0x3f80_0000, 0xff80_0000, "infinity keeps its sign"),
            (&[(0x7f80, ONE)], 0xff80_0000, 0x7fff_ffff, "infinities cancel to NaN"),
        ];
        for (pairs, c, result, reason) in cases {
            assert_eq!(run(pairs, c), result, "{reason}: got {:08x}", run(pairs, c));
        }
    }
}
