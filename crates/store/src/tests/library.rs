//! The library of spreads: round trip, broken lines, writers at the same time, and writers that die.

use std::fs;
use std::thread;

use isobench_schema::ids::{ArmId, Digest, RunId, TaskId};
use isobench_schema::measurement::MetricName;
use isobench_schema::noise::{ArrivalClass, NoiseEntry, NoiseKey, SpreadOrigin, WorkloadClass};
use isobench_schema::units::Millis;
use isobench_schema::workload::WorkloadKind;

use crate::{LibraryError, NoiseLibrary};

fn entry(task: &str, degrees: u32) -> NoiseEntry {
    let class = WorkloadClass {
        kind: WorkloadKind::Serving,
        arrival: ArrivalClass::Closed,
        load: Some(4),
        input_tokens: None,
        output_tokens: 64,
        script: None,
    };
    NoiseEntry {
        key: NoiseKey { host: "h".to_owned(), device: "cpu: x".to_owned(), model: "m".to_owned(), class },
        metric: MetricName::OutputThroughput,
        deviation: 0.1 + 0.2,
        degrees,
        origin: SpreadOrigin::AgainstItself,
        run: RunId::new("run").unwrap(),
        plan: Digest::of(b"plan"),
        began_ms: Millis::new(1_764_000_000_000.25).unwrap(),
        task: TaskId::new(task).unwrap(),
        of: ArmId::Human,
        against: ArmId::Baseline,
        date: "2026-01-01T00:00:00Z".to_owned(),
        isobench: "0.1.0".to_owned(),
    }
}

fn library(dir: &tempfile::TempDir) -> NoiseLibrary {
    NoiseLibrary::at(dir.path().join("some/where/noise.jsonl"))
}

#[test]
fn what_is_added_is_read_again_to_the_last_bit() {
    let dir = tempfile::tempdir().unwrap();
    let library = library(&dir);
    assert_eq!(library.read().unwrap(), crate::LibraryContents::default());
    assert_eq!(library.add(&[entry("a", 11), entry("b", 11)]).unwrap(), 2);
    assert_eq!(library.read().unwrap().entries, [entry("a", 11), entry("b", 11)]);
    // The same again is there, whenever it is said.
    let again = NoiseEntry { date: "later".to_owned(), ..entry("a", 11) };
    assert_eq!(library.add(&[again]).unwrap(), 0);
    // Of a run that went on, the later entry counts; the file keeps both lines.
    assert_eq!(library.add(&[entry("a", 23)]).unwrap(), 1);
    assert_eq!(library.read().unwrap().entries, [entry("b", 11), entry("a", 23)]);
    assert_eq!(fs::read_to_string(library.path()).unwrap().lines().count(), 3);
}

#[test]
fn a_spread_that_no_run_can_find_is_a_problem() {
    let dir = tempfile::tempdir().unwrap();
    let library = library(&dir);
    library.begin().unwrap();
    let found = |deviation: f64, degrees: u32| NoiseEntry { deviation, degrees, ..entry("a", 11) };
    for wrong in [found(-0.3, 11), found(0.0, 11), found(1e308, 11), found(0.05, 0), found(0.05, u32::MAX)] {
        fs::remove_file(library.path()).unwrap();
        library.add(std::slice::from_ref(&wrong)).unwrap();
        let contents = library.read().unwrap();
        assert!(contents.entries.is_empty(), "{wrong:?}");
        assert!(contents.problems.iter().all(|problem| problem.message.starts_with("no spread is ")), "{contents:?}");
        assert_eq!(contents.problems.len(), 1);
    }
}

#[test]
fn an_entry_is_taken_out_by_the_beginning_of_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let library = library(&dir);
    library.add(&[entry("a", 11), entry("b", 11)]).unwrap();
    let id = entry("a", 11).id().unwrap();
    let remove = |id: &str| library.remove(&[id.to_owned()], "2026-01-02T00:00:00Z", "0.1.0");
    assert!(matches!(remove("no such"), Err(LibraryError::Unknown { .. })));
    assert!(matches!(remove(""), Err(LibraryError::Unknown { .. })));
    assert_eq!(remove(&id[..10]).unwrap(), 1);
    assert_eq!(library.read().unwrap().entries, [entry("b", 11)]);
    assert!(matches!(remove(&id), Err(LibraryError::Unknown { .. })));
    // Measured again, it counts again.
    library.add(&[NoiseEntry { degrees: 12, ..entry("a", 11) }]).unwrap();
    assert_eq!(library.read().unwrap().entries.len(), 2);
}

#[test]
fn a_broken_line_is_named_and_loses_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let library = library(&dir);
    library.add(&[entry("a", 11)]).unwrap();
    let mut text = fs::read_to_string(library.path()).unwrap();
    text.push_str("{\"format\":\"isobench.noise/9\"}\n\nnonsense\n");
    text.push_str(&text.lines().next().unwrap().replace("0.30000000000000004", "\"much\""));
    text.push('\n');
    text.push_str("{\"format\":\"isobench.noi");
    fs::write(library.path(), text).unwrap();
    library.add(&[entry("b", 11)]).unwrap();
    let contents = library.read().unwrap();
    assert_eq!(contents.entries, [entry("a", 11), entry("b", 11)]);
    let lines: Vec<u64> = contents.problems.iter().map(|problem| problem.line).collect();
    assert_eq!(lines, [2, 4, 5, 6]);
    let newer = &contents.problems[0].message;
    assert!(newer.contains("newer than this isobench"), "{newer}");
    assert!(contents.problems[1].message.contains("not a valid `isobench.noise` object"), "{contents:?}");
}

#[test]
fn writers_at_the_same_time_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let library = library(&dir);
    thread::scope(|scope| {
        for writer in 0..8 {
            let library = &library;
            scope.spawn(move || {
                for number in 0..5 {
                    library.add(&[entry(&format!("t{writer}-{number}"), 11)]).unwrap();
                    library.read().unwrap();
                }
            });
        }
    });
    let contents = library.read().unwrap();
    assert_eq!((contents.entries.len(), contents.problems.len()), (40, 0));
}

#[test]
fn what_a_killed_writer_left_is_no_part_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let library = library(&dir);
    library.add(&[entry("a", 11)]).unwrap();
    // Killed before the rename, a writer leaves its unfinished file and a lock that the kernel has let go.
    fs::write(library.path().with_file_name("tmp-abc"), "{\"format\"").unwrap();
    fs::write(library.path().with_file_name("noise.jsonl.lock"), "").unwrap();
    library.add(&[entry("b", 11)]).unwrap();
    assert_eq!(library.read().unwrap().entries, [entry("a", 11), entry("b", 11)]);
}

#[test]
fn a_library_that_cannot_be_written_stays_as_it_was() {
    let library = NoiseLibrary::at("/proc/none/noise.jsonl");
    let error = library.add(&[entry("a", 11)]).unwrap_err();
    assert!(error.to_string().contains("/proc/none"), "{error}");
}
