//! Online-softmax attention of one query row over a key/value cache.
//!
//! Here: the strided view of a cache. [`flash2`] is FlashAttention-2's forward
//! order for one row, [`flash2_rows`](fn@flash2_rows::flash2_rows) the fast form for many. Other kernels' orders
//! (split-KV, cuDNN) are not here yet.

pub mod flash2;
pub mod flash2_rows;
mod softmax;

use super::RecipeError;
use crate::num::Bf16;

/// One head's rows in a `[tokens, heads, head_dim]` row-major cache.
#[derive(Clone, Copy, Debug)]
pub struct HeadRows<'a> {
    cache: &'a [Bf16],
    heads: usize,
    head: usize,
    head_dim: usize,
}

impl<'a> HeadRows<'a> {
    /// Views the rows of `head`.
    ///
    /// # Errors
    /// [`RecipeError::Head`] if there is no such head; [`RecipeError::Shape`] if
    /// `cache` does not consist of whole tokens.
    pub fn new(
        cache: &'a [Bf16],
        heads: usize,
        head: usize,
        head_dim: usize,
    ) -> Result<Self, RecipeError> {
        if head >= heads {
            return Err(RecipeError::Head { op: "attention", head, heads });
        }
        let token_len = heads * head_dim;
        let found = cache.len();
        let expected = found.checked_div(token_len).unwrap_or(0) * token_len;
        if found != expected || token_len == 0 {
            return Err(RecipeError::Shape { op: "attention", operand: "cache", expected, found });
        }
        Ok(Self { cache, heads, head, head_dim })
    }

    /// Tokens in the cache (count).
    pub fn tokens(&self) -> usize {
        self.cache.len() / (self.heads * self.head_dim)
    }

    /// Elements of one row.
    pub fn head_dim(&self) -> usize {
        self.head_dim
    }

    /// Returns the head's row of one token.
    ///
    /// # Panics
    /// If the cache has no such token.
    pub fn row(&self, token: usize) -> &'a [Bf16] {
        let start = (token * self.heads + self.head) * self.head_dim;
        &self.cache[start..start + self.head_dim]
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_rows;
