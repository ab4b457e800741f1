//! The record of a real run of vLLM on a CPU gives the same judgement for ever, to the byte.

use std::fs;
use std::path::PathBuf;

use isobench_analysis::judge::{Attempt, JudgeInput, judge};
use isobench_analysis::launch::LaunchInput;
use isobench_analysis::measure::LaunchDigest;
use isobench_schema::confirmation::Confirmations;
use isobench_schema::event::BlockEnd;
use isobench_schema::format;
use isobench_schema::ids::{BlockId, RunId};
use isobench_schema::outcome::LaunchRecord;
use isobench_schema::plan::Plan;
use isobench_schema::verdict::{Judgement, Verdict};
use serde::Deserialize;

/// An attempt as the fixture holds it: what the judge is given.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredAttempt {
    id: BlockId,
    end: BlockEnd,
    launches: Vec<StoredLaunch>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredLaunch {
    record: LaunchRecord,
    digest: Option<LaunchDigest>,
}

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../testkit/fixtures/vllm-cpu").join(name)
}

fn fixture(name: &str) -> Vec<u8> {
    fs::read(path(name)).expect("the fixture is in the repository")
}

fn attempts() -> Vec<Attempt> {
    let text = String::from_utf8(fixture("attempts.jsonl")).expect("the fixture is UTF-8");
    let attempt = |line: &str| {
        let stored: StoredAttempt = serde_json::from_str(line).expect("a line of the fixture is an attempt");
        let launch = |stored: StoredLaunch| LaunchInput { record: stored.record, digest: stored.digest, cause: None };
        Attempt { id: stored.id, end: stored.end, launches: stored.launches.into_iter().map(launch).collect() }
    };
    text.lines().map(attempt).collect()
}

#[test]
fn a_real_run_is_judged_as_it_was() {
    let plan: Plan = format::from_slice(&fixture("plan.json")).unwrap();
    let attempts = attempts();
    let run = RunId::new("vllm-cpu").unwrap();
    let found =
        judge(&JudgeInput { run, plan: &plan, attempts: &attempts, confirmations: &Confirmations::default() }).unwrap();
    let text = format::to_pretty(&found).unwrap();
    if std::env::var_os("ISOBENCH_WRITE_FIXTURES").is_some() {
        fs::write(path("judgement.json"), &text).unwrap();
    }
    assert_eq!(found, format::from_slice(&fixture("judgement.json")).unwrap());
    assert_eq!(text.as_bytes(), fixture("judgement.json"), "ISOBENCH_WRITE_FIXTURES=1 writes it anew");
}

#[test]
fn the_human_commit_of_the_real_run_is_better() {
    let judgement: Judgement = format::from_slice(&fixture("judgement.json")).unwrap();
    let contrasts = &judgement.tasks[0].contrasts;
    assert_eq!(contrasts[0].of.to_string(), "human");
    assert_eq!(contrasts[0].verdict, Verdict::Better);
}
