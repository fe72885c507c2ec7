//! Matrix products whose K is split into slices, with partial sums in binary32.
//!
//! Each slice of K is a walk of its own ([`super::gemm`]) from `+0`; a second
//! kernel adds the slices' sums in order. This is the slow, obvious form; the fast
//! one is the emulator's (`engine::product`).

use std::ops::Range;

use super::gemm::walk;
use super::{Recipe, RecipeError};
use crate::isa::fp32::fadd;
use crate::isa::mma::MmaProfile;
use crate::num::{Bf16, F32};

/// Returns the raw sums of `a · bᵀ`: one walk a slice of K, the walks added left to
/// right.
///
/// # Shape
/// `a`: `[m, k]`; `b`: `[n, k]`, a weight as it is stored; result: `[m, n]`, where
/// `k` is that of the slices and `m` and `n` follow from the lengths.
///
/// # Rounding
/// As [`split_walk`]. The caller rounds to the output type.
///
/// # Panics
/// If `k` is zero, or `a` or `b` is not a whole number of rows of `k`.
///
/// # Source
/// Slices and order: cuBLASLt's `nvjet` kernels with split-K, followed by
/// `splitKreduce_kernel`, on an H200, CUDA 13.0.
pub fn split_k_workspace_f32(
    profile: &MmaProfile,
    a: &[Bf16],
    b: &[Bf16],
    slices: &Slices,
) -> Vec<F32> {
    let k = slices.k();
    assert!(a.len().is_multiple_of(k) && b.len().is_multiple_of(k), "whole rows of {k}");
    let mut out = Vec::with_capacity(a.len() / k * (b.len() / k));
    for row in a.chunks_exact(k) {
        for column in b.chunks_exact(k) {
            out.push(split_walk(profile, row, column, slices));
        }
    }
    out
}

/// Returns one output's raw sum: `walk₀ + walk₁ + …`, a walk from `+0` for each slice.
///
/// # Shape
/// `a`, `b`: `[k]`, where `k` is that of the slices.
///
/// # Rounding
/// Inside a slice as [`walk`]; then one FADD for each slice after the first
/// (`spec/ops.md`, linear, R1 to R3). With one slice this is the single walk.
///
/// # Special values
/// An infinity or a NaN in one slice goes through FADD with the others: `∞ − ∞`
/// between slices is the canonical NaN.
///
/// # Panics
/// If `a` or `b` is not `[k]`.
pub fn split_walk(profile: &MmaProfile, a: &[Bf16], b: &[Bf16], slices: &Slices) -> F32 {
    assert_eq!((a.len(), b.len()), (slices.k, slices.k), "factors of a walk in slices");
    let of = |slice: &Range<usize>| walk(profile, &a[slice.clone()], &b[slice.clone()], F32::ZERO);
    let (first, later) = slices.ranges.split_at(1);
    later.iter().fold(of(&first[0]), |sum, slice| fadd(sum, of(slice)))
}

/// The slices of K of a product, in the order in which their sums are added.
///
/// There is at least one; together they are `0..k`, ascending and without gaps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Slices {
    k: usize,
    ranges: Vec<Range<usize>>,
}

impl Slices {
    /// All of K as one slice: the single walk.
    pub fn whole(k: usize) -> Self {
        Self { k, ranges: std::iter::once(0..k).collect() }
    }

    /// `count` slices of `⌈⌈k / 64⌉ / count⌉ · 64` columns, the last one with what is
    /// left.
    ///
    /// # Errors
    /// What nobody measured: [`RecipeError::SplitCount`] for fewer than two slices,
    /// [`RecipeError::SplitTail`] for a `k` that is no multiple of 64, and
    /// [`RecipeError::SplitEmpty`] if the last slice would be empty.
    ///
    /// # Source
    /// H200, CUDA 13.0: 2 slices of 4096 columns; 2, 3 and 5 slices of 9728.
    pub fn split(k: usize, count: u8) -> Result<Self, RecipeError> {
        if count < 2 {
            return Err(RecipeError::SplitCount { slices: count });
        }
        if !k.is_multiple_of(K_TILE) {
            return Err(RecipeError::SplitTail { k });
        }
        let slices = usize::from(count);
        let length = (k / K_TILE).div_ceil(slices) * K_TILE;
        if length * (slices - 1) >= k {
            return Err(RecipeError::SplitEmpty { k, slices: count });
        }
        // The last slice may end beyond the largest number before it is cut to `k`.
        let range = |slice: usize| slice * length..k.min((slice + 1).saturating_mul(length));
        Ok(Self { k, ranges: (0..slices).map(range).collect() })
    }

    /// The slices of a product's recipe, or `None` if the recipe is no product's.
    ///
    /// # Errors
    /// As [`Slices::split`].
    pub fn of(recipe: Recipe, k: usize) -> Result<Option<Self>, RecipeError> {
        match recipe {
            Recipe::SingleWalk => Ok(Some(Self::whole(k))),
            Recipe::SplitKWorkspaceF32 { slices } => Self::split(k, slices).map(Some),
            Recipe::Copy
            | Recipe::RowReduction { .. }
            | Recipe::RopeBf16
            | Recipe::Flash2 { .. }
            | Recipe::Elementwise
            | Recipe::LowestIndex => Ok(None),
        }
    }

    /// Length of the dot products.
    pub fn k(&self) -> usize {
        self.k
    }

    /// The slices, ascending.
    pub fn ranges(&self) -> &[Range<usize>] {
        &self.ranges
    }
}

/// Columns that a kernel takes at a time: slices begin at multiples of it. Measured,
/// as the slices were; the canonical text of the recipe carries it.
pub(super) const K_TILE: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::profile::Profile;
    use crate::recipe::gemm::single_walk;

    const ONE: Bf16 = Bf16(0x3f80);
    /// 2^-24: half a last place of 1 in binary32.
    const HALF_ULP: Bf16 = Bf16(0x3380);

    /// Indices and values of the nonzero elements of a column.
    type Elements<'a> = &'a [(usize, Bf16)];

    fn hopper() -> MmaProfile {
        *Profile::by_id("h200").unwrap().mma("bf16").unwrap()
    }

    /// The sum of a column with these elements, in these slices.
    fn sum(k: usize, slices: &Slices, elements: Elements<'_>) -> F32 {
        let mut column = vec![Bf16::ZERO; k];
        for &(index, value) in elements {
            column[index] = value;
        }
        let sums = split_k_workspace_f32(&hopper(), &vec![ONE; k], &column, slices);
        assert_eq!(sums, [split_walk(&hopper(), &vec![ONE; k], &column, slices)]);
        sums[0]
    }

    #[test]
    fn slices_are_whole_tiles_and_the_last_is_what_is_left() {
        // (k, slices, first columns of the slices)
        let cases: [(usize, u8, &[usize]); 6] = [
            (4096, 2, &[0, 2048]),
            (4096, 3, &[0, 1408, 2816]), // 64 tiles: 22, 22, 20
            (9728, 2, &[0, 4864]),
            (9728, 3, &[0, 3264, 6528]), // 152 tiles: 51, 51, 50
            (9728, 5, &[0, 1984, 3968, 5952, 7936]), // 31, 31, 31, 31, 28
            (128, 2, &[0, 64]),
        ];
        for (k, count, starts) in cases {
            let slices = Slices::split(k, count).unwrap();
            let ends = starts[1..].iter().chain([&k]);
            let expected: Vec<_> = starts.iter().zip(ends).map(|(&a, &b)| a..b).collect();
            assert_eq!(slices.ranges(), expected, "{k} in {count}");
            assert_eq!(slices.k(), k);
        }
        // The largest k there is: no end of a slice overflows.
        let k = usize::MAX - 63;
        for count in [2, 255] {
            let slices = Slices::split(k, count).unwrap();
            assert_eq!(slices.ranges().last().unwrap().end, k, "{count} slices");
        }
        let whole = Slices::whole(100);
        assert_eq!((whole.k(), whole.ranges().len(), &whole.ranges()[0]), (100, 1, &(0..100)));
    }

    #[test]
    fn refuses_what_was_not_measured() {
        // (k, slices, sentence)
        let cases = [
            (4096, 0, "split-K in 0 slices is not covered: it needs at least 2"),
            (4096, 1, "split-K in 1 slices is not covered: it needs at least 2"),
            (
                100,
                2,
                "split-K of 100 columns is not modelled: k is no multiple of 64, where the library can lose the last terms",
            ),
            (384, 4, "split-K of 384 columns in 4 slices is not covered: the last would be empty"),
            (64, 2, "split-K of 64 columns in 2 slices is not covered: the last would be empty"),
            (0, 2, "split-K of 0 columns in 2 slices is not covered: the last would be empty"),
        ];
        for (k, count, sentence) in cases {
            assert_eq!(Slices::split(k, count).unwrap_err().to_string(), sentence);
            let recipe = Recipe::SplitKWorkspaceF32 { slices: count };
            assert_eq!(Slices::of(recipe, k).unwrap_err().to_string(), sentence);
        }
        assert_eq!(Slices::of(Recipe::SingleWalk, 100), Ok(Some(Slices::whole(100))));
        assert_eq!(Slices::of(Recipe::Elementwise, 128), Ok(None));
    }

    #[test]
    fn slices_keep_what_a_single_walk_cuts() {
        let (whole, halves) = (Slices::whole(128), Slices::split(128, 2).unwrap());
        let elements = [(0, ONE), (64, HALF_ULP), (80, HALF_ULP), (96, HALF_ULP)];
        assert_eq!(sum(128, &whole, &elements), F32::ONE, "each block cuts its half place");
        // 1 + 1.5 places is a tie: to even, where a walk would cut to 3f80_0001.
        assert_eq!(sum(128, &halves, &elements), F32(0x3f80_0002), "FADD rounds to nearest");
    }

    #[test]
    fn slices_are_added_left_to_right() {
        let slices = Slices::split(192, 3).unwrap();
        let rising = [(0, HALF_ULP), (64, HALF_ULP), (128, ONE)];
        assert_eq!(sum(192, &slices, &rising), F32(0x3f80_0001), "the halves first");
        let falling = [(0, ONE), (64, HALF_ULP), (128, HALF_ULP)];
        assert_eq!(sum(192, &slices, &falling), F32::ONE, "each half is a tie to even");
    }

    #[test]
    fn infinities_and_nans_meet_in_the_additions() {
        let slices = Slices::split(192, 3).unwrap();
        let (plus, minus, nan) = (Bf16(0x7f80), Bf16(0xff80), Bf16(0xffc1));
        // (elements, sum, reason)
        let cases: [(Elements<'_>, F32, &str); 6] = [
            (&[(70, plus)], F32::INFINITY, "one slice"),
            (&[(0, minus), (64, ONE), (191, minus)], F32::NEG_INFINITY, "of one sign"),
            (&[(0, plus), (191, minus)], F32::NAN, "of two signs, in two slices"),
            (&[(0, plus), (1, minus)], F32::NAN, "of two signs, in one slice"),
            (&[(130, nan), (0, ONE)], F32::NAN, "a NaN in the last slice"),
            (&[(3, nan), (64, plus)], F32::NAN, "a NaN in the first slice"),
        ];
        for (elements, expected, reason) in cases {
            assert_eq!(sum(192, &slices, elements), expected, "{reason}");
        }
        // Finite partial sums whose sum is too large.
        let most = Bf16(0x7f7f);
        assert_eq!(sum(192, &slices, &[(0, most), (64, most)]), F32::INFINITY);
    }

    #[test]
    fn one_slice_is_the_single_walk() {
        let (m, n, k) = (2, 3, 100);
        let code = |i: usize| Bf16((i as u32).wrapping_mul(0x9e37_79b1) as u16 & 0xbfff);
        let a: Vec<_> = (0..m * k).map(code).collect();
        let b: Vec<_> = (7..7 + n * k).map(code).collect();
        let whole = split_k_workspace_f32(&hopper(), &a, &b, &Slices::whole(k));
        assert_eq!(whole, single_walk(&hopper(), &a, &b, m, n, k));
    }
}
