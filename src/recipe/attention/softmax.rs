//! Online softmax of many rows: R2 to R6 and R8 to R10 of `spec/ops.md`, `attention`.
//!
//! Everything is a loop over the columns of a row in arrays of fixed length, so that
//! it vectorises; [`super::flash2`] has the same steps one value at a time.

use super::flash2::{HEAD_DIM, QUAD, SCALE_LOG2, TILE};
use crate::isa::Vectorise;
use crate::isa::fp32::{fadd, fdiv, ffma, fmax_all, fmul, fsub};
use crate::isa::mufu::{ex2, ex2_lanes};
use crate::num::{Bf16, F32};

/// What one row has seen so far.
#[derive(Clone, Copy)]
pub(super) struct RowState {
    row_max: F32,
    /// One sum per thread of a quad; none before the first tile.
    row_sums: Option<[F32; QUAD]>,
}

impl Default for RowState {
    fn default() -> Self {
        Self { row_max: F32::NEG_INFINITY, row_sums: None }
    }
}

/// Takes the next tile's scores of every row: writes the rounded exponentials and
/// rescales what was accumulated before.
pub(super) struct Absorb<'a> {
    /// Maximum and sums.
    pub(super) states: &'a mut [RowState],
    /// Scores; the call leaves unrounded exponentials here.
    pub(super) scores: &'a mut [[F32; TILE]],
    /// Exponentials in BF16, the factors of `P·V`.
    pub(super) p: &'a mut [[Bf16; TILE]],
    /// `Σ p·V` so far.
    pub(super) output: &'a mut [[F32; HEAD_DIM]],
}

impl Vectorise for Absorb<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let rows = self.states.iter_mut().zip(self.scores).zip(self.p).zip(self.output);
        for (((state, scores), p), output) in rows {
            if let Some(rescale) = state.absorb(scores) {
                for o in output.iter_mut() {
                    *o = fmul(*o, rescale); // R6
                }
            }
            for (p, &score) in p.iter_mut().zip(scores.iter()) {
                *p = Bf16::round(score); // R7
            }
        }
    }
}

impl RowState {
    /// Replaces scores by exponentials; returns the factor for what was accumulated
    /// before, from the second tile on.
    #[inline(always)]
    fn absorb(&mut self, scores: &mut [F32; TILE]) -> Option<F32> {
        let previous = self.row_max;
        self.row_max = fmax_all(previous, scores); // R2
        let current = if self.row_max == F32::NEG_INFINITY { F32::ZERO } else { self.row_max }; // R2
        let max_scaled = fmul(current, SCALE_LOG2);
        for score in scores.iter_mut() {
            *score = fsub(fmul(*score, SCALE_LOG2), max_scaled); // R3
        }
        ex2_lanes(scores); // R3
        let rescale = self.row_sums.map(|_| ex2(fmul(fsub(previous, current), SCALE_LOG2))); // R4
        let firsts = std::array::from_fn(|t| scores[2 * t]);
        let mut sums: [F32; QUAD] = match (self.row_sums, rescale) {
            (Some(sums), Some(rescale)) => {
                std::array::from_fn(|t| ffma(sums[t], rescale, firsts[t])) // R5
            }
            (None, _) | (_, None) => firsts, // R5
        };
        // Columns 8g + 2t and 8g + 2t + 1 belong to thread t; the first is in already.
        let (groups, _) = scores.as_chunks::<{ 2 * QUAD }>();
        for (g, group) in groups.iter().enumerate() {
            if g > 0 {
                sums = std::array::from_fn(|t| fadd(sums[t], group[2 * t])); // R5
            }
            sums = std::array::from_fn(|t| fadd(sums[t], group[2 * t + 1])); // R5
        }
        self.row_sums = Some(sums);
        rescale
    }

    /// Divides what was accumulated by the sum of all exponentials.
    pub(super) fn normalise(&self, output: &[F32; HEAD_DIM], out: &mut [Bf16]) {
        let [s0, s1, s2, s3] = self.row_sums.unwrap_or_default();
        let total = fadd(fadd(s0, s2), fadd(s1, s3)); // R8
        let inverse =
            if total.is_zero() || total.is_nan() { F32::ONE } else { fdiv(F32::ONE, total) }; // R9
        for (out, &o) in out.iter_mut().zip(output) {
            *out = Bf16::round(fmul(o, inverse)); // R10
        }
    }
}
