//! The times of traces as text, in nanoseconds.

use std::time::Duration;

use crate::clock::nanoseconds;

/// Returns a number of seconds, not negative.
pub(super) fn seconds_ns(text: &str) -> Option<u64> {
    from_seconds(text.trim().parse().ok()?)
}

/// Returns so many seconds.
pub(super) fn from_seconds(seconds: f64) -> Option<u64> {
    Duration::try_from_secs_f64(seconds).ok().map(nanoseconds)
}

/// Returns the time since 1970 of a date and time such as `2023-11-16 18:15:46.6805900`, with a `T` between them or not, and
/// with an offset to Greenwich such as `+00:00` or `Z`, or without one.
pub(super) fn since_epoch_ns(text: &str) -> Option<u64> {
    let text = text.trim();
    let (date, time) = text.split_once([' ', 'T'])?;
    let mut parts = date.split('-');
    let (year, month, day) = (whole(parts.next()?)?, whole(parts.next()?)?, whole(parts.next()?)?);
    let (time, offset_s) = match time.find(['+', '-', 'Z']) {
        None => (time, 0),
        Some(at) => (time.get(..at)?, offset(time.get(at..)?)?),
    };
    let mut parts = time.split(':');
    let (hour, minute, second) = (whole(parts.next()?)?, whole(parts.next()?)?, parts.next()?);
    let (second, fraction) = second.split_once('.').unwrap_or((second, "0"));
    let second = whole(second)?;
    let is_moment = (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second < 61;
    if !is_moment
        || parts.next().is_some()
        || fraction.is_empty()
        || !fraction.bytes().all(|byte| byte.is_ascii_digit())
    {
        return None;
    }
    let nanos: i64 = format!("{fraction:0<9}").get(..9)?.parse().ok()?;
    let seconds = days_since_epoch(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset_s;
    u64::try_from(seconds.checked_mul(1_000_000_000)?.checked_add(nanos)?).ok()
}

fn whole(text: &str) -> Option<i64> {
    let is_whole = (1..=4).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_whole { text.parse().ok() } else { None }
}

/// Returns an offset to Greenwich in seconds.
fn offset(text: &str) -> Option<i64> {
    if text == "Z" {
        return Some(0);
    }
    let (sign, text) = match text.strip_prefix('-') {
        Some(text) => (-1, text),
        None => (1, text.strip_prefix('+')?),
    };
    let (hours, minutes) = text.split_once(':').unwrap_or((text, "0"));
    Some(sign * (whole(hours)? * 3600 + whole(minutes)? * 60))
}

/// Returns the days from 1970-01-01 to a date of the Gregorian calendar (Hinnant, "chrono-compatible low-level date
/// algorithms", `days_from_civil`).
fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_with_their_fractions_and_offsets() {
        for (text, expected) in [
            ("1970-01-01 00:00:00", Some(0)),
            ("1970-01-02T00:00:00.000000001", Some(86_400_000_000_001)),
            ("2000-03-01 00:00:00Z", Some(951_868_800_000_000_000)),
            ("2023-11-16 18:15:46.6805900", Some(1_700_158_546_680_590_000)),
            ("2024-05-10 00:00:00.009930+00:00", Some(1_715_299_200_009_930_000)),
            ("2024-05-10 02:00:00.5+02:00", Some(1_715_299_200_500_000_000)),
            ("1969-12-31 23:59:59", None),
            ("2024-05-10", None),
            ("2024-13-10 00:00:00", None),
            ("2024-05-10 25:00:00", None),
            ("2024-05-10 00:00:0x", None),
            ("2024-05-10 00:00:00.", None),
            ("2024-05-10 00:00:00:00", None),
            ("\0", None),
            ("", None),
        ] {
            assert_eq!(since_epoch_ns(text), expected, "{text}");
        }
        assert_eq!(seconds_ns(" 1.25 "), Some(1_250_000_000));
        assert_eq!((seconds_ns("-1"), seconds_ns("nan"), seconds_ns("1e300")), (None, None, None));
    }
}
