//! Verifying a run's folder, and listing runs.

use std::fs;
use std::path::Path;

use isobench_schema::event::{EventKind, RunEnd};
use isobench_schema::outcome::{Artifact, evidence};

use super::{create, create_with_a_block};
use crate::samples::{block_complete, block_ended, block_id, block_started, noise, run_id, run_started};
use crate::{Finding, RunStore, Severity, layout, list, verify};

/// Creates a run with evidence, changes its folder, and returns what is found.
fn findings(change: impl FnOnce(&Path, &Artifact)) -> Vec<Finding> {
    let dir = tempfile::tempdir().unwrap();
    let mut store = create(dir.path());
    store.append(run_started()).unwrap();
    store.append(block_started(0, 1)).unwrap();
    let artifact = store.put_bytes(&noise(5000)).unwrap();
    let end = block_complete(0, 1, &[(evidence::REQUESTS, artifact.clone())]);
    store.append(end.into()).unwrap();
    let path = store.artifacts().path(&artifact.digest);
    drop(store);
    change(if path.is_file() { &path } else { dir.path() }, &artifact);
    verify(dir.path()).unwrap()
}

fn run_dir(artifact: &Path) -> &Path {
    artifact.ancestors().nth(3).unwrap()
}

#[test]
fn an_untouched_run_has_no_findings() {
    assert_eq!(findings(|_, _| ()), []);
}

#[test]
fn missing_altered_and_foreign_evidence_is_found() {
    let described = |change: fn(&Path, &Artifact)| -> Vec<String> {
        findings(change).iter().map(|finding| finding.to_string().split(" (").next().unwrap().to_owned()).collect()
    };
    let launch = "`requests.jsonl` of `task/block-0/attempt-1/baseline`";
    assert_eq!(described(|path, _| fs::remove_file(path).unwrap()), [format!("{launch} is missing")]);
    let altered = described(|path, _| {
        let mut bytes = fs::read(path).unwrap();
        bytes[3000] ^= 1;
        fs::write(path, bytes).unwrap();
    });
    assert_eq!(altered, [format!("{launch} was cut or altered")]);
    let cut = described(|path, _| fs::write(path, &fs::read(path).unwrap()[..100]).unwrap());
    assert_eq!(cut, [format!("{launch} was cut or altered")]);
}

#[test]
fn a_wrong_length_in_a_record_is_found() {
    let found = findings(|path, artifact| {
        let log = run_dir(path).join(layout::EVENTS);
        let text = fs::read_to_string(&log).unwrap();
        let claimed = format!("\"bytes\":{}", artifact.bytes);
        // One of the three records, so that the other two still agree with the file.
        fs::write(&log, text.replacen(&claimed, "\"bytes\":7", 1)).unwrap();
    });
    assert!(matches!(found.as_slice(), [Finding::LengthDiffers { found: 5000, .. }]), "{found:?}");
}

#[test]
fn evidence_that_nothing_refers_to_is_only_noted() {
    let found = findings(|path, _| {
        let artifacts = run_dir(path).join(layout::ARTIFACTS);
        fs::write(artifacts.join("note.txt"), "").unwrap();
        fs::write(path.with_file_name(format!("{}.zst", "0".repeat(64))), "").unwrap();
    });
    assert_eq!(found.len(), 2);
    assert!(found.iter().all(|finding| finding.severity() == Severity::Note));
}

#[test]
fn altered_facts_and_damaged_events_are_found() {
    let found = findings(|path, _| {
        let facts = run_dir(path).join(layout::FACTS);
        fs::write(&facts, fs::read_to_string(&facts).unwrap().replace("\"processors\": 0", "\"processors\": 64"))
            .unwrap();
        let log = run_dir(path).join(layout::EVENTS);
        let text = fs::read_to_string(&log).unwrap();
        let start = text.rfind("{\"sequence\":2").unwrap();
        fs::write(&log, text[..start].to_owned() + "{}\n").unwrap();
    });
    assert!(matches!(found[0], Finding::FactsAltered { .. }));
    let Finding::EventsDamaged { message } = &found[1] else { panic!("{found:?}") };
    assert!(message.contains("line 4 of `") && message.contains("is damaged: missing field"), "{message}");
    assert_eq!(found[2], Finding::AttemptOpen { id: block_id(0, 1) });
}

#[test]
fn an_attempt_that_the_plan_does_not_have_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = create_with_a_block(dir.path());
    let (EventKind::BlockStarted { order, .. }, id) = (block_started(0, 1), block_id(99, 1)) else { unreachable!() };
    store.append(EventKind::BlockStarted { id: id.clone(), order: order.clone() }).unwrap();
    drop(store);
    let expected = [Finding::NotPlanned { id: id.clone(), order }, Finding::AttemptOpen { id }];
    assert_eq!(verify(dir.path()).unwrap(), expected);
}

#[test]
fn a_cut_last_line_is_noted() {
    let dir = tempfile::tempdir().unwrap();
    drop(create_with_a_block(dir.path()));
    let path = dir.path().join(layout::EVENTS);
    fs::write(&path, fs::read_to_string(&path).unwrap() + "{\"seq").unwrap();
    assert_eq!(verify(dir.path()).unwrap(), [Finding::TornTail { bytes: 5 }]);
}

#[test]
fn runs_are_listed_with_what_they_came_to() {
    let runs = tempfile::tempdir().unwrap();
    assert!(list(&runs.path().join("absent")).unwrap().is_empty());
    fs::create_dir(runs.path().join("a-not-a-run")).unwrap();
    let mut finished = create_with_a_block(&runs.path().join("b-finished"));
    finished.append(EventKind::RunEnded { end: RunEnd::Finished, message: None }).unwrap();
    drop(finished);
    drop(create_with_a_block(&runs.path().join("c-damaged")));
    fs::write(runs.path().join("c-damaged").join(layout::PLAN), "{}").unwrap();
    let live: RunStore = create(&runs.path().join("d-live"));

    let entries = list(runs.path()).unwrap();
    let names: Vec<_> = entries.iter().map(|entry| entry.dir.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(names, ["b-finished", "c-damaged", "d-live"]);
    let summary = entries[0].summary.as_ref().unwrap();
    assert_eq!((&summary.run, summary.end, summary.live), (&run_id(), Some(RunEnd::Finished), false));
    assert_eq!((summary.blocks_complete, summary.blocks_planned, summary.launches_measured), (1, 6, 3));
    assert!(entries[1].summary.is_err());
    assert!(entries[2].summary.as_ref().unwrap().live);
    drop(live);
}

#[test]
fn an_interrupted_run_that_goes_on_has_no_end() {
    let runs = tempfile::tempdir().unwrap();
    let mut store = create(&runs.path().join("run"));
    for kind in [
        run_started(),
        EventKind::RunEnded { end: RunEnd::Interrupted, message: None },
        run_started(),
        block_started(0, 1),
        block_ended(0, 1),
    ] {
        store.append(kind).unwrap();
    }
    assert_eq!(list(runs.path()).unwrap()[0].summary.as_ref().unwrap().end, None);
}
