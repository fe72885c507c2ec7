//! CUDA's `sinf` and `cosf`.

use super::reduction::{Reduced, reduce};
use crate::isa::fp32::{ffma, fmul};
use crate::num::F32;

/// Returns `sin x`, `x` in radians, as CUDA's `sinf` computes it.
///
/// # Rounding
/// T1: the argument is reduced to a quadrant and a remainder (`reduction.rs`).
/// T2: an even quadrant evaluates the sine's polynomial, an odd one the cosine's.
/// T3: quadrants 2 and 3 negate by an FFMA with -1 and +0, so that no result of
///     theirs is `-0`.
///
/// # Special values
/// `±0` and tiny arguments give themselves; infinities and NaN the canonical NaN.
///
/// # Source
/// `spec/mufu.md`, T1 to T3 (PTX and SASS of CUDA 13.0.88, `sm_90`).
pub fn sinf(x: F32) -> F32 {
    let Reduced { quadrant, remainder } = reduce(x);
    evaluate(quadrant, remainder)
}

/// Returns `cos x`, `x` in radians, as CUDA's `cosf` computes it: [`sinf`] one
/// quadrant on.
///
/// # Special values
/// Infinities and NaN give the canonical NaN.
pub fn cosf(x: F32) -> F32 {
    let Reduced { quadrant, remainder } = reduce(x);
    evaluate(quadrant.wrapping_add(1), remainder)
}

/// Evaluates T2 and T3: `sin(remainder + quadrant · π/2)`.
fn evaluate(quadrant: i32, remainder: F32) -> F32 {
    let square = fmul(remainder, remainder);
    let (factor, polynomial) = if quadrant & 1 == 0 {
        (remainder, [SINE[0], SINE[1], SINE[2]])
    } else {
        // The cosine has one coefficient more.
        (F32::ONE, [ffma(COSINE[0], square, COSINE[1]), COSINE[2], COSINE[3]])
    };
    let p = ffma(polynomial[0], square, polynomial[1]);
    let p = ffma(p, square, polynomial[2]);
    // An FFMA with +0, not an FMUL: it turns a product of -0 into +0.
    let weight = ffma(square, factor, F32::ZERO);
    let value = ffma(p, weight, factor);
    if quadrant & 2 == 0 { value } else { ffma(value, F32::ONE.negate(), F32::ZERO) }
}

/// Coefficients of `r⁷`, `r⁵`, `r³` of the sine.
const SINE: [F32; 3] = [F32(0xb94d_4153), F32(0x3c08_85e4), F32(0xbe2a_aaa8)];
/// Coefficients of `r⁸`, `r⁶`, `r⁴`, `r²` of the cosine.
const COSINE: [F32; 4] = [F32(0x37cb_ac00), F32(0xbab6_07ed), F32(0x3d2a_aabb), F32(0xbeff_ffff)];
