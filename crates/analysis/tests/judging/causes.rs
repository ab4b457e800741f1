//! What logs say of failures stands beside them: who has the cause, how far the arms came, and what a retry could change.

use std::collections::BTreeMap;

use isobench_analysis::classify::Classifier;
use isobench_analysis::launch::LaunchInput;
use isobench_analysis::legacy::{ExportInput, ExportedFile, export};
use isobench_schema::cause::{Blame, FixKind};
use isobench_schema::coverage::{Coverage, CoverageStage, RetryActor};
use isobench_schema::failure::FailureClass;
use isobench_schema::verdict::{Judgement, Verdict};
use serde_json::{Value, json};

use crate::support::*;

const ARMS: &[&str] = &["baseline", "human", "agent:x"];
const AIMV2: &str = "Traceback (most recent call last):\n  File \"x.py\", line 1, in <module>\n\
    ValueError: 'aimv2' is already used by a Transformers config, pick another name.\n";

/// Returns a launch that ended before it was ready, and left this log.
fn crashed(launch: LaunchInput, log: &str) -> LaunchInput {
    let cause = Classifier::new().text("server.stderr", log.as_bytes());
    LaunchInput { cause: Some(cause), ..failed(launch, FailureClass::StartCrashed) }
}

fn six(make: impl Fn(u32, &str, LaunchInput) -> LaunchInput) -> Judgement {
    let task = task("t", ARMS, 6);
    let attempts = attempts(&task, 6, make);
    judged(&plan(vec![task]), &attempts).unwrap()
}

/// Returns the number of arms that reached each stage.
fn reached(judgement: &Judgement) -> Vec<u64> {
    coverage(judgement).steps.iter().map(|step| step.reached).collect()
}

fn coverage(judgement: &Judgement) -> &Coverage {
    judgement.coverage.as_ref().unwrap()
}

#[test]
fn a_cause_that_every_arm_has_is_shared_and_its_recipe_is_what_a_retry_needs() {
    let judgement = six(|_, _, launch| crashed(launch, AIMV2));
    for arm in &judgement.tasks[0].arms {
        let [counted] = arm.failures.as_slice() else { panic!("one kind of failure: {:?}", arm.failures) };
        let cause = counted.cause.as_ref().unwrap();
        assert_eq!((cause.signature.as_deref(), cause.blame), (Some("B1"), Some(Blame::Shared)), "{}", arm.arm);
        assert_eq!((cause.arms.len(), counted.launches), (3, 6));
    }
    assert_eq!(reached(&judgement), [3, 3, 3, 0, 0, 0, 0]);
    let [retry] = coverage(&judgement).retries.as_slice() else { panic!("one group") };
    assert_eq!((retry.fix, retry.actor, retry.names.len()), (FixKind::Recipe, RetryActor::Isobench, 3));
}

#[test]
fn an_arm_cannot_excuse_itself_by_what_it_prints() {
    let log = "ERROR: [Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): address already in use\n";
    let judgement = six(|block, arm, launch| match arm {
        "agent:x" => crashed(launch, log),
        "human" => scaled(launch, 1.3 * wobble(block, 0.005)),
        _ => launch,
    });
    let task = &judgement.tasks[0];
    let cause = task.arms[2].failures[0].cause.as_ref().unwrap();
    assert_eq!(cause.signature.as_deref(), Some("E1"), "the log says that the port was taken");
    let verdict = find(&task.contrasts, "agent:x", "baseline").verdict;
    assert_eq!(verdict, Verdict::AgentFailed, "and the arm answers for it all the same");
    assert_eq!(reached(&judgement), [3, 3, 3, 2, 2, 2, 2]);
    let lost = &coverage(&judgement).steps[3].lost;
    assert_eq!(lost[0].class, "start-crashed", "what isobench saw is counted, not what the log says: {lost:?}");
    check_settled(&judgement);
}

/// Checks that the agent's failure is its result, and nothing that a retry changes.
fn check_settled(judgement: &Judgement) {
    let found: Vec<_> = coverage(judgement).retries.iter().map(|retry| (retry.fix, retry.actor)).collect();
    assert_eq!(found, [(FixKind::None, RetryActor::Nobody)], "{:?}", coverage(judgement).retries);
}

#[test]
fn what_an_agent_answers_for_is_nothing_that_a_retry_changes() {
    for class in [FailureClass::OutputLength, FailureClass::OutputMismatch, FailureClass::TokenCountMismatch] {
        check_settled(&six(|block, arm, launch| match arm {
            "agent:x" => broken(launch, class),
            "human" => scaled(launch, 1.3 * wobble(block, 0.005)),
            _ => launch,
        }));
    }
    check_settled(&six(|block, arm, launch| match arm {
        "agent:x" => crashed(launch, "RuntimeError: something new\n"),
        "human" => scaled(launch, 1.3 * wobble(block, 0.005)),
        _ => launch,
    }));
}

#[test]
fn what_an_agent_alone_fails_by_is_its_result_and_no_reason_for_another_machine() {
    let log = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n";
    let judgement = six(|_, arm, launch| if arm == "agent:x" { crashed(launch, log) } else { launch });
    assert_eq!(reached(&judgement), [3, 3, 3, 2, 2, 2, 2], "where there is nothing to beat, too");
    let agents = coverage(&judgement).retries.iter().find(|retry| retry.names == ["t/agent:x"]).unwrap();
    assert_eq!((agents.fix, agents.actor), (FixKind::None, RetryActor::Nobody));
    let judgement = six(|_, arm, launch| if arm == "human" { crashed(launch, log) } else { launch });
    let human = coverage(&judgement).retries.iter().find(|retry| retry.names == ["t/human"]).unwrap();
    assert!(human.can_change(), "another revision may need more than the baseline: {human:?}");
}

#[test]
fn failures_of_one_class_are_told_apart_by_their_signatures() {
    let judgement = six(|block, arm, launch| match (arm, block) {
        ("agent:x", 0..=3) => crashed(launch, AIMV2),
        ("agent:x", _) => crashed(launch, "RuntimeError: something new\n"),
        _ => launch,
    });
    let failures = &judgement.tasks[0].arms[2].failures;
    let found: Vec<_> = failures
        .iter()
        .map(|counted| {
            let cause = counted.cause.as_ref().unwrap();
            (counted.launches, cause.signature.as_deref(), cause.blame)
        })
        .collect();
    assert_eq!(found, [(4, Some("B1"), Some(Blame::Arm)), (2, None, None)]);
}

#[test]
fn what_is_undecided_came_as_far_as_its_numbers() {
    let judgement = six(|block, arm, launch| match arm {
        "baseline" => launch,
        "human" => scaled(launch, wobble(block, 0.3)),
        _ => scaled(launch, wobble(block + 3, 0.3)),
    });
    let found = coverage(&judgement);
    assert_eq!(found.reached(CoverageStage::Comparable), 3);
    assert_eq!(found.reached(CoverageStage::Decided), 0);
    assert!(found.retries.iter().all(|retry| retry.change == "a plan with more blocks"), "{:?}", found.retries);
}

#[test]
fn an_agent_that_failed_by_itself_is_no_success_in_the_old_shape_though_some_launches_count() {
    let task = task("t", ARMS, 6);
    let attempts = attempts(&task, 6, |block, arm, launch| match (arm, block) {
        ("agent:x", 0..=2) => crashed(launch, "RuntimeError: something new\n"),
        ("human", _) => scaled(launch, 1.3 * wobble(block, 0.005)),
        _ => launch,
    });
    let judgement = judged(&plan(vec![task.clone()]), &attempts).unwrap();
    let judged = &judgement.tasks[0];
    assert_eq!(judged.arms[2].valid, 3);
    let durations_s = BTreeMap::new();
    let input =
        ExportInput { run: &judgement.run, task: &task, judgement: judged, durations_s: &durations_s, timestamp: None };
    let files = export(&[input]);
    let status = |file: &ExportedFile| (file.object["status"].as_str().unwrap().to_owned(), file.path.clone());
    for (status, path) in files.iter().map(status) {
        assert_eq!(status, if path.ends_with("_agent_result.json") { "error" } else { "success" }, "{path}");
    }
    let agents = files.iter().find(|file| file.path.ends_with("_agent_result.json")).unwrap();
    assert_eq!((&agents.object["metrics"], agents.object.get("duration_s")), (&json!({}), Some(&Value::Null)));
    assert!(agents.object["error"].as_str().unwrap().starts_with("start-crashed: "), "{agents:?}");
}
