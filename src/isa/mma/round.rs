//! The one conversion at the end of a block FMA.

use serde::{Deserialize, Serialize};

/// Conversion of a finished sum to the output format.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rounding {
    /// Toward zero to binary32 (24 significant bits).
    TowardZeroF32,
    /// Toward zero to 14 significant bits, returned as binary32.
    TowardZeroE8m13,
    /// To nearest even to binary16.
    NearestF16,
}

impl Rounding {
    /// The pattern written for a NaN (R8).
    pub fn nan(self) -> u32 {
        match self {
            Self::TowardZeroF32 | Self::TowardZeroE8m13 => 0x7fff_ffff,
            Self::NearestF16 => 0x7fff,
        }
    }

    /// The pattern of an infinity.
    pub fn infinity(self, negative: bool) -> u32 {
        match (self, negative) {
            (Self::TowardZeroF32 | Self::TowardZeroE8m13, false) => 0x7f80_0000,
            (Self::TowardZeroF32 | Self::TowardZeroE8m13, true) => 0xff80_0000,
            (Self::NearestF16, false) => 0x7c00,
            (Self::NearestF16, true) => 0xfc00,
        }
    }

    /// Converts `sum · 2^unit` (R6, R7).
    ///
    /// # Special values
    /// A zero result is `+0`, also when a negative sum is cut or rounded to zero.
    /// Subnormal results are kept. Overflow gives infinity, under truncation too.
    #[inline]
    pub fn pack(self, sum: i64, unit: i32) -> u32 {
        let magnitude = sum.unsigned_abs();
        if magnitude == 0 {
            return 0;
        }
        let negative = sum < 0;
        let leading_exponent = magnitude.ilog2() as i32 + unit;
        let (bits, sign) = match self {
            Self::TowardZeroF32 => (truncate(magnitude, unit, leading_exponent, 23), 1 << 31),
            Self::TowardZeroE8m13 => (truncate(magnitude, unit, leading_exponent, 13), 1 << 31),
            Self::NearestF16 => (nearest_f16(magnitude, unit, leading_exponent), 1 << 15),
        };
        if negative && bits != 0 { bits | sign } else { bits }
    }
}

/// Returns the binary32 bits of `magnitude · 2^unit` cut to `fraction_bits`.
fn truncate(magnitude: u64, unit: i32, leading_exponent: i32, fraction_bits: i32) -> u32 {
    if leading_exponent >= 128 {
        return 0x7f80_0000;
    }
    let exponent = leading_exponent.max(-126);
    let shift = unit - (exponent - fraction_bits);
    let kept = if shift >= 0 {
        magnitude << shift
    } else {
        magnitude.checked_shr(shift.unsigned_abs()).unwrap_or(0)
    };
    let significand = (kept as u32) << (23 - fraction_bits);
    // The hidden bit of a normal number adds one to the exponent field.
    (((exponent + 126) as u32) << 23) + significand
}

/// Returns the binary16 bits of `magnitude · 2^unit` rounded to nearest even.
fn nearest_f16(magnitude: u64, unit: i32, leading_exponent: i32) -> u32 {
    if leading_exponent >= 16 {
        return 0x7c00;
    }
    let exponent = leading_exponent.max(-14);
    let shift = unit - (exponent - 10);
    let kept = match shift {
        0.. => magnitude << shift,
        -62..0 => {
            let dropped = shift.unsigned_abs();
            let floor = magnitude >> dropped;
            let rest = magnitude & ((1 << dropped) - 1);
            let half = 1 << (dropped - 1);
            if rest > half || (rest == half && floor & 1 == 1) { floor + 1 } else { floor }
        }
        // Sums are below 2^60, so this far down they are below half a unit.
        _ => 0,
    };
    // A carry out of the significand raises the exponent field, up to infinity.
    (((exponent + 14) as u32) << 10) + kept as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncates_toward_zero_and_keeps_subnormals() {
        // (sum, unit, result, reason)
        let cases = [
            (3, 0, 0x4040_0000, "three"),
            (-0x1ff_ffff, -24, 0xbfff_ffff, "the 25th bit is cut, symmetrically"),
            (0x1ff_ffff, -24, 0x3fff_ffff, "the 25th bit is cut"),
            (1, -149, 1, "the least subnormal"),
            (-1, -150, 0, "a negative sum cut to zero is +0"),
            (3, -150, 1, "a subnormal is cut"),
            (1, 128, 0x7f80_0000, "overflow is infinite"),
            (0xff_ffff, 104, 0x7f7f_ffff, "the largest number"),
            (0x1ff_ffff, 103, 0x7f7f_ffff, "cut below 2^128 stays finite"),
        ];
        for (sum, unit, result, reason) in cases {
            assert_eq!(Rounding::TowardZeroF32.pack(sum, unit), result, "{reason}");
        }
        assert_eq!(Rounding::TowardZeroE8m13.pack(-0x7fff, -14), 0xbfff_fc00);
    }

    #[test]
    fn rounds_binary16_to_nearest_even() {
        // (sum, unit, result, reason)
        let cases = [
            (65_504, 0, 0x7bff, "the largest number"),
            (65_519, 0, 0x7bff, "below the tie"),
            (-65_520, 0, 0xfc00, "the tie overflows"),
            (1, -24, 1, "the least subnormal"),
            (1, -25, 0, "tie to even zero"),
            (3, -25, 2, "tie to even two"),
            (-1, -25, 0, "a negative sum rounded to zero is +0"),
            (0x7ff, -25, 0x400, "a subnormal carries into the normal range"),
            (0x801, -11, 0x3c00, "tie below an even significand"),
            (0x803, -11, 0x3c02, "tie below an odd significand"),
        ];
        for (sum, unit, result, reason) in cases {
            assert_eq!(Rounding::NearestF16.pack(sum, unit), result, "{reason}");
        }
    }
}
