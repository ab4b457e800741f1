//! `isobench load --sweep`: one load at each level, until it is known where the server saturates.

use std::path::PathBuf;

use isobench_analysis::load_checks::sweep::{Next, StepResult, Sweep, SweepRules};
use isobench_analysis::load_report::LoadReport;
use isobench_loadgen::cancel::StopCause;
use isobench_report::html::Options;
use isobench_report::load::html::{SweepLevel, sweep_page};
use isobench_schema::load_checks::{SearchEnd, SweepBy, SweepReport};
use isobench_schema::order::derive_seed;
use isobench_schema::workload::Arrival;
use tokio::runtime::Runtime;

use super::super::Context;
use super::asked::Asked;
use super::carry::{Carrier, Limits, stopped};
use super::server::Server;
use super::{exit, outputs};
use crate::exit::{CommandError, Exit, WithExit as _};
use crate::load_args::{LoadArgs, SweepArg};
use goal::Goal;

mod goal;

/// The first level where nothing is known of the server, the factor of the ladder, and how close the answer's levels come.
const FIRST: f64 = 1.0;
/// How far below the first level a rate is searched, and how many requests a level has at least: with fewer it isn't seen
/// whether the server keeps up.
const DOWNWARDS: f64 = 64.0;
const FEWEST: f64 = 90.0;
const FACTOR: f64 = 2.0;
const RESOLUTION: f64 = 0.1;
/// The highest level, and the most steps.
const HIGHEST: f64 = 65_536.0;
const MOST_STEPS: usize = 24;

/// Loads the server level by level, and writes what was found.
///
/// # Errors
/// As for one load.
pub(super) fn run(
    args: &LoadArgs,
    by: SweepBy,
    server: &Server,
    asked: &Asked,
    limits: &Limits,
    runtime: &Runtime,
    context: Context,
) -> Result<Exit, CommandError> {
    let goal = goal_of(args)?;
    let levels = &args.arrival.sweep_levels;
    let (lowest, first) = match by {
        SweepBy::Concurrency => (FIRST, FIRST),
        SweepBy::Rate => {
            // Lower ones have too few requests to say anything.
            let least = asked.duration.map_or(0.0, |duration| FEWEST / duration.as_secs_f64());
            // A server that answers one request after the other has this rate already.
            let first = asked.rate_alone().unwrap_or(FIRST).max(least);
            (two_digits((first / DOWNWARDS).max(least)), two_digits(first))
        }
    };
    let sweep = search(by, (lowest, first), levels, goal.is_some())?;
    let mut given = levels.iter().copied();
    let (mut results, mut reports): (Vec<StepResult>, Vec<LoadReport>) = (Vec::new(), Vec::new());
    let found = loop {
        let level = match (levels.is_empty(), sweep.next(&results)) {
            (true, Next::Run(level)) => level,
            (true, Next::Done(found)) => break found,
            (false, _) => match given.next() {
                Some(level) => level,
                None => break sweep.over(&results, SearchEnd::Given),
            },
        };
        context.terminal.status(&format!("{by} {level}"));
        // Prompts that the server has seen at another level would come from its prefix cache.
        let mut asked = asked.with_arrival(arrival(by, level, args));
        asked.seed = derive_seed(asked.seed, &format!("sweep/{level}"));
        let records = args.output.records.as_ref().map(|path| at_level(path, level));
        let carrier = Carrier::new(args, server, &asked, limits, context, records.as_deref())?;
        if results.is_empty() {
            carrier.say_left_out();
        }
        let report = carrier.carry(runtime)?;
        if limits.cause().is_some() {
            break sweep.over(&results, SearchEnd::Stopped);
        }
        let is_met = goal.as_ref().and_then(|goal| goal.is_met(&report.result.metrics));
        if let Some(unmeasured) = goal.as_ref().and_then(|goal| goal.unmeasured(&report.result.metrics)) {
            let needed = "it needs more requests in each step, or a lower percentile";
            context.terminal.status(&format!("the goal's `{unmeasured}` wasn't measured at this level: {needed}"));
        }
        let share = is_met.map(|is_met| if is_met { 1.0 } else { 0.0 });
        results.push(StepResult { objective_share: share, ..report.step(level) });
        reports.push(report);
    };
    write(args, by, found, &results, reports, context, limits)
}

/// Returns what a sweep raises, if one is asked for.
///
/// # Errors
/// Returns which flag says what the sweep's levels say.
pub(super) fn asked(args: &LoadArgs) -> Result<Option<SweepBy>, CommandError> {
    let by = match args.arrival.sweep {
        None => return Ok(None),
        Some(SweepArg::Concurrency) => SweepBy::Concurrency,
        Some(SweepArg::Rate) => SweepBy::Rate,
    };
    // What is wrong with it is said before anything is sent.
    goal_of(args)?;
    let given = &args.arrival;
    let flags = [
        ("--concurrency", given.concurrency.is_some()),
        ("--rate", given.rate.is_some()),
        ("--arrival", given.arrival.is_some()),
        ("--ramp", given.ramp.is_some() && by == SweepBy::Rate),
        ("--burstiness", given.burstiness.is_some() && by == SweepBy::Concurrency),
    ];
    match flags.iter().find(|(_, is_given)| *is_given) {
        None => Ok(Some(by)),
        Some((flag, _)) => {
            let message = format!("`{flag}` doesn't go with `--sweep {by}`, whose levels say how requests arrive");
            Err(CommandError::new(Exit::Usage, message)
                .hint("leave one of the two out; `--sweep-levels` names the levels"))
        }
    }
}

/// Returns what a level must keep, if that was asked for.
fn goal_of(args: &LoadArgs) -> Result<Option<Goal>, CommandError> {
    let goal = args.arrival.sweep_goal.as_deref();
    goal.map(|text| Goal::parse(text, &args.measuring.percentiles.0)).transpose()
}

/// Returns a number with two digits that count.
fn two_digits(number: f64) -> f64 {
    let unit = 10_f64.powf(number.log10().floor() - 1.0);
    (number / unit).round() * unit
}

fn search(by: SweepBy, (lowest, first): (f64, f64), levels: &[f64], has_goal: bool) -> Result<Sweep, CommandError> {
    let rules = SweepRules {
        by,
        lowest: levels.iter().copied().fold(lowest, f64::min),
        first,
        highest: HIGHEST,
        factor: FACTOR,
        resolution: RESOLUTION,
        objective_share: has_goal.then_some(1.0),
        most_steps: MOST_STEPS,
    };
    if by == SweepBy::Concurrency && levels.iter().any(|level| level.fract() != 0.0) {
        let message = "the levels of a sweep by concurrency must be whole numbers";
        return Err(CommandError::new(Exit::Usage, message));
    }
    Sweep::new(rules).exit(Exit::Usage)
}

fn arrival(by: SweepBy, level: f64, args: &LoadArgs) -> Arrival {
    match by {
        SweepBy::Concurrency => Arrival::Closed { concurrency: whole(level), ramp_s: args.arrival.ramp },
        SweepBy::Rate => Arrival::Open { rate_per_s: level, burstiness: args.arrival.burstiness.unwrap_or(1.0) },
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "levels are whole numbers up to 65,536")]
fn whole(level: f64) -> u32 {
    level as u32
}

/// Returns the name of a level's own file: the level stands before the name's end.
pub(super) fn at_level(path: &std::path::Path, level: f64) -> PathBuf {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("records");
    let at = name.find('.').unwrap_or(name.len());
    let (stem, end) = name.split_at(at);
    path.with_file_name(format!("{stem}.{level}{end}"))
}

/// Writes the result of the highest level that was sustained, with what the sweep found, and a page of all levels.
fn write(
    args: &LoadArgs,
    by: SweepBy,
    found: SweepReport,
    results: &[StepResult],
    mut reports: Vec<LoadReport>,
    context: Context,
    limits: &Limits,
) -> Result<Exit, CommandError> {
    if let Some(path) = &args.output.html {
        let name = by.as_str();
        let levels: Vec<SweepLevel<'_>> = results
            .iter()
            .zip(&reports)
            .map(|(step, report)| SweepLevel { name, level: step.level, result: &report.result })
            .collect();
        outputs::put(path, &sweep_page(&found, &levels, &Options::default()))?;
    }
    let says_nothing = found.highest_sustained.is_none() && found.lowest_not_sustained.is_none();
    let best = found.highest_sustained;
    let place = results.iter().position(|step| best.is_some_and(|best| (step.level - best).abs() < f64::EPSILON));
    let place = place.unwrap_or(results.len().saturating_sub(1));
    if place >= reports.len() {
        let exit = if limits.cause() == Some(StopCause::Interrupted) { Exit::Interrupted } else { Exit::SomeFailed };
        return Err(CommandError::new(exit, "the sweep was stopped before its first level ended"));
    }
    let mut report = reports.swap_remove(place);
    report.result.sweep = Some(found);
    if let Some(cause) = limits.cause() {
        stopped(&mut report.result, cause);
    }
    // The page of all levels is written already.
    let mut others = args.clone();
    others.output.html = None;
    others.output.records = None;
    outputs::write(&others, &report, context)?;
    if says_nothing && limits.cause().is_none() {
        return Ok(Exit::SomeFailed);
    }
    Ok(exit(&report.result, limits.cause()))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn each_level_has_records_of_its_own() {
        assert_eq!(at_level(Path::new("a/r.jsonl.zst"), 16.0), Path::new("a/r.16.jsonl.zst"));
        assert_eq!(at_level(Path::new("r"), 0.5), Path::new("r.0.5"));
    }

    #[test]
    fn a_first_rate_is_round() {
        for (number, expected) in [(1.0 / 0.68, 1.5), (0.0123, 0.012), (996.0, 1000.0)] {
            assert!((two_digits(number) - expected).abs() < 1e-9, "{number}");
        }
    }
}
