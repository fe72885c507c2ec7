//! A linear step of several passes, whose products may follow different recipes.
//!
//! A library chooses a product's algorithm by its size, so a prompt's pass can follow
//! another recipe than passes of one token. Rows of one recipe are computed
//! together: a weight is read once for each distinct recipe. Rows are independent,
//! so which rows are beside a row changes none of its bits.

use std::ops::Range;

use super::emulator::{fault, refused, unknown};
use super::{EngineError, Group, product};
use crate::num::Bf16;
use crate::plan::Step;
use crate::recipe::Recipe;
use crate::recipe::gemm::Walk;
use crate::recipe::split_k::Slices;

/// The rows of a stacked value whose products follow one recipe.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Share {
    /// The recipe.
    pub recipe: Recipe,
    /// Its rows, ascending; neighbours are joined.
    pub rows: Vec<Range<usize>>,
}

impl Share {
    /// Number of rows.
    pub fn count(&self) -> usize {
        self.rows.iter().map(Range::len).sum()
    }
}

/// Distinct recipes of the steps that are executed together, with their rows; in the
/// order in which they first occur.
pub fn shares<'a>(steps: impl Iterator<Item = &'a Step>) -> Vec<Share> {
    let mut shares: Vec<Share> = Vec::new();
    let mut end = 0;
    for step in steps {
        let rows = end..end + step.rows;
        end = rows.end;
        match shares.iter_mut().find(|share| share.recipe == step.recipe) {
            None => shares.push(Share { recipe: step.recipe, rows: vec![rows] }),
            Some(share) => match share.rows.last_mut() {
                Some(last) if last.end == rows.start => last.end = rows.end,
                Some(_) | None => share.rows.push(rows),
            },
        }
    }
    shares
}

/// `round(x · weightᵀ)` for all rows of a group, each by the recipe of its part.
///
/// # Shape
/// `x`: `[rows, k]`; `weight`: `[columns, k]`; result: `[rows, columns]`.
///
/// # Rounding
/// As [`product::linear`].
///
/// # Errors
/// [`EngineError::Operand`] if the shapes do not fit, [`EngineError::Recipe`] if a
/// part's recipe is no product's, [`EngineError::Refused`] if it does not cover `k`.
pub(super) fn linear(
    walk: &Walk,
    group: &Group<'_>,
    x: &[Bf16],
    weight: &[Bf16],
    k: usize,
) -> Result<Vec<Bf16>, EngineError> {
    let step = group.step();
    let (rows, n) = (group.rows(), step.columns);
    if weight.len() != n * k || n == 0 || k == 0 || x.len() != rows * k {
        return Err(fault(step, "weight and input do not fit"));
    }
    let mut products = Vec::new();
    for share in shares(group.parts.iter().map(|part| part.step)) {
        let slices = Slices::of(share.recipe, k).map_err(|error| refused(step, &error))?;
        products.push((slices.ok_or_else(|| unknown(step, share.recipe))?, share));
    }
    let mut out = vec![Bf16::ZERO; rows * n];
    if let [(slices, _)] = &products[..] {
        product::linear(walk, x, weight, slices, &mut out);
        return Ok(out);
    }
    for (slices, share) in products {
        let mut own = Vec::with_capacity(share.count() * k);
        for rows in &share.rows {
            own.extend_from_slice(&x[rows.start * k..rows.end * k]);
        }
        let mut computed = vec![Bf16::ZERO; share.count() * n];
        product::linear(walk, &own, weight, &slices, &mut computed);
        let mut rest = &computed[..];
        for rows in &share.rows {
            let (these, later) = rest.split_at(rows.len() * n);
            out[rows.start * n..rows.end * n].copy_from_slice(these);
            rest = later;
        }
    }
    Ok(out)
}

/// Bytes that a linear step of these passes needs beside its operands and output.
/// Nothing is computed by a recipe that refuses `k`.
pub(super) fn scratch_bytes<'a>(
    steps: impl Iterator<Item = &'a Step>,
    (n, k): (usize, usize),
    threads: usize,
) -> u64 {
    let shares = shares(steps);
    let several = shares.len() > 1;
    let of = |share: &Share| {
        let Ok(Some(slices)) = Slices::of(share.recipe, k) else { return 0 };
        let rows = share.count();
        let copies = if several { rows * (k + n) * size_of::<Bf16>() } else { 0 };
        product::scratch_bytes(rows, n, &slices, threads) + copies as u64
    };
    shares.iter().map(of).max().unwrap_or(0)
}

#[cfg(test)]
mod tests;
