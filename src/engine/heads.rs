//! Attention of a step, divided between threads by heads and rows.

use rayon::prelude::*;

use crate::num::Bf16;
use crate::recipe::RecipeError;
use crate::recipe::attention::HeadRows;
use crate::recipe::attention::flash2_rows::{flash2_rows, own_tiles};
use crate::recipe::gemm::Walk;

/// The operands of an attention step.
#[derive(Clone, Copy, Debug)]
pub struct Attention<'a> {
    /// Queries, `[rows, query_heads · head_dim]`; heads that share a key/value head
    /// lie side by side.
    pub queries: &'a [Bf16],
    /// Kept keys, `[tokens, kv_heads · head_dim]`.
    pub keys: &'a [Bf16],
    /// Kept values, shaped as the keys.
    pub values: &'a [Bf16],
    /// Position of every row.
    pub positions: &'a [usize],
    /// Query heads; a multiple of the key/value heads.
    pub query_heads: usize,
    /// Key/value heads.
    pub kv_heads: usize,
    /// Elements of a head.
    pub head_dim: usize,
}

impl Attention<'_> {
    /// Computes all heads of all rows, in the order of the queries.
    ///
    /// # Errors
    /// As [`flash2_rows`].
    pub fn compute(&self, walk: &Walk) -> Result<Vec<Bf16>, RecipeError> {
        let kv_heads = self.kv_heads;
        let heads = self.query_heads / kv_heads;
        let width = heads * self.head_dim;
        let start = |row: usize, kv_head: usize| (row * kv_heads + kv_head) * width;
        let tiles = own_tiles(self.positions);
        // The last tile's rows see most keys; begun first, they are not waited for.
        let work: Vec<(usize, &[usize])> = tiles
            .iter()
            .rev()
            .flat_map(|rows| (0..kv_heads).map(move |kv_head| (kv_head, rows.as_slice())))
            .collect();
        let results: Result<Vec<Vec<Bf16>>, RecipeError> = work
            .par_iter()
            .map(|&(kv_head, rows)| {
                let keys = HeadRows::new(self.keys, kv_heads, kv_head, self.head_dim)?;
                let values = HeadRows::new(self.values, kv_heads, kv_head, self.head_dim)?;
                let of_head = rows.iter().map(|&row| &self.queries[start(row, kv_head)..][..width]);
                let queries: Vec<Bf16> = of_head.flatten().copied().collect();
                let positions: Vec<usize> = rows
                    .iter()
                    .flat_map(|&row| std::iter::repeat_n(self.positions[row], heads))
                    .collect();
                let mut out = vec![Bf16::ZERO; queries.len()];
                flash2_rows(walk, &queries, keys, values, &positions, &mut out)?;
                Ok(out)
            })
            .collect();
        let mut out = vec![Bf16::ZERO; self.queries.len()];
        for ((kv_head, rows), result) in work.into_iter().zip(results?) {
            for (&row, result) in rows.iter().zip(result.chunks_exact(width)) {
                out[start(row, kv_head)..][..width].copy_from_slice(result);
            }
        }
        Ok(out)
    }
}
