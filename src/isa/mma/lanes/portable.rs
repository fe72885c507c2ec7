//! Lanes as arrays: what every machine has, and the reference of the intrinsics.
#![allow(clippy::float_arithmetic)] // `times` and `toward_zero`, as their trait says
#![allow(unsafe_code)] // one conversion without a range check

use super::vector::{EXPONENT_FIELD, Vector};

/// Lanes of this form where no wider vectors are: what SSE2 and NEON hold.
pub(super) const LANES: usize = 4;

/// `L` lanes.
#[derive(Clone, Copy)]
pub(super) struct Portable<const L: usize>([f32; L]);

#[inline(always)]
fn zip<const L: usize, T: Copy, U>(a: [T; L], b: [T; L], f: impl Fn(T, T) -> U) -> [U; L] {
    std::array::from_fn(|lane| f(a[lane], b[lane]))
}

#[inline(always)]
fn zip_bytes<const L: usize>(
    a: [[u8; 4]; L],
    b: [[u8; 4]; L],
    f: impl Fn(u8, u8) -> u8,
) -> [[u8; 4]; L] {
    std::array::from_fn(|lane| std::array::from_fn(|v| f(a[lane][v], b[lane][v])))
}

impl<const L: usize> Vector<L> for Portable<L> {
    type Ints = [i32; L];
    type Bytes = [[u8; 4]; L];

    #[inline(always)]
    fn load(lanes: &[f32; L]) -> Self {
        Self(*lanes)
    }

    #[inline(always)]
    fn store(self, lanes: &mut [f32; L]) {
        *lanes = self.0;
    }

    #[inline(always)]
    fn splat(x: f32) -> Self {
        Self([x; L])
    }

    #[inline(always)]
    fn times(self, other: Self) -> Self {
        Self(zip(self.0, other.0, |a, b| a * b))
    }

    #[inline(always)]
    fn cut(self) -> [i32; L] {
        // SAFETY: the trait asks for magnitudes below 2^31, and the kernel's bounds
        // (its points 1 to 3) give no others.
        self.0.map(|x| unsafe { x.to_int_unchecked() })
    }

    #[inline(always)]
    fn exponent_field(self) -> [i32; L] {
        self.0.map(|x| x.to_bits() as i32 & EXPONENT_FIELD)
    }

    #[inline(always)]
    fn from_bits(bits: [i32; L]) -> Self {
        Self(bits.map(|x| f32::from_bits(x as u32)))
    }

    #[inline(always)]
    fn toward_zero(ints: [i32; L]) -> Self {
        Self(ints.map(|x| {
            // The leading bit of m, 24 places down, is the first one that binary32
            // cannot hold. Without it less than half a unit remains: rounding to
            // nearest goes toward zero.
            let m = x.unsigned_abs();
            let rounded = (m & !(m >> 24)) as i32 as f32;
            f32::from_bits(rounded.to_bits() | (x as u32 & 0x8000_0000))
        }))
    }

    #[inline(always)]
    fn splat_int(x: i32) -> [i32; L] {
        [x; L]
    }

    #[inline(always)]
    fn plus(a: [i32; L], b: [i32; L]) -> [i32; L] {
        zip(a, b, i32::wrapping_add)
    }

    #[inline(always)]
    fn minus(a: [i32; L], b: [i32; L]) -> [i32; L] {
        zip(a, b, i32::wrapping_sub)
    }

    #[inline(always)]
    fn larger(a: [i32; L], b: [i32; L]) -> [i32; L] {
        zip(a, b, i32::max)
    }

    #[inline(always)]
    fn any_outside(vectors: &[[i32; L]; 4], low: i32, span: u32) -> bool {
        vectors.iter().flatten().fold(false, |any, x| any | (x.wrapping_sub(low) as u32 > span))
    }

    #[inline(always)]
    fn load_bytes(bytes: &[[u8; 4]; L]) -> [[u8; 4]; L] {
        *bytes
    }

    #[inline(always)]
    fn splat_bytes(bytes: [u8; 4]) -> [[u8; 4]; L] {
        [bytes; L]
    }

    #[inline(always)]
    fn saturating_difference(a: [[u8; 4]; L], b: [[u8; 4]; L]) -> [[u8; 4]; L] {
        zip_bytes(a, b, u8::saturating_sub)
    }

    #[inline(always)]
    fn larger_bytes(a: [[u8; 4]; L], b: [[u8; 4]; L]) -> [[u8; 4]; L] {
        zip_bytes(a, b, u8::max)
    }

    #[inline(always)]
    fn byte_as_exponent<const V: usize>(bytes: [[u8; 4]; L]) -> [i32; L] {
        bytes.map(|lane| i32::from(lane[V]) << 23)
    }
}
