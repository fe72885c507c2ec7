//! Rows of A, decoded once for all panels.

use super::{NO_PRODUCT, exponent, is_special};
use crate::isa::mma::{MmaProfile, Rounding, block_fma};
use crate::num::{Bf16, F32};

/// Rows of A in the layout of the lanes, with the codes they came from.
pub struct Rows<'a> {
    /// The codes, `[m, k]`.
    pub(super) codes: &'a [Bf16],
    /// Length of a row.
    pub(super) k: usize,
    pub(super) profile: MmaProfile,
    blocks: Blocks,
}

/// Decoded blocks, block-major: all rows of the first block of K come first.
pub(in crate::isa::mma) enum Blocks {
    /// Blocks of eight products.
    Eight(Vec<RowBlock<8>>),
    /// Blocks of sixteen products.
    Sixteen(Vec<RowBlock<16>>),
    /// The profile is outside the fast path's proof.
    Scalar,
}

/// One row's part of one block of K.
#[repr(align(16))]
pub(in crate::isa::mma) struct RowBlock<const N: usize> {
    /// The values.
    pub(super) values: [f32; N],
    /// How far each exponent lies below `largest`; [`NO_PRODUCT`] for a zero.
    pub(super) deficits: [u8; N],
    /// Largest exponent of a nonzero value.
    pub(super) largest: i32,
    /// Least exponent of a nonzero value.
    pub(super) least: i32,
    pub(super) kind: RowKind,
}

/// What the kernel may do with a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RowKind {
    /// Use the lanes if the rest of the bounds hold.
    Ordinary,
    /// All values are zero: accumulators stay as they are.
    Zero,
    /// Infinite or NaN values, or a sum that could leave `i32`: scalar text.
    Odd,
}

impl<'a> Rows<'a> {
    /// Decodes the rows of `codes`, each `k` long.
    ///
    /// # Panics
    /// If `k` is zero or `codes` is not a whole number of rows.
    pub fn new(profile: &MmaProfile, codes: &'a [Bf16], k: usize) -> Self {
        assert!(k > 0 && codes.len().is_multiple_of(k), "{} codes in rows of {k}", codes.len());
        // The proof in `kernel` needs these; every bf16 profile has them.
        let fraction_bits = 23 + i32::from(profile.neab);
        let proven = profile.rounding == Rounding::TowardZeroF32
            && (23..=25).contains(&fraction_bits)
            && profile.min_alignment_exponent <= -126;
        let blocks = match profile.n_fma {
            8 if proven => Blocks::Eight(decode(profile, codes, k)),
            16 if proven => Blocks::Sixteen(decode(profile, codes, k)),
            _ => Blocks::Scalar,
        };
        Self { codes, k, profile: *profile, blocks }
    }

    /// Number of rows.
    pub fn count(&self) -> usize {
        self.codes.len() / self.k
    }

    /// Length of a row.
    pub fn k(&self) -> usize {
        self.k
    }

    /// Continues all walks with the scalar text; returns the number of blocks.
    pub(in crate::isa::mma) fn walk_scalar(&self, b: &[Bf16], out: &mut [F32]) -> usize {
        let n = b.len() / self.k;
        let n_fma = usize::from(self.profile.n_fma);
        for (a, out) in self.codes.chunks_exact(self.k).zip(out.chunks_exact_mut(n)) {
            for (b, c) in b.chunks_exact(self.k).zip(out) {
                for (a, b) in a.chunks(n_fma).zip(b.chunks(n_fma)) {
                    *c = block_fma(&self.profile, a, b, *c);
                }
            }
        }
        out.len() * self.k.div_ceil(n_fma)
    }

    pub(in crate::isa::mma) fn blocks(&self) -> &Blocks {
        &self.blocks
    }
}

fn decode<const N: usize>(profile: &MmaProfile, codes: &[Bf16], k: usize) -> Vec<RowBlock<N>> {
    let fraction_bits = (23 + i32::from(profile.neab)) as u32;
    let mut blocks = Vec::with_capacity(k.div_ceil(N) * (codes.len() / k));
    for start in (0..k).step_by(N) {
        for row in codes.chunks_exact(k) {
            blocks.push(RowBlock::new(&row[start..k.min(start + N)], fraction_bits));
        }
    }
    blocks
}

impl<const N: usize> RowBlock<N> {
    /// Decodes up to `N` codes; missing ones are zeros.
    fn new(codes: &[Bf16], fraction_bits: u32) -> Self {
        let mut block = Self {
            values: [0.0; N],
            deficits: [NO_PRODUCT; N],
            largest: i32::MIN,
            least: i32::MAX,
            kind: RowKind::Ordinary,
        };
        let mut significands = 0u64;
        let mut special = false;
        for (value, &Bf16(code)) in block.values.iter_mut().zip(codes) {
            *value = f32::from_bits(u32::from(code) << 16);
            special |= is_special(code);
            if let Some(exponent) = exponent(code) {
                block.largest = block.largest.max(exponent);
                block.least = block.least.min(exponent);
                let hidden = if code & 0x7f80 == 0 { 0 } else { 0x80 };
                significands += u64::from(hidden | (code & 0x7f));
            }
        }
        for (deficit, &Bf16(code)) in block.deficits.iter_mut().zip(codes) {
            if let Some(exponent) = exponent(code) {
                *deficit = (block.largest - exponent).min(254) as u8;
            }
        }
        if special || !sum_fits(significands, fraction_bits) {
            block.kind = RowKind::Odd;
        } else if significands == 0 {
            block.kind = RowKind::Zero;
        }
        block
    }
}

/// True if the sum of a block stays in `i32`, with room for one rounding of it to
/// binary32: at most `2^31 − 128`.
///
/// A term is at most `sig_a · 255 / 2^14` in units of `2^e_max`, the accumulator
/// below 2. For F = 25 only sixteen nearly maximal significands exceed this; for
/// eight products nothing does.
fn sum_fits(significands: u64, fraction_bits: u32) -> bool {
    let products = (significands * 255) << fraction_bits;
    let accumulator = 2u64 << (fraction_bits + 14);
    products + accumulator <= ((1 << 31) - 128) << 14
}
