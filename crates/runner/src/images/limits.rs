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

/// Returns how long a registry wants one to wait: `Retry-After` in seconds, or `X-Retry-After` as a moment in seconds since
/// 1970. Either may be in either form.
pub(super) fn retry_after<'h>(header: impl Fn(&str) -> Option<&'h str>, now: SystemTime) -> Option<Duration> {
    let said = |name: &str| header(name).and_then(|text| text.trim().parse::<u64>().ok());
    let number = said("retry-after").or_else(|| said("x-retry-after"))?;
    if number < MOMENTS_BEGIN {
        return Some(Duration::from_secs(number));
    }
    let moment = UNIX_EPOCH.checked_add(Duration::from_secs(number))?;
    // What lies behind us is waited for no more.
    Some(moment.duration_since(now).unwrap_or_default())
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
        for (name, value, expected) in [
            ("retry-after", "30", Some(30)),
            ("x-retry-after", "1700000045", Some(45)),
            ("retry-after", "1700000045", Some(45)),
            ("x-retry-after", "1600000000", Some(0)),
            ("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT", None),
            ("retry-after", "-1", None),
        ] {
            let found = retry_after(headers(&[(name, value)]), now);
            assert_eq!(found, expected.map(Duration::from_secs), "{name}: {value}");
        }
    }
}
