//! What holds for any run.

use isobench_analysis::judge::Attempt;
use isobench_schema::format;
use isobench_schema::verdict::{Contrast, Verdict};
use proptest::prelude::*;

use crate::support::{attempts, failed, find, judged, plan, scaled, task, verdicts};
use isobench_schema::failure::FailureClass;

/// Judges six blocks in which the human commit is faster by these factors, with every value scaled.
fn human(factors: &[f64], scale: f64) -> Contrast {
    let task = task("t", &["baseline", "human"], 6);
    let attempts = attempts(&task, 6, |block, arm, launch| {
        let factor = factors[usize::try_from(block).unwrap()];
        scaled(launch, scale * if arm == "human" { factor } else { 1.0 })
    });
    find(&verdicts(task, &attempts).contrasts, "human", "baseline").clone()
}

/// Factors around a common one, from a clear loss to a clear gain.
fn factors() -> impl Strategy<Value = Vec<f64>> {
    (0.5..2.0_f64, 0.001..0.2_f64, prop::collection::vec(-1.0..1.0_f64, 6))
        .prop_map(|(centre, spread, noise)| noise.iter().map(|n| centre * (spread * n).exp()).collect())
}

fn close(a: Option<f64>, b: Option<f64>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => (a - b).abs() <= 1e-9 * (1.0 + a.abs()),
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    }
}

fn turned(verdict: Verdict) -> Verdict {
    if verdict == Verdict::Better {
        Verdict::Worse
    } else if verdict == Verdict::Worse {
        Verdict::Better
    } else {
        verdict
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn swapping_the_arms_flips_the_sign(factors in factors()) {
        let there = human(&factors, 1.0);
        let back = human(&factors.iter().map(|factor| 1.0 / factor).collect::<Vec<_>>(), 1.0);
        prop_assert_eq!(back.verdict, turned(there.verdict));
        prop_assert!(close(back.estimate, there.estimate.map(|value| -value)));
        prop_assert!(close(back.low, there.high.map(|value| -value)));
        prop_assert!(close(back.hodges_lehmann, there.hodges_lehmann.map(|value| -value)));
        prop_assert!(close(back.p, there.p) && close(back.sign_flip_p, there.sign_flip_p));
    }

    #[test]
    fn the_unit_of_the_metric_does_not_matter(factors in factors(), scale in 1e-3..1e3_f64) {
        let (one, other) = (human(&factors, 1.0), human(&factors, scale));
        prop_assert_eq!(one.verdict, other.verdict);
        prop_assert!(close(one.estimate, other.estimate) && close(one.p, other.p));
        prop_assert!(close(one.low, other.low) && close(one.high, other.high) && close(one.mde, other.mde));
    }

    #[test]
    fn the_order_of_attempts_and_launches_does_not_matter(order in Just((0..12_usize).collect::<Vec<_>>()).prop_shuffle()) {
        let tasks = ["a", "b"].map(|name| task(name, &["baseline", "human", "agent:x"], 6));
        let all: Vec<Attempt> = tasks
            .iter()
            .flat_map(|task| attempts(task, 6, |block, arm, launch| match (block, arm) {
                (2, "agent:x") => failed(launch, FailureClass::ServerDied),
                (_, "human") => scaled(launch, 1.1 + 0.01 * f64::from(block)),
                _ => launch,
            }))
            .collect();
        let mut shuffled: Vec<Attempt> = order.iter().map(|place| all[*place].clone()).collect();
        for attempt in &mut shuffled {
            attempt.launches.reverse();
        }
        let plan = plan(tasks.to_vec());
        let text = |attempts: &[Attempt]| format::to_pretty(&judged(&plan, attempts).unwrap()).unwrap();
        prop_assert_eq!(text(&shuffled), text(&all));
    }
}
