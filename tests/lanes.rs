//! Every form of the lanes against the scalar text, on operands that proptest
//! chooses and makes smaller: any mixture of families in one product, any shape,
//! any division of the work.
//!
//! The families that aim at one bound of the proof each are in
//! `src/isa/mma/lanes/tests.rs`, uniform over a product and of fixed shapes.
#![allow(clippy::unwrap_used)] // a test: a panic is its report

use attest::isa::mma::{MmaProfile, Simd};
use attest::isa::profile::Profile;
use attest::num::{Bf16, F32};
use attest::recipe::gemm::{Walk, walk_into};
use proptest::prelude::*;

/// A product with live accumulators.
#[derive(Clone, Debug)]
struct Case {
    profile: String,
    m: usize,
    n: usize,
    k: usize,
    a: Vec<u16>,
    b: Vec<u16>,
    c: Vec<u32>,
}

/// Every profile with a bf16 instruction.
fn profiles() -> Vec<String> {
    let has_bf16 = |id: &&str| Profile::by_id(id).unwrap().mma("bf16").is_some();
    Profile::ids().filter(has_bf16).map(str::to_owned).collect()
}

/// One bf16 code: any bits, or what the fast path has to tell apart.
fn code() -> impl Strategy<Value = u16> {
    let field = |fields: std::ops::Range<u16>| {
        (any::<bool>(), fields, 0u16..128).prop_map(|(sign, exponent, significand)| {
            u16::from(sign) << 15 | exponent << 7 | significand
        })
    };
    prop_oneof![
        2 => any::<u16>(),
        6 => field(120..132),                       // around 1
        2 => field(64..190),                        // wide
        2 => field(0..1),                           // zeros and subnormals
        1 => field(1..24),                          // products below the normal range
        1 => field(180..255),                       // products that overflow
        1 => field(255..256),                       // infinities and NaNs
        1 => any::<bool>().prop_map(|sign| u16::from(sign) << 15 | 0x3fff), // maximal significand
    ]
}

/// One accumulator.
fn accumulator() -> impl Strategy<Value = u32> {
    prop_oneof![
        4 => Just(0),
        2 => any::<u32>(),
        1 => Just(0x3fff_ffff), // just below 2: with the largest block, past i32
        1 => 0x7f00_0000u32..0x7f80_0000,           // near overflow
        1 => 0u32..0x0100_0000,                     // subnormal and least normal
    ]
}

/// Rows of codes. Some repeat one code, some the largest significand (a block of them
/// times another is the largest sum there is), some are pairs that cancel.
fn rows(count: usize, k: usize) -> impl Strategy<Value = Vec<u16>> {
    let row = prop_oneof![
        5 => proptest::collection::vec(code(), k),
        1 => code().prop_map(move |code| vec![code; k]),
        1 => Just(vec![0x3fff; k]),
        1 => proptest::collection::vec(code(), k).prop_map(|mut row| {
            for pair in row.chunks_exact_mut(2) {
                pair[1] = pair[0] ^ 0x8000;
            }
            row
        }),
    ];
    proptest::collection::vec(row, count).prop_map(|rows| rows.concat())
}

fn case() -> impl Strategy<Value = Case> {
    let shape = (1usize..6, 1usize..80, 1usize..70);
    (proptest::sample::select(profiles()), shape).prop_flat_map(|(profile, (m, n, k))| {
        let c = proptest::collection::vec(accumulator(), m * n);
        (rows(m, k), rows(n, k), c).prop_map(move |(a, b, c)| {
            let profile = profile.clone();
            Case { profile, m, n, k, a, b, c }
        })
    })
}

impl Case {
    fn mma(&self) -> MmaProfile {
        *Profile::by_id(&self.profile).unwrap().mma("bf16").unwrap()
    }

    fn a(&self) -> Vec<Bf16> {
        self.a.iter().copied().map(Bf16).collect()
    }

    fn b(&self) -> Vec<Bf16> {
        self.b.iter().copied().map(Bf16).collect()
    }

    fn c(&self) -> Vec<F32> {
        self.c.iter().copied().map(F32).collect()
    }

    /// The result by the scalar text.
    fn scalar(&self) -> Vec<F32> {
        let mut out = self.c();
        walk_into(&self.mma(), &self.a(), &self.b(), self.k, &mut out);
        out
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_form_gives_the_bits_of_the_scalar_text(case in case()) {
        let (a, b, expected) = (case.a(), case.b(), case.scalar());
        for simd in Simd::available() {
            let mut out = case.c();
            Walk::new(&case.mma(), simd).walk_into(&a, &b, case.k, &mut out);
            prop_assert_eq!(&out, &expected, "{}", simd.name());
        }
    }

    #[test]
    fn parts_of_rows_columns_and_depth_give_the_bits_of_the_whole(
        case in case(),
        (row, column, depth) in (0usize..6, 0usize..80, 0usize..70),
    ) {
        let (a, b, whole) = (case.a(), case.b(), case.scalar());
        let mma = case.mma();
        let (m, n, k) = (case.m, case.n, case.k);
        let (row, column) = (row.min(m), column.min(n));
        // A walk may be continued between blocks only.
        let n_fma = usize::from(mma.n_fma);
        let depth = depth.min(k) / n_fma * n_fma;
        let slice = |codes: &[Bf16], rows: std::ops::Range<usize>, depth: std::ops::Range<usize>| {
            let rows = codes[rows.start * k..rows.end * k].chunks_exact(k);
            rows.flat_map(|row| row[depth.clone()].to_vec()).collect::<Vec<_>>()
        };
        for simd in Simd::available() {
            let walk = Walk::new(&mma, simd);
            let mut out = case.c();
            for rows in [0..row, row..m] {
                for columns in [0..column, column..n] {
                    let places: Vec<usize> = rows
                        .clone()
                        .flat_map(|row| columns.clone().map(move |column| row * n + column))
                        .collect();
                    let mut part: Vec<F32> = places.iter().map(|&place| out[place]).collect();
                    for depth in [0..depth, depth..k] {
                        let a = slice(&a, rows.clone(), depth.clone());
                        let b = slice(&b, columns.clone(), depth.clone());
                        walk.walk_into(&a, &b, depth.len(), &mut part);
                    }
                    for (place, part) in places.into_iter().zip(part) {
                        out[place] = part;
                    }
                }
            }
            prop_assert_eq!(&out, &whole, "{}", simd.name());
        }
    }
}

#[test]
fn the_largest_sum_there_is_passes_i32() {
    // Σ |p| = 63.5 · 2^25 and an accumulator just below 2 · 2^25 whose exponent is that of
    // the products, so that the window does not move: beyond 2^31 − 1. With an exponent
    // more the window moves up and everything fits.
    for c in [0x3fff_ffff, 0x4000_0000, 0x407f_ffff] {
        for sign in [0u16, 0x8000] {
            let case = Case {
                profile: "h200".into(),
                m: 1,
                n: 1,
                k: 16,
                a: vec![0x3fff | sign; 16],
                b: vec![0x3fff; 16],
                c: vec![c | u32::from(sign) << 16],
            };
            let expected = case.scalar();
            for simd in Simd::available() {
                let mut out = case.c();
                Walk::new(&case.mma(), simd).walk_into(&case.a(), &case.b(), 16, &mut out);
                assert_eq!(out, expected, "{c:08x} {sign:04x} {}", simd.name());
            }
        }
    }
}
