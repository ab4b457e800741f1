//! Says why a result that was read whole is no measurement.

use isobench_schema::reading::{ReadingProblem, ReadingProblemKind};

use super::super::binding::Binding;
use super::layout::{Layout, Rate};
use super::lexer::Scalar;
use super::metrics::Measured;
use super::record::Record;

/// How far a rate may be from its total divided by the duration, as a part of the total.
const TOLERANCE: f64 = 0.02;
/// By how much a rate is off if it was rounded to two decimals.
const ROUNDING: f64 = 0.0051;

/// Returns why a record is no measurement, if so: the worst that there is.
pub(super) fn problem(
    layout: &Layout,
    record: &Record,
    measured: &mut Measured,
    binding: &Binding,
) -> Option<ReadingProblem> {
    let found = requests(layout, record, measured, binding);
    let nothing_completed =
        found.iter().any(|problem: &ReadingProblem| problem.kind == ReadingProblemKind::NothingCompleted);
    let mut problems = std::mem::take(&mut measured.problems);
    problems.extend(found);
    // Without a completed request some tools write no rates at all.
    if !nothing_completed {
        problems.extend(missing(layout, record, measured));
    }
    problems.extend(layout.rates.iter().filter_map(|rate| contradiction(rate, record, measured)));
    problems.into_iter().min_by_key(|problem| rank(problem.kind))
}

/// Returns the place of a kind among those that are said first.
fn rank(kind: ReadingProblemKind) -> u8 {
    match kind {
        ReadingProblemKind::NotAResult => 0,
        ReadingProblemKind::ToolFailed => 1,
        ReadingProblemKind::NothingMeasured => 2,
        ReadingProblemKind::NothingCompleted => 3,
        ReadingProblemKind::Broken => 4,
        ReadingProblemKind::SomeFailed => 5,
        ReadingProblemKind::NotANumber => 6,
        ReadingProblemKind::Contradictory => 7,
        ReadingProblemKind::EngineLogOnly => 8,
    }
}

fn requests(layout: &Layout, record: &Record, measured: &Measured, binding: &Binding) -> Vec<ReadingProblem> {
    let mut problems = Vec::new();
    let line = Some(line_of(layout, record, "completed"));
    let completed = measured.number("completed");
    let failed = measured.number("failed").filter(|failed| *failed > 0.0);
    let asked = layout.asked.and_then(|path| record.number(path));
    #[expect(clippy::cast_precision_loss, reason = "no run has 2^53 requests")]
    let asked = [asked, binding.asked.map(|asked| asked as f64)].into_iter().flatten().reduce(f64::max);
    if completed == Some(0.0) || (completed.is_none() && failed.is_some() && layout.required.contains(&"completed")) {
        let message = match failed.or(asked) {
            Some(number) => format!("no request was completed, of {number}"),
            None => "no request was completed".to_owned(),
        };
        problems.push(ReadingProblem { kind: ReadingProblemKind::NothingCompleted, message, line });
    }
    let mut some_failed = |message: String, line: Option<u64>| {
        problems.push(ReadingProblem { kind: ReadingProblemKind::SomeFailed, message, line });
    };
    if let Some(failed) = failed {
        some_failed(format!("{failed} requests failed"), Some(line_of(layout, record, "failed")));
    }
    if let (Some(completed), Some(asked)) = (completed, asked)
        && completed < asked
    {
        some_failed(format!("{completed} requests were completed, but {asked} were asked for"), line);
    }
    for (path, expected) in layout.finished {
        if record.scalar(path) == Some(&Scalar::Flag(!expected)) {
            let line = record.get(path).map(|leaf| leaf.line);
            some_failed(format!("`{path}` is {}: the run didn't go to its end", !expected), line);
        }
    }
    problems
}

fn missing(layout: &Layout, record: &Record, measured: &Measured) -> Vec<ReadingProblem> {
    let broken = |message| ReadingProblem { kind: ReadingProblemKind::Broken, message, line: Some(record.line) };
    if measured.metrics.is_empty() && measured.problems.is_empty() && layout.required.is_empty() {
        return vec![broken("none of the metrics is one that is known".to_owned())];
    }
    let missing = layout.required.iter().filter(|metric| !measured.metrics.contains_key(**metric));
    missing
        .map(|metric| {
            let keys: Vec<String> = layout
                .fields
                .iter()
                .copied()
                .flatten()
                .filter(|field| field.metric == *metric)
                .map(|field| format!("`{}`", field.path))
                .collect();
            broken(format!("there is no {} with a number", keys.join(" or ")))
        })
        .collect()
}

fn contradiction(rate: &Rate, record: &Record, measured: &Measured) -> Option<ReadingProblem> {
    let duration_s = measured.number("duration_s")?;
    let per_second = measured.number(rate.rate)?;
    let totals = rate.totals.iter().map(|total| measured.number(total)).collect::<Option<Vec<f64>>>()?;
    let total: f64 = totals.iter().sum();
    let product = per_second * duration_s;
    let allowed = TOLERANCE * total.max(product) + ROUNDING * duration_s + 0.5;
    ((product - total).abs() > allowed).then(|| ReadingProblem {
        kind: ReadingProblemKind::Contradictory,
        message: format!(
            "`{}` is {per_second} per second over {duration_s} s, which makes {product:.1}, but {} is {total}",
            rate.rate,
            rate.totals.iter().map(|total| format!("`{total}`")).collect::<Vec<_>>().join(" and "),
        ),
        line: Some(record.line),
    })
}

/// Returns the line of the key that a metric comes from.
fn line_of(layout: &Layout, record: &Record, metric: &str) -> u64 {
    let mut fields = layout.fields.iter().copied().flatten().filter(|field| field.metric == metric);
    let leaf =
        fields.find_map(|field| layout.bases.iter().find_map(|base| record.get(&format!("{base}{}", field.path))));
    leaf.map_or(record.line, |leaf| leaf.line)
}
