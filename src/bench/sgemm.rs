//! The yardstick: an ordinary binary32 matrix product.
//!
//! `ndarray`'s product of two `f32` matrices is one call of `matrixmultiply`'s
//! `sgemm`, on one thread. Its results depend on the machine and are thrown away.

use std::hint::black_box;

use ndarray::Array2;
use ndarray::linalg::general_mat_mul;

use super::rounds::Checked;
use crate::num::Bf16;

/// The library that is measured.
pub(super) const NAME: &str = "matrixmultiply sgemm";

/// A product of the same shape and values as ours: `a` `[m, k]`, `b` `[n, k]`.
pub(super) fn sgemm(a: &[Bf16], b: &[Bf16], k: usize) -> Checked<'static> {
    let matrix = |codes: &[Bf16]| {
        let value = |row: usize, column: usize| codes[row * k + column].widen().to_host();
        Array2::from_shape_fn((codes.len() / k, k), |(row, column)| value(row, column))
    };
    let (a, b) = (matrix(a), matrix(b));
    let mut c = Array2::<f32>::zeros((a.nrows(), b.nrows()));
    Checked::yardstick(move || {
        general_mat_mul(1.0, black_box(&a), &black_box(&b).t(), 0.0, &mut c);
        black_box(&c);
    })
}
