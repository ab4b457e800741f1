//! Real vLLM: one short block of its three arms. It takes minutes and gigabytes, so it runs only where it is asked for.
//!
//! `python3 examples/vllm-cpu/prepare.py DIR`, then `ISOBENCH_VLLM_TASK=DIR cargo test -p isobench --test vllm`.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "all of it is test code")]

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use isobench_schema::event::{BlockEnd, Event, EventKind};
use isobench_schema::format;
use isobench_schema::measurement::MetricName;
use isobench_schema::outcome::{LaunchRecord, Outcome, evidence};
use isobench_schema::verdict::{Judgement, TaskJudgement};
use isobench_store::RunReader;

/// The variable that names the folder that `prepare.py` wrote.
const TASK: &str = "ISOBENCH_VLLM_TASK";
/// The arms of the example.
const ARMS: &[&str] = &["agent:half-way", "baseline", "human"];
/// What makes one block short: the windows then last seconds. A wide margin, so that other work on the machine, which lets
/// the throughput drift, repeats no block.
const SHORT: &[&str] = &["design.blocks=1", "design.min-window-s=1", "workload.requests=200", "metric.margin=0.9"];

fn isobench<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_isobench"));
    command.args(arguments).stdin(Stdio::null()).output().unwrap()
}

/// Returns the records of the launches of complete blocks.
fn launches(run: &Path) -> Vec<LaunchRecord> {
    let of = |event: Event| match event.kind {
        EventKind::BlockEnded { end: BlockEnd::Complete, launches, .. } => launches,
        EventKind::BlockEnded { .. }
        | EventKind::RunStarted { .. }
        | EventKind::OrphansEnded { .. }
        | EventKind::BlockStarted { .. }
        | EventKind::LaunchStage { .. }
        | EventKind::LookTaken { .. }
        | EventKind::Confirmed { .. }
        | EventKind::ConfirmationWithdrawn { .. }
        | EventKind::RunEnded { .. } => Vec::new(),
    };
    let events = RunReader::open(run).unwrap().events().unwrap();
    events.map(Result::unwrap).flat_map(of).collect()
}

fn judgement(run: &Path) -> TaskJudgement {
    let output = isobench([OsStr::new("report"), run.as_os_str(), OsStr::new("--json")]);
    let judgement: Judgement = format::from_slice(&output.stdout).unwrap();
    judgement.tasks.into_iter().next().unwrap()
}

#[test]
fn real_vllm_is_served_proven_and_measured_in_every_arm() {
    let Some(task) = std::env::var_os(TASK) else {
        eprintln!(
            "skipped: real vLLM takes minutes and 12 GB of disk; {TASK} must name a folder that prepare.py wrote"
        );
        return;
    };
    // Not in a folder that launches share, where a launch would report it.
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let run = dir.path().join("run");
    let mut arguments = vec![OsStr::new("run"), &task, OsStr::new("--allow-unisolated"), OsStr::new("--out")];
    arguments.push(run.as_os_str());
    arguments.extend(SHORT.iter().flat_map(|setting| [OsStr::new("--set"), OsStr::new(setting)]));
    let ran = isobench(arguments);
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(run.is_dir(), "{said}");

    let records = launches(&run);
    let mut arms: Vec<String> = records.iter().map(|record| record.launch.arm.to_string()).collect();
    arms.sort();
    assert_eq!(arms, ARMS, "{said}");
    for record in &records {
        assert_eq!(record.outcome, Outcome::Measured, "{}: {said}", record.launch.arm);
        for name in [evidence::STATIC_PROOF, evidence::LIVE_PROOF, evidence::REQUESTS] {
            assert!(record.evidence.contains_key(name), "{} has no {name}", record.launch.arm);
        }
    }

    let judged = judgement(&run);
    for arm in &judged.arms {
        assert_eq!((arm.valid, &arm.failures), (1, &Vec::new()), "{}", arm.arm);
        assert!(arm.means[&MetricName::OutputThroughput] > 0.0, "{}", arm.arm);
    }
    // The answers of the three are the same tokens, so no arm may be charged with anything.
    assert!(judged.contrasts.iter().all(|contrast| contrast.charged_to.is_none()), "{:#?}", judged.contrasts);
    assert!(judged.unlike.is_empty(), "{:?}", judged.unlike);

    let verified = isobench([OsStr::new("verify"), run.as_os_str()]);
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stderr));
}
