//! binary32 as a bit pattern.

/// A binary32 value as its 32 bits. It has no operators: arithmetic is in
/// [`crate::isa::fp32`], under the names of the GPU's instructions.
///
/// Equality compares bits, so `+0 != -0` and a NaN equals itself.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct F32(pub u32);

impl F32 {
    /// The pattern the GPU's arithmetic writes for every NaN result.
    pub const NAN: Self = Self(0x7fff_ffff);
    /// Positive zero.
    pub const ZERO: Self = Self(0);
    /// One.
    pub const ONE: Self = Self(0x3f80_0000);
    /// Positive infinity.
    pub const INFINITY: Self = Self(0x7f80_0000);
    /// Negative infinity.
    pub const NEG_INFINITY: Self = Self(0xff80_0000);

    /// Takes the bits of a host value; for constants and tests.
    #[inline]
    pub fn from_host(x: f32) -> Self {
        Self(x.to_bits())
    }

    /// Gives the bits to the host's type; for printing and tests.
    #[inline]
    pub fn to_host(self) -> f32 {
        f32::from_bits(self.0)
    }

    /// Returns the value with its sign bit flipped, NaN included (a source
    /// modifier on the GPU, not an operation).
    #[inline]
    #[must_use]
    pub fn negate(self) -> Self {
        Self(self.0 ^ 0x8000_0000)
    }

    /// True for any NaN pattern.
    #[inline]
    pub fn is_nan(self) -> bool {
        self.0 & 0x7fff_ffff > 0x7f80_0000
    }

    /// True for `+0` and `-0`.
    #[inline]
    pub fn is_zero(self) -> bool {
        self.0 & 0x7fff_ffff == 0
    }
}

impl std::fmt::Debug for F32 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}
