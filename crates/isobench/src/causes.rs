//! Why the launches of a run failed, as their logs say it: computed once for the same logs.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

use isobench_analysis::classify::{self, Classifier, FileFindings, LogReader};
use isobench_schema::cause::Cause;
use isobench_schema::failure::{Failure, FailureStage};
use isobench_schema::ids::Digest;
use isobench_schema::outcome::{LaunchRecord, Outcome, evidence};
use isobench_store::{Artifacts, write_atomically};
use serde::{Deserialize, Serialize};

use crate::commands::record_error;
use crate::evidence::{derived, kept};
use crate::exit::{CommandError, Exit, WithExit as _};

/// The causes of launches, in `derived/`.
const CAUSES: &str = "causes.jsonl";
/// How much of a log is read at once.
const CHUNK: usize = 1 << 18;
/// The logs of a launch, in the order in which they are written.
const LOGS: [&str; 3] = [evidence::ENVIRONMENT_LOG, evidence::SERVER_STDOUT, evidence::SERVER_STDERR];
/// What isobench itself saw of a failed launch stands in the evidence by this name.
const SEEN: &str = "launch";

/// Causes by what they were computed from.
#[derive(Debug, Default)]
pub(crate) struct Causes {
    known: BTreeMap<Digest, Cause>,
    grown: bool,
}

/// One line of the causes' file.
#[derive(Serialize, Deserialize)]
struct KnownCause {
    key: Digest,
    /// What tells whether the line is whole, and as it was written.
    check: Option<Digest>,
    cause: Cause,
}

/// Returns the digest of a line's key and cause.
fn check(key: &Digest, cause: &Cause) -> Option<Digest> {
    let cause = serde_json::to_string(cause).ok()?;
    Some(Digest::of(format!("{key}\n{cause}").as_bytes()))
}

impl Causes {
    /// Returns the causes that are kept in a run's folder. What can't be read is computed again.
    pub(crate) fn open(run: &Path) -> Self {
        let text = kept(run, CAUSES).unwrap_or_default();
        let lines = text.split(|&byte| byte == b'\n');
        let known = lines.filter_map(|line| serde_json::from_slice::<KnownCause>(line).ok());
        let known = known.filter(|known| known.check.is_some() && known.check == check(&known.key, &known.cause));
        Self { known: known.map(|known| (known.key, known.cause)).collect(), grown: false }
    }

    /// Returns why a launch failed, if it did so where logs can tell. A log that is missing or damaged tells nothing, and keeps
    /// nobody from judging: no verdict rests on it.
    pub(crate) fn of(&mut self, artifacts: &Artifacts, record: &LaunchRecord) -> Option<Cause> {
        let Outcome::Failed { failure } = &record.outcome else { return None };
        if !shows_in_logs(failure.stage) {
            return None;
        }
        let key = key(record, failure);
        if let Some(cause) = self.known.get(&key) {
            return Some(cause.clone());
        }
        let (cause, is_whole) = classify(artifacts, record, failure);
        // A log that can't be read today may be back tomorrow.
        if is_whole {
            self.known.insert(key, cause.clone());
            self.grown = true;
        }
        Some(cause)
    }

    /// Keeps what was computed since it was opened.
    pub(crate) fn save(&mut self, run: &Path) -> Result<(), CommandError> {
        if !self.grown {
            return Ok(());
        }
        let mut text = Vec::new();
        for (key, cause) in &self.known {
            let known = KnownCause { key: key.clone(), check: check(key, cause), cause: cause.clone() };
            serde_json::to_writer(&mut text, &known).exit(Exit::Error)?;
            text.push(b'\n');
        }
        write_atomically(&derived(run)?.join(CAUSES), &text).map_err(record_error)?;
        self.grown = false;
        Ok(())
    }
}

/// Returns whether the logs of a launch can say more about a failure at that stage than what isobench saw itself.
fn shows_in_logs(stage: FailureStage) -> bool {
    match stage {
        FailureStage::Acquire
        | FailureStage::Build
        | FailureStage::Start
        | FailureStage::Ready
        | FailureStage::Workload => true,
        FailureStage::Dataset | FailureStage::Verify | FailureStage::Parse | FailureStage::Validity => false,
    }
}

/// Returns what a cause is computed from: the table of signatures, the logs and what isobench saw.
fn key(record: &LaunchRecord, failure: &Failure) -> Digest {
    let logs = LOGS.iter().map(|name| record.evidence.get(*name).map(|log| log.digest.to_string()).unwrap_or_default());
    let logs: Vec<String> = logs.collect();
    let program = env!("CARGO_PKG_VERSION");
    Digest::of(format!("{program} {}\n{}\n{}", classify::table_digest(), logs.join("\n"), failure.message).as_bytes())
}

/// Returns what the logs and isobench itself say, and whether every log could be read.
fn classify(artifacts: &Artifacts, record: &LaunchRecord, failure: &Failure) -> (Cause, bool) {
    let classifier = Classifier::new();
    let mut findings = Vec::new();
    let mut is_whole = true;
    for name in LOGS {
        let Some(log) = record.evidence.get(name) else { continue };
        match read(artifacts, &log.digest, classifier.log(name)) {
            Some(found) => findings.push(found),
            None => is_whole = false,
        }
    }
    let mut seen = classifier.log(SEEN);
    seen.feed(failure.message.as_bytes());
    findings.push(seen.finish());
    (classifier.classify(&findings, None), is_whole)
}

/// Returns what is found in a log, if all of it can be read.
fn read(artifacts: &Artifacts, log: &Digest, mut reader: LogReader<'static>) -> Option<FileFindings> {
    let mut artifact = artifacts.open(log).ok()?;
    let mut chunk = vec![0_u8; CHUNK];
    loop {
        let read = artifact.read(&mut chunk).ok()?;
        if read == 0 {
            return Some(reader.finish());
        }
        reader.feed(chunk.get(..read).unwrap_or_default());
    }
}
