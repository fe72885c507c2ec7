//! Bit patterns, special values, accuracy, and digests of a second derivation.
#![allow(clippy::float_arithmetic, clippy::disallowed_methods)] // the host's libm only bounds errors

use super::*;
use crate::isa::mufu::tests::{positive_normals, ulp_distance};
use crate::num::F32;

/// A case: input, expected output, reason.
type Case = (u32, u32, &'static str);

fn check(name: &str, function: fn(F32) -> F32, cases: &[Case]) {
    for &(input, expected, reason) in cases {
        assert_eq!(function(F32(input)), F32(expected), "{name}({input:08x}): {reason}");
    }
}

const NAN: u32 = 0x7fff_ffff;
const INF: u32 = 0x7f80_0000;

#[test]
fn expf_special_values_and_edges() {
    check(
        "expf",
        expf,
        &[
            (0x0000_0000, 0x3f80_0000, "zero"),
            (0x8000_0000, 0x3f80_0000, "minus zero"),
            (0x0000_0001, 0x3f80_0000, "smallest subnormal"),
            (0x42b1_7217, 0x7f7f_ff84, "largest finite result"),
            (0x42b1_7218, INF, "overflow"),
            (0xc2ae_ac50, 0x007f_ffe6, "subnormal results are kept"),
            (0xc2cf_f1b4, 0x0000_0001, "smallest result"),
            (0xc2d0_0000, 0x0000_0000, "below half of it"),
            (0x7f7f_ffff, INF, "largest finite argument"),
            (0xff7f_ffff, 0x0000_0000, "lowest finite argument"),
            (0x7f80_0000, INF, "+inf"),
            (0xff80_0000, 0x0000_0000, "-inf"),
            (0xffc0_0000, NAN, "NaN loses its sign"),
            (0x7f80_0001, NAN, "signalling NaN"),
        ],
    );
}

#[test]
fn logf_special_values_and_edges() {
    check(
        "logf",
        logf,
        &[
            (0x0000_0000, 0xff80_0000, "zero"),
            (0x8000_0000, 0xff80_0000, "minus zero"),
            (0x0000_0001, 0xc2ce_8ed0, "smallest subnormal: ln 2^-149"),
            (0x3f80_0000, 0x0000_0000, "one"),
            (0x4000_0000, 0x3f31_7218, "two: ln 2"),
            (0x7f7f_ffff, 0x42b1_7218, "largest finite"),
            (0x8000_0001, NAN, "negative subnormal"),
            (0xbf80_0000, NAN, "minus one"),
            (0x7f80_0000, INF, "+inf"),
            (0xff80_0000, NAN, "-inf"),
            (0xffc0_0000, NAN, "NaN loses its sign"),
            (0x7f80_0001, NAN, "signalling NaN"),
        ],
    );
}

#[test]
fn sinf_special_values_and_edges() {
    check(
        "sinf",
        sinf,
        &[
            (0x0000_0000, 0x0000_0000, "zero"),
            (0x8000_0000, 0x8000_0000, "minus zero keeps its sign"),
            (0x0000_0001, 0x0000_0001, "smallest subnormal"),
            (0x807f_ffff, 0x807f_ffff, "subnormals are kept"),
            (0x3f80_0000, 0x3f57_6aa5, "one radian: 0.53 ulp, not the nearest number"),
            (0x3fc9_0fdb, 0x3f80_0000, "π/2"),
            (0x4049_0fdb, 0xb3bb_bd2e, "π: the error of its binary32 form"),
            (0x7f80_0000, NAN, "+inf"),
            (0xff80_0000, NAN, "-inf"),
            (0x7fc0_0000, NAN, "NaN"),
            (0xff80_0001, NAN, "signalling NaN"),
        ],
    );
}

#[test]
fn cosf_special_values_and_edges() {
    check(
        "cosf",
        cosf,
        &[
            (0x0000_0000, 0x3f80_0000, "zero"),
            (0x8000_0000, 0x3f80_0000, "minus zero"),
            (0x0000_0001, 0x3f80_0000, "smallest subnormal"),
            (0x3f80_0000, 0x3f0a_5140, "one radian"),
            (0x3fc9_0fdb, 0xb33b_bd2e, "π/2: the error of its binary32 form"),
            (0x4049_0fdb, 0xbf80_0000, "π"),
            (0x7f80_0000, NAN, "+inf"),
            (0xff80_0000, NAN, "-inf"),
            (0x7fc0_0000, NAN, "NaN"),
        ],
    );
}

/// CUDA's documentation gives 2 ulp for `expf`, `sinf` and `cosf`, 1 ulp for `logf`.
#[test]
fn errors_stay_within_the_documented_bounds() {
    for x in positive_normals() {
        let host = f64::from(x.to_host());
        assert!(ulp_distance(logf(x), host.ln()) <= 1.0, "logf {x:?}");
        assert!(ulp_distance(sinf(x), host.sin()) <= 2.0, "sinf {x:?}");
        assert!(ulp_distance(cosf(x), host.cos()) <= 2.0, "cosf {x:?}");
        for (x, host) in [(x, host), (x.negate(), -host)] {
            let exact = host.exp();
            if (exact as f32).is_finite() {
                assert!(ulp_distance(expf(x), exact) <= 2.0, "expf {x:?}");
            }
        }
    }
}

#[test]
fn sine_is_odd_and_cosine_even() {
    for x in positive_normals() {
        assert_eq!(sinf(x.negate()).negate(), sinf(x), "{x:?}");
        assert_eq!(cosf(x.negate()), cosf(x), "{x:?}");
    }
}

/// Digests of outputs over [`positive_normals`] and their negatives, recorded from
/// the compiler's PTX, translated to C one statement an instruction.
#[test]
fn thin_sweep_is_pinned() {
    for (name, function, expected) in [
        (
            "expf",
            expf as fn(F32) -> F32,
            "54c8a29b03c4904996ed7c1f4dfbda1ba2c984532b9fb430a8ffa8fc0a4fca87",
        ),
        ("logf", logf, "68ac5772e46ced9ac9136c5edf2e0cbbad5a2a19f79ad4d19751fe71280afc08"),
        ("sinf", sinf, "e72907392f73a06073981b1e32ceadde270fea87c391b2b5c6cc49754c5616db"),
        ("cosf", cosf, "7e624346577b206f0df643ed436bcb5d5085a1dbe12730b3d621821c34d13669"),
    ] {
        let bytes: Vec<u8> = positive_normals()
            .flat_map(|x| [function(x), function(x.negate())])
            .flat_map(|y| y.0.to_le_bytes())
            .collect();
        assert_eq!(crate::num::sha256(&[&bytes]).to_string(), expected, "{name}");
    }
}
