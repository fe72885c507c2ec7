//! One instruction, or several in a row, as a chain of block FMAs.

use super::{Format, MAX_PRODUCTS, MmaProfile, Number, Rounding, add_block};

/// Formats of an instruction's operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Operands {
    /// Format of A.
    pub a: Format,
    /// Format of B.
    pub b: Format,
    /// Format of the accumulator that goes in.
    pub c: Format,
}

/// Returns `c + Σ a[i]·b[i]` as a chain of blocks of `block` products.
///
/// R9: blocks follow ascending, contiguous k, and the converted output of each
/// is the accumulator of the next. An instruction with K products has blocks of
/// `min(n_fma, K)`; a loop over instructions is the same chain.
///
/// # Shape
/// `a`, `b`: `[k]` codes of their formats; result: bits of the output format.
///
/// # Panics
/// If `a` and `b` differ in length, or `block` is not in `1..=n_fma`.
pub fn chain(
    profile: &MmaProfile,
    operands: Operands,
    block: usize,
    a: &[u32],
    b: &[u32],
    c: u32,
) -> u32 {
    assert_eq!(a.len(), b.len(), "factors of a chain");
    assert!((1..=usize::from(profile.n_fma)).contains(&block), "blocks of {block}");
    let output = match profile.rounding {
        Rounding::TowardZeroF32 | Rounding::TowardZeroE8m13 => Format::F32,
        Rounding::NearestF16 => Format::F16,
    };
    let mut d = c;
    let mut format = operands.c;
    for (a, b) in a.chunks(block).zip(b.chunks(block)) {
        let mut products = [Number::ZERO; MAX_PRODUCTS];
        for ((product, &a), &b) in products.iter_mut().zip(a).zip(b) {
            *product = operands.a.decode(a).times(operands.b.decode(b));
        }
        d = add_block(profile, &products[..a.len()], format.decode(d));
        format = output;
    }
    d
}
