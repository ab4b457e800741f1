//! Taking a finished block's folder into its run.

use std::path::{Path, PathBuf};

use isobench_schema::event::EventKind;
use isobench_schema::ids::BlockId;

use crate::artifacts::{Artifacts, ReadArtifactError};
use crate::attempts::{AttemptError, check_launches};
use crate::block::{OpenBlockError, order, read_complete, read_spec};
use crate::events::AppendError;
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
    /// The run can't take the events.
    #[error(transparent)]
    Append(#[from] AppendError),
}

/// Takes a finished block's folder into its run: its evidence first, then its end. Doing it again changes nothing.
///
/// The folder may come from anywhere: everything in it is checked against its specification and its digests.
///
/// # Errors
/// Returns an error if the folder isn't complete, isn't of this run, or is damaged, or if the run can't be written.
pub fn take_in(run: &mut RunStore, dir: &Path) -> Result<TakenIn, TakeInError> {
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
    if run.has_ended(&spec.id) {
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
