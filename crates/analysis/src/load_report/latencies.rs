//! The statistics of one duration, with their intervals.
//!
//! The mean's interval is over batches of requests that follow each other in time ([`ratio_interval`]), because neighbours
//! share a server and a queue. A percentile over requests has the interval of order statistics ([`quantile_ranks`]), which
//! takes requests as independent; one over gaps has Woodruff's over slots of time, because the gaps of one request
//! depend on each other.

use std::collections::BTreeMap;

use isobench_schema::load_result::{Histogram, LoadInterval};

use super::slots::Slots;
use super::{PERCENTILES, Sample};
use crate::measure::gaps::{Clock, GapView};
use crate::stats::{
    Cluster, Interval, Ordered, Sorted, Summary, enough_for_quantile, quantile_ranks, ratio_interval, summarise,
};

/// The probability with which an interval covers its number.
const LEVEL: f64 = 0.95;
/// Batches of requests that follow each other. Fewer requests are a batch each.
const BATCHES: usize = 20;
/// Each power of two has so many buckets while a distribution is counted.
const BUCKETS: i32 = 1_024;
/// The lowest bucket begins at 2^-10 ms, about a microsecond.
const LOWEST: i32 = -10 * BUCKETS;
/// Neighbouring buckets are drawn together until there are no more than so many, and until no more than so many hold the
/// values but for a hundredth at either end: a narrow distribution has fine buckets, and a few extremes don't make them wide.
const MOST_BUCKETS: usize = 1_000;
const MOST_IN_THE_MIDDLE: usize = 80;

/// The numbers of durations by vLLM's names.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) metrics: BTreeMap<String, f64>,
    pub(super) intervals: BTreeMap<String, LoadInterval>,
    pub(super) too_few: Vec<String>,
    /// The requests that each percentile needs that there were too few for.
    pub(super) requests_needed: BTreeMap<String, u64>,
    pub(super) distributions: BTreeMap<String, Histogram>,
    percentiles: Vec<f64>,
}

impl Table {
    /// Returns an empty table for the percentiles that every result has and those that were asked for.
    pub(super) fn new(asked: &[f64]) -> Self {
        let is_between = |percentile: &f64| *percentile > 0.0 && *percentile < 100.0;
        let mut percentiles: Vec<f64> = PERCENTILES.iter().chain(asked).copied().filter(is_between).collect();
        percentiles.sort_unstable_by(f64::total_cmp);
        percentiles.dedup();
        Self { percentiles, ..Self::default() }
    }

    /// Adds a duration that each request has once. The requests are in the order of their scheduled times.
    pub(super) fn requests(&mut self, name: &str, requests: &[&Sample], value: impl Fn(&Sample) -> Option<f64>) {
        let values = Ordered::new(requests.iter().filter_map(|sample| value(sample)));
        let count = values.total();
        let mean = mean_interval(requests, |sample| value(sample).map(|value| (value, 1)));
        let around = |percentile: f64| {
            let (low, high) = quantile_ranks(count, percentile / 100.0, LEVEL)?;
            Some(LoadInterval { low: values.at(low)?, high: values.at(high)? })
        };
        let shares: Vec<f64> = self.percentiles.iter().map(|percentile| percentile / 100.0).collect();
        let mut buckets = Buckets::default();
        let Some(summary) = summarise(&values, &shares, |value, times| buckets.add(value, times)) else { return };
        let around: Vec<Option<LoadInterval>> = self.percentiles.iter().map(|percentile| around(*percentile)).collect();
        self.add(name, &summary, count, (mean, &around));
        self.distributions.insert(name.to_owned(), buckets.histogram());
    }

    /// Adds the gaps between tokens or chunks, under each of the names, from so many requests.
    pub(super) fn gaps(
        &mut self,
        names: &[&str],
        requests: &[&Sample],
        (view, clock, slots): (GapView<'_>, Clock, &Slots),
    ) {
        let mean = mean_interval(requests, |sample| match clock {
            Clock::Both | Clock::Tokens => sample.token_gaps(),
            Clock::Chunks => sample.chunk_gaps(),
        });
        let mut shares: Vec<f64> = self.percentiles.iter().map(|percentile| percentile / 100.0).collect();
        let around: Vec<Option<(f64, f64)>> =
            shares.iter().map(|share| slots.shares_around(clock, *share, LEVEL)).collect();
        shares.extend(around.iter().flatten().flat_map(|(low, high)| [*low, *high]));
        let mut buckets = Buckets::default();
        let Some(summary) = summarise(&view, &shares, |value, times| buckets.add(value, times)) else { return };
        let mut ends = summary.quantiles.iter().skip(self.percentiles.len()).copied();
        let mut interval = |around: &Option<(f64, f64)>| {
            around.and_then(|_| Some(LoadInterval { low: ends.next()?, high: ends.next()? }))
        };
        let around: Vec<Option<LoadInterval>> = around.iter().map(&mut interval).collect();
        let count = u64::try_from(requests.len()).unwrap_or(u64::MAX);
        let histogram = buckets.histogram();
        for name in names {
            self.add(name, &summary, count, (mean, &around));
            self.distributions.insert((*name).to_owned(), histogram.clone());
        }
    }

    /// Adds the statistics of one duration with the intervals of its mean and of its percentiles.
    fn add(
        &mut self,
        name: &str,
        summary: &Summary,
        requests: u64,
        (mean, around): (Option<LoadInterval>, &[Option<LoadInterval>]),
    ) {
        self.put(format!("mean_{name}_ms"), summary.mean, mean);
        if summary.total > 1 {
            self.put(format!("std_{name}_ms"), summary.deviation, None);
        }
        let percentiles = self.percentiles.clone();
        for ((percentile, value), around) in percentiles.iter().zip(&summary.quantiles).zip(around) {
            let key = format!("p{percentile}_{name}_ms");
            let is_median = (percentile - 50.0).abs() < f64::EPSILON;
            if is_median {
                self.put(format!("median_{name}_ms"), *value, *around);
            }
            let enough = enough_for_quantile(percentile / 100.0);
            if is_median || enough.is_some_and(|enough| requests >= enough) {
                self.put(key, *value, *around);
            } else {
                self.too_few.push(key);
                self.requests_needed.extend(enough.map(|enough| (format!("p{percentile}"), enough)));
            }
        }
    }

    fn put(&mut self, key: String, value: f64, around: Option<LoadInterval>) {
        if let Some(around) = around {
            self.intervals.insert(key.clone(), around);
        }
        self.metrics.insert(key, value);
    }
}

/// Returns the interval of a mean of sums and counts over batches of requests that follow each other.
fn mean_interval(requests: &[&Sample], value: impl Fn(&Sample) -> Option<(f64, u64)>) -> Option<LoadInterval> {
    let batches = BATCHES.min(requests.len());
    let start = |batch: usize| requests.len() * batch / batches.max(1);
    let cluster = |batch: usize| {
        let mut cluster = Cluster::default();
        let of_batch = requests.get(start(batch)..start(batch + 1)).unwrap_or_default();
        for (sum, count) in of_batch.iter().filter_map(|sample| value(sample)) {
            cluster.sum += sum;
            cluster.count += count;
        }
        cluster
    };
    let clusters: Vec<Cluster> = (0..batches).map(cluster).collect();
    ratio_interval(&clusters, LEVEL).map(|Interval { low, high }| LoadInterval { low, high })
}

/// Counts of ascending values in buckets of equal ratio.
#[derive(Debug, Default)]
struct Buckets {
    first: i32,
    counts: Vec<u64>,
    end_ms: f64,
}

impl Buckets {
    fn add(&mut self, value_ms: f64, times: u64) {
        if self.counts.is_empty() {
            self.first = place(value_ms);
            self.counts.push(0);
            self.end_ms = bound(self.first + 1, BUCKETS);
        }
        while value_ms >= self.end_ms {
            self.counts.push(0);
            let buckets = i32::try_from(self.counts.len()).unwrap_or(i32::MAX);
            self.end_ms = bound(self.first.saturating_add(buckets), BUCKETS);
        }
        if let Some(count) = self.counts.last_mut() {
            *count += times;
        }
    }

    fn histogram(self) -> Histogram {
        let Self { mut first, mut counts, .. } = self;
        let mut buckets = BUCKETS;
        while buckets > 1 && (counts.len() > MOST_BUCKETS || middle(&counts) > MOST_IN_THE_MIDDLE) {
            // Buckets of twice the width begin at even places.
            let is_odd = first.rem_euclid(2) == 1;
            let (alone, pairs) = counts.split_at(usize::from(is_odd).min(counts.len()));
            let merged = pairs.chunks(2).map(|pair| pair.iter().sum());
            counts = alone.iter().copied().chain(merged).collect();
            first = first.div_euclid(2);
            buckets /= 2;
        }
        Histogram { first_ms: bound(first, buckets), ratio: (1.0 / f64::from(buckets)).exp2(), counts }
    }
}

/// Returns how many buckets hold the values but for a hundredth at either end.
fn middle(counts: &[u64]) -> usize {
    let few = counts.iter().sum::<u64>() / 100;
    let tail = |counts: &mut dyn Iterator<Item = &u64>| {
        let mut so_far = 0;
        counts
            .take_while(|count| {
                so_far += **count;
                so_far <= few
            })
            .count()
    };
    counts.len().saturating_sub(tail(&mut counts.iter()) + tail(&mut counts.iter().rev()))
}

/// Returns the bucket of a value.
#[expect(clippy::cast_possible_truncation, reason = "the logarithm of a finite number is far below 2^31")]
fn place(value_ms: f64) -> i32 {
    if value_ms > 0.0 { ((value_ms.log2() * f64::from(BUCKETS)).floor() as i32).max(LOWEST) } else { LOWEST }
}

/// Returns the lower bound of a bucket in milliseconds, where a power of two has so many.
fn bound(place: i32, buckets: i32) -> f64 {
    (f64::from(place) / f64::from(buckets)).exp2()
}

#[cfg(test)]
pub(super) mod tests {
    use isobench_schema::record::{Phase, RequestRecord};

    use super::*;

    /// Numbers that look random (xorshift64, Marsaglia 2003).
    pub(in crate::load_report) struct Random(pub(in crate::load_report) u64);

    impl Random {
        /// Returns a number from 0 to 1.
        #[expect(clippy::cast_precision_loss, reason = "53 of its bits are as random as all")]
        pub(in crate::load_report) fn unit(&mut self) -> f64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 11) as f64 / (1_u64 << 53) as f64
        }
    }

    fn samples(latencies_ms: &[f64]) -> Vec<Sample> {
        let sample = |(index, ms): (u32, &f64)| {
            let mut record = RequestRecord::intended(Phase::Measure, index, u64::from(index) * 1_000_000);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few milliseconds")]
            let latency_ns = (ms * 1e6) as u64;
            record.end_ns += latency_ns;
            Sample::of(&record, 1)
        };
        (0..).zip(latencies_ms).map(sample).collect()
    }

    /// Returns how often the intervals of the mean and of the 90th percentile cover the truth, when each latency keeps so much
    /// of the one before it.
    fn coverage(kept: f64, (mean, p90): (f64, f64)) -> (f64, f64) {
        let mut random = Random(11);
        let (runs, mut covered) = (400, (0, 0));
        for _ in 0..runs {
            let mut before = 1.5;
            let latencies: Vec<f64> = (0..600)
                .map(|_| {
                    before = kept * before + (1.0 - kept) * (1.0 + random.unit());
                    before
                })
                .collect();
            let samples = samples(&latencies);
            let mut table = Table::new(&[]);
            table.requests("e2el", &samples.iter().collect::<Vec<_>>(), |sample| Some(sample.e2el_ms));
            let is_covered = |key: &str, truth: f64| {
                let LoadInterval { low, high } = table.intervals[key];
                i32::from(low <= truth && truth <= high)
            };
            covered.0 += is_covered("mean_e2el_ms", mean);
            covered.1 += is_covered("p90_e2el_ms", p90);
        }
        (f64::from(covered.0) / f64::from(runs), f64::from(covered.1) / f64::from(runs))
    }

    #[test]
    fn intervals_cover_the_truth_as_often_as_they_say() {
        let (mean, p90) = coverage(0.0, (1.5, 1.9));
        assert!((0.92..=0.98).contains(&mean), "{mean}");
        assert!((0.93..=0.99).contains(&p90), "{p90}");
        // Where neighbours depend on each other that of the mean still holds nearly.
        let (mean, _) = coverage(0.8, (1.5, 1.9));
        assert!((0.88..=0.98).contains(&mean), "{mean}");
    }

    #[test]
    fn values_are_counted_in_buckets_of_equal_ratio() {
        let mut buckets = Buckets::default();
        for (value, times) in [(1.0, 2), (1.05, 1), (2.0, 3), (2.1, 4)] {
            buckets.add(value, times);
        }
        let Histogram { first_ms, ratio, counts } = buckets.histogram();
        assert_eq!((first_ms, counts.len(), counts[0], counts[64], counts.iter().sum::<u64>()), (1.0, 69, 2, 3, 10));
        assert!((ratio.powi(64) - 2.0).abs() < 1e-12);
        let mut low = Buckets::default();
        for value in [-1.0, 0.0, 1e-9, 0.0011] {
            low.add(value, 1);
        }
        let counts = low.histogram().counts;
        assert_eq!((counts.first(), counts.last(), counts.iter().sum()), (Some(&3), Some(&1), 4_u64));
    }

    #[test]
    fn a_narrow_distribution_has_fine_buckets_and_an_extreme_does_not_make_them_wide() {
        let mut random = Random(5);
        let mut values: Vec<f64> = (0..2_000).map(|_| 10.0 + random.unit()).collect();
        values.push(1_000.0);
        values.sort_by(f64::total_cmp);
        let histogram = |values: &[f64]| {
            let mut buckets = Buckets::default();
            for value in values {
                buckets.add(*value, 1);
            }
            let found = buckets.histogram();
            assert_eq!(found.counts.iter().sum::<u64>(), u64::try_from(values.len()).unwrap());
            assert!(found.first_ms <= values[0] && found.first_ms * found.ratio > values[0], "{found:?}");
            found.counts
        };
        let narrow = histogram(&values[..2_000]);
        assert!((40..=90).contains(&narrow.len()), "{}", narrow.len());
        let all = histogram(&values);
        assert!(all.len() <= MOST_BUCKETS && all.iter().filter(|count| **count > 0).count() > 15, "{all:?}");
    }
}
