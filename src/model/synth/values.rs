//! Elements of a synthetic tensor: a hash of the place, bent into a weight.
//!
//! Everything is integer arithmetic, so no host can round it another way, and an
//! element depends on nothing but the seed, the tensor's name and shape, and its
//! own index, so any part can be made alone. `spec/synthetic-model.md` has the
//! rules; their numbers are given here.

use crate::num::{Bf16, sha256};

/// One tensor's rule, ready to give any of its elements.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    elements: u64,
    rows: u64,
    columns: usize,
    form: Form,
}

/// What a tensor's elements look like.
#[derive(Clone, Debug)]
enum Form {
    /// A norm's weight: positive, heavy-tailed up to `2^octaves`, times `2^gain`;
    /// divided by [`MASSIVE_DIVISOR`] in the channels listed.
    Norm { octaves: u32, gain: i32, damped: Vec<usize> },
    /// A matrix: bell-shaped elements times a factor of the row, which is
    /// heavy-tailed up to `2^octaves`, and times [`massive_factor`] in the rows listed.
    Matrix { scale: u64, octaves: u32, massive: Vec<usize> },
}

impl Rule {
    /// The rule of a tensor, chosen by its published name (S5, S6).
    pub(super) fn of(seed: u64, name: &str, shape: &[usize], hidden: usize) -> Self {
        let columns = shape.last().copied().unwrap_or(1).max(1);
        let form = if shape.len() == 1 {
            let head = name.contains("q_norm") || name.contains("k_norm");
            Form::Norm {
                octaves: if head { HEAD_NORM_OCTAVES } else { NORM_OCTAVES },
                gain: if name == FINAL_NORM { FINAL_GAIN } else { 0 },
                damped: if head { Vec::new() } else { channels(seed, hidden) },
            }
        } else {
            let table = name.contains("embed_tokens") || name.contains("lm_head");
            let down = name.contains("down_proj");
            Form::Matrix {
                scale: scale(seed, name, columns),
                octaves: if table { 0 } else { ROW_OCTAVES },
                massive: if down { channels(seed, hidden) } else { Vec::new() },
            }
        };
        let [elements, rows] = ["elements", "rows"].map(|stream| key(seed, name, stream));
        Self { elements, rows, columns, form }
    }

    /// Writes elements from `first` on as little-endian bytes.
    pub(super) fn fill(&self, first: usize, out: &mut [u8]) {
        let mut index = first;
        let mut rest = out;
        while !rest.is_empty() {
            let (row, column) = (index / self.columns, index % self.columns);
            let count = (self.columns - column).min(rest.len() / 2);
            let (part, after) = rest.split_at_mut(2 * count);
            match &self.form {
                Form::Norm { octaves, gain, damped } => {
                    self.fill_norm((*octaves, *gain), damped, column, part);
                }
                Form::Matrix { scale, octaves, massive } => {
                    let factor = self.row_factor(row, *scale, *octaves, massive);
                    self.fill_row(index, factor, part);
                }
            }
            index += count;
            rest = after;
        }
    }

    fn fill_norm(
        &self,
        (octaves, gain): (u32, i32),
        damped: &[usize],
        first: usize,
        out: &mut [u8],
    ) {
        for (column, out) in (first..).zip(out.chunks_exact_mut(2)) {
            let (significand, octave) = spread(hash(self.elements, column), octaves);
            let mut exponent = octave + gain;
            if damped.contains(&column) {
                exponent -= MASSIVE_DIVISOR.ilog2() as i32;
            }
            // S5: eight significand bits are a bfloat16 as they are.
            let pattern = (((127 + exponent) as u16) << 7) | (significand as u16 & 0x7f);
            out.copy_from_slice(&pattern.to_le_bytes());
        }
    }

    fn row_factor(&self, row: usize, scale: u64, octaves: u32, massive: &[usize]) -> u64 {
        let h = hash(self.rows, row);
        let (significand, exponent) = spread(h, octaves);
        let times = if massive.contains(&row) { massive_factor(h) } else { 1 };
        (scale * significand * times) << (exponent + ROW_OCTAVES as i32)
    }

    fn fill_row(&self, first: usize, factor: u64, out: &mut [u8]) {
        for (index, out) in (first..).zip(out.chunks_exact_mut(2)) {
            // Below 2^58, so it does not wrap; unchecked, as this is the inner loop.
            let product = bell(hash(self.elements, index)).wrapping_mul(factor as i64);
            out.copy_from_slice(&round(product).0.to_le_bytes());
        }
    }
}

/// S1: the key of one stream of hashes.
fn key(seed: u64, name: &str, stream: &str) -> u64 {
    let digest = sha256(&[format!("attest synth 1\n{seed}\n{name}\n{stream}").as_bytes()]);
    digest.0[..8].iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
}

/// S2: the hash of one place: output `index` of the generator SplitMix64 with the
/// key as its state, which can be had without those before it.
///
/// # Source
/// Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA
/// 2014; constants of the variant 13 of David Stafford's mixers, as in
/// `java.util.SplittableRandom`.
#[inline]
fn hash(key: u64, index: usize) -> u64 {
    let state = (index as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = key.wrapping_add(state);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// S4: twice the sum of four uniform 16-bit numbers, less its mean: bell-shaped,
/// standard deviation `2^17/√3`, at most `±262140`.
#[inline]
fn bell(h: u64) -> i64 {
    let sum = (h & 0xffff) + (h >> 16 & 0xffff) + (h >> 32 & 0xffff) + (h >> 48);
    2 * sum as i64 - 4 * 0xffff
}

/// S3: a factor `significand/128 · 2^exponent` with a power-law tail: each octave
/// up or down is four times rarer than the one before.
fn spread(h: u64, octaves: u32) -> (u64, i32) {
    let distance = ((h >> 8).trailing_zeros() / 2).min(octaves) as i32;
    let exponent = if h & 0x80 == 0 { distance } else { -distance };
    (128 + (h & 0x7f), exponent)
}

/// S6: a matrix's scale, `1/√columns` times a number of the tensor from 3/4 to
/// 5/4, in units that [`round`] takes away again.
fn scale(seed: u64, name: &str, columns: usize) -> u64 {
    let own = 96 + (hash(key(seed, name, "tensor"), 0) & 63);
    ((3_u64 << 32) / columns.max(1) as u64).isqrt() * own
}

/// S7: the channels of the residual stream that carry massive activations.
fn channels(seed: u64, hidden: usize) -> Vec<usize> {
    let key = key(seed, "residual", "channels");
    (0..hidden.div_ceil(CHANNEL_EVERY)).map(|i| (hash(key, i) % hidden as u64) as usize).collect()
}

/// S6: how much larger a massive row is: 32 to 95 times.
fn massive_factor(row_hash: u64) -> u64 {
    32 + (row_hash >> 58)
}

/// S8: `product · 2^-UNIT_BITS` rounded to bfloat16, to nearest, ties to even.
/// `|product| < 2^58`, so no result is subnormal or infinite.
#[inline]
fn round(product: i64) -> Bf16 {
    if product == 0 {
        return Bf16::ZERO;
    }
    let magnitude = product.unsigned_abs();
    let zeros = magnitude.leading_zeros();
    // The leading bit goes to bit 62, so the rounding has a bit to carry into.
    let aligned = magnitude << (zeros - 1);
    let rounded = aligned.wrapping_add((1 << 54) - 1).wrapping_add(aligned >> 55 & 1);
    let exponent = (127 + 63 - UNIT_BITS) - zeros;
    // The leading bit of the significand adds one to the exponent's field, and a
    // carry makes that two.
    let pattern = ((exponent - 1) << 7) + (rounded >> 55) as u32;
    Bf16(pattern as u16 | if product < 0 { 0x8000 } else { 0 })
}

/// Units of a product: 16 of the square root, 7 of the tensor's number, 17 of the
/// bell, 7 of the row's significand, [`ROW_OCTAVES`] of its exponent, and one that
/// makes the row factors' mean square about one.
const UNIT_BITS: u32 = 16 + 7 + 17 + 7 + ROW_OCTAVES + 1;

/// Octaves of the row factors of a projection.
const ROW_OCTAVES: u32 = 2;
/// Octaves of a hidden norm: of 2,560 channels, one or two weigh 32 to 128, beside
/// a median of 1.5.
const NORM_OCTAVES: u32 = 6;
/// Octaves of a query or key norm, 128 channels.
const HEAD_NORM_OCTAVES: u32 = 3;
/// The norm before the output matrix.
const FINAL_NORM: &str = "model.norm.weight";
/// Its factor, as a power of two: with it the logits spread as widely as a trained
/// model's, a standard deviation of two to three.
const FINAL_GAIN: i32 = 1;
/// One channel in so many carries massive activations.
const CHANNEL_EVERY: usize = 1024;
/// What the norms divide massive channels by.
const MASSIVE_DIVISOR: u32 = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_splitmix64() {
        // Outputs of the generator seeded with 1234567, as published with other
        // implementations (Rosetta Code, "Pseudo-random numbers/Splitmix64").
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!([0, 1, 2, 3, 4].map(|index| hash(1_234_567, index)), expected);
    }

    #[test]
    fn bells_end_where_they_say_and_have_their_mean_square() {
        assert_eq!(bell(0), -262_140);
        assert_eq!(bell(u64::MAX), 262_140);
        assert_eq!(bell(0x7fff_8000_7fff_8000), 0);
        let count = 1 << 20;
        let squares: i64 = (0..count).map(|index| bell(hash(1, index)).pow(2)).sum();
        // The expectation is 2^34/3; the sum of 2^20 squares strays by 0.1 %.
        let ratio = 1000 * (squares >> 20) / ((1 << 34) / 3);
        assert!((997..=1003).contains(&ratio), "{ratio} thousandths");
    }

    /// The nearest bfloat16 by trying both neighbours of the truncated pattern.
    fn nearest(product: i64) -> u16 {
        let magnitude = i128::from(product.unsigned_abs());
        // A pattern's value in units of 2^-150, far below any result.
        let value = |pattern: u16| {
            let (exponent, fraction) = (i32::from(pattern >> 7), i128::from(pattern & 0x7f));
            (128 + fraction) << (exponent - 134 + UNIT_BITS as i32 + 8)
        };
        let wanted = magnitude << 8;
        let below = (0x2680..0x4480).rev().find(|&pattern| value(pattern) <= wanted).unwrap();
        let (down, up) = (wanted - value(below), value(below + 1) - wanted);
        let pattern = match down.cmp(&up) {
            std::cmp::Ordering::Less => below,
            std::cmp::Ordering::Greater => below + 1,
            std::cmp::Ordering::Equal => below + (below & 1),
        };
        pattern | if product < 0 { 0x8000 } else { 0 }
    }

    #[test]
    fn rounds_to_the_nearest_bfloat16() {
        let one = 1 << UNIT_BITS;
        // (product, pattern, reason)
        let cases = [
            (0, 0x0000, "zero is positive"),
            (one, 0x3f80, "one"),
            (-one, 0xbf80, "minus one"),
            (1, 0x2680, "the smallest, 2^-50"),
            ((1 << 58) - 1, 0x4380, "the largest rounds to 2^8"),
            (257 << 42, 0x3f80, "a tie below an even significand stays"),
            (259 << 42, 0x3f82, "a tie below an odd significand goes up"),
            ((257 << 42) + 1, 0x3f81, "just above a tie goes up"),
            (511 << 42, 0x4000, "a tie carries into the exponent"),
            ((511 << 42) - 1, 0x3fff, "just below it does not"),
        ];
        for (product, pattern, reason) in cases {
            // The cases are written for a unit of 2^-50.
            assert_eq!(UNIT_BITS, 50);
            assert_eq!(round(product).0, pattern, "{reason}");
        }
        for index in 0..3000 {
            let product = hash(2, index) as i64 >> (6 + index % 50);
            assert_eq!(round(product).0, nearest(product), "{product}");
        }
    }

    #[test]
    fn each_octave_is_four_times_rarer_and_the_last_holds_the_rest() {
        let mut octaves = [0_u32; 9];
        for index in 0..1 << 16 {
            let (significand, exponent) = spread(hash(3, index), 4);
            assert!((128..256).contains(&significand));
            octaves[(exponent + 4) as usize] += 1;
        }
        // Expected of 65,536: 3/4 in the middle, then 3/32, 3/128, 3/512, and 1/512.
        let expected = [128, 384, 1536, 6144, 49_152, 6144, 1536, 384, 128];
        for (found, expected) in octaves.iter().zip(expected) {
            assert!(found.abs_diff(expected) < expected / 4, "{octaves:?}");
        }
    }

    #[test]
    fn no_product_reaches_the_bound() {
        // The narrowest row that a supported model can have but for a tiny MLP: 128.
        let scale = (3_u64 << 32).div_euclid(128).isqrt() * (96 + 63);
        let factor = (scale * 255 * (32 + 63)) << (2 * ROW_OCTAVES);
        assert!(factor * 262_140 < 1 << 58, "{factor}");
    }

    #[test]
    fn any_part_can_be_made_alone() {
        let cases: [(&str, &[usize]); 4] = [
            ("model.embed_tokens.weight", &[40, 300]),
            ("model.layers.0.mlp.down_proj.weight", &[300, 24]),
            ("model.layers.0.input_layernorm.weight", &[300]),
            ("model.layers.0.self_attn.q_norm.weight", &[128]),
        ];
        for (name, shape) in cases {
            let rule = Rule::of(7, name, shape, 300);
            let mut whole = vec![0; 2 * shape.iter().product::<usize>()];
            rule.fill(0, &mut whole);
            for part in [2, 14, 1000] {
                let mut parts = vec![0; whole.len()];
                for (index, out) in parts.chunks_mut(part).enumerate() {
                    rule.fill(index * part / 2, out);
                }
                assert_eq!(parts, whole, "{name} in parts of {part} bytes");
            }
        }
    }
}
