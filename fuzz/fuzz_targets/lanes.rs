//! The scalar text against every form of the lanes, on operands that the fuzzer
//! chooses bit by bit.
//!
//! Input: one byte each for the profile, the rows, the columns and the depth; then
//! operands as little-endian words, accumulators first. Where the input ends, the
//! operands start over: libFuzzer then reaches wide products with short inputs.
#![no_main]

use std::sync::LazyLock;

use attest::isa::mma::{MmaProfile, Simd};
use attest::isa::profile::Profile;
use attest::num::{Bf16, F32};
use attest::recipe::gemm::{Walk, walk_into};
use libfuzzer_sys::fuzz_target;

/// Every profile with a bf16 instruction.
static PROFILES: LazyLock<Vec<(String, MmaProfile)>> = LazyLock::new(|| {
    Profile::ids()
        .filter_map(|id| Some((id.to_owned(), *Profile::by_id(id).ok()?.mma("bf16")?)))
        .collect()
});

fuzz_target!(|input: &[u8]| {
    let [profile, m, n, k, ref bytes @ ..] = *input else { return };
    if bytes.len() < 2 {
        return;
    }
    let (id, profile) = &PROFILES[usize::from(profile) % PROFILES.len()];
    // Up to several rows, more than one panel, several blocks and a short one.
    let (m, n, k) = (usize::from(m % 6) + 1, usize::from(n % 80) + 1, usize::from(k % 70) + 1);
    let mut words = bytes.chunks_exact(2).map(|b| u16::from_le_bytes([b[0], b[1]])).cycle();
    let mut word = || words.next().expect("at least one word");
    let c: Vec<F32> =
        (0..m * n).map(|_| F32(u32::from(word()) << 16 | u32::from(word()))).collect();
    let a: Vec<Bf16> = (0..m * k).map(|_| Bf16(word())).collect();
    let b: Vec<Bf16> = (0..n * k).map(|_| Bf16(word())).collect();

    let mut expected = c.clone();
    walk_into(profile, &a, &b, k, &mut expected);
    for simd in Simd::available() {
        let mut out = c.clone();
        Walk::new(profile, simd).walk_into(&a, &b, k, &mut out);
        assert_eq!(out, expected, "{id} {m}x{n}x{k} {}", simd.name());
    }
});
