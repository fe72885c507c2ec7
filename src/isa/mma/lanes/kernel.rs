//! The kernel, and why it gives the bits of the scalar text.
//!
//! Notation: for a lane, `e_max` is the alignment exponent of rule R3, F is
//! `23 + neab` and at most 25, `s = 2^(F − e_max)`. A lane is *in range* if
//! `−98 ≤ e_max ≤ 118`.
//!
//! 1. *Exponent.* A factor lies at 55 or below. A row's height `e_a + 191` less a
//!    column's depth `64 − e_b` is the biased exponent of their product, at most 237;
//!    heights lie in 65 to 246 and depths in 9 to 190. The difference stops at zero,
//!    and is zero for a factor of zero (height 0 or depth 255); the largest one over
//!    k is cut off at the biased exponent of −99. So neither a zero nor a product
//!    below −99 raises `e_max`, and a lane at −99 has no product and no accumulator
//!    from −98 on.
//! 2. *Products.* `a·b` has 16 significant bits: exact in binary32 unless it
//!    underflows, and then `|a·b| < 2^-125`, so `|a·b|·s < 1` (`s ≤ 2^124`), which
//!    the conversion cuts to zero, as R4 does. It cannot overflow (`|a·b| < 2^112`).
//!    Multiplying by `s` is exact or underflows to less than one. The conversion
//!    truncates toward zero: R4.
//! 3. *Accumulator.* `c·s` likewise. A subnormal `c` counts as exponent 0 here
//!    instead of −126, which differs only below the range.
//! 4. *Sum.* `i32` addition; [`super::rows`] marks the rows for which the sum could
//!    exceed `2^31 − 128`. R5.
//! 5. *Result.* The sum is cut to 24 bits; `2^(e_max − F)` is at least `2^-124` and
//!    at most `2^93`, so the last multiplication is exact and stays normal or
//!    zero: R6. A zero sum converts to `+0`: R7.
//! 6. Infinities and NaNs: rows and columns with a factor above exponent 55, and
//!    accumulators above the range, go to the scalar text: R8.
//!
//! A *span* of sixteen k's is one block or two. Two follow each other as they would
//! alone, and what bounds the span's values bounds each block's. Where a row ends
//! within a span, a block of zeros may follow: it leaves an accumulator as it is.
//!
//! *Which lanes are in range* is known beforehand for most walks, from the
//! exponents of all values so far ([`Bounds`]): then no lane is looked at. If
//! no product so far lay below exponent −98 and no accumulator at the start did,
//! a lane at −99 holds an accumulator that is a multiple of `2^-124`
//! (`2^(e_max − F)` of an earlier block, or the last place of a start value) and
//! below `2^-98`: `c·s` is an integer below `2^26`, and the result is `c` again, as
//! R3 to R6 give for an accumulator alone. Otherwise each block looks at its
//! lanes, and one at −99 is accepted only if its accumulator is zero and no product
//! of the span can lie below −98; its result is then `+0`.
#![allow(clippy::float_arithmetic)] // exact or below the window, as argued above

// Loops instead of `array::map`: its closure would be a function of its own, compiled
// without the caller's instruction set.

use std::ops::Range;

use super::columns::Columns;
use super::rows::{Part, RowKind, RowSpan, Rows};
use super::vector::Vector;
use super::{LARGEST_EXPONENT, LEAST_EXPONENT, LOW_FIELD, Reach, SPAN};
use crate::isa::mma::{MmaProfile, block_fma};
use crate::num::{Bf16, F32};

/// Rows that pass over a panel together: their accumulators (at most 64 KiB) and one
/// span of their values stay in a core's second cache.
const CHUNK: usize = 256;

/// Continues the walks of some rows with all columns: `out += rows · bᵀ`.
/// Returns how many spans (a row, a panel, a span of K) took the scalar text.
/// `N`: products in a block.
///
/// # Shape
/// `b`: `[n, k]`; `out`: `[range.len(), n]`.
#[inline(always)]
pub(super) fn product<V: Vector<L>, const N: usize, const L: usize, const W: usize>(
    rows: &Rows<'_>,
    range: Range<usize>,
    b: &[Bf16],
    out: &mut [F32],
) -> usize {
    let (m, k) = (rows.count(), rows.k);
    let n = b.len() / k;
    let ordinary = rows.parts.iter().all(Part::ordinary);
    let mut columns = Columns::<L, W>::new();
    let mut c = vec![Lanes([[0.0; L]; 4]); range.len().min(CHUNK)];
    let mut escapes = 0;
    for first in (0..n).step_by(W) {
        let width = W.min(n - first);
        let b = &b[first * k..(first + width) * k];
        for (index, out) in out.chunks_mut(CHUNK * n).enumerate() {
            let start = range.start + index * CHUNK;
            let chunk = start..range.end.min(start + CHUNK);
            let c = &mut c[..chunk.len()];
            let mut bounds = Bounds::new(ordinary, load(c, out, n, first, width));
            let mut start = 0;
            for part in &rows.parts {
                for (spans, &reach) in part.spans.chunks_exact(m).zip(&part.reaches) {
                    columns.decode(b, k, start, SPAN.min(k - start));
                    let products = Reach::products(reach, columns.reach);
                    bounds.extend(products, columns.ordinary, (start + SPAN) as u64);
                    let step = Step { rows, first_row: chunk.start, start, b, columns: &columns };
                    let spans = &spans[chunk.clone()];
                    escapes += if bounds.known {
                        step.add::<V, N, false>(spans, c)
                    } else {
                        step.add::<V, N, true>(spans, c)
                    };
                    start += SPAN;
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
/// a skipped span of zeros would not.
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
    fn new(ordinary_rows: bool, accumulators: Option<Reach>) -> Self {
        Self { reach: accumulators, known: ordinary_rows }
    }

    /// Takes the products of one more span into account; `k` products so far.
    fn extend(&mut self, products: Option<Reach>, ordinary_columns: bool, k: u64) {
        self.reach = Reach::join(self.reach, products);
        if let Some(Reach { least, largest }) = self.reach {
            // A value of exponent e is below 2^(e+1), a product of exponent e below
            // 2^(e+2): k products and an accumulator are below 2^(e+2) · (k + 1).
            let growth = (k + 1).ilog2() as i32 + 1;
            self.known &= least >= LEAST_EXPONENT && largest + 2 + growth <= LARGEST_EXPONENT;
        }
        self.known &= ordinary_columns;
    }
}

/// One span of K for all rows of a chunk.
struct Step<'a, const L: usize, const W: usize> {
    rows: &'a Rows<'a>,
    first_row: usize,
    start: usize,
    b: &'a [Bf16],
    columns: &'a Columns<L, W>,
}

impl<const L: usize, const W: usize> Step<'_, L, W> {
    /// Adds the span to every row; `LOOK` unless [`Bounds::known`]. Returns the
    /// number of escapes.
    #[inline(always)]
    fn add<V: Vector<L>, const N: usize, const LOOK: bool>(
        &self,
        spans: &[RowSpan],
        c: &mut [Lanes<L>],
    ) -> usize {
        if !self.columns.ordinary {
            for (row, c) in c.iter_mut().enumerate() {
                self.escape(row, c);
            }
            return c.len();
        }
        let mut escapes = 0;
        // By index, which takes fewer instructions a row than iterators side by side.
        let spans = &spans[..c.len()];
        for row in 0..c.len() {
            let span = &spans[row];
            let done = match span.kind {
                RowKind::Ordinary => {
                    fma::<V, N, L, W, LOOK>(&self.rows.profile, span, self.columns, &mut c[row])
                }
                RowKind::Zero => true,
                RowKind::Odd => false,
            };
            if !done {
                escapes += 1;
                self.escape(row, &mut c[row]);
            }
        }
        escapes
    }

    /// The scalar text for one row of the chunk.
    #[cold]
    fn escape(&self, row: usize, c: &mut Lanes<L>) {
        let k = self.rows.k;
        let (start, end) = (self.start, k.min(self.start + SPAN));
        let n_fma = usize::from(self.rows.profile.n_fma);
        let row = (self.first_row + row) * k;
        let a = &self.rows.codes[row + start..row + end];
        for (c, column) in c.0.as_flattened_mut().iter_mut().zip(self.b.chunks_exact(k)) {
            for (a, b) in a.chunks(n_fma).zip(column[start..end].chunks(n_fma)) {
                *c = block_fma(&self.rows.profile, a, b, F32(c.to_bits())).to_host();
            }
        }
    }
}

/// Bits of `2^exponent` in binary32.
const fn power_of_two(exponent: i32) -> i32 {
    (exponent + 127) << 23
}

/// The block FMAs of a span in every lane, one after the other; false, with `c`
/// untouched, where the proof does not reach. `LOOK`: the lanes may be out of range.
#[inline(always)]
fn fma<V: Vector<L>, const N: usize, const L: usize, const W: usize, const LOOK: bool>(
    profile: &MmaProfile,
    span: &RowSpan,
    columns: &Columns<L, W>,
    c: &mut Lanes<L>,
) -> bool {
    let fraction_bits = 23 + i32::from(profile.neab);
    // `N`, but not known to the compiler: it would unroll eight products, order their
    // sums anew and run out of registers (benches/LOG.md).
    let n_fma = usize::from(profile.n_fma);
    let mut live = [V::load(&c.0[0]), V::load(&c.0[1]), V::load(&c.0[2]), V::load(&c.0[3])];
    for first in (0..SPAN).step_by(N) {
        // 1. The alignment exponent of each lane, as the bits of its power of two.
        // Two chains of maxima, so that one need not wait for the other.
        let mut biased = [V::splat_bytes([LOW_FIELD; 4]); 2];
        for k in first..first + N {
            let depths = V::load_bytes(&columns.depths[k]);
            let product = V::saturating_difference(V::splat_bytes(span.heights[k]), depths);
            biased[k % 2] = V::larger_bytes(biased[k % 2], product);
        }
        let biased = V::larger_bytes(biased[0], biased[1]);
        let e_max = [
            V::larger(V::byte_as_exponent::<0>(biased), live[0].exponent_field()),
            V::larger(V::byte_as_exponent::<1>(biased), live[1].exponent_field()),
            V::larger(V::byte_as_exponent::<2>(biased), live[2].exponent_field()),
            V::larger(V::byte_as_exponent::<3>(biased), live[3].exponent_field()),
        ];
        if LOOK {
            let low = power_of_two(LEAST_EXPONENT);
            let range = (power_of_two(LARGEST_EXPONENT) - low) as u32;
            let products = Reach::products(span.reach, columns.reach);
            let no_low_product = products.is_none_or(|products| products.least >= LEAST_EXPONENT);
            let survive = || no_low_product && zero_where_low::<V, L>(&e_max, &live);
            if V::any_outside(&e_max, low, range) && !survive() {
                return false;
            }
        }

        // 2 to 4. The fixed-point sum in units of 2^(e_max − F).
        // Fields add like exponents: (127 + F) + 127 − (127 + e_max) = 127 + F − e_max.
        let scale_bits = V::splat_int(power_of_two(fraction_bits).wrapping_add(power_of_two(0)));
        let mut scale = live;
        let mut sum = e_max;
        for v in 0..4 {
            scale[v] = V::from_bits(V::minus(scale_bits, e_max[v]));
            sum[v] = live[v].times(scale[v]).cut();
        }
        let (a, b) = (&span.values[first..first + N], &columns.values[first..first + n_fma]);
        for (&a, b) in a.iter().zip(b) {
            let a = V::splat(a);
            for v in 0..4 {
                let product = a.times(V::load(&b[v])).times(scale[v]);
                sum[v] = V::plus(sum[v], product.cut());
            }
        }

        // 5. To binary32, toward zero.
        let fraction = V::splat_int(fraction_bits << 23);
        for v in 0..4 {
            let unit = V::from_bits(V::minus(e_max[v], fraction));
            live[v] = V::toward_zero(sum[v]).times(unit);
        }
    }
    for (live, c) in live.iter().zip(&mut c.0) {
        live.store(c);
    }
    true
}

/// Whether no lane lies above the range and all below it have a zero accumulator.
#[cold]
fn zero_where_low<V: Vector<L>, const L: usize>(e_max: &[V::Ints; 4], live: &[V; 4]) -> bool {
    e_max.iter().zip(live).all(|(&e_max, live)| {
        let (mut lanes, mut values) = ([0.0; L], [0.0; L]);
        V::from_bits(e_max).store(&mut lanes);
        live.store(&mut values);
        lanes.iter().zip(values).all(|(e_max, c)| {
            let e_max = e_max.to_bits() as i32;
            let in_range =
                (power_of_two(LEAST_EXPONENT)..=power_of_two(LARGEST_EXPONENT)).contains(&e_max);
            in_range || (e_max < power_of_two(LEAST_EXPONENT) && c.to_bits() == 0)
        })
    })
}
