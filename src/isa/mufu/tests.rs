//! Bit patterns, special values and the tables' own evidence.
#![allow(clippy::float_arithmetic, clippy::disallowed_methods)] // the host's libm only bounds errors

use super::*;

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
fn ex2_special_values_and_edges() {
    check(
        "ex2",
        ex2,
        &[
            (0x0000_0000, 0x3f80_0000, "zero"),
            (0x8000_0000, 0x3f80_0000, "minus zero"),
            (0x007f_ffff, 0x3f80_0000, "largest subnormal is flushed"),
            (0x0080_0000, 0x3f80_0000, "smallest normal is below 2^-23"),
            (0x8080_0000, 0x3f80_0000, "and so is its negative: no fraction to complement"),
            (0x3f80_0000, 0x4000_0000, "one"),
            (0xbf80_0000, 0x3f00_0000, "minus one has no fraction either"),
            (0x42fe_0000, 0x7f00_0000, "2^127, the last finite power"),
            (0x4300_0000, INF, "2^128 overflows"),
            (0x4380_0000, INF, "2^8 is out of range"),
            (0x437f_ffff, INF, "just below 2^8 overflows by its exponent"),
            (0xc2fc_0000, 0x0080_0000, "2^-126, the last normal power"),
            (0xc300_0000, 0x0000_0000, "2^-128 is flushed"),
            (0xc380_0000, 0x0000_0000, "-2^8 is out of range"),
            (0x7f80_0000, INF, "+inf"),
            (0xff80_0000, 0x0000_0000, "-inf"),
            (0x7fc0_0000, NAN, "quiet NaN"),
            (0xffff_ffff, NAN, "NaN loses its sign"),
            (0x7f80_0001, NAN, "signalling NaN"),
        ],
    );
}

#[test]
fn rcp_special_values_and_edges() {
    check(
        "rcp",
        rcp,
        &[
            (0x0000_0000, INF, "zero"),
            (0x8000_0000, 0xff80_0000, "minus zero keeps its sign"),
            (0x007f_ffff, INF, "largest subnormal is flushed"),
            (0x807f_ffff, 0xff80_0000, "and keeps its sign"),
            (0x0080_0000, 0x7e80_0000, "2^-126"),
            (0x3f80_0000, 0x3f80_0000, "one is exact"),
            (0xc000_0000, 0xbf00_0000, "minus two"),
            (0x7e80_0000, 0x0080_0000, "2^126 gives the smallest normal"),
            (0x7e80_0001, 0x0000_0000, "just above is flushed"),
            (0xff7f_ffff, 0x8000_0000, "flushed with its sign"),
            (0x7f80_0000, 0x0000_0000, "+inf"),
            (0xff80_0000, 0x8000_0000, "-inf"),
            (0xffc0_0000, NAN, "NaN loses its sign"),
            (0x7f80_0001, NAN, "signalling NaN"),
        ],
    );
}

#[test]
fn rsq_special_values_and_edges() {
    check(
        "rsq",
        rsq,
        &[
            (0x0000_0000, INF, "zero"),
            (0x8000_0000, 0xff80_0000, "minus zero keeps its sign"),
            (0x807f_ffff, 0xff80_0000, "negative subnormal is flushed before its sign matters"),
            (0x0080_0000, 0x5f00_0000, "2^-126 is an even power: exact"),
            (0x3f80_0000, 0x3f80_0000, "one is exact, outside the table"),
            (0x4080_0000, 0x3f00_0000, "four likewise"),
            (0x8080_0000, NAN, "negative normal"),
            (0x7f80_0000, 0x0000_0000, "+inf"),
            (0xff80_0000, NAN, "-inf"),
            (0x7fc0_0000, NAN, "NaN"),
            (0xffc0_0000, NAN, "NaN with its sign set"),
        ],
    );
}

#[test]
fn lg2_special_values_and_edges() {
    check(
        "lg2",
        lg2,
        &[
            (0x0000_0000, 0xff80_0000, "zero"),
            (0x8000_0000, 0xff80_0000, "minus zero"),
            (0x807f_ffff, 0xff80_0000, "negative subnormal is flushed before its sign matters"),
            (0x0080_0000, 0xc2fb_ffff, "2^-126 is not exact"),
            (0x3f00_0000, 0xbf7f_fffe, "nor is one half"),
            (0x3f7f_ffff, 0xb24b_4000, "just below one: few bits left"),
            (0x3f80_0000, 0x0000_0000, "exactly one, outside the table"),
            (0x3f80_0001, 0x3495_f600, "just above one"),
            (0x4000_0000, 0x3f80_0000, "two: the table's excess is cut off"),
            (0x7f7f_ffff, 0x42ff_ffff, "largest finite"),
            (0x8080_0000, NAN, "negative normal"),
            (0x7f80_0000, INF, "+inf"),
            (0xff80_0000, NAN, "-inf"),
            (0x7fc0_0000, NAN, "NaN"),
        ],
    );
}

/// Distance from `exact` to `result` in units of `exact`'s last binary32 place.
pub(crate) fn ulp_distance(result: F32, exact: f64) -> f64 {
    let exponent = (exact.abs().to_bits() >> 52) as i32 - 1023;
    let place = f64::from_bits(((exponent.max(-126) - 23 + 1023) as u64) << 52);
    (f64::from(result.to_host()) - exact).abs() / place
}

/// A thin sweep: every exponent, about 33,000 significands over the sweep.
pub(crate) fn positive_normals() -> impl Iterator<Item = F32> {
    (0x0080_0000_u32..0x7f80_0000).step_by(64_901).map(F32)
}

#[test]
fn rcp_is_within_one_ulp() {
    for x in positive_normals().filter(|x| x.0 < 0x7e80_0000) {
        let exact = 1.0 / f64::from(x.to_host());
        assert!(ulp_distance(rcp(x), exact) <= 1.0, "{x:?}");
        assert_eq!(rcp(x.negate()), rcp(x).negate(), "odd at {x:?}");
    }
}

#[test]
fn rsq_is_within_two_ulp() {
    for x in positive_normals() {
        let exact = 1.0 / f64::from(x.to_host()).sqrt();
        assert!(ulp_distance(rsq(x), exact) <= 2.0, "{x:?}");
    }
}

#[test]
fn ex2_is_within_two_ulp() {
    for x in positive_normals().filter(|x| x.0 < 0x42fc_0000) {
        for x in [x, x.negate()] {
            let exact = f64::from(x.to_host()).exp2();
            assert!(ulp_distance(ex2(x), exact) <= 2.0, "{x:?}");
        }
    }
}

#[test]
fn lg2_is_within_two_to_the_minus_22_near_one_and_relative_elsewhere() {
    // CUDA's documentation: absolute error 2^-22 in [1/2, 2], relative 2^-22 elsewhere.
    for x in positive_normals() {
        let exact = f64::from(x.to_host()).log2();
        let error = (f64::from(lg2(x).to_host()) - exact).abs();
        let scale = exact.abs().max(1.0);
        assert!(error <= scale / f64::from(1 << 22), "{x:?}");
    }
}

/// Digests of outputs over [`positive_normals`] and their negatives, recorded
/// from a second transcription of `spec/mufu.md` (numpy, the definition's squarer).
#[test]
fn thin_sweep_is_pinned() {
    for (name, function, expected) in [
        (
            "ex2",
            ex2 as fn(F32) -> F32,
            "60c47bb0cf2ec32d8ed30d65b11fa16c6fcede3fc6df96ea76fde1ae80140321",
        ),
        ("rcp", rcp, "b5fd05b43516a6ab4067ff1959bffa4efe41319ca430b336f7cdc530e6605458"),
        ("rsq", rsq, "f31cef285777c9850bf6bd97c26ddc25212c9b40fd55a367da60c89dca444254"),
        ("lg2", lg2, "84de4a88f1b81043cd9a652f63df9f5ed3a978b329f29978f3bfb94634870478"),
    ] {
        let bytes: Vec<u8> = positive_normals()
            .flat_map(|x| [function(x), function(x.negate())])
            .flat_map(|y| y.0.to_le_bytes())
            .collect();
        assert_eq!(crate::num::sha256(&[&bytes]).to_string(), expected, "{name}");
    }
}

#[test]
fn rows_lie_in_the_intervals_that_the_readings_allow() {
    for (name, text, shift, bias) in [
        ("ex2", include_str!("../../../profiles/mufu/ex2.csv"), 13, 0x77e2),
        ("rcp", include_str!("../../../profiles/mufu/rcp.csv"), 13, 0x47e7),
        ("rsq", include_str!("../../../profiles/mufu/rsq.csv"), 14, 0x7fff),
        ("lg2", include_str!("../../../profiles/mufu/lg2.csv"), 12, 0x3345),
    ] {
        let rows = text.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit()));
        for row in rows {
            let fields: Vec<i64> = row.split(',').map(|field| field.parse().unwrap()).collect();
            let constant = (fields[1] << shift) + bias;
            assert!((fields[4]..=fields[5]).contains(&constant), "{name}: {row}");
        }
    }
}
