//! Facts about the commits and models of a dataset of commits.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use isobench_plan::dataset::Dataset;
use isobench_plan::knowledge::Knowledge;
use isobench_runner::environment::PrepareContext;
use isobench_runner::git::Repository;
use isobench_runner::inventory::revisions::{LookFor, NativePath, revisions};
use isobench_runner::inventory::{hub_cache, model_config};
use isobench_schema::assessment::RevisionFacts;
use isobench_schema::commit_task::CommitTask;
use isobench_schema::environment::EngineKind;
use isobench_schema::facts::Facts;
use isobench_schema::ids::Revision;

use crate::exit::{CommandError, Exit, WithExit as _};

/// Clones of engines on this machine, by engine.
#[derive(Debug, Clone, Default)]
pub(crate) struct Clones(BTreeMap<EngineKind, PathBuf>);

impl Clones {
    /// Reads `ENGINE=DIR` arguments.
    pub(crate) fn parse(arguments: &[String]) -> Result<Self, CommandError> {
        let mut clones = BTreeMap::new();
        for argument in arguments {
            let wrong = |why: &str| {
                CommandError::new(Exit::Usage, format!("`--clone {argument}` {why}"))
                    .hint("name an engine and a folder: --clone vllm=DIR")
            };
            let (engine, folder) = argument.split_once('=').ok_or_else(|| wrong("has no `=`"))?;
            let engine = EngineKind::parse(engine)
                .filter(|engine| *engine != EngineKind::Generic)
                .ok_or_else(|| wrong("names no engine that is known"))?;
            let folder = std::fs::canonicalize(folder).exit(Exit::Usage)?;
            if clones.insert(engine, folder).is_some() {
                return Err(wrong("names an engine that has a clone already"));
            }
        }
        Ok(Self(clones))
    }
}

/// Adds what clones say of the commits, and what this machine has of the models. A clone counts more than the table of known
/// commits; what neither knows is absent.
pub(super) fn gather(
    dataset: &Dataset,
    clones: &Clones,
    context: &PrepareContext<'_>,
    facts: &mut Facts,
) -> Result<(), CommandError> {
    for (engine, folder) in &clones.0 {
        let tasks: Vec<&CommitTask> = dataset.commit_tasks.iter().filter(|task| task.engine == *engine).collect();
        if !tasks.is_empty() {
            let found = from_clone(*engine, folder, &tasks, context)?;
            let repositories: BTreeSet<&String> = tasks.iter().map(|task| &task.repository).collect();
            for repository in repositories {
                facts.details.entry(repository.clone()).or_default().extend(found.iter().cloned());
            }
        }
    }
    let cache = hub_cache(|name| std::env::var(name).ok());
    let named: BTreeSet<&str> = dataset.commit_tasks.iter().flat_map(models).collect();
    for name in named {
        // A config that can't be read is as good as none: the catalogue may still know the model.
        if let Ok(Some(config)) = model_config(name, cache.as_deref()) {
            facts.model_configs.insert(name.to_owned(), config);
        }
    }
    Ok(())
}

/// Returns the models that a task names: beside its commands, and in them.
fn models(task: &CommitTask) -> Vec<&str> {
    let mut named: Vec<&str> = task.model.as_deref().into_iter().collect();
    for command in task.command.iter().chain(&task.server_command) {
        let mut words = command.split_whitespace();
        while let Some(word) = words.next() {
            match word.split_once('=') {
                Some(("--model" | "--model-path", name)) => named.push(name),
                None if matches!(word, "--model" | "--model-path") => named.extend(words.next()),
                Some(_) | None => {}
            }
        }
    }
    named
}

type Found = Vec<(String, RevisionFacts)>;

/// Returns the facts of the commits and of their baselines, by the names that tasks give them.
fn from_clone(
    engine: EngineKind,
    folder: &Path,
    tasks: &[&CommitTask],
    context: &PrepareContext<'_>,
) -> Result<Found, CommandError> {
    let name = folder.display().to_string();
    let refused = |message: &str| {
        CommandError::new(Exit::Usage, format!("cannot read the clone of {engine} in `{name}`: {message}"))
    };
    let repository = match Repository::open(&name, context).exit(Exit::Machine)? {
        Ok(repository) => repository,
        Err(failure) => return Err(refused(&failure.message)),
    };
    let look_for = look_for(engine);
    let read = |wanted: BTreeSet<Revision>| -> Result<Found, CommandError> {
        let wanted: Vec<Revision> = wanted.into_iter().collect();
        let found = match revisions(&repository, &wanted, &look_for, context).exit(Exit::Machine)? {
            Ok(found) => found,
            Err(failure) => return Err(refused(&failure.message)),
        };
        Ok(wanted.iter().zip(found).filter_map(|(revision, facts)| Some((revision.to_string(), facts?))).collect())
    };
    let mut found = read(tasks.iter().map(|task| task.commit.clone()).collect())?;
    let first_parents = found.iter().filter_map(|(_, facts)| Revision::new(facts.parent.as_ref()?.to_string()).ok());
    let named = tasks.iter().filter_map(|task| task.parent.clone());
    let baselines = first_parents.chain(named).collect();
    found.extend(read(baselines)?);
    Ok(found)
}

/// Returns what to look for in the revisions of an engine, by the tables.
fn look_for(engine: EngineKind) -> LookFor {
    let knowledge = Knowledge::embedded();
    let tables = knowledge.engines.of(engine);
    let native = tables.map(|engine| engine.native.as_slice()).unwrap_or_default();
    let programs = knowledge.options.programs().iter().filter(|program| program.tool.engine() == engine);
    let scripts: BTreeSet<String> =
        programs.flat_map(|program| program.place.iter().map(|place| place.path.clone())).collect();
    LookFor {
        main: tables.map_or_else(|| "main".to_owned(), |engine| engine.main.clone()),
        native: native.iter().map(|path| NativePath { path: path.path.clone(), unless: path.unless.clone() }).collect(),
        scripts: scripts.into_iter().collect(),
        stub: tables.and_then(|engine| engine.stub.clone()),
    }
}
