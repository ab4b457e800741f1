//! Taking a finished block's folder into its run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use isobench_schema::block::{BlockComplete, BlockSpec};
use isobench_schema::event::{BlockEnd, EventKind};
use isobench_schema::ids::{BlockId, LaunchId};
use isobench_schema::outcome::{Artifact, LaunchRecord, Outcome};
use serde_json::Value;

use crate::artifacts::{Artifacts, ReadArtifactError};
use crate::attempts::{AttemptError, check_launches};
use crate::block::{OpenBlockError, order, read_complete, read_spec};
use crate::events::{AppendError, ReadEventsError};
use crate::layout;
use crate::run::RunStore;

/// What taking a block in came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TakenIn {
    /// Its evidence and its end are in the run now.
    Added,
    /// The attempt had ended in the run before. Nothing was changed.
    AlreadyThere,
}

/// Why a block's folder can't be taken in. Evidence that was copied before stays, unreferenced.
#[derive(Debug, thiserror::Error)]
pub enum TakeInError {
    /// The folder can't be read.
    #[error(transparent)]
    Open(#[from] OpenBlockError),
    /// The block isn't finished.
    #[error("the block in `{dir}` isn't complete: there is no `complete.json` in it")]
    Incomplete {
        /// The folder.
        dir: PathBuf,
    },
    /// The block is another run's.
    #[error("the block in `{dir}` belongs to the run `{found}`, not to `{run}`")]
    OtherRun {
        /// The folder.
        dir: PathBuf,
        /// The run that was to take it in.
        run: String,
        /// The run that its specification names.
        found: String,
    },
    /// Its end is another block's than its specification.
    #[error("the folder `{dir}` has the specification of `{spec}` and the end of `{complete}`")]
    OtherBlock {
        /// The folder.
        dir: PathBuf,
        /// The block of the specification.
        spec: BlockId,
        /// The block of the end.
        complete: BlockId,
    },
    /// The run's plan has no such block.
    #[error("the block in `{dir}` is `{id}`, which the run's plan hasn't")]
    NotPlanned {
        /// The folder.
        dir: PathBuf,
        /// The attempt.
        id: BlockId,
    },
    /// It ran by another specification than the run's plan gives it.
    #[error("the block in `{dir}` isn't `{id}` as the run's plan has it: {difference}")]
    OtherSpec {
        /// The folder.
        dir: PathBuf,
        /// The attempt.
        id: BlockId,
        /// The first key that differs, with its two values, shortened.
        difference: String,
    },
    /// The specification can't be written as JSON to be compared.
    #[error("the specification in `{dir}` can't be compared")]
    Compare {
        /// The folder.
        dir: PathBuf,
        /// Why not.
        #[source]
        source: serde_json::Error,
    },
    /// The run has a complete attempt at the block.
    #[error("the block in `{dir}` is complete in the run already, by `{complete}`")]
    BlockComplete {
        /// The folder.
        dir: PathBuf,
        /// The attempt that counts.
        complete: BlockId,
    },
    /// The same attempt ended in another way in the run.
    #[error("`{id}` has ended in the run already, {ended}, and in another way in `{dir}`")]
    EndedOtherwise {
        /// The folder.
        dir: PathBuf,
        /// The attempt.
        id: BlockId,
        /// How it ended in the run.
        ended: &'static str,
    },
    /// Its records aren't those of its launches.
    #[error("the block in `{dir}` has other records than its specification asks for")]
    Launches {
        /// The folder.
        dir: PathBuf,
        /// What differs.
        #[source]
        source: AttemptError,
    },
    /// A piece of its evidence is missing, damaged or can't be copied.
    #[error(transparent)]
    Artifact(#[from] ReadArtifactError),
    /// The run's events can't be read.
    #[error(transparent)]
    Events(#[from] ReadEventsError),
    /// The run can't take the events.
    #[error(transparent)]
    Append(#[from] AppendError),
}

/// Takes a finished block's folder into its run: its evidence first, then its end. Doing it again changes nothing.
///
/// The folder may come from anywhere: everything in it is checked against its specification and its digests, and its
/// specification against what the plan gives that block, which `planned` returns. Failures that were known before a
/// launch are left out of that: they are history, not plan.
///
/// # Errors
/// Returns an error if the folder isn't complete, isn't of this run and its plan, or is damaged, if the run has the block
/// already or another end of the attempt, or if the run can't be written.
pub fn take_in(
    run: &mut RunStore,
    dir: &Path,
    planned: impl FnOnce(&BlockId) -> Option<BlockSpec>,
) -> Result<TakenIn, TakeInError> {
    let spec = read_spec(dir)?;
    let complete = read_complete(dir)?.ok_or_else(|| TakeInError::Incomplete { dir: dir.to_owned() })?;
    if spec.run != run.run().as_str() {
        let (run, found) = (run.run().to_string(), spec.run);
        return Err(TakeInError::OtherRun { dir: dir.to_owned(), run, found });
    }
    if spec.id != complete.id {
        return Err(TakeInError::OtherBlock { dir: dir.to_owned(), spec: spec.id, complete: complete.id });
    }
    let order = order(&spec);
    check_launches(&spec.id, &order, &complete.launches)
        .map_err(|source| TakeInError::Launches { dir: dir.to_owned(), source })?;
    let Some(planned) = planned(&spec.id) else {
        return Err(TakeInError::NotPlanned { dir: dir.to_owned(), id: spec.id });
    };
    check_spec(dir, &spec, &planned)?;
    if is_there(run, dir, &complete)? {
        return Ok(TakenIn::AlreadyThere);
    }
    let from = Artifacts::new(dir.join(layout::ARTIFACTS));
    for artifact in complete.launches.iter().flat_map(|record| record.evidence.values()) {
        run.artifacts().take_in(&from, &artifact.digest)?;
    }
    if !run.has_begun(&spec.id) {
        run.append(EventKind::BlockStarted { id: spec.id, order })?;
    }
    run.append(complete.into())?;
    Ok(TakenIn::Added)
}

/// The longest value that an error shows, in characters.
const SHOWN: usize = 80;

/// Checks that a block ran by the specification that the plan gives it.
fn check_spec(dir: &Path, found: &BlockSpec, planned: &BlockSpec) -> Result<(), TakeInError> {
    let value = |spec: &BlockSpec| {
        let mut spec = spec.clone();
        for launch in &mut spec.launches {
            launch.settled = None;
        }
        serde_json::to_value(spec).map_err(|source| TakeInError::Compare { dir: dir.to_owned(), source })
    };
    let (of, by) = (value(found)?, value(planned)?);
    let Some((key, found_value, planned_value)) = difference(String::new(), Some(&of), Some(&by)) else {
        return Ok(());
    };
    let shown = |value: Option<&Value>| match value.map(Value::to_string) {
        None => "absent".to_owned(),
        Some(text) if text.chars().count() > SHOWN => text.chars().take(SHOWN).chain(['…']).collect(),
        Some(text) => text,
    };
    let difference = format!("`{key}` is {}, and the plan says {}", shown(found_value), shown(planned_value));
    Err(TakeInError::OtherSpec { dir: dir.to_owned(), id: found.id.clone(), difference })
}

/// Returns the first place where two values differ, as deep as both have it, with the two values there.
fn difference<'v>(
    key: String,
    a: Option<&'v Value>,
    b: Option<&'v Value>,
) -> Option<(String, Option<&'v Value>, Option<&'v Value>)> {
    if a == b {
        return None;
    }
    let inside = |name: &str| if key.is_empty() { name.to_owned() } else { format!("{key}.{name}") };
    match (a, b) {
        (Some(Value::Object(x)), Some(Value::Object(y))) => {
            x.keys().chain(y.keys()).find_map(|name| difference(inside(name), x.get(name), y.get(name)))
        }
        (Some(Value::Array(x)), Some(Value::Array(y))) => (0..x.len().max(y.len()))
            .find_map(|place| difference(inside(&place.to_string()), x.get(place), y.get(place))),
        (_, _) => Some((key, a, b)),
    }
}

/// Returns whether the run has this very end of the attempt.
fn is_there(run: &RunStore, dir: &Path, complete: &BlockComplete) -> Result<bool, TakeInError> {
    let mut counts = None;
    for event in run.events()? {
        let EventKind::BlockEnded { id, end, launches, .. } = event?.kind else { continue };
        if id == complete.id {
            let is_same = end == complete.end && launches.iter().map(told).eq(complete.launches.iter().map(told));
            let ended = match end {
                BlockEnd::Complete => "complete",
                BlockEnd::Interrupted => "interrupted",
                BlockEnd::Spoilt { .. } => "spoilt",
            };
            let otherwise = || TakeInError::EndedOtherwise { dir: dir.to_owned(), id, ended };
            return if is_same { Ok(true) } else { Err(otherwise()) };
        }
        if end == BlockEnd::Complete && (&id.task, id.block) == (&complete.id.task, complete.id.block) {
            counts = Some(id);
        }
    }
    match counts {
        Some(complete) => Err(TakeInError::BlockComplete { dir: dir.to_owned(), complete }),
        None => Ok(false),
    }
}

/// Returns what a record tells of its launch, but for its times.
fn told(record: &LaunchRecord) -> (&LaunchId, &Outcome, &BTreeMap<String, Artifact>) {
    (&record.launch, &record.outcome, &record.evidence)
}
