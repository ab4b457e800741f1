//! Deals the launches of a run of the baseline against itself at random into made-up runs, and counts how often these find a
//! difference: with a real engine's launches, which take a minute each, a few dozen say as much about false alarms as they can.
//!
//! ```text
//! cargo run --release -p isobench --example deal_launches -- RUN [DEALS]
//! ```
//!
//! Every deal shuffles the launches, takes two for each block, and looks at them as a plan would. The deals share their
//! launches, so that their rate is one draw of what many runs would show, not their number of independent ones.

#![allow(clippy::print_stdout, reason = "a program for developers")]

use std::path::Path;

use isobench_analysis::stats::OneSample;
use isobench_analysis::stats::sequential::{Decision, LookRule, looks};
use isobench_schema::format;
use isobench_schema::order::{default_schedule, derive_seed};
use isobench_schema::plan::Spending;
use isobench_schema::verdict::Judgement;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

const DEALS: u32 = 10_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let run = arguments.next().ok_or("name the folder of a run")?;
    let deals: u32 = arguments.next().map_or(Ok(DEALS), |text| text.parse())?;
    let bytes = std::fs::read(Path::new(&run).join("derived/judgement.json"))?;
    let judgement: Judgement = format::from_slice(&bytes)?;
    for task in &judgement.tasks {
        let values = || task.arms.iter().flat_map(|arm| &arm.values).map(|value| value.value.ln());
        let mut values: Vec<f64> = values().collect();
        let blocks = u32::try_from(values.len() / 2)?;
        let schedule: Vec<u32> = default_schedule(blocks, 2).into_iter().filter(|look| *look <= blocks).collect();
        if schedule.is_empty() {
            println!("{}: {} launches are too few for a look", task.id, values.len());
            continue;
        }
        let planned = looks(Spending::Even, &schedule)?;
        let rules: Vec<LookRule> = planned.iter().filter_map(|look| LookRule::new(*look)).collect();
        let spread = OneSample::of(&values).ok_or("no spread")?.deviation;
        let mut rng = ChaCha8Rng::seed_from_u64(derive_seed(1, "deals"));
        let (mut significant, mut wins, mut equivalent) = (0_u32, 0_u32, 0_u32);
        for _ in 0..deals {
            shuffle(&mut values, &mut rng);
            let differences: Vec<f64> =
                values.chunks_exact(2).filter_map(|pair| Some(pair.first()? - pair.last()?)).collect();
            let (mut crossed, mut decision) = (false, None);
            for rule in &rules {
                let end = usize::try_from(rule.degrees_of_freedom + 1)?;
                let Some(sample) = differences.get(..end).and_then(OneSample::of) else { continue };
                let error = sample.standard_error();
                crossed |= rule.critical * error < sample.mean.abs();
                decision = rule.decide(sample.mean, error, task.margin.ln_1p());
                if decision.is_some() {
                    break;
                }
            }
            significant += u32::from(crossed);
            wins += u32::from(matches!(decision, Some(Decision::Better | Decision::Worse)));
            equivalent += u32::from(matches!(decision, Some(Decision::Equivalent | Decision::Trivial)));
        }
        let percent = |count: u32| 100.0 * f64::from(count) / f64::from(deals);
        println!(
            "{}: {} launches with a spread of {:.2} % ({}), dealt {deals} times into runs of looks after {schedule:?} blocks",
            task.id,
            values.len(),
            100.0 * spread,
            task.metric
        );
        println!(
            "  p below its level: {:.2} %; better or worse by the margin of {:.0} %: {:.2} %; equivalent: {:.2} %",
            percent(significant),
            100.0 * task.margin,
            percent(wins),
            percent(equivalent)
        );
    }
    Ok(())
}

/// Shuffles in place by Fisher and Yates' method.
fn shuffle(values: &mut [f64], rng: &mut ChaCha8Rng) {
    for last in (1..values.len()).rev() {
        let choices = u64::try_from(last + 1).unwrap_or(u64::MAX);
        let place = (u64::from(rng.next_u32()) * choices) >> 32;
        values.swap(last, usize::try_from(place).unwrap_or(0));
    }
}
