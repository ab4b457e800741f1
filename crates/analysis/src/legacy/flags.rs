//! What is wrong with the numbers of one record.

mod engine_log;
mod units;

use isobench_schema::legacy::{LegacyFlag, LegacyMetric, LegacyRecord, LegacyRemark, LegacySource, LegacyUnit};
use serde_json::Value;

/// Sets the remarks of a record, and corrects the unit of a number that can't have the one that its key promises.
pub(super) fn mark(record: &mut LegacyRecord) {
    let mut remarks = Vec::new();
    written(record, &mut remarks);
    zeros(record, &mut remarks);
    units::request_rates(record, &mut remarks);
    units::seconds(record, &mut remarks);
    engine_log::find(record, &mut remarks);
    ttft_above_latency(record, &mut remarks);
    status(record, &mut remarks);
    unknown_units(record, &mut remarks);
    record.remarks.extend(remarks);
}

fn remark(flag: LegacyFlag, keys: Vec<String>, message: String) -> LegacyRemark {
    LegacyRemark { flag, keys, message }
}

/// Finds text where a number belongs.
fn written(record: &LegacyRecord, remarks: &mut Vec<LegacyRemark>) {
    for metric in &record.metrics {
        let (None, Some(Value::String(text))) = (metric.value, &metric.written) else { continue };
        let bare = text.trim().trim_start_matches('-').to_ascii_lowercase();
        let (flag, what) = if matches!(bare.as_str(), "nan" | "inf" | "infinity") {
            (LegacyFlag::NotFinite, "which is no finite number")
        } else {
            (LegacyFlag::TextForNumber, "where a number belongs")
        };
        remarks.push(remark(flag, vec![metric.key.clone()], format!("`{}` holds `{text}`, {what}", metric.key)));
    }
}

/// Finds zeros of times and rates: nothing that ran takes no time.
fn zeros(record: &LegacyRecord, remarks: &mut Vec<LegacyRemark>) {
    // A number of no known unit may be a difference, which can be below 0.
    let is_below = |metric: &&LegacyMetric| {
        let is_negative = metric.value.is_some_and(|value| value < 0.0);
        is_negative && metric.unit.is_measured() && metric.unit != LegacyUnit::Unknown
    };
    let is_zero = |metric: &&LegacyMetric| metric.value == Some(0.0) && metric.unit.is_measured();
    let found: Vec<&LegacyMetric> =
        record.metrics.iter().filter(|metric| is_zero(metric) || is_below(metric)).collect();
    if found.is_empty() {
        return;
    }
    let message = match found.iter().find(|metric| is_below(metric)).and_then(|metric| Some((metric, metric.value?))) {
        Some((metric, value)) => format!("`{}` is {value}: no time and no rate is below 0", metric.key),
        None => "0 stands where nothing was measured: no time and no rate is 0".to_owned(),
    };
    let keys = found.iter().map(|metric| metric.key.clone()).collect();
    remarks.push(remark(LegacyFlag::ZeroForMissing, keys, message));
}

/// Returns a time in milliseconds.
fn milliseconds(metric: &LegacyMetric) -> Option<f64> {
    match metric.unit {
        LegacyUnit::Milliseconds => metric.value,
        LegacyUnit::Seconds => metric.value.map(|value| value * 1000.0),
        LegacyUnit::TokensPerSecond
        | LegacyUnit::RequestsPerSecond
        | LegacyUnit::Percent
        | LegacyUnit::Count
        | LegacyUnit::Unknown => None,
    }
}

/// Returns whether the key of a metric has that word.
fn has_word(metric: &LegacyMetric, word: &str) -> bool {
    metric.key.split('_').any(|part| part == word)
}

/// Finds a mean time to the first token that is above the mean time of the whole request.
fn ttft_above_latency(record: &LegacyRecord, remarks: &mut Vec<LegacyRemark>) {
    let mean = |words: &[&str]| {
        record.metrics.iter().find(|metric| {
            let is_mean = has_word(metric, "mean") || has_word(metric, "avg");
            is_mean && words.iter().any(|word| has_word(metric, word)) && milliseconds(metric).is_some()
        })
    };
    let (Some(first), Some(whole)) = (mean(&["ttft"]), mean(&["e2el", "latency"])) else { return };
    let (Some(first_ms), Some(whole_ms)) = (milliseconds(first), milliseconds(whole)) else { return };
    if first_ms > whole_ms {
        let message = format!(
            "the first token is said to take {first_ms} ms and the whole request {whole_ms} ms: they are not of one run"
        );
        remarks.push(remark(LegacyFlag::TtftAboveLatency, vec![first.key.clone(), whole.key.clone()], message));
    }
}

/// Finds statuses that the numbers contradict. Of a report on errors nothing is asked: it has no numbers.
fn status(record: &LegacyRecord, remarks: &mut Vec<LegacyRemark>) {
    use isobench_schema::legacy::WrittenStatus;
    if let Some(WrittenStatus::Other(text)) = &record.status {
        let message = format!("the status `{text}` is none that the earlier systems are known to use");
        remarks.push(remark(LegacyFlag::UnknownStatus, Vec::new(), message));
    }
    let has_status = record.status.is_some() && record.source != LegacySource::ErrorReport;
    if has_status && record.says_success() && !record.has_numbers() {
        let message = "the status says that it worked, and the file holds no number".to_owned();
        remarks.push(remark(LegacyFlag::SuccessWithoutMetrics, Vec::new(), message));
    }
    if has_status && !record.says_success() && record.has_numbers() {
        let status = record.status.as_ref().map_or("", WrittenStatus::as_str);
        let message = format!("the status is `{status}`, and there are numbers");
        remarks.push(remark(LegacyFlag::MetricsWithoutSuccess, Vec::new(), message));
    }
}

fn unknown_units(record: &LegacyRecord, remarks: &mut Vec<LegacyRemark>) {
    let is_unknown = |metric: &&LegacyMetric| metric.unit == LegacyUnit::Unknown && metric.value.is_some();
    let keys: Vec<String> = record.metrics.iter().filter(is_unknown).map(|metric| metric.key.clone()).collect();
    if !keys.is_empty() {
        let message = "the key names no unit, and the file doesn't say which it is".to_owned();
        remarks.push(remark(LegacyFlag::UnknownUnit, keys, message));
    }
}
