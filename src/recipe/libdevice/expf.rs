//! CUDA's `expf`.

use crate::isa::fp32::{fadd, ffma, ffma_rm, fmul, saturate};
use crate::isa::mufu;
use crate::num::F32;

/// Returns `eˣ` as CUDA's `expf` computes it.
///
/// `x·log2 e` is split into an integer, which becomes the exponent bits of a power
/// of two, and a fraction in `[-1/2, 1/2]`, which goes to MUFU.EX2.
///
/// # Rounding
/// E1: the integer is found with a saturated FFMA and an FFMA rounded down, so
///     it is limited to `[-126, 126]`.
/// E2: the fraction is two FFMAs with log2 e as a high and a low part; beyond the
///     limit it takes up the rest of the argument.
/// E3: one FMUL joins both; a subnormal result is rounded here, not flushed.
///
/// # Special values
/// NaN gives the canonical NaN, `+∞` gives `+∞`, `-∞` gives `+0`.
///
/// # Source
/// `spec/mufu.md`, E1 to E3 (PTX and SASS of CUDA 13.0.88, `sm_90`).
pub fn expf(x: F32) -> F32 {
    // E1
    let position = saturate(ffma(x, LOG2_E_OVER_252, HALF));
    let shifted = ffma_rm(position, RANGE, SHIFTER);
    let whole = fadd(shifted, MINUS_SHIFTER_LESS_BIAS);
    // E2
    let fraction = ffma(x, LOG2_E_HIGH, whole.negate());
    let fraction = ffma(x, LOG2_E_LOW, fraction);
    // E3: the low bits of `shifted` are the biased exponent of 2^whole.
    let power = F32(shifted.0 << 23);
    fmul(mufu::ex2(fraction), power)
}

/// log2 e / 252: maps the representable results onto `[0, 1]` around 1/2.
const LOG2_E_OVER_252: F32 = F32(0x3bbb_989d);
/// 1/2.
const HALF: F32 = F32(0x3f00_0000);
/// 252 = 2 · 126.
const RANGE: F32 = F32(0x437c_0000);
/// 1.5 · 2^23 + 1: its last place is 1, and its low bits make the bias: 1 for `whole` = -126.
const SHIFTER: F32 = F32(0x4b40_0001);
/// -(1.5 · 2^23 + 127).
const MINUS_SHIFTER_LESS_BIAS: F32 = F32(0xcb40_007f);
/// log2 e, rounded.
const LOG2_E_HIGH: F32 = F32(0x3fb8_aa3b);
/// log2 e minus its rounded value, rounded.
const LOG2_E_LOW: F32 = F32(0x32a5_7060);
