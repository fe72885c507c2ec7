//! The kernel, and why it gives the bits of the scalar text.
//!
//! Notation: for a lane, `e_max` is the alignment exponent of rule R3, F is
//! `23 + neab` and at most 25, `s = 2^(F − e_max)`.
//!
//! 1. *Exponent.* The deficits of both factors add up to how far a product lies
//!    below `E = largest_a + largest_b`; the least sum over k gives the largest
//!    product. Sums saturate at 255, which with `E ≤ 110` is below exponent −145,
//!    and zero factors are at 255 too: neither raises `e_max`. Sums are cut off
//!    at exponent −99, so a lane at −99 has no product and no accumulator from
//!    −98 on. Such a lane is accepted only if its accumulator is zero and no
//!    nonzero product of the block can lie below −98; its result is then `+0`.
//! 2. *Products.* `a·b` has 16 significant bits: exact in binary32 unless it
//!    underflows, and then `|a·b| < 2^-125`, so `|a·b|·s < 1` (`s ≤ 2^124`), which
//!    the conversion cuts to zero, as R4 does. It cannot overflow (`E ≤ 110`).
//!    Multiplying by `s` is exact or underflows to less than one. The conversion
//!    truncates toward zero: R4.
//! 3. *Accumulator.* `c·s` likewise. A subnormal `c` counts as exponent 0 here
//!    instead of −126, which differs only below the accepted range.
//! 4. *Sum.* `i32` addition; [`super::rows`] marks the rows for which the sum could
//!    exceed `2^31 − 128`. R5.
//! 5. *Result.* The sum, rounded to nearest binary32 and stepped back by one
//!    place if that went away from zero, is the sum cut to 24 bits; `2^(e_max − F)`
//!    is at least `2^-124` and at most `2^93`, so the last multiplication is exact
//!    and stays normal or zero: R6. A zero sum converts to `+0`: R7.
//! 6. Infinities and NaNs: rows, columns and accumulators with any go to the
//!    scalar text: R8.
#![allow(clippy::float_arithmetic)] // exact or below the window, as argued above
#![allow(unsafe_code)] // one conversion without a range check, bounded above

use super::columns::Columns;
use super::rows::{RowBlock, RowKind, Rows};
use super::{LARGEST_EXPONENT, LARGEST_PRODUCT_EXPONENT, LEAST_EXPONENT, NO_PRODUCT};
use crate::isa::mma::block_fma;
use crate::num::{Bf16, F32};

/// Continues the walks of all rows with all columns: `out += rows · bᵀ`.
/// Returns how many blocks (a row, a panel, a block of K) took the scalar text.
///
/// # Shape
/// `b`: `[n, k]`; `out`: `[m, n]`.
#[inline(always)]
pub(in crate::isa::mma) fn product<const N: usize, const W: usize>(
    rows: &Rows<'_>,
    blocks: &[RowBlock<N>],
    b: &[Bf16],
    out: &mut [F32],
) -> usize {
    let (m, k) = (rows.count(), rows.k);
    let n = b.len() / k;
    let mut panel = Panel { c: vec![Lanes([0.0; W]); m], columns: Columns::<N, W>::new() };
    let mut escapes = 0;
    for first in (0..n).step_by(W) {
        let width = W.min(n - first);
        let b = &b[first * k..(first + width) * k];
        panel.load(out, n, first, width);
        for (index, blocks) in blocks.chunks_exact(m).enumerate() {
            let start = index * N;
            panel.columns.decode(b, k, start, N.min(k - start));
            escapes += panel.block(rows, blocks, b, start);
        }
        panel.store(out, n, first, width);
    }
    escapes
}

/// Accumulators of one row, one a lane.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Lanes<const W: usize>([f32; W]);

struct Panel<const N: usize, const W: usize> {
    c: Vec<Lanes<W>>,
    columns: Columns<N, W>,
}

/// Bits of `2^exponent` in binary32.
const fn power_of_two(exponent: i32) -> i32 {
    (exponent + 127) << 23
}

const EXPONENT_FIELD: i32 = 0x7f80_0000;

impl<const N: usize, const W: usize> Panel<N, W> {
    /// Takes accumulators. `-0` and NaN become `+0` and the canonical NaN, which the
    /// first block would do (R7, R8) and a skipped zero block would not.
    #[inline(always)]
    fn load(&mut self, out: &[F32], n: usize, first: usize, width: usize) {
        for (c, out) in self.c.iter_mut().zip(out.chunks_exact(n)) {
            // A lane without a column holds 1, which nothing is added to: it never
            // looks odd.
            *c = Lanes([1.0; W]);
            for (c, &out) in c.0.iter_mut().zip(&out[first..first + width]) {
                *c = if out.is_zero() {
                    0.0
                } else if out.is_nan() {
                    F32::NAN.to_host()
                } else {
                    out.to_host()
                };
            }
        }
    }

    #[inline(always)]
    fn store(&self, out: &mut [F32], n: usize, first: usize, width: usize) {
        for (c, out) in self.c.iter().zip(out.chunks_exact_mut(n)) {
            for (c, out) in c.0.iter().zip(&mut out[first..first + width]) {
                *out = F32(c.to_bits());
            }
        }
    }

    /// Adds one block of K to every row; returns the number of escapes.
    #[inline(always)]
    fn block(
        &mut self,
        rows: &Rows<'_>,
        blocks: &[RowBlock<N>],
        b: &[Bf16],
        start: usize,
    ) -> usize {
        let fraction_bits = 23 + i32::from(rows.profile.neab);
        let mut escapes = 0;
        let columns = &self.columns;
        for (row, (block, c)) in blocks.iter().zip(&mut self.c).enumerate() {
            let nothing = block.kind == RowKind::Zero || columns.largest == i32::MIN;
            if nothing && columns.finite && block.kind != RowKind::Odd {
                continue;
            }
            let ordinary = block.kind == RowKind::Ordinary
                && columns.finite
                && fma(block, columns, fraction_bits, c);
            if !ordinary {
                escapes += 1;
                let k = rows.k;
                let end = k.min(start + N);
                let a = &rows.codes[row * k + start..row * k + end];
                for (c, column) in c.0.iter_mut().zip(b.chunks_exact(k)) {
                    let result = block_fma(&rows.profile, a, &column[start..end], F32(c.to_bits()));
                    *c = result.to_host();
                }
            }
        }
        escapes
    }
}

/// One block FMA in every lane; false, with `c` untouched, where the proof does
/// not reach.
#[inline(always)]
fn fma<const N: usize, const W: usize>(
    block: &RowBlock<N>,
    columns: &Columns<N, W>,
    fraction_bits: i32,
    c: &mut Lanes<W>,
) -> bool {
    const LOW: i32 = power_of_two(LEAST_EXPONENT);
    const HIGH: i32 = power_of_two(LARGEST_EXPONENT);
    let largest = block.largest + columns.largest;
    if largest > LARGEST_PRODUCT_EXPONENT {
        return false;
    }

    // 1. The alignment exponent of each lane, as the bits of its power of two.
    let mut deficit = [NO_PRODUCT; W];
    for k in 0..N {
        for (deficit, &column) in deficit.iter_mut().zip(&columns.deficits[k]) {
            *deficit = (*deficit).min(column.saturating_add(block.deficits[k]));
        }
    }
    let base = largest.max(LEAST_EXPONENT - 1);
    let most = (base - (LEAST_EXPONENT - 1)) as u8;
    let biased = (base + 127) as u8;
    let mut e_max = [0i32; W];
    // Unsigned distance from LOW, kept in order as signed: one maximum finds lanes
    // on either side of the range.
    let mut worst = i32::MIN;
    for lane in 0..W {
        let product = i32::from(biased.wrapping_sub(deficit[lane].min(most))) << 23;
        e_max[lane] = product.max(c.0[lane].to_bits() as i32 & EXPONENT_FIELD);
        worst = worst.max(e_max[lane].wrapping_sub(LOW).wrapping_add(i32::MIN));
    }
    if worst > (HIGH - LOW).wrapping_add(i32::MIN) {
        let no_low_product = block.least + columns.least >= LEAST_EXPONENT;
        let accepted = e_max.iter().zip(&c.0).all(|(&e_max, c)| {
            (LOW..=HIGH).contains(&e_max) || (e_max < LOW && no_low_product && c.to_bits() == 0)
        });
        if !accepted {
            return false;
        }
    }

    // 2 to 4. The fixed-point sum in units of 2^(e_max − F).
    // Fields add like exponents: (127 + F) + 127 − (127 + e_max) = 127 + F − e_max.
    let scale_bits = power_of_two(fraction_bits).wrapping_add(power_of_two(0));
    let mut scale = [0.0f32; W];
    let mut sum = [0i32; W];
    for lane in 0..W {
        scale[lane] = f32::from_bits(scale_bits.wrapping_sub(e_max[lane]) as u32);
        sum[lane] = cut(c.0[lane] * scale[lane]);
    }
    for k in 0..N {
        let a = block.values[k];
        for lane in 0..W {
            let product = a * columns.values[k][lane];
            sum[lane] = sum[lane].wrapping_add(cut(product * scale[lane]));
        }
    }

    // 5. To binary32, toward zero.
    for lane in 0..W {
        let nearest = sum[lane] as f32;
        let away = cut(nearest).wrapping_abs() > sum[lane].wrapping_abs();
        let toward_zero = f32::from_bits(nearest.to_bits().wrapping_sub(u32::from(away)));
        let unit = f32::from_bits(e_max[lane].wrapping_sub(fraction_bits << 23) as u32);
        c.0[lane] = toward_zero * unit;
    }
    true
}

/// Converts toward zero without a range check.
#[inline(always)]
fn cut(x: f32) -> i32 {
    // SAFETY: `fma` calls this only with finite values below 2^31: products and
    // accumulators scaled by 2^(F − e_max) are below 2^(F + 2) ≤ 2^27 because no
    // exponent exceeds e_max, and a sum rounded to nearest is at most 2^31 − 128.
    unsafe { x.to_int_unchecked() }
}
