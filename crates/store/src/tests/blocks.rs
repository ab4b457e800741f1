//! A block that ran in a folder of its own, and the run that takes it in.

use std::fs;
use std::path::Path;

use isobench_schema::block::{BlockComplete, BlockSpec};
use isobench_schema::event::{BlockEnd, EventKind};
use isobench_schema::failure::{Failure, FailureClass, FailureStage};
use isobench_schema::ids::BlockId;
use isobench_schema::outcome::evidence;

use super::{chain, create, events};
use crate::samples::{block_complete, block_ended, block_spec, block_started, noise, run_started};
use crate::{BlockStore, Severity, TakenIn, layout, take_in, verify};

/// Returns what the plan gives a block.
fn planned(id: &BlockId) -> Option<BlockSpec> {
    (id.block < 6).then(|| block_spec(id.block, id.attempt))
}

/// Leaves what a worker leaves: evidence, events and the end.
fn run_block(dir: &Path, block: u32) -> BlockComplete {
    run_attempt(dir, block, 1)
}

fn run_attempt(dir: &Path, block: u32, attempt: u32) -> BlockComplete {
    let mut store = BlockStore::create(dir, &block_spec(block, attempt)).unwrap();
    store.append(block_started(block, attempt)).unwrap();
    let log = store.put_bytes(&noise(70_000)).unwrap();
    let none = store.put_bytes(b"").unwrap();
    let complete = block_complete(block, attempt, &[(evidence::SERVER_STDERR, log), (evidence::SERVER_STDOUT, none)]);
    store.finish(&complete).unwrap();
    complete
}

#[test]
fn a_finished_block_is_taken_in_once() {
    let (run, block) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut store = create(run.path());
    store.append(run_started()).unwrap();
    let ended = run_block(block.path(), 0).into();
    assert_eq!(take_in(&mut store, block.path(), planned).unwrap(), TakenIn::Added);
    let kinds: Vec<EventKind> = events(&store).into_iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [run_started(), block_started(0, 1), ended]);
    assert_eq!(take_in(&mut store, block.path(), planned).unwrap(), TakenIn::AlreadyThere);
    assert_eq!(events(&store).len(), 3);
    assert_eq!(verify(run.path()).unwrap(), []);
}

#[test]
fn a_block_that_the_run_has_begun_is_ended() {
    let (run, block) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut store = create(run.path());
    store.append(run_started()).unwrap();
    store.append(block_started(0, 1)).unwrap();
    run_block(block.path(), 0);
    assert_eq!(take_in(&mut store, block.path(), planned).unwrap(), TakenIn::Added);
    assert_eq!(events(&store).len(), 3);
}

/// Takes in a folder after `change`, and returns the refusal. Nothing of it may be in the run's events.
fn refusal(change: impl FnOnce(&Path)) -> String {
    let (run, block) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut store = create(run.path());
    run_block(block.path(), 0);
    change(block.path());
    let error = chain(&take_in(&mut store, block.path(), planned).unwrap_err());
    assert_eq!(events(&store), []);
    drop(store);
    assert!(verify(run.path()).unwrap().iter().all(|finding| finding.severity() == Severity::Note));
    error.replace(&block.path().display().to_string(), "DIR")
}

fn replace(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(from));
    fs::write(path, text.replace(from, to)).unwrap();
}

#[test]
fn a_block_that_is_unfinished_or_not_of_this_run_is_refused() {
    let remove = |name: &'static str| move |dir: &Path| fs::remove_file(dir.join(name)).unwrap();
    assert_eq!(
        refusal(remove(layout::COMPLETE)),
        "the block in `DIR` isn't complete: there is no `complete.json` in it"
    );
    assert_eq!(refusal(remove(layout::SPEC)), "`DIR` holds no block: there is no `spec.json` in it");
    let other_run = |dir: &Path| replace(&dir.join(layout::SPEC), "\"run\": \"run\"", "\"run\": \"other\"");
    assert_eq!(refusal(other_run), "the block in `DIR` belongs to the run `other`, not to `run`");
    let other_block = |dir: &Path| replace(&dir.join(layout::SPEC), "\"block\": 0", "\"block\": 1");
    assert_eq!(
        refusal(other_block),
        "the folder `DIR` has the specification of `task/block-1/attempt-1` and the end of `task/block-0/attempt-1`"
    );
    let other_arm = |dir: &Path| replace(&dir.join(layout::COMPLETE), "\"arm\": \"human\"", "\"arm\": \"agent:b\"");
    assert_eq!(
        refusal(other_arm),
        "the block in `DIR` has other records than its specification asks for: `task/block-0/attempt-1` began with the launches \
         [baseline, human, agent:a] and has records of [baseline, agent:b, agent:a]"
    );
}

#[test]
fn a_block_that_ran_by_another_specification_is_refused_by_the_key() {
    let changed = |from: &'static str, to: &'static str| move |dir: &Path| replace(&dir.join(layout::SPEC), from, to);
    let id = "the block in `DIR` isn't `task/block-0/attempt-1` as the run's plan has it:";
    assert_eq!(
        refusal(changed("\"requests\": 4", "\"requests\": 5")),
        format!("{id} `workload.requests` is 5, and the plan says 4")
    );
    assert_eq!(
        refusal(changed("\"environment\": {}", "\"environment\": {\"A\": \"b\"}")),
        format!("{id} `server.environment.A` is \"b\", and the plan says absent")
    );
    let (run, block) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut store = create(run.path());
    run_block(block.path(), 0);
    let error = take_in(&mut store, block.path(), |_| None).unwrap_err().to_string();
    assert!(error.ends_with("is `task/block-0/attempt-1`, which the run's plan hasn't"), "{error}");
    // What was known before a launch differs from attempt to attempt.
    let settled = |id: &BlockId| {
        let mut spec = planned(id)?;
        spec.launches[1].settled =
            Some(Failure::new(FailureStage::Acquire, FailureClass::PatchRejected, "known before"));
        Some(spec)
    };
    assert_eq!(take_in(&mut store, block.path(), settled).unwrap(), TakenIn::Added);
}

#[test]
fn a_block_that_is_complete_or_ended_otherwise_in_the_run_is_refused() {
    let interrupted = || -> EventKind {
        let mut complete = block_complete(0, 1, &[]);
        complete.end = BlockEnd::Interrupted;
        complete.into()
    };
    for (ended, attempt, expected) in [
        (block_ended(0, 1), 2, "the block in `DIR` is complete in the run already, by `task/block-0/attempt-1`"),
        (
            interrupted(),
            1,
            "`task/block-0/attempt-1` has ended in the run already, interrupted, and in another way in `DIR`",
        ),
        (
            block_ended(0, 1),
            1,
            "`task/block-0/attempt-1` has ended in the run already, complete, and in another way in `DIR`",
        ),
    ] {
        let (run, block) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut store = create(run.path());
        store.append(block_started(0, 1)).unwrap();
        store.append(ended).unwrap();
        run_attempt(block.path(), 0, attempt);
        let error = take_in(&mut store, block.path(), planned).unwrap_err().to_string();
        assert_eq!(error.replace(&block.path().display().to_string(), "DIR"), expected);
        assert_eq!(events(&store).len(), 2);
    }
    let (run, block) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut store = create(run.path());
    store.append(block_started(0, 1)).unwrap();
    store.append(interrupted()).unwrap();
    run_attempt(block.path(), 0, 2);
    assert_eq!(take_in(&mut store, block.path(), planned).unwrap(), TakenIn::Added);
}

#[test]
fn a_block_with_missing_or_altered_evidence_is_refused() {
    let log = isobench_schema::ids::Digest::of(&noise(70_000));
    let path = format!("artifacts/{}/{log}.zst", &log.as_str()[..2]);
    let missing = refusal(|dir| fs::remove_file(dir.join(&path)).unwrap());
    assert_eq!(missing, format!("the artifact {log} is missing: there is no `DIR/{path}`"));
    let altered = refusal(|dir| {
        let mut bytes = fs::read(dir.join(&path)).unwrap();
        bytes[40_000] ^= 1;
        fs::write(dir.join(&path), bytes).unwrap();
    });
    assert_eq!(altered, format!("the artifact {log} is damaged: `DIR/{path}` was cut or altered"));
}

#[test]
fn a_worker_that_was_killed_before_the_last_file_finishes_again() {
    let dir = tempfile::tempdir().unwrap();
    let complete = run_block(dir.path(), 0);
    fs::remove_file(dir.path().join(layout::COMPLETE)).unwrap();
    let mut store = BlockStore::create(dir.path(), &block_spec(0, 1)).unwrap();
    assert_eq!(store.complete().unwrap(), None);
    store.finish(&complete).unwrap();
    assert_eq!(store.complete().unwrap(), Some(complete));
    assert_eq!(store.events().unwrap().count(), 2);
}

#[test]
fn a_folder_of_another_block_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    run_block(dir.path(), 0);
    let error = BlockStore::create(dir.path(), &block_spec(1, 1)).unwrap_err();
    assert_eq!(error.to_string(), format!("`{}` holds another block than the one asked for", dir.path().display()));
    assert_eq!(BlockStore::open(dir.path()).unwrap().spec(), &block_spec(0, 1));
}
