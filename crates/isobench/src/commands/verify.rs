//! `isobench verify`: hashes, completeness, and the same verdicts again.

use std::fs;
use std::path::PathBuf;

use isobench_schema::confirmation::Confirmations;
use isobench_schema::event::EventKind;
use isobench_schema::format;
use isobench_schema::outcome::{self, Outcome};
use isobench_store::{ReadRunError, RunReader, Severity, layout, verify};
use serde::{Deserialize, Serialize};

use super::{Context, confirm};
use crate::args::VerifyArgs;
use crate::coordinator::EndedBlocks;
use crate::evidence::{self, Digests};
use crate::exit::{CommandError, Exit, WithExit as _};

/// What was found.
#[derive(Serialize)]
struct Report {
    sound: bool,
    findings: Vec<Row>,
}

/// One thing that was found.
#[derive(Serialize)]
struct Row {
    severity: &'static str,
    message: String,
}

/// The part of a launch's description that tells where the engine was served from.
#[derive(Deserialize)]
struct Served {
    folder: PathBuf,
}

/// Runs the command.
pub(crate) fn run(args: &VerifyArgs, context: Context) -> Result<Exit, CommandError> {
    // Another plan is damage of the run, not a wrong folder.
    if let Err(error @ ReadRunError::PlanAltered { .. }) = RunReader::open(&args.run) {
        return show(args, vec![Row { severity: "damage", message: error.to_string() }], context);
    }
    evidence::open(&args.run)?;
    let mut rows = Vec::new();
    for finding in verify(&args.run).exit(Exit::Error)? {
        let severity = match finding.severity() {
            Severity::Note => "note",
            Severity::Damage => "damage",
        };
        rows.push(Row { severity, message: finding.to_string() });
    }
    let is_damage = |row: &Row| row.severity == "damage";
    if !rows.iter().any(is_damage) {
        rows.extend(looks_again(args)?);
        rows.extend(confirmations_again(args)?);
        rows.extend(environments_again(args)?);
        rows.extend(verdicts_again(args)?);
    }
    show(args, rows, context)
}

/// Prints what was found.
fn show(args: &VerifyArgs, rows: Vec<Row>, context: Context) -> Result<Exit, CommandError> {
    let is_damage = |row: &Row| row.severity == "damage";
    let sound = !rows.iter().any(is_damage);
    if context.json {
        context.print_json(&Report { sound, findings: rows })?;
    } else {
        for row in &rows {
            context.terminal.data(&format!("{}: {}\n", row.severity, row.message));
        }
        let word = if sound { "sound" } else { "damaged" };
        context.terminal.data(&format!("`{}` is {word}\n", args.run.display()));
    }
    Ok(if sound { Exit::Success } else { Exit::Error })
}

/// Holds the folder that every measured launch was served from against the environment that its record names, so that the
/// evidence of one arm can't stand under another.
fn environments_again(args: &VerifyArgs) -> Result<Vec<Row>, CommandError> {
    let mut rows = Vec::new();
    let reader = evidence::open(&args.run)?;
    for event in reader.events().exit(Exit::Error)? {
        let EventKind::BlockEnded { launches, .. } = event.exit(Exit::Error)?.kind else { continue };
        for record in launches.iter().filter(|record| matches!(record.outcome, Outcome::Measured)) {
            let Some(artifact) = record.evidence.get(outcome::evidence::LAUNCH) else { continue };
            let bytes = reader.artifacts().read(&artifact.digest).exit(Exit::Error)?;
            let served: Served = serde_json::from_slice(&bytes).exit(Exit::Error)?;
            let named = record.environment.to_string();
            if !served.folder.iter().any(|part| part == named.as_str()) {
                let message = format!(
                    "the evidence of `{}` is of another environment: {}",
                    record.launch,
                    served.folder.display()
                );
                rows.push(Row { severity: "damage", message });
            }
        }
    }
    Ok(rows)
}

/// Judges the run afresh from its evidence, and holds the result against the judgement that is kept.
fn verdicts_again(args: &VerifyArgs) -> Result<Vec<Row>, CommandError> {
    let kept = fs::read_to_string(args.run.join(layout::DERIVED).join(evidence::JUDGEMENT)).ok();
    let afresh = format::to_pretty(&evidence::judge_afresh(&args.run)?).exit(Exit::Error)?;
    Ok(match kept {
        Some(kept) if kept == afresh => Vec::new(),
        Some(_) => {
            let message = "the kept judgement isn't what the evidence gives; delete `derived`, and `isobench judge` makes it anew".to_owned();
            vec![Row { severity: "damage", message }]
        }
        None => vec![Row { severity: "note", message: "no judgement is kept; the evidence can be judged".to_owned() }],
    })
}

/// Takes every look of the record afresh from the evidence before it, and holds the result against what was noted.
fn looks_again(args: &VerifyArgs) -> Result<Vec<Row>, CommandError> {
    let reader = evidence::open(&args.run)?;
    let mut ended = EndedBlocks::default();
    let mut digests = Digests::default();
    let mut rows = Vec::new();
    for event in reader.events().exit(Exit::Error)? {
        let event = event.exit(Exit::Error)?;
        if let EventKind::LookTaken { task, look, .. } = &event.kind {
            let afresh = ended.look(reader.artifacts(), reader.plan(), task, *look, &mut digests);
            let message = match afresh {
                Ok(afresh) if afresh == event.kind => None,
                Ok(_) => Some("isn't what the evidence gives".to_owned()),
                Err(error) => Some(format!("can't be taken again: {}", error.message)),
            };
            if let Some(message) = message {
                let message = format!("look {} at task `{task}` {message}", look.saturating_add(1));
                rows.push(Row { severity: "damage", message });
            }
        }
        ended.apply(&event);
    }
    Ok(rows)
}

/// Holds every confirmation of the record against the evidence: it must be of an arm that breaks what it names.
fn confirmations_again(args: &VerifyArgs) -> Result<Vec<Row>, CommandError> {
    let mut known = Confirmations::default();
    let (mut rows, mut judged) = (Vec::new(), None);
    let reader = evidence::open(&args.run)?;
    for event in reader.events().exit(Exit::Error)? {
        let event = event.exit(Exit::Error)?;
        let message = match &event.kind {
            EventKind::Confirmed { task, arm, checks, by, .. } => {
                if judged.is_none() {
                    judged = Some(evidence::judge_afresh(&args.run)?);
                }
                let broken = judged.as_ref().map(|judged| confirm::confirmable(judged, task, arm)).unwrap_or_default();
                let missing: Vec<&str> =
                    checks.iter().filter(|check| !broken.contains(check)).map(|check| check.as_str()).collect();
                (checks.is_empty() || !missing.is_empty()).then(|| {
                    let named = if missing.is_empty() { "nothing".to_owned() } else { missing.join(", ") };
                    format!("the confirmation of `{arm}` of task `{task}` by {by} names {named}, which the evidence doesn't break")
                })
            }
            EventKind::ConfirmationWithdrawn { task, arm, by, .. } if known.find(task, arm).is_none() => {
                Some(format!("{by} withdraws a confirmation of `{arm}` of task `{task}` that nobody has given"))
            }
            EventKind::ConfirmationWithdrawn { .. }
            | EventKind::RunStarted { .. }
            | EventKind::OrphansEnded { .. }
            | EventKind::BlockStarted { .. }
            | EventKind::LaunchStage { .. }
            | EventKind::BlockEnded { .. }
            | EventKind::LookTaken { .. }
            | EventKind::RunEnded { .. } => None,
        };
        known.apply(&event);
        rows.extend(message.map(|message| Row { severity: "damage", message }));
    }
    Ok(rows)
}
