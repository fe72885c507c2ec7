//! Size of a product, as text and in sets.

use std::str::FromStr;

use serde::Serialize;

use super::super::BenchError;

/// Size of a product: `m` rows of activations, `n` rows of a weight, `k` deep.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Shape {
    /// Rows of A (count).
    pub m: usize,
    /// Columns of the result (count).
    pub n: usize,
    /// Products an output (count).
    pub k: usize,
}

impl Shape {
    /// The shape of the targets in the documentation.
    pub const DEFAULT: Self = Self { m: 256, n: 2560, k: 2560 };

    /// Row counts from decoding one token to a long prompt, and the long and the
    /// wide products of Qwen3-4B.
    pub const ALL: [Self; 10] = [
        Self::DEFAULT,
        Self { m: 1, n: 2560, k: 2560 },
        Self { m: 4, n: 2560, k: 2560 },
        Self { m: 16, n: 2560, k: 2560 },
        Self { m: 64, n: 2560, k: 2560 },
        Self { m: 250, n: 2560, k: 2560 },
        Self { m: 1024, n: 2560, k: 2560 },
        Self { m: 250, n: 2560, k: 9728 },
        Self { m: 250, n: 9728, k: 2560 },
        Self { m: 16, n: 151_936, k: 2560 },
    ];

    /// Multiply-adds of the product (count).
    pub fn multiply_adds(self) -> u64 {
        [self.m, self.n, self.k].map(|size| size as u64).iter().product()
    }
}

impl FromStr for Shape {
    type Err = BenchError;

    fn from_str(text: &str) -> Result<Self, BenchError> {
        let refused = || BenchError::Shape { text: text.into() };
        let sizes: Result<Vec<usize>, _> = text.split('x').map(str::parse).collect();
        let [m, n, k] = sizes.map_err(|_| refused())?[..] else { return Err(refused()) };
        let fits = |a: usize, b: usize| a.checked_mul(b).is_some_and(|ab| ab > 0 && ab < LARGEST);
        let possible = fits(m, k) && fits(n, k) && fits(m, n);
        if possible { Ok(Self { m, n, k }) } else { Err(refused()) }
    }
}

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&format!("{}x{}x{}", self.m, self.n, self.k))
    }
}

/// Most elements of an operand: its binary32 form then takes 4 GB at most.
const LARGEST: usize = 1 << 30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_is_three_numbers() {
        assert_eq!("256x2560x64".parse::<Shape>().unwrap(), Shape { m: 256, n: 2560, k: 64 });
        // (text, reason)
        let cases = [
            ("", "nothing"),
            ("1x2", "two numbers"),
            ("1x2x3x4", "four"),
            ("1x0x3", "an empty matrix"),
            ("1x-2x3", "a sign"),
            ("1000000000x1x4", "more than an operand may have"),
            ("18446744073709551615x2x2", "more than an index has"),
        ];
        for (text, reason) in cases {
            let error = text.parse::<Shape>().unwrap_err().to_string();
            assert!(error.contains(&format!("shape {text} ")), "{reason}: {error}");
        }
    }
}
