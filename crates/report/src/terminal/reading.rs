//! What a file of benchmark output says, as a terminal page.

use isobench_schema::reading::{MetricValue, Reading, ReadingProblemKind};

use super::Style;
use super::assessment::labelled;
use super::table::{Cell, Column, Layout, table};
use crate::text::clean;
use crate::words::Tone;

/// Parts of metric names, in the order in which people read them; what has none of them comes last.
const FAMILIES: &[&str] = &[
    "completed",
    "failed",
    "duration",
    "total_time",
    "total_input",
    "total_output",
    "throughput",
    "goodput",
    "ttft",
    "tpot",
    "itl",
    "e2el",
];

/// Returns what a file says: what printed it, why it is no measurement where it isn't, and every value.
pub fn reading(file: &str, reading: &Reading, style: Style) -> String {
    let mut out = String::new();
    style.heading(&mut out, &clean(file));
    let known = [&reading.tool, &reading.format, &reading.versions];
    let known: Vec<String> = known.into_iter().flatten().map(|part| clean(part)).collect();
    if !known.is_empty() {
        style.paragraph(&mut out, "  ", &known.join(" · "));
    }
    match &reading.problem {
        Some(problem) => {
            let line = problem.line.map(|line| format!(", line {line}")).unwrap_or_default();
            let text = format!("{} ({}{line})", clean(&problem.message), problem.kind);
            labelled(&mut out, "  no measurement: ", Tone::Bad, &text, style);
        }
        None if reading.metrics.is_empty() => labelled(&mut out, "  ", Tone::Absent, "no values", style),
        None => labelled(&mut out, "  ", Tone::Good, "a measurement", style),
    }
    if let Some(next) = reading.problem.as_ref().and_then(|problem| next(problem.kind)) {
        style.paragraph(&mut out, "  next: ", next);
    }
    for note in &reading.notes {
        style.paragraph(&mut out, "  note: ", &clean(note));
    }
    if !reading.also.is_empty() {
        let tools: Vec<String> = reading.also.iter().map(|tool| clean(tool)).collect();
        style.paragraph(
            &mut out,
            "  note: ",
            &format!("it holds results of {} too; `--tool` reads them", tools.join(", ")),
        );
    }
    let mut metrics: Vec<(&str, String)> =
        reading.metrics.iter().map(|(name, value)| (name.as_str(), text(value))).collect();
    metrics.sort_by_key(|(name, _)| FAMILIES.iter().position(|part| name.contains(part)).unwrap_or(FAMILIES.len()));
    values(&mut out, "metric", &metrics, style);
    let log: Vec<(&str, String)> =
        reading.engine_log.iter().map(|(name, value)| (name.as_str(), value.to_string())).collect();
    values(&mut out, "from the engine's log, no result", &log, style);
    out
}

/// Returns where more about a problem is to be found.
fn next(kind: ReadingProblemKind) -> Option<&'static str> {
    match kind {
        ReadingProblemKind::ToolFailed => Some("`isobench classify` says why, and what would mend it"),
        ReadingProblemKind::NotAResult => {
            Some("docs/formats-read.md lists the results that are read; `isobench classify` looks for a failure")
        }
        ReadingProblemKind::NothingCompleted | ReadingProblemKind::SomeFailed => {
            Some("`isobench classify` with the logs of server and client says why requests failed")
        }
        ReadingProblemKind::Broken
        | ReadingProblemKind::NothingMeasured
        | ReadingProblemKind::NotANumber
        | ReadingProblemKind::Contradictory
        | ReadingProblemKind::EngineLogOnly => None,
    }
}

fn values(out: &mut String, title: &'static str, rows: &[(&str, String)], style: Style) {
    if rows.is_empty() {
        return;
    }
    let columns = [Column { title, layout: Layout::Name }, Column { title: "value", layout: Layout::Number }];
    let rows: Vec<Vec<Cell>> =
        rows.iter().map(|(name, value)| vec![Cell::plain(clean(name)), Cell::plain(value)]).collect();
    table(out, &columns, &rows, style);
}

/// Returns a value as it was printed, not rounded: what people compare with the file.
fn text(value: &MetricValue) -> String {
    match value {
        MetricValue::Number(number) => number.to_string(),
        MetricValue::Series(numbers) => numbers.iter().map(f64::to_string).collect::<Vec<_>>().join(", "),
        MetricValue::NotANumber => "not a number".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isobench_schema::reading::ReadingProblem;

    #[test]
    fn a_reading_says_what_it_is_before_its_values() {
        let metrics = [
            ("mean_ttft_ms", MetricValue::Number(812.44)),
            ("cost_time_s", MetricValue::Series(vec![3.5, 2.25])),
            ("max_concurrency", MetricValue::NotANumber),
            ("completed", MetricValue::Number(197.0)),
        ];
        let found = Reading {
            format: Some("vllm-serve-table".into()),
            tool: Some("vllm bench serve".into()),
            versions: Some("v0.11.1..".into()),
            metrics: metrics.map(|(name, value)| (name.to_owned(), value)).into(),
            notes: vec!["the last of 2 results".into()],
            also: vec!["vllm-latency".into()],
            engine_log: [("engine_log_last_generation_throughput".to_owned(), 51.2)].into(),
            problem: Some(ReadingProblem {
                kind: ReadingProblemKind::SomeFailed,
                message: "`Failed requests` is 3, and must be 0".into(),
                line: Some(12),
            }),
        };
        let page = reading("client.log", &found, Style { width: 80, color: false });
        let expected = "\
client.log
  vllm bench serve · vllm-serve-table · v0.11.1..
  no measurement: `Failed requests` is 3, and must be 0 (some-failed, line 12)
  next: `isobench classify` with the logs of server and client says why requests
        failed
  note: the last of 2 results
  note: it holds results of vllm-latency too; `--tool` reads them
  metric                  value
  completed                 197
  mean_ttft_ms           812.44
  cost_time_s         3.5, 2.25
  max_concurrency  not a number
  from the engine's log, no result       value
  engine_log_last_generation_throughput   51.2
";
        assert_eq!(page, expected);
    }

    #[test]
    fn a_measurement_is_called_one() {
        let found = Reading {
            tool: Some("vllm-latency".into()),
            metrics: [("avg_latency_s".to_owned(), MetricValue::Number(1.5))].into(),
            ..Reading::default()
        };
        let page = reading("a.log", &found, Style { width: 80, color: false });
        assert_eq!(page, "a.log\n  vllm-latency\n  a measurement\n  metric         value\n  avg_latency_s    1.5\n");
    }
}
