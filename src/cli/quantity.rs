//! Counts, bytes and times in a unit that fits their size.

use crate::bench::{Decimal, quotient};

/// A count with four significant digits, such as `1.014 T` or `45.62 M`; exact
/// below a thousand.
pub(super) fn count(amount: u64) -> String {
    match scaled(amount) {
        None => amount.to_string(),
        Some((value, prefix)) => format!("{value} {prefix}"),
    }
}

/// Bytes with four significant digits, such as `8.044 GB`; exact below a thousand.
pub(super) fn bytes(amount: u64) -> String {
    match scaled(amount) {
        None => format!("{amount} B"),
        Some((value, prefix)) => format!("{value} {prefix}B"),
    }
}

/// A time in whole seconds, or in milliseconds below ten of them.
pub(super) fn duration(seconds: Decimal) -> String {
    match seconds.millionths() {
        short if short < 10_000_000 => format!("{} ms", short.div_ceil(1000)),
        _ => format!("{seconds:.0} s"),
    }
}

/// The largest prefix of the SI (each a thousand of the one before) that leaves at
/// least one of its unit.
fn scaled(amount: u64) -> Option<(Decimal, &'static str)> {
    let prefixes = [(1_000_000_000_000, "T"), (1_000_000_000, "G"), (1_000_000, "M"), (1000, "k")];
    let (unit, prefix) = prefixes.into_iter().find(|&(unit, _)| amount >= unit)?;
    Some((quotient(amount, unit), prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_fits_the_size() {
        // (amount, as a count, as bytes)
        let cases = [
            (0, "0", "0 B"),
            (999, "999", "999 B"),
            (1000, "1.000 k", "1.000 kB"),
            (45_624_320, "45.62 M", "45.62 MB"),
            (999_999_999, "999.9 M", "999.9 MB"),
            (8_044_936_192, "8.044 G", "8.044 GB"),
            (1_014_000_000_000, "1.014 T", "1.014 TB"),
            (u64::MAX, "18446744 T", "18446744 TB"),
        ];
        for (amount, shown, in_bytes) in cases {
            assert_eq!((&*count(amount), &*bytes(amount)), (shown, in_bytes));
        }
    }

    #[test]
    fn a_short_time_is_not_nought() {
        // (numerator and denominator of the seconds, shown)
        let cases = [
            (0, 1, "0 ms"),
            (1, 1_000_000, "1 ms"),
            (37, 1000, "37 ms"),
            (9, 1, "9000 ms"),
            (10, 1, "10 s"),
            (4_000_999, 1000, "4000 s"),
        ];
        for (dividend, divisor, shown) in cases {
            assert_eq!(duration(quotient(dividend, divisor)), shown);
        }
    }
}
