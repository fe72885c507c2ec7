//! FlashAttention-2's forward order, for one query row.
//!
//! Tiles of 64 keys are cut by key index and walked from the query's own tile
//! down to the first, so a row has the same bits in a prefill of any length and
//! in a decode step. Rounding numbers are those of `spec/ops.md`, `attention`.

use super::HeadRows;
use crate::isa::fp32::{fadd, fdiv, ffma, fmax, fmul, fsub};
use crate::isa::mma::MmaProfile;
use crate::isa::mufu::ex2;
use crate::num::{Bf16, F32};
use crate::recipe::RecipeError;
use crate::recipe::error::expect_len;
use crate::recipe::gemm::walk_into;

/// Computes causal attention of one query head at `position`.
///
/// # Shape
/// `q`, `out`: `[128]` BF16; `keys`, `values`: the rows of the query's
/// key/value head, at least `position + 1` tokens. Later tokens are not read.
///
/// # Rounding
/// R1 to R10 of `spec/ops.md`: scores and `P·V` are chains of block FMAs of the
/// profile, the exponent's argument is two rounded products and their rounded
/// difference, row sums use unrounded `p`, `P·V` uses BF16 `p`, one IEEE reciprocal.
///
/// # Special values
/// A NaN or `+∞` score gives a row of `7fff`. A row maximum of `−∞` counts as 0;
/// a total of 0 or NaN divides by 1. A `V` that is not finite under `p = +0` gives NaN.
///
/// # Errors
/// [`RecipeError::HeadDim`], [`RecipeError::Shape`] (C1);
/// [`RecipeError::Position`] if the query's own key is not present (C2).
///
/// # Source
/// `pytorch_flash::flash_fwd_kernel` of PyTorch 2.11, compared on an H200: 27.4 M
/// outputs, 0 differ.
pub fn flash2_row(
    profile: &MmaProfile,
    q: &[Bf16],
    keys: HeadRows<'_>,
    values: HeadRows<'_>,
    position: usize,
    out: &mut [Bf16],
) -> Result<(), RecipeError> {
    let product =
        |a: &[Bf16], b: &[Bf16], k: usize, out: &mut [F32]| walk_into(profile, a, b, k, out);
    flash2_row_with(product, q, keys, values, position, out)
}

/// [`flash2_row`] with the tensor core given by the caller.
///
/// `product(a, b, k, out)` continues one walk per output, `out += a · bᵀ`, with
/// `a`: `[1, k]`, `b`: `[n, k]`, `out`: `[n]` and `k` a multiple of 16. A faster one
/// must give the bits of [`walk_into`].
///
/// # Errors
/// As [`flash2_row`].
pub fn flash2_row_with(
    product: impl Fn(&[Bf16], &[Bf16], usize, &mut [F32]),
    q: &[Bf16],
    keys: HeadRows<'_>,
    values: HeadRows<'_>,
    position: usize,
    out: &mut [Bf16],
) -> Result<(), RecipeError> {
    check(q, keys, values, position, out)?;
    let Accumulated { output, total } = accumulate(product, q, keys, values, position);
    let inverse = if total.is_zero() || total.is_nan() { F32::ONE } else { fdiv(F32::ONE, total) }; // R9
    for (out, o) in out.iter_mut().zip(output) {
        *out = Bf16::round(fmul(o, inverse)); // R10
    }
    Ok(())
}

/// A row before its normalisation.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Accumulated {
    /// `Σ p·V`, relative to the row maximum.
    pub(super) output: [F32; HEAD_DIM],
    /// `Σ p`.
    pub(super) total: F32,
}

/// Walks the tiles: R1 to R8. Operands were checked.
pub(super) fn accumulate(
    product: impl Fn(&[Bf16], &[Bf16], usize, &mut [F32]),
    q: &[Bf16],
    keys: HeadRows<'_>,
    values: HeadRows<'_>,
    position: usize,
) -> Accumulated {
    let mut softmax = OnlineSoftmax::default();
    let mut output = [F32::ZERO; HEAD_DIM];
    for tile in (0..=position / TILE).rev() {
        let first = tile * TILE;
        let present = first..(position + 1).min(first + TILE);

        let key_rows: Vec<Bf16> =
            present.clone().flat_map(|token| keys.row(token)).copied().collect();
        let mut scores = [F32::ZERO; TILE];
        product(q, &key_rows, HEAD_DIM, &mut scores[..present.len()]); // R1
        scores[present.len()..].fill(F32::NEG_INFINITY); // R1

        let (p, rescale) = softmax.absorb(&scores);
        if let Some(rescale) = rescale {
            output = output.map(|o| fmul(o, rescale)); // R6
        }

        // A block of absent keys only would give its accumulator back (R7).
        let columns = present.len().next_multiple_of(BLOCK);
        let mut value_columns = vec![Bf16::ZERO; HEAD_DIM * columns];
        for (column, token) in present.enumerate() {
            for (d, &v) in values.row(token).iter().enumerate() {
                value_columns[d * columns + column] = v;
            }
        }
        let p = p.map(Bf16::round); // R7
        product(&p[..columns], &value_columns, columns, &mut output); // R7
    }
    Accumulated { output, total: softmax.total() }
}

pub(super) fn check(
    q: &[Bf16],
    keys: HeadRows<'_>,
    values: HeadRows<'_>,
    position: usize,
    out: &[Bf16],
) -> Result<(), RecipeError> {
    for head_dim in [keys.head_dim(), values.head_dim()] {
        if head_dim != HEAD_DIM {
            return Err(RecipeError::HeadDim { op: OP, head_dim });
        }
    }
    expect_len(OP, "query", HEAD_DIM, q.len())?;
    expect_len(OP, "output", HEAD_DIM, out.len())?;
    let limit = keys.tokens().min(values.tokens());
    if position < limit { Ok(()) } else { Err(RecipeError::Position { op: OP, position, limit }) }
}

/// Running maximum and row sums of one query row.
struct OnlineSoftmax {
    row_max: F32,
    /// One sum per thread of a quad; none before the first tile.
    row_sums: Option<[F32; QUAD]>,
}

impl Default for OnlineSoftmax {
    fn default() -> Self {
        Self { row_max: F32::NEG_INFINITY, row_sums: None }
    }
}

impl OnlineSoftmax {
    /// Takes the next tile's scores; returns its exponentials and, from the second
    /// tile on, the factor for what was accumulated before.
    fn absorb(&mut self, scores: &[F32; TILE]) -> ([F32; TILE], Option<F32>) {
        let previous = self.row_max;
        self.row_max = scores.iter().fold(previous, |max, &score| fmax(max, score)); // R2
        // An all-masked row would otherwise subtract −∞ from −∞.
        let current = if self.row_max == F32::NEG_INFINITY { F32::ZERO } else { self.row_max }; // R2
        let max_scaled = fmul(current, SCALE_LOG2);
        let p = scores.map(|score| ex2(fsub(fmul(score, SCALE_LOG2), max_scaled))); // R3
        let rescale =
            self.row_sums.is_some().then(|| ex2(fmul(fsub(previous, current), SCALE_LOG2))); // R4
        self.row_sums = Some(std::array::from_fn(|thread| {
            let mut own = (0..TILE).filter(|column| column / 2 % QUAD == thread).map(|c| p[c]);
            let first = own.next().unwrap_or(F32::ZERO);
            let start = match (self.row_sums, rescale) {
                (Some(sums), Some(rescale)) => ffma(sums[thread], rescale, first), // R5
                (None, _) | (_, None) => first,
            };
            own.fold(start, fadd) // R5
        }));
        (p, rescale)
    }

    /// The sum of all exponentials.
    fn total(&self) -> F32 {
        let [s0, s1, s2, s3] = self.row_sums.unwrap_or_default();
        fadd(fadd(s0, s2), fadd(s1, s3)) // R8
    }
}

pub(super) const OP: &str = "attention";
pub(super) const HEAD_DIM: usize = 128;
/// Keys of a tile (`flash_fwd_kernel`, 128 × 64 tiles at head size 128).
pub(super) const TILE: usize = 64;
/// Keys of one `mma.sync.m16n8k16`.
const BLOCK: usize = 16;
/// Threads that share a row of the tensor core's output.
pub(super) const QUAD: usize = 4;
/// binary32 of `1/√128 · log2 e`.
pub(super) const SCALE_LOG2: F32 = F32(0x3e02_93ee);
