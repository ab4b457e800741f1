//! A run's folder as a reader sees it, also while another process writes in it.

use std::path::{Path, PathBuf};

use isobench_schema::event::{Event, EventKind};
use isobench_schema::facts::Facts;
use isobench_schema::format::{self, ReadFormatError, Stored};
use isobench_schema::ids::{Digest, RunId};
use isobench_schema::plan::Plan;

use crate::artifacts::Artifacts;
use crate::atomic::{self, StoreError};
use crate::events::{Events, ReadEventsError};
use crate::layout;

/// Why a run can't be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadRunError {
    /// A file can't be read.
    #[error(transparent)]
    Storage(#[from] StoreError),
    /// The folder holds no run.
    #[error("`{dir}` holds no run: there is no `{missing}` in it")]
    NotARun {
        /// The folder.
        dir: PathBuf,
        /// The file that isn't there.
        missing: &'static str,
    },
    /// The plan or the facts can't be read.
    #[error("`{path}` can't be read")]
    Document {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: ReadFormatError,
    },
    /// The plan isn't the one that the run began with.
    #[error("the plan in `{dir}` has the digest {found}, and the run began with {begun}")]
    PlanAltered {
        /// The folder.
        dir: PathBuf,
        /// The digest in the first event.
        begun: Digest,
        /// The digest of the plan's file.
        found: Digest,
    },
    /// The events can't be read.
    #[error(transparent)]
    Events(#[from] ReadEventsError),
}

/// The plan and the facts of a run.
#[derive(Debug)]
pub(crate) struct Documents {
    pub(crate) plan: Plan,
    /// The digest of the stored bytes, which names the plan even if this isobench would write it in a newer format.
    pub(crate) plan_digest: Digest,
    pub(crate) facts: Facts,
    pub(crate) facts_digest: Digest,
}

impl Documents {
    pub(crate) fn read(dir: &Path) -> Result<Self, ReadRunError> {
        let (plan, plan_digest) = document(dir, layout::PLAN)?;
        let (facts, facts_digest) = document(dir, layout::FACTS)?;
        if !dir.join(layout::EVENTS).exists() {
            return Err(ReadRunError::NotARun { dir: dir.to_owned(), missing: layout::EVENTS });
        }
        Ok(Self { plan, plan_digest, facts, facts_digest })
    }

    /// Returns an error if the run began with another plan, which only its first start can say.
    pub(crate) fn check(&self, dir: &Path, begun: Option<&Digest>) -> Result<(), ReadRunError> {
        match begun {
            Some(begun) if *begun != self.plan_digest => Err(ReadRunError::PlanAltered {
                dir: dir.to_owned(),
                begun: begun.clone(),
                found: self.plan_digest.clone(),
            }),
            Some(_) | None => Ok(()),
        }
    }
}

fn document<T: Stored>(dir: &Path, name: &'static str) -> Result<(T, Digest), ReadRunError> {
    let path = dir.join(name);
    let Some(bytes) = atomic::read_if_there(&path)? else {
        return Err(ReadRunError::NotARun { dir: dir.to_owned(), missing: name });
    };
    let value = format::from_slice(&bytes).map_err(|source| ReadRunError::Document { path, source })?;
    Ok((value, Digest::of(&bytes)))
}

/// Returns the plan's digest if the event is the start of a run.
pub(crate) fn plan_begun(event: &Event) -> Option<&Digest> {
    match &event.kind {
        EventKind::RunStarted { plan, .. } => Some(plan),
        EventKind::OrphansEnded { .. }
        | EventKind::BlockStarted { .. }
        | EventKind::LaunchStage { .. }
        | EventKind::BlockEnded { .. }
        | EventKind::LookTaken { .. }
        | EventKind::Confirmed { .. }
        | EventKind::ConfirmationWithdrawn { .. }
        | EventKind::RunEnded { .. } => None,
    }
}

/// A run's folder, open for reading. It takes no lock: a run that is under way is read as far as it has come.
#[derive(Debug)]
pub struct RunReader {
    dir: PathBuf,
    run: RunId,
    documents: Documents,
    artifacts: Artifacts,
}

impl RunReader {
    /// Opens a run's folder, and checks that its plan is the one that it began with.
    ///
    /// # Errors
    /// Returns an error if the folder holds no run, or if its plan, facts or first events can't be read.
    pub fn open(dir: &Path) -> Result<Self, ReadRunError> {
        let documents = Documents::read(dir)?;
        let mut events = Events::open(&dir.join(layout::EVENTS))?;
        let run = events.header().run.clone();
        let mut begun = None;
        for event in events.by_ref() {
            begun = plan_begun(&event?).cloned();
            if begun.is_some() {
                break;
            }
        }
        documents.check(dir, begun.as_ref())?;
        let artifacts = Artifacts::new(dir.join(layout::ARTIFACTS));
        Ok(Self { dir: dir.to_owned(), run, documents, artifacts })
    }

    /// Returns the folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the run's name.
    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// Returns the plan.
    pub fn plan(&self) -> &Plan {
        &self.documents.plan
    }

    /// Returns the digest of the plan's stored bytes.
    pub fn plan_digest(&self) -> &Digest {
        &self.documents.plan_digest
    }

    /// Returns what was known of the world when the plan was made.
    pub fn facts(&self) -> &Facts {
        &self.documents.facts
    }

    pub(crate) fn facts_digest(&self) -> &Digest {
        &self.documents.facts_digest
    }

    /// Returns the events from the first one on, read from the file as they are asked for.
    ///
    /// # Errors
    /// Returns an error if the log's first line can't be read; every event is a result of its own.
    pub fn events(&self) -> Result<Events, ReadEventsError> {
        Events::open(&self.dir.join(layout::EVENTS))
    }

    /// Returns the evidence.
    pub fn artifacts(&self) -> &Artifacts {
        &self.artifacts
    }
}
