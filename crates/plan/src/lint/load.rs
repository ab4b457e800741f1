//! Rules about the load: rates, and how many requests a percentile needs.

use isobench_schema::assessment::{Finding, Severity};
use isobench_schema::measurement::MetricName;
use isobench_schema::tool::{Tool, ToolKind};
use isobench_schema::workload::{Arrival, WorkloadKind};

use super::case::{Case, finding};
use super::ids;

/// Requests from which a 99th percentile is an estimate (methodology, section 2).
const P99_REQUESTS: u32 = 662;

/// Requests from which a 90th percentile is an estimate (methodology, section 2).
const P90_REQUESTS: u32 = 64;

/// How far above the service rate a rate must be to be found: the service rate is itself a bound from above.
const FAR_ABOVE: f64 = 1.0;

/// If all requests are sent within this time, the rate says nothing.
const SHORTEST_ARRIVAL_S: f64 = 1.0;

/// What the serving clients send when nothing is said.
const DEFAULT_REQUESTS: u32 = 1000;

/// Returns whether requests go to a server over time.
fn is_serving(case: &Case<'_>) -> bool {
    match (case.given.and_then(|given| given.tool), case.workload) {
        (Some(tool), _) => tool.kind() == ToolKind::Serving && tool != Tool::SglangBenchOneBatchServer,
        (None, Some(workload)) => workload.kind == WorkloadKind::Serving,
        (None, None) => false,
    }
}

/// Returns the finite rate at which requests are sent.
fn rate(case: &Case<'_>) -> Option<f64> {
    let of_workload = case.workload.and_then(|workload| match workload.arrival {
        Arrival::Open { rate_per_s, .. } | Arrival::Constant { rate_per_s } => Some(rate_per_s),
        Arrival::Stages { .. }
        | Arrival::Bursts { .. }
        | Arrival::Trace { .. }
        | Arrival::Closed { .. }
        | Arrival::AllAtOnce => None,
    });
    let of_command = || case.given.and_then(|given| given.number("--request-rate"));
    of_workload.or_else(of_command).filter(|rate| rate.is_finite() && *rate > 0.0 && is_serving(case))
}

/// Returns how many requests are measured.
fn requests(case: &Case<'_>) -> Option<u32> {
    let said = case.given.and_then(|given| given.values("--num-prompts")).and_then(<[String]>::first);
    match (case.workload, said) {
        (Some(workload), _) => Some(workload.requests),
        (None, Some(said)) => said.parse().ok(),
        (None, None) => Some(DEFAULT_REQUESTS),
    }
}

/// Finds a throughput as the primary metric of requests that are sent at a fixed rate.
pub(super) fn throughput_at_fixed_rate(case: &Case<'_>) -> Vec<Finding> {
    let Some(rate) = rate(case) else { return Vec::new() };
    let message = format!("{rate} requests a second are sent, whatever the engine can do");
    let mut found = finding(ids::THROUGHPUT_AT_FIXED_RATE, "--request-rate", message);
    match case.primary {
        Some(primary) if is_throughput(primary) => {
            found.evidence.push(format!("the primary metric is `{primary}`"));
        }
        Some(_) => return Vec::new(),
        None => {
            found.severity = Severity::Note;
            found.evidence.push("no primary metric is chosen yet".to_owned());
        }
    }
    vec![found]
}

fn is_throughput(metric: MetricName) -> bool {
    matches!(metric, MetricName::RequestThroughput | MetricName::OutputThroughput | MetricName::TotalTokenThroughput)
}

/// Finds a rate that the planned devices can't serve, or at which everything is sent at once.
pub(super) fn rate_beyond_service(case: &Case<'_>) -> Vec<Finding> {
    let Some(rate) = rate(case) else { return Vec::new() };
    let mut evidence = Vec::new();
    if let Some(service) = case.service_rate_per_s.filter(|service| rate > FAR_ABOVE * service) {
        evidence.push(format!("the planned devices serve at most {service:.2} requests a second"));
    }
    if let Some(requests) = requests(case) {
        let arrival_s = f64::from(requests) / rate;
        if arrival_s < SHORTEST_ARRIVAL_S {
            evidence.push(format!("all {requests} requests are sent within {arrival_s:.2} s"));
        }
    }
    if evidence.is_empty() {
        return Vec::new();
    }
    let message = format!("{rate} requests a second arrive faster than they can be served");
    let mut found = finding(ids::RATE_BEYOND_SERVICE, "--request-rate", message);
    found.evidence = evidence;
    vec![found]
}

/// Finds too few requests for the percentiles that the tool prints.
pub(super) fn too_few_requests(case: &Case<'_>) -> Vec<Finding> {
    let Some(requests) = requests(case).filter(|_| is_serving(case)) else { return Vec::new() };
    let asked = percentiles(case);
    let short: Vec<(&str, u32)> = asked
        .iter()
        .filter_map(|percentile| Some((percentile.as_str(), enough(percentile.parse().ok()?)?)))
        .filter(|(_, enough)| requests < *enough)
        .collect();
    let Some((percentile, enough)) = short.iter().max_by_key(|(_, enough)| *enough) else { return Vec::new() };
    let message = format!("{requests} requests are too few for a {percentile}th percentile, which needs {enough}");
    let mut found = finding(ids::TOO_FEW_REQUESTS, "--num-prompts", message);
    if case.given.is_none_or(|given| given.values("--metric-percentiles").is_none()) {
        found.evidence.push("the tool prints the 99th percentile unless it is told otherwise".to_owned());
    }
    if case.primary.is_some_and(|primary| !primary.as_str().starts_with('p')) {
        found.severity = Severity::Note;
        found.evidence.push("the primary metric is no percentile".to_owned());
    }
    vec![found]
}

/// Returns the percentiles that the command asks for.
fn percentiles(case: &Case<'_>) -> Vec<String> {
    let said = case.given.and_then(|given| given.values("--metric-percentiles"));
    match said {
        Some(values) => values.iter().flat_map(|value| value.split(',')).map(|part| part.trim().to_owned()).collect(),
        None => vec!["99".to_owned()],
    }
}

/// Returns how many requests a percentile needs; absent: no bound is set for it.
fn enough(percentile: f64) -> Option<u32> {
    if percentile >= 99.0 {
        Some(P99_REQUESTS)
    } else if percentile >= 90.0 {
        Some(P90_REQUESTS)
    } else {
        None
    }
}
