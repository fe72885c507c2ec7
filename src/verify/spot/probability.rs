//! How likely a draw is to meet a forged cell.

#![expect(clippy::float_arithmetic, reason = "a probability for readers; no bit depends on it")]

/// Says for several shares of forged cells how likely a draw of `cells` distinct ones out
/// of `of` meets at least one: `1 − (1 − f)^cells`, which is a lower bound, because no
/// cell is drawn twice.
pub(super) fn table(cells: u64, of: u64) -> String {
    let row =
        |(share, name): (f64, &str)| format!("{} if {name} were forged", percent(share, cells));
    let one = 1.0 / of as f64;
    let shares = [(0.1, "10%"), (0.01, "1%"), (0.001, "0.1%")];
    // A smaller share is less than one cell; how one fares is said apart, exactly.
    let rows: Vec<String> = shares.into_iter().filter(|(f, _)| *f > one).map(row).collect();
    if rows.is_empty() {
        return "what one cell in so few has".into();
    }
    format!("at least {}", rows.join(", "))
}

/// `1 − (1 − f)^cells` in percent, rounded down to a tenth.
fn percent(f: f64, cells: u64) -> String {
    let missed = power(1.0 - f, cells);
    // Never certain, however close: what is lost in the last place must not be claimed.
    let noticed = ((1.0 - missed) * 1000.0).floor().min(999.0);
    format!("{:.1}%", noticed / 10.0)
}

/// `base^exponent` by squaring: products alone, so that every machine prints the same.
fn power(mut base: f64, mut exponent: u64) -> f64 {
    let mut result = 1.0;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_are_those_of_the_formula() {
        // (share, cells, percent, reason)
        let cases = [
            (0.01, 299, "95.0%", "1 − 0.99^299 = 0.95046"),
            (0.001, 2995, "95.0%", "1 − 0.999^2995 = 0.95004"),
            (0.1, 300, "99.9%", "rounded down: never 100%"),
            (0.1, 400, "99.9%", "where the remainder is below the last place, too"),
            (0.5, u64::MAX, "99.9%", "whatever is drawn"),
            (1.0 / 36_000.0, 300, "0.8%", "one cell of 1,000 positions and 36 layers"),
            (0.5, 1, "50.0%", "one draw"),
        ];
        for (f, cells, expected, reason) in cases {
            assert_eq!(percent(f, cells), expected, "{reason}");
        }
    }

    #[test]
    fn shares_below_one_cell_are_not_named() {
        assert_eq!(table(3, 18), "at least 27.0% if 10% were forged", "27.1%, never above");
        assert_eq!(table(3, 9), "what one cell in so few has");
    }
}
