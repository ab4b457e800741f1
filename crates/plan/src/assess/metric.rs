//! Which number decides a task that names none.

use isobench_schema::measurement::MetricName;
use isobench_schema::task::MetricSpec;
use isobench_schema::workload::{Workload, WorkloadKind};

use crate::checks::reports;
use crate::defaults;

/// Returns the metric of a workload: what its kind of benchmark is there to show.
///
/// Requests that arrive at a rate fix the throughput, so that only a latency can differ (`docs/methodology.md`, section 2).
pub(super) fn of(workload: &Workload) -> MetricSpec {
    let of_script = workload.script.as_ref().and_then(|script| reports(script).split_first());
    let (primary, guards) = match of_script {
        Some((primary, guards)) => (*primary, guards.to_vec()),
        None => of_client(workload),
    };
    MetricSpec {
        primary,
        direction: primary.direction(),
        margin: defaults::MARGIN,
        guards,
        output_margin: defaults::OUTPUT_MARGIN,
        believable_ratio: None,
        ceiling: None,
    }
}

/// Returns what decides where isobench's own client measures, and what is reported besides.
fn of_client(workload: &Workload) -> (MetricName, Vec<MetricName>) {
    match (workload.kind, workload.arrival.is_open()) {
        (WorkloadKind::Latency, _) => (MetricName::MeanE2elMs, vec![MetricName::MeanTtftMs, MetricName::MeanTpotMs]),
        (WorkloadKind::Throughput, _) => (MetricName::TotalTokenThroughput, vec![MetricName::RequestThroughput]),
        (WorkloadKind::Serving, true) => {
            (MetricName::MeanE2elMs, vec![MetricName::MeanTtftMs, MetricName::MeanTpotMs, MetricName::MeanItlMs])
        }
        (WorkloadKind::Serving, false) => (
            MetricName::OutputThroughput,
            vec![MetricName::MeanTtftMs, MetricName::MeanTpotMs, MetricName::MeanItlMs, MetricName::RequestThroughput],
        ),
    }
}
