//! The product of a linear step, divided between threads by rows and columns.

use std::ops::Range;

use rayon::prelude::*;

use crate::isa::fp32::fadd;
use crate::isa::mma::lanes::Rows;
use crate::num::{Bf16, F32};
use crate::recipe::gemm::Walk;
use crate::recipe::split_k::Slices;

/// `out = round(x · weightᵀ)`, in parallel over blocks of the output.
///
/// # Shape
/// `x`: `[m, k]`; `weight`: `[n, k]`; `out`: `[m, n]`, none of the sizes 0; `k` is
/// that of the slices.
///
/// # Rounding
/// One walk a slice of K, added in order by FADD, rounded once to bf16
/// ([`crate::recipe::split_k`]; with one slice, the single walk). No output crosses a
/// thread, so the number of threads cannot change a bit.
pub fn linear(walk: &Walk, x: &[Bf16], weight: &[Bf16], slices: &Slices, out: &mut [Bf16]) {
    product(walk, (x, weight), slices, out, Bf16::round); // R3
}

/// [`linear`] before its last rounding: the sums in binary32.
pub fn sums(walk: &Walk, x: &[Bf16], weight: &[Bf16], slices: &Slices, out: &mut [F32]) {
    product(walk, (x, weight), slices, out, |sum| sum);
}

/// Every sum, made an output by `finish`.
fn product<T: Send>(
    walk: &Walk,
    (x, weight): (&[Bf16], &[Bf16]),
    slices: &Slices,
    out: &mut [T],
    finish: impl Fn(F32) -> T + Copy + Sync,
) {
    let k = slices.k();
    let (m, n) = (x.len() / k, weight.len() / k);
    let height = height(m);
    for (x, out) in x.chunks(height * k).zip(out.chunks_mut(height * n)) {
        part(walk, (x, weight), slices, out, finish);
    }
}

/// [`product`] of rows that are computed together.
fn part<T: Send>(
    walk: &Walk,
    (x, weight): (&[Bf16], &[Bf16]),
    slices: &Slices,
    out: &mut [T],
    finish: impl Fn(F32) -> T + Copy + Sync,
) {
    let k = slices.k();
    let (m, n) = (x.len() / k, weight.len() / k);
    let ranges = slices.ranges();
    let mut copies = vec![Vec::new(); ranges.len()];
    let decode = |(slice, copy)| decode(walk, columns(x, k, slice, copy), slice.len());
    let rows: Vec<Rows<'_>> = ranges.iter().zip(&mut copies).map(decode).collect();
    let panels = n.div_ceil(PANEL);
    let height = band(m, panels);
    let mut blocks: Vec<Vec<&mut [T]>> = Vec::new();
    blocks.resize_with(m.div_ceil(height) * panels, Vec::new);
    for (blocks, band) in blocks.chunks_mut(panels).zip(out.chunks_mut(height * n)) {
        for row in band.chunks_mut(n) {
            for (block, columns) in blocks.iter_mut().zip(row.chunks_mut(PANEL)) {
                block.push(columns);
            }
        }
    }
    blocks.into_par_iter().enumerate().for_each_init(Vec::new, |copy, (index, block)| {
        let (band, panel) = (index / panels, index % panels);
        let weight = &weight[panel * PANEL * k..n.min((panel + 1) * PANEL) * k];
        let width = weight.len() / k;
        let range = band * height..band * height + block.len();
        let mut sums = Vec::new();
        for (rows, slice) in rows.iter().zip(ranges) {
            let weight = columns(weight, k, slice, copy);
            let mut accumulators = vec![F32::ZERO; block.len() * width];
            walk.continue_some_into(rows, range.clone(), weight, &mut accumulators);
            if sums.is_empty() {
                sums = accumulators;
            } else {
                for (sum, c) in sums.iter_mut().zip(accumulators) {
                    *sum = fadd(*sum, c); // R2
                }
            }
        }
        for (out, row) in block.into_iter().zip(sums.chunks_exact(width)) {
            for (out, &sum) in out.iter_mut().zip(row) {
                *out = finish(sum);
            }
        }
    });
}

/// Decodes rows of `k`, shared between threads.
fn decode<'a>(walk: &Walk, x: &'a [Bf16], k: usize) -> Rows<'a> {
    walk.rows_by(x, k, |parts, part| (0..parts).into_par_iter().map(part).collect())
}

/// Some columns of a matrix with rows of `k`, as rows of their own in `copy`; all
/// columns are the matrix itself.
fn columns<'a>(
    matrix: &'a [Bf16],
    k: usize,
    slice: &Range<usize>,
    copy: &'a mut Vec<Bf16>,
) -> &'a [Bf16] {
    if *slice == (0..k) {
        return matrix;
    }
    copy.clear();
    copy.reserve_exact(matrix.len() / k * slice.len());
    for row in matrix.chunks_exact(k) {
        copy.extend_from_slice(&row[slice.clone()]);
    }
    copy
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
pub fn scratch_bytes(m: usize, n: usize, slices: &Slices, threads: usize) -> u64 {
    let (height, k) = (height(m), slices.k());
    let decoded = height * k * DECODED_BYTES;
    let panels = height * n.div_ceil(PANEL) * size_of::<&mut [Bf16]>();
    let accumulators = threads * height * PANEL * size_of::<F32>();
    let copies = match slices.ranges() {
        [_] => 0,
        // The rows; and for each thread a slice's part of a panel of the weight, and
        // its accumulators beside the sums.
        several => {
            let longest = several.iter().map(Range::len).max().unwrap_or(0);
            (height * k + threads * PANEL * longest) * size_of::<Bf16>() + accumulators
        }
    };
    (decoded + panels + accumulators + copies) as u64
}

/// Bytes of one decoded element of A, of the form that takes most.
const DECODED_BYTES: usize = 8;

#[cfg(test)]
mod tests;
