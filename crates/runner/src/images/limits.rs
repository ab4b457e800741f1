//! How much a registry lets one ask, and how long it wants one to wait: its headers.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use isobench_schema::images::RateLimit;

/// A wait that is longer than this many seconds is a moment since 1970.
const MOMENTS_BEGIN: u64 = 1_000_000_000;

/// Reads `ratelimit-limit: 100;w=21600` and `ratelimit-remaining: 76;w=21600`, or Docker Hub's `x-ratelimit-limit` and
/// `x-ratelimit-remaining`.
pub(super) fn rate_limit<'h>(header: impl Fn(&str) -> Option<&'h str>) -> Option<RateLimit> {
    let limit = header("ratelimit-limit").or_else(|| header("x-ratelimit-limit"))?;
    let remaining = header("ratelimit-remaining").or_else(|| header("x-ratelimit-remaining"));
    let (limit, window_s) = amount(limit)?;
    Some(RateLimit { limit, remaining: remaining.and_then(amount).map(|(left, _)| left), window_s })
}

/// Returns the number at the beginning, and the window behind `w=`.
fn amount(text: &str) -> Option<(u64, Option<u64>)> {
    let mut parts = text.split(';').map(str::trim);
    let number = parts.next()?.split(',').next()?.trim().parse().ok()?;
    let window = parts.find_map(|part| part.strip_prefix("w=")).and_then(|window| window.trim().parse().ok());
    Some((number, window))
}

/// Returns how long a registry wants one to wait: `Retry-After` in seconds or as a moment by HTTP's calendar, or `X-Retry-After`
/// as a moment in seconds since 1970. Either may be in any of these forms. A moment is held against the registry's own clock where
/// it says its `Date`.
pub(super) fn retry_after<'h>(header: impl Fn(&str) -> Option<&'h str>, now: SystemTime) -> Option<Duration> {
    let said = header("retry-after").and_then(wait_of).or_else(|| header("x-retry-after").and_then(wait_of))?;
    let moment = match said {
        Said::Wait(wait) => return Some(wait),
        Said::Moment(moment) => moment,
    };
    let theirs = header("date").and_then(|text| httpdate::parse_http_date(text.trim()).ok());
    // What lies behind is waited for no more.
    Some(moment.duration_since(theirs.unwrap_or(now)).unwrap_or_default())
}

/// What a registry says of when it may be asked again.
enum Said {
    Wait(Duration),
    Moment(SystemTime),
}

fn wait_of(text: &str) -> Option<Said> {
    let text = text.trim();
    match text.parse::<u64>() {
        Ok(seconds) if seconds < MOMENTS_BEGIN => Some(Said::Wait(Duration::from_secs(seconds))),
        Ok(seconds) => UNIX_EPOCH.checked_add(Duration::from_secs(seconds)).map(Said::Moment),
        Err(_) => httpdate::parse_http_date(text).ok().map(Said::Moment),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers<'h>(all: &'h [(&'h str, &'h str)]) -> impl Fn(&str) -> Option<&'h str> {
        |wanted: &str| all.iter().find(|(name, _)| *name == wanted).map(|(_, value)| *value)
    }

    #[test]
    fn limits_are_read_in_both_spellings() {
        let pulls = [("ratelimit-limit", "100;w=21600"), ("ratelimit-remaining", "76;w=21600")];
        let expected = RateLimit { limit: 100, remaining: Some(76), window_s: Some(21600) };
        assert_eq!(rate_limit(headers(&pulls)), Some(expected));
        let hub = [("x-ratelimit-limit", "180"), ("x-ratelimit-remaining", "179")];
        let expected = RateLimit { limit: 180, remaining: Some(179), window_s: None };
        assert_eq!(rate_limit(headers(&hub)), Some(expected));
        assert_eq!(rate_limit(headers(&[("ratelimit-limit", "many")])), None);
        assert_eq!(rate_limit(headers(&[])), None);
    }

    #[test]
    fn waits_are_seconds_or_moments() {
        let now = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        // 1 700 000 000 is a Tuesday, 22:13:20.
        for (name, value, expected) in [
            ("retry-after", "30", Some(30)),
            ("x-retry-after", "1700000045", Some(45)),
            ("retry-after", "1700000045", Some(45)),
            ("x-retry-after", "1600000000", Some(0)),
            ("retry-after", "Tue, 14 Nov 2023 22:14:05 GMT", Some(45)),
            ("retry-after", "Tuesday, 14-Nov-23 22:14:05 GMT", Some(45)),
            ("x-retry-after", "Tue Nov 14 22:14:05 2023", Some(45)),
            ("retry-after", "Tue, 14 Nov 2023 22:13:00 GMT", Some(0)),
            ("retry-after", "Tue, 14 Nov 2023", None),
            ("retry-after", "soon", None),
            ("retry-after", "-1", None),
        ] {
            let found = retry_after(headers(&[(name, value)]), now);
            assert_eq!(found, expected.map(Duration::from_secs), "{name}: {value}");
        }
    }

    #[test]
    fn a_moment_is_held_against_the_clock_of_who_names_it() {
        let behind = UNIX_EPOCH + Duration::from_secs(1_600_000_000);
        let all = [("retry-after", "Tue, 14 Nov 2023 22:14:05 GMT"), ("date", "Tue, 14 Nov 2023 22:13:20 GMT")];
        assert_eq!(retry_after(headers(&all), behind), Some(Duration::from_secs(45)));
    }
}
