//! Loops that are compiled once for each instruction set.
//!
//! The loops are ordinary code over arrays; what differs is only how many lanes
//! the compiler may use, so every form gives the same bits. Fused multiply-adds
//! are one rounding in all of them: the portable form calls the C library's.
#![allow(unsafe_code)] // calls of functions compiled for detected features

use super::mma::{Kind, Simd};

/// Work over independent elements that gains from wide registers.
///
/// `run`, and what it calls in its loops, should be `#[inline(always)]`: only code
/// that is inlined is compiled for the instruction set.
pub trait Vectorise {
    /// What the work returns.
    type Output;

    /// Does the work.
    fn run(self) -> Self::Output;
}

impl Simd {
    /// Runs the form of `work` that is compiled for this instruction set.
    #[inline]
    pub fn vectorise<V: Vectorise>(self, work: V) -> V::Output {
        match self.0 {
            Kind::Portable => work.run(),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a `Simd` of this kind is only made after AVX2 and FMA were
            // detected; the function has no other requirement.
            Kind::Avx2 => unsafe { avx2(work) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a `Simd` of this kind is only made after all four features were
            // detected; the function has no other requirement.
            Kind::Avx512 => unsafe { avx512(work) },
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn avx2<V: Vectorise>(work: V) -> V::Output {
    work.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
fn avx512<V: Vectorise>(work: V) -> V::Output {
    work.run()
}
