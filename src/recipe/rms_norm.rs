//! RMSNorm and per-head QK-norm.
//!
//! The hidden norm runs on a token's row, the query and key norms on each head's
//! row; only the length differs.

use super::RecipeError;
use super::error::expect_len;
use super::reduce::RowReduction;
use crate::isa::fp32::{fadd, fdiv, fmul, from_u32};
use crate::isa::mufu;
use crate::num::{Bf16, F32};

/// Normalises one row by its root mean square, then scales it by `weight`.
///
/// # Shape
/// `x`, `weight`, `out`: `[n]` BF16, `n` the hidden size or the head size.
///
/// # Rounding
/// R1, R2: squares, each rounded, are summed in the given row-reduction order.
/// R3: the mean is `sum · (1/n)` with the reciprocal rounded first.
/// R4: `+ eps`.
/// R5: `MUFU.RSQ`, no refinement step.
/// R6, R7: rounded to BF16 *before* the weight, and again after it.
///
/// # Special values
/// A NaN or infinite element makes the row's finite elements zero or NaN:
/// `MUFU.RSQ` of `+inf` is `+0`, so an infinity gives `∞·0 = 7fff` in its own
/// place and zeros beside it; a NaN gives `7fff` everywhere.
///
/// # Errors
/// [`RecipeError::Shape`] if the lengths differ (C1);
/// [`RecipeError::ReductionLength`] for a length that is not covered (C2).
///
/// # Source
/// `spec/ops.md`, `rms_norm`; compared with PyTorch 2.11 on an H200.
pub fn rms_norm_row(
    order: RowReduction,
    x: &[Bf16],
    weight: &[Bf16],
    eps: F32,
    out: &mut [Bf16],
) -> Result<(), RecipeError> {
    expect_len("rms_norm", "weight", x.len(), weight.len())?;
    expect_len("rms_norm", "output", x.len(), out.len())?;
    let reciprocal_root = reciprocal_root(order, x, eps)?;
    for ((y, x), weight) in out.iter_mut().zip(x).zip(weight) {
        let normalised = Bf16::round(fmul(x.widen(), reciprocal_root)); // R6
        *y = Bf16::round(fmul(weight.widen(), normalised.widen())); // R7
    }
    Ok(())
}

/// `1 / sqrt(mean(x²) + eps)`.
fn reciprocal_root(order: RowReduction, x: &[Bf16], eps: F32) -> Result<F32, RecipeError> {
    let n = u32::try_from(x.len()).map_err(|_| RecipeError::ReductionLength { n: x.len() })?;
    let sum = order.sum_of(x, |x| fmul(x.widen(), x.widen()))?; // R1, R2
    let mean = fmul(sum, fdiv(F32::ONE, from_u32(n))); // R3
    Ok(mufu::rsq(fadd(mean, eps))) // R4, R5
}

#[cfg(test)]
mod tests {
    use super::*;

    const EPS: F32 = F32(0x3586_37bd); // 1e-6
    const ONE: Bf16 = Bf16(0x3f80);

    fn norm(x: &[Bf16], weight: &[Bf16]) -> Vec<Bf16> {
        let mut out = vec![Bf16::ZERO; x.len()];
        rms_norm_row(RowReduction::native(), x, weight, EPS, &mut out).unwrap();
        out
    }

    #[test]
    fn a_row_of_equal_powers_of_two_normalises_to_one() {
        // mean = 4, mean + eps rounds to 4 + 2^-20·… : r is just below 1/2, x·r rounds to 1.
        let out = norm(&[Bf16(0x4000); 128], &[ONE; 128]);
        assert_eq!(out, [ONE; 128]);
    }

    #[test]
    fn rounds_before_the_weight_and_after_it() {
        // One 1.5 in a row of ones: the squares sum to 129.25 exactly, and a 128th is exact.
        let mut x = [ONE; 128];
        x[5] = Bf16(0x3fc0);
        let mean = F32::from_host(129.25 / 128.0);
        let r = mufu::rsq(fadd(mean, EPS));
        let exact = fmul(x[5].widen(), r);
        let mut shown = false;
        for fraction in 0..128 {
            let weight = Bf16(0x3f80 + fraction);
            let twice = Bf16::round(fmul(weight.widen(), Bf16::round(exact).widen()));
            assert_eq!(norm(&x, &[weight; 128])[5], twice, "weight {weight:?}");
            shown |= Bf16::round(fmul(weight.widen(), exact)) != twice;
        }
        assert!(shown, "some weight must show the inner rounding");
    }

    #[test]
    fn the_mean_multiplies_by_a_rounded_reciprocal() {
        // n twos and one 1: integers, so the sum is exact in any order, and n is no power of two.
        let mut shown = 0;
        for n in (132..1000).step_by(4) {
            let mut x = vec![Bf16(0x4000); n];
            x[n / 2] = ONE;
            let (sum, n) = (from_u32(4 * n as u32 - 3), from_u32(n as u32));
            let root = |mean| mufu::rsq(fadd(mean, EPS));
            let by_reciprocal = root(fmul(sum, fdiv(F32::ONE, n)));
            assert_eq!(reciprocal_root(RowReduction::native(), &x, EPS), Ok(by_reciprocal));
            shown += usize::from(by_reciprocal != root(fdiv(sum, n)));
        }
        assert!(shown > 0, "some length must show the rounding of the reciprocal");
    }

    #[test]
    fn special_values_follow_the_instructions() {
        let mut x = [ONE; 128];
        x[3] = Bf16(0x7f80);
        let out = norm(&x, &[ONE; 128]);
        assert_eq!(out[3], Bf16::NAN, "inf · 0");
        assert_eq!(out[4], Bf16::ZERO, "1 · 0");
        x[3] = Bf16(0xffc1);
        assert_eq!(norm(&x, &[ONE; 128]), [Bf16::NAN; 128]);
        let zeros = norm(&[Bf16(0x8000); 128], &[ONE; 128]);
        assert_eq!(zeros, [Bf16(0x8000); 128], "eps keeps the root finite; the sign of zero stays");
    }

    #[test]
    fn refuses_operands_of_another_length() {
        let mut out = [Bf16::ZERO; 128];
        let refused = rms_norm_row(RowReduction::native(), &[ONE; 128], &[ONE; 64], EPS, &mut out)
            .unwrap_err();
        assert_eq!(refused.to_string(), "rms_norm: weight has 64 elements, expected 128");
    }
}
