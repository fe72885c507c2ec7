//! Matrix products as walks along K.
//!
//! A walk is a chain of block FMAs over ascending k: the way one output element
//! of a matrix product is accumulated when no other warp or kernel shares its K
//! range. The functions are the slow, obvious form, the oracle of the fast one,
//! [`Walk`], which gives the same bits.

use std::ops::Range;

use crate::isa::mma::lanes::{Part, Rows};
use crate::isa::mma::{MmaProfile, Simd, block_fma};
use crate::num::{Bf16, F32};

/// Continues a walk: adds `Σ a[k]·b[k]` to the accumulator `c`.
///
/// # Shape
/// `a`, `b`: `[k]`. A `k` that is not a multiple of `n_fma` ends in a shorter
/// block, which equals one padded with zeros.
///
/// # Rounding
/// One conversion a block of `n_fma`, k ascending (`spec/isa.md`, R4 to R6).
///
/// # Panics
/// If `a` and `b` differ in length.
pub fn walk(profile: &MmaProfile, a: &[Bf16], b: &[Bf16], c: F32) -> F32 {
    assert_eq!(a.len(), b.len(), "factors of a walk");
    let n_fma = usize::from(profile.n_fma);
    a.chunks(n_fma).zip(b.chunks(n_fma)).fold(c, |c, (a, b)| block_fma(profile, a, b, c))
}

/// Walks through the vector lanes of the machine at hand: the same bits as the
/// functions of this module, on every [`Simd`].
///
/// Work is divided between threads by rows and columns: [`Walk::rows`] once, then
/// [`Walk::continue_some_into`] for disjoint ranges of A and B. One thread sees a whole
/// walk, so the number of threads cannot change a bit.
#[derive(Clone, Copy, Debug)]
pub struct Walk {
    profile: MmaProfile,
    simd: Simd,
}

impl Walk {
    /// Walks with these parameters on this instruction set.
    pub fn new(profile: &MmaProfile, simd: Simd) -> Self {
        Self { profile: *profile, simd }
    }

    /// Parameters of the block FMA.
    pub fn profile(&self) -> &MmaProfile {
        &self.profile
    }

    /// The instruction set.
    pub fn simd(&self) -> Simd {
        self.simd
    }

    /// Decodes rows of A, to be used with any number of column ranges.
    ///
    /// # Panics
    /// If `k` is zero or `a` is not a whole number of rows of `k`.
    pub fn rows<'a>(&self, a: &'a [Bf16], k: usize) -> Rows<'a> {
        self.rows_by(a, k, |parts, part| (0..parts).map(part).collect())
    }

    /// [`Walk::rows`], where `run` makes all of so many independent parts, in order; it
    /// may share them between threads.
    ///
    /// # Panics
    /// As [`Walk::rows`].
    pub fn rows_by<'a>(
        &self,
        a: &'a [Bf16],
        k: usize,
        run: impl FnOnce(usize, &(dyn Fn(usize) -> Part + Sync)) -> Vec<Part>,
    ) -> Rows<'a> {
        self.simd.rows(&self.profile, a, k, run)
    }

    /// Continues one walk per output element, as [`walk_into`].
    ///
    /// # Shape
    /// `rows`: `[m, k]`; `b`: `[n, k]`; `out`: `[m, n]` live accumulators.
    ///
    /// # Panics
    /// If `b` is not a whole number of columns of `k`, or `out` is not `m·n`.
    pub fn continue_into(&self, rows: &Rows<'_>, b: &[Bf16], out: &mut [F32]) {
        self.continue_some_into(rows, 0..rows.count(), b, out);
    }

    /// [`Walk::continue_into`] for a range of the rows; `out`: `[range.len(), n]`.
    ///
    /// # Panics
    /// As [`Walk::continue_into`], and if there are no such rows.
    pub fn continue_some_into(
        &self,
        rows: &Rows<'_>,
        range: Range<usize>,
        b: &[Bf16],
        out: &mut [F32],
    ) {
        self.simd.walk_into(rows, range, b, out);
    }

    /// [`walk_into`].
    ///
    /// # Panics
    /// As [`walk_into`].
    pub fn walk_into(&self, a: &[Bf16], b: &[Bf16], k: usize, out: &mut [F32]) {
        if k > 0 {
            self.continue_into(&self.rows(a, k), b, out);
        }
    }

    /// [`single_walk`].
    ///
    /// # Panics
    /// As [`single_walk`].
    pub fn single_walk(&self, a: &[Bf16], b: &[Bf16], m: usize, n: usize, k: usize) -> Vec<F32> {
        let mut out = vec![F32::ZERO; m * n];
        self.walk_into(a, b, k, &mut out);
        out
    }
}

/// Returns the raw accumulators of `a · bᵀ`: one walk over all of K from `+0`
/// per output element.
///
/// # Shape
/// `a`: `[m, k]`; `b`: `[n, k]`, a weight as it is stored; result: `[m, n]`.
///
/// # Rounding
/// As [`walk`]. The caller rounds to the output type.
///
/// # Panics
/// If the lengths are not `m·k` and `n·k`.
///
/// # Source
/// cuBLASLt kernels without split-K on H200, CUDA 13; CUTLASS device products on
/// A100, L40S and H100, CUDA 12 (arXiv:2606.00279).
pub fn single_walk(
    profile: &MmaProfile,
    a: &[Bf16],
    b: &[Bf16],
    m: usize,
    n: usize,
    k: usize,
) -> Vec<F32> {
    let mut out = vec![F32::ZERO; m * n];
    walk_into(profile, a, b, k, &mut out);
    out
}

/// Continues one walk per output element: `out += a · bᵀ`.
///
/// # Shape
/// `a`: `[m, k]`; `b`: `[n, k]`; `out`: `[m, n]` live accumulators. `m` and `n`
/// follow from the lengths.
///
/// # Panics
/// If `a` or `b` is not a whole number of rows of `k`, or `out` is not `m·n`.
pub fn walk_into(profile: &MmaProfile, a: &[Bf16], b: &[Bf16], k: usize, out: &mut [F32]) {
    if k == 0 {
        return;
    }
    assert!(a.len().is_multiple_of(k) && b.len().is_multiple_of(k), "whole rows of {k}");
    let n = b.len() / k;
    assert_eq!(out.len(), a.len() / k * n, "accumulators of a product");
    if n == 0 {
        return;
    }
    for (row, out) in a.chunks_exact(k).zip(out.chunks_exact_mut(n)) {
        for (column, c) in b.chunks_exact(k).zip(out) {
            *c = walk(profile, row, column, *c);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::profile::Profile;

    fn bf16(values: &[f32]) -> Vec<Bf16> {
        values.iter().map(|&x| Bf16::round(F32::from_host(x))).collect()
    }

    #[test]
    fn multiplies_by_stored_rows() {
        let profile = Profile::by_id("h200").unwrap();
        let a = bf16(&[1.0, 2.0, 3.0, 4.0]); // 2 x 2
        let b = bf16(&[1.0, 0.0, 1.0, 1.0, 0.0, -1.0]); // 3 x 2
        let out = single_walk(profile.mma("bf16").unwrap(), &a, &b, 2, 3, 2);
        let host: Vec<f32> = out.iter().map(|x| x.to_host()).collect();
        assert_eq!(host, [1.0, 3.0, -2.0, 3.0, 7.0, -4.0]);
    }

    #[test]
    fn each_block_truncates_once() {
        // 1 + 2^-25 + 2^-25 + ...: within one block the parts add up to an ulp of
        // binary32 before the cut; one per block is lost every time.
        let profile = Profile::by_id("h200").unwrap();
        let hopper = profile.mma("bf16").unwrap();
        let tiny = Bf16(0x3300); // 2^-25
        let ones = vec![Bf16(0x3f80); 64];
        let mut together = vec![Bf16::ZERO; 64];
        together[..4].fill(tiny);
        let mut apart = vec![Bf16::ZERO; 64];
        for block in 0..4 {
            apart[16 * block] = tiny;
        }
        assert_eq!(walk(hopper, &ones, &together, F32::ONE), F32(0x3f80_0001));
        assert_eq!(walk(hopper, &ones, &apart, F32::ONE), F32::ONE);
    }

    #[test]
    fn every_instruction_set_gives_the_bits_of_the_functions() {
        let profile = Profile::by_id("h200").unwrap();
        let hopper = profile.mma("bf16").unwrap();
        let (m, n, k) = (3, 70, 45);
        let code = |i: usize| Bf16((i as u32).wrapping_mul(0x9e37_79b1) as u16 & 0xbfff);
        let a: Vec<_> = (0..m * k).map(code).collect();
        let b: Vec<_> = (7..7 + n * k).map(code).collect();
        let expected = single_walk(hopper, &a, &b, m, n, k);
        for simd in Simd::available() {
            let walk = Walk::new(hopper, simd);
            assert_eq!(walk.single_walk(&a, &b, m, n, k), expected, "{}", simd.name());

            // In two ranges of columns, and continued from a live accumulator.
            let rows = walk.rows(&a, k);
            let mut halves = vec![expected.clone(), expected[..m * 30].to_vec()];
            let mut again = halves.clone();
            for (start, end, out) in [(0, 70, 0), (40, 70, 1)] {
                walk.continue_into(&rows, &b[start * k..end * k], &mut halves[out]);
                walk_into(hopper, &a, &b[start * k..end * k], k, &mut again[out]);
            }
            assert_eq!(halves, again, "{}", simd.name());
        }
    }

    #[test]
    fn a_product_without_terms_is_zero() {
        let profile = Profile::by_id("h200").unwrap();
        let walk = Walk::new(profile.mma("bf16").unwrap(), Simd::detect());
        assert_eq!(walk.single_walk(&[], &[], 2, 2, 0), [F32::ZERO; 4]);
        assert_eq!(walk.single_walk(&[], &[Bf16::ZERO; 4], 0, 2, 2), []);
        assert_eq!(walk.single_walk(&[Bf16::ZERO; 4], &[], 2, 0, 2), []);
    }

    #[test]
    fn a_short_last_block_equals_zero_padding() {
        let profile = Profile::by_id("a100").unwrap();
        let ampere = profile.mma("bf16").unwrap();
        let a = bf16(&[1.5; 11]);
        let b = bf16(&[-0.75; 11]);
        let mut padded = (a.clone(), b.clone());
        padded.0.resize(16, Bf16(0x8000));
        padded.1.resize(16, Bf16(0x7f7f));
        let c = F32(0x3f80_0001);
        assert_eq!(walk(ampere, &a, &b, c), walk(ampere, &padded.0, &padded.1, c));
    }
}
