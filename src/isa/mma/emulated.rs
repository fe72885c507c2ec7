//! FP8 `mma.sync` where the hardware has none: two binary16 blocks and an add.

use super::{Format, MmaProfile, Number, Operands, Rounding, chain};
use crate::isa::fp32::fadd;
use crate::num::F32;

/// Returns `c + Σ a[i]·b[i]` of an FP8 instruction made of binary16 ones.
///
/// R10: codes are converted to binary16, exactly. The first block takes the k
/// with `k mod 4` in {0, 1} and starts from `+0`, the second the others and
/// starts from the first's result; `c` is added last, with one IEEE rounding to
/// nearest even in the output format.
///
/// # Shape
/// `a`, `b`: `[k]` codes of formats `operands.a` and `operands.b`; `operands.c`
/// is the output format too. `half` is the profile of the binary16 instruction.
///
/// # Source
/// NVIDIA cutlass issue 1986 for the two instructions; the split of k from
/// readings published with arXiv:2512.07004 (H100, H200, B200).
pub fn emulated_fp8(half: &MmaProfile, operands: Operands, a: &[u32], b: &[u32], c: u32) -> u32 {
    let pick = |format: Format, codes: &[u32], second: bool| -> Vec<u32> {
        codes
            .iter()
            .enumerate()
            .filter(|(k, _)| (k % 4 >= 2) == second)
            .map(|(_, &code)| to_f16(format, code))
            .collect()
    };
    let halves = Operands { a: Format::F16, b: Format::F16, c: operands.c };
    let mut sum = 0;
    for second in [false, true] {
        let (a, b) = (pick(operands.a, a, second), pick(operands.b, b, second));
        sum = chain(half, halves, usize::from(half.n_fma), &a, &b, sum);
    }
    match half.rounding {
        Rounding::TowardZeroF32 | Rounding::TowardZeroE8m13 => fadd(F32(sum), F32(c)).0,
        Rounding::NearestF16 => add_f16(sum, c),
    }
}

/// Converts an FP8 code; every FP8 number is a binary16 number. The sign of a
/// zero is dropped, which no block can see.
fn to_f16(format: Format, code: u32) -> u32 {
    match format.decode(code) {
        Number::Nan => Rounding::NearestF16.nan(),
        Number::Infinite { negative } => Rounding::NearestF16.infinity(negative),
        Number::Finite(term) => Rounding::NearestF16
            .pack(term.cut(term.exponent - term.fraction_bits), term.exponent - term.fraction_bits),
    }
}

/// IEEE binary16 addition, to nearest even. `x` is never `-0` here (R7), so a
/// zero sum is `+0`.
fn add_f16(x: u32, y: u32) -> u32 {
    let rounding = Rounding::NearestF16;
    // Every binary16 number is a whole number of 2^-24 below 2^40 of them.
    const UNIT: i32 = -24;
    match (Format::F16.decode(x), Format::F16.decode(y)) {
        (Number::Nan, _) | (_, Number::Nan) => rounding.nan(),
        (Number::Infinite { negative: x }, Number::Infinite { negative: y }) => {
            if x == y {
                rounding.infinity(x)
            } else {
                rounding.nan()
            }
        }
        (Number::Infinite { negative }, Number::Finite(_))
        | (Number::Finite(_), Number::Infinite { negative }) => rounding.infinity(negative),
        (Number::Finite(x), Number::Finite(y)) => rounding.pack(x.cut(UNIT) + y.cut(UNIT), UNIT),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversion_to_binary16_is_exact_for_every_code() {
        for format in [Format::E4m3, Format::E5m2] {
            for code in 0..=255 {
                let (from, to) = (format.decode(code), Format::F16.decode(to_f16(format, code)));
                match (from, to) {
                    (Number::Finite(x), Number::Finite(y)) => {
                        assert_eq!(x.cut(-24), y.cut(-24), "{format:?} {code:02x}");
                    }
                    (x, y) => assert_eq!(x, y, "{format:?} {code:02x}"),
                }
            }
        }
    }

    #[test]
    fn adds_binary16_with_one_rounding() {
        // (x, y, sum, reason)
        let cases = [
            (0x3c00, 0x1000, 0x3c00, "1 + 2^-11 is a tie to even"),
            (0x3c01, 0x1000, 0x3c02, "the odd neighbour goes up"),
            (0x7bff, 0x4c00, 0x7c00, "65504 + 16 overflows at the tie"),
            (0x3c00, 0xbc00, 0x0000, "cancellation is +0"),
            (0x7c00, 0xfc00, 0x7fff, "infinities cancel to NaN"),
            (0xfc00, 0x3c00, 0xfc00, "infinity stays"),
            (0x0001, 0x0001, 0x0002, "subnormals add"),
        ];
        for (x, y, sum, reason) in cases {
            assert_eq!(add_f16(x, y), sum, "{reason}");
        }
    }
}
