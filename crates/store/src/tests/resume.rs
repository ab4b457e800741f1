//! A run's folder after its process was killed, and when somebody else wants it.

use std::fs;
use std::path::Path;

use isobench_schema::event::{EventKind, RunEnd};
use isobench_schema::ids::{LaunchId, RunId};

use super::{chain, create, create_with_a_block, events};
use crate::samples::{arms, block_ended, block_id, block_started, facts, plan, run_id, run_started};
use crate::{LockError, OpenRunError, RunReader, RunStore, layout};

#[test]
fn a_line_that_is_cut_at_any_byte_never_happened() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(layout::EVENTS);
    let mut store = create(dir.path());
    store.append(run_started()).unwrap();
    store.append(block_started(0, 1)).unwrap();
    let before = fs::read(&path).unwrap();
    store.append(block_ended(0, 1)).unwrap();
    drop(store);
    let whole = fs::read(&path).unwrap();
    for length in before.len()..whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        let reader = RunReader::open(dir.path()).unwrap();
        let mut seen = reader.events().unwrap();
        assert_eq!(seen.by_ref().map(Result::unwrap).count(), 2, "{length}");
        let mut store = RunStore::open(dir.path()).unwrap();
        let torn = (length - before.len()) as u64;
        assert_eq!((store.torn_bytes(), seen.torn_bytes()), (torn, torn));
        assert_eq!(fs::read(&path).unwrap(), before);
        assert_eq!(store.open_attempts(), [(block_id(0, 1), arms())]);
        let event = store.append(block_ended(0, 1)).unwrap();
        assert_eq!(event.sequence, 2);
        assert_eq!(events(&store).last(), Some(&event));
    }
}

#[test]
fn a_folder_whose_creation_was_killed_is_created_again() {
    let whole = tempfile::tempdir().unwrap();
    drop(create(whole.path()));
    let plan_bytes = fs::read(whole.path().join(layout::PLAN)).unwrap();
    // What is there after each step of the creation.
    let steps: [&[&str]; 5] = [
        &[],
        &[layout::LOCK],
        &[layout::LOCK, "tmp-half"],
        &[layout::LOCK, layout::PLAN],
        &[layout::LOCK, layout::PLAN, layout::FACTS],
    ];
    for names in steps {
        let dir = tempfile::tempdir().unwrap();
        for name in names {
            let bytes = if *name == layout::PLAN { plan_bytes.as_slice() } else { b"{" };
            fs::write(dir.path().join(name), bytes).unwrap();
        }
        let mut store = create(dir.path());
        assert_eq!(store.append(run_started()).unwrap().sequence, 0);
        assert!(!dir.path().join("tmp-half").exists());
        assert_eq!(store.plan(), &plan());
        assert_eq!(store.facts(), &facts());
        assert_eq!(*store.plan_digest(), plan().digest().unwrap());
    }
}

#[test]
fn creating_the_same_run_again_goes_on_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let before = events(&create_with_a_block(dir.path()));
    let mut store = create(dir.path());
    assert_eq!(events(&store), before);
    assert!(store.has_ended(&block_id(0, 1)));
    assert_eq!(store.append(block_started(1, 1)).unwrap().sequence, 3);
}

fn refusal(dir: &Path, run: &str, seed: u64) -> String {
    let mut plan = plan();
    plan.seed = seed;
    chain(&RunStore::create(dir, &RunId::new(run).unwrap(), &plan, &facts()).unwrap_err())
}

#[test]
fn a_folder_that_holds_something_else_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().display().to_string();
    fs::write(dir.path().join("thesis.tex"), "").unwrap();
    let expected = format!("`{path}` isn't empty and holds no run: there is `thesis.tex` in it");
    assert_eq!(refusal(dir.path(), "run", 1), expected);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    fs::remove_file(dir.path().join("thesis.tex")).unwrap();

    drop(create_with_a_block(dir.path()));
    assert_eq!(refusal(dir.path(), "other", 1), format!("`{path}` holds the run `run`, not `other`"));
    let text = refusal(dir.path(), "run", 2);
    let digest = plan().digest().unwrap();
    assert!(text.starts_with(&format!("`{path}` holds the plan {digest}, not ")), "{text}");
}

#[test]
fn a_folder_without_a_run_gets_no_lock() {
    let dir = tempfile::tempdir().unwrap();
    let error = RunStore::open(dir.path()).unwrap_err();
    assert_eq!(error.to_string(), format!("`{}` holds no run: there is no `plan.json` in it", dir.path().display()));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn only_one_process_writes() {
    let dir = tempfile::tempdir().unwrap();
    let store = create_with_a_block(dir.path());
    for error in [
        RunStore::open(dir.path()).unwrap_err(),
        RunStore::create(dir.path(), &run_id(), &plan(), &facts()).unwrap_err(),
    ] {
        let OpenRunError::Lock(LockError::Locked { holder: Some(holder), .. }) = error else { panic!("{error:?}") };
        assert_eq!(holder.process, std::process::id());
    }
    assert_eq!(RunReader::open(dir.path()).unwrap().events().unwrap().count(), 3);
    drop(store);
    RunStore::open(dir.path()).unwrap();
}

#[test]
fn unfinished_files_are_removed() {
    let dir = tempfile::tempdir().unwrap();
    let store = create_with_a_block(dir.path());
    let derived = store.derived().unwrap();
    drop(store);
    let left = [dir.path().join("tmp-1"), dir.path().join("artifacts/tmp-2"), derived.join("tmp-3")];
    for path in &left {
        fs::write(path, "half").unwrap();
    }
    RunStore::open(dir.path()).unwrap();
    assert!(left.iter().all(|path| !path.exists()));
}

/// A change of an event log's lines.
type Change = fn(&mut Vec<String>);

fn damage(change: Change) -> String {
    let dir = tempfile::tempdir().unwrap();
    drop(create_with_a_block(dir.path()));
    let path = dir.path().join(layout::EVENTS);
    let mut lines: Vec<String> = fs::read_to_string(&path).unwrap().lines().map(str::to_owned).collect();
    change(&mut lines);
    fs::write(&path, lines.join("\n") + "\n").unwrap();
    let error = chain(&RunStore::open(dir.path()).unwrap_err());
    assert_eq!(fs::read_to_string(&path).unwrap(), lines.join("\n") + "\n", "a damaged log is left as it is");
    error.replace(&dir.path().display().to_string(), "DIR")
}

#[test]
fn damage_before_the_last_line_names_the_line() {
    let cases: [(&str, Change); 6] = [
        ("line 3 of `DIR/events.jsonl` is damaged: expected value at line 1 column 1", |lines| lines[2] = "x".into()),
        ("line 3 of `DIR/events.jsonl` is event 2 where event 1 must stand", |lines| drop(lines.remove(2))),
        ("line 4 of `DIR/events.jsonl` is event 1 where event 2 must stand", |lines| {
            lines.insert(3, lines[2].clone());
        }),
        (
            "line 1 of `DIR/events.jsonl` is damaged or of another format: expected the format `isobench.events/1`, found no `format` field",
            |lines| {
                lines[0] = "{}".into();
            },
        ),
        (
            "line 1 of `DIR/events.jsonl` is damaged or of another format: the format `isobench.events/2` is newer than this isobench, which reads up to version 1",
            |lines| {
                lines[0] = lines[0].replace("events/1", "events/2");
            },
        ),
        (
            "line 3 of `DIR/events.jsonl` contradicts the lines before it: `task/block-0/attempt-1` never began",
            |lines| {
                lines.remove(2);
                lines[2] = lines[2].replace("\"sequence\":2", "\"sequence\":1");
            },
        ),
    ];
    for (expected, change) in cases {
        assert_eq!(damage(change), expected);
    }
}

#[test]
fn a_plan_that_was_changed_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    drop(create_with_a_block(dir.path()));
    let path = dir.path().join(layout::PLAN);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"seed\": 1", "\"seed\": 2")).unwrap();
    let begun = plan().digest().unwrap();
    for error in
        [RunStore::open(dir.path()).unwrap_err().to_string(), RunReader::open(dir.path()).unwrap_err().to_string()]
    {
        assert!(error.ends_with(&format!(", and the run began with {begun}")), "{error}");
    }
}

#[test]
fn an_event_that_contradicts_the_log_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = create_with_a_block(dir.path());
    let before = events(&store);
    let launch = LaunchId { block: block_id(0, 1), arm: arms()[0].clone() };
    let stage = isobench_schema::event::LaunchStage::Ready;
    for (kind, expected) in [
        (block_ended(0, 1), "`task/block-0/attempt-1` has ended already"),
        (block_started(0, 1), "`task/block-0/attempt-1` has begun twice"),
        (block_ended(1, 1), "`task/block-1/attempt-1` never began"),
        (EventKind::LaunchStage { launch, stage }, "`task/block-0/attempt-1` has ended already"),
    ] {
        let error = store.append(kind).unwrap_err();
        assert_eq!(chain(&error), format!("the event contradicts the log: {expected}"));
    }
    assert_eq!(events(&store), before);
    store.append(EventKind::RunEnded { end: RunEnd::Finished, message: None }).unwrap();
}

#[test]
fn a_folder_that_may_not_be_written_is_no_full_disk() {
    let error = RunStore::create(Path::new("/proc/run"), &run_id(), &plan(), &facts()).unwrap_err();
    assert_eq!(error.to_string(), "failed to create the folder `/proc/run`");
    assert!(!crate::is_disk_full(&error));
}
