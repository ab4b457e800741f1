//! Searches on servers whose limits are known.

use isobench_schema::load_checks::{FlowState, LittlesLaw};

use super::*;

fn rules(by: SweepBy) -> SweepRules {
    SweepRules {
        by,
        lowest: 1.0,
        first: 4.0,
        highest: 4_096.0,
        factor: 2.0,
        resolution: 0.1,
        objective_share: None,
        most_steps: 30,
    }
}

fn result(level: f64) -> StepResult {
    StepResult {
        level,
        seconds: 30.0,
        completed: 300,
        output_tokens: None,
        mean_latency_s: Some(1.0),
        mean_ttft_ms: Some(100.0),
        mean_tpot_ms: Some(10.0),
        mean_in_flight: 10.0,
        objective_share: None,
        flow: None,
        is_client_bound: false,
    }
}

/// Runs a search on a server, and returns its report; no level may be run twice.
fn search(rules: SweepRules, server: impl Fn(f64) -> StepResult) -> SweepReport {
    let sweep = Sweep::new(rules).unwrap();
    let mut results: Vec<StepResult> = Vec::new();
    loop {
        match sweep.next(&results) {
            Next::Done(report) => return report,
            Next::Run(level) => {
                assert!(results.iter().all(|before| before.level.to_bits() != level.to_bits()), "{level} again");
                assert!((rules.lowest..=rules.highest).contains(&level), "{level}");
                results.push(server(level));
            }
        }
    }
}

fn whole(level: f64) -> u64 {
    level.to_string().parse().unwrap()
}

/// A closed loop whose throughput grows with the slots up to 100.
fn closed(level: f64) -> StepResult {
    StepResult { completed: 300 * whole(level.min(100.0)), ..result(level) }
}

/// An open loop that keeps up to a rate.
fn open(limit: f64) -> impl Fn(f64) -> StepResult {
    move |level| StepResult {
        flow: Some(if level > limit { FlowState::OverSaturated } else { FlowState::KeepsUp }),
        ..result(level)
    }
}

#[test]
fn the_knee_of_a_closed_loop_is_found() {
    let report = search(rules(SweepBy::Concurrency), closed);
    let knee = report.knee.unwrap();
    assert!(knee.low < 95.0 && knee.high >= 95.0 && knee.high / knee.low <= 1.1, "{report:?}");
    assert_eq!((report.end, report.peak_per_s), (SearchEnd::Refined, Some(1_000.0)));
    assert!(report.steps.len() <= 12, "{}", report.steps.len());
}

#[test]
fn the_highest_rate_that_is_sustained_is_found() {
    for limit in [1.0, 3.0, 77.0, 3_000.0] {
        let report = search(rules(SweepBy::Rate), open(limit));
        let (low, high) = (report.highest_sustained.unwrap(), report.lowest_not_sustained.unwrap());
        assert!(low <= limit && limit < high && high / low <= 1.1 + 1e-9, "{limit}: {low} {high}");
        assert_eq!(report.end, SearchEnd::Refined);
    }
}

#[test]
fn the_ends_of_what_is_allowed_are_named() {
    let end = |by, server: &dyn Fn(f64) -> StepResult| search(rules(by), server).end;
    assert_eq!(end(SweepBy::Rate, &open(1e9)), SearchEnd::HighestLevel);
    assert_eq!(end(SweepBy::Rate, &open(0.5)), SearchEnd::LowestLevel);
    let gains = |level: f64| StepResult { completed: 300 * whole(level), ..result(level) };
    let report = search(rules(SweepBy::Concurrency), gains);
    assert_eq!((report.end, report.knee), (SearchEnd::HighestLevel, None));
    let few = |level: f64| StepResult { completed: 5, ..result(level) };
    assert_eq!(end(SweepBy::Concurrency, &few), SearchEnd::TooFew);
    // An open loop that nobody watched says nothing.
    assert_eq!(end(SweepBy::Rate, &result), SearchEnd::TooFew);
    let brief = SweepRules { most_steps: 3, ..rules(SweepBy::Rate) };
    assert_eq!(search(brief, open(1e9)).end, SearchEnd::MostSteps);
}

#[test]
fn a_client_that_is_bound_ends_the_search_without_a_claim() {
    let report = search(rules(SweepBy::Rate), |level| StepResult { is_client_bound: level > 50.0, ..open(1e9)(level) });
    assert_eq!((report.end, report.highest_sustained), (SearchEnd::ClientBound, Some(32.0)));
    assert_eq!(report.lowest_not_sustained, None);
}

#[test]
fn an_objective_bounds_a_closed_loop() {
    let with = SweepRules { objective_share: Some(0.99), ..rules(SweepBy::Concurrency) };
    let server =
        |level: f64| StepResult { objective_share: Some(if level > 37.0 { 0.9 } else { 1.0 }), ..closed(level) };
    let report = search(with, server);
    let (low, high) = (report.highest_sustained.unwrap(), report.lowest_not_sustained.unwrap());
    assert!(low <= 37.0 && high > 37.0 && high / low <= 1.1, "{low} {high}");
    // Nobody said how many met it.
    assert_eq!(search(with, closed).end, SearchEnd::TooFew);
}

#[test]
fn a_level_that_was_sustained_by_luck_does_not_count() {
    let lucky = |level: f64| {
        let keeps_up = level <= 10.0 || is_same(level, 64.0);
        StepResult { flow: Some(if keeps_up { FlowState::KeepsUp } else { FlowState::OverSaturated }), ..result(level) }
    };
    let sweep = Sweep::new(rules(SweepBy::Rate)).unwrap();
    let Next::Done(report) = sweep.next(&[lucky(10.0), lucky(64.0), lucky(11.0), lucky(100.0)]) else {
        panic!("not done");
    };
    assert_eq!((report.highest_sustained, report.lowest_not_sustained), (Some(10.0), Some(11.0)));
}

#[test]
fn each_step_checks_itself() {
    let report = search(rules(SweepBy::Rate), open(20.0));
    assert!(report.steps.iter().all(|step| matches!(step.littles_law, LittlesLaw::Checked { holds: true, .. })));
    assert!(report.steps.iter().all(|step| (step.mean_ttft_ms, step.mean_tpot_ms) == (Some(100.0), Some(10.0))));
}

#[test]
fn rules_that_lead_nowhere_are_refused() {
    let good = rules(SweepBy::Rate);
    assert_eq!(Sweep::new(SweepRules { lowest: 0.0, ..good }), Err(SweepRulesError::Levels));
    assert_eq!(Sweep::new(SweepRules { first: 9e9, ..good }), Err(SweepRulesError::Levels));
    let half = SweepRules { first: 4.5, ..rules(SweepBy::Concurrency) };
    assert_eq!(Sweep::new(half), Err(SweepRulesError::Whole));
    assert_eq!(Sweep::new(SweepRules { factor: 1.0, ..good }), Err(SweepRulesError::Factor));
    assert_eq!(Sweep::new(SweepRules { most_steps: 0, ..good }), Err(SweepRulesError::Steps));
}
