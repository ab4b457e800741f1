//! The rules on the public tasks, on single rows, and on anything.

mod properties;
mod public;
mod rules;
mod tables;

use isobench_schema::assessment::{Finding, RevisionFacts};
use isobench_schema::commit_task::CommitTask;
use isobench_schema::tool::Tool;

use super::{Case, Given, Traits, lint};
use crate::command::words;
use crate::dataset::{self, Entry, EntryKind, Files, ReadFileError};
use crate::knowledge::Knowledge;

/// One file in memory.
struct OneFile(&'static str);

impl Files for OneFile {
    fn read(&self, _: &str) -> Result<Vec<u8>, ReadFileError> {
        Ok(self.0.as_bytes().to_vec())
    }

    fn list(&self, _: &str) -> Result<Vec<Entry>, ReadFileError> {
        Ok(Vec::new())
    }

    fn kind(&self, path: &str) -> Option<EntryKind> {
        Some(if path.is_empty() { EntryKind::Folder } else { EntryKind::File })
    }
}

/// Reads a file of rows.
fn tasks(text: &'static str) -> Vec<CommitTask> {
    let read = dataset::read(&OneFile(text), "/data", "rows.jsonl", &[]).unwrap();
    assert!(read.problems.is_empty(), "{:?}", read.problems);
    read.commit_tasks
}

/// A task with what its rules ask for.
struct Held {
    task: CommitTask,
    baseline: Option<RevisionFacts>,
    human: Option<RevisionFacts>,
    given: Option<Given>,
    traits: Option<Traits>,
}

impl Held {
    fn of(task: CommitTask) -> Self {
        let knowledge = Knowledge::embedded();
        let human = knowledge.commits.find(task.engine, task.commit.as_str()).cloned();
        let parent = human.as_ref().and_then(|human| human.parent.as_ref());
        let baseline = parent.and_then(|parent| knowledge.commits.find(task.engine, parent.as_str())).cloned();
        let given = task.command.as_deref().map(|command| given(command, task.server_command.as_deref()));
        let model = given.as_ref().and_then(|given| given.model.clone()).or_else(|| task.model.clone());
        let traits = model.and_then(|model| knowledge.models.find(&model)).and_then(Traits::of_row);
        Self { task, baseline, human, given, traits }
    }

    fn case(&self) -> Case<'_> {
        Case {
            task: &self.task,
            baseline: self.baseline.as_ref(),
            human: self.human.as_ref(),
            given: self.given.as_ref(),
            traits: self.traits.as_ref(),
            workload: None,
            primary: None,
            need: None,
            device: Knowledge::embedded().devices.find("h100"),
            devices: None,
            service_rate_per_s: None,
            knowledge: Knowledge::embedded(),
        }
    }

    fn findings(&self) -> Vec<Finding> {
        lint(&self.case())
    }
}

/// Reads commands word by word, without regard to any revision.
fn given(command: &str, server: Option<&str>) -> Given {
    let mut given = Given::default();
    for text in [Some(command), server].into_iter().flatten() {
        let Ok(script) = words::read(text) else { continue };
        let Some(simple) = script.commands.first() else { continue };
        given.variables.extend(simple.variables.iter().cloned());
        let words: Vec<&str> = simple.words.iter().map(|word| word.text.as_str()).collect();
        let line = words.join(" ");
        let words = words.into_iter().map(|word| {
            word.strip_prefix('[')
                .and_then(|word| word.strip_suffix(']'))
                .filter(|word| word.starts_with("--"))
                .unwrap_or(word)
        });
        given.tool = given.tool.or_else(|| Tool::ALL.iter().copied().find(|tool| line.contains(tool.as_str())));
        for word in words {
            if let Some((name, value)) = word.split_once('=').filter(|_| word.starts_with("--")) {
                given.push(name, vec![value.to_owned()]);
            } else if word.starts_with('-') {
                given.push(word, Vec::new());
            } else if let Some((_, values)) = given.options.last_mut() {
                values.push(word.to_owned());
            }
        }
    }
    given.model = given.values("--model").and_then(|values| values.first().cloned());
    given
}
