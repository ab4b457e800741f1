//! The numbers of a result, each with the unit that its key promises.

use isobench_schema::legacy::{LegacyMetric, LegacyUnit};
use serde_json::{Map, Value};

use super::fields::Fields;
use super::lines::kind;

/// Reads the numbers of an object of metrics. What holds neither number, text nor null is kept among the other fields.
pub(super) fn metrics(object: Map<String, Value>, prefix: &str, fields: &mut Fields<'_>) -> Vec<LegacyMetric> {
    let mut found = Vec::with_capacity(object.len());
    for (key, value) in object {
        match value {
            // A null is how the earlier systems write that there is nothing.
            Value::Null => {}
            Value::Number(number) => {
                let value = number.as_f64().filter(|number| number.is_finite());
                let unit = unit(&key);
                found.push(LegacyMetric { key, value, written: None, unit });
            }
            Value::String(text) => {
                let value = text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
                let unit = unit(&key);
                found.push(LegacyMetric { key, value, written: Some(Value::String(text)), unit });
            }
            other @ (Value::Bool(_) | Value::Array(_) | Value::Object(_)) => {
                let name = format!("{prefix}{key}");
                let message = format!("`{name}` holds {}, where a number was expected", kind(&other));
                fields.problem(&name, message);
                fields.keep(&name, other);
            }
        }
    }
    found
}

/// Returns whether a key of a flat object names a number that was measured.
pub(super) fn is_metric(key: &str) -> bool {
    let timed = ["ttft", "tpot", "itl", "e2el", "latency", "throughput"];
    let words = || key.split('_');
    words().any(|word| timed.contains(&word)) && !words().any(|word| matches!(word, "raw" | "error" | "unit"))
}

/// Returns the unit that a key promises. The earlier systems took times from lines that end in `(ms)` into keys without a
/// unit, such as `ttft_mean`; what their `latency_avg` and `throughput` hold depends on the tool, and doesn't show.
pub(super) fn unit(key: &str) -> LegacyUnit {
    let key = key.to_ascii_lowercase();
    let ends = |endings: &[&str]| endings.iter().any(|end| key.ends_with(end));
    let has = |words: &[&str]| key.split('_').any(|word| words.contains(&word));
    if ends(&["_pct", "_percent"]) || has(&["improvement", "pct"]) {
        LegacyUnit::Percent
    } else if ends(&["_ms"]) {
        LegacyUnit::Milliseconds
    } else if ends(&["req_s", "req_per_s", "request_throughput", "requests_per_second", "rps"]) {
        LegacyUnit::RequestsPerSecond
    } else if ends(&["tok_s", "tok_per_s", "tokens_per_second", "output_throughput", "token_throughput"]) {
        LegacyUnit::TokensPerSecond
    } else if has(&["ttft", "tpot", "itl", "e2el"]) {
        LegacyUnit::Milliseconds
    } else if ends(&["_s", "_seconds", "duration"]) {
        LegacyUnit::Seconds
    } else if has(&["completed", "failed", "total", "num", "count", "requests"]) {
        LegacyUnit::Count
    } else {
        LegacyUnit::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_promise_units() {
        use LegacyUnit as U;
        for (key, expected) in [
            ("throughput_tok_s", U::TokensPerSecond),
            ("throughput_total_tok_s", U::TokensPerSecond),
            ("output_throughput", U::TokensPerSecond),
            ("throughput_req_s", U::RequestsPerSecond),
            ("request_throughput", U::RequestsPerSecond),
            ("mean_ttft_ms", U::Milliseconds),
            ("ttft_mean", U::Milliseconds),
            ("itl_p99", U::Milliseconds),
            ("latency_avg", U::Unknown),
            ("throughput", U::Unknown),
            ("duration_s", U::Seconds),
            ("completed", U::Count),
            ("total_input_tokens", U::Count),
            ("ttft_improvement_pct", U::Percent),
            ("agent_pct", U::Percent),
        ] {
            assert_eq!(unit(key), expected, "{key}");
        }
    }
}
