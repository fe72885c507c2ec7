//! Lanes of AVX2.
//!
//! Every operation is one instruction or a few; what each computes is in the vendor's manual
//! under the intrinsic's name, and the kernel's tests compare all with the portable
//! form.
//!
//! SAFETY, for the whole file: the intrinsics need AVX2. The type is used
//! only in the function that `dispatch` compiles for it and calls after detection.
//! Loads and stores take references to arrays of exactly their size and need no
//! alignment.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::vector::{EXPONENT_FIELD, Vector};

/// Lanes of this form.
pub(super) const LANES: usize = 8;

/// Eight lanes.
#[derive(Clone, Copy)]
pub(super) struct Avx2(__m256);

impl Vector<LANES> for Avx2 {
    type Ints = __m256i;
    type Bytes = __m256i;

    #[inline(always)]
    fn load(lanes: &[f32; LANES]) -> Self {
        // SAFETY: as the file says.
        unsafe { Self(_mm256_loadu_ps(lanes.as_ptr())) }
    }

    #[inline(always)]
    fn store(self, lanes: &mut [f32; LANES]) {
        // SAFETY: as the file says.
        unsafe { _mm256_storeu_ps(lanes.as_mut_ptr(), self.0) }
    }

    #[inline(always)]
    fn splat(x: f32) -> Self {
        // SAFETY: as the file says.
        unsafe { Self(_mm256_set1_ps(x)) }
    }

    #[inline(always)]
    fn times(self, other: Self) -> Self {
        // SAFETY: as the file says.
        unsafe { Self(_mm256_mul_ps(self.0, other.0)) }
    }

    #[inline(always)]
    fn cut(self) -> __m256i {
        // SAFETY: as the file says.
        unsafe { _mm256_cvttps_epi32(self.0) }
    }

    #[inline(always)]
    fn exponent_field(self) -> __m256i {
        // SAFETY: as the file says.
        unsafe { _mm256_and_si256(_mm256_castps_si256(self.0), Self::splat_int(EXPONENT_FIELD)) }
    }

    #[inline(always)]
    fn from_bits(bits: __m256i) -> Self {
        // SAFETY: as the file says.
        unsafe { Self(_mm256_castsi256_ps(bits)) }
    }

    #[inline(always)]
    fn toward_zero(ints: __m256i) -> Self {
        // SAFETY: as the file says.
        unsafe {
            // As in the portable form: without the first bit that binary32 cannot hold,
            // rounding to nearest goes toward zero.
            let m = _mm256_abs_epi32(ints);
            let m = _mm256_andnot_si256(_mm256_srli_epi32::<24>(m), m);
            Self(_mm256_cvtepi32_ps(_mm256_sign_epi32(m, ints)))
        }
    }

    #[inline(always)]
    fn splat_int(x: i32) -> __m256i {
        // SAFETY: as the file says.
        unsafe { _mm256_set1_epi32(x) }
    }

    #[inline(always)]
    fn plus(a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: as the file says.
        unsafe { _mm256_add_epi32(a, b) }
    }

    #[inline(always)]
    fn minus(a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: as the file says.
        unsafe { _mm256_sub_epi32(a, b) }
    }

    #[inline(always)]
    fn larger(a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: as the file says.
        unsafe { _mm256_max_epi32(a, b) }
    }

    #[inline(always)]
    fn any_outside(vectors: &[__m256i; 4], low: i32, span: u32) -> bool {
        // SAFETY: as the file says.
        unsafe {
            let low = Self::splat_int(low);
            let (d0, d1) = (Self::minus(vectors[0], low), Self::minus(vectors[1], low));
            let (d2, d3) = (Self::minus(vectors[2], low), Self::minus(vectors[3], low));
            let most = _mm256_max_epu32(_mm256_max_epu32(d0, d1), _mm256_max_epu32(d2, d3));
            let kept = _mm256_min_epu32(most, _mm256_set1_epi32(span as i32));
            _mm256_movemask_epi8(_mm256_cmpeq_epi32(kept, most)) != -1
        }
    }

    #[inline(always)]
    fn load_bytes(bytes: &[[u8; 4]; LANES]) -> __m256i {
        // SAFETY: as the file says.
        unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
    }

    #[inline(always)]
    fn splat_bytes(bytes: [u8; 4]) -> __m256i {
        // SAFETY: as the file says.
        unsafe { _mm256_set1_epi32(i32::from_le_bytes(bytes)) }
    }

    #[inline(always)]
    fn saturating_difference(a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: as the file says.
        unsafe { _mm256_subs_epu8(a, b) }
    }

    #[inline(always)]
    fn larger_bytes(a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: as the file says.
        unsafe { _mm256_max_epu8(a, b) }
    }

    #[inline(always)]
    fn byte_as_exponent<const V: usize>(bytes: __m256i) -> __m256i {
        // SAFETY: as the file says.
        unsafe {
            let moved = match V {
                0 => _mm256_slli_epi32::<23>(bytes),
                1 => _mm256_slli_epi32::<15>(bytes),
                2 => _mm256_slli_epi32::<7>(bytes),
                _ => _mm256_srli_epi32::<1>(bytes),
            };
            _mm256_and_si256(moved, Self::splat_int(EXPONENT_FIELD))
        }
    }
}
