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
