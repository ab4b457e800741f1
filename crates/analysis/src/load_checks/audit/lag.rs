//! The lag from its histogram.

use isobench_schema::load_checks::{Lag, Spread};

use crate::stats::real;

const NS_PER_MS: f64 = 1e6;

/// Returns the lag of a histogram: pairs of an upper bound in nanoseconds and the number of reads up to it and above the
/// bound before. `None` if it holds no reads.
///
/// A percentile is the upper bound of the bucket that it lies in (of the value with rank ⌈share · n⌉), never above the
/// longest lag: too long rather than too short.
pub(crate) fn lag(histogram: &[(u64, u64)], longest_ns: u64) -> Option<Lag> {
    let mut buckets = histogram.to_vec();
    buckets.sort_unstable_by_key(|(bound, _)| *bound);
    let reads: u64 = buckets.iter().map(|(_, count)| count).sum();
    if reads == 0 {
        return None;
    }
    let (p50, p50_width) = percentile(&buckets, 0.5 * real(reads), longest_ns)?;
    let (p99, p99_width) = percentile(&buckets, 0.99 * real(reads), longest_ns)?;
    let lag_ms = Spread { p50, p99, max: real(longest_ns) / NS_PER_MS };
    Some(Lag { lag_ms, resolution: p50_width.max(p99_width), reads })
}

/// Returns the upper bound of the bucket that holds `rank` values with those before it, in milliseconds, and the bucket's
/// width as a part of it.
fn percentile(buckets: &[(u64, u64)], rank: f64, longest_ns: u64) -> Option<(f64, f64)> {
    let (mut before, mut lower) = (0, 0);
    for (bound, count) in buckets {
        before += count;
        if real(before) >= rank {
            let upper = (*bound).min(longest_ns.max(lower));
            let width = if upper == 0 { 0.0 } else { real(upper - lower) / real(upper) };
            return Some((real(upper) / NS_PER_MS, width));
        }
        lower = *bound;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_the_upper_bound_of_its_bucket() {
        // 50 reads up to 10 µs, 48 up to 20 µs, 2 up to 1 ms
        let found = lag(&[(1_000_000, 2), (10_000, 50), (20_000, 48)], 900_000).unwrap();
        assert_eq!(found.lag_ms, Spread { p50: 0.01, p99: 0.9, max: 0.9 });
        assert_eq!(found.reads, 100);
        assert!((found.resolution - 1.0).abs() < 1e-12, "{}", found.resolution);
    }

    #[test]
    fn fine_buckets_have_a_fine_resolution() {
        let found = lag(&[(990, 1), (1_000, 98), (1_010, 1)], 1_010).unwrap();
        assert!((found.lag_ms.p99 - 0.001).abs() < 1e-12 && (found.resolution - 0.01).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn no_reads_have_no_lag() {
        assert_eq!(lag(&[], 0), None);
        assert_eq!(lag(&[(10, 0)], 0), None);
        assert!(lag(&[(0, 3)], 0).unwrap().lag_ms.p99.abs() < f64::EPSILON);
    }
}
