//! Block FMAs of many output columns at once: the fast twin of
//! [`block_fma`](fn@super::block_fma), for bf16 operands.
//!
//! A *panel* is 16, 32 or 64 columns, one vector lane each. For one row of A
//! and one block of K the alignment exponent of every lane is found in bytes,
//! then each product is two binary32 multiplications (both exact, or below the
//! window) and one truncating conversion to `i32`; the `i32` sum is the
//! fixed-point sum of rule R5. Where a bound of the proof in `kernel` does
//! not hold, the block is computed by the scalar text instead, so results never
//! depend on which path was taken.
//!
//! The code is plain loops over arrays, compiled once for each instruction set
//! (`isa::mma::dispatch`). Two operand layouts: [`Rows`] for A, made once and
//! used by every panel, and `Columns` for B, made once a panel and block and
//! used by every row.

mod columns;
mod kernel;
mod rows;
#[cfg(test)]
mod tests;

pub use rows::Rows;

pub(super) use kernel::product;
pub(super) use rows::Blocks;

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

/// Returns the alignment exponent of a finite nonzero bf16 code, or `None` for
/// zero. A subnormal has the least normal exponent (R1).
#[inline(always)]
fn exponent(code: u16) -> Option<i32> {
    let field = i32::from((code >> 7) & 0xff);
    (code & 0x7fff != 0).then_some(field.max(1) - 127)
}

/// True for infinities and NaNs.
#[inline(always)]
fn is_special(code: u16) -> bool {
    code & 0x7f80 == 0x7f80
}
