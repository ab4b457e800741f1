//! The public datasets in `examples/iso-bench` are read without loss, and come back as they were.

use std::collections::BTreeSet;

use isobench_plan::dataset::{self, Dataset, Entry, EntryKind, Files, ReadFileError};
use isobench_plan::intake::{export, to_lines};
use isobench_schema::commit_task::RowFormat;
use isobench_schema::environment::EngineKind;
use serde_json::Value;

const TASKS: &str = include_str!("../../../examples/iso-bench/tasks.jsonl");
const COMMITS: &str = include_str!("../../../examples/iso-bench/vllm-96.jsonl");

/// One file in memory.
struct OneFile<'t>(&'t str);

impl Files for OneFile<'_> {
    fn read(&self, _: &str) -> Result<Vec<u8>, ReadFileError> {
        Ok(self.0.as_bytes().to_vec())
    }

    fn list(&self, _: &str) -> Result<Vec<Entry>, ReadFileError> {
        Err(ReadFileError::Missing)
    }

    fn kind(&self, _: &str) -> Option<EntryKind> {
        Some(EntryKind::File)
    }
}

fn read(text: &str) -> Dataset {
    let dataset = dataset::read(&OneFile(text), "/data", "rows.jsonl", &[]).expect("a dataset");
    assert_eq!(dataset.problems, []);
    dataset
}

fn rows(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("a row is JSON")).collect()
}

/// Checks that every row is a task of its own that keeps the whole row.
fn kept_whole(text: &str, dataset: &Dataset) {
    let kept: Vec<Value> = dataset.commit_tasks.iter().map(|task| Value::Object(task.columns.clone())).collect();
    assert_eq!(kept, rows(text));
    let ids: BTreeSet<_> = dataset.commit_tasks.iter().map(|task| &task.id).collect();
    assert_eq!(ids.len(), dataset.commit_tasks.len());
    assert!(dataset.commit_tasks.iter().all(|task| task.subject.is_some()));
    let imported = read(&to_lines(&dataset.header, &dataset.commit_tasks).expect("tasks are JSON"));
    assert_eq!(imported.commit_tasks, dataset.commit_tasks);
}

#[test]
fn the_54_published_tasks_are_read_without_loss() {
    let dataset = read(TASKS);
    assert_eq!((dataset.commit_tasks.len(), dataset.rows), (54, 54));
    kept_whole(TASKS, &dataset);
    let count = |engine| dataset.commit_tasks.iter().filter(|task| task.engine == engine).count();
    assert_eq!((count(EngineKind::Vllm), count(EngineKind::Sglang)), (39, 15));
    let lacking = dataset.commit_tasks.iter().filter(|task| task.command.is_none() || task.parent.is_none());
    assert_eq!(lacking.map(|task| task.id.as_str()).collect::<Vec<_>>(), ["vllm-015069b0"]);
    assert!(dataset.commit_tasks.iter().all(|task| task.origin.format == RowFormat::TaskList));
}

#[test]
fn the_96_commits_are_read_without_loss_and_written_as_they_were() {
    let dataset = read(COMMITS);
    assert_eq!((dataset.commit_tasks.len(), dataset.rows), (96, 96));
    kept_whole(COMMITS, &dataset);
    assert!(dataset.commit_tasks.iter().all(|task| task.commit.as_str().len() == 40 && task.parent.is_some()));
    assert_eq!(dataset.commit_tasks.iter().filter(|task| task.command.is_none()).count(), 7);
    let from = |source: &str| rows(COMMITS).iter().filter(|row| row["command_source"] == source).count();
    assert_eq!((from("recorded-run"), from("published-tasks")), (69, 20));
    assert!(dataset.commit_tasks.iter().all(|task| task.origin.format == RowFormat::Published));
    let exported = export::to_lines(&export::published(&dataset.header, &dataset.commit_tasks)).unwrap();
    assert_eq!(rows(&exported), rows(COMMITS));
    let keys = |text: &str| text.lines().next().unwrap().split("\":").map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(keys(&exported).len(), keys(COMMITS).len());
    assert!(exported.starts_with("{\"commit_hash\":"), "the columns keep their order");
}

#[test]
fn the_published_tasks_are_filled_with_the_published_columns() {
    let dataset = read(TASKS);
    let exported = export::published(&dataset.header, &dataset.commit_tasks);
    let mut found = read(&export::to_lines(&exported).unwrap());
    for (task, first) in found.commit_tasks.iter_mut().zip(&dataset.commit_tasks) {
        task.columns.clone_from(&first.columns);
    }
    assert_eq!(found.commit_tasks, dataset.commit_tasks, "what is planned is the same");
}
