//! FlashAttention-2's forward order, for many query rows of one key/value head.
//!
//! Rows whose own key lies in the same tile walk the same tiles, so they walk
//! together: a tile is gathered once for all of them, and its two products are
//! matrix products with live accumulators. Each row takes the steps of
//! [`flash2_row`](super::flash2::flash2_row) in the same order; the rules R1 to R10
//! are those of `spec/ops.md`, `attention`.

use super::HeadRows;
use super::flash2::{HEAD_DIM, OP, TILE, check, flash2_row_with};
use super::softmax::{Absorb, RowState};
use crate::num::{Bf16, F32};
use crate::recipe::RecipeError;
use crate::recipe::error::expect_len;
use crate::recipe::gemm::Walk;

/// Computes causal attention of query rows that share a key/value head.
///
/// Rows are independent: a row's bits are those of
/// [`flash2_row`](super::flash2::flash2_row) whatever rows are beside it, in any order
/// of positions. It is fast where many rows have their own key in the same tile; a
/// caller with threads gives each one the rows of some [`own_tiles`].
///
/// # Shape
/// `q`, `out`: `[rows, 128]` BF16, where heads of a group are rows of their own;
/// `positions`: `[rows]`; `keys`, `values`: at least `position + 1` tokens of every row.
///
/// # Errors
/// As [`flash2_row`](super::flash2::flash2_row).
pub fn flash2_rows(
    walk: &Walk,
    q: &[Bf16],
    keys: HeadRows<'_>,
    values: HeadRows<'_>,
    positions: &[usize],
    out: &mut [Bf16],
) -> Result<(), RecipeError> {
    expect_len(OP, "query", positions.len() * HEAD_DIM, q.len())?;
    expect_len(OP, "output", positions.len() * HEAD_DIM, out.len())?;
    for rows in own_tiles(positions) {
        let gathered: Vec<Bf16> =
            rows.iter().flat_map(|&row| &q[row * HEAD_DIM..][..HEAD_DIM]).copied().collect();
        let positions: Vec<usize> = rows.iter().map(|&row| positions[row]).collect();
        let mut result = vec![Bf16::ZERO; gathered.len()];
        same_tile(walk, &gathered, keys, values, &positions, &mut result)?;
        for (row, result) in rows.iter().zip(result.chunks_exact(HEAD_DIM)) {
            out[row * HEAD_DIM..][..HEAD_DIM].copy_from_slice(result);
        }
    }
    Ok(())
}

/// Divides rows by the tile of their own key: the indices of the rows of each tile
/// that has any, both ascending.
pub fn own_tiles(positions: &[usize]) -> Vec<Vec<usize>> {
    let mut rows: Vec<usize> = (0..positions.len()).collect();
    rows.sort_by_key(|&row| positions[row] / TILE); // stable
    rows.chunk_by(|&a, &b| positions[a] / TILE == positions[b] / TILE).map(<[_]>::to_vec).collect()
}

/// [`flash2_rows`] of rows whose own key is in the same tile.
fn same_tile(
    walk: &Walk,
    q: &[Bf16],
    keys: HeadRows<'_>,
    values: HeadRows<'_>,
    positions: &[usize],
    out: &mut [Bf16],
) -> Result<(), RecipeError> {
    let Some(&last) = positions.iter().max() else { return Ok(()) };
    check(&q[..HEAD_DIM], keys, values, last, &out[..HEAD_DIM])?;
    let own = last / TILE;
    if values_are_odd(values, own * TILE..last + 1) {
        // A value that is absent for one row and present for another is a zero
        // factor in R7 for the first; with a zero `p` only finite values are.
        return row_by_row(walk, q, keys, values, positions, out);
    }

    let count = positions.len();
    let q = walk.rows(q, HEAD_DIM);
    let mut states = vec![RowState::default(); count];
    let mut scores = vec![[F32::ZERO; TILE]; count];
    let mut p = vec![[Bf16::ZERO; TILE]; count];
    let mut output = vec![[F32::ZERO; HEAD_DIM]; count];
    let mut key_rows = vec![[Bf16::ZERO; HEAD_DIM]; TILE];
    let mut value_rows = key_rows.clone();
    let mut value_columns = vec![[Bf16::ZERO; TILE]; HEAD_DIM];
    for tile in (0..=own).rev() {
        // Only the own tile, which is the first, can lack keys. Scores of missing
        // ones are masked, and their `p` is zero as their values are.
        let present = tile * TILE..(last + 1).min((tile + 1) * TILE);
        for ((token, key), value) in present.zip(&mut key_rows).zip(&mut value_rows) {
            key.copy_from_slice(keys.row(token));
            value.copy_from_slice(values.row(token));
        }
        for (d, column) in value_columns.iter_mut().enumerate() {
            for (element, row) in column.iter_mut().zip(&value_rows) {
                *element = row[d];
            }
        }

        scores.fill([F32::ZERO; TILE]);
        walk.continue_into(&q, key_rows.as_flattened(), scores.as_flattened_mut()); // R1
        if tile == own {
            for (scores, position) in scores.iter_mut().zip(positions) {
                scores[position % TILE + 1..].fill(F32::NEG_INFINITY); // R1
            }
        }
        walk.simd().vectorise(Absorb {
            states: &mut states,
            scores: &mut scores,
            p: &mut p,
            output: &mut output,
        }); // R2 to R6
        walk.continue_into(
            &walk.rows(p.as_flattened(), TILE),
            value_columns.as_flattened(),
            output.as_flattened_mut(),
        ); // R7
    }
    for ((state, output), out) in states.iter().zip(&output).zip(out.chunks_exact_mut(HEAD_DIM)) {
        state.normalise(output, out); // R8 to R10
    }
    Ok(())
}

fn values_are_odd(values: HeadRows<'_>, mut tokens: std::ops::Range<usize>) -> bool {
    tokens.any(|token| values.row(token).iter().any(|value| !value.is_finite()))
}

fn row_by_row(
    walk: &Walk,
    q: &[Bf16],
    keys: HeadRows<'_>,
    values: HeadRows<'_>,
    positions: &[usize],
    out: &mut [Bf16],
) -> Result<(), RecipeError> {
    let product = |a: &[Bf16], b: &[Bf16], k: usize, out: &mut [F32]| walk.walk_into(a, b, k, out);
    let rows = q.chunks_exact(HEAD_DIM).zip(out.chunks_exact_mut(HEAD_DIM)).zip(positions);
    for ((q, out), &position) in rows {
        flash2_row_with(product, q, keys, values, position, out)?;
    }
    Ok(())
}
