//! What is beyond belief, until a person confirms it.

use crate::support::{answers, arm, attempts, confirmed, find, plan, scaled, spec, task, verdicts, with, wobble};
use isobench_analysis::judge;
use isobench_analysis::judge::Attempt;
use isobench_schema::check::{Check, CheckUnit};
use isobench_schema::confirmation::Confirmations;
use isobench_schema::event::{Event, EventKind};
use isobench_schema::failure::FailureClass;
use isobench_schema::ids::TaskId;
use isobench_schema::measurement::MetricName;
use isobench_schema::plan::PlannedTask;
use isobench_schema::task::Ceiling;
use isobench_schema::units::Millis;
use isobench_schema::verdict::{CheckEffect, TaskJudgement, Verdict};

/// Returns a task and six blocks in which the agent is so many times as fast as the baseline.
fn fast(factor: f64) -> (PlannedTask, Vec<Attempt>) {
    let task = task("t", &["baseline", "human", "agent:x"], 6);
    let attempts = attempts(&task, 6, |block, arm, launch| match arm {
        "agent:x" => scaled(launch, factor * wobble(block, 0.01)),
        "human" => scaled(launch, 1.3 * wobble(block, 0.01)),
        _ => launch,
    });
    (task, attempts)
}

/// Returns a person's word on the agent.
fn word(checks: &[Check]) -> Confirmations {
    let kind = EventKind::Confirmed {
        task: TaskId::new("t").unwrap(),
        arm: arm("agent:x"),
        checks: checks.to_vec(),
        by: "ann".to_owned(),
        reason: "it caches whole answers, which the task allows".to_owned(),
    };
    let mut held = Confirmations::default();
    held.apply(&Event { sequence: 9, at_ms: Millis::new(5.0).unwrap(), kind });
    held
}

fn judged(task: PlannedTask, attempts: &[Attempt], word: &Confirmations) -> TaskJudgement {
    confirmed(&plan(vec![task]), attempts, word).unwrap().tasks.remove(0)
}

/// Checks the agent's verdict against the baseline, and the effect of the one check that each of its launches breaks.
fn check(judgement: &TaskJudgement, verdict: Verdict, broken: Option<(Check, CheckEffect)>) {
    let contrast = find(&judgement.contrasts, "agent:x", "baseline");
    assert_eq!(contrast.verdict, verdict, "{}", contrast.reason);
    let found: Vec<_> = judgement.broken.iter().map(|found| (found.check.name, found.effect)).collect();
    assert_eq!(found, vec![broken; 6].into_iter().flatten().collect::<Vec<_>>());
}

#[test]
fn a_ratio_beyond_the_tasks_bound_is_implausible() {
    let (mut task, attempts) = fast(12.0);
    let judgement = verdicts(task.clone(), &attempts);
    check(&judgement, Verdict::Invalid, Some((Check::BelievableRatio, CheckEffect::Decides)));
    let contrast = find(&judgement.contrasts, "agent:x", "baseline");
    assert_eq!(contrast.charged_to, Some(arm("agent:x")));
    assert!(contrast.reason.contains("implausible: it seems 12.0 times as fast"), "{}", contrast.reason);
    assert_eq!(judgement.broken[0].class, FailureClass::Implausible);
    let measured = judgement.broken[0].check.measured.unwrap();
    assert!((measured.value.get() - 12.036).abs() < 1e-9, "{measured:?}");
    assert!((measured.bound.get() - 10.0).abs() < 1e-9 && measured.unit == CheckUnit::Times, "{measured:?}");
    task.metric.believable_ratio = Some(13.0);
    check(&verdicts(task, &attempts), Verdict::Better, None);
}

#[test]
fn nobody_is_beyond_what_the_devices_allow_unless_the_baseline_is_too() {
    let ceiling =
        |output_tok_per_s, step_ms| Some(Ceiling { output_tok_per_s, step_ms, because: "reckoned".to_owned() });
    let (mut task, attempts) = fast(3.0);
    task.metric.ceiling = ceiling(400.0, 0.1);
    check(&verdicts(task.clone(), &attempts), Verdict::Better, None);
    // The baseline has 100 tokens per second, the agent 300.
    task.metric.ceiling = ceiling(200.0, 0.1);
    let judgement = verdicts(task.clone(), &attempts);
    check(&judgement, Verdict::Invalid, Some((Check::Roofline, CheckEffect::Decides)));
    assert!(judgement.broken[0].message.contains("301 tokens per second, where 200 are possible"), "{judgement:?}");
    task.metric.ceiling = ceiling(50.0, 0.1);
    check(&verdicts(task.clone(), &attempts), Verdict::Better, None);
    task.metric.ceiling = ceiling(1e6, 0.1);
    let bursts: Vec<Attempt> = attempts
        .into_iter()
        .map(|mut attempt| {
            let agents = attempt.launches.iter_mut().filter(|launch| launch.record.launch.arm == arm("agent:x"));
            for launch in agents {
                let values = &mut launch.digest.as_mut().unwrap().measurement.values;
                values.insert(MetricName::MeanTpotMs, 0.01);
            }
            attempt
        })
        .collect();
    check(&verdicts(task, &bursts), Verdict::Invalid, Some((Check::Roofline, CheckEffect::Decides)));
}

#[test]
fn a_persons_word_makes_it_count_and_every_report_can_say_whose() {
    let (task, attempts) = fast(12.0);
    let judgement = judged(task, &attempts, &word(&[Check::BelievableRatio]));
    check(&judgement, Verdict::Better, Some((Check::BelievableRatio, CheckEffect::Confirmed)));
    assert_eq!((judgement.confirmations.len(), judgement.confirmations[0].by.as_str()), (1, "ann"));
}

#[test]
fn a_persons_word_reaches_no_check_that_it_does_not_name_and_none_that_shows_a_wrong() {
    let (task, attempts) = fast(12.0);
    let judgement = judged(task.clone(), &attempts, &word(&[Check::Roofline]));
    check(&judgement, Verdict::Invalid, Some((Check::BelievableRatio, CheckEffect::Decides)));
    let wrong: Vec<Attempt> = attempts
        .into_iter()
        .map(|mut attempt| {
            attempt.launches = { attempt.launches.into_iter() }
                .map(|launch| match launch.record.launch.arm.to_string().as_str() {
                    "agent:x" => with(launch, |digest| digest.probes_before = answers(&["no", "no"])),
                    _ => launch,
                })
                .collect();
            attempt
        })
        .collect();
    let judgement = judged(task, &wrong, &word(&[Check::BelievableRatio, Check::ProbeAnswers]));
    let contrast = find(&judgement.contrasts, "agent:x", "baseline");
    assert_eq!(contrast.verdict, Verdict::Invalid, "{}", contrast.reason);
    let of =
        |check: Check| judgement.broken.iter().filter(move |found| found.check.name == check).map(|found| found.effect);
    assert!(of(Check::ProbeAnswers).all(|effect| effect == CheckEffect::Decides));
    assert_eq!(of(Check::BelievableRatio).collect::<Vec<_>>(), [CheckEffect::Confirmed; 6]);
}

#[test]
fn what_is_charged_at_a_blocks_end_needs_nobodys_word() {
    let (task, attempts) = fast(12.0);
    let charged = judge::charged(&spec(&task, &attempts[0]), &attempts[0]);
    let checks: Vec<_> = charged.values().map(|failure| failure.check.unwrap().name).collect();
    assert_eq!(checks, [Check::BelievableRatio]);
}
