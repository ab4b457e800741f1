//! Throughputs that come from the engine's own log.
//!
//! vLLM logs `Avg prompt throughput: 51.2 tokens/s` every ten seconds or so, an average over those seconds. One of the
//! earlier runners took the first `… tokens/s` that it found anywhere in the output for the result. Such a number has one
//! decimal, and as prompts of one length are counted whole it is a multiple of a tenth of that length: of 51.2 for prompts
//! of 512 tokens. It says when the log line was written, and nothing about the change.

use isobench_schema::legacy::{LegacyFlag, LegacyMetric, LegacyRecord, LegacyRemark, LegacyUnit};

use super::super::command::{self, Tool};
use super::{has_word, remark};

/// The seconds that one line of the engine's log is an average over.
const LOG_INTERVAL_S: f64 = 10.0;

/// The length of prompts in tokens that the earlier runners asked for where the command names none.
const USUAL_INPUT_LEN: f64 = 512.0;

/// The most prompts in one interval that are believed to be told from chance.
const MOST_PROMPTS: f64 = 40.0;

/// How far from a multiple, as a share of the step, a number may be: intervals are a little longer than ten seconds.
const NEAR: f64 = 0.01;

/// Finds them.
pub(super) fn find(record: &LegacyRecord, remarks: &mut Vec<LegacyRemark>) {
    let command = record.command.as_deref().unwrap_or_default();
    for metric in record.metrics.iter().filter(|metric| is_throughput(metric)) {
        let Some(value) = metric.value.filter(|value| *value > 0.0) else { continue };
        let why = if command::tool(command) == Tool::Latency {
            "its command measures a latency and prints no throughput, so that it can only be what the engine logged"
                .to_owned()
        } else if let Some((prompts, length)) = prompts(value, command::input_len(command)) {
            format!(
                "{value} is what the engine logs for {prompts} prompts of {length} tokens in {LOG_INTERVAL_S} s ({prompts} times {})",
                length / LOG_INTERVAL_S
            )
        } else {
            continue;
        };
        let message = format!("`{}`: {why}", metric.key);
        remarks.push(remark(LegacyFlag::EngineLogAsResult, vec![metric.key.clone()], message));
    }
}

fn is_throughput(metric: &LegacyMetric) -> bool {
    match metric.unit {
        LegacyUnit::TokensPerSecond => true,
        LegacyUnit::Unknown => has_word(metric, "throughput"),
        LegacyUnit::Milliseconds
        | LegacyUnit::Seconds
        | LegacyUnit::RequestsPerSecond
        | LegacyUnit::Percent
        | LegacyUnit::Count => false,
    }
}

/// Returns how many prompts of which length in one interval give that number, if it looks as if it came from there.
fn prompts(value: f64, length: Option<f64>) -> Option<(f64, f64)> {
    let tenths = value * 10.0;
    if (tenths - tenths.round()).abs() > 1e-6 {
        return None;
    }
    let length = length.unwrap_or(USUAL_INPUT_LEN);
    let times = value / (length / LOG_INTERVAL_S);
    let whole = times.round();
    let is_near = (times - whole).abs() <= NEAR && (1.0..=MOST_PROMPTS).contains(&whole);
    is_near.then_some((whole, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiples_of_a_tenth_of_the_prompts_length_are_the_logs() {
        for (value, length, expected) in [
            (51.2, None, Some(1.0)),
            (51.1, None, Some(1.0)),
            (204.8, None, Some(4.0)),
            (972.3, Some(512.0), Some(19.0)),
            (102.4, Some(1024.0), Some(1.0)),
            (25.6, Some(256.0), Some(1.0)),
            // two decimals, another length, too far, too many
            (51.21, None, None),
            (198.29, None, None),
            (51.2, Some(1000.0), None),
            (60.0, None, None),
            (5120.0, None, None),
            (0.0, None, None),
        ] {
            assert_eq!(prompts(value, length).map(|(count, _)| count), expected, "{value} {length:?}");
        }
    }
}
