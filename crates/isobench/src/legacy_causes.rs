//! Why records of earlier systems failed, by our own lights: what their error text shows, and whether their command could have
//! run at all.

use std::collections::BTreeMap;

use isobench_analysis::classify::Classifier;
use isobench_analysis::legacy::Explained;
use isobench_plan::assess::{AssessOptions, Assessor};
use isobench_plan::dataset::{self, Entry, EntryKind, Files, ReadFileError};
use isobench_plan::knowledge::Knowledge;
use isobench_schema::assessment::{Finding, Severity};
use isobench_schema::facts::Facts;
use isobench_schema::legacy::LegacyRecord;
use serde_json::json;

use crate::exit::{CommandError, Exit, WithExit as _};

/// The file of commands that the planner is given.
const COMMANDS: &str = "commands.jsonl";
/// What a record's error text is called in the evidence.
const ERROR_TEXT: &str = "error";
/// The rule that is about the devices of the plan. No plan is made here.
const TOO_FEW_DEVICES: &str = "devices-too-few";
/// The project of records that name none.
const PROJECT: &str = "vllm";

/// Fills in what the error texts show and what is wrong with the commands at their commits. No clone is looked at: only
/// commits that the program knows by itself can be checked.
///
/// # Errors
/// Returns an error if the commands can't be read back as rows, which is a bug.
pub(crate) fn explain(records: &mut [Explained]) -> Result<(), CommandError> {
    let classifier = Classifier::new();
    let findings = command_errors(records)?;
    for explained in records {
        let record = &explained.record;
        let text = record.error.as_deref().filter(|text| !text.trim().is_empty());
        let cause = text.map(|text| classifier.text(ERROR_TEXT, text.as_bytes()));
        explained.cause = cause.filter(|cause| cause.signature.is_some());
        explained.findings = findings.get(record.short()).cloned().unwrap_or_default();
    }
    Ok(())
}

/// Returns the errors that the linter finds, by the commit's first digits. Warnings don't keep a command from running.
fn command_errors(records: &[Explained]) -> Result<BTreeMap<String, Vec<Finding>>, CommandError> {
    let rows: Vec<String> = records.iter().filter_map(|explained| row(&explained.record)).collect();
    if rows.is_empty() {
        return Ok(BTreeMap::new());
    }
    let files = Commands(rows.concat().into_bytes());
    let dataset = dataset::read(&files, "/", COMMANDS, &[]).exit(Exit::Error)?;
    let (facts, options) = (Facts::default(), AssessOptions::default());
    let mut assessor = Assessor::new(&facts, Knowledge::embedded(), &options);
    let errors = dataset.commit_tasks.iter().map(|task| {
        let assessed = assessor.assess(task);
        let found = assessed.assessment.findings.iter();
        let of_command = |finding: &&Finding| finding.severity == Severity::Error && finding.rule != TOO_FEW_DEVICES;
        let errors = found.filter(of_command).cloned().collect();
        (task.commit.as_str().chars().take(LegacyRecord::SHORT).collect(), errors)
    });
    Ok(errors.collect())
}

/// Returns a record as the row of a dataset, if it names a command.
fn row(record: &LegacyRecord) -> Option<String> {
    let command = record.command.as_ref()?;
    let project = record.project.as_deref().unwrap_or(PROJECT);
    let commit = record.commit_full.as_ref().unwrap_or(&record.commit);
    let row = json!({ "project": project, "commit": commit, "perf_command": command, "model": record.model });
    Some(row.to_string() + "\n")
}

/// One file of commands in memory.
struct Commands(Vec<u8>);

impl Files for Commands {
    fn read(&self, path: &str) -> Result<Vec<u8>, ReadFileError> {
        if path == COMMANDS { Ok(self.0.clone()) } else { Err(ReadFileError::Missing) }
    }

    fn list(&self, _: &str) -> Result<Vec<Entry>, ReadFileError> {
        Ok(vec![Entry { name: COMMANDS.to_owned(), kind: EntryKind::File }])
    }

    fn kind(&self, path: &str) -> Option<EntryKind> {
        (path == COMMANDS).then_some(EntryKind::File)
    }
}
