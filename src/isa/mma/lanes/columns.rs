//! A panel of B, one span of K, decoded once for all rows.

use super::transpose::gather;
use super::{LARGEST_FACTOR_FIELD, Reach, SPAN, SURFACE, ZERO_DEPTH};
use crate::num::Bf16;

/// [`SPAN`] k's of `W = 4·L` columns: four vectors of `L` lanes. Column
/// `v·L + l` is lane `l` of vector `v`.
#[repr(C, align(64))] // the arrays, in this order, begin at cache lines
pub(super) struct Columns<const L: usize, const W: usize> {
    /// Values, k-major.
    pub(super) values: [[[f32; L]; 4]; SPAN],
    /// How far each exponent lies below [`SURFACE`], lane by lane, the four vectors'
    /// bytes side by side; [`ZERO_DEPTH`] for a zero. Of no use unless `ordinary`.
    pub(super) depths: [[[u8; 4]; L]; SPAN],
    /// Exponents of the nonzero values.
    pub(super) reach: Option<Reach>,
    /// No exponent is above [`LARGEST_FACTOR_EXPONENT`](super::LARGEST_FACTOR_EXPONENT).
    pub(super) ordinary: bool,
    codes: [[u16; W]; SPAN],
}

impl<const L: usize, const W: usize> Columns<L, W> {
    #[inline(always)]
    pub(super) fn new() -> Self {
        const { assert!(W == 4 * L) };
        Self {
            values: [[[0.0; L]; 4]; SPAN],
            depths: [[[ZERO_DEPTH; 4]; L]; SPAN],
            reach: None,
            ordinary: true,
            codes: [[0; W]; SPAN],
        }
    }

    /// Decodes `len` k's from `start` of up to `W` columns of length `k`. Missing
    /// k's and columns are zeros.
    #[inline(always)]
    pub(super) fn decode(&mut self, b: &[Bf16], k: usize, start: usize, len: usize) {
        if len < SPAN || b.len() < W * k {
            self.codes = [[0; W]; SPAN];
        }
        gather(b, k, start, len, &mut self.codes);
        // One array a loop, one type a loop, no checked arithmetic: that is what
        // vectorises.
        let mut fields = [[0u16; W]; SPAN];
        let (mut largest, mut least) = ([0u16; W], [u16::MAX; W]);
        for (fields, codes) in fields.iter_mut().zip(&self.codes) {
            for (field, &code) in fields.iter_mut().zip(codes) {
                *field = biased_exponent(code);
            }
            for (largest, &field) in largest.iter_mut().zip(&*fields) {
                *largest = (*largest).max(field);
            }
            for (least, &field) in least.iter_mut().zip(&*fields) {
                // A zero's 0 becomes the largest.
                *least = (*least).min(field.wrapping_sub(1));
            }
        }
        let largest = largest.iter().copied().fold(0, u16::max);
        let least = least.iter().copied().fold(u16::MAX, u16::min);
        self.reach = Reach::of_biased(least.wrapping_add(1), largest);
        self.ordinary = largest <= LARGEST_FACTOR_FIELD;
        for (values, codes) in self.values.iter_mut().zip(&self.codes) {
            for (value, &code) in values.as_flattened_mut().iter_mut().zip(codes) {
                *value = f32::from_bits(u32::from(code) << 16);
            }
        }
        for (depths, fields) in self.depths.iter_mut().zip(&fields) {
            let mut below = [0u16; W];
            for (below, &field) in below.iter_mut().zip(fields) {
                *below = depth(field);
            }
            // Four vectors' bytes to a word.
            let mut words = [0u32; L];
            for v in 0..4 {
                for (word, &below) in words.iter_mut().zip(&below[v * L..(v + 1) * L]) {
                    *word |= u32::from(below) << (8 * v);
                }
            }
            for (depths, word) in depths.iter_mut().zip(words) {
                *depths = word.to_le_bytes();
            }
        }
    }
}

/// Biased exponent of a code: 0 for zeros, 1 for subnormals too (R1), 255 for
/// infinities and NaNs.
#[inline(always)]
pub(super) fn biased_exponent(code: u16) -> u16 {
    let nonzero = u16::from(code & 0x7fff != 0);
    ((code >> 7) & 0xff).max(nonzero)
}

/// Depth of a biased exponent up to [`LARGEST_FACTOR_FIELD`]; of no use above.
#[inline(always)]
fn depth(field: u16) -> u16 {
    let depth = const { (SURFACE + 127) as u16 }.wrapping_sub(field) & 0xff;
    if field == 0 { u16::from(ZERO_DEPTH) } else { depth }
}
