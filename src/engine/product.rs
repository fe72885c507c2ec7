//! The product of a linear step, divided between threads by rows and columns.

use rayon::prelude::*;

use crate::num::{Bf16, F32};
use crate::recipe::gemm::Walk;

/// `out = round(x · weightᵀ)`, in parallel over blocks of the output.
///
/// # Shape
/// `x`: `[m, k]`; `weight`: `[n, k]`; `out`: `[m, n]`, none of the sizes 0.
///
/// # Rounding
/// One walk an output, rounded once to bf16. No walk crosses a thread, so the
/// number of threads cannot change a bit.
pub fn linear(walk: &Walk, x: &[Bf16], weight: &[Bf16], k: usize, out: &mut [Bf16]) {
    let (m, n) = (x.len() / k, weight.len() / k);
    let height = height(m);
    for (x, out) in x.chunks(height * k).zip(out.chunks_mut(height * n)) {
        part(walk, x, weight, (n, k), out);
    }
}

/// [`linear`] of rows that are computed together.
fn part(walk: &Walk, x: &[Bf16], weight: &[Bf16], (n, k): (usize, usize), out: &mut [Bf16]) {
    let m = x.len() / k;
    let rows = walk.rows_by(x, k, |parts, part| (0..parts).into_par_iter().map(part).collect());
    let panels = n.div_ceil(PANEL);
    let height = band(m, panels);
    let mut blocks: Vec<Vec<&mut [Bf16]>> = Vec::new();
    blocks.resize_with(m.div_ceil(height) * panels, Vec::new);
    for (blocks, band) in blocks.chunks_mut(panels).zip(out.chunks_mut(height * n)) {
        for row in band.chunks_mut(n) {
            for (block, columns) in blocks.iter_mut().zip(row.chunks_mut(PANEL)) {
                block.push(columns);
            }
        }
    }
    blocks.into_par_iter().enumerate().for_each(|(index, block)| {
        let (band, panel) = (index / panels, index % panels);
        let weight = &weight[panel * PANEL * k..n.min((panel + 1) * PANEL) * k];
        let width = weight.len() / k;
        let range = band * height..band * height + block.len();
        let mut accumulators = vec![F32::ZERO; block.len() * width];
        walk.continue_some_into(&rows, range, weight, &mut accumulators);
        for (out, row) in block.into_iter().zip(accumulators.chunks_exact(width)) {
            for (out, &c) in out.iter_mut().zip(row) {
                *out = Bf16::round(c);
            }
        }
    });
}

/// Rows that one thread computes at a time: all, or so few that every thread finds
/// several blocks of the output, but not fewer than pay for decoding the weights.
fn band(m: usize, panels: usize) -> usize {
    let bands = (4 * rayon::current_num_threads()).div_ceil(panels);
    m.div_ceil(bands).max(BAND).min(m.max(1))
}

/// Least rows of a band.
const BAND: usize = 64;

/// Output columns that one thread computes at a time.
const PANEL: usize = 64;

/// Most rows of a product computed together. They bound the decoded rows (43 MB at
/// k = 9728) and keep a panel's accumulators (128 KiB) in a core's own cache; for
/// more rows the weight is read again, which costs a hundredth of the product.
const ROWS: usize = 512;

/// Rows of a product of `m` rows that are computed together. Parts are of equal
/// height: a low one would cost as much to read the weight.
fn height(m: usize) -> usize {
    m.div_ceil(readings(m)).max(1)
}

/// How often a product of `m` rows reads its weight.
pub fn readings(m: usize) -> usize {
    m.div_ceil(ROWS).max(1)
}

/// Bytes that a product `[m, k] · [n, k]ᵀ` needs beside its operands and output.
pub fn scratch_bytes(m: usize, n: usize, k: usize, threads: usize) -> u64 {
    let height = height(m);
    let decoded = height * k * DECODED_BYTES;
    let panels = height * n.div_ceil(PANEL) * size_of::<&mut [Bf16]>();
    let accumulators = threads * height * PANEL * size_of::<F32>();
    (decoded + panels + accumulators) as u64
}

/// Bytes of one decoded element of A, of the form that takes most.
const DECODED_BYTES: usize = 8;
