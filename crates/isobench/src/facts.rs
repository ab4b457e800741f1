//! What a plan must know of the world: the machine, the revisions, the inputs.

use std::collections::BTreeMap;
use std::path::Path;

use isobench_plan::choose::{Choice, inputs_needed, revisions_needed};
use isobench_plan::dataset::Dataset;
use isobench_runner::git::Repository;
use isobench_runner::{inputs, inventory};
use isobench_schema::facts::{Facts, Host, ResolvedRevision};

use crate::exit::{CommandError, Exit, WithExit as _};

/// Gathers what the planner needs for the chosen tasks.
///
/// # Errors
/// Returns an error if this machine can't look; a revision that isn't there is a fact.
pub(crate) fn gather(dataset: &Dataset, choice: &Choice, cache: &Path) -> Result<Facts, CommandError> {
    let mut facts = Facts { host: host(dataset, cache), ..Facts::default() };
    let mut wanted: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for (repository, revision) in revisions_needed(dataset, choice) {
        wanted.entry(repository).or_default().push(revision);
    }
    for (name, revisions) in wanted {
        let opened = Repository::open(&name, cache).exit(Exit::Machine)?;
        let mut found = BTreeMap::new();
        for revision in revisions {
            let resolved = match &opened {
                Ok(repository) => repository.resolve(&revision).exit(Exit::Machine)?,
                Err(failure) => ResolvedRevision::Missing { failure: failure.clone() },
            };
            found.insert(revision.to_string(), resolved);
        }
        facts.revisions.insert(name, found);
    }
    for path in inputs_needed(dataset, choice) {
        let digest = inputs::digest(Path::new(&path)).exit(Exit::Machine)?;
        facts.inputs.insert(path, digest.map(String::from));
    }
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
