//! Noise in words: what is known of spreads, what designs are expected to find in them, and what was found.

use isobench_schema::ids::ArmId;
use isobench_schema::noise::{BorrowedSpread, KnownSpread, NoiseGroup, SpreadFound, SpreadOrigin};
use isobench_schema::plan::{ExpectedBlocks, Forecast, ForecastOutcome, PlannedTask};
use isobench_schema::verdict::{TaskJudgement, Verdict};

use crate::number::{self, counted, duration};

/// Returns a log ratio as a percentage of a difference.
pub(crate) fn difference(log_ratio: f64) -> String {
    number::percent(log_ratio.exp_m1())
}

/// Returns degrees of freedom with at most one decimal.
pub(crate) fn degrees(degrees: f64) -> String {
    let text = format!("{degrees:.1}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Returns a spread with its interval and what it rests on.
pub(crate) fn known(known: &KnownSpread) -> String {
    format!(
        "{} ({} to {}, {} degrees of freedom; from {})",
        number::percent(known.deviation),
        number::percent(known.low),
        number::percent(known.high),
        degrees(known.degrees),
        source(known)
    )
}

/// Returns what a known spread comes from.
pub(crate) fn source(known: &KnownSpread) -> String {
    let own = counted(known.own_entries, "run");
    match (known.own_entries, &known.borrowed) {
        (0, None) => "nothing".to_owned(),
        (0, Some(others)) => format!("{}, none of them this one", neighbours(others)),
        (_, None) => format!("{own} of this kind"),
        (_, Some(others)) => format!("{own} of this kind, leaning on {}", neighbours(others)),
    }
}

fn neighbours(others: &BorrowedSpread) -> String {
    let place = match others.group {
        NoiseGroup::SameModel => "of load of this model on this device",
        NoiseGroup::SameDevice => "of load on this device",
        NoiseGroup::All => "of load on all machines",
    };
    format!("{} {place}", counted(others.keys, "kind"))
}

/// What a plan expects of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ForecastText {
    /// Sentences without their full stops.
    pub(crate) lines: Vec<String>,
    /// What should be changed before devices are used.
    pub(crate) warning: Option<String>,
}

/// Returns what a plan expects of a task, if it was made with a forecast.
pub(crate) fn forecast(task: &PlannedTask) -> Option<ForecastText> {
    let forecast = task.forecast.as_ref()?;
    let mut lines = Vec::new();
    if let (Some(spread), Some(outcome)) = (&forecast.known, forecast.outcomes.first()) {
        lines.push(format!("block differences spread by {}", known(spread)));
        lines.extend(finds(task, outcome));
        lines.extend(expected(&outcome.expected));
        return Some(ForecastText { lines, warning: warning(task, outcome) });
    }
    let cost = forecast.noise_s.map_or_else(String::new, |seconds| format!(" in about {}", duration(seconds)));
    lines.push(format!("the spread of block differences is unknown; `isobench noise` would find it out{cost}"));
    lines.extend(unknown(forecast));
    Some(ForecastText { lines, warning: None })
}

/// Returns what a design finds in each of several spreads.
fn unknown(forecast: &Forecast) -> Option<String> {
    let effect = forecast.effect?;
    let of = |outcome: &ForecastOutcome| {
        Some(format!("{} where they spread by {}", difference(outcome.mde?), number::percent(outcome.deviation)))
    };
    let list: Vec<String> = forecast.outcomes.iter().filter_map(of).collect();
    Some(format!(
        "differences from {effect:.2} of their standard deviations on are found with a power of 80 %: {}",
        list.join(", ")
    ))
}

fn finds(task: &PlannedTask, outcome: &ForecastOutcome) -> Option<String> {
    let most = counted(task.design.blocks(), "block");
    Some(format!("differences from {} on are found within {most} with a power of 80 %", difference(outcome.mde?)))
}

fn expected(expected: &[ExpectedBlocks]) -> Option<String> {
    let of = |row: &ExpectedBlocks| {
        let truth = if row.difference == 0.0 { "no difference".to_owned() } else { number::percent(row.difference) };
        let decided = number::percent((row.decided * 100.0).round() / 100.0);
        format!("{:.1} blocks ({}, decided in {decided}) for {truth}", row.blocks, duration(row.seconds))
    };
    let rows: Vec<String> = expected.iter().map(of).collect();
    (!rows.is_empty()).then(|| format!("a contrast takes {}", rows.join(", ")))
}

fn warning(task: &PlannedTask, outcome: &ForecastOutcome) -> Option<String> {
    let margin = task.metric.margin;
    let mde = outcome.mde.filter(|mde| *mde > margin.ln_1p())?;
    let needed = match outcome.blocks_for_margin {
        Some(blocks) => format!("that takes {}", counted(blocks, "block")),
        None => "no number of blocks up to 10,000 would".to_owned(),
    };
    Some(format!(
        "what this design finds, {}, is above the margin of {}: {needed}, a longer window, or a wider margin",
        difference(mde),
        number::percent(margin)
    ))
}

/// Returns how many tasks of a plan have a known spread and how many warnings there are, in a sentence, if it has forecasts.
pub(crate) fn summary(tasks: &[PlannedTask]) -> Option<String> {
    let of: Vec<&Forecast> = tasks.iter().filter_map(|task| task.forecast.as_ref()).collect();
    if of.is_empty() {
        return None;
    }
    let known = of.iter().filter(|forecast| forecast.known.is_some()).count();
    let warned = tasks.iter().filter(|task| forecast(task).is_some_and(|text| text.warning.is_some())).count();
    let unknown: f64 = of.iter().filter_map(|forecast| forecast.noise_s).sum();
    let mut parts = vec![format!("the spread of block differences is known for {known} of {} tasks", of.len())];
    if known < of.len() {
        parts.push(format!("`isobench noise` would find out the rest in about {}", duration(unknown)));
    }
    if warned > 0 {
        parts.push(format!("{warned} can't find differences of their margin (`--explain TASK` says more)"));
    }
    Some(parts.join("; "))
}

/// Returns the spread that a task showed, beside what was forecast, as a sentence.
pub(crate) fn found(spread: &SpreadFound) -> String {
    let of = match spread.origin {
        SpreadOrigin::AgainstItself => "of the baseline against itself".to_owned(),
        SpreadOrigin::Sentinel => format!("of the sentinel {} against the baseline", spread.of),
        SpreadOrigin::Contrast => format!("of {} against {}", name(&spread.of), name(&spread.against)),
    };
    let forecast = match spread.forecast {
        Some(expected) => format!("forecast {}", number::percent(expected)),
        None => "there was no forecast".to_owned(),
    };
    format!(
        "Block differences {of}: {forecast}, found {} ({} to {}, {} degrees of freedom).",
        number::percent(spread.deviation),
        number::percent(spread.low),
        number::percent(spread.high),
        spread.degrees
    )
}

fn name(arm: &ArmId) -> String {
    match arm {
        ArmId::Baseline => "the baseline".to_owned(),
        ArmId::Human | ArmId::Agent(_) => arm.to_string(),
    }
}

/// A task of which the baseline was run against itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoiseRow {
    /// The task.
    pub task: String,
    /// The metric.
    pub metric: String,
    /// The spread of block differences.
    pub spread: String,
    /// Its interval.
    pub interval: String,
    /// The differences that it rests on.
    pub blocks: String,
    /// Whether the baseline was called different from itself.
    pub alarm: &'static str,
}

/// The titles of the columns of such rows.
pub(crate) const COLUMNS: [&str; 6] = ["task", "metric", "spread", "95 % interval", "blocks", "false alarm"];

impl NoiseRow {
    /// Returns its cells.
    pub(crate) fn cells(&self) -> [&str; 6] {
        [&self.task, &self.metric, &self.spread, &self.interval, &self.blocks, self.alarm]
    }

    /// Returns the row of a task, if its baseline was run against itself.
    pub(crate) fn of(task: &TaskJudgement) -> Option<Self> {
        let spread = task.spread.as_ref().filter(|spread| spread.origin == SpreadOrigin::AgainstItself)?;
        let contrast = task.contrasts.iter().find(|c| c.of == spread.of && c.against == spread.against);
        Some(Self {
            task: task.id.to_string(),
            metric: task.metric.to_string(),
            spread: number::percent(spread.deviation),
            interval: format!("{} to {}", number::percent(spread.low), number::percent(spread.high)),
            blocks: spread.degrees.saturating_add(1).to_string(),
            alarm: contrast.map_or("–", |contrast| alarm(contrast.verdict)),
        })
    }
}

/// Returns whether a verdict on the baseline against itself is a false alarm.
pub(crate) fn alarm(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "yes: better",
        Verdict::Worse => "yes: worse",
        Verdict::Trivial => "no, but below the margin",
        Verdict::Equivalent | Verdict::Inconclusive => "no",
        Verdict::NothingToBeat | Verdict::AgentFailed | Verdict::Invalid | Verdict::NotMeasured | Verdict::NotRun => {
            "not judged"
        }
    }
}
