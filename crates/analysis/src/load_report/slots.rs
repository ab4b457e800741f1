//! The gaps over time: a histogram of them in each slot, for plots, and for how far their percentiles move with time.

use std::collections::BTreeMap;

use super::Window;
use crate::load_checks::audit::ReadGaps;
use crate::measure::gaps::{Clock, Gap};
use crate::stats::{Cluster, length, ratio_error, real, t_quantile};

/// Slots are narrow at first, and twice as wide each time that there are too many.
const MOST: usize = 400;
const NARROWEST_NS: u64 = 1_000_000;
/// Each power of two has so many buckets: a bucket is at most 1/64 of its values wide, so that its middle is right to 1 %.
const BUCKET_BITS: u32 = 6;
/// Fewer slots than this say nothing of how values move with time.
const FEWEST: usize = 10;
const NS_PER_MS: f64 = 1e6;

/// Histograms of the gaps that end in each slot.
#[derive(Debug)]
pub(super) struct Slots {
    width_ns: u64,
    slots: BTreeMap<u64, Slot>,
}

#[derive(Debug, Default)]
struct Slot {
    /// Counts of tokens by their inter-token latency, and of chunks by their inter-chunk latency.
    tokens: Vec<u64>,
    chunks: Vec<u64>,
}

impl Slot {
    fn counts(&self, clock: Clock) -> &[u64] {
        match clock {
            Clock::Both | Clock::Tokens => &self.tokens,
            Clock::Chunks => &self.chunks,
        }
    }

    fn merge(&mut self, other: &Self) {
        for (own, its) in [(&mut self.tokens, &other.tokens), (&mut self.chunks, &other.chunks)] {
            for (bucket, count) in its.iter().enumerate() {
                add(own, bucket, *count);
            }
        }
    }
}

fn add(counts: &mut Vec<u64>, bucket: usize, more: u64) {
    if counts.len() <= bucket {
        counts.resize(bucket + 1, 0);
    }
    if let Some(count) = counts.get_mut(bucket) {
        *count += more;
    }
}

/// Returns the bucket of a time in nanoseconds: exact below 64, then 64 buckets for each power of two.
fn bucket(ns: u64) -> usize {
    let shift = (u64::BITS - ns.leading_zeros()).saturating_sub(BUCKET_BITS + 1);
    let bucket = (u64::from(shift) << BUCKET_BITS) + (ns >> shift);
    usize::try_from(bucket).unwrap_or(usize::MAX)
}

/// Returns the middle of a bucket in milliseconds.
fn middle_ms(bucket: usize) -> f64 {
    let bucket = u64::try_from(bucket).unwrap_or(u64::MAX);
    let shift = (bucket >> BUCKET_BITS).saturating_sub(1);
    let low = (bucket - (shift << BUCKET_BITS)) << shift;
    (real(low) + real((1_u64 << shift) - 1) / 2.0) / NS_PER_MS
}

/// Returns the quantile of values in buckets, in milliseconds; `None` if they are empty.
fn quantile(counts: &[u64], share: f64) -> Option<f64> {
    let wanted = share * real(counts.iter().sum::<u64>());
    let mut before = 0;
    let reaches = |count: &u64| {
        before += count;
        before > 0 && real(before) >= wanted
    };
    counts.iter().position(reaches).map(middle_ms)
}

impl Default for Slots {
    fn default() -> Self {
        Self { width_ns: NARROWEST_NS, slots: BTreeMap::new() }
    }
}

impl Slots {
    /// Takes in a gap.
    pub(super) fn gap(&mut self, gap: &Gap) {
        let ns = gap.to_ns.saturating_sub(gap.from_ns);
        let slot = self.slots.entry(gap.to_ns / self.width_ns).or_default();
        if gap.clock != Clock::Chunks {
            add(&mut slot.tokens, bucket(ns / u64::from(gap.tokens)), u64::from(gap.tokens));
        }
        if gap.clock != Clock::Tokens {
            add(&mut slot.chunks, bucket(ns), 1);
        }
        if self.slots.len() > MOST {
            self.double();
        }
    }

    fn double(&mut self) {
        self.width_ns = self.width_ns.saturating_mul(2);
        for (place, slot) in std::mem::take(&mut self.slots) {
            self.slots.entry(place / 2).or_default().merge(&slot);
        }
    }

    /// Widens the slots until at most `most` cover the window.
    pub(super) fn widen(&mut self, window: Window, most: u64) {
        while window.end_ns / self.width_ns - window.start_ns / self.width_ns + 1 > most.max(1) {
            self.double();
        }
    }

    /// Returns the width of a slot in nanoseconds.
    pub(super) fn width_ns(&self) -> u64 {
        self.width_ns
    }

    /// Returns a quantile of the inter-token latencies that ended in a slot, in milliseconds.
    pub(super) fn token_quantile(&self, place: u64, share: f64) -> Option<f64> {
        quantile(&self.slots.get(&place)?.tokens, share)
    }

    /// Returns the gaps above zero between chunks, whatever slot they ended in, to 1 %: those of one read have one time.
    pub(super) fn read_gaps(&self) -> Option<ReadGaps> {
        let mut counts = Vec::new();
        for slot in self.slots.values() {
            slot.chunks.iter().enumerate().for_each(|(bucket, count)| add(&mut counts, bucket, *count));
        }
        if let Some(zero) = counts.first_mut() {
            *zero = 0;
        }
        Some(ReadGaps { median_ms: quantile(&counts, 0.5)?, p99_ms: quantile(&counts, 0.99)? })
    }

    /// Returns the shares between which a quantile of all gaps lies with the probability `level`, when the slots are taken as
    /// independent of each other.
    ///
    /// This is Woodruff's (1952) interval for quantiles of clustered values: the share of gaps up to the quantile is a ratio,
    /// whose interval over the slots is carried back to the gaps. `None` with under ten slots, or if the interval
    /// leaves the values.
    pub(super) fn shares_around(&self, clock: Clock, share: f64, level: f64) -> Option<(f64, f64)> {
        let total: u64 = self.slots.values().flat_map(|slot| slot.counts(clock)).sum();
        let longest = self.slots.values().map(|slot| slot.counts(clock).len()).max()?;
        let mut below = 0;
        let split = (0..longest).find(|bucket| {
            below += self.slots.values().filter_map(|slot| slot.counts(clock).get(*bucket)).sum::<u64>();
            real(below) >= share * real(total)
        })?;
        let cluster = |slot: &Slot| {
            let counts = slot.counts(clock);
            let up_to = counts.iter().take(split + 1).sum::<u64>();
            Cluster { sum: real(up_to), count: counts.iter().sum() }
        };
        let clusters: Vec<Cluster> = self.slots.values().map(cluster).filter(|cluster| cluster.count > 0).collect();
        if clusters.len() < FEWEST {
            return None;
        }
        let freedom = length(clusters.len()) - 1.0;
        let half = t_quantile(f64::midpoint(1.0, level), freedom)? * ratio_error(&clusters)?;
        let (low, high) = (share - half, share + half);
        (low >= 0.0 && high <= 1.0).then_some((low, high))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::load_report::latencies::tests::Random;

    const MS: u64 = 1_000_000;

    fn gap(at_ns: u64, length_ns: u64) -> Gap {
        Gap { from_ns: at_ns - length_ns.min(at_ns), to_ns: at_ns, tokens: 1, clock: Clock::Both }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_middle_of_a_bucket_is_right_to_one_percent(ns in any::<u64>().prop_map(|ns| ns >> 1), shift in 0..63_u32) {
            let ns = ns >> shift;
            let found = middle_ms(bucket(ns)) * NS_PER_MS;
            prop_assert!((found - real(ns)).abs() <= 0.01 * real(ns), "{} for {}", found, ns);
        }

        #[test]
        fn buckets_ascend_with_their_values(a in any::<u64>(), b in any::<u64>()) {
            prop_assert_eq!(bucket(a.min(b)).max(bucket(a.max(b))), bucket(a.max(b)));
        }
    }

    #[test]
    fn slots_widen_and_keep_every_gap() {
        let mut slots = Slots::default();
        for at in 1..=2000_u64 {
            slots.gap(&gap(at * 5 * MS, 3 * MS));
        }
        let total = |slots: &Slots| slots.slots.values().flat_map(|slot| &slot.tokens).sum::<u64>();
        assert!(slots.slots.len() <= MOST);
        assert_eq!(total(&slots), 2000);
        slots.widen(Window { start_ns: 0, end_ns: 10_000 * MS }, 50);
        assert!((26..=50).contains(&slots.slots.len()), "{}", slots.slots.len());
        assert_eq!(total(&slots), 2000);
        let median = slots.token_quantile(3, 0.5).unwrap();
        assert!((median - 3.0).abs() < 0.03, "{median}");
        assert_eq!(slots.token_quantile(1000, 0.5), None);
    }

    #[test]
    fn shares_around_a_quantile_cover_it_as_often_as_they_say() {
        // Each slot has a pace of its own, so that its gaps depend on each other: 40 slots of 50 gaps.
        let mut random = Random(7);
        let (runs, mut covered) = (300, 0);
        for _ in 0..runs {
            let mut slots = Slots::default();
            let mut gaps = Vec::new();
            for slot in 0..40_u64 {
                let pace = random.unit();
                for _ in 0..50 {
                    let ms = 1.0 + f64::midpoint(pace, random.unit());
                    gaps.push(ms);
                    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few milliseconds")]
                    slots.gap(&gap((slot + 100) * MS, (ms * NS_PER_MS) as u64));
                }
            }
            let (low, high) = slots.shares_around(Clock::Tokens, 0.9, 0.95).unwrap();
            let gaps = crate::stats::Weighted::plain(gaps);
            // The sum of two numbers between 0 and 1, halved, has its 0.9 quantile at 1 − √0.2/2.
            let truth = 2.0 - 0.2_f64.sqrt() / 2.0;
            covered += i32::from(gaps.quantile(low).unwrap() <= truth && truth <= gaps.quantile(high).unwrap());
        }
        let share = f64::from(covered) / f64::from(runs);
        assert!((0.92..=0.98).contains(&share), "{share}");
    }

    #[test]
    fn few_slots_and_shares_at_the_end_have_none_around() {
        let mut slots = Slots::default();
        for at in 1..10_u64 {
            slots.gap(&gap(at * MS, MS));
        }
        assert_eq!(slots.shares_around(Clock::Tokens, 0.5, 0.95), None);
        assert_eq!(Slots::default().shares_around(Clock::Chunks, 0.5, 0.95), None);
        slots.gap(&gap(10 * MS, MS));
        assert_eq!(slots.shares_around(Clock::Tokens, 0.5, 0.95), Some((0.5, 0.5)), "equal gaps leave no doubt");
    }
}
