//! The output check and the bound of belief, beside the baseline.

use crate::support::{
    answers, arm, attempts, broken, failed, find, scaled, spec, task, verdicts, window, with, wobble,
};
use isobench_analysis::judge;
use isobench_analysis::launch::LaunchInput;
use isobench_analysis::measure::LaunchDigest;
use isobench_schema::check::Check;
use isobench_schema::failure::FailureClass;
use isobench_schema::verdict::{CheckEffect, TaskJudgement, Verdict};

fn six(make: impl Fn(u32, &str, LaunchInput) -> LaunchInput) -> TaskJudgement {
    let task = task("t", &["baseline", "human", "agent:x"], 6);
    let wobbling = |block: u32, arm: &str, launch: LaunchInput| {
        let factor = if arm == "baseline" { 1.0 } else { 1.3 * wobble(block, 0.01) };
        make(block, arm, scaled(launch, factor))
    };
    let attempts = attempts(&task, 6, wobbling);
    verdicts(task, &attempts)
}

fn check(judgement: &TaskJudgement, of: &str, class: Option<FailureClass>) {
    let contrast = find(&judgement.contrasts, of, "baseline");
    let expected = if class.is_some() { Verdict::Invalid } else { Verdict::Better };
    assert_eq!(contrast.verdict, expected, "{}", contrast.reason);
    assert_eq!(contrast.charged_to, class.map(|_| arm(of)));
    let judged = judgement.arms.iter().find(|judged| judged.arm == arm(of)).unwrap();
    assert_eq!(judged.failures.first().map(|counted| counted.failure.class), class);
}

/// Gives other answers to the probes on both sides.
fn probes(digest: &mut LaunchDigest, texts: &[&str]) {
    digest.probes_before = answers(texts);
    digest.probes_after = answers(texts);
}

#[test]
fn wrong_answers_to_probes_are_charged_to_the_arm() {
    let judgement = six(|_, arm, launch| match arm {
        "agent:x" => with(launch, |digest| probes(digest, &["one two three four", "five six nine eight"])),
        _ => launch,
    });
    check(&judgement, "agent:x", Some(FailureClass::OutputMismatch));
    check(&judgement, "human", None);
    let failure = &judgement.arms[2].failures[0].failure;
    assert_eq!(
        failure.message,
        "the probes' answers agree with the baseline's by 75.0 %, and the baseline's with themselves by 100.0 % (the margin is 5.0 %)"
    );
    assert_eq!(failure.evidence[0].line, Some(3));
    assert_eq!(failure.evidence[0].text, "probe-before 1, from token 2 on: expected `seven eight`, got `nine eight`");
}

#[test]
fn wrong_answers_only_after_the_window_are_found() {
    let judgement = six(|_, arm, launch| match arm {
        "human" => with(launch, |digest| digest.probes_after = answers(&["one", "two"])),
        _ => launch,
    });
    check(&judgement, "human", Some(FailureClass::OutputMismatch));
    assert!(judgement.arms[1].failures[0].failure.evidence[0].text.starts_with("probe-after 0, from token 1"));
}

#[test]
fn an_arm_need_not_agree_better_than_the_baseline_with_itself() {
    // The baseline's second answer differs from block to block, so that it agrees with itself by a half of it.
    let texts = ["five six a b", "five six c d", "five six e f", "five six g h", "five six i j", "five six k l"];
    let judgement = six(|block, arm, launch| {
        let mine = texts[usize::try_from(block).unwrap()];
        match arm {
            "baseline" => with(launch, |digest| probes(digest, &["one two three four", mine])),
            "agent:x" => with(launch, |digest| probes(digest, &["one two three four", "nothing of it"])),
            _ => with(launch, |digest| probes(digest, &["one two three four", "five six y z"])),
        }
    });
    check(&judgement, "human", None);
    check(&judgement, "agent:x", Some(FailureClass::OutputMismatch));
}

#[test]
fn the_nearest_baseline_stands_in_for_one_that_failed() {
    let judgement = six(|block, arm, launch| match (block, arm) {
        (0, "baseline") => failed(launch, FailureClass::ServerDied),
        (0, "agent:x") => with(launch, |digest| probes(digest, &["garbage", "garbage"])),
        _ => launch,
    });
    let agent = &judgement.arms[2];
    assert_eq!((agent.valid, agent.failures[0].failure.class), (5, FailureClass::OutputMismatch));
}

#[test]
fn without_probes_answers_are_not_checked() {
    let judgement = six(|_, arm, launch| {
        with(launch, |digest| {
            probes(digest, &[]);
            if arm == "agent:x" {
                digest.answers = answers(&["garbage", "garbage"]);
            }
        })
    });
    check(&judgement, "agent:x", None);
}

#[test]
fn an_engine_that_knows_probes_is_found_by_its_measured_answers() {
    let judgement = six(|_, arm, launch| match arm {
        "agent:x" => with(launch, |digest| digest.answers = answers(&["red red red", "black black black"])),
        _ => launch,
    });
    check(&judgement, "agent:x", Some(FailureClass::OutputMismatch));
    let broken = judgement.broken.iter().find(|broken| broken.check.name == Check::DrawnAnswers).unwrap();
    assert_eq!((broken.arm.clone(), broken.effect), (arm("agent:x"), CheckEffect::Decides));
    let evidence = &judgement.arms[2].failures[0].failure.evidence[0];
    assert_eq!(evidence.text, "measure 0, from token 1 on: expected `green blue`, got `red red`");
}

#[test]
fn where_batching_changes_answers_the_human_arm_is_the_control() {
    let judgement = six(|_, arm, launch| match arm {
        "human" => with(launch, |digest| digest.answers = answers(&["red green blue", "black x x"])),
        "agent:x" => with(launch, |digest| digest.answers = answers(&["red x x", "black white y"])),
        _ => launch,
    });
    check(&judgement, "human", None);
    check(&judgement, "agent:x", None);
}

#[test]
fn wrong_answers_anywhere_in_the_window_are_found() {
    // So many of 100 answers are the baseline's in the human arm's launch, if there is one, and must be in the agent's.
    for (human, agent, class) in [
        (Some(0), 5, None),
        (Some(0), 6, Some(FailureClass::OutputMismatch)),
        (Some(20), 60, None),
        (Some(20), 61, Some(FailureClass::OutputMismatch)),
        (None, 52, None),
        (None, 53, Some(FailureClass::OutputMismatch)),
    ] {
        let judgement = six(|_, arm, launch| match (arm, human) {
            ("agent:x", _) => with(launch, |digest| digest.answer_digests = window(agent)),
            ("human", Some(wrong)) => with(launch, |digest| digest.answer_digests = window(wrong)),
            ("human", None) => failed(launch, FailureClass::StartCrashed),
            _ => launch,
        });
        check(&judgement, "agent:x", class);
        if class.is_some() {
            let failure = &judgement.arms[2].failures[0].failure;
            assert_eq!(failure.check.map(|check| check.name), Some(Check::AllAnswers), "{failure}");
            let text = &failure.evidence[0].text;
            assert_eq!(*text, format!("measure {}: the answer isn't the baseline's", 100 - agent));
        }
    }
}

#[test]
fn sampled_answers_are_not_compared() {
    let mut task = task("t", &["baseline", "agent:x"], 6);
    task.workload.temperature = 0.7;
    let attempts = attempts(&task, 6, |block, arm, launch| match arm {
        "agent:x" => with(scaled(launch, 1.3 * wobble(block, 0.01)), |digest| digest.answers = answers(&["x", "y"])),
        _ => launch,
    });
    check(&verdicts(task, &attempts), "agent:x", None);
}

#[test]
fn a_speed_up_beyond_belief_is_implausible_and_a_slow_down_is_not() {
    let judgement = six(|_, arm, launch| match arm {
        "agent:x" => scaled(launch, 10.0),
        "human" => scaled(launch, 0.001),
        _ => launch,
    });
    check(&judgement, "agent:x", Some(FailureClass::Implausible));
    assert_eq!(find(&judgement.contrasts, "human", "baseline").verdict, Verdict::Worse);
}

#[test]
fn one_block_alone_shows_what_is_charged_and_what_would_spoil_it_does_not_hide_it() {
    let task = task("t", &["baseline", "human", "agent:garbage", "agent:early", "agent:crashed"], 1);
    let attempts = attempts(&task, 1, |_, arm, launch| match arm {
        "agent:garbage" => {
            broken(with(launch, |digest| probes(digest, &["garbage", "garbage"])), FailureClass::WindowTooShort)
        }
        "agent:early" => broken(launch, FailureClass::ClientBound),
        "agent:crashed" => failed(launch, FailureClass::StartCrashed),
        _ => launch,
    });
    let charged = judge::charged(&spec(&task, &attempts[0]), &attempts[0]);
    let found: Vec<_> = charged.iter().map(|(arm, failure)| (arm.to_string(), failure.class)).collect();
    assert_eq!(found, [("agent:garbage".to_owned(), FailureClass::OutputMismatch)]);
}
