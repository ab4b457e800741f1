//! A simulated session is judged as a run with the same launches is.

use isobench_analysis::judge::{Attempt, look};
use isobench_analysis::launch::LaunchInput;
use isobench_analysis::simulation::{Machine, Noise, Pair, Scenario, SerialTest, Session};
use isobench_schema::event::BlockEnd;
use isobench_schema::failure::FailureClass;
use isobench_schema::plan::PlannedTask;
use isobench_schema::verdict::{LookResult, Verdict};

use crate::book::{schedule, usual, with_looks};
use crate::support::{attempts, failed, find, scaled, task, verdicts};

const ARMS: [&str; 5] = ["baseline", "human", "agent:a", "agent:b", "agent:c"];

/// Returns the task of a scenario, with the session's seed.
fn planned(scenario: &Scenario, seed: u64) -> PlannedTask {
    let mut task = task("t", &ARMS[..scenario.arms], 24);
    task.design.looks.clone_from(&scenario.looks);
    task.design.seed = seed;
    task.design.spending = scenario.spending;
    task.design.futility = scenario.futility;
    task.design.replacements = 0;
    task.metric.margin = scenario.margin;
    task
}

/// Returns the attempts of a run whose launches are those of the session; a lost block is one that infrastructure spoilt.
fn run(task: &PlannedTask, session: &Session) -> Vec<Attempt> {
    let pair = |block: u32| session.pairs.iter().find(|pair| pair.block == block);
    let make = |block: u32, arm: &str, mut launch: LaunchInput| {
        let Some(Pair { of, against, .. }) = pair(block) else {
            return failed(launch, FailureClass::HostError);
        };
        let (value, position) = match arm {
            "baseline" => (against.value, against.position),
            "human" => (of.value, of.position),
            _ => {
                // The places that are left.
                let number = ARMS.iter().position(|name| *name == arm).unwrap() - 2;
                let free = (0..5).filter(|place| ![of.position, against.position].contains(place));
                (0.0, free.take(number + 1).last().unwrap())
            }
        };
        launch.record.position = position;
        scaled(launch, value.exp())
    };
    let mut attempts = attempts(task, task.design.blocks(), make);
    for attempt in attempts.iter_mut().filter(|attempt| pair(attempt.id.block).is_none()) {
        attempt.end = BlockEnd::Spoilt { failure: attempt.launches[0].failure().unwrap() };
    }
    attempts
}

fn same(one: &LookResult, other: &LookResult) -> bool {
    let near = |one: Option<f64>, other: Option<f64>| match (one, other) {
        (Some(one), Some(other)) => (one - other).abs() <= 1e-9 * (1.0 + one.abs()),
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    };
    let numbers = |result: &LookResult| {
        [result.estimate, result.low, result.high, result.p, result.equivalence_low, result.equivalence_high]
    };
    one.decision == other.decision
        && (one.look, one.planned, one.blocks) == (other.look, other.planned, other.blocks)
        && near(Some(one.level), Some(other.level))
        && near(Some(one.equivalence_level), Some(other.equivalence_level))
        && numbers(one).into_iter().zip(numbers(other)).all(|(one, other)| near(one, other))
}

/// Compares sessions with runs, and returns the verdicts.
fn check(scenario: &Scenario, seeds: std::ops::Range<u64>) -> Vec<Verdict> {
    let scenario = &Scenario { serial: SerialTest::EveryLook, ..scenario.clone() };
    let mut seen = Vec::new();
    for seed in seeds {
        let session = Session::run(scenario, seed);
        let task = planned(scenario, seed);
        let attempts = run(&task, &session);
        for (number, simulated) in (0..).zip(&session.looks) {
            let looked = look(&task, &attempts, number).unwrap().unwrap();
            let found = &looked.contrasts.iter().find(|contrast| contrast.of.to_string() == "human").unwrap().result;
            assert!(same(simulated, found), "{seed} {simulated:?} {found:?}");
        }
        let judged = verdicts(task, &attempts);
        let contrast = find(&judged.contrasts, "human", "baseline");
        let ended = session.ended().unwrap();
        if scenario.futility.is_none() {
            assert_eq!(contrast.verdict, ended.decision.verdict().unwrap_or(Verdict::Inconclusive), "{seed}");
        }
        seen.push(contrast.verdict);
    }
    seen
}

#[test]
fn decisions_are_those_of_a_judged_run() {
    let mut seen = Vec::new();
    for arms in [2, 3, 5] {
        for (effect, spread) in [(0.0, 0.01), (0.0, 0.03), (0.03, 0.02), (-0.04, 0.02), (0.012, 0.008)] {
            let machine = Machine { noise: Noise::HeavyTail, slot: 0.01, drift: 0.02, ..Machine::steady(spread) };
            let scenario = Scenario { margin: 0.02, effect, machine, ..usual(arms) };
            seen.extend(check(&scenario, 0..2));
        }
    }
    for wanted in [Verdict::Better, Verdict::Worse, Verdict::Equivalent, Verdict::Inconclusive] {
        assert!(seen.contains(&wanted), "{wanted}: {seen:?}");
    }
}

#[test]
fn decisions_are_the_same_where_blocks_are_lost_or_looks_are_uneven() {
    let machine = Machine { slot: 0.02, ..Machine::steady(0.02) };
    let lost = Scenario { margin: 0.02, effect: 0.02, machine, lost: vec![3], ..usual(2) };
    check(&lost, 0..4);
    let uneven = Scenario { margin: 0.02, effect: 0.02, machine, ..with_looks(3, &[6, 10, 16, 24]) };
    check(&uneven, 0..4);
}

#[test]
fn drift_over_blocks_is_seen_by_both() {
    let machine = Machine { follows: 0.95, ..Machine::steady(0.02) };
    let scenario = Scenario { machine, ..with_looks(2, &[24]) };
    let seen = check(&scenario, 0..4);
    assert!(seen.contains(&Verdict::Inconclusive), "{seen:?}");
}

#[test]
fn runs_are_given_up_at_the_same_look() {
    let machine = Machine::steady(0.06);
    let scenario = Scenario { margin: 0.02, futility: Some(0.3), machine, ..usual(2) };
    check(&scenario, 0..3);
    let ended = (0..3).filter(|seed| Session::run(&scenario, *seed).looks.len() < schedule(2).len());
    assert!(ended.count() > 0);
}
