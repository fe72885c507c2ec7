//! The kernel, and why it gives the bits of the scalar text.
//!
//! Notation: for a lane, `e_max` is the alignment exponent of rule R3, F is
//! `23 + neab` and at most 25, `s = 2^(F − e_max)`. A lane is *in range* if
//! `−98 ≤ e_max ≤ 118`.
//!
//! 1. *Exponent.* The deficits of both factors add up to how far a product lies
//!    below `E = largest_a + largest_b`; the least sum over k gives the largest
//!    product. Sums saturate at 255, which with `E ≤ 110` is below exponent −145,
//!    and zero factors are at 255 too: neither raises `e_max`. Sums are cut off
//!    at exponent −99, so a lane at −99 has no product and no accumulator from
//!    −98 on.
//! 2. *Products.* `a·b` has 16 significant bits: exact in binary32 unless it
//!    underflows, and then `|a·b| < 2^-125`, so `|a·b|·s < 1` (`s ≤ 2^124`), which
//!    the conversion cuts to zero, as R4 does. It cannot overflow (`E ≤ 110`).
//!    Multiplying by `s` is exact or underflows to less than one. The conversion
//!    truncates toward zero: R4.
//! 3. *Accumulator.* `c·s` likewise. A subnormal `c` counts as exponent 0 here
//!    instead of −126, which differs only below the range.
//! 4. *Sum.* `i32` addition; [`super::rows`] marks the rows for which the sum could
//!    exceed `2^31 − 128`. R5.
//! 5. *Result.* The sum is cut to 24 bits; `2^(e_max − F)` is at least `2^-124` and
//!    at most `2^93`, so the last multiplication is exact and stays normal or
//!    zero: R6. A zero sum converts to `+0`: R7.
//! 6. Infinities and NaNs: rows, columns and accumulators with any go to the
//!    scalar text: R8.
//!
//! *Which lanes are in range* is known beforehand for most walks, from the
//! exponents of all values so far ([`Bounds`]): then no lane is looked at. If
//! no product so far lay below exponent −98 and no accumulator at the start did,
//! a lane at −99 holds an accumulator that is a multiple of `2^-124`
//! (`2^(e_max − F)` of an earlier block, or the last place of a start value) and
//! below `2^-98`: `c·s` is an integer below `2^26`, and the result is `c` again, as
//! R3 to R6 give for an accumulator alone. Otherwise each block looks at its
//! lanes, and one at −99 is accepted only if its accumulator is zero and no product
//! of the block can lie below −98; its result is then `+0`.
#![allow(clippy::float_arithmetic)] // exact or below the window, as argued above

// Loops instead of `array::map`: its closure would be a function of its own, compiled
// without the caller's instruction set.

use std::ops::Range;

use super::columns::Columns;
use super::rows::{Decoded, RowBlock, RowKind, Rows};
use super::vector::Vector;
use super::{LARGEST_EXPONENT, LARGEST_PRODUCT_EXPONENT, LEAST_EXPONENT, NO_PRODUCT, Reach};
use crate::isa::mma::block_fma;
use crate::num::{Bf16, F32};

/// Rows that pass over a panel together: their accumulators (at most 64 KiB) and one
/// block of their values stay in a core's second cache.
const CHUNK: usize = 256;

/// Continues the walks of some rows with all columns: `out += rows · bᵀ`.
/// Returns how many blocks (a row, a panel, a block of K) took the scalar text.
///
/// # Shape
/// `b`: `[n, k]`; `out`: `[range.len(), n]`.
#[inline(always)]
pub(super) fn product<V: Vector<L>, const N: usize, const L: usize, const W: usize>(
    rows: &Rows<'_>,
    parts: &[Decoded<N>],
    range: Range<usize>,
    b: &[Bf16],
    out: &mut [F32],
) -> usize {
    let (m, k) = (rows.count(), rows.k);
    let n = b.len() / k;
    let finite = parts.iter().all(Decoded::finite);
    let mut columns = Columns::<N, L, W>::new();
    let mut c = vec![Lanes([[0.0; L]; 4]); range.len().min(CHUNK)];
    let mut escapes = 0;
    for first in (0..n).step_by(W) {
        let width = W.min(n - first);
        let b = &b[first * k..(first + width) * k];
        for (index, out) in out.chunks_mut(CHUNK * n).enumerate() {
            let start = range.start + index * CHUNK;
            let chunk = start..range.end.min(start + CHUNK);
            let c = &mut c[..chunk.len()];
            let mut bounds = Bounds::new(finite, load(c, out, n, first, width));
            let mut start = 0;
            for part in parts {
                for (blocks, &reach) in part.blocks.chunks_exact(m).zip(&part.reaches) {
                    columns.decode(b, k, start, N.min(k - start));
                    let products = Reach::products(reach, columns.reach);
                    bounds.extend(products, columns.finite, (start + N) as u64);
                    let step = Step { rows, first_row: chunk.start, start, b, columns: &columns };
                    let blocks = &blocks[chunk.clone()];
                    escapes += if bounds.known {
                        step.block::<V, false>(blocks, c)
                    } else {
                        step.block::<V, true>(blocks, c)
                    };
                    start += N;
                }
            }
            store(c, out, n, first, width);
        }
    }
    escapes
}

/// Accumulators of one row, lane `l` of vector `v` at `[v][l]`.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Lanes<const L: usize>([[f32; L]; 4]);

/// Takes accumulators; returns the exponents of the nonzero ones. `-0` and NaN
/// become `+0` and the canonical NaN, which the first block would do (R7, R8) and
/// a skipped zero block would not.
#[inline(always)]
fn load<const L: usize>(
    c: &mut [Lanes<L>],
    out: &[F32],
    n: usize,
    first: usize,
    width: usize,
) -> Option<Reach> {
    // Biased exponents, a zero's and a subnormal's 0.
    let (mut least, mut largest) = (u32::MAX, 0);
    for (c, out) in c.iter_mut().zip(out.chunks_exact(n)) {
        // A lane without a column holds 1, which nothing is added to: it never
        // looks odd.
        *c = Lanes([[1.0; L]; 4]);
        for (c, &out) in c.0.as_flattened_mut().iter_mut().zip(&out[first..first + width]) {
            *c = if out.is_zero() {
                0.0
            } else {
                let field = (out.0 >> 23) & 0xff;
                least = least.min(field);
                largest = largest.max(field);
                if out.is_nan() { F32::NAN.to_host() } else { out.to_host() }
            };
        }
    }
    let exponent = |field: u32| field as i32 - 127;
    (least <= largest).then(|| Reach { least: exponent(least), largest: exponent(largest) })
}

#[inline(always)]
fn store<const L: usize>(c: &[Lanes<L>], out: &mut [F32], n: usize, first: usize, width: usize) {
    for (c, out) in c.iter().zip(out.chunks_exact_mut(n)) {
        for (c, out) in c.0.as_flattened().iter().zip(&mut out[first..first + width]) {
            *out = F32(c.to_bits());
        }
    }
}

/// What is known of all blocks of a walk so far, for every lane of a panel.
struct Bounds {
    /// Exponents of the accumulators at the start and of all products.
    reach: Option<Reach>,
    /// Every lane is in range, or at −99 with an accumulator that survives there.
    known: bool,
}

impl Bounds {
    fn new(finite_rows: bool, accumulators: Option<Reach>) -> Self {
        Self { reach: accumulators, known: finite_rows }
    }

    /// Takes the products of one more block into account; `k` products so far.
    fn extend(&mut self, products: Option<Reach>, finite_columns: bool, k: u64) {
        self.reach = Reach::join(self.reach, products);
        if let Some(Reach { least, largest }) = self.reach {
            // A value of exponent e is below 2^(e+1), a product of exponent e below
            // 2^(e+2): k products and an accumulator are below 2^(e+2) · (k + 1).
            let growth = (k + 1).ilog2() as i32 + 1;
            self.known &= least >= LEAST_EXPONENT
                && largest <= LARGEST_PRODUCT_EXPONENT
                && largest + 2 + growth <= LARGEST_EXPONENT;
        }
        self.known &= finite_columns;
    }
}

/// One block of K for all rows of a chunk.
struct Step<'a, const N: usize, const L: usize, const W: usize> {
    rows: &'a Rows<'a>,
    first_row: usize,
    start: usize,
    b: &'a [Bf16],
    columns: &'a Columns<N, L, W>,
}

impl<const N: usize, const L: usize, const W: usize> Step<'_, N, L, W> {
    /// Adds the block to every row; `LOOK` unless [`Bounds::known`]. Returns the
    /// number of escapes.
    #[inline(always)]
    fn block<V: Vector<L>, const LOOK: bool>(
        &self,
        blocks: &[RowBlock<N>],
        c: &mut [Lanes<L>],
    ) -> usize {
        let columns = self.columns;
        let fraction_bits = 23 + i32::from(self.rows.profile.neab);
        let mut escapes = 0;
        for (row, (block, c)) in blocks.iter().zip(c).enumerate() {
            let ordinary = match (block.kind, columns.finite) {
                (RowKind::Ordinary, true) => match (block.reach, columns.reach) {
                    (Some(a), Some(b)) => {
                        fma::<V, N, L, W, LOOK>(block, columns, (a, b), fraction_bits, c)
                    }
                    (None, _) | (_, None) => true,
                },
                (RowKind::Zero, true) => true,
                (RowKind::Odd, _) | (_, false) => false,
            };
            if !ordinary {
                escapes += 1;
                self.escape(row, c);
            }
        }
        escapes
    }

    /// The scalar text for one row of the chunk.
    #[cold]
    fn escape(&self, row: usize, c: &mut Lanes<L>) {
        let k = self.rows.k;
        let (start, end) = (self.start, k.min(self.start + N));
        let row = (self.first_row + row) * k;
        let a = &self.rows.codes[row + start..row + end];
        for (c, column) in c.0.as_flattened_mut().iter_mut().zip(self.b.chunks_exact(k)) {
            let column = &column[start..end];
            *c = block_fma(&self.rows.profile, a, column, F32(c.to_bits())).to_host();
        }
    }
}

/// Bits of `2^exponent` in binary32.
const fn power_of_two(exponent: i32) -> i32 {
    (exponent + 127) << 23
}

/// One block FMA in every lane; false, with `c` untouched, where the proof does
/// not reach. `LOOK`: the lanes may be out of range.
#[inline(always)]
fn fma<V: Vector<L>, const N: usize, const L: usize, const W: usize, const LOOK: bool>(
    block: &RowBlock<N>,
    columns: &Columns<N, L, W>,
    (reach_a, reach_b): (Reach, Reach),
    fraction_bits: i32,
    c: &mut Lanes<L>,
) -> bool {
    let largest = reach_a.largest + reach_b.largest;
    if LOOK && largest > LARGEST_PRODUCT_EXPONENT {
        return false;
    }

    // 1. The alignment exponent of each lane, as the bits of its power of two.
    // Two chains of minima, so that one need not wait for the other.
    let mut deficit = [V::splat_bytes([NO_PRODUCT; 4]); 2];
    for k in 0..N {
        let column = V::load_bytes(&columns.deficits[k]);
        let product = V::saturating_sum(V::splat_bytes(block.deficits[k]), column);
        deficit[k % 2] = V::smaller_bytes(deficit[k % 2], product);
    }
    let base = largest.max(LEAST_EXPONENT - 1);
    let most = V::splat_bytes([(base - (LEAST_EXPONENT - 1)) as u8; 4]);
    let deficit = V::smaller_bytes(V::smaller_bytes(deficit[0], deficit[1]), most);
    let biased = V::minus_bytes(V::splat_bytes([(base + 127) as u8; 4]), deficit);
    let before = [V::load(&c.0[0]), V::load(&c.0[1]), V::load(&c.0[2]), V::load(&c.0[3])];
    let e_max = [
        V::larger(V::byte_as_exponent::<0>(biased), before[0].exponent_field()),
        V::larger(V::byte_as_exponent::<1>(biased), before[1].exponent_field()),
        V::larger(V::byte_as_exponent::<2>(biased), before[2].exponent_field()),
        V::larger(V::byte_as_exponent::<3>(biased), before[3].exponent_field()),
    ];
    if LOOK {
        let low = power_of_two(LEAST_EXPONENT);
        let span = (power_of_two(LARGEST_EXPONENT) - low) as u32;
        let no_low_product = reach_a.least + reach_b.least >= LEAST_EXPONENT;
        let survive = || no_low_product && zero_where_low::<V, L>(&e_max, c);
        if V::any_outside(&e_max, low, span) && !survive() {
            return false;
        }
    }

    // 2 to 4. The fixed-point sum in units of 2^(e_max − F).
    // Fields add like exponents: (127 + F) + 127 − (127 + e_max) = 127 + F − e_max.
    let scale_bits = V::splat_int(power_of_two(fraction_bits).wrapping_add(power_of_two(0)));
    let mut scale = before;
    let mut sum = e_max;
    for v in 0..4 {
        scale[v] = V::from_bits(V::minus(scale_bits, e_max[v]));
        sum[v] = before[v].times(scale[v]).cut();
    }
    for k in 0..N {
        let a = V::splat(block.values[k]);
        for v in 0..4 {
            let product = a.times(V::load(&columns.values[k][v])).times(scale[v]);
            sum[v] = V::plus(sum[v], product.cut());
        }
    }

    // 5. To binary32, toward zero.
    let fraction = V::splat_int(fraction_bits << 23);
    for v in 0..4 {
        let unit = V::from_bits(V::minus(e_max[v], fraction));
        V::toward_zero(sum[v]).times(unit).store(&mut c.0[v]);
    }
    true
}

/// Whether no lane lies above the range and all below it have a zero accumulator.
#[cold]
fn zero_where_low<V: Vector<L>, const L: usize>(e_max: &[V::Ints; 4], c: &Lanes<L>) -> bool {
    e_max.iter().zip(&c.0).all(|(&e_max, c)| {
        let mut lanes = [0.0; L];
        V::from_bits(e_max).store(&mut lanes);
        lanes.iter().zip(c).all(|(e_max, c)| {
            let e_max = e_max.to_bits() as i32;
            let in_range =
                (power_of_two(LEAST_EXPONENT)..=power_of_two(LARGEST_EXPONENT)).contains(&e_max);
            in_range || (e_max < power_of_two(LEAST_EXPONENT) && c.to_bits() == 0)
        })
    })
}
