//! How often a one-look verdict is wrong, by seeded simulation.

use std::f64::consts::TAU;

use isobench_schema::verdict::Verdict;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

use crate::support::{attempts, find, scaled, task, verdicts};

const TASKS: u32 = 2000;

/// Returns a standard normal number, by the method of Box and Muller.
fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let mut uniform = || f64::from(rng.next_u32()) / 4_294_967_296.0;
    let (radius, angle) = ((1.0 - uniform()).ln(), uniform());
    (-2.0 * radius).sqrt() * (TAU * angle).cos()
}

/// Returns the share of tasks of six blocks whose human contrast gets one of `verdicts`, where log ratios are normal
/// around `truth`.
fn share(truth: f64, spread: f64, margin: f64, wanted: &[Verdict]) -> f64 {
    let mut rng = ChaCha8Rng::seed_from_u64(20_240_601);
    let mut hits = 0;
    for _ in 0..TASKS {
        let mut task = task("t", &["baseline", "human"], 6);
        task.metric.margin = margin;
        task.workload.probes.count = 0;
        let ratios: Vec<f64> = (0..6).map(|_| (truth + spread * normal(&mut rng)).exp()).collect();
        let attempts = attempts(&task, 6, |block, arm, launch| match arm {
            "human" => scaled(launch, ratios[usize::try_from(block).unwrap()]),
            _ => launch,
        });
        let judgement = verdicts(task, &attempts);
        hits += u32::from(wanted.contains(&find(&judgement.contrasts, "human", "baseline").verdict));
    }
    f64::from(hits) / f64::from(TASKS)
}

/// Three standard errors of a share of 5 % over the simulated tasks are 1.5 %.
const ERROR: f64 = 0.015;

#[test]
fn a_true_null_is_called_better_or_worse_in_five_percent() {
    let found = share(0.0, 0.05, 1e-6, &[Verdict::Better, Verdict::Worse]);
    assert!((found - 0.05).abs() < ERROR, "{found}");
}

#[test]
fn the_margin_only_makes_false_wins_rarer() {
    let found = share(0.0, 0.01, 0.02, &[Verdict::Better, Verdict::Worse]);
    assert!(found < 0.005, "{found}");
}

#[test]
fn a_true_difference_of_the_margin_is_called_equivalent_in_five_percent() {
    let found = share(0.02_f64.ln_1p(), 0.01, 0.02, &[Verdict::Equivalent, Verdict::Trivial]);
    assert!((found - 0.05).abs() < ERROR, "{found}");
}
