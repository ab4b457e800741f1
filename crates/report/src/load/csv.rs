//! The numbers of a load as comma-separated values (RFC 4180), one row each, at full precision.

use isobench_schema::load_result::LoadResult;

use super::rows::metric_rows;
use crate::csv::row;

/// The names of the columns.
pub const COLUMNS: [&str; 7] = ["metric", "unit", "value", "low", "high", "from_send", "note"];

/// Returns every number with a header line. What wasn't measured is an empty field.
pub fn metrics(result: &LoadResult) -> String {
    let mut out = String::new();
    row(&mut out, &COLUMNS.map(str::to_owned));
    let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    for metric in metric_rows(result) {
        let note = if result.too_few.contains(&metric.name) { "n too small" } else { "" };
        let fields = [
            metric.name,
            metric.unit.to_owned(),
            number(metric.value),
            number(metric.interval.map(|interval| interval.low)),
            number(metric.interval.map(|interval| interval.high)),
            number(metric.from_send),
            note.to_owned(),
        ];
        row(&mut out, &fields);
    }
    out
}
