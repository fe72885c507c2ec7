//! Operand formats and their decoding, without normalising.

use serde::{Deserialize, Serialize};

/// A number format that a tensor core reads.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// binary32 (accumulators).
    F32,
    /// 8 exponent and 10 fraction bits, in the high 19 bits of a 32-bit word;
    /// the low 13 bits are ignored.
    Tf32,
    /// bfloat16: 8 exponent and 7 fraction bits.
    Bf16,
    /// binary16: 5 exponent and 10 fraction bits.
    F16,
    /// 5 exponent and 2 fraction bits, with infinities.
    E5m2,
    /// 4 exponent and 3 fraction bits, one NaN a sign and no infinity.
    E4m3,
    /// 3 exponent and 2 fraction bits, finite numbers only.
    E3m2,
    /// 2 exponent and 3 fraction bits, finite numbers only.
    E2m3,
    /// 2 exponent and 1 fraction bit, finite numbers only.
    E2m1,
}

/// What the codes with the largest exponent field mean.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TopCodes {
    /// Infinity and NaNs, as in IEEE 754.
    Ieee,
    /// Numbers, except that all ones is NaN.
    OneNan,
    /// Numbers.
    Numbers,
}

struct Layout {
    exponent_bits: u32,
    fraction_bits: u32,
    bias: i32,
    top_codes: TopCodes,
    /// Low bits of the word that the hardware does not read.
    ignored_bits: u32,
}

/// A decoded operand or an exact product of two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Number {
    /// Not a number; sign and payload do not matter (R8).
    Nan,
    /// Infinity with its sign.
    Infinite {
        /// True for minus infinity.
        negative: bool,
    },
    /// A finite number.
    Finite(Term),
}

/// A finite number `± significand · 2^(exponent − fraction_bits)`, not normalised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Term {
    /// Sign.
    pub negative: bool,
    /// Significand as an integer.
    pub significand: u64,
    /// Bits of the significand below its binary point.
    pub fraction_bits: i32,
    /// The exponent that alignment sees (R3); that of a subnormal is the least
    /// normal exponent.
    pub exponent: i32,
}

impl Format {
    /// The name used in profiles and vector files.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Tf32 => "tf32",
            Self::Bf16 => "bf16",
            Self::F16 => "f16",
            Self::E5m2 => "e5m2",
            Self::E4m3 => "e4m3",
            Self::E3m2 => "e3m2",
            Self::E2m3 => "e2m3",
            Self::E2m1 => "e2m1",
        }
    }

    fn layout(self) -> Layout {
        use TopCodes::{Ieee, Numbers, OneNan};
        let (exponent_bits, fraction_bits, bias, top_codes, ignored_bits) = match self {
            Self::F32 => (8, 23, 127, Ieee, 0),
            Self::Tf32 => (8, 10, 127, Ieee, 13),
            Self::Bf16 => (8, 7, 127, Ieee, 0),
            Self::F16 => (5, 10, 15, Ieee, 0),
            Self::E5m2 => (5, 2, 15, Ieee, 0),
            Self::E4m3 => (4, 3, 7, OneNan, 0),
            Self::E3m2 => (3, 2, 3, Numbers, 0),
            Self::E2m3 => (2, 3, 1, Numbers, 0),
            Self::E2m1 => (2, 1, 1, Numbers, 0),
        };
        Layout { exponent_bits, fraction_bits, bias, top_codes, ignored_bits }
    }

    /// Decodes a code; bits above the format's width are ignored.
    ///
    /// R1: a subnormal keeps its small significand and the least normal
    /// exponent; nothing is flushed.
    #[inline]
    pub fn decode(self, code: u32) -> Number {
        let layout = self.layout();
        let code = code >> layout.ignored_bits;
        let field_mask = (1u32 << layout.exponent_bits) - 1;
        let fraction_mask = (1u32 << layout.fraction_bits) - 1;
        let negative = (code >> (layout.exponent_bits + layout.fraction_bits)) & 1 == 1;
        let field = (code >> layout.fraction_bits) & field_mask;
        let fraction = code & fraction_mask;
        if field == field_mask {
            match layout.top_codes {
                TopCodes::Ieee if fraction == 0 => return Number::Infinite { negative },
                TopCodes::Ieee => return Number::Nan,
                TopCodes::OneNan if fraction == fraction_mask => return Number::Nan,
                TopCodes::OneNan | TopCodes::Numbers => {}
            }
        }
        let (significand, field) =
            if field == 0 { (fraction, 1) } else { (fraction | (fraction_mask + 1), field) };
        Number::Finite(Term {
            negative,
            significand: u64::from(significand),
            fraction_bits: layout.fraction_bits as i32,
            exponent: field as i32 - layout.bias,
        })
    }
}

impl Number {
    /// Positive zero.
    pub const ZERO: Self =
        Self::Finite(Term { negative: false, significand: 0, fraction_bits: 0, exponent: 0 });

    /// Returns the exact product, not normalised (R2).
    #[inline]
    #[must_use]
    pub fn times(self, other: Self) -> Self {
        match (self, other) {
            (Self::Nan, _) | (_, Self::Nan) => Self::Nan,
            (Self::Infinite { negative: x }, Self::Infinite { negative: y }) => {
                Self::Infinite { negative: x != y }
            }
            (Self::Infinite { negative }, Self::Finite(term))
            | (Self::Finite(term), Self::Infinite { negative }) => {
                if term.significand == 0 {
                    Self::Nan
                } else {
                    Self::Infinite { negative: negative != term.negative }
                }
            }
            (Self::Finite(x), Self::Finite(y)) => Self::Finite(Term {
                negative: x.negative != y.negative,
                significand: x.significand * y.significand,
                fraction_bits: x.fraction_bits + y.fraction_bits,
                exponent: x.exponent + y.exponent,
            }),
        }
    }
}

impl Term {
    /// Returns the term as a whole number of `2^unit`, its magnitude cut (R4).
    ///
    /// For `unit` at least `exponent − 39` (the largest `neab` a profile may have)
    /// and a value below `2^(exponent + 12)` the result is below `2^51`.
    #[inline]
    pub fn cut(self, unit: i32) -> i64 {
        if self.significand == 0 {
            return 0; // its exponent took no part in the maximum, so it may exceed it
        }
        let shift = self.exponent - self.fraction_bits - unit;
        let magnitude = if shift >= 0 {
            self.significand << shift
        } else {
            self.significand.checked_shr(shift.unsigned_abs()).unwrap_or(0)
        };
        if self.negative { -(magnitude as i64) } else { magnitude as i64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finite(negative: bool, significand: u64, fraction_bits: i32, exponent: i32) -> Number {
        Number::Finite(Term { negative, significand, fraction_bits, exponent })
    }

    #[test]
    fn decodes_the_edges_of_every_format() {
        // (format, code, number, reason)
        let cases = [
            (Format::Bf16, 0x3f80, finite(false, 0x80, 7, 0), "one"),
            (Format::Bf16, 0x8001, finite(true, 1, 7, -126), "a subnormal is not normalised"),
            (Format::Bf16, 0x7f80, Number::Infinite { negative: false }, "infinity"),
            (Format::Bf16, 0xff81, Number::Nan, "any fraction at the top is NaN"),
            (Format::F16, 0x0001, finite(false, 1, 10, -14), "least exponent -14"),
            (Format::Tf32, 0x3f80_1fff, finite(false, 0x400, 10, 0), "13 low bits ignored"),
            (Format::Tf32, 0x7f80_0001, Number::Infinite { negative: false }, "cut before NaN"),
            (Format::E4m3, 0x7e, finite(false, 0xe, 3, 8), "448 is a number"),
            (Format::E4m3, 0xff, Number::Nan, "all ones is NaN"),
            (Format::E5m2, 0xfc, Number::Infinite { negative: true }, "as IEEE"),
            (Format::E3m2, 0x3f, finite(true, 7, 2, 4), "-28, no infinity"),
            (Format::E2m3, 0x1f, finite(false, 15, 3, 2), "7.5"),
            (Format::E2m1, 0x07, finite(false, 3, 1, 2), "6"),
            (Format::E2m1, 0x01, finite(false, 1, 1, 0), "a half"),
        ];
        for (format, code, number, reason) in cases {
            assert_eq!(format.decode(code), number, "{format:?} {code:x}: {reason}");
        }
    }

    #[test]
    fn cuts_magnitudes_symmetrically() {
        let term = Term { negative: true, significand: 7, fraction_bits: 0, exponent: 0 };
        assert_eq!(term.cut(1), -3);
        assert_eq!(term.cut(-2), -28);
        assert_eq!(term.cut(200), 0);
    }
}
