//! The events as lines of a log, where there is no terminal.

use isobench_schema::event::{BlockEnd, ContrastLook, Event, EventKind, LaunchStage};
use isobench_schema::failure::Failure;
use isobench_schema::outcome::{LaunchRecord, Outcome, Timeline};
use std::fmt::Write as _;

use crate::number::{self, counted};
use crate::text::clean;

/// Returns the line for an event, with the time of day in UTC, or `None` for an event that only a live view shows.
pub fn plain_line(event: &Event) -> Option<String> {
    let text = match &event.kind {
        EventKind::RunStarted { run, plan, isobench, .. } => {
            format!("run {run} started, plan {}, isobench {}", plan.short(), clean(isobench))
        }
        EventKind::OrphansEnded { processes } => {
            let number = u64::try_from(processes.len()).unwrap_or(u64::MAX);
            let noun = if number == 1 { "1 process".to_owned() } else { format!("{number} processes") };
            format!("ended {noun} that an earlier coordinator left behind")
        }
        EventKind::BlockStarted { id, order } => {
            let arms: Vec<String> = order.iter().map(ToString::to_string).collect();
            format!("{id} started: {}", arms.join(", "))
        }
        EventKind::LaunchStage { launch, stage } => match stage {
            LaunchStage::Environment | LaunchStage::NativeBuild | LaunchStage::Starting | LaunchStage::Measuring => {
                format!("{launch} {stage}")
            }
            LaunchStage::Ready | LaunchStage::WarmUp | LaunchStage::Stopping | LaunchStage::Finished => return None,
        },
        EventKind::BlockEnded { id, end, launches, charged } => {
            let outcomes: Vec<String> =
                launches.iter().map(|record| outcome(record, charged.get(&record.launch.arm))).collect();
            let what = block_end(end);
            if outcomes.is_empty() { format!("{id} {what}") } else { format!("{id} {what}: {}", outcomes.join("; ")) }
        }
        EventKind::LookTaken { task, look, blocks, contrasts, stops, reason } => {
            let found: Vec<String> = contrasts.iter().map(contrast_look).collect();
            let then = if *stops { "ends" } else { "goes on" };
            format!(
                "{task} look {} after {}: {}; it {then}: {}",
                look.saturating_add(1),
                counted(u64::from(*blocks), "block"),
                found.join(", "),
                clean(reason)
            )
        }
        EventKind::Confirmed { task, arm, by, reason, .. } => {
            format!("{task} {arm} confirmed by {} because {}", clean(by), clean(reason))
        }
        EventKind::ConfirmationWithdrawn { task, arm, by, reason } => {
            format!("{task} {arm}: the confirmation was withdrawn by {} because {}", clean(by), clean(reason))
        }
        EventKind::RunEnded { end, message } => match message {
            Some(message) => format!("run {end}: {}", clean(message)),
            None => format!("run {end}"),
        },
    };
    Some(format!("{} {text}", time_of_day(event.at_ms.get())))
}

/// Returns what a look says of a contrast, with the p and the level that it was held to.
fn contrast_look(look: &ContrastLook) -> String {
    let ContrastLook { of, against, result } = look;
    let numbers = result.estimate.zip(result.p).map(|(estimate, p)| {
        let ends = [result.estimate, result.low, result.high].map(|value| value.map(f64::exp));
        let decimals = number::speedup_decimals(&ends.into_iter().flatten().collect::<Vec<_>>());
        let (speedup, level) = (number::speedup(estimate.exp(), decimals), number::level(result.level));
        format!(" {speedup}, p {} at a level of {level}", number::p_value(p))
    });
    format!("{of} against {against} {}{}", result.decision, numbers.unwrap_or_default())
}

fn outcome(record: &LaunchRecord, charged: Option<&Failure>) -> String {
    let arm = &record.launch.arm;
    match &record.outcome {
        Outcome::Measured => {
            let mut text = format!("{arm} measured");
            if !record.incidents.is_empty() {
                let incidents = u64::try_from(record.incidents.len()).unwrap_or(u64::MAX);
                write!(text, " with {}", counted(incidents, "incident")).expect("a String takes every write");
            }
            if let Some(failure) = charged {
                write!(text, ", but doesn't count, {}", clean(&failure.to_string()))
                    .expect("a String takes every write");
            }
            text
        }
        // It was settled before: nothing of the launch took time.
        Outcome::Failed { failure } if record.timeline == Timeline::default() => {
            format!("{arm} not launched again, {}", clean(&failure.to_string()))
        }
        Outcome::Failed { failure } => format!("{arm} failed, {}", clean(&failure.to_string())),
        Outcome::Interrupted => format!("{arm} interrupted"),
    }
}

fn block_end(end: &BlockEnd) -> String {
    match end {
        BlockEnd::Complete => "complete".to_owned(),
        BlockEnd::Interrupted => "interrupted; it will run again".to_owned(),
        BlockEnd::Spoilt { failure } => format!("spoilt by {}", clean(&failure.to_string())),
    }
}

/// Returns the time of day in UTC, such as `14:03:22Z`.
fn time_of_day(at_ms: f64) -> String {
    let seconds = (at_ms / 1000.0).floor() % 86_400.0;
    let (hours, minutes) = ((seconds / 3600.0).floor(), (seconds % 3600.0 / 60.0).floor());
    format!("{hours:02}:{minutes:02}:{:02}Z", seconds % 60.0)
}
