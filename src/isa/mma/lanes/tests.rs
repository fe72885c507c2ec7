//! The lanes against the scalar text: every compiled form, both block lengths,
//! and data families that aim at each bound of the proof.

use super::*;
use crate::isa::mma::{MmaProfile, Simd, block_fma};
use crate::isa::profile::Profile;
use crate::num::{Bf16, F32};

/// A small reproducible generator (xorshift64*, Vigna 2016).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, bound: u64) -> u64 {
        (self.next() >> 33) % bound
    }

    fn bits(&mut self, count: u32) -> u16 {
        (self.next() >> (64 - count)) as u16
    }

    /// A number with a biased exponent field in `from..from + span`.
    fn number(&mut self, from: u64, span: u64) -> u16 {
        let field = (from + self.below(span)) as u16;
        (self.bits(1) << 15) | (field << 7) | self.bits(7)
    }
}

/// What the elements of A and B and the initial accumulators look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    /// Any bits, infinities and NaNs among them.
    AnyBits,
    /// Any finite bits.
    AnyFinite,
    /// Exponents within 8 of each other around 1.
    Narrow,
    /// Exponents within 30.
    Medium,
    /// Exponents within 60.
    Wide,
    /// Ordinary activations and small weights, accumulators from zero.
    Realistic,
    /// The same, with accumulators.
    RealisticLive,
    /// A subnormal times ordinary.
    SubnormalTimesNormal,
    /// Two subnormals.
    SubnormalTimesSubnormal,
    /// Products around 2^-126.
    Tiny,
    /// Products around the least exponent of the lanes.
    LeastExponentEdge,
    /// Products around the floor of alignment, 2^-133.
    FloorEdge,
    /// Factors and products around the largest exponents of the lanes.
    LargeEdge,
    /// Sums that overflow.
    Overflow,
    /// Products that overflow by themselves.
    ProductOverflow,
    /// Pairs of products that nearly cancel.
    Cancelling,
    /// Significands at their maximum, accumulators at the limit of `i32`.
    MaximalSignificands,
    /// Mostly zeros of both signs.
    Sparse,
    /// Few significant bits: exact ties at the cut.
    FewBits,
    /// Attention weights in 0..1 down to 2^-126, whole blocks of zeros.
    AttentionWeights,
    /// A special value here and there.
    RareSpecials,
}

use Family::*;
const FAMILIES: [Family; 21] = [
    AnyBits,
    AnyFinite,
    Narrow,
    Medium,
    Wide,
    Realistic,
    RealisticLive,
    SubnormalTimesNormal,
    SubnormalTimesSubnormal,
    Tiny,
    LeastExponentEdge,
    FloorEdge,
    LargeEdge,
    Overflow,
    ProductOverflow,
    Cancelling,
    MaximalSignificands,
    Sparse,
    FewBits,
    AttentionWeights,
    RareSpecials,
];

#[test]
fn a_subnormal_column_sets_the_exponent() {
    for (id, profile) in profiles() {
        for c in [0u32, 0x1e80_0001] {
            let a = vec![Bf16(0x5b00)]; // 2^55: its products with subnormals are in the fast range
            let b = vec![Bf16(0x0001), Bf16(0x807f)];
            let case = Case { a, b, c: vec![F32(c); 2], k: 1 };
            let expected = scalar(&profile, &case);
            assert_eq!(all_forms(&profile, &case, &expected, &id), 0);
        }
    }
}

struct Case {
    a: Vec<Bf16>,
    b: Vec<Bf16>,
    c: Vec<F32>,
    k: usize,
}

impl Family {
    fn a(self, r: &mut Random) -> u16 {
        let sign = r.bits(1) << 15;
        match self {
            AnyBits => r.bits(16),
            AnyFinite => r.number(0, 255),
            Narrow | Cancelling => r.number(123, 8),
            Medium => r.number(112, 30),
            Wide => r.number(97, 60),
            Realistic | RealisticLive => {
                let outlier = if r.below(100) == 0 { 7 } else { 0 };
                r.number(120 + outlier, 8)
            }
            SubnormalTimesNormal | SubnormalTimesSubnormal => sign | r.bits(7),
            Tiny => r.number(60, 8),
            LeastExponentEdge => r.number(76, 4),
            FloorEdge => r.number(58, 6),
            LargeEdge => r.number(178, 6),
            Overflow => r.number(188, 4),
            ProductOverflow => r.number(200, 54),
            MaximalSignificands => {
                sign | (127 << 7) | if r.below(8) == 0 { r.bits(7) } else { 127 }
            }
            Sparse => {
                if r.below(4) == 0 {
                    r.number(120, 10)
                } else {
                    sign
                }
            }
            FewBits => sign | ((114 + r.below(26) as u16) << 7) | (r.bits(1) << 6),
            AttentionWeights => match r.below(8) {
                0 => r.number(1, 126) & 0x7fff,
                1..=3 => 0,
                _ => r.number(115, 12) & 0x7fff,
            },
            RareSpecials => match r.below(400) {
                0 => 0x7f80 | sign,
                1 => 0x7f81 | r.bits(7),
                _ => r.number(120, 8),
            },
        }
    }

    fn b(self, r: &mut Random) -> u16 {
        match self {
            Realistic | RealisticLive | AttentionWeights => r.number(110, 14),
            SubnormalTimesNormal => r.number(100, 130),
            Tiny => r.number(66, 8),
            LeastExponentEdge => r.number(78, 4),
            FloorEdge => r.number(59, 6),
            LargeEdge => r.number(180, 4),
            AnyBits
            | AnyFinite
            | Narrow
            | Medium
            | Wide
            | SubnormalTimesSubnormal
            | Overflow
            | ProductOverflow
            | Cancelling
            | MaximalSignificands
            | Sparse
            | FewBits
            | RareSpecials => self.a(r),
        }
    }

    fn c(self, r: &mut Random) -> u32 {
        let low = (r.next() >> 48) as u32;
        let wide = |code: u16| (u32::from(code) << 16) | low;
        match self {
            Realistic | AttentionWeights => 0,
            AnyBits => r.next() as u32,
            SubnormalTimesNormal | SubnormalTimesSubnormal | Tiny | FloorEdge => match r.below(3) {
                0 => 0,
                1 => wide(r.bits(1) << 15),
                _ => wide(r.number(0, 30)),
            },
            LeastExponentEdge => match r.below(4) {
                0 => 0,
                1 => wide(r.number(20, 8)),
                _ => wide(r.number(25, 8)),
            },
            LargeEdge => wide(r.number(240, 14)),
            Overflow | ProductOverflow => wide(r.number(245, 10)),
            MaximalSignificands => {
                // Just below 4, an exponent above the products', and just below 2, theirs.
                let largest = if r.below(2) == 0 { 0x407f_ffff } else { 0x3fff_ffff };
                (r.next() as u32 & 0x8000_0000) | largest
            }
            Sparse => {
                if r.below(2) == 0 {
                    r.next() as u32 & 0x8000_0000
                } else {
                    wide(r.number(100, 30))
                }
            }
            RareSpecials => {
                if r.below(50) == 0 {
                    wide(r.bits(1) << 15 | 0x7f80)
                } else {
                    0
                }
            }
            AnyFinite => wide(r.number(0, 255)),
            Narrow | Medium | Wide | RealisticLive | Cancelling | FewBits => {
                wide(r.number(110, 30))
            }
        }
    }

    fn case(self, r: &mut Random, m: usize, n: usize, k: usize) -> Case {
        let mut a: Vec<_> = (0..m * k).map(|_| Bf16(self.a(r))).collect();
        let mut b: Vec<_> = (0..n * k).map(|_| Bf16(self.b(r))).collect();
        let c = (0..m * n).map(|_| F32(self.c(r))).collect();
        if self == Cancelling {
            // Odd elements repeat even ones, negated in A, at times one place off.
            for pair in a.chunks_exact_mut(2) {
                pair[1] = Bf16(pair[0].0 ^ 0x8000);
            }
            for pair in b.chunks_exact_mut(2) {
                pair[1] = Bf16(pair[0].0 ^ u16::from(r.below(4) == 0));
            }
        }
        if self == AttentionWeights {
            for row in a.chunks_exact_mut(k) {
                let masked = r.below(k as u64 + 1) as usize;
                row[masked..].fill(Bf16::ZERO);
            }
        }
        Case { a, b, c, k }
    }
}

fn scalar(profile: &MmaProfile, case: &Case) -> Vec<F32> {
    let n_fma = usize::from(profile.n_fma);
    let mut out = Vec::new();
    for (row, a) in case.a.chunks_exact(case.k).enumerate() {
        for (column, b) in case.b.chunks_exact(case.k).enumerate() {
            let c = case.c[row * (case.b.len() / case.k) + column];
            out.push(
                a.chunks(n_fma)
                    .zip(b.chunks(n_fma))
                    .fold(c, |c, (a, b)| block_fma(profile, a, b, c)),
            );
        }
    }
    out
}

fn profiles() -> Vec<(String, MmaProfile)> {
    ["h200", "a100"]
        .map(|id| (id.to_owned(), *Profile::by_id(id).unwrap().mma("bf16").unwrap()))
        .to_vec()
}

fn decoded<'a>(simd: Simd, profile: &MmaProfile, case: &'a Case) -> Rows<'a> {
    simd.rows(profile, &case.a, case.k, |parts, part| (0..parts).map(part).collect())
}

/// Every form this machine runs, and the widest panel compiled portably, so that
/// its lane count is tested without AVX-512.
fn all_forms(profile: &MmaProfile, case: &Case, expected: &[F32], what: &str) -> usize {
    let mut escapes = 0;
    for simd in Simd::available() {
        let rows = decoded(simd, profile, case);
        let mut out = case.c.clone();
        escapes = simd.walk_into(&rows, 0..rows.count(), &case.b, &mut out);
        assert_eq!(out, expected, "{what}, {}", simd.name());
    }
    let mut out = case.c.clone();
    let rows = decoded(Simd::PORTABLE, profile, case);
    assert!(rows.block().is_some(), "{what}: the profile is outside the proof");
    choose::<portable::Portable<16>, 16, 64>(&rows, 0..rows.count(), &case.b, &mut out);
    assert_eq!(out, expected, "{what}, 64 lanes");
    escapes
}

/// Runs every family; returns outputs compared.
fn run_families(seed: u64, shapes: &[(usize, usize, usize)]) -> usize {
    let mut outputs = 0;
    for (id, profile) in profiles() {
        for family in FAMILIES {
            let mut r = Random(seed ^ 0x9e37_79b9_7f4a_7c15);
            for &(m, n, k) in shapes {
                let case = family.case(&mut r, m, n, k);
                let expected = scalar(&profile, &case);
                all_forms(&profile, &case, &expected, &format!("{id} {family:?} {m}x{n}x{k}"));
                outputs += expected.len();
            }
        }
    }
    outputs
}

#[test]
fn every_family_gives_the_bits_of_the_scalar_text() {
    // Whole and partial panels and blocks, one row and several.
    let shapes = [(1, 1, 1), (3, 33, 40), (5, 64, 16), (2, 100, 128), (1, 15, 7), (4, 16, 512)];
    run_families(1, &shapes);
}

/// `cargo test --release -- --ignored many_seeds`
#[test]
#[ignore = "minutes; for changes of the kernel"]
fn many_seeds_give_the_bits_of_the_scalar_text() {
    let shapes = [(3, 33, 40), (7, 64, 160), (2, 100, 128), (4, 48, 1024)];
    let outputs: usize = (2..60).map(|seed| run_families(seed, &shapes)).sum();
    println!("{outputs} outputs, 0 differences");
}

#[test]
fn ordinary_data_never_leaves_the_lanes() {
    for (id, profile) in profiles() {
        let case = Realistic.case(&mut Random(7), 8, 70, 256);
        let expected = scalar(&profile, &case);
        assert_eq!(all_forms(&profile, &case, &expected, &id), 0);
    }
}

#[test]
fn odd_data_does_leave_them() {
    let (_, hopper) = profiles().swap_remove(0);
    for family in [AnyBits, Tiny, FloorEdge, Overflow, MaximalSignificands] {
        let case = family.case(&mut Random(11), 4, 32, 64);
        let expected = scalar(&hopper, &case);
        assert!(all_forms(&hopper, &case, &expected, "odd") > 0, "{family:?}");
    }
}

#[test]
fn one_block_at_each_exponent() {
    // A single product 1.5 · 2^e with and without an accumulator that has bits at
    // the end of the window: every e_max from subnormal to overflow.
    for (id, profile) in profiles() {
        for field in 1..254 {
            for other in [1u16, 64, 100, 127, 180, 182, 183, 192, 254] {
                for c in [0u32, 0x3f80_0001, 0x0000_0001, 0x8080_0001, 0x0e7f_ffff, 0x7a80_0001] {
                    let a = vec![Bf16((field << 7) | 0x40)];
                    let b = vec![Bf16(other << 7), Bf16(0x8000 | (other << 7) | 1)];
                    let case = Case { a, b, c: vec![F32(c); 2], k: 1 };
                    let expected = scalar(&profile, &case);
                    all_forms(&profile, &case, &expected, &format!("{id} {field} {other} {c:x}"));
                }
            }
        }
    }
}

#[test]
fn an_accumulator_is_made_canonical_even_by_zeros() {
    let (_, hopper) = profiles().swap_remove(0);
    let c = vec![F32(0x8000_0000), F32(0xffc0_0001), F32::NEG_INFINITY, F32(0x8000_0001)];
    let case = Case { a: vec![Bf16::ZERO; 16], b: vec![Bf16(0x3f80); 64], c, k: 16 };
    let expected = scalar(&hopper, &case);
    assert_eq!(expected[..2], [F32::ZERO, F32::NAN]);
    all_forms(&hopper, &case, &expected, "zeros");
}

#[test]
fn a_sum_near_the_end_of_i32_is_right_on_both_sides_of_the_limit() {
    // Fractions from where the short test for a fitting sum ends to the maximum.
    let (_, hopper) = profiles().swap_remove(0);
    let most = Bf16(0x3fff);
    for fraction in (0..=127).step_by(3) {
        let mut a = vec![most; 16];
        a[3] = Bf16(0x3f80 | fraction);
        for c in [0x407f_ffff, 0x3fff_ffff] {
            let (a, b) = (a.clone(), vec![most; 16]);
            let case = Case { a, b, c: vec![F32(c)], k: 16 };
            let expected = scalar(&hopper, &case);
            all_forms(&hopper, &case, &expected, &format!("fraction {fraction}, {c:08x}"));
        }
    }
}

#[test]
fn a_walk_of_known_bounds_agrees_where_they_end() {
    // Values of one exponent: the least and the largest for which no lane is looked
    // at, and the next ones, for a start of zero and a live accumulator.
    for (id, profile) in profiles() {
        for k in [16, 64, 1000] {
            for exponent in
                [-52, -51, -50, -49, -48, -47, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55]
            {
                for c in [0u32, 0x0e7f_ffff, 0x0e80_0001, 0x1a80_0001, 0x7a80_0001, 0x7b00_0001] {
                    let field = (exponent + 127) as u16;
                    let mut r = Random(k as u64 + 1);
                    let a: Vec<_> = (0..k).map(|_| Bf16(r.number(field.into(), 1))).collect();
                    let b: Vec<_> = (0..17 * k).map(|_| Bf16(r.number(field.into(), 1))).collect();
                    let case = Case { a, b, c: vec![F32(c); 17], k };
                    let expected = scalar(&profile, &case);
                    all_forms(&profile, &case, &expected, &format!("{id} {k} {exponent} {c:08x}"));
                }
            }
        }
    }
}

#[test]
fn rows_beyond_a_chunk_and_late_odd_blocks_agree() {
    // More rows than pass over a panel together; a block that ends what is known
    // in the middle of the walk, by a tiny value, a huge one or a special.
    for (id, profile) in profiles() {
        for special in [0x0080u16, 0x7e80, 0x7f80, 0x0000] {
            let mut case = Realistic.case(&mut Random(23), 300, 3, 96);
            case.b[50] = Bf16(special);
            case.a[290 * 96 + 60] = Bf16(special);
            let expected = scalar(&profile, &case);
            all_forms(&profile, &case, &expected, &format!("{id} {special:04x}"));
        }
    }
}

#[test]
fn a_range_of_rows_gives_their_part_of_the_whole() {
    for (id, profile) in profiles() {
        let (m, n) = (600, 5);
        let case = Realistic.case(&mut Random(29), m, n, 40);
        let expected = scalar(&profile, &case);
        for simd in Simd::available() {
            let rows = decoded(simd, &profile, &case);
            for range in [0..m, 0..1, 3..4, 17..290, 255..256, 299..600, 600..600] {
                let of_range = range.start * n..range.end * n;
                let mut out = case.c[of_range.clone()].to_vec();
                simd.walk_into(&rows, range.clone(), &case.b, &mut out);
                assert_eq!(out, expected[of_range], "{id} {} {range:?}", simd.name());
            }
        }
    }
}

#[test]
fn sixteen_maximal_significands_are_left_to_the_scalar_text() {
    // Σ |p| = 63.5 · 2^25 and c just below 2 · 2^25: beyond 2^31 − 1.
    let (_, hopper) = profiles().swap_remove(0);
    let most = Bf16(0x3fff); // 1.9921875
    for c in [0x407f_ffff, 0x3fff_ffff] {
        let case = Case { a: vec![most; 16], b: vec![most; 16], c: vec![F32(c)], k: 16 };
        let expected = scalar(&hopper, &case);
        assert_eq!(all_forms(&hopper, &case, &expected, "maximal"), 1);
    }
}

#[test]
fn infinities_meet_zero_rows_and_small_rows() {
    // Zero rows are skipped and small ones keep the exponent bound: only the test
    // for finite columns sees these.
    for (id, profile) in profiles() {
        for special in [0x7f80u16, 0xff80, 0x7fc1] {
            let mut a = vec![Bf16::ZERO; 16];
            a.extend([Bf16(0x2180); 16]); // 2^-60
            let mut b = vec![Bf16(0x3f80); 32];
            b[5] = Bf16(special);
            let case = Case { a, b, c: vec![F32::ONE; 4], k: 16 };
            let expected = scalar(&profile, &case);
            assert_eq!(expected[..2], [F32::NAN, F32::ONE]);
            all_forms(&profile, &case, &expected, &format!("{id} {special:04x}"));
        }
    }
}

#[test]
fn a_tiny_accumulator_survives_a_column_of_zeros() {
    // Its lane has no product, so it may not be aligned to the least exponent.
    for (id, profile) in profiles() {
        for c in [0x0000_0001u32, 0x807f_ffff, 0x0d7f_ffff, 0x8e00_0001, 0x0e80_0001] {
            let b = vec![Bf16::ZERO, Bf16(0x3f80)];
            let case = Case { a: vec![Bf16(0x3f80)], b, c: vec![F32(c), F32::ZERO], k: 1 };
            let expected = scalar(&profile, &case);
            assert_eq!(expected, [F32(c), F32::ONE]);
            all_forms(&profile, &case, &expected, &format!("{id} {c:08x}"));
        }
    }
}

#[test]
fn a_zero_sets_no_exponent_however_large_the_other_factor() {
    for (id, profile) in profiles() {
        for zero in [Bf16::ZERO, Bf16(0x8000)] {
            for c in [0x0e80_0001u32, 0x8e80_0001, 0x1a80_0001] {
                let large = Bf16(0x5880); // 2^50
                let (a, b) = (vec![large, zero], vec![zero, large]);
                let case = Case { a, b, c: vec![F32(c)], k: 2 };
                let expected = scalar(&profile, &case);
                assert_eq!(expected, [F32(c)]);
                assert_eq!(all_forms(&profile, &case, &expected, &format!("{id} {c:08x}")), 0);
            }
        }
    }
}
