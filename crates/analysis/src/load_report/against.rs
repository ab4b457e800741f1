//! One load against another that sent the same requests to another server in turn.

use std::collections::BTreeMap;

use isobench_schema::load_checks::PairedMetric;
use isobench_schema::load_result::Paired;

use super::{LoadReport, Sample, Window, completed};
use crate::load_checks::paired::{Pair, Part, latency, report, stretch_ns, stretches, throughput};
use crate::stats::real;

/// A latency of a request as a sum over its weight.
type Latency = fn(&Sample) -> Option<Part>;

/// The latencies that are compared.
const LATENCIES: [(&str, Latency); 6] = [
    ("ttft", |sample| sample.ttft_ms.map(Part::one)),
    ("ttfc", |sample| sample.ttfc_ms().map(Part::one)),
    ("tpot", |sample| sample.tpot_ms.map(Part::one)),
    ("itl", |sample| sample.token_gaps().map(of_gaps)),
    ("icl", |sample| sample.chunk_gaps().map(of_gaps)),
    ("e2el", |sample| Some(Part::one(sample.e2el_ms))),
];

fn of_gaps((time_ms, gaps): (f64, u64)) -> Part {
    Part { sum: time_ms, weight: real(gaps) }
}

impl LoadReport {
    /// Returns what the server of `other` differs by from the server of this load. Requests with the same index are pairs, so
    /// both loads must be of one workload; times are compared by the wall clocks of the records' zeros.
    pub fn against(&self, other: &Self) -> Paired {
        let pairs = pairs(&self.taken.samples.window, &other.taken.samples.window);
        let mut metrics: BTreeMap<String, PairedMetric> = BTreeMap::new();
        for (name, value) in LATENCIES {
            let pair = |(first, second): &(&Sample, &Sample)| {
                Some(Pair { at_ns: first.intended_ns, first: value(first)?, second: value(second)? })
            };
            let values: Vec<Pair> = pairs.iter().filter_map(pair).collect();
            // An interface that answers without tokens has no time of them.
            if !values.is_empty() {
                metrics.insert(name.to_owned(), latency(&values));
            }
        }
        let both = Overlap::of(self, other);
        metrics.insert("request_throughput".to_owned(), both.throughput(LoadReport::ends));
        if [self, other].iter().all(|load| load.result.metrics.contains_key("output_throughput")) {
            metrics.insert("output_throughput".to_owned(), both.throughput(LoadReport::tokens));
        }
        Paired { checks: report(metrics), metrics: [self.result.metrics.clone(), other.result.metrics.clone()] }
    }

    /// Returns the completed requests that ended in a stretch of time, each as an amount of one.
    fn ends(&self, within: Window) -> Vec<(u64, f64)> {
        let is_within = |sample: &&Sample| (within.start_ns..within.end_ns).contains(&sample.end_ns);
        completed(&self.taken.samples.window).filter(is_within).map(|sample| (sample.end_ns, 1.0)).collect()
    }

    /// Returns the output tokens that came in a stretch of time.
    fn tokens(&self, within: Window) -> Vec<(u64, f64)> {
        let amounts = self.taken.tokens.within(within.start_ns, within.end_ns);
        amounts.map(|(at_ns, tokens)| (at_ns, f64::from(tokens))).collect()
    }
}

/// Returns the requests that both servers answered whole.
fn pairs<'a>(first: &'a [Sample], second: &'a [Sample]) -> Vec<(&'a Sample, &'a Sample)> {
    let by_index = |samples: &'a [Sample]| {
        let mut done: Vec<&Sample> = completed(samples).collect();
        done.sort_by_key(|sample| sample.index);
        done
    };
    let mut others = by_index(second).into_iter().peekable();
    let pair = |sample: &'a Sample| {
        while others.next_if(|other| other.index < sample.index).is_some() {}
        others.next_if(|other| other.index == sample.index).map(|other| (sample, other))
    };
    by_index(first).into_iter().filter_map(pair).collect()
}

/// The time in which both loads were whole.
struct Overlap<'a> {
    first: &'a LoadReport,
    second: &'a LoadReport,
    /// By the clock of the first load.
    time: Window,
    /// What is added to a time of the second load to have it on the clock of the first.
    shift_ns: i128,
}

impl<'a> Overlap<'a> {
    fn of(first: &'a LoadReport, second: &'a LoadReport) -> Self {
        let shift_ns = i128::from(second.header.epoch_unix_ns) - i128::from(first.header.epoch_unix_ns);
        let start_ns = first.whole.start_ns.max(shifted(second.whole.start_ns, shift_ns));
        let end_ns = first.whole.end_ns.min(shifted(second.whole.end_ns, shift_ns)).max(start_ns);
        Self { first, second, time: Window { start_ns, end_ns }, shift_ns }
    }

    /// Compares amounts of this time in stretches of it.
    fn throughput(&self, amounts: fn(&LoadReport, Window) -> Vec<(u64, f64)>) -> PairedMetric {
        let Window { start_ns, end_ns } = self.time;
        let back = |at_ns| shifted(at_ns, -self.shift_ns);
        let time_of_second = Window { start_ns: back(start_ns), end_ns: back(end_ns) };
        let ended = self.first.ends(self.time).len().min(self.second.ends(time_of_second).len());
        let first = amounts(self.first, self.time);
        let mut second = amounts(self.second, time_of_second);
        for (at_ns, _) in &mut second {
            *at_ns = shifted(*at_ns, self.shift_ns);
        }
        let length_ns = stretch_ns(end_ns - start_ns, ended);
        throughput(&stretches(&first, &second, start_ns, end_ns, length_ns), &self.first.result.workload.arrival)
    }
}

fn shifted(at_ns: u64, by_ns: i128) -> u64 {
    u64::try_from((i128::from(at_ns) + by_ns).max(0)).unwrap_or(u64::MAX)
}
