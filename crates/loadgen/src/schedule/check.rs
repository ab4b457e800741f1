//! What a workload must hold so that it can be sent.

use std::collections::BTreeMap;

use isobench_schema::workload::{Api, Arrival, Prompts, Stage, Workload};
use serde_json::Value;

use super::{ScheduleError, body};

const POSITIVE: &str = "a finite number above 0";
const NOT_NEGATIVE: &str = "a finite number that is not negative";
const ONE_OR_MORE: &str = "at least 1";

/// Returns what in a workload makes no sense.
pub(super) fn check(workload: &Workload) -> Result<(), ScheduleError> {
    arrival(&workload.arrival)?;
    if workload.max_in_flight == Some(0) {
        return number("max-in-flight", 0, ONE_OR_MORE);
    }
    if workload.prompts.input_tokens() == Some(0) {
        return number("input-tokens", 0, ONE_OR_MORE);
    }
    let is_dataset = matches!(workload.prompts, Prompts::Dataset { .. });
    // Requests of a dataset may have lengths of their own, and an embedding has no tokens.
    if workload.output_tokens == 0 && !is_dataset && workload.api != Api::Embeddings {
        return number("output-tokens", 0, ONE_OR_MORE);
    }
    if workload.probes.count > 0 && workload.probes.output_tokens == 0 && workload.api != Api::Embeddings {
        return number("probes.output-tokens", 0, ONE_OR_MORE);
    }
    if !is_not_negative(workload.temperature) {
        return number("temperature", workload.temperature, NOT_NEGATIVE);
    }
    if let Prompts::TokenIds { vocabulary_size, first_id, .. } = workload.prompts {
        if first_id >= vocabulary_size {
            return number("first-id", first_id, "below the vocabulary size");
        }
        match workload.api {
            Api::Chat => return Err(ScheduleError::IdsInChat),
            Api::Completions | Api::Embeddings => {}
        }
    }
    if let Some(field) = workload.extra_body.keys().find(|field| body::is_reserved(field)) {
        return Err(ScheduleError::ReservedField { field: field.clone() });
    }
    sampling(&workload.extra_body)
}

fn arrival(arrival: &Arrival) -> Result<(), ScheduleError> {
    match arrival {
        Arrival::Closed { concurrency: 0, .. } => number("concurrency", 0, ONE_OR_MORE),
        Arrival::Closed { ramp_s: Some(seconds), .. } if !is_not_negative(*seconds) => {
            number("ramp-s", seconds, NOT_NEGATIVE)
        }
        Arrival::Open { rate_per_s, .. } | Arrival::Constant { rate_per_s } if !is_positive(*rate_per_s) => {
            number("rate-per-s", rate_per_s, POSITIVE)
        }
        Arrival::Open { burstiness, .. } | Arrival::Stages { burstiness: Some(burstiness), .. }
            if !is_positive(*burstiness) =>
        {
            number("burstiness", burstiness, POSITIVE)
        }
        Arrival::Stages { stages: list, .. } => stages(list),
        Arrival::Bursts { size: 0, .. } => number("size", 0, ONE_OR_MORE),
        Arrival::Bursts { period_s, .. } if !is_positive(*period_s) => number("period-s", period_s, POSITIVE),
        Arrival::Trace { speed } if !is_positive(*speed) => number("speed", speed, POSITIVE),
        Arrival::Closed { .. }
        | Arrival::Open { .. }
        | Arrival::Constant { .. }
        | Arrival::Bursts { .. }
        | Arrival::Trace { .. }
        | Arrival::AllAtOnce => Ok(()),
    }
}

fn stages(stages: &[Stage]) -> Result<(), ScheduleError> {
    for (index, stage) in stages.iter().enumerate() {
        if !is_positive(stage.seconds) {
            return number(format!("stages[{index}].seconds"), stage.seconds, POSITIVE);
        }
        for (name, rate) in [("from-per-s", stage.from_per_s), ("to-per-s", stage.to_per_s)] {
            if !is_not_negative(rate) {
                return number(format!("stages[{index}].{name}"), rate, NOT_NEGATIVE);
            }
        }
    }
    match stages.last() {
        None => number("stages", "empty", "at least one stage"),
        // The last stage goes on at its final rate as long as there are requests.
        Some(last) if last.to_per_s <= 0.0 => {
            number(format!("stages[{}].to-per-s", stages.len() - 1), last.to_per_s, "above 0 in the last stage")
        }
        Some(_) => Ok(()),
    }
}

/// Checks the sampling fields that engines agree about. Others are sent as they are.
fn sampling(fields: &BTreeMap<String, Value>) -> Result<(), ScheduleError> {
    type Holds = fn(&Value) -> bool;
    const RULES: [(&str, Holds, &str); 7] = [
        ("top_p", |value| value.as_f64().is_some_and(|value| value > 0.0 && value <= 1.0), "above 0 and at most 1"),
        ("top_k", |value| value.as_i64().is_some_and(|value| value >= -1), "a whole number from -1"),
        ("min_p", |value| value.as_f64().is_some_and(|value| (0.0..=1.0).contains(&value)), "from 0 to 1"),
        ("presence_penalty", is_penalty, "from -2 to 2"),
        ("frequency_penalty", is_penalty, "from -2 to 2"),
        ("repetition_penalty", |value| value.as_f64().is_some_and(|value| value > 0.0), "above 0"),
        ("stop", is_stop, "a text or a list of texts"),
    ];
    for (field, holds, rule) in RULES {
        if let Some(value) = fields.get(field).filter(|value| !holds(value)) {
            return Err(ScheduleError::Sampling { field, value: value.to_string(), rule });
        }
    }
    Ok(())
}

fn is_penalty(value: &Value) -> bool {
    value.as_f64().is_some_and(|value| (-2.0..=2.0).contains(&value))
}

fn is_stop(value: &Value) -> bool {
    value.is_string() || value.as_array().is_some_and(|texts| texts.iter().all(Value::is_string))
}

fn number(field: impl Into<String>, value: impl std::fmt::Display, rule: &'static str) -> Result<(), ScheduleError> {
    Err(ScheduleError::Number { field: field.into(), value: value.to_string(), rule })
}

fn is_positive(value: f64) -> bool {
    value.is_finite() && value > 0.0
}

fn is_not_negative(value: f64) -> bool {
    value.is_finite() && value >= 0.0
}
