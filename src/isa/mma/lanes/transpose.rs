//! Codes of many columns, turned so that a k's codes lie side by side.
//!
//! Weights are read from where the checkpoint stores them: one row a column of
//! the product. Here a block of them becomes k-major, eight by eight.
#![allow(unsafe_code)] // SSE2 and prefetches, which every x86-64 has

use crate::num::Bf16;

/// Side of the squares that are turned at once.
const SIDE: usize = 8;

/// How far ahead of a block the checkpoint is fetched, in elements: the next
/// blocks of the same columns, a cache line or two away.
const AHEAD: usize = 96;

/// Gathers `len` k's from `start` of up to `W` columns of length `k`; missing k's
/// and columns stay as they are in `codes`.
#[inline(always)]
pub(super) fn gather<const N: usize, const W: usize>(
    b: &[Bf16],
    k: usize,
    start: usize,
    len: usize,
    codes: &mut [[u16; W]; N],
) {
    let columns = (b.len() / k).min(W);
    let whole = if len == N { columns - columns % SIDE } else { 0 };
    for (index, b) in b[..whole * k].chunks_exact(SIDE * k).enumerate() {
        let first = index * SIDE;
        let mut blocks = [&[Bf16::ZERO; N]; SIDE];
        for (block, column) in blocks.iter_mut().zip(b.chunks_exact(k)) {
            prefetch(column, start);
            if let Some(codes) = column[start..].first_chunk() {
                *block = codes;
            }
        }
        for from in (0..N).step_by(SIDE) {
            let mut square = [&[Bf16::ZERO; SIDE]; SIDE];
            for (row, block) in square.iter_mut().zip(blocks) {
                if let Some(codes) = block[from..].first_chunk() {
                    *row = codes;
                }
            }
            for (codes, turned) in codes[from..].iter_mut().zip(turn(square)) {
                if let Some(codes) = codes[first..].first_chunk_mut() {
                    *codes = turned;
                }
            }
        }
    }
    for (lane, column) in b.chunks_exact(k).enumerate().take(columns).skip(whole) {
        for (codes, code) in codes.iter_mut().zip(&column[start..start + len]) {
            codes[lane] = code.0;
        }
    }
}

/// Turns a square of codes.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn turn(rows: [&[Bf16; SIDE]; SIDE]) -> [[u16; SIDE]; SIDE] {
    use std::arch::x86_64::*;
    let mut out = [[0; SIDE]; SIDE];
    // SAFETY: SSE2 is part of x86-64. Loads and stores are of eight elements of two
    // bytes and need no alignment.
    unsafe {
        let zero = _mm_setzero_si128();
        let mut r = [zero; SIDE];
        for (r, row) in r.iter_mut().zip(rows) {
            *r = _mm_loadu_si128(row.as_ptr().cast());
        }
        // Each step doubles the run of one k's codes: two rows, four rows, all eight.
        let mut twos = [zero; SIDE]; // rows 2i, 2i+1: k 0 to 3 at 2i, k 4 to 7 at 2i+1
        for i in [0, 2, 4, 6] {
            twos[i] = _mm_unpacklo_epi16(r[i], r[i + 1]);
            twos[i + 1] = _mm_unpackhi_epi16(r[i], r[i + 1]);
        }
        let mut fours = [zero; SIDE]; // rows 0 to 3, then 4 to 7: two k's each
        for (i, j) in [(0, 0), (1, 2), (4, 4), (5, 6)] {
            fours[j] = _mm_unpacklo_epi32(twos[i], twos[i + 2]);
            fours[j + 1] = _mm_unpackhi_epi32(twos[i], twos[i + 2]);
        }
        for i in 0..4 {
            let (first, second) = (2 * i, 2 * i + 1);
            let (low, high) = (fours[i], fours[i + 4]);
            _mm_storeu_si128(out[first].as_mut_ptr().cast(), _mm_unpacklo_epi64(low, high));
            _mm_storeu_si128(out[second].as_mut_ptr().cast(), _mm_unpackhi_epi64(low, high));
        }
    }
    out
}

/// Turns a square of codes.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn turn(rows: [&[Bf16; SIDE]; SIDE]) -> [[u16; SIDE]; SIDE] {
    std::array::from_fn(|k| std::array::from_fn(|column| rows[column][k].0))
}

/// Asks for the cache line [`AHEAD`] of element `start`.
#[inline(always)]
fn prefetch(column: &[Bf16], start: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let ahead = column.as_ptr().wrapping_add(start.wrapping_add(AHEAD));
        // SAFETY: a hint, which may name any address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(ahead.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (column, start);
}
