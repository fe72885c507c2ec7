//! Operands that make a wrong order of accumulation visible.
//!
//! Every row and column is one of a few families, so that each tile of an output meets
//! them all: outlier channels as trained models have, sums that cancel, wide and equal
//! exponents, subnormals, NaN and infinity.

use crate::num::Bf16;

/// Rows of the pool: a prime, so that no tile meets the same rows again.
pub(super) const POOL: usize = 251;

/// The families in words, for evidence.
pub const DESCRIPTION: &str = "rows of activations in turn: one channel in 64 larger by 2^5, pairs \
    that cancel against pairs of weights that differ in their last bits, exponents from 2^-40 to 2^39, all of \
    magnitude 1 to 2, subnormal and up to 2^-58, one element NaN or infinite; every second row of weights in \
    pairs; one element in 16 zero";

/// Activations, `[POOL, k]`.
pub(super) fn activations(k: usize) -> Vec<Bf16> {
    let mut out: Vec<Bf16> = Vec::with_capacity(POOL * k);
    for row in 0..POOL {
        let start = out.len();
        for i in 0..k {
            let bits = hash(1, row, i);
            out.push(match row % FAMILIES {
                1 if i % 2 == 1 => Bf16(out[start + i - 1].0 ^ SIGN),
                2 => value(bits, 87 + field(bits, 32, 80)),
                3 => value(bits, 127),
                4 => value(bits, field(bits, 32, 70)),
                // 0, 1 and 5, whose one special element is set below.
                _ => value(bits, if i % 64 == 5 { 132 } else { 127 - depth(bits) }),
            });
        }
        if row % FAMILIES == 5 {
            let specials = [Bf16(0x7f80), Bf16(0xff80), Bf16(0x7fc1), Bf16(0xffa0)];
            out[start + row * 7 % k] = specials[row / FAMILIES % specials.len()];
        }
    }
    out
}

/// One row of a weight, `[k]`.
pub(super) fn weight_row(row: usize, k: usize) -> impl Iterator<Item = Bf16> {
    (0..k).map(move |i| {
        let paired = row % 2 == 1 && i % 2 == 1;
        let bits = hash(2, row, if paired { i - 1 } else { i });
        let plain = value(bits, 121 - depth(bits));
        // A pair's second element differs in its last bits.
        if paired { Bf16(plain.0 ^ (hash(3, row, i) & 3) as u16) } else { plain }
    })
}

/// Sign and significand from the bits, exponent field as given; one in 16 is zero.
fn value(bits: u64, exponent: u16) -> Bf16 {
    if bits >> 60 == 0 {
        return Bf16(0);
    }
    Bf16((bits as u16 & (SIGN | 0x7f)) | exponent << 7)
}

/// Binades below the largest: each half as likely as the one above, as of numbers
/// spread evenly.
fn depth(bits: u64) -> u16 {
    (bits >> 16 | 1 << 12).trailing_zeros() as u16
}

fn field(bits: u64, shift: u32, bound: u64) -> u16 {
    ((bits >> shift) % bound) as u16
}

/// Mixes a place into 64 bits (splitmix64's finaliser, Steele and others 2014).
fn hash(stream: u64, row: usize, column: usize) -> u64 {
    let mut x = (stream << 56 | (row as u64) << 24 | column as u64)
        .wrapping_add(1)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// Families of rows.
pub(super) const FAMILIES: usize = 6;
const SIGN: u16 = 0x8000;
