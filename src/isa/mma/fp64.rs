//! binary64 instructions: chains of correctly rounded fused multiply-adds.

/// Returns `c + Σ a[i]·b[i]` in binary64, one rounding to nearest even a product,
/// k ascending from `c`.
///
/// # Special values
/// A NaN result is a NaN of any pattern: the hardware's is not canonical and
/// its rule is open (an H200 writes `fff8000000000000` where the operation makes
/// the NaN and otherwise shows payloads of inputs), so NaNs compare by class.
///
/// # Source
/// Xie et al., arXiv:2511.10909; `spec/vectors/f64_*.bin`. `mul_add` is correctly
/// rounded on every host (IEEE 754 `fusedMultiplyAdd`).
pub fn fma_chain(a: &[u64], b: &[u64], c: u64) -> u64 {
    a.iter()
        .zip(b)
        .fold(f64::from_bits(c), |c, (&a, &b)| f64::from_bits(a).mul_add(f64::from_bits(b), c))
        .to_bits()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_each_product_once() {
        // (1 + 3e)^2 - 1 = 6e + 9e^2; a rounded product would lose the 9e^2, which is
        // 2.25 units in the last place.
        let x = 0x3ff0_0000_0000_0003;
        let minus_one = 0xbff0_0000_0000_0000;
        assert_eq!(fma_chain(&[x], &[x], minus_one), 0x3cd8_0000_0000_0002);
    }
}
