//! Rotary embedding: frequencies, angle table, and the rotation of one head.
//!
//! The frequencies are data, not a formula: they come from the host's `pow`,
//! which no recipe here reproduces. Everything after them is computed.

use serde::Deserialize;
use std::collections::BTreeMap;

use super::error::expect_len;
use super::{RecipeError, libdevice};
use crate::isa::fp32::{fadd, fmul, from_u32};
use crate::num::{Bf16, F32};

/// `inv_freq[i] = 1 / theta^(2i/128)` as PyTorch has it when a checkpoint is loaded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InverseFrequencies([F32; PAIRS]);

impl InverseFrequencies {
    /// Looks the words of one base up in `profiles/rope_inv_freq.json`.
    ///
    /// # Errors
    /// [`RecipeError::HeadDim`] if the head size is not 128 (C1);
    /// [`RecipeError::RopeTheta`] if the base was not measured (C2).
    ///
    /// # Source
    /// The `cpu` words of the data file; its provenance is in the file.
    pub fn for_theta(theta: u64, head_dim: usize) -> Result<Self, RecipeError> {
        if head_dim != HEAD_DIM {
            return Err(RecipeError::HeadDim { op: OP, head_dim });
        }
        let broken = |problem| RecipeError::RopeData { theta, problem };
        let data: DataFile =
            serde_json::from_str(DATA).map_err(|error| broken(error.to_string()))?;
        let words = data.theta.get(&theta.to_string()).ok_or_else(|| {
            let mut known: Vec<&str> = data.theta.keys().map(String::as_str).collect();
            known.sort_by_key(|theta| theta.len());
            RecipeError::RopeTheta { theta, known: known.join(", ") }
        })?;
        let mut frequencies = [F32::ZERO; PAIRS];
        if words.cpu.len() != PAIRS {
            return Err(broken(format!("{} words, expected {PAIRS}", words.cpu.len())));
        }
        for (frequency, word) in frequencies.iter_mut().zip(&words.cpu) {
            let bits = u32::from_str_radix(word, 16);
            *frequency = F32(bits.map_err(|_| broken(format!("word '{word}' is not hex")))?);
        }
        Ok(Self(frequencies))
    }

    /// The 64 frequencies, for engines that compute the angles themselves.
    pub fn words(&self) -> &[F32] {
        &self.0
    }

    /// Computes the cosines and sines of one position.
    ///
    /// # Rounding
    /// R1: `angle = FMUL(float(position), inv_freq[i])`.
    /// R2: CUDA's accurate `cosf` and `sinf`, each rounded to BF16.
    ///
    /// # Errors
    /// [`RecipeError::Position`] from 2^24 on, where the conversion could round (C3).
    pub fn angles(&self, position: usize) -> Result<Angles, RecipeError> {
        let exact = u32::try_from(position).ok().filter(|&p| p < POSITIONS);
        let exact =
            exact.ok_or(RecipeError::Position { op: OP, position, limit: POSITIONS as usize })?;
        let angles = self.0.map(|frequency| fmul(from_u32(exact), frequency)); // R1
        Ok(Angles {
            cos: angles.map(|angle| Bf16::round(libdevice::cosf(angle))), // R2
            sin: angles.map(|angle| Bf16::round(libdevice::sinf(angle))), // R2
        })
    }
}

/// Cosines and sines of one position, one per pair of a head.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Angles {
    cos: [Bf16; PAIRS],
    sin: [Bf16; PAIRS],
}

impl Angles {
    /// Cosines of the 64 pairs.
    pub fn cos(&self) -> &[Bf16] {
        &self.cos
    }

    /// Sines of the 64 pairs.
    pub fn sin(&self) -> &[Bf16] {
        &self.sin
    }
}

/// The angles of positions `0..len`, computed once for a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AngleTable(Vec<Angles>);

impl AngleTable {
    /// Computes the angles of positions `0..len`.
    ///
    /// # Errors
    /// [`RecipeError::Position`] if `len` is past 2^24.
    pub fn new(frequencies: &InverseFrequencies, len: usize) -> Result<Self, RecipeError> {
        (0..len).map(|position| frequencies.angles(position)).collect::<Result<_, _>>().map(Self)
    }

    /// Returns the angles of one position.
    ///
    /// # Errors
    /// [`RecipeError::Position`] if the table does not reach it.
    pub fn at(&self, position: usize) -> Result<&Angles, RecipeError> {
        let limit = self.0.len();
        self.0.get(position).ok_or(RecipeError::Position { op: OP, position, limit })
    }
}

/// Rotates one head of a query or key by the angles of its position.
///
/// # Shape
/// `x`, `out`: `[128]` BF16.
///
/// # Rounding
/// R3: `out[i] = bf16(bf16(x[i]·cos) + bf16(−x[i + 64]·sin))`.
/// R4: `out[i + 64] = bf16(bf16(x[i + 64]·cos) + bf16(x[i]·sin))`.
/// PyTorch multiplies and adds in BF16 tensors, so each product lands in memory.
/// The negation flips a sign bit and rounds nothing.
///
/// # Special values
/// NaN, `0·∞` and `∞ − ∞` give `7fff`.
///
/// # Errors
/// [`RecipeError::Shape`] if a row is not `[128]` (C1).
///
/// # Source
/// `spec/ops.md`, `rope`; order of Hugging Face transformers 5.17's Qwen3, compared
/// with it on an H200.
pub fn rope_row(angles: &Angles, x: &[Bf16], out: &mut [Bf16]) -> Result<(), RecipeError> {
    expect_len(OP, "head", HEAD_DIM, x.len())?;
    expect_len(OP, "output", HEAD_DIM, out.len())?;
    let (low, high) = x.split_at(PAIRS);
    let (out_low, out_high) = out.split_at_mut(PAIRS);
    for i in 0..PAIRS {
        let (cos, sin) = (angles.cos[i].widen(), angles.sin[i].widen());
        let (a, b) = (low[i].widen(), high[i].widen());
        out_low[i] = rounded_sum(fmul(a, cos), fmul(b.negate(), sin)); // R3
        out_high[i] = rounded_sum(fmul(b, cos), fmul(a, sin)); // R4
    }
    Ok(())
}

/// `bf16(bf16(x) + bf16(y))`.
fn rounded_sum(x: F32, y: F32) -> Bf16 {
    Bf16::round(fadd(Bf16::round(x).widen(), Bf16::round(y).widen()))
}

#[derive(Deserialize)]
struct DataFile {
    theta: BTreeMap<String, Words>,
}

#[derive(Deserialize)]
struct Words {
    cpu: Vec<String>,
}

const OP: &str = "rope";
const HEAD_DIM: usize = 128;
const PAIRS: usize = HEAD_DIM / 2;
/// Integers below 2^24 are exact in binary32.
const POSITIONS: u32 = 1 << 24;
const DATA: &str = include_str!("../../profiles/rope_inv_freq.json");

#[cfg(test)]
mod tests {
    use super::*;

    fn frequencies() -> InverseFrequencies {
        InverseFrequencies::for_theta(1_000_000, 128).unwrap()
    }

    #[test]
    fn every_shipped_base_has_falling_frequencies_from_one() {
        for theta in [10_000, 1_000_000, 5_000_000] {
            let InverseFrequencies(words) = InverseFrequencies::for_theta(theta, 128).unwrap();
            assert_eq!(words[0], F32::ONE);
            // Positive binary32 patterns order like their values.
            assert!(words.windows(2).all(|pair| pair[0].0 > pair[1].0), "theta {theta}");
            // theta^(-1/2), halfway: 1/100, 1/1000; 1/sqrt(5e6) = 0.00044721.
            let middle = words[32].to_host();
            let expected = match theta {
                10_000 => 0.01_f32,
                1_000_000 => 0.001,
                _ => 0.000_447_213_6,
            };
            assert_eq!(middle.to_bits() >> 2, expected.to_bits() >> 2, "theta {theta}");
        }
    }

    #[test]
    fn refuses_what_was_not_measured() {
        let base = InverseFrequencies::for_theta(500_000, 128).unwrap_err();
        let known = "rope: no frequencies for theta 500000; known: 10000, 1000000, 5000000";
        assert_eq!(base.to_string(), known);
        let head = InverseFrequencies::for_theta(10_000, 64).unwrap_err();
        assert_eq!(head, RecipeError::HeadDim { op: "rope", head_dim: 64 });
        assert!(frequencies().angles(1 << 24).is_err());
        assert!(frequencies().angles((1 << 24) - 1).is_ok());
    }

    #[test]
    fn position_zero_is_the_identity_but_for_the_sign_of_zero() {
        let angles = frequencies().angles(0).unwrap();
        let x: Vec<Bf16> = (0..128).map(|i| Bf16(0x3f80 + i)).collect();
        let mut out = vec![Bf16::ZERO; 128];
        rope_row(&angles, &x, &mut out).unwrap();
        assert_eq!(out, x);
        // −0·1 + −(+0)·0: a sum of two −0 stays −0; +0 beside it gives +0.
        let mut zeros = vec![Bf16::ZERO; 128];
        zeros[0] = Bf16(0x8000);
        rope_row(&angles, &zeros, &mut out).unwrap();
        assert_eq!((out[0], out[64]), (Bf16(0x8000), Bf16::ZERO));
    }

    #[test]
    fn position_one_rotates_the_first_pair_by_one_radian() {
        // inv_freq[0] = 1: cos 1 = 0.5403 → 3f0a, sin 1 = 0.8415 → 3f57.
        let angles = frequencies().angles(1).unwrap();
        assert_eq!((angles.cos()[0], angles.sin()[0]), (Bf16(0x3f0a), Bf16(0x3f57)));
        let mut x = vec![Bf16::ZERO; 128];
        (x[0], x[64]) = (Bf16(0x3f80), Bf16(0x4000)); // 1, 2
        let mut out = vec![Bf16::ZERO; 128];
        rope_row(&angles, &x, &mut out).unwrap();
        // 0.5390625 − 1.6796875 = −1.140625; 1.078125 + 0.83984375 = 1.91796875 → 1.921875 (tie to even).
        assert_eq!((out[0], out[64]), (Bf16(0xbf92), Bf16(0x3ff6)));
    }

    #[test]
    fn each_product_is_rounded_before_the_sum() {
        let angles = frequencies().angles(3).unwrap();
        let mut differs = false;
        for i in 0..64_u16 {
            let mut x = vec![Bf16::ZERO; 128];
            (x[5], x[69]) = (Bf16(0x3f81 + i), Bf16(0x3fc3 + i));
            let mut out = vec![Bf16::ZERO; 128];
            rope_row(&angles, &x, &mut out).unwrap();
            let (cos, sin) = (angles.cos()[5].widen(), angles.sin()[5].widen());
            let once = fadd(fmul(x[69].widen(), cos), fmul(x[5].widen(), sin));
            differs |= Bf16::round(once) != out[69];
        }
        assert!(differs, "the cases must show the inner roundings");
    }

    #[test]
    fn the_table_holds_the_angles_of_each_position() {
        let table = AngleTable::new(&frequencies(), 5).unwrap();
        for position in 0..5 {
            assert_eq!(table.at(position), Ok(&frequencies().angles(position).unwrap()));
        }
        let refused = table.at(5).unwrap_err();
        assert_eq!(refused.to_string(), "rope: position 5 is outside 0..5");
    }
}
