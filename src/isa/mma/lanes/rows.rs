//! Rows of A, decoded once for all panels.

use std::ops::Range;

use super::columns::biased_exponent;
use super::{LARGEST_FACTOR_EXPONENT, LARGEST_FACTOR_FIELD, Reach, SPAN, SURFACE, ZERO_HEIGHT};
use crate::isa::mma::{MmaProfile, Rounding, block_fma};
use crate::num::{Bf16, F32};

/// Rows of A in the layout of the lanes, with the codes they came from.
pub struct Rows<'a> {
    /// The codes, `[m, k]`.
    pub(super) codes: &'a [Bf16],
    /// Length of a row.
    pub(super) k: usize,
    pub(super) profile: MmaProfile,
    /// Decoded spans, in parts that follow each other along K; none if the profile is
    /// outside the fast path's proof.
    pub(super) parts: Vec<Part>,
}

/// Sixteen spans of K of all rows, decoded: parts are independent, so threads can
/// share the work.
pub struct Part {
    /// Span-major: all rows of the first span of K come first.
    pub(super) spans: Vec<RowSpan>,
    /// For each span of K, the exponents of its nonzero values in all rows.
    pub(super) reaches: Vec<Option<Reach>>,
}

/// Spans of K in a part.
const PART: usize = 16;

impl Part {
    /// No exponent is above [`LARGEST_FACTOR_EXPONENT`].
    pub(super) fn ordinary(&self) -> bool {
        self.reaches.iter().flatten().all(|reach| reach.largest <= LARGEST_FACTOR_EXPONENT)
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

    /// Number of parts; none if the proof in `kernel` does not hold for the profile, as it
    /// does for every bf16 profile.
    pub(in crate::isa::mma) fn parts(&self) -> usize {
        if proven(&self.profile).is_some() { self.k.div_ceil(SPAN * PART) } else { 0 }
    }

    /// Decodes one part; compiled for the caller's instruction set.
    #[inline(always)]
    pub(in crate::isa::mma) fn part(&self, index: usize) -> Part {
        let (codes, k) = (self.codes, self.k);
        let fraction_bits = (23 + i32::from(self.profile.neab)) as u32;
        let first = index * PART;
        let (m, count) = (codes.len() / k, PART.min(k.div_ceil(SPAN) - first));
        let mut spans = vec![RowSpan::EMPTY; count * m];
        let mut reaches = Vec::with_capacity(count);
        for (index, spans) in spans.chunks_exact_mut(m.max(1)).enumerate() {
            let start = (first + index) * SPAN;
            let mut reach = None;
            for (span, row) in spans.iter_mut().zip(codes.chunks_exact(k)) {
                if let Some(codes) = row[start..].first_chunk() {
                    span.decode(codes, fraction_bits);
                } else {
                    let mut codes = [Bf16::ZERO; SPAN];
                    codes[..k - start].copy_from_slice(&row[start..]);
                    span.decode(&codes, fraction_bits);
                }
                reach = Reach::join(reach, span.reach);
            }
            reaches.push(reach);
        }
        Part { spans, reaches }
    }

    /// The rows of all parts, in order.
    pub(in crate::isa::mma) fn assemble(self, parts: Vec<Part>) -> Rows<'a> {
        Rows { codes: self.codes, k: self.k, profile: self.profile, parts }
    }
}

/// Products in a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Block {
    Eight,
    Sixteen,
}

/// Length of a block, if the proof in `kernel` holds for the profile.
fn proven(profile: &MmaProfile) -> Option<Block> {
    let fraction_bits = 23 + i32::from(profile.neab);
    let block = match profile.n_fma {
        8 => Block::Eight,
        16 => Block::Sixteen,
        _ => return None,
    };
    let proven = profile.rounding == Rounding::TowardZeroF32
        && (23..=25).contains(&fraction_bits)
        && profile.min_alignment_exponent <= -126;
    proven.then_some(block)
}

/// One row's part of one span of K.
#[derive(Clone)]
#[repr(C, align(16))]
pub(super) struct RowSpan {
    /// The values.
    pub(super) values: [f32; SPAN],
    /// Heights of the exponents (see [`SURFACE`]), in four equal bytes, one for each
    /// vector of a panel; [`ZERO_HEIGHT`] for a zero. Of no use in an odd span.
    pub(super) heights: [[u8; 4]; SPAN],
    /// Exponents of the nonzero values.
    pub(super) reach: Option<Reach>,
    pub(super) kind: RowKind,
}

/// What the kernel may do with a span.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RowKind {
    /// Use the lanes if the rest of the bounds hold.
    Ordinary,
    /// All values are zero: accumulators stay as they are.
    Zero,
    /// Infinite, NaN or very large values, or a sum that could leave `i32`: scalar text.
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

    /// Length of a block if the lanes may be used.
    pub(super) fn block(&self) -> Option<Block> {
        proven(&self.profile)
    }
}

impl RowSpan {
    const EMPTY: Self = Self {
        values: [0.0; SPAN],
        heights: [[ZERO_HEIGHT; 4]; SPAN],
        reach: None,
        kind: RowKind::Zero,
    };

    #[inline(always)]
    fn decode(&mut self, codes: &[Bf16; SPAN], fraction_bits: u32) {
        // Loops over arrays of one type, which vectorise.
        let mut fields = [0u16; SPAN];
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
        for (heights, field) in self.heights.iter_mut().zip(fields) {
            let height = u32::from(height(field));
            *heights = (height | height << 8 | height << 16 | height << 24).to_le_bytes();
        }
        self.reach = Reach::of_biased(least.wrapping_add(1), largest);
        // One significand well below its maximum makes any sum fit: 15 · 255 + 128 + 23
        // is less than `sum_fits` allows for F = 25.
        let fits = least_fraction < 24 || sum_fits(significands(codes), fraction_bits);
        self.kind = if largest > LARGEST_FACTOR_FIELD || !fits {
            RowKind::Odd
        } else if largest == 0 {
            RowKind::Zero
        } else {
            RowKind::Ordinary
        };
    }
}

/// Height of a biased exponent up to [`LARGEST_FACTOR_FIELD`]; of no use above.
#[inline(always)]
fn height(field: u16) -> u16 {
    let height = field.wrapping_add(const { SURFACE as u16 }) & 0xff;
    if field == 0 { u16::from(ZERO_HEIGHT) } else { height }
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

/// True if the sum of a block of these significands stays in `i32`: at most
/// `2^31 − 128`. For a span of two blocks it asks more than it must.
///
/// A term is at most `sig_a · 255 / 2^14` in units of `2^e_max`, the accumulator
/// below 2. For F = 25 only sixteen nearly maximal significands exceed this; for
/// eight products nothing does.
fn sum_fits(significands: u64, fraction_bits: u32) -> bool {
    let products = (significands * 255) << fraction_bits;
    let accumulator = 2u64 << (fraction_bits + 14);
    products + accumulator <= ((1 << 31) - 128) << 14
}
