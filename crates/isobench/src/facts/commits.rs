//! Facts about the commits and models of a dataset of commits.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error as _;
use std::path::{Path, PathBuf};

use isobench_plan::command::words;
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
use isobench_schema::failure::Failure;
use isobench_schema::ids::Revision;

use super::{Where, inputs_on_hub};
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
            if folder.is_empty() {
                return Err(wrong("names no folder"));
            }
            let folder = std::fs::canonicalize(folder)
                .map_err(|error| wrong(&format!("names the folder `{folder}`, which can't be used: {error}")))?;
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
    place: Where<'_>,
    context: &PrepareContext<'_>,
    facts: &mut Facts,
) -> Result<(), CommandError> {
    for (engine, folder) in &place.clones.0 {
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
    let named: BTreeSet<String> = dataset.commit_tasks.iter().flat_map(models).collect();
    let files: BTreeSet<String> = dataset.commit_tasks.iter().flat_map(words_of).collect();
    inputs_on_hub::gather_for_commits(&named, &files, (place, context), facts)?;
    for name in named {
        match model_config(&name, place.models, cache.as_deref()) {
            Ok(Some(config)) => {
                facts.model_configs.insert(name, config);
            }
            Ok(None) => {}
            // The catalogue may still know the model.
            Err(error) => {
                let because = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
                place.terminal.status(&format!("the config of the model `{name}` isn't used: {error}{because}"));
            }
        }
    }
    Ok(())
}

/// Adds what the repository of hand-written tasks says of their revisions, where the tables know how their engine was at which
/// time. What can't be read is absent.
pub(super) fn of_tasks(
    dataset: &Dataset,
    (name, repository): (&str, &Repository),
    wanted: &[Revision],
    context: &PrepareContext<'_>,
    facts: &mut Facts,
) -> Result<(), CommandError> {
    let engines = dataset.tasks.iter().filter(|task| task.repository == name).map(|task| task.engine);
    let Some(engine) = engines.into_iter().find(|engine| *engine != EngineKind::Generic) else { return Ok(()) };
    let found = revisions(repository, wanted, &look_for(engine), context).exit(Exit::Machine)?;
    for (revision, known) in wanted.iter().zip(found.unwrap_or_default()) {
        if let Some(known) = known {
            facts.details.entry(name.to_owned()).or_default().insert(revision.to_string(), known);
        }
    }
    Ok(())
}

/// Returns the models that a task names: beside its commands, and in them.
fn models(task: &CommitTask) -> Vec<String> {
    let mut named: Vec<String> = task.model.iter().cloned().collect();
    for command in task.command.iter().chain(&task.server_command) {
        // What can't be read as a command is a finding of its own.
        let Ok(script) = words::read(command) else { continue };
        for simple in &script.commands {
            named.extend(models_in(simple.words.iter().map(|word| word.text.as_str())));
        }
    }
    named
}

/// Returns the words of a task's commands.
fn words_of(task: &CommitTask) -> Vec<String> {
    let scripts = task.command.iter().chain(&task.server_command).filter_map(|command| words::read(command).ok());
    let words = scripts.flat_map(|script| script.commands).flat_map(|simple| simple.words);
    words.map(|word| word.text).collect()
}

/// Returns the models that an argument list names.
fn models_in<'w>(words: impl Iterator<Item = &'w str>) -> Vec<String> {
    let mut named = Vec::new();
    let mut words = words.peekable();
    let mut program = "";
    while let Some(word) = words.next() {
        let names_model = match word.split_once('=') {
            Some(("--model" | "--model-path", name)) => {
                named.push(name.to_owned());
                false
            }
            Some(_) => false,
            None => {
                matches!(word, "--model" | "--model-path")
                    || word == "serve" && program.rsplit('/').next() == Some("vllm")
            }
        };
        if names_model {
            named.extend(words.next_if(|word| !word.starts_with('-')).map(str::to_owned));
        }
        program = word;
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
    let refused = |failure: &Failure| {
        let said = failure.evidence.first().map(|line| format!(": {}", line.text)).unwrap_or_default();
        let message = format!("cannot read the clone of {engine} in `{name}`: {}{said}", failure.message);
        CommandError::new(Exit::Usage, message).hint("name the folder of a git clone: --clone ENGINE=DIR")
    };
    let repository = match Repository::open(&name, context).exit(Exit::Machine)? {
        Ok(repository) => repository,
        Err(failure) => return Err(refused(&failure)),
    };
    let look_for = look_for(engine);
    let read = |wanted: BTreeSet<Revision>| -> Result<Found, CommandError> {
        let wanted: Vec<Revision> = wanted.into_iter().collect();
        let found = match revisions(&repository, &wanted, &look_for, context).exit(Exit::Machine)? {
            Ok(found) => found,
            Err(failure) => return Err(refused(&failure)),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_found_as_a_shell_would_split_the_commands() {
        for (command, expected) in [
            ("python bench.py --model 'org/model a' --x 1", &["org/model a"][..]),
            ("M=org/m && vllm serve \"$M\" --port 1", &["org/m"]),
            ("/usr/bin/vllm serve org/m", &["org/m"]),
            ("vllm serve --model=org/m", &["org/m"]),
            ("python -m sglang.launch_server --model-path org/m", &["org/m"]),
            ("vllm bench serve --port 1", &[]),
            ("python bench.py --model --x", &[]),
        ] {
            let script = words::read(command).unwrap();
            let words = script.commands.iter().flat_map(|simple| &simple.words).map(|word| word.text.as_str());
            assert_eq!(models_in(words), expected, "{command}");
        }
    }

    #[test]
    fn a_clone_that_is_not_there_is_named() {
        for (argument, expected) in [
            ("vllm=/no/such/folder", "`--clone vllm=/no/such/folder` names the folder `/no/such/folder`"),
            ("vllm=", "`--clone vllm=` names no folder"),
            ("vllm", "`--clone vllm` has no `=`"),
        ] {
            let error = Clones::parse(&[argument.to_owned()]).unwrap_err();
            assert!(error.message.starts_with(expected), "{}", error.message);
        }
    }
}
