//! Numbers that can't have the unit that their key promises.

use isobench_schema::legacy::{LegacyFlag, LegacyMetric, LegacyRecord, LegacyRemark, LegacyUnit};

use super::super::command::{self, Tool};
use super::{has_word, remark};

/// The shortest time to a first token in milliseconds that is believed: less than a round trip and one pass of a model.
const SHORTEST_TTFT_MS: f64 = 0.5;

/// The shortest time of one token in milliseconds that is believed.
const SHORTEST_TOKEN_MS: f64 = 0.05;

/// How many requests the offline throughput scripts send unless they are told otherwise.
const DEFAULT_REQUESTS: f64 = 1000.0;

/// Finds requests per second under a key of tokens per second, and sets their unit right.
pub(super) fn request_rates(record: &mut LegacyRecord, remarks: &mut Vec<LegacyRemark>) {
    let rates: Vec<f64> = record.metrics.iter().filter_map(request_rate).collect();
    let impossible = least_token_rate(record);
    for metric in &mut record.metrics {
        let (LegacyUnit::TokensPerSecond, Some(value)) = (metric.unit, metric.value) else { continue };
        let why = if value > 0.0 && rates.iter().any(|rate| rate.to_bits() == value.to_bits()) {
            "it is the number of the requests per second".to_owned()
        } else if let Some((least, seconds)) = impossible.filter(|(least, _)| value > 0.0 && value < *least) {
            format!(
                "all tokens of the command at that rate take longer than the {seconds} s of the run: at least {least:.0} tok/s were needed"
            )
        } else {
            continue;
        };
        metric.unit = LegacyUnit::RequestsPerSecond;
        let message =
            format!("`{}` promises tokens per second and holds {value}, in requests per second: {why}", metric.key);
        remarks.push(remark(LegacyFlag::RequestRateAsTokenRate, vec![metric.key.clone()], message));
    }
}

fn request_rate(metric: &LegacyMetric) -> Option<f64> {
    metric.value.filter(|_| metric.unit == LegacyUnit::RequestsPerSecond)
}

/// Returns the output rate below which an offline benchmark can't have finished within the run, and the run's seconds. In a
/// serving benchmark the requests' own rate may be the limit, so that nothing follows.
fn least_token_rate(record: &LegacyRecord) -> Option<(f64, f64)> {
    let command = record.command.as_deref().filter(|command| command::tool(command) == Tool::Throughput)?;
    let seconds = record.duration_s.filter(|seconds| *seconds > 0.0)?;
    let requests = command::requests(command).unwrap_or(DEFAULT_REQUESTS);
    Some((requests * command::output_len(command)? / seconds, seconds))
}

/// Finds seconds under a key of milliseconds, and sets their unit right.
pub(super) fn seconds(record: &mut LegacyRecord, remarks: &mut Vec<LegacyRemark>) {
    let answer = record.command.as_deref().and_then(command::output_len).unwrap_or(1.0);
    for metric in &mut record.metrics {
        let (LegacyUnit::Milliseconds, Some(value)) = (metric.unit, metric.value) else { continue };
        let shortest = if has_word(metric, "ttft") {
            SHORTEST_TTFT_MS
        } else if has_word(metric, "latency") || has_word(metric, "e2el") {
            (SHORTEST_TOKEN_MS * answer).max(SHORTEST_TTFT_MS)
        } else {
            SHORTEST_TOKEN_MS
        };
        if value <= 0.0 || value >= shortest {
            continue;
        }
        metric.unit = LegacyUnit::Seconds;
        let message = format!(
            "`{}` promises milliseconds and holds {value}, which no engine does in less than {shortest} ms: it is in seconds",
            metric.key
        );
        remarks.push(remark(LegacyFlag::SecondsAsMilliseconds, vec![metric.key.clone()], message));
    }
}
