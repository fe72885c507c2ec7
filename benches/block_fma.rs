//! Speed of the lanes, and their ratio to the scalar text in the same run.
//!
//! `cargo bench --bench block_fma [-- M N K]`; checks its answer first.
#![allow(clippy::unwrap_used, clippy::float_arithmetic)] // rates and ratios; a panic is its report

use std::hint::black_box;
use std::time::Instant;

use attest::isa::mma::Simd;
use attest::isa::profile::Profile;
use attest::num::{Bf16, F32};
use attest::recipe::gemm::{Walk, walk_into};

/// Rounds of each measurement; the best is kept. They are short, so that some run
/// undisturbed on a busy machine.
const ROUNDS: usize = 100;

fn main() {
    let sizes: Vec<usize> = std::env::args().skip(1).filter_map(|x| x.parse().ok()).collect();
    let (m, n, k) = match sizes[..] {
        [m, n, k] => (m, n, k),
        _ => (300, 64, 256),
    };
    // Pseudo-random signs and significands; activations around 1, weights around 2^-7.
    let mut state = 1u32;
    let mut code = |from: u16| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223); // Numerical Recipes
        let bits = (state >> 16) as u16;
        Bf16((bits & 0x807f) | ((from + (bits >> 7 & 7)) << 7))
    };
    let a: Vec<Bf16> = (0..m * k).map(|_| code(122)).collect();
    let b: Vec<Bf16> = (0..n * k).map(|_| code(114)).collect();

    for id in ["h200", "a100"] {
        let profile = Profile::by_id(id).unwrap();
        let bf16 = profile.mma("bf16").unwrap();
        let mut expected = vec![F32::ZERO; m * n];
        walk_into(bf16, &a, &b, k, &mut expected);
        // The scalar text is slow; one row and a few columns tell its rate.
        let (row, few) = (&a[..k], &b[..n.min(4) * k]);
        let mut out = vec![F32::ZERO; few.len() / k];
        let scalar =
            rate(few.len(), || walk_into(bf16, black_box(row), black_box(few), k, &mut out));
        println!("{id} {m} x {n} x {k}: scalar text {scalar:.3} GMAC/s");
        for simd in Simd::available() {
            let walk = Walk::new(bf16, simd);
            assert_eq!(walk.single_walk(&a, &b, m, n, k), expected, "{}", simd.name());
            let rows = walk.rows(&a, k);
            let mut out = vec![F32::ZERO; m * n];
            let lanes =
                rate(m * n * k, || walk.continue_into(black_box(&rows), black_box(&b), &mut out));
            let decode = rate(m * k, || drop(walk.rows(black_box(&a), k)));
            println!(
                "  {:8} {lanes:.2} GMAC/s, {:.0} times the scalar text; decodes {decode:.2} G elements of A a second",
                simd.name(),
                lanes / scalar
            );
        }
    }
}

/// Returns the best rate in 10^9 multiply-adds a second.
fn rate(multiply_adds: usize, mut work: impl FnMut()) -> f64 {
    let fastest = (0..ROUNDS).map(|_| {
        let start = Instant::now();
        work();
        start.elapsed().as_nanos()
    });
    multiply_adds as f64 / fastest.min().unwrap() as f64
}
