//! `isobench confirm`: a person's word that an arm which is hard to believe counts all the same.

use isobench_report::{json, words};
use isobench_schema::check::Check;
use isobench_schema::confirmation::{Confirmation, Confirmations};
use isobench_schema::event::EventKind;
use isobench_schema::ids::{ArmId, TaskId};
use isobench_schema::plan::Plan;
use isobench_schema::verdict::{Contrast, Judgement, LaunchCheck};
use isobench_store::RunStore;

use super::Context;
use super::run::open_error;
use crate::args::ConfirmArgs;
use crate::evidence;
use crate::exit::{CommandError, Exit, WithExit as _};

/// The longest reason, in characters: it stands in every report.
const LONGEST_REASON: usize = 500;
/// The longest name of a person.
const LONGEST_NAME: usize = 100;

/// Runs the command.
pub(crate) fn run(args: &ConfirmArgs, context: Context) -> Result<Exit, CommandError> {
    let by = match &args.by {
        Some(name) => said("--by", name, LONGEST_NAME)?,
        None => user()?,
    };
    let reason = said("--reason", &args.reason, LONGEST_REASON)?;
    let task = named(evidence::open(&args.run)?.plan(), args)?;
    let mut store = RunStore::open(&args.run).map_err(|error| open_error(error, &args.run))?;
    let mut held = Confirmations::default();
    for event in store.events().exit(Exit::Error)? {
        held.apply(&event.exit(Exit::Error)?);
    }
    let held = held.find(&task, &args.arm);
    let word = (task, by, reason);
    let kind = if args.withdraw { withdrawn(held, args, word)? } else { confirmed(held, args, word)? };
    store.append(kind.clone()).exit(Exit::Error)?;
    drop(store);
    let judgement = evidence::judge(&args.run)?;
    if context.json {
        context.print_json(&json::contract(&judgement))?;
    } else {
        context.terminal.status(&told(&kind));
        context.terminal.data(&verdicts(&judgement, &kind));
    }
    Ok(Exit::Success)
}

/// Returns the checks that launches of an arm break and that a person can confirm.
pub(super) fn confirmable(judgement: &Judgement, task: &TaskId, arm: &ArmId) -> Vec<Check> {
    let broken = broken(judgement, task, arm).map(|found| found.check.name);
    let mut checks: Vec<Check> = broken.filter(|check| check.is_confirmable()).collect();
    checks.sort_unstable();
    checks.dedup();
    checks
}

fn broken<'j>(judgement: &'j Judgement, task: &TaskId, arm: &'j ArmId) -> impl Iterator<Item = &'j LaunchCheck> {
    let task = judgement.tasks.iter().find(|judged| judged.id == *task);
    task.into_iter().flat_map(|task| &task.broken).filter(move |found| found.arm == *arm)
}

/// Returns the task that is meant.
fn named(plan: &Plan, args: &ConfirmArgs) -> Result<TaskId, CommandError> {
    let ids = || plan.tasks.iter().map(|task| task.id.as_str()).take(10).collect::<Vec<_>>().join("`, `");
    let task = match (&args.task, plan.tasks.as_slice()) {
        (Some(id), _) => plan.task(id).ok_or_else(|| format!("the run has no task `{id}`")),
        (None, [only]) => Ok(only),
        (None, _) => Err("the run has several tasks, and none is named".to_owned()),
    };
    let task = task.map_err(|message| {
        CommandError::new(Exit::Usage, message).hint(format!("give `--task` with one of `{}`", ids()))
    })?;
    if !task.arms.iter().any(|planned| planned.arm == args.arm) {
        let arms: Vec<String> = task.arms.iter().map(|planned| format!("`{}`", planned.arm)).collect();
        let message = format!("task `{}` has no arm `{}`", task.id, args.arm);
        return Err(CommandError::new(Exit::Usage, message).hint(format!("its arms are {}", arms.join(", "))));
    }
    Ok(task.id.clone())
}

/// Returns the event by which a person confirms what the arm breaks.
fn confirmed(
    held: Option<&Confirmation>,
    args: &ConfirmArgs,
    (task, by, reason): (TaskId, String, String),
) -> Result<EventKind, CommandError> {
    let arm = args.arm.clone();
    let judgement = evidence::judgement(&args.run)?;
    let checks = confirmable(&judgement, &task, &arm);
    if checks.is_empty() {
        let mut others: Vec<&str> = broken(&judgement, &task, &arm).map(|found| found.check.name.as_str()).collect();
        others.sort_unstable();
        others.dedup();
        let message = format!("`{arm}` of task `{task}` needs no confirmation: nothing in it is hard to believe");
        let error = CommandError::new(Exit::Usage, message);
        return Err(if others.is_empty() {
            error.hint("`isobench report` says what its launches broke, if anything")
        } else {
            error.hint(format!("it breaks {}, which nobody can confirm", others.join(", ")))
        });
    }
    if let Some(held) = held.filter(|held| checks.iter().all(|check| held.checks.contains(check))) {
        let message = format!("`{arm}` of task `{task}` is confirmed already, {}", words::confirmed_by(held));
        return Err(CommandError::new(Exit::Usage, message).hint("`--withdraw` takes that back"));
    }
    Ok(EventKind::Confirmed { task, arm, checks, by, reason })
}

/// Returns the event by which a person takes an earlier word back.
fn withdrawn(
    held: Option<&Confirmation>,
    args: &ConfirmArgs,
    (task, by, reason): (TaskId, String, String),
) -> Result<EventKind, CommandError> {
    let arm = args.arm.clone();
    if held.is_none() {
        let message = format!("nobody has confirmed `{arm}` of task `{task}`, so that there is nothing to withdraw");
        return Err(CommandError::new(Exit::Usage, message).hint("`isobench report` shows what is confirmed"));
    }
    Ok(EventKind::ConfirmationWithdrawn { task, arm, by, reason })
}

/// Returns what was said, on one line.
fn said(option: &str, text: &str, longest: usize) -> Result<String, CommandError> {
    let text = text.trim();
    let length = text.chars().count();
    let rule = if text.is_empty() {
        Some("it is empty")
    } else if text.chars().any(char::is_control) {
        Some("it has a line end or another control character in it")
    } else if length > longest {
        Some("it is too long")
    } else {
        None
    };
    match rule {
        None => Ok(text.to_owned()),
        Some(rule) => Err(CommandError::new(Exit::Usage, format!("`{option}` can't be taken: {rule}"))
            .hint(format!("give one line of at most {longest} characters"))),
    }
}

/// Returns the user's name on this machine.
fn user() -> Result<String, CommandError> {
    let names = ["USER", "LOGNAME"].into_iter().filter_map(|name| std::env::var(name).ok());
    let name = names.map(|name| name.trim().to_owned()).find(|name| !name.is_empty());
    let name = name.ok_or_else(|| {
        CommandError::new(Exit::Usage, "it isn't known who confirms: neither USER nor LOGNAME is set")
            .hint("give `--by NAME`")
    })?;
    said("--by", &name, LONGEST_NAME)
}

/// Returns what was done, in a sentence.
fn told(kind: &EventKind) -> String {
    match kind {
        EventKind::Confirmed { task, arm, checks, by, .. } => {
            let checks: Vec<&str> = checks.iter().map(|check| check.as_str()).collect();
            format!("{arm} of task {task} is confirmed by {by}, for {}", checks.join(", "))
        }
        EventKind::ConfirmationWithdrawn { task, arm, by, .. } => {
            format!("{by} has withdrawn the confirmation of {arm} of task {task}")
        }
        EventKind::RunStarted { .. }
        | EventKind::OrphansEnded { .. }
        | EventKind::BlockStarted { .. }
        | EventKind::LaunchStage { .. }
        | EventKind::BlockEnded { .. }
        | EventKind::LookTaken { .. }
        | EventKind::RunEnded { .. } => String::new(),
    }
}

/// Returns the verdicts on the arm as they are now, one line each.
fn verdicts(judgement: &Judgement, kind: &EventKind) -> String {
    let (EventKind::Confirmed { task, arm, .. } | EventKind::ConfirmationWithdrawn { task, arm, .. }) = kind else {
        return String::new();
    };
    let judged = judgement.tasks.iter().find(|judged| judged.id == *task);
    let contrasts = judged.into_iter().flat_map(|task| &task.contrasts).filter(|contrast| contrast.of == *arm);
    let line =
        |contrast: &Contrast| format!("{arm} against {}: {}: {}", contrast.against, contrast.verdict, contrast.reason);
    let lines: Vec<String> = contrasts.map(line).collect();
    if lines.is_empty() { String::new() } else { lines.join("\n") + "\n" }
}
