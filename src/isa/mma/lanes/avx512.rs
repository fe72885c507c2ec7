//! Lanes of AVX-512 (F, BW, VL, DQ).
//!
//! Every operation is one instruction; what each computes is in the vendor's manual
//! under the intrinsic's name, and the kernel's tests compare all with the portable
//! form.
//!
//! SAFETY, for the whole file: the intrinsics need AVX-512 (F, BW, VL, DQ). The type is used
//! only in the function that `dispatch` compiles for it and calls after detection.
//! Loads and stores take references to arrays of exactly their size and need no
//! alignment.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::vector::{EXPONENT_FIELD, Vector};

/// Lanes of this form.
pub(super) const LANES: usize = 16;

/// Sixteen lanes.
#[derive(Clone, Copy)]
pub(super) struct Avx512(__m512);

impl Vector<LANES> for Avx512 {
    type Ints = __m512i;
    type Bytes = __m512i;

    #[inline(always)]
    fn load(lanes: &[f32; LANES]) -> Self {
        // SAFETY: as the file says.
        unsafe { Self(_mm512_loadu_ps(lanes.as_ptr())) }
    }

    #[inline(always)]
    fn store(self, lanes: &mut [f32; LANES]) {
        // SAFETY: as the file says.
        unsafe { _mm512_storeu_ps(lanes.as_mut_ptr(), self.0) }
    }

    #[inline(always)]
    fn splat(x: f32) -> Self {
        // SAFETY: as the file says.
        unsafe { Self(_mm512_set1_ps(x)) }
    }

    #[inline(always)]
    fn times(self, other: Self) -> Self {
        // SAFETY: as the file says.
        unsafe { Self(_mm512_mul_ps(self.0, other.0)) }
    }

    #[inline(always)]
    fn cut(self) -> __m512i {
        // SAFETY: as the file says.
        unsafe { _mm512_cvttps_epi32(self.0) }
    }

    #[inline(always)]
    fn exponent_field(self) -> __m512i {
        // SAFETY: as the file says.
        unsafe { _mm512_and_si512(_mm512_castps_si512(self.0), Self::splat_int(EXPONENT_FIELD)) }
    }

    #[inline(always)]
    fn from_bits(bits: __m512i) -> Self {
        // SAFETY: as the file says.
        unsafe { Self(_mm512_castsi512_ps(bits)) }
    }

    #[inline(always)]
    fn toward_zero(ints: __m512i) -> Self {
        // SAFETY: as the file says.
        unsafe {
            Self(_mm512_cvt_roundepi32_ps::<{ _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC }>(ints))
        }
    }

    #[inline(always)]
    fn splat_int(x: i32) -> __m512i {
        // SAFETY: as the file says.
        unsafe { _mm512_set1_epi32(x) }
    }

    #[inline(always)]
    fn plus(a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: as the file says.
        unsafe { _mm512_add_epi32(a, b) }
    }

    #[inline(always)]
    fn minus(a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: as the file says.
        unsafe { _mm512_sub_epi32(a, b) }
    }

    #[inline(always)]
    fn larger(a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: as the file says.
        unsafe { _mm512_max_epi32(a, b) }
    }

    #[inline(always)]
    fn any_outside(vectors: &[__m512i; 4], low: i32, span: u32) -> bool {
        // SAFETY: as the file says.
        unsafe {
            let low = Self::splat_int(low);
            let (d0, d1) = (Self::minus(vectors[0], low), Self::minus(vectors[1], low));
            let (d2, d3) = (Self::minus(vectors[2], low), Self::minus(vectors[3], low));
            let most = _mm512_max_epu32(_mm512_max_epu32(d0, d1), _mm512_max_epu32(d2, d3));
            _mm512_cmpgt_epu32_mask(most, _mm512_set1_epi32(span as i32)) != 0
        }
    }

    #[inline(always)]
    fn load_bytes(bytes: &[[u8; 4]; LANES]) -> __m512i {
        // SAFETY: as the file says.
        unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
    }

    #[inline(always)]
    fn splat_bytes(bytes: [u8; 4]) -> __m512i {
        // SAFETY: as the file says.
        unsafe { _mm512_set1_epi32(i32::from_le_bytes(bytes)) }
    }

    #[inline(always)]
    fn saturating_difference(a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: as the file says.
        unsafe { _mm512_subs_epu8(a, b) }
    }

    #[inline(always)]
    fn larger_bytes(a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: as the file says.
        unsafe { _mm512_max_epu8(a, b) }
    }

    #[inline(always)]
    fn byte_as_exponent<const V: usize>(bytes: __m512i) -> __m512i {
        // SAFETY: as the file says.
        unsafe {
            let moved = match V {
                0 => _mm512_slli_epi32::<23>(bytes),
                1 => _mm512_slli_epi32::<15>(bytes),
                2 => _mm512_slli_epi32::<7>(bytes),
                _ => _mm512_srli_epi32::<1>(bytes),
            };
            _mm512_and_si512(moved, Self::splat_int(EXPONENT_FIELD))
        }
    }
}
