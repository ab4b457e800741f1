//! Takes the metrics out of a record by its layout's table.

use std::collections::BTreeMap;

use isobench_schema::reading::{MetricValue, ReadingProblem, ReadingProblemKind};

use super::layout::{Family, Field, Layout, Presence, Unit};
use super::lexer::Scalar;
use super::record::{Leaf, Record, Value};

/// What a record says of its run.
#[derive(Debug, Default)]
pub(super) struct Measured {
    /// The metrics by name.
    pub(super) metrics: BTreeMap<String, MetricValue>,
    /// What is wrong with single values, in the order of their keys.
    pub(super) problems: Vec<ReadingProblem>,
    /// What a reader should know of single values.
    pub(super) notes: Vec<String>,
}

/// Takes the metrics out of a record.
pub(super) fn measure(layout: &Layout, record: &Record) -> Measured {
    let mut measured = Measured::default();
    for base in layout.bases {
        for field in layout.fields.iter().copied().flatten() {
            measured.field(record, base, field);
        }
        for family in layout.families {
            measured.family(record, base, family);
        }
        measured.flat(layout, record, base);
    }
    measured
}

/// A value that was found, and what it is.
struct Found<'a> {
    metric: String,
    path: String,
    leaf: &'a Leaf,
    unit: Unit,
    /// The text at `unit` beside it.
    stated: Option<&'a str>,
}

impl Measured {
    fn field(&mut self, record: &Record, base: &str, field: &Field) {
        let path = format!("{base}{}", field.path);
        let Some(leaf) = record.get(&path) else { return };
        if field.presence != Presence::Number && !is_there(leaf, field.presence) {
            return;
        }
        let stated = path.rsplit_once('/').and_then(|(object, _)| record.text(&format!("{object}/unit")));
        self.take(&Found { metric: field.metric.to_owned(), path, leaf, unit: field.unit, stated });
    }

    fn family(&mut self, record: &Record, base: &str, family: &Family) {
        let beginning = format!("{base}{}/", family.path);
        let stated = record.text(&format!("{beginning}unit"));
        for (rest, leaf) in record.under(&beginning) {
            let Some(statistic) = statistic(rest.strip_prefix("percentiles/").unwrap_or(rest)) else { continue };
            let metric = format!("{statistic}_{}", family.metric);
            self.take(&Found { metric, path: format!("{beginning}{rest}"), leaf, unit: family.unit, stated });
        }
    }

    fn flat(&mut self, layout: &Layout, record: &Record, base: &str) {
        if layout.flat.is_empty() {
            return;
        }
        for (key, leaf) in record.under(base) {
            let Some((statistic, rest)) = key.split_once('_') else { continue };
            let known = layout.flat.iter().find(|(theirs, _)| rest.strip_suffix("_ms") == Some(theirs));
            let Some((_, ours)) = known else { continue };
            if matches!(statistic, "mean" | "median" | "std" | "min" | "max") || is_percentile(statistic) {
                let metric = format!("{statistic}_{ours}_ms");
                self.take(&Found { metric, path: format!("{base}{key}"), leaf, unit: Unit::Ours, stated: None });
            }
        }
    }

    /// Takes a value, or says what is wrong with it.
    fn take(&mut self, found: &Found<'_>) {
        if found.leaf.contradicted {
            self.problem(ReadingProblemKind::Contradictory, found, "is there more than once with different values");
        }
        let factor = match factor(found.unit, found.stated) {
            Ok(factor) => factor,
            Err(message) => return self.problem(ReadingProblemKind::Broken, found, &message),
        };
        match &found.leaf.value {
            Value::Scalar(Scalar::Number(number)) => self.number_found(found, number * factor),
            Value::Numbers(values) => match values.as_slice() {
                [value] => self.number_found(found, value * factor),
                values => self.series(found, values.iter().map(|value| value * factor).collect()),
            },
            Value::Scalar(Scalar::NotFinite(word)) => self.not_a_number(found, word),
            Value::Scalar(Scalar::Null) => self.not_a_number(found, "null"),
            Value::Scalar(Scalar::Text(text)) if is_not_a_number(text) => self.not_a_number(found, text),
            Value::Scalar(Scalar::Text(text)) => {
                let message = format!("is the text `{text}` where a number was expected");
                self.problem(ReadingProblemKind::Broken, found, &message);
            }
            Value::Scalar(Scalar::Flag(flag)) => {
                let message = format!("is `{flag}` where a number was expected");
                self.problem(ReadingProblemKind::Broken, found, &message);
            }
            Value::Group => {
                self.problem(ReadingProblemKind::Broken, found, "is a list or an object where a number was expected");
            }
        }
    }

    fn number_found(&mut self, found: &Found<'_>, value: f64) {
        if !value.is_finite() {
            self.not_a_number(found, &value.to_string());
        } else if value < 0.0 && found.metric.ends_with("_ms") {
            // SGLang's client gives such times per token for answers that it didn't stream.
            self.notes.push(format!("`{}` is {value}, below zero, and is left out", found.path));
        } else {
            if value < 0.0 {
                self.problem(ReadingProblemKind::Contradictory, found, &format!("is {value}, below zero"));
            }
            self.metrics.insert(found.metric.clone(), MetricValue::Number(value));
        }
    }

    fn series(&mut self, found: &Found<'_>, values: Vec<f64>) {
        match values.iter().find(|value| !value.is_finite()) {
            Some(value) => self.not_a_number(found, &value.to_string()),
            None if values.is_empty() => self.problem(ReadingProblemKind::Broken, found, "is an empty list"),
            None => {
                self.metrics.insert(found.metric.clone(), MetricValue::Series(values));
            }
        }
    }

    fn not_a_number(&mut self, found: &Found<'_>, word: &str) {
        self.metrics.insert(found.metric.clone(), MetricValue::NotANumber);
        self.problem(ReadingProblemKind::NotANumber, found, &format!("is {word}, which is no number"));
    }

    fn problem(&mut self, kind: ReadingProblemKind, found: &Found<'_>, message: &str) {
        let message = format!("`{}` {message}", found.path);
        self.problems.push(ReadingProblem { kind, message, line: Some(found.leaf.line) });
    }

    /// Returns a metric if it is a number.
    pub(super) fn number(&self, metric: &str) -> Option<f64> {
        self.metrics.get(metric).and_then(MetricValue::number)
    }
}

/// Returns whether a value that may be absent is there.
fn is_there(leaf: &Leaf, presence: Presence) -> bool {
    match &leaf.value {
        Value::Scalar(Scalar::Number(number)) => match presence {
            Presence::Number | Presence::NumberOrNone => number.is_finite(),
            Presence::PositiveOrNone => number.is_finite() && *number > 0.0,
        },
        Value::Numbers(_) => true,
        Value::Scalar(Scalar::NotFinite(_) | Scalar::Text(_) | Scalar::Null | Scalar::Flag(_)) | Value::Group => false,
    }
}

/// Returns whether a text says that there is no number, as `inf` does, which vLLM writes for infinity.
fn is_not_a_number(text: &str) -> bool {
    ["inf", "-inf", "infinity", "-infinity", "nan"].iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// Returns what a value is multiplied by, or what is wrong with the unit that is stated beside it.
fn factor(unit: Unit, stated: Option<&str>) -> Result<f64, String> {
    let seconds = |wanted: &str| match stated {
        Some("s" | "sec" | "second" | "seconds") => Ok(1.0),
        Some("ms" | "millisecond" | "milliseconds") => Ok(1e-3),
        Some("us" | "µs" | "microseconds") => Ok(1e-6),
        Some("ns" | "nanoseconds") => Ok(1e-9),
        Some(other) => Err(format!("is in `{other}`, where a unit of time was expected to make {wanted} of it")),
        None => Err("has no `unit` beside it".to_owned()),
    };
    match unit {
        Unit::Ours => Ok(1.0),
        Unit::SecondsToMilliseconds => Ok(1e3),
        Unit::MillisecondsToSeconds => Ok(1e-3),
        Unit::PartToPercent => Ok(1e2),
        Unit::StatedToSeconds => seconds("seconds"),
        // Not 1000 times the factor: 1.0 keeps what was written to the last digit.
        Unit::StatedToMilliseconds if stated == Some("ms") => Ok(1.0),
        Unit::StatedToMilliseconds => seconds("milliseconds").map(|factor| factor * 1e3),
    }
}

/// Returns our name of a statistic in an object of statistics, if it is one that is read.
///
/// GuideLLM writes percentiles without the point, vLLM's latency benchmark as bare numbers; the latter keep their 50,
/// because the console prints it so.
fn statistic(key: &str) -> Option<String> {
    Some(match key {
        "mean" | "avg" => "mean".to_owned(),
        "median" | "p50" => "median".to_owned(),
        "std" | "std_dev" => "std".to_owned(),
        "min" | "max" => key.to_owned(),
        "p001" => "p0.1".to_owned(),
        "p01" => "p1".to_owned(),
        "p05" => "p5".to_owned(),
        "p999" => "p99.9".to_owned(),
        percentile if is_percentile(percentile) => percentile.to_owned(),
        number if is_percentile(&format!("p{number}")) => format!("p{number}"),
        _ => return None,
    })
}

/// Returns whether a text is a percentile, such as `p99.9`.
fn is_percentile(text: &str) -> bool {
    text.strip_prefix('p').is_some_and(|number| {
        number.len() <= 8
            && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
            && number.parse::<f64>().is_ok_and(|number| number <= 100.0)
    })
}
