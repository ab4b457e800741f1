//! Whether the numbers of a launch agree with each other, which they do whatever the server does.
//!
//! These are identities: a launch that breaks one has times that can't be, or numbers that weren't made from its records.

use isobench_schema::check::{Check, CheckUnit};
use isobench_schema::failure::Failure;
use isobench_schema::measurement::{Measurement, MetricName};
use isobench_schema::workload::Arrival;

use super::{LaunchRules, completed, failure};
use crate::measure::Samples;
use crate::stats::real;

/// Counts and rates may differ by this part: what rounding makes of them.
const ROUNDING: f64 = 1e-6;
/// Little's law may be off by this part.
const LITTLE: f64 = 0.01;

/// Checks that each throughput times the length of the window is what was counted in the records.
pub(super) fn throughputs(samples: &Samples, measurement: &Measurement) -> Option<Failure> {
    let (mut requests, mut output, mut input) = (0_u64, 0_u64, 0_u64);
    for sample in completed(samples) {
        requests += 1;
        output += sample.tokens;
        input += u64::from(sample.input_tokens);
    }
    let counted = [
        (MetricName::RequestThroughput, requests),
        (MetricName::OutputThroughput, output),
        (MetricName::TotalTokenThroughput, input + output),
    ];
    let off = |(metric, counted): (MetricName, u64)| {
        let reckoned = measurement.values.get(&metric)? * measurement.window_s;
        let apart = (reckoned - real(counted)).abs() / real(counted).max(1.0);
        (apart > ROUNDING).then_some((metric, counted, reckoned, apart))
    };
    let (metric, counted, reckoned, apart) = counted.into_iter().find_map(off)?;
    let message = format!("{metric} times the window gives {reckoned:.3}, and the records hold {counted}");
    Some(failure(Check::NumbersAgree.above(apart, ROUNDING, CheckUnit::Share), message))
}

/// Checks Little's law (Little 1961, Operations Research 9:383): over a window that begins and ends idle, the mean number of
/// requests under way is their rate times their mean latency. In a closed loop it can't be above the number of places.
pub(super) fn littles_law(rules: &LaunchRules, samples: &Samples, measurement: &Measurement) -> Option<Failure> {
    if measurement.window_s <= 0.0 {
        return None;
    }
    // A sum of whole nanoseconds, whatever the latencies' summary is.
    let busy_ns: u128 =
        completed(samples).map(|sample| u128::from(sample.end_ns.saturating_sub(sample.intended_ns))).sum();
    #[expect(clippy::cast_precision_loss, reason = "a sum of times, of which 53 bits are enough")]
    let under_way = busy_ns as f64 / 1e9 / measurement.window_s;
    let values = &measurement.values;
    let rate = values.get(&MetricName::RequestThroughput).copied();
    let law = rate.zip(values.get(&MetricName::MeanE2elMs)).map(|(rate, ms)| rate * ms / 1e3);
    let apart = law.map(|law| (law - under_way).abs() / under_way.max(LITTLE));
    if let Some((law, apart)) = law.zip(apart).filter(|(_, apart)| *apart > LITTLE) {
        let message = format!(
            "{under_way:.3} requests were under way on average, and their rate times their mean latency is {law:.3}"
        );
        return Some(failure(Check::LittlesLaw.above(apart, LITTLE, CheckUnit::Share), message));
    }
    let Arrival::Closed { concurrency, .. } = &rules.arrival else { return None };
    let most = f64::from(*concurrency) * (1.0 + LITTLE);
    let message = format!("{under_way:.3} requests were under way on average in a closed loop of {concurrency}");
    (under_way > most).then(|| failure(Check::LittlesLaw.above(under_way, most, CheckUnit::Requests), message))
}
