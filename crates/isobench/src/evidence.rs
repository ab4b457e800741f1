//! From a run's stored evidence to digests of its launches and to its judgement, with what was computed kept for later.
//!
//! Everything kept is derived: it can be deleted at will, and is computed again to the same bytes.

mod script_evidence;

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use isobench_analysis::block;
use isobench_analysis::classify;
use isobench_analysis::judge::{self, Attempt, JudgeInput};
use isobench_analysis::launch::LaunchInput;
pub(crate) use isobench_analysis::measure::LaunchDigest;
use isobench_analysis::measure::{DIGEST_VERSION, RecordReader};
use isobench_analysis::validity::LaunchRules;
use isobench_schema::block::BlockSpec;
use isobench_schema::confirmation::Confirmations;
use isobench_schema::event::{BlockEnd, EventKind};
use isobench_schema::failure::Failure;
use isobench_schema::format;
use isobench_schema::ids::{ArmId, Digest, LaunchId};
use isobench_schema::outcome::{Artifact, LaunchRecord, Outcome, evidence};
use isobench_schema::verdict::Judgement;
use isobench_store::{Artifacts, RunReader, StoreError, layout, write_atomically};
use serde::{Deserialize, Serialize};

use crate::causes::Causes;
use crate::commands::record_error;
use crate::exit::{CommandError, Exit, WithExit as _};

/// The digests of launches, in `derived/`.
const DIGESTS: &str = "launches.jsonl";
/// The judgement, in `derived/`.
pub(crate) const JUDGEMENT: &str = "judgement.json";
/// What the judgement was made from, in `derived/`.
const JUDGED: &str = "judgement.from";
/// How much of an artifact is read at once.
const CHUNK: usize = 1 << 18;

/// Digests of launches and causes of failures, computed once.
#[derive(Debug, Default)]
pub(crate) struct Digests {
    known: BTreeMap<Digest, LaunchDigest>,
    causes: Causes,
    grown: bool,
}

/// One line of the digests' file.
#[derive(Serialize, Deserialize)]
struct KnownDigest {
    key: Digest,
    digest: LaunchDigest,
    /// The digest of both, so that a line that was changed since is computed again.
    check: Digest,
}

impl KnownDigest {
    fn new(key: Digest, digest: LaunchDigest) -> Result<Self, serde_json::Error> {
        let check = Digest::of_json(&(&key, &digest))?;
        Ok(Self { key, digest, check })
    }

    fn is_whole(&self) -> bool {
        Digest::of_json(&(&self.key, &self.digest)).is_ok_and(|check| check == self.check)
    }
}

/// Returns what a digest was computed from: the evidence, the launch, the rules and the program.
fn key(launch: &LaunchId, sources: &[&Artifact], rules: &LaunchRules) -> Digest {
    let program = env!("CARGO_PKG_VERSION");
    let digests: Vec<&str> = sources.iter().map(|source| source.digest.as_str()).collect();
    let text = format!("{program} {DIGEST_VERSION}\n{}\n{launch}\n{rules:?}", digests.join(" "));
    Digest::of(text.as_bytes())
}

/// Returns the evidence that the numbers of a launch that was measured come from: its request records, or what a benchmark
/// script has left and was seen of it. A launch that has none can't be read, and doesn't count.
fn sources<'r>(record: &'r LaunchRecord, rules: &LaunchRules) -> Vec<&'r Artifact> {
    let names: &[&str] = match (&record.outcome, &rules.script) {
        (Outcome::Measured, None) => &[evidence::REQUESTS],
        (Outcome::Measured, Some(_)) => script_evidence::SOURCES,
        (Outcome::Failed { .. } | Outcome::Interrupted, _) => &[],
    };
    names.iter().filter_map(|name| record.evidence.get(*name)).collect()
}

impl Digests {
    /// Returns the digests that are kept in a run's folder. What can't be read is computed again.
    pub(crate) fn open(run: &Path) -> Self {
        let text = kept(run, DIGESTS).unwrap_or_default();
        let lines = text.split(|&byte| byte == b'\n');
        let known = lines.filter_map(|line| serde_json::from_slice::<KnownDigest>(line).ok());
        let known = known.filter(KnownDigest::is_whole).map(|known| (known.key, known.digest)).collect();
        Self { known, causes: Causes::open(run), grown: false }
    }

    /// Returns a launch's digest if it is known.
    pub(crate) fn known(&self, record: &LaunchRecord, rules: &LaunchRules) -> Option<&LaunchDigest> {
        let sources = sources(record, rules);
        self.known.get(&key(&record.launch, &sources, rules)).filter(|_| !sources.is_empty())
    }

    /// Returns what the judge needs of a launch. Records that can't be read make it a failed one.
    pub(crate) fn input(
        &mut self,
        artifacts: &Artifacts,
        record: &LaunchRecord,
        rules: &LaunchRules,
    ) -> Result<LaunchInput, CommandError> {
        let mut record = record.clone();
        let sources = sources(&record, rules);
        let Some(first) = sources.first() else {
            let cause = self.causes.of(artifacts, &record);
            return Ok(LaunchInput { record, digest: None, cause });
        };
        let key = key(&record.launch, &sources, rules);
        // What was computed from evidence that is gone isn't believed: opening it says what is missing.
        let is_there = || sources.iter().all(|source| artifacts.holds(&source.digest));
        if let Some(digest) = self.known.get(&key).filter(|_| is_there()) {
            return Ok(LaunchInput { digest: Some(digest.clone()), record, cause: None });
        }
        let read = match &rules.script {
            Some(script) => script_evidence::read(artifacts, &record, script)?,
            None => read(artifacts, &record.launch, first, rules)?,
        };
        match read {
            Ok(digest) => {
                self.known.insert(key, digest.clone());
                self.grown = true;
                Ok(LaunchInput { record, digest: Some(digest), cause: None })
            }
            Err(failure) => {
                record.outcome = Outcome::Failed { failure };
                Ok(LaunchInput { record, digest: None, cause: None })
            }
        }
    }

    /// Keeps what was computed since it was opened.
    pub(crate) fn save(&mut self, run: &Path) -> Result<(), CommandError> {
        self.causes.save(run)?;
        if !self.grown {
            return Ok(());
        }
        let mut text = Vec::new();
        for (key, digest) in &self.known {
            let known = KnownDigest::new(key.clone(), digest.clone()).exit(Exit::Error)?;
            serde_json::to_writer(&mut text, &known).exit(Exit::Error)?;
            text.push(b'\n');
        }
        let folder = derived(run)?;
        write_atomically(&folder.join(DIGESTS), &text).map_err(record_error)?;
        self.grown = false;
        Ok(())
    }
}

fn read(
    artifacts: &Artifacts,
    launch: &LaunchId,
    records: &Artifact,
    rules: &LaunchRules,
) -> Result<Result<LaunchDigest, Failure>, CommandError> {
    let mut reader = RecordReader::new(launch.clone(), rules.clone());
    let unreadable = |error: CommandError| CommandError {
        message: format!("the request records of `{launch}` can't be read: {}", error.message),
        ..error.hint("`isobench verify RUN` lists everything that is damaged or missing")
    };
    let mut artifact = artifacts.open(&records.digest).exit(Exit::Error).map_err(unreadable)?;
    let mut chunk = vec![0_u8; CHUNK];
    loop {
        let read = artifact.read(&mut chunk).exit(Exit::Error).map_err(unreadable)?;
        if read == 0 {
            break;
        }
        reader.feed(chunk.get(..read).unwrap_or_default());
    }
    Ok(reader.finish().map_err(|error| error.failure()))
}

/// Decides how a block ended, and what was found against which arm: the same wherever the block ran.
pub(crate) fn end_of_block(
    artifacts: &Artifacts,
    spec: &BlockSpec,
    launches: &[LaunchRecord],
    digests: &mut Digests,
) -> Result<(BlockEnd, BTreeMap<ArmId, Failure>), CommandError> {
    let rules = LaunchRules::of_block(spec);
    let inputs = launches
        .iter()
        .map(|record| digests.input(artifacts, record, &rules))
        .collect::<Result<Vec<_>, CommandError>>()?;
    let attempt = Attempt { id: spec.id.clone(), end: BlockEnd::Complete, launches: inputs };
    let charged = judge::charged(spec, &attempt);
    Ok((block::end(&attempt.launches, &charged), charged))
}

/// Judges a run from its evidence, and keeps the judgement.
pub(crate) fn judge(run: &Path) -> Result<Judgement, CommandError> {
    let reader = open(run)?;
    let mut digests = Digests::open(run);
    let judgement = judge_with(&reader, &mut digests)?;
    keep(run, &mut digests, &judgement)?;
    Ok(judgement)
}

/// Returns the kept judgement if it was made from exactly this record by this program and wasn't changed since, else judges
/// the run.
pub(crate) fn judgement(run: &Path) -> Result<Judgement, CommandError> {
    let from = kept(run, JUDGED);
    if let (Some(from), Some(bytes)) = (from, kept(run, JUDGEMENT)) {
        let is_it = judged_from(run, &bytes).map(String::into_bytes) == Some(from);
        if let Some(judgement) = is_it.then(|| format::from_slice::<Judgement>(&bytes).ok()).flatten() {
            return Ok(judgement);
        }
    }
    judge(run)
}

/// Judges a run without using or keeping anything derived.
pub(crate) fn judge_afresh(run: &Path) -> Result<Judgement, CommandError> {
    judge_with(&open(run)?, &mut Digests::default())
}

/// Opens a run for reading.
pub(crate) fn open(run: &Path) -> Result<RunReader, CommandError> {
    let opened = if run.is_file() {
        Err(CommandError::new(
            Exit::Usage,
            format!("`{}` is a file, and the folder of a run is asked for", run.display()),
        ))
    } else if run.exists() {
        RunReader::open(run).exit(Exit::Usage)
    } else {
        Err(CommandError::new(Exit::Usage, format!("there is no folder `{}`", run.display())))
    };
    opened.map_err(|error| error.hint("name the folder of a run; `isobench runs` lists those in a folder"))
}

fn judge_with(reader: &RunReader, digests: &mut Digests) -> Result<Judgement, CommandError> {
    let plan = reader.plan();
    let rules: BTreeMap<_, _> = plan.tasks.iter().map(|task| (&task.id, LaunchRules::of_task(task))).collect();
    let mut attempts = Vec::new();
    let mut confirmations = Confirmations::default();
    for event in reader.events().exit(Exit::Error)? {
        let event = event.exit(Exit::Error)?;
        confirmations.apply(&event);
        let EventKind::BlockEnded { id, end, launches, .. } = event.kind else { continue };
        let Some(rules) = rules.get(&id.task) else {
            let message = format!("the record has the block `{id}`, whose task the plan lacks");
            return Err(CommandError::new(Exit::Error, message));
        };
        let launches = launches
            .iter()
            .map(|record| digests.input(reader.artifacts(), record, rules))
            .collect::<Result<Vec<_>, CommandError>>()?;
        attempts.push(Attempt { id, end, launches });
    }
    let run = reader.run().clone();
    judge::judge(&JudgeInput { run, plan, attempts: &attempts, confirmations: &confirmations }).exit(Exit::Error)
}

/// Returns the folder for what is computed from a run, made if it isn't there.
pub(crate) fn derived(run: &Path) -> Result<PathBuf, CommandError> {
    let folder = run.join(layout::DERIVED);
    fs::create_dir_all(&folder).map_err(|error| record_error(StoreError::new("create the folder", &folder, error)))?;
    Ok(folder)
}

/// Keeps digests and judgement. A folder that can't be written to is no reason not to judge.
fn keep(run: &Path, digests: &mut Digests, judgement: &Judgement) -> Result<(), CommandError> {
    let text = format::to_pretty(judgement).exit(Exit::Error)?;
    let Some(from) = judged_from(run, text.as_bytes()) else { return Ok(()) };
    let mut keep = || {
        digests.save(run)?;
        let folder = derived(run)?;
        write_atomically(&folder.join(JUDGEMENT), text.as_bytes()).map_err(record_error)?;
        write_atomically(&folder.join(JUDGED), from.as_bytes()).map_err(record_error)
    };
    drop(keep());
    Ok(())
}

/// Returns what a file of what was computed from a run holds, if it is a plain file. Opening a pipe would wait.
pub(crate) fn kept(run: &Path, name: &str) -> Option<Vec<u8>> {
    let path = run.join(layout::DERIVED).join(name);
    fs::symlink_metadata(&path).ok()?.is_file().then(|| fs::read(&path).ok())?
}

/// Returns what a judgement of the run, made now, is made from: the record, and what reads it; and which bytes it is.
fn judged_from(run: &Path, judgement: &[u8]) -> Option<String> {
    let digest = |name: &str| fs::read(run.join(name)).ok().map(|bytes| Digest::of(&bytes));
    let (plan, events) = (digest(layout::PLAN)?, digest(layout::EVENTS)?);
    let (program, form) = (env!("CARGO_PKG_VERSION"), <Judgement as format::Stored>::VERSION);
    let signatures = classify::table_digest();
    let read_by = format!("isobench {program}\njudgement {form}, digests {DIGEST_VERSION}\nsignatures {signatures}\n");
    let judgement = Digest::of(judgement);
    Some(format!("{read_by}plan {plan}\nevents {events}\njudgement {judgement}\n"))
}
