//! Many rows at once against one row at a time.

use super::HeadRows;
use super::flash2::flash2_row;
use super::flash2_rows::{flash2_rows, own_tiles};
use crate::isa::mma::{MmaProfile, Simd};
use crate::isa::profile::Profile;
use crate::num::Bf16;
use crate::recipe::gemm::Walk;

const DIM: usize = 128;
/// Heads of the cache; head 1 is used, so that a wrong stride shows.
const HEADS: usize = 2;

fn bf16(id: &str) -> MmaProfile {
    *Profile::by_id(id).unwrap().mma("bf16").unwrap()
}

struct Noise(u64);

impl Noise {
    fn bits(&mut self) -> u64 {
        // Knuth's MMIX constants.
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    /// Numbers with exponent fields from `base` to `base + spread - 1`.
    fn numbers(&mut self, count: usize, base: u64, spread: u64) -> Vec<Bf16> {
        let mut number = || self.bits() & 0x807f | (base + self.bits() % spread) << 7;
        (0..count).map(|_| Bf16(number() as u16)).collect()
    }
}

struct Case {
    q: Vec<Bf16>,
    keys: Vec<Bf16>,
    values: Vec<Bf16>,
    positions: Vec<usize>,
}

impl Case {
    /// Scores of a few units, as trained models have, with some spread.
    fn new(positions: &[usize], seed: u64) -> Self {
        let mut noise = Noise(seed);
        let cache = (positions.iter().max().unwrap() + 1) * HEADS * DIM;
        Self {
            q: noise.numbers(positions.len() * DIM, 124, 5),
            keys: noise.numbers(cache, 123, 5),
            values: noise.numbers(cache, 118, 10),
            positions: positions.to_vec(),
        }
    }

    /// Replaces the first words of a token's key or value.
    fn put(cache: &mut [Bf16], token: usize, words: &[u16]) {
        let row = &mut cache[(token * HEADS + 1) * DIM..][..words.len()];
        row.copy_from_slice(&words.iter().map(|&word| Bf16(word)).collect::<Vec<_>>());
    }

    fn heads(&self) -> [HeadRows<'_>; 2] {
        [&self.keys, &self.values].map(|cache| HeadRows::new(cache, HEADS, 1, DIM).unwrap())
    }

    fn one_by_one(&self, profile: &MmaProfile) -> Vec<Bf16> {
        let [keys, values] = self.heads();
        let mut out = vec![Bf16(0x1234); self.q.len()];
        let rows = self.q.chunks_exact(DIM).zip(out.chunks_exact_mut(DIM)).zip(&self.positions);
        for ((q, out), &position) in rows {
            flash2_row(profile, q, keys, values, position, out).unwrap();
        }
        out
    }

    fn together(&self, walk: &Walk) -> Vec<Bf16> {
        let [keys, values] = self.heads();
        let mut out = vec![Bf16(0x1234); self.q.len()];
        flash2_rows(walk, &self.q, keys, values, &self.positions, &mut out).unwrap();
        out
    }

    #[track_caller]
    fn check(&self, profile: &MmaProfile, reason: &str) {
        let expected = self.one_by_one(profile);
        for simd in Simd::available() {
            let walk = Walk::new(profile, simd);
            assert!(self.together(&walk) == expected, "{reason}, {}", simd.name());
        }
    }
}

#[test]
fn rows_together_have_the_bits_of_rows_alone() {
    // (positions, reason)
    let cases: [(Vec<usize>, &str); 8] = [
        (vec![0], "one key"),
        (vec![62, 63, 64, 65], "either side of a tile's edge"),
        (vec![63, 127, 128], "whole tiles and one key more"),
        (vec![64; 4], "four heads of a group at one position"),
        (vec![5, 130, 70, 5, 0, 191, 64], "not in order, with gaps and one twice"),
        (
            (40..100).flat_map(|position| [position; 2]).collect(),
            "a prefill of two heads that starts late",
        ),
        ((0..40).chain(100..104).collect(), "a prefill and decode steps stacked"),
        (vec![260, 3, 259], "five tiles and one"),
    ];
    for (seed, (positions, reason)) in cases.into_iter().enumerate() {
        Case::new(&positions, seed as u64).check(&bf16("h200"), reason);
    }
    Case::new(&[3, 64, 70, 1], 99).check(&bf16("a100"), "blocks of eight products");
}

#[test]
fn special_values_reach_the_rows_that_see_them() {
    const SPECIAL: [u16; 4] = [0x7f80, 0xff80, 0x7fc0, 0xffff];
    let positions = [62, 63, 64, 70, 71, 90];
    let profile = bf16("h200");
    for token in [3, 64, 71, 90] {
        for word in SPECIAL {
            let seed = token as u64;
            let mut case = Case::new(&positions, seed);
            Case::put(&mut case.values, token, &[word]);
            case.check(&profile, &format!("value {word:04x} of token {token}"));
            let mut case = Case::new(&positions, seed);
            Case::put(&mut case.keys, token, &[word]);
            case.check(&profile, &format!("key {word:04x} of token {token}"));
        }
    }
    for word in SPECIAL {
        let mut case = Case::new(&positions, 1);
        case.q[2 * DIM + 5] = Bf16(word);
        case.check(&profile, &format!("query {word:04x}"));
    }
}

#[test]
fn extreme_scores_give_the_same_bits() {
    // (words of the key of token 66, words of its value, reason)
    let cases: [(&[u16], &[u16], &str); 5] = [
        (&[0x7f7f, 0x7f7f], &[], "huge scores"),
        (&[0x7f7f, 0xff7f, 0x7f7f], &[], "huge products that cancel or overflow"),
        (&[0x8000, 0x0001, 0x007f], &[], "zeros and subnormals in a key"),
        (&[], &[0x8000, 0x0001, 0x8001, 0x7f7f, 0xff7f], "zeros, subnormals, the largest values"),
        (&[0x4680; 128], &[0x7f7f; 4], "one key takes all: every other exponential is flushed"),
    ];
    for (key, value, reason) in cases {
        let mut case = Case::new(&[65, 66, 130, 200], 7);
        Case::put(&mut case.keys, 66, key);
        Case::put(&mut case.values, 66, value);
        case.check(&bf16("h200"), reason);
    }
    // q = (1, 0, …) and keys that start with -inf: no score at all, in one tile or in both.
    let mut case = Case::new(&[65, 70, 3], 8);
    for q in case.q.chunks_exact_mut(DIM) {
        q.fill(Bf16::ZERO);
        q[0] = Bf16(0x3f80);
    }
    for token in 0..=70 {
        let mut key = [0; DIM];
        key[0] = 0xff80;
        Case::put(&mut case.keys, token, &key);
    }
    case.check(&bf16("h200"), "every score is -inf");
    for token in 0..64 {
        Case::put(&mut case.keys, token, &[0]);
    }
    case.check(&bf16("h200"), "the first tile walked has no score");
}

#[test]
fn rows_are_divided_by_their_own_tile() {
    assert_eq!(own_tiles(&[130, 0, 63, 64, 127, 1]), [vec![1, 2, 5], vec![3, 4], vec![0]]);
    assert!(own_tiles(&[]).is_empty());
}

#[test]
fn refuses_what_is_not_there() {
    let case = Case::new(&[1, 2], 3);
    let [keys, values] = case.heads();
    let walk = Walk::new(&bf16("h200"), Simd::detect());
    let mut out = vec![Bf16::ZERO; 2 * DIM];
    let mut run =
        |q: &[Bf16], positions: &[usize]| flash2_rows(&walk, q, keys, values, positions, &mut out);
    assert_eq!(run(&case.q, &[2, 1]), Ok(()));
    assert!(run(&case.q, &[2, 3]).is_err(), "key 3 of 3");
    assert!(run(&case.q, &[2]).is_err(), "a position too few");
    assert!(run(&case.q[1..], &[2, 1]).is_err(), "a broken query");
    let narrow = HeadRows::new(&case.keys, 4, 0, 64).unwrap();
    assert!(flash2_rows(&walk, &case.q, narrow, narrow, &[2, 1], &mut out).is_err());
}
