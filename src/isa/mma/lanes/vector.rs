//! What the kernel needs of an instruction set.
//!
//! A vector holds `L` binary32 lanes or `L` 32-bit integers or `4·L` bytes. The
//! operations are those of IEEE 754 and of two's complement; nothing here rounds
//! but [`Vector::times`], and the kernel's proof shows where that is exact.

/// Bits of the exponent in a binary32.
pub(super) const EXPONENT_FIELD: i32 = 0x7f80_0000;

/// `L` binary32 lanes.
pub(super) trait Vector<const L: usize>: Copy {
    /// `L` integers of 32 bits.
    type Ints: Copy;
    /// `4·L` unsigned bytes; byte `4·l + v` belongs to lane `l` of vector `v`.
    type Bytes: Copy;

    fn load(lanes: &[f32; L]) -> Self;
    fn store(self, lanes: &mut [f32; L]);
    fn splat(x: f32) -> Self;
    /// `self · other`, to nearest.
    fn times(self, other: Self) -> Self;
    /// The integer part, truncated toward zero; `|self| < 2^31`.
    fn cut(self) -> Self::Ints;
    /// The exponent field, in place.
    fn exponent_field(self) -> Self::Ints;
    fn from_bits(bits: Self::Ints) -> Self;
    /// The nearest binary32 toward zero of integers above `−2^31`.
    fn toward_zero(ints: Self::Ints) -> Self;

    fn splat_int(x: i32) -> Self::Ints;
    fn plus(a: Self::Ints, b: Self::Ints) -> Self::Ints;
    fn minus(a: Self::Ints, b: Self::Ints) -> Self::Ints;
    /// The larger one, signed.
    fn larger(a: Self::Ints, b: Self::Ints) -> Self::Ints;
    /// Whether `(x − low) mod 2^32 > span` for any `x` of any vector.
    fn any_outside(vectors: &[Self::Ints; 4], low: i32, span: u32) -> bool;

    fn load_bytes(bytes: &[[u8; 4]; L]) -> Self::Bytes;
    /// The same four bytes in every lane.
    fn splat_bytes(bytes: [u8; 4]) -> Self::Bytes;
    /// Differences that stop at zero.
    fn saturating_difference(a: Self::Bytes, b: Self::Bytes) -> Self::Bytes;
    fn larger_bytes(a: Self::Bytes, b: Self::Bytes) -> Self::Bytes;
    /// Byte `V` of every lane as an exponent field, other bits zero.
    fn byte_as_exponent<const V: usize>(bytes: Self::Bytes) -> Self::Ints;
}
