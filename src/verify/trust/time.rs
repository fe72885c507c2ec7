//! Times of the trust file: dates and times with an offset, as Unix seconds.

use toml::value::{Datetime, Offset};

/// Returns the Unix time of a TOML date or date-time.
///
/// A date alone means its first second in UTC. `Err` says what is wrong.
pub(super) fn unix_seconds(time: &Datetime) -> Result<u64, &'static str> {
    let date = time.date.ok_or("a time without a date")?;
    let (year, month, day) = (i64::from(date.year), i64::from(date.month), i64::from(date.day));
    if !(1..=12).contains(&month) || !(1..=days_in_month(year, month)).contains(&day) {
        return Err("no such day");
    }
    let days = days_before_year(year) - days_before_year(1970) + days_before_month(year, month);
    let mut seconds = (days + day - 1) * SECONDS_OF_DAY;
    if let Some(clock) = time.time {
        let second = i64::from(clock.second.unwrap_or(0));
        if clock.hour > 23 || clock.minute > 59 || second > 59 {
            return Err("no such time of day");
        }
        if clock.nanosecond.unwrap_or(0) != 0 {
            return Err("fractions of a second are not used");
        }
        seconds += i64::from(clock.hour) * 3600 + i64::from(clock.minute) * 60 + second;
        seconds -= match time.offset {
            Some(Offset::Z) => 0,
            Some(Offset::Custom { minutes }) => i64::from(minutes) * 60,
            None => return Err("a time of day needs its offset, for instance Z"),
        };
    }
    u64::try_from(seconds).map_err(|_| "before 1970")
}

/// Reads an RFC 3339 time; the inverse of [`rfc3339`].
///
/// # Errors
/// What is wrong with it.
pub fn unix_time(text: &str) -> Result<u64, &'static str> {
    let time: Datetime = text.parse().map_err(|_| "not a time")?;
    unix_seconds(&time)
}

/// Writes a Unix time as RFC 3339 in UTC.
pub fn rfc3339(unix_seconds: u64) -> String {
    let (days, second) = (unix_seconds / 86_400, unix_seconds % 86_400);
    let days = days as i64; // Below 2^48.
    // 146,097 days make 400 years; the estimate is at most one year late.
    let mut year = 1970 + days * 400 / 146_097 + 1;
    while days_before_year(year) - days_before_year(1970) > days {
        year -= 1;
    }
    let mut day = days - (days_before_year(year) - days_before_year(1970));
    let mut month = 1;
    while day >= days_in_month(year, month) {
        day -= days_in_month(year, month);
        month += 1;
    }
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}Z", day + 1)
}

/// Days from 0000-01-01 to the first of January, Gregorian.
fn days_before_year(year: i64) -> i64 {
    let past = year - 1;
    365 * year + past.div_euclid(4) - past.div_euclid(100) + past.div_euclid(400)
}

fn days_before_month(year: i64, month: i64) -> i64 {
    (1..month).map(|earlier| days_in_month(year, earlier)).sum()
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

const SECONDS_OF_DAY: i64 = 86_400;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn converts_dates_and_times() {
        // Expected values from GNU date, `date -u -d … +%s`.
        let cases = [
            ("1970-01-01", Ok(0), "the epoch"),
            ("2000-02-29", Ok(951_782_400), "leap day of a year divisible by 400"),
            ("2026-11-30T13:35:00Z", Ok(1_796_045_700), "a time in UTC"),
            ("2026-11-30T14:35:00+01:00", Ok(1_796_045_700), "the same with an offset"),
            ("2100-03-01", Ok(4_107_542_400), "after a year that is no leap year"),
            ("9999-12-31T23:59:59Z", Ok(253_402_300_799), "the last second of four digits"),
            ("1969-12-31", Err("before 1970"), "too early"),
            ("2026-11-30T13:35:00", Err("a time of day needs its offset, for instance Z"), "local"),
            ("13:35:00", Err("a time without a date"), "a clock time"),
            ("2026-11-30T13:35:00.5Z", Err("fractions of a second are not used"), "a fraction"),
        ];
        for (text, expected, reason) in cases {
            let time: Datetime = text.parse().unwrap();
            assert_eq!(unix_seconds(&time), expected, "{reason}");
        }
    }

    #[test]
    fn writing_is_the_inverse_of_reading() {
        for day in 0..200_000u64 {
            let seconds = day * 86_400 + day % 86_400;
            assert_eq!(unix_time(&rfc3339(seconds)), Ok(seconds));
        }
        assert_eq!(rfc3339(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(unix_time("yesterday"), Err("not a time"));
        assert!(rfc3339(u64::MAX).starts_with("584554051223-"));
    }
}
