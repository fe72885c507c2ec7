//! Block FMAs of many output columns at once: the fast twin of
//! [`block_fma`](fn@super::block_fma), for bf16 operands.
//!
//! A *panel* is four vectors of columns, one lane each: 16, 32 or 64 columns. For
//! one row of A and one block of K the alignment exponent of every lane is found in
//! bytes, then each product is two binary32 multiplications (both exact, or below
//! the window) and one truncating conversion to `i32`; the `i32` sum is the
//! fixed-point sum of rule R5. Where a bound of the proof in `kernel` does not
//! hold, the block is computed by the scalar text instead, so results never depend
//! on which path was taken.
//!
//! The kernel is written once over `vector::Vector` and compiled for each
//! instruction set (`isa::mma::dispatch`): `portable` arrays, and on x86-64
//! AVX2 and AVX-512 intrinsics. Two operand layouts: [`Rows`] for A, made
//! once and used by every panel, and `Columns` for B, made once a panel and span of
//! K and used by every row. A *span* is sixteen k's, one block or two; its layout
//! does not depend on the length of a block.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod columns;
mod kernel;
mod portable;
mod rows;
#[cfg(test)]
mod tests;
mod transpose;
mod vector;

pub use rows::{Part, Rows};

pub(super) use rows::Undecoded;

use std::ops::Range;

use crate::num::{Bf16, F32};
use rows::Block;
use vector::Vector;

/// K's that are decoded together: one block of sixteen products or two of eight.
const SPAN: usize = 16;

/// Exponent (power of two) from which on a nonzero product or accumulator is
/// ordinary; below it the scalar text decides. With it `2^(F − e_max)` and its
/// inverse stay normal binary32 numbers for F up to 25.
const LEAST_EXPONENT: i32 = -98;

/// Largest alignment exponent of the fast path: infinities and NaNs lie above it,
/// and sums below it stay far from overflow (with room to spare).
const LARGEST_EXPONENT: i32 = 118;

/// Largest exponent of a factor in the fast path; no product is above twice that.
const LARGEST_FACTOR_EXPONENT: i32 = 55;

/// The same, biased.
const LARGEST_FACTOR_FIELD: u16 = (LARGEST_FACTOR_EXPONENT + 127) as u16;

/// Where heights and depths meet: an exponent `e` (power of two) of a row has the
/// height `e + 127 + SURFACE`, one of a column the depth `SURFACE − e`, and the height
/// less the depth is the biased exponent of the product. With it all heights and
/// depths of the fast path are bytes.
const SURFACE: i32 = 64;

/// Height of a zero: no difference from it is above zero.
const ZERO_HEIGHT: u8 = 0;

/// Depth of a zero: no height is above it.
const ZERO_DEPTH: u8 = u8::MAX;

/// Least biased exponent of products that is told apart: that of all below
/// [`LEAST_EXPONENT`].
const LOW_FIELD: u8 = (LEAST_EXPONENT - 1 + 127) as u8;

/// Least and largest exponent of some nonzero values; a subnormal has the least
/// normal exponent (R1), infinities and NaNs have 128.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Reach {
    least: i32,
    largest: i32,
}

impl Reach {
    /// From biased exponents; `largest` is 0 if there is no nonzero value.
    #[inline(always)]
    fn of_biased(least: u16, largest: u16) -> Option<Self> {
        let exponent = |field: u16| i32::from(field) - 127;
        (largest > 0).then(|| Self { least: exponent(least), largest: exponent(largest) })
    }

    /// Of two sets of values together.
    fn join(a: Option<Self>, b: Option<Self>) -> Option<Self> {
        match (a, b) {
            (Some(a), Some(b)) => {
                Some(Self { least: a.least.min(b.least), largest: a.largest.max(b.largest) })
            }
            (one, None) | (None, one) => one,
        }
    }

    /// Of all products of two sets of values.
    fn products(a: Option<Self>, b: Option<Self>) -> Option<Self> {
        let (a, b) = (a?, b?);
        Some(Self { least: a.least + b.least, largest: a.largest + b.largest })
    }
}

/// Continues the walks of some rows with all columns, through arrays.
pub(super) fn portable(rows: &Rows<'_>, range: Range<usize>, b: &[Bf16], out: &mut [F32]) -> usize {
    choose::<portable::Portable<{ portable::LANES }>, { portable::LANES }, { 4 * portable::LANES }>(
        rows, range, b, out,
    )
}

/// The same through AVX2; must be inlined into a function compiled for it.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn avx2(rows: &Rows<'_>, range: Range<usize>, b: &[Bf16], out: &mut [F32]) -> usize {
    choose::<avx2::Avx2, { avx2::LANES }, { 4 * avx2::LANES }>(rows, range, b, out)
}

/// The same through AVX-512; must be inlined into a function compiled for it.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn avx512(rows: &Rows<'_>, range: Range<usize>, b: &[Bf16], out: &mut [F32]) -> usize {
    choose::<avx512::Avx512, { avx512::LANES }, { 4 * avx512::LANES }>(rows, range, b, out)
}

/// Runs the kernel for the profile's block length.
#[inline(always)]
fn choose<V: Vector<L>, const L: usize, const W: usize>(
    rows: &Rows<'_>,
    range: Range<usize>,
    b: &[Bf16],
    out: &mut [F32],
) -> usize {
    match rows.block() {
        Some(Block::Eight) => kernel::product::<V, 8, L, W>(rows, range, b, out),
        Some(Block::Sixteen) => kernel::product::<V, 16, L, W>(rows, range, b, out),
        None => rows.walk_scalar(range, b, out),
    }
}
