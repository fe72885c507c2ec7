//! Reproducible operands that look like a language model's.

use crate::num::{Bf16, F32};

/// A small reproducible generator (xorshift64*, Vigna 2016).
pub(super) struct Random(u64);

impl Random {
    /// Starts a sequence; equal seeds give equal sequences.
    pub(super) fn new(seed: u64) -> Self {
        Self(seed ^ 0x9e37_79b9_7f4a_7c15) // any nonzero constant: a state of 0 would stay
    }

    /// The next 64 bits.
    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number from 0 to `bound - 1`.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        // The remainder is below `bound`; its bias is of no matter here.
        ((self.next() >> 11) % bound.max(1) as u64) as usize
    }

    /// About normal with standard deviation `2^exponent`: the sum of four uniform
    /// 16-bit integers, rounded to bf16.
    pub(super) fn normal(&mut self, exponent: i32) -> Bf16 {
        let bits = self.next();
        let sum: i32 = (0..4).map(|part| i32::from((bits >> (16 * part)) as u16)).sum();
        // Four times the variance 2^32/12 of each: a standard deviation of 2^15.2.
        let centred = sum - 2 * 0xffff;
        let F32(value) = F32::from_host(centred as f32);
        // Exact: the exponent field of an integer up to 2^18 is far from both ends.
        let scaled =
            if centred == 0 { value } else { value.wrapping_add_signed((exponent - 15) << 23) };
        Bf16::round(F32(scaled))
    }
}

/// Activations `[m, k]`: about normal with deviation 1, one channel in a hundred
/// 64 times as large, as in trained models.
pub(super) fn activations(seed: u64, m: usize, k: usize) -> Vec<Bf16> {
    let mut random = Random::new(seed);
    let large: Vec<bool> = (0..k).map(|_| random.next().is_multiple_of(100)).collect();
    let mut out = Vec::with_capacity(m * k);
    for _ in 0..m {
        out.extend(large.iter().map(|&large| random.normal(if large { 6 } else { 0 })));
    }
    out
}

/// Weights `[n, k]`: about normal with deviation 2^-6.
pub(super) fn weights(seed: u64, n: usize, k: usize) -> Vec<Bf16> {
    let mut random = Random::new(seed);
    (0..n * k).map(|_| random.normal(-6)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deviation_is_the_power_of_two() {
        for exponent in [-6, 0, 6] {
            let mut random = Random::new(1);
            // Among 10,000 the share within one deviation of a normal variable is 0.68.
            let bound = ((127 + exponent) << 7) as u16;
            let within = (0..10_000).filter(|_| random.normal(exponent).0 & 0x7fff < bound).count();
            assert!((6000..7000).contains(&within), "2^{exponent}: {within}");
        }
    }

    #[test]
    fn a_seed_gives_the_same_operands_again() {
        assert_eq!(activations(3, 2, 40), activations(3, 2, 40));
        assert_ne!(weights(3, 2, 40), weights(4, 2, 40));
    }
}
