//! bfloat16 as a bit pattern: widening and the GPU's rounding.

use super::F32;

/// A bfloat16 value: 1 sign, 8 exponent and 7 fraction bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(transparent)]
pub struct Bf16(pub u16);

impl Bf16 {
    /// The pattern the GPU writes for every NaN result.
    pub const NAN: Self = Self(0x7fff);
    /// Positive zero.
    pub const ZERO: Self = Self(0);

    /// Returns the same value as a binary32; exact, NaN payloads kept.
    #[inline]
    pub fn widen(self) -> F32 {
        F32(u32::from(self.0) << 16)
    }

    /// Rounds a binary32 to bfloat16, to nearest, ties to even.
    ///
    /// # Special values
    /// Every NaN becomes `7fff`. Values that round past the largest finite
    /// number become infinite. Subnormals are kept.
    ///
    /// # Source
    /// `cvt.rn.bf16.f32` on an H200: all NaN words tried give `7fff`
    /// (`spec/isa.md`).
    #[inline]
    pub fn round(x: F32) -> Self {
        if x.is_nan() {
            return Self::NAN;
        }
        let half_minus_one_plus_even = 0x7fff + ((x.0 >> 16) & 1);
        // A finite pattern is at most ff7f_ffff, so the sum stays below 2^32;
        // infinities have no low bits and pass through unchanged.
        Self((x.0.wrapping_add(half_minus_one_plus_even) >> 16) as u16)
    }

    /// True for any NaN pattern.
    #[inline]
    pub fn is_nan(self) -> bool {
        self.0 & 0x7fff > 0x7f80
    }

    /// True for any pattern but the infinities and the NaNs.
    #[inline]
    pub fn is_finite(self) -> bool {
        self.0 & 0x7f80 != 0x7f80
    }

    /// Decodes little-endian pairs of bytes; a trailing odd byte is ignored.
    pub fn from_le_bytes(bytes: &[u8]) -> Vec<Self> {
        bytes.chunks_exact(2).map(|pair| Self(u16::from_le_bytes([pair[0], pair[1]]))).collect()
    }
}

impl std::fmt::Debug for Bf16 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:04x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_to_nearest_even() {
        // (input, result, reason)
        let cases = [
            (0x3f80_8000, 0x3f80, "tie below an even significand stays"),
            (0x3f81_8000, 0x3f82, "tie below an odd significand goes up"),
            (0x3f80_8001, 0x3f81, "just above the tie goes up"),
            (0x3f80_7fff, 0x3f80, "just below the tie goes down"),
            (0x7f7f_ffff, 0x7f80, "the largest binary32 becomes infinite"),
            (0x7f80_0000, 0x7f80, "infinity stays"),
            (0xff80_0000, 0xff80, "minus infinity stays"),
            (0x0000_8000, 0x0000, "subnormal tie to even zero"),
            (0x0000_8001, 0x0001, "subnormals are kept"),
            (0x8000_0000, 0x8000, "minus zero keeps its sign"),
            (0x7fa0_0000, 0x7fff, "a signalling NaN becomes canonical"),
            (0xffc0_0000, 0x7fff, "a negative NaN becomes canonical"),
        ];
        for (input, result, reason) in cases {
            assert_eq!(Bf16::round(F32(input)), Bf16(result), "{reason}");
        }
    }

    #[test]
    fn widening_then_rounding_gives_every_number_back() {
        for bits in 0..=u16::MAX {
            let x = Bf16(bits);
            if !x.is_nan() {
                assert_eq!(Bf16::round(x.widen()), x);
            }
        }
    }
}
