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
//! once and used by every panel, and `Columns` for B, made once a panel and block
//! and used by every row.

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

pub(super) use rows::{Blocks, Undecoded};

use std::ops::Range;

use crate::num::{Bf16, F32};
use vector::Vector;

/// Exponent (power of two) from which on a nonzero product or accumulator is
/// ordinary; below it the scalar text decides. With it `2^(F − e_max)` and its
/// inverse stay normal binary32 numbers for F up to 25.
const LEAST_EXPONENT: i32 = -98;

/// Largest alignment exponent of the fast path: infinities and NaNs lie above it,
/// and sums below it stay far from overflow (with room to spare).
const LARGEST_EXPONENT: i32 = 118;

/// Largest exponent of a product in the fast path. A deficit of 255, where the
/// bytes saturate, then always lies below [`LEAST_EXPONENT`].
const LARGEST_PRODUCT_EXPONENT: i32 = 110;

/// Deficit of an operand that is zero, and of a product with one.
const NO_PRODUCT: u8 = u8::MAX;

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
    match rows.blocks() {
        Blocks::Eight(parts) => kernel::product::<V, 8, L, W>(rows, parts, range, b, out),
        Blocks::Sixteen(parts) => kernel::product::<V, 16, L, W>(rows, parts, range, b, out),
        Blocks::Scalar => rows.walk_scalar(range, b, out),
    }
}
