//! What a plan must know of the world: the machine, the revisions, the inputs.

mod commits;
mod images_here;
mod inputs_on_hub;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use isobench_plan::choose::{Choice, inputs_needed, revisions_needed};
use isobench_plan::dataset::Dataset;
use isobench_runner::environment::PrepareContext;
use isobench_runner::git::Repository;
use isobench_runner::inputs::Hub;
use isobench_runner::{inputs, inventory};
use isobench_schema::facts::{Facts, Host, ResolvedRevision};

use crate::exit::{CommandError, Exit, WithExit as _};
use crate::terminal::Terminal;

pub(crate) use commits::Clones;
pub(crate) use images_here::{gather_images, image_disk_mib};

/// How long one git command may take; a large repository that is mirrored for the first time is the longest.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Where to look.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Where<'a> {
    /// The folder of environments and mirrors.
    pub(crate) cache: &'a Path,
    /// Clones of engines.
    pub(crate) clones: &'a Clones,
    /// Where what can't be read is said.
    pub(crate) terminal: Terminal,
    /// Folders of models' configs.
    pub(crate) models: &'a [PathBuf],
    /// Where inputs are looked for.
    pub(crate) hub: &'a Hub,
    /// Whether the hub is asked for what commits name.
    pub(crate) ask_for_commits: bool,
    /// Set when the command is interrupted.
    pub(crate) cancel: &'a AtomicBool,
}

/// Gathers what the planner needs for the chosen tasks.
///
/// # Errors
/// Returns an error if this machine can't look; a revision that isn't there is a fact.
pub(crate) fn gather(dataset: &Dataset, choice: &Choice, place: Where<'_>) -> Result<Facts, CommandError> {
    let mut facts = Facts { host: host(dataset, place.cache), ..Facts::default() };
    let mut wanted: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for (repository, revision) in revisions_needed(dataset, choice) {
        wanted.entry(repository).or_default().push(revision);
    }
    let scratch = tempfile::tempdir().exit(Exit::Machine)?;
    let log = scratch.path().join("log");
    let context = PrepareContext {
        cache: place.cache,
        scratch: scratch.path(),
        log: &log,
        timeout: PATIENCE,
        cancel: place.cancel,
        reaper: None,
        steps: None,
    };
    for (name, revisions) in wanted {
        let opened = Repository::open(&name, &context).exit(Exit::Machine)?;
        let resolved = match opened {
            Ok(repository) => {
                commits::of_tasks(dataset, (&name, &repository), &revisions, &context, &mut facts)?;
                repository.resolve_all(&revisions, &context).exit(Exit::Machine)?
            }
            Err(failure) => vec![ResolvedRevision::Missing { failure }; revisions.len()],
        };
        facts.revisions.insert(name, revisions.iter().map(ToString::to_string).zip(resolved).collect());
    }
    for path in inputs_needed(dataset, choice) {
        let digest = inputs::digest(Path::new(&path)).exit(Exit::Machine)?;
        facts.inputs.insert(path, digest.map(String::from));
    }
    inputs_on_hub::gather(dataset, choice, (place, &context), &mut facts)?;
    commits::gather(dataset, place, &context, &mut facts)?;
    Ok(facts)
}

/// Returns the machine as far as it decides anything. Free disk changes all the time, and is a fact only where a task
/// asks for it, so that the same dataset gives the same plan.
fn host(dataset: &Dataset, cache: &Path) -> Host {
    let mut host = inventory::host(&[cache]);
    if dataset.tasks.iter().all(|task| task.requirements.disk_gib.is_none()) {
        host.disk_free_mib = None;
    }
    host
}
