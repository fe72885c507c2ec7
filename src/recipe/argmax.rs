//! Greedy choice and its tie rule.

use super::RecipeError;
use crate::isa::fp32::greater;
use crate::num::Bf16;

/// Returns the index of the largest element, the lowest index among equals.
///
/// # Shape
/// `x`: `[n]` BF16, the logits of one position.
///
/// # Rounding
/// None; elements are compared as numbers.
///
/// # Special values
/// A NaN of any pattern wins over everything, and the first NaN over later ones.
/// `-0` and `+0` are equal.
///
/// # Errors
/// [`RecipeError::EmptyRow`] if `x` has no element.
///
/// # Source
/// `spec/ops.md`, `argmax`; PyTorch 2.11 on an H200.
pub fn argmax_row(x: &[Bf16]) -> Result<usize, RecipeError> {
    let mut best = *x.first().ok_or(RecipeError::EmptyRow)?;
    let mut index = 0;
    for (i, &candidate) in x.iter().enumerate() {
        if candidate.is_nan() {
            return Ok(i);
        }
        if greater(candidate.widen(), best.widen()) {
            (index, best) = (i, candidate);
        }
    }
    Ok(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lowest_index_among_equals_and_nan_over_everything() {
        // (elements, index, reason)
        let cases: [(&[u16], usize, &str); 9] = [
            (&[0x3f80, 0x4000, 0x4000], 1, "first of two equals"),
            (&[0x8000, 0x0000], 0, "-0 equals +0"),
            (&[0x0000, 0x8000], 0, "+0 equals -0"),
            (&[0xbf80, 0xc000], 0, "the less negative"),
            (&[0xff80, 0xff80], 0, "all -inf"),
            (&[0xff80, 0xff7f], 1, "the lowest finite number beats -inf"),
            (&[0x7f80, 0x7fff, 0x7fc0], 1, "the first NaN beats +inf"),
            (&[0x3f80, 0xffc1], 1, "a NaN with its sign set, too"),
            (&[0x0000, 0x0001], 1, "the smallest subnormal beats 0"),
        ];
        for (bits, index, reason) in cases {
            let x: Vec<Bf16> = bits.iter().map(|&b| Bf16(b)).collect();
            assert_eq!(argmax_row(&x), Ok(index), "{reason}");
        }
        assert_eq!(argmax_row(&[]), Err(RecipeError::EmptyRow));
    }
}
