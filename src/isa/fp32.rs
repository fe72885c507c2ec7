//! The GPU's binary32 arithmetic, one instruction a function.
//!
//! Each function computes on the host with the same IEEE 754 operation (round to
//! nearest even, subnormals kept) and then writes the GPU's own NaN pattern.
//! Addition, multiplication, fused multiply-add and division are exactly
//! specified by IEEE 754, so host and GPU can only differ in NaN bits.
//!
//! # Source
//! NaN results measured on an H200: FADD, FMUL, FFMA and division give
//! `7fffffff` whatever NaN came in (`spec/isa.md`).
#![allow(clippy::float_arithmetic)]

use crate::num::F32;

#[inline(always)]
fn canonical(x: f32) -> F32 {
    if x.is_nan() { F32::NAN } else { F32(x.to_bits()) }
}

/// FADD: `a + b`, one rounding.
#[inline(always)]
pub fn fadd(a: F32, b: F32) -> F32 {
    canonical(a.to_host() + b.to_host())
}

/// FADD with the second operand negated: `a - b`, one rounding.
#[inline(always)]
pub fn fsub(a: F32, b: F32) -> F32 {
    canonical(a.to_host() - b.to_host())
}

/// FMUL: `a · b`, one rounding.
#[inline(always)]
pub fn fmul(a: F32, b: F32) -> F32 {
    canonical(a.to_host() * b.to_host())
}

/// FFMA: `a · b + c`, one rounding.
#[inline(always)]
pub fn ffma(a: F32, b: F32, c: F32) -> F32 {
    canonical(a.to_host().mul_add(b.to_host(), c.to_host()))
}

/// FFMA.RM: `a · b + c`, one rounding toward minus infinity.
pub fn ffma_rm(a: F32, b: F32, c: F32) -> F32 {
    let (x, y, z) = (a.to_host(), b.to_host(), c.to_host());
    let nearest = x.mul_add(y, z);
    if !nearest.is_finite() {
        // Callers stay in range (CUDA's expf); NaN and infinity need no step.
        return canonical(nearest);
    }
    // The product of two binary32 is exact in binary64, and the difference of
    // the exact sum and its nearest binary32 has the sign of this fused step.
    let product = f64::from(x) * f64::from(y);
    let error = two_sum_sign(product, f64::from(z), f64::from(nearest));
    if error < 0 { F32(next_down(nearest).to_bits()) } else { F32(nearest.to_bits()) }
}

/// Returns the sign of `a + b - c`, exactly.
fn two_sum_sign(a: f64, b: f64, c: f64) -> i32 {
    // Knuth's two-sum: s + e = a + b exactly.
    let s = a + b;
    let t = s - a;
    let e = (a - (s - t)) + (b - t);
    // s - c is exact or far larger than e, so the sign of (s - c) + e is right.
    let d = s - c;
    let total = d + e;
    if total > 0.0 {
        1
    } else if total < 0.0 {
        -1
    } else {
        0
    }
}

fn next_down(x: f32) -> f32 {
    x.next_down()
}

/// FADD.SAT-style clamp: limits to `[0, 1]`; NaN becomes `+0`.
#[inline]
pub fn saturate(x: F32) -> F32 {
    let v = x.to_host();
    if v.is_nan() || v <= 0.0 {
        F32::ZERO
    } else if v >= 1.0 {
        F32::ONE
    } else {
        x
    }
}

/// IEEE division `a / b`, one rounding (CUDA's `__fdiv_rn`).
#[inline(always)]
pub fn fdiv(a: F32, b: F32) -> F32 {
    canonical(a.to_host() / b.to_host())
}

/// FMNMX, maximum form: the larger operand; a NaN loses to a number; two NaN give
/// the canonical NaN; `+0` is larger than `-0`.
#[inline]
pub fn fmax(a: F32, b: F32) -> F32 {
    match (a.is_nan(), b.is_nan()) {
        (true, true) => F32::NAN,
        (true, false) => b,
        (false, true) => a,
        (false, false) => {
            if a.is_zero() && b.is_zero() {
                F32(a.0 & b.0)
            } else if a.to_host() > b.to_host() {
                a
            } else {
                b
            }
        }
    }
}

/// FMNMX folded over `start` and `values`; the order cannot matter, because
/// [`fmax`] is the maximum of a total order: NaN, `-∞` … `-0`, `+0` … `+∞`.
#[inline(always)]
pub fn fmax_all<const N: usize>(start: F32, values: &[F32; N]) -> F32 {
    let key = |x: F32| {
        // Negative patterns descend; flipping their low bits makes them ascend.
        let flip = (x.0.cast_signed() >> 31).cast_unsigned() >> 1;
        if x.is_nan() { i32::MIN } else { (x.0 ^ flip).cast_signed() }
    };
    // Eight maxima side by side: one register, not one chain.
    let (groups, rest) = values.as_chunks::<8>();
    let mut greatest = [key(start); 8];
    for group in groups {
        for (greatest, &x) in greatest.iter_mut().zip(group) {
            *greatest = (*greatest).max(key(x));
        }
    }
    let rest = rest.iter().map(|&x| key(x));
    let greatest = greatest.into_iter().chain(rest).fold(i32::MIN, i32::max);
    if greatest == i32::MIN {
        return F32::NAN;
    }
    let flip = (greatest >> 31).cast_unsigned() >> 1;
    F32(greatest.cast_unsigned() ^ flip)
}

/// Ordered comparison `a > b`; false if either is NaN.
#[inline]
pub fn greater(a: F32, b: F32) -> bool {
    a.to_host() > b.to_host()
}

/// Converts an integer count to binary32, to nearest even (I2F).
#[inline]
pub fn from_u32(x: u32) -> F32 {
    F32((x as f32).to_bits())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NANS: [u32; 4] = [0x7fc0_0000, 0x7f80_0001, 0xffc1_2345, 0xffff_ffff];

    #[test]
    fn every_nan_result_is_canonical() {
        for bits in NANS {
            let nan = F32(bits);
            assert_eq!(fadd(nan, F32::ONE), F32::NAN);
            assert_eq!(fsub(F32::ONE, nan), F32::NAN);
            assert_eq!(fmul(nan, F32::ONE), F32::NAN);
            assert_eq!(ffma(F32::ONE, F32::ONE, nan), F32::NAN);
            assert_eq!(fdiv(nan, nan), F32::NAN);
        }
        assert_eq!(fsub(F32::INFINITY, F32::INFINITY), F32::NAN);
        assert_eq!(fmul(F32::ZERO, F32::INFINITY), F32::NAN);
        assert_eq!(fdiv(F32::ZERO, F32::ZERO), F32::NAN);
    }

    #[test]
    fn fused_multiply_add_rounds_once() {
        // (1 + 2^-12)^2 - 1 keeps the 2^-24 that a rounded product would lose.
        let x = F32(0x3f80_0800);
        assert_eq!(ffma(x, x, F32(0xbf80_0000)), F32(0x3a00_0400));
    }

    #[test]
    fn rounds_down_when_the_exact_value_is_below_the_nearest() {
        // 1 - 2^-30 rounds to 1 to nearest, to the number below 1 downward.
        let tiny = F32(0x3800_0000); // 2^-15
        assert_eq!(ffma_rm(tiny.negate(), tiny, F32::ONE), F32(0x3f7f_ffff));
        assert_eq!(ffma_rm(tiny, tiny, F32::ONE), F32::ONE);
        assert_eq!(ffma_rm(F32::ONE, F32::ONE, F32::ONE), F32(0x4000_0000));
    }

    #[test]
    fn maximum_prefers_numbers_and_positive_zero() {
        let minus_zero = F32(0x8000_0000);
        assert_eq!(fmax(F32(0x7fc0_0000), F32::ONE), F32::ONE);
        assert_eq!(fmax(F32::ONE, F32(0xffc0_0000)), F32::ONE);
        assert_eq!(fmax(F32(0x7fc0_0000), F32(0x7f80_0001)), F32::NAN);
        assert_eq!(fmax(minus_zero, F32::ZERO), F32::ZERO);
        assert_eq!(fmax(F32::ZERO, minus_zero), F32::ZERO);
        assert_eq!(fmax(F32::NEG_INFINITY, F32::ONE), F32::ONE);
    }

    #[test]
    fn maximum_of_many_is_the_maximum_in_any_order() {
        // Every pair and triple of values at which the order has an edge.
        let edges = [
            0,
            1,
            0x3f80_0000,
            0x7f7f_ffff,
            0x7f80_0000,
            0x7f80_0001,
            0x7fff_ffff,
            0x8000_0000,
            0x8000_0001,
            0xbf80_0000,
            0xff7f_ffff,
            0xff80_0000,
            0xff80_0001,
            0xffff_ffff,
        ]
        .map(F32);
        for start in edges {
            for x in edges {
                for y in edges {
                    let folded = fmax(fmax(start, x), y);
                    let all = fmax_all(start, &[x, y]);
                    assert_eq!(all, folded, "{start:?} {x:?} {y:?}");
                    assert_eq!(fmax_all(x, &[y, start]), all);
                    for at in 0..17 {
                        let mut many = [x; 17];
                        many[at] = y;
                        assert_eq!(fmax_all(start, &many), all, "{y:?} at {at}");
                    }
                }
            }
        }
    }
}
