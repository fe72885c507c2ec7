//! Which compiled form of the lanes runs: portable, AVX2 or AVX-512.
//!
//! All forms are one source ([`super::lanes`]) and give the same bits. The choice
//! is a value that is passed down, so that tests can run each.
#![allow(unsafe_code)] // calls of functions compiled for detected features

use std::ops::Range;

use super::MmaProfile;
use super::lanes::{self, Part, Rows, Undecoded};
use crate::isa::vectorise::Vectorise;
use crate::num::{Bf16, F32};

/// An instruction set that the running machine has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Simd(pub(in crate::isa) Kind);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::isa) enum Kind {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Simd {
    /// What every machine of the target has.
    pub const PORTABLE: Self = Self(Kind::Portable);

    /// The widest form that this machine runs.
    pub fn detect() -> Self {
        Self::available().pop().unwrap_or(Self::PORTABLE)
    }

    /// All forms that this machine runs, narrowest first.
    pub fn available() -> Vec<Self> {
        #[allow(unused_mut)]
        let mut all = vec![Self::PORTABLE];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                all.push(Self(Kind::Avx2));
            }
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512dq")
            {
                all.push(Self(Kind::Avx512));
            }
        }
        all
    }

    /// The name for reports.
    pub fn name(self) -> &'static str {
        match self.0 {
            Kind::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => "avx512",
        }
    }

    /// Decodes rows of A, each `k` long, for any form. `run` makes all of so many
    /// independent parts, in order; it may share them between threads.
    ///
    /// # Panics
    /// If `k` is zero or `codes` is not a whole number of rows.
    pub fn rows<'a>(
        self,
        profile: &MmaProfile,
        codes: &'a [Bf16],
        k: usize,
        run: impl FnOnce(usize, &(dyn Fn(usize) -> Part + Sync)) -> Vec<Part>,
    ) -> Rows<'a> {
        let rows = Undecoded::new(profile, codes, k);
        let parts = run(rows.parts(), &|index| self.vectorise(DecodePart { rows, index }));
        rows.assemble(parts)
    }

    /// Continues the walks of a range of rows with all columns: `out += rows · bᵀ`.
    /// Returns how many spans of sixteen k's were left to the scalar text, for a row and a
    /// panel of columns each (blocks, where a profile is for the scalar text alone).
    ///
    /// # Shape
    /// `b`: `[n, k]`; `out`: `[range.len(), n]` live accumulators.
    ///
    /// # Panics
    /// If there are no such rows, `b` is not a whole number of columns or `out` has
    /// another shape.
    pub fn walk_into(
        self,
        rows: &Rows<'_>,
        range: Range<usize>,
        b: &[Bf16],
        out: &mut [F32],
    ) -> usize {
        assert!(b.len().is_multiple_of(rows.k()), "{} codes in columns of {}", b.len(), rows.k());
        assert!(range.end <= rows.count(), "rows {range:?} of {}", rows.count());
        let n = b.len() / rows.k();
        assert_eq!(out.len(), range.len() * n, "accumulators of a product");
        if out.is_empty() {
            return 0;
        }
        match self.0 {
            Kind::Portable => lanes::portable(rows, range, b, out),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a `Simd` of this kind is only made by `available`, after it saw
            // both features; the function has no other requirement.
            Kind::Avx2 => unsafe { avx2(rows, range, b, out) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above; `available` saw all four features.
            Kind::Avx512 => unsafe { avx512(rows, range, b, out) },
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn avx2(rows: &Rows<'_>, range: Range<usize>, b: &[Bf16], out: &mut [F32]) -> usize {
    lanes::avx2(rows, range, b, out)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
fn avx512(rows: &Rows<'_>, range: Range<usize>, b: &[Bf16], out: &mut [F32]) -> usize {
    lanes::avx512(rows, range, b, out)
}

struct DecodePart<'a> {
    rows: Undecoded<'a>,
    index: usize,
}

impl Vectorise for DecodePart<'_> {
    type Output = Part;

    #[inline(always)]
    fn run(self) -> Part {
        self.rows.part(self.index)
    }
}
