//! Speed of the lanes, and their ratio to the scalar text in the same run.
//!
//! `cargo bench --bench block_fma [-- M N K]`; checks its answer first.
#![allow(clippy::unwrap_used)] // a measurement: a panic is its report

use std::hint::black_box;
use std::time::Instant;

use attest::isa::mma::Simd;
use attest::isa::profile::Profile;
use attest::num::{Bf16, F32};
use attest::recipe::gemm::{Walk, single_walk};

/// Rounds of each alternated measurement; the best is kept.
const ROUNDS: usize = 5;

fn main() {
    let sizes: Vec<usize> = std::env::args().skip(1).filter_map(|x| x.parse().ok()).collect();
    let (m, n, k) = match sizes[..] {
        [m, n, k] => (m, n, k),
        _ => (300, 256, 2560),
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
        let few = m.min(4); // the scalar text is slow; a few rows tell its rate
        let mut expected = Vec::new();
        let scalar = rate(few * n * k, || {
            expected = single_walk(bf16, black_box(&a[..few * k]), black_box(&b), few, n, k);
        });
        println!("{id} {m} x {n} x {k}: scalar text {scalar:.3} GMAC/s");
        for simd in Simd::available() {
            let walk = Walk::new(bf16, simd);
            let mut out: Vec<F32> = Vec::new();
            let lanes = rate(m * n * k, || {
                out = walk.single_walk(black_box(&a), black_box(&b), m, n, k);
            });
            assert_eq!(out[..few * n], expected, "{}", simd.name());
            let ratio = lanes / scalar;
            println!("  {:8} {lanes:.2} GMAC/s, {ratio:.0} times the scalar text", simd.name());
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
