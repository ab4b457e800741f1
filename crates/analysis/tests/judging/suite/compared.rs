//! Which tasks differ, and which agents.

use isobench_analysis::judge::Attempt;
use isobench_analysis::stats::sequential::looks;
use isobench_schema::failure::FailureClass;
use isobench_schema::plan::Spending;
use isobench_schema::suite::RankMeasure;
use isobench_schema::verdict::{LookDecision, Verdict};

use super::{Made, claims, contrast, headline, near, rates, table};
use crate::support::{arm, attempts, failed, judged, plan, scaled, task, wobble};

#[test]
fn which_tasks_differ_is_said_with_the_error_held() {
    let mut made = Made::default();
    let p = [0.001, 0.01, 0.02, 0.03, 0.5];
    for (place, p) in p.into_iter().enumerate() {
        let estimate = if place == 1 { -0.1 } else { 0.1 };
        let mut own = contrast("human", "baseline", Verdict::Better, estimate);
        own.looks[0].p = Some(p);
        made.add(vec![own]);
    }
    let suite = made.found();
    let found = claims(&suite, "human", "baseline");
    // statsmodels.stats.multitest.multipletests(p, method='holm'), and 'fdr_bh'
    for (test, (holm, rate)) in
        found.tests.iter().zip([(0.005, 0.005), (0.04, 0.025), (0.06, 0.1 / 3.0), (0.06, 0.0375), (0.5, 0.5)])
    {
        near(test.holm, holm);
        near(test.benjamini_hochberg, rate);
        near(test.in_task, test.p);
    }
    assert_eq!((found.holm.faster, found.holm.slower), (1, 1));
    assert_eq!((found.benjamini_hochberg.faster, found.benjamini_hochberg.slower), (3, 1));
}

#[test]
fn inside_a_task_claims_follow_their_sequence() {
    let mut made = Made::default();
    let with = |of: &str, against: &str, estimate: f64, p: f64| {
        let mut contrast = contrast(of, against, Verdict::Better, estimate);
        contrast.looks[0].p = Some(p);
        contrast
    };
    let contrasts = |human: f64, p: f64| {
        vec![
            with("human", "baseline", human, p),
            with("agent:a", "baseline", 0.2, 0.02),
            with("agent:b", "baseline", 0.3, 0.001),
            with("agent:a", "human", 0.1, 0.03),
            with("agent:b", "human", 0.1, 0.0001),
        ]
    };
    made.add(contrasts(0.1, 0.01));
    made.add(contrasts(-0.1, 0.01));
    let suite = made.found();
    let in_task = |of: &str, against: &str, task: usize| claims(&suite, of, against).tests[task].in_task;
    near(in_task("human", "baseline", 0), 0.01);
    // Holm over two agents: 0.002 and 0.02; no smaller than the human commit's.
    near(in_task("agent:b", "baseline", 0), 0.01);
    near(in_task("agent:a", "baseline", 0), 0.02);
    // 0.0002 and 0.03, no smaller than the step before.
    near(in_task("agent:b", "human", 0), 0.01);
    near(in_task("agent:a", "human", 0), 0.03);
    // A human commit that is slower is no step towards a claim.
    near(in_task("human", "baseline", 1), 0.01);
    near(in_task("agent:b", "human", 1), 1.0);
}

#[test]
fn the_overall_p_says_at_five_percent_what_the_looks_say() {
    let planned = |name: &str| {
        let mut task = task(name, &["baseline", "human"], 24);
        task.design.looks = looks(Spending::Even, &[6, 12, 18, 24]).unwrap();
        task
    };
    let (mut crossed, mut not) = (0, 0);
    for (blocks, factor, noise) in
        [(6, 1.3, 0.01), (6, 1.01, 0.05), (24, 1.02, 0.05), (12, 1.05, 0.05), (18, 1.03, 0.05), (24, 1.005, 0.002)]
    {
        let tasks = vec![planned("t"), planned("u")];
        let all: Vec<Attempt> = tasks
            .iter()
            .flat_map(|task| {
                attempts(task, blocks, |block, arm, launch| match arm {
                    // A block of the second task can't be compared, so that its levels are calculated anew.
                    "human" if block == 2 && task.id.as_str() == "u" => failed(launch, FailureClass::WindowTooShort),
                    "human" => scaled(launch, factor * wobble(block * 5 % 7, noise)),
                    _ => launch,
                })
            })
            .collect();
        let judgement = judged(&plan(tasks), &all).unwrap();
        let suite = judgement.suite.as_ref().unwrap();
        for (test, task) in claims(suite, "human", "baseline").tests.iter().zip(&judgement.tasks) {
            let results = &task.contrasts[0].looks;
            let deciding = results.iter().position(|look| look.decision.verdict().is_some());
            let taken = &results[..=deciding.unwrap_or(results.len() - 1)];
            let is_crossed = taken.iter().any(|look| look.p.is_some_and(|p| p < look.level));
            assert_eq!(test.p <= 0.05, is_crossed, "{test:?} {taken:?}");
            // Never below the smallest p of a look.
            let least = taken.iter().filter_map(|look| look.p).fold(1.0, f64::min);
            assert!(test.p >= least, "{test:?} {taken:?}");
            if is_crossed { crossed += 1 } else { not += 1 }
        }
    }
    assert!(crossed > 1 && not > 1, "{crossed} {not}");
}

#[test]
fn drift_is_no_evidence() {
    let mut made = Made::default();
    for _ in 0..2 {
        let mut own = contrast("human", "baseline", Verdict::Inconclusive, 0.3);
        own.looks[0].decision = LookDecision::Drift;
        own.looks[0].p = Some(0.000_01);
        made.add(vec![own]);
    }
    assert!(claims(&made.found(), "human", "baseline").tests.iter().all(|test| test.p >= 1.0));
}

/// Adds tasks in which each agent has an estimate, or nothing.
fn agents(made: &mut Made, values: &[(&str, Option<f64>)]) {
    let mut contrasts = vec![contrast("human", "baseline", Verdict::Better, 0.2)];
    for (name, value) in values {
        let Some(value) = value else { continue };
        let verdict = if *value > 0.02 { Verdict::Better } else { Verdict::Inconclusive };
        contrasts.push(contrast(name, "baseline", verdict, *value));
    }
    made.add(contrasts);
}

#[test]
fn agents_that_cannot_be_told_apart_share_a_group_and_a_range() {
    let mut made = Made::default();
    for task in 0..12 {
        let noise = 0.01 * f64::from(task % 3);
        let other = 0.01 * f64::from(task % 4);
        agents(
            &mut made,
            &[
                ("agent:a", Some(0.30 + noise)),
                ("agent:b", Some(0.30 + other - 0.006)),
                ("agent:c", Some(0.01 + noise - other)),
            ],
        );
    }
    let suite = made.found();
    let found = table(&suite, RankMeasure::SpeedUp);
    let rows: Vec<(String, u32, u32)> =
        found.rows.iter().map(|row| (row.arm.to_string(), row.best, row.worst)).collect();
    assert_eq!(rows, [("agent:a".into(), 1, 2), ("agent:b".into(), 1, 2), ("agent:c".into(), 3, 3)]);
    assert_eq!(found.groups, [vec![arm("agent:a"), arm("agent:b")], vec![arm("agent:c")]]);
    assert_eq!(found.pairs.len(), 3);
    let success = table(&suite, RankMeasure::BetterThanBaseline);
    let pair = success.pairs.iter().find(|pair| pair.against == arm("agent:c")).unwrap();
    // The third agent is better once. scipy.stats.binomtest(11, 11).pvalue
    assert_eq!((pair.first_only, pair.second_only), (Some(11), Some(0)));
    near(pair.p.unwrap(), 2.0_f64.powi(-10));
}

#[test]
fn agents_on_other_tasks_are_never_told_apart() {
    let mut made = Made::default();
    for task in 0..12 {
        let value = Some(0.3 + 0.01 * f64::from(task));
        agents(&mut made, &[if task % 2 == 0 { ("agent:a", value) } else { ("agent:b", Some(0.0)) }]);
    }
    let suite = made.found();
    let found = table(&suite, RankMeasure::SpeedUp);
    let pair = &found.pairs[0];
    assert_eq!((pair.tasks, pair.difference, pair.p, pair.holm), (0, None, None, None));
    assert_eq!(found.groups, [vec![arm("agent:a"), arm("agent:b")]]);
    assert!(found.rows.iter().all(|row| (row.best, row.worst) == (1, 2)));
    assert_eq!(rates(&suite, "agent:a").rates[0].counts.without_arm, 6);
}

#[test]
fn ties_are_ties() {
    let mut made = Made::default();
    for _ in 0..11 {
        agents(&mut made, &[("agent:a", Some(0.1)), ("agent:b", Some(0.1))]);
    }
    let suite = made.found();
    let found = table(&suite, RankMeasure::SpeedUp);
    near(found.pairs[0].difference.unwrap(), 0.0);
    assert!(found.pairs[0].holm.unwrap() > 0.9, "{:?}", found.pairs[0]);
    assert_eq!(found.groups.len(), 1);
    near(headline(&suite, "human", "baseline").measured.low.unwrap(), 0.2);
}
