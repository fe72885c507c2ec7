//! Inputs of the comparisons: bit patterns drawn from named families.

use attest::num::{Bf16, F32};

/// A family of values; each catches mistakes that others do not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// Any bits: NaN, infinities, every exponent.
    AnyBits,
    /// Exponents as a model has them.
    NearOne,
    /// Exponents across most of the range: alignment drops most terms.
    WideExponents,
    /// Subnormal and smallest normal factors.
    Subnormals,
    /// One exponent: every term counts, the sum carries.
    EqualExponents,
    /// Products near the smallest binary32.
    SubnormalProducts,
    /// Sums near the largest binary32.
    NearOverflow,
}

impl Family {
    pub const ALL: [Self; 7] = [
        Self::AnyBits,
        Self::NearOne,
        Self::WideExponents,
        Self::Subnormals,
        Self::EqualExponents,
        Self::SubnormalProducts,
        Self::NearOverflow,
    ];

    /// Exponent fields of the first factor, the second, and the accumulator.
    fn exponents(self) -> [(u32, u32); 3] {
        match self {
            Self::AnyBits => [(0, 255); 3],
            Self::NearOne => [(120, 129), (120, 129), (118, 131)],
            Self::WideExponents => [(64, 190), (64, 190), (20, 235)],
            Self::Subnormals => [(0, 2), (90, 250), (0, 110)],
            Self::EqualExponents => [(127, 127), (127, 127), (127, 130)],
            Self::SubnormalProducts => [(45, 62), (45, 62), (0, 4)],
            Self::NearOverflow => [(186, 191), (186, 191), (249, 254)],
        }
    }

    /// A bfloat16 of this family; `factor` is 0 or 1.
    pub fn bf16(self, random: u64, factor: usize) -> Bf16 {
        let (low, high) = self.exponents()[factor];
        let exponent = low + (random >> 32) as u32 % (high - low + 1);
        Bf16(((random as u32 & 0x8000) | (exponent << 7) | (random as u32 & 0x7f)) as u16)
    }

    /// A binary32 of this family; every fourth is `+0`, as accumulators start.
    pub fn accumulator(self, random: u64) -> F32 {
        if random >> 62 == 0 {
            return F32::ZERO;
        }
        let (low, high) = self.exponents()[2];
        let exponent = low + (random >> 32) as u32 % (high - low + 1);
        F32((random as u32 & 0x807f_ffff) | (exponent << 23))
    }
}

/// Draw `index` of stream `seed`; any draw can be repeated on its own.
///
/// SplitMix64 (Steele, Lea & Flood, OOPSLA 2014), whose state is a counter.
pub fn draw(seed: u64, index: u64) -> u64 {
    let step = (seed << 40).wrapping_add(index).wrapping_add(1);
    let mut z = step.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// `len` values of a family.
pub fn values(family: Family, seed: u64, len: usize) -> Vec<Bf16> {
    (0..len as u64).map(|i| family.bf16(draw(seed, i), 0)).collect()
}

/// `len` values as a model has them: near one, some small, a few exact zeros.
pub fn activations(seed: u64, len: usize) -> Vec<Bf16> {
    (0..len as u64)
        .map(|i| {
            let random = draw(seed, i);
            // Each lower exponent half as likely, like a normal distribution's tail to zero.
            let exponent = 128 - (random >> 32).trailing_zeros().min(20);
            if random >> 54 == 0 {
                return Bf16((random as u16) & 0x8000);
            }
            Bf16(((random as u32 & 0x8000) | (exponent << 7) | (random as u32 & 0x7f)) as u16)
        })
        .collect()
}

/// Patterns that have broken implementations before.
pub const SPECIAL: [u16; 16] = [
    0x0000, 0x8000, 0x0001, 0x8001, 0x007f, 0x0080, 0x3f80, 0xbf80, 0x7f7f, 0xff7f, 0x7f80, 0xff80,
    0x7fff, 0x7f81, 0xffc1, 0x3b80,
];

/// `values`, with specials sprinkled in: one in `every` on average.
pub fn with_specials(mut values: Vec<Bf16>, seed: u64, every: u64) -> Vec<Bf16> {
    for (i, value) in values.iter_mut().enumerate() {
        let random = draw(seed ^ 0x5bec, i as u64);
        if random.is_multiple_of(every) {
            *value = Bf16(SPECIAL[(random >> 40) as usize % SPECIAL.len()]);
        }
    }
    values
}
