//! Quotients of integers as decimal numbers, without a float operator.

use std::fmt;

use serde::{Serialize, Serializer};

/// A non-negative number with six decimal places, rounded down.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Decimal {
    millionths: u64,
}

impl Decimal {
    /// The number as a multiple of 1/1,000,000.
    pub fn millionths(self) -> u64 {
        self.millionths
    }
}

/// Returns `dividend / divisor`; the largest number if the divisor is 0.
pub fn quotient(dividend: u64, divisor: u64) -> Decimal {
    let exact = (u128::from(dividend) * u128::from(UNIT)).checked_div(divisor.into());
    let millionths = exact.and_then(|x| u64::try_from(x).ok()).unwrap_or(u64::MAX);
    Decimal { millionths }
}

/// Returns `amount` in `nanos` nanoseconds as 10^9 a second: GMAC/s of
/// multiply-adds, GB/s of bytes.
pub fn per_second(amount: u64, nanos: u64) -> Decimal {
    quotient(amount, nanos)
}

impl fmt::Display for Decimal {
    /// Four significant digits are enough for a rate: places shrink as the number
    /// grows. A precision given by the caller holds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = self.millionths / UNIT;
        let places = f.precision().unwrap_or(match whole {
            0 => 4,
            1..10 => 3,
            10..100 => 2,
            100..1000 => 1,
            1000.. => 0,
        });
        let text = match places.min(PLACES) {
            0 => whole.to_string(),
            places => {
                let digits = format!("{:06}", self.millionths % UNIT);
                format!("{whole}.{}", &digits[..places])
            }
        };
        f.pad_integral(true, "", &text)
    }
}

impl Serialize for Decimal {
    /// A JSON number.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = format!("{:.6}", self);
        // Reading a decimal is exact to the nearest double; no arithmetic is involved.
        text.parse::<f64>().map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

const PLACES: usize = 6;
/// Parts of one: `10^PLACES`.
const UNIT: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quotient_has_six_places_rounded_down() {
        // (dividend, divisor, text with six places, shown, reason)
        let cases = [
            (1, 3, "0.333333", "0.3333", "four places below one"),
            (2, 3, "0.666666", "0.6666", "down, not to nearest"),
            (16_103, 1000, "16.103000", "16.10", "four significant digits"),
            (123_456, 1000, "123.456000", "123.4", "one place from 100 on"),
            (5_000_000, 1000, "5000.000000", "5000", "none from 1000 on"),
            (0, 7, "0.000000", "0.0000", "nothing done"),
        ];
        for (dividend, divisor, full, shown, reason) in cases {
            let number = quotient(dividend, divisor);
            assert_eq!(format!("{number:.6}"), full, "{reason}");
            assert_eq!(number.to_string(), shown, "{reason}");
            assert_eq!(format!("{number:>9}"), format!("{shown:>9}"), "{reason}");
        }
        assert_eq!(serde_json::to_string(&quotient(16_103, 1000)).unwrap(), "16.103");
    }

    #[test]
    fn no_time_at_all_is_the_largest_number() {
        assert_eq!(quotient(1, 0).millionths(), u64::MAX);
        assert_eq!(quotient(u64::MAX, 1).millionths(), u64::MAX);
    }
}
