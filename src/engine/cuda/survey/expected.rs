//! What the emulator says of the survey's products.

use std::ops::Range;

use rayon::prelude::*;

use crate::isa::fp32::fadd;
use crate::num::{Bf16, F32};
use crate::recipe::gemm::Walk;

/// Raw sums of `x · weightᵀ`, `[m, n]`: one walk for each slice of K, the walks added
/// in order.
pub(super) fn sums(
    walk: &Walk,
    x: &[Bf16],
    weight: &[Bf16],
    k: usize,
    slices: &[Range<usize>],
) -> Vec<F32> {
    let (m, n) = (x.len() / k, weight.len() / k);
    let columns_of = |matrix: &[Bf16], slice: &Range<usize>| -> Vec<Bf16> {
        matrix.chunks_exact(k).flat_map(|row| &row[slice.clone()]).copied().collect()
    };
    let parts: Vec<Vec<Bf16>> = slices.iter().map(|slice| columns_of(x, slice)).collect();
    let rows: Vec<_> =
        parts.iter().zip(slices).map(|(part, slice)| walk.rows(part, slice.len())).collect();
    let panels: Vec<Vec<F32>> = weight
        .par_chunks(PANEL * k)
        .map(|panel| {
            let width = panel.len() / k;
            let mut total: Option<Vec<F32>> = None;
            for (rows, slice) in rows.iter().zip(slices) {
                let mut own = vec![F32::ZERO; m * width];
                walk.continue_into(rows, &columns_of(panel, slice), &mut own);
                total = Some(match total {
                    None => own,
                    Some(sums) => sums.iter().zip(own).map(|(&a, b)| fadd(a, b)).collect(),
                });
            }
            total.unwrap_or_default()
        })
        .collect();
    let mut out = Vec::with_capacity(m * n);
    for row in 0..m {
        for panel in &panels {
            let width = panel.len() / m;
            out.extend_from_slice(&panel[row * width..(row + 1) * width]);
        }
    }
    out
}

/// Columns in one task.
const PANEL: usize = 64;
