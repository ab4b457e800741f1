//! What a benchmark script has left of a launch, read from the store.

use std::io::Read as _;

use isobench_analysis::measure::LaunchDigest;
use isobench_analysis::script::{self, ScriptEvidence, ScriptRules};
use isobench_schema::check::Check;
use isobench_schema::failure::{Failure, FailureClass, FailureStage};
use isobench_schema::format;
use isobench_schema::outcome::{Artifact, LaunchRecord, evidence};
use isobench_schema::script::ScriptSeen;
use isobench_store::Artifacts;

use crate::exit::{CommandError, Exit, WithExit as _};

/// The largest result file that is read, in bytes: it is a stranger's program that wrote it.
const MOST_RESULT: u64 = 1 << 27;

/// The evidence that a script's numbers come from, as far as there is any.
pub(super) const SOURCES: &[&str] = &[evidence::SCRIPT_SEEN, evidence::SCRIPT_RESULT, evidence::SERVER_STDOUT];

/// Returns the numbers that the script of a measured launch claims, or why it has none.
pub(super) fn read(
    artifacts: &Artifacts,
    record: &LaunchRecord,
    rules: &ScriptRules,
) -> Result<Result<LaunchDigest, Failure>, CommandError> {
    let unreadable = |what: &str| {
        let message = format!("what was seen of the benchmark script is missing or can't be read: {what}");
        let failure = Failure::new(FailureStage::Parse, FailureClass::EvidenceUnreadable, message);
        Ok(Err(failure.breaking(Check::RecordsReadable)))
    };
    let Some(seen) = whole(artifacts, record, evidence::SCRIPT_SEEN)? else {
        return unreadable(evidence::SCRIPT_SEEN);
    };
    let seen: ScriptSeen = match format::from_slice(&seen) {
        Ok(seen) => seen,
        Err(error) => return unreadable(&error.to_string()),
    };
    let result = whole(artifacts, record, evidence::SCRIPT_RESULT)?;
    let Some(printed) = record.evidence.get(evidence::SERVER_STDOUT) else {
        return unreadable(evidence::SERVER_STDOUT);
    };
    let mut stdout = artifacts.open(&printed.digest).exit(Exit::Error).map_err(damaged)?;
    let evidence = ScriptEvidence { seen, result, stdout: &mut stdout };
    script::read(record.launch.clone(), rules, evidence).exit(Exit::Error)
}

/// Returns a piece of evidence, if the launch has it and it isn't longer than [`MOST_RESULT`].
fn whole(artifacts: &Artifacts, record: &LaunchRecord, name: &str) -> Result<Option<Vec<u8>>, CommandError> {
    let is_small = |artifact: &&Artifact| artifact.bytes <= MOST_RESULT;
    let Some(artifact) = record.evidence.get(name).filter(is_small) else { return Ok(None) };
    let mut bytes = Vec::new();
    let read = artifacts.open(&artifact.digest).map(|mut opened| opened.read_to_end(&mut bytes));
    read.exit(Exit::Error).map_err(damaged)?.exit(Exit::Error).map_err(damaged)?;
    Ok(Some(bytes))
}

fn damaged(error: CommandError) -> CommandError {
    error.hint("`isobench verify RUN` lists everything that is damaged or missing")
}
