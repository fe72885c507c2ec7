//! Rows of A, decoded once for all panels.

use std::ops::Range;

use super::columns::{biased_exponent, deficit};
use super::{NO_PRODUCT, Reach};
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

/// Decoded blocks, in parts that follow each other along K.
pub(in crate::isa::mma) enum Blocks {
    /// Blocks of eight products.
    Eight(Vec<Decoded<8>>),
    /// Blocks of sixteen products.
    Sixteen(Vec<Decoded<16>>),
    /// The profile is outside the fast path's proof.
    Scalar,
}

/// A stretch of 16 blocks of K of all rows, decoded: parts are independent, so
/// threads can share the work.
pub struct Part(Kind);

enum Kind {
    Eight(Decoded<8>),
    Sixteen(Decoded<16>),
}

/// Blocks of K in a part.
const PART: usize = 16;

/// Decoded blocks of all rows.
pub(in crate::isa::mma) struct Decoded<const N: usize> {
    /// Block-major: all rows of the first block of K come first.
    pub(super) blocks: Vec<RowBlock<N>>,
    /// For each block of K, the exponents of its nonzero values in all rows.
    pub(super) reaches: Vec<Option<Reach>>,
}

impl<const N: usize> Decoded<N> {
    /// No infinity, no NaN.
    pub(super) fn finite(&self) -> bool {
        self.reaches.iter().flatten().all(|reach| reach.largest < 128)
    }
}

/// What is to be decoded.
#[derive(Clone, Copy)]
pub(in crate::isa::mma) struct Undecoded<'a> {
    codes: &'a [Bf16],
    k: usize,
    profile: MmaProfile,
}

impl<'a> Undecoded<'a> {
    /// # Panics
    /// If `k` is zero or `codes` is not a whole number of rows.
    pub(in crate::isa::mma) fn new(profile: &MmaProfile, codes: &'a [Bf16], k: usize) -> Self {
        assert!(k > 0 && codes.len().is_multiple_of(k), "{} codes in rows of {k}", codes.len());
        Self { codes, k, profile: *profile }
    }

    /// Length of a block, if the proof in `kernel` holds for the profile, as it does
    /// for every bf16 profile.
    fn block_length(&self) -> Option<usize> {
        let fraction_bits = 23 + i32::from(self.profile.neab);
        let proven = self.profile.rounding == Rounding::TowardZeroF32
            && (23..=25).contains(&fraction_bits)
            && self.profile.min_alignment_exponent <= -126
            && matches!(self.profile.n_fma, 8 | 16);
        proven.then_some(usize::from(self.profile.n_fma))
    }

    /// Number of parts.
    pub(in crate::isa::mma) fn parts(&self) -> usize {
        self.block_length().map_or(0, |n| self.k.div_ceil(n * PART))
    }

    /// Decodes one part; compiled for the caller's instruction set.
    #[inline(always)]
    pub(in crate::isa::mma) fn part(&self, index: usize) -> Part {
        Part(match self.block_length() {
            Some(8) => Kind::Eight(self.decode(index)),
            Some(_) | None => Kind::Sixteen(self.decode(index)),
        })
    }

    #[inline(always)]
    fn decode<const N: usize>(&self, index: usize) -> Decoded<N> {
        let (codes, k) = (self.codes, self.k);
        let fraction_bits = (23 + i32::from(self.profile.neab)) as u32;
        let first = index * PART;
        let (m, count) = (codes.len() / k, PART.min(k.div_ceil(N) - first));
        let mut blocks = vec![RowBlock::EMPTY; count * m];
        let mut reaches = Vec::with_capacity(count);
        for (index, blocks) in blocks.chunks_exact_mut(m.max(1)).enumerate() {
            let start = (first + index) * N;
            let mut reach = None;
            for (block, row) in blocks.iter_mut().zip(codes.chunks_exact(k)) {
                if let Some(codes) = row[start..].first_chunk() {
                    block.decode(codes, fraction_bits);
                } else {
                    let mut codes = [Bf16::ZERO; N];
                    codes[..k - start].copy_from_slice(&row[start..]);
                    block.decode(&codes, fraction_bits);
                }
                reach = Reach::join(reach, block.reach);
            }
            reaches.push(reach);
        }
        Decoded { blocks, reaches }
    }

    /// The rows of all parts, in order.
    pub(in crate::isa::mma) fn assemble(self, parts: Vec<Part>) -> Rows<'a> {
        let (mut eight, mut sixteen) = (Vec::new(), Vec::new());
        for part in parts {
            match part.0 {
                Kind::Eight(part) => eight.push(part),
                Kind::Sixteen(part) => sixteen.push(part),
            }
        }
        let blocks = match self.block_length() {
            Some(8) => Blocks::Eight(eight),
            Some(_) => Blocks::Sixteen(sixteen),
            None => Blocks::Scalar,
        };
        Rows { codes: self.codes, k: self.k, profile: self.profile, blocks }
    }
}

/// One row's part of one block of K.
#[derive(Clone)]
#[repr(C, align(16))]
pub(in crate::isa::mma) struct RowBlock<const N: usize> {
    /// The values.
    pub(super) values: [f32; N],
    /// How far each exponent lies below the largest, in four equal bytes, one for
    /// each vector of a panel; [`NO_PRODUCT`] for a zero.
    pub(super) deficits: [[u8; 4]; N],
    /// Exponents of the nonzero values.
    pub(super) reach: Option<Reach>,
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

impl Rows<'_> {
    /// Number of rows.
    pub fn count(&self) -> usize {
        self.codes.len() / self.k
    }

    /// Length of a row.
    pub fn k(&self) -> usize {
        self.k
    }

    /// Continues the walks of some rows with the scalar text; returns the number of
    /// blocks.
    pub(in crate::isa::mma) fn walk_scalar(
        &self,
        range: Range<usize>,
        b: &[Bf16],
        out: &mut [F32],
    ) -> usize {
        let (n, k) = (b.len() / self.k, self.k);
        let n_fma = usize::from(self.profile.n_fma);
        let codes = &self.codes[range.start * k..range.end * k];
        for (a, out) in codes.chunks_exact(k).zip(out.chunks_exact_mut(n)) {
            for (b, c) in b.chunks_exact(k).zip(out) {
                for (a, b) in a.chunks(n_fma).zip(b.chunks(n_fma)) {
                    *c = block_fma(&self.profile, a, b, *c);
                }
            }
        }
        out.len() * k.div_ceil(n_fma)
    }

    pub(in crate::isa::mma) fn blocks(&self) -> &Blocks {
        &self.blocks
    }
}

impl<const N: usize> RowBlock<N> {
    const EMPTY: Self =
        Self { values: [0.0; N], deficits: [[NO_PRODUCT; 4]; N], reach: None, kind: RowKind::Zero };

    #[inline(always)]
    fn decode(&mut self, codes: &[Bf16; N], fraction_bits: u32) {
        // Loops over arrays of one type, which vectorise.
        let mut fields = [0u16; N];
        for (field, code) in fields.iter_mut().zip(codes) {
            *field = biased_exponent(code.0);
        }
        let (mut largest, mut least, mut least_fraction) = (0u16, u16::MAX, u16::MAX);
        for &field in &fields {
            largest = largest.max(field);
        }
        for &field in &fields {
            // A zero's 0 becomes the largest.
            least = least.min(field.wrapping_sub(1));
        }
        for code in codes {
            least_fraction = least_fraction.min(code.0 & 0x7f);
        }
        for (value, code) in self.values.iter_mut().zip(codes) {
            *value = f32::from_bits(u32::from(code.0) << 16);
        }
        for (deficits, field) in self.deficits.iter_mut().zip(fields) {
            let below = u32::from(deficit(largest, field));
            *deficits = (below | below << 8 | below << 16 | below << 24).to_le_bytes();
        }
        self.reach = Reach::of_biased(least.wrapping_add(1), largest);
        // One significand well below its maximum makes any sum fit: 15 · 255 + 128 + 23
        // is less than `sum_fits` allows for F = 25.
        let fits = least_fraction < 24 || sum_fits(significands(codes), fraction_bits);
        self.kind = if largest == 255 || !fits {
            RowKind::Odd
        } else if largest == 0 {
            RowKind::Zero
        } else {
            RowKind::Ordinary
        };
    }
}

/// Sum of the significands, 128 to 255 for a normal number.
#[cold]
fn significands(codes: &[Bf16]) -> u64 {
    let significand = |code: u16| {
        let hidden = if code & 0x7f80 == 0 { 0 } else { 0x80 };
        u64::from(hidden | (code & 0x7f))
    };
    codes.iter().map(|code| significand(code.0)).sum()
}

/// True if the sum of a block stays in `i32`: at most `2^31 − 128`.
///
/// A term is at most `sig_a · 255 / 2^14` in units of `2^e_max`, the accumulator
/// below 2. For F = 25 only sixteen nearly maximal significands exceed this; for
/// eight products nothing does.
fn sum_fits(significands: u64, fraction_bits: u32) -> bool {
    let products = (significands * 255) << fraction_bits;
    let accumulator = 2u64 << (fraction_bits + 14);
    products + accumulator <= ((1 << 31) - 128) << 14
}
