//! What earlier runs tell of the spread of block differences, and what a design finds in it.
//!
//! Spreads are kept by key (host, devices, model, class of workload) and metric. Those of one key are pooled: variances
//! weighted by their degrees of freedom. A key leans on its neighbours by moderated variances
//! ([`VariancePrior`]): the prior is fitted over the narrowest group with at least three keys, the key itself
//! among them: first the classes of the same model on the same devices of the same host, then all of these devices, then
//! everything of the metric. With a prior of d₀ degrees of freedom and d of its own a spread rests on d₀ + d, but not on more
//! than all the group's keys have together (as in limma's `eBayes`). Where that is below 4, or where there is neither an
//! entry nor a group, nothing is known: there is no default.

mod forecast;
mod needs;

use std::collections::BTreeMap;

use isobench_schema::measurement::MetricName;
use isobench_schema::noise::{BorrowedSpread, KnownSpread, NoiseEntry, NoiseGroup, NoiseKey};

use crate::stats::{Spread, VariancePrior, deviation_interval, length};

pub use forecast::{Costs, forecast};
pub use needs::{blocks_needed, look_effects, smallest_effect};

/// A prior is fitted over this many keys at least.
const FEWEST_KEYS: usize = 3;

/// A spread is known from so many degrees of freedom on: those of five blocks, from which on differences are judged.
const FEWEST_DEGREES: f64 = 4.0;

/// Intervals of spreads cover them with 95 %.
pub(crate) const LEVEL: f64 = 0.05;

/// The entries of one key and metric, pooled.
#[derive(Debug, Clone, Copy, Default)]
struct Pooled {
    squares: f64,
    degrees: u32,
    entries: u32,
}

impl Pooled {
    fn add(&mut self, entry: &NoiseEntry) {
        self.squares += entry.deviation.powi(2) * f64::from(entry.degrees);
        self.degrees = self.degrees.saturating_add(entry.degrees);
        self.entries = self.entries.saturating_add(1);
    }

    fn spread(&self) -> Spread {
        let degrees = f64::from(self.degrees);
        Spread { deviation: (self.squares / degrees.max(1.0)).sqrt(), degrees }
    }
}

/// Returns what is known of the spread of a key and metric, or `None` if nothing is.
pub fn known(entries: &[NoiseEntry], key: &NoiseKey, metric: MetricName) -> Option<KnownSpread> {
    let mut keys: BTreeMap<&NoiseKey, Pooled> = BTreeMap::new();
    let is_sound = |entry: &&NoiseEntry| entry.degrees > 0 && entry.deviation.is_finite() && entry.deviation >= 0.0;
    for entry in entries.iter().filter(|entry| entry.metric == metric).filter(is_sound) {
        keys.entry(&entry.key).or_default().add(entry);
    }
    let own = keys.get(key).copied().unwrap_or_default();
    let (spread, borrowed) = match borrow(&keys, key) {
        Some((prior, group)) => {
            let moderated = prior.moderate(own.spread());
            let all: f64 = group.members.iter().map(|spread| spread.degrees).sum();
            (Spread { degrees: moderated.degrees.min(all), ..moderated }, Some(group.borrowed(prior)))
        }
        None => (own.spread(), None),
    };
    let interval = deviation_interval(spread.deviation, spread.degrees, LEVEL)?;
    (spread.degrees >= FEWEST_DEGREES).then_some(KnownSpread {
        deviation: spread.deviation,
        low: interval.low,
        high: interval.high,
        degrees: spread.degrees,
        own_entries: own.entries,
        own_degrees: own.degrees,
        borrowed,
    })
}

/// The keys of a group that have a spread.
struct Group {
    group: NoiseGroup,
    members: Vec<Spread>,
}

impl Group {
    fn borrowed(&self, prior: VariancePrior) -> BorrowedSpread {
        BorrowedSpread {
            group: self.group,
            keys: u32::try_from(self.members.len()).unwrap_or(u32::MAX),
            deviation: prior.deviation,
            degrees: Some(prior.degrees).filter(|degrees| degrees.is_finite()),
        }
    }
}

/// Returns the prior of the narrowest group that has enough keys.
fn borrow(keys: &BTreeMap<&NoiseKey, Pooled>, key: &NoiseKey) -> Option<(VariancePrior, Group)> {
    NoiseGroup::ALL.iter().find_map(|&group| {
        let of_group = keys.iter().filter(|(other, _)| belongs(group, other, key));
        let members: Vec<Spread> = of_group.map(|(_, pooled)| pooled.spread()).collect();
        let prior = (members.len() >= FEWEST_KEYS).then(|| VariancePrior::fit(&members))??;
        Some((prior, Group { group, members }))
    })
}

fn belongs(group: NoiseGroup, other: &NoiseKey, key: &NoiseKey) -> bool {
    let same_device = other.host == key.host && other.device == key.device;
    match group {
        NoiseGroup::SameModel => same_device && other.model == key.model,
        NoiseGroup::SameDevice => same_device,
        NoiseGroup::All => true,
    }
}

/// Returns the spread of differences, from five of them on: their standard deviation about their mean with its degrees of
/// freedom and its interval.
pub(crate) fn spread_of(differences: &[f64]) -> Option<(f64, u32, crate::stats::Interval)> {
    let deviation = crate::stats::standard_deviation(differences)?;
    let degrees = u32::try_from(differences.len()).ok()?.checked_sub(1)?;
    if f64::from(degrees) < FEWEST_DEGREES {
        return None;
    }
    Some((deviation, degrees, deviation_interval(deviation, length(differences.len()) - 1.0, LEVEL)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use isobench_schema::ids::{ArmId, Digest, RunId, TaskId};
    use isobench_schema::noise::{ArrivalClass, SpreadOrigin, WorkloadClass};
    use isobench_schema::units::Millis;
    use isobench_schema::workload::WorkloadKind;

    fn key(host: &str, model: &str, output_tokens: u32) -> NoiseKey {
        let class = WorkloadClass {
            kind: WorkloadKind::Serving,
            arrival: ArrivalClass::Closed,
            load: Some(4),
            input_tokens: Some(64),
            output_tokens,
            script: None,
        };
        NoiseKey { host: host.to_owned(), device: "gpu".to_owned(), model: model.to_owned(), class }
    }

    fn entry(key: NoiseKey, deviation: f64, degrees: u32) -> NoiseEntry {
        NoiseEntry {
            key,
            metric: MetricName::OutputThroughput,
            deviation,
            degrees,
            origin: SpreadOrigin::AgainstItself,
            run: RunId::new("r").unwrap(),
            plan: Digest::of(b"plan"),
            began_ms: Millis::new(0.0).unwrap(),
            task: TaskId::new("t").unwrap(),
            of: ArmId::Human,
            against: ArmId::Baseline,
            date: String::new(),
            isobench: String::new(),
        }
    }

    fn asked(entries: &[NoiseEntry], key: &NoiseKey) -> Option<KnownSpread> {
        known(entries, key, MetricName::OutputThroughput)
    }

    #[test]
    fn nothing_is_known_of_nothing() {
        let alone = key("h", "m", 64);
        assert_eq!(asked(&[], &alone), None);
        assert_eq!(asked(&[entry(key("h", "m", 16), 0.01, 11)], &alone), None, "one neighbour is no group");
        assert_eq!(asked(&[entry(alone.clone(), 0.01, 3)], &alone), None, "four blocks are too few");
        let other = NoiseEntry { metric: MetricName::MeanTtftMs, ..entry(alone.clone(), 0.01, 11) };
        assert_eq!(asked(&[other], &alone), None, "another metric says nothing");
    }

    #[test]
    fn own_entries_are_pooled_by_their_degrees_of_freedom() {
        let own = key("h", "m", 64);
        let found = asked(&[entry(own.clone(), 0.01, 5), entry(own.clone(), 0.02, 15)], &own).unwrap();
        let expected = ((5.0 * 0.01_f64.powi(2) + 15.0 * 0.02_f64.powi(2)) / 20.0).sqrt();
        assert!((found.deviation - expected).abs() < 1e-15 && (found.degrees - 20.0).abs() < 1e-12, "{found:?}");
        assert_eq!((found.own_entries, found.own_degrees, found.borrowed), (2, 20, None));
        assert!(found.low < expected && expected < found.high);
    }

    #[test]
    fn the_narrowest_group_with_three_keys_is_leant_on() {
        let own = key("h", "m", 64);
        let mut entries = vec![entry(own.clone(), 0.01, 5), entry(key("x", "y", 1), 0.3, 9)];
        let group = |entries: &[NoiseEntry]| asked(entries, &own).unwrap().borrowed.map(|b| (b.group, b.keys));
        assert_eq!(group(&entries), None);
        entries.push(entry(key("h", "n", 64), 0.03, 9));
        assert_eq!(group(&entries), Some((NoiseGroup::All, 3)));
        entries.push(entry(key("h", "n", 16), 0.02, 9));
        assert_eq!(group(&entries), Some((NoiseGroup::SameDevice, 3)));
        entries.extend([entry(key("h", "m", 16), 0.015, 9), entry(key("h", "m", 1), 0.04, 9)]);
        assert_eq!(group(&entries), Some((NoiseGroup::SameModel, 3)));
        let found = asked(&entries, &own).unwrap();
        let members =
            [(0.01, 5.0), (0.015, 9.0), (0.04, 9.0)].map(|(deviation, degrees)| Spread { deviation, degrees });
        let prior = VariancePrior::fit(&members).unwrap();
        assert!((found.deviation - prior.moderate(members[0]).deviation).abs() < 1e-15, "{found:?}");
        assert!(found.deviation > 0.01);
    }

    #[test]
    fn a_key_without_entries_has_the_spread_of_its_group_if_that_says_enough() {
        let own = key("h", "m", 64);
        let alike: Vec<NoiseEntry> =
            [(16, 0.010), (4, 0.0105), (1, 0.0098)].map(|(tokens, d)| entry(key("h", "m", tokens), d, 11)).into();
        let found = asked(&alike, &own).unwrap();
        assert_eq!((found.own_entries, found.own_degrees), (0, 0));
        // Keys that differ by chance alone are one, and rest on what all of them have.
        assert!((found.degrees - 33.0).abs() < 1e-12 && found.borrowed.unwrap().degrees.is_none(), "{found:?}");
        let apart: Vec<NoiseEntry> =
            [(16, 0.001), (4, 0.01), (1, 0.1)].map(|(tokens, d)| entry(key("h", "m", tokens), d, 11)).into();
        assert_eq!(asked(&apart, &own), None, "neighbours that far apart say nothing");
    }
}
