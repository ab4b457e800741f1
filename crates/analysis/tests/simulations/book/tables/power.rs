//! What a usual run finds, by the true difference and the noise.

use isobench_analysis::simulation::{Machine, Scenario};

use super::Table;
use crate::book::claims::Bound;
use crate::book::numbers::{percent, table};
use crate::book::{Cell, Claim, Results, usual};

pub(super) const TABLE: Table = Table { cells, text, claims };

const RUNS: u32 = 10_000;

/// The noise of a block difference, in percent.
const SPREADS: [f64; 5] = [0.5, 1.0, 2.0, 3.0, 5.0];
/// The truth, in standard deviations and in percent.
const DEVIATIONS: [f64; 8] = [0.0, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0];
const PERCENTS: [f64; 7] = [0.0, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0];

const MARGIN: f64 = 0.02;

fn by_deviation(spread: f64, effect: f64) -> String {
    format!("power/sd/{spread}/{effect}")
}

fn by_percent(spread: f64, effect: f64) -> String {
    format!("power/percent/{spread}/{effect}")
}

fn cells() -> Vec<Cell> {
    let cell = |name: String, spread: f64, effect: f64| {
        let machine = Machine::steady(spread / 100.0);
        Cell::new(name, RUNS, Scenario { margin: MARGIN, machine, effect, ..usual(2) })
    };
    let mut cells = Vec::new();
    for spread in SPREADS {
        cells.extend(DEVIATIONS.map(|effect| cell(by_deviation(spread, effect), spread, effect * spread / 100.0)));
        cells.extend(PERCENTS.map(|effect| cell(by_percent(spread, effect), spread, (effect / 100.0).ln_1p())));
    }
    cells
}

/// Returns what a cell of a table says: how many were found better, how many a tie, and the blocks.
fn entry(results: &Results, name: &str) -> String {
    let tally = results.get(name);
    let tie = percent(tally, tally.equivalent + tally.trivial, 0);
    format!("{} / {tie} / {:.0}", percent(tally, tally.better, 0), tally.mean_blocks())
}

fn grid(results: &Results, effects: &[f64], unit: &str, name: fn(f64, f64) -> String) -> String {
    let line = |effect: f64| {
        let entries = SPREADS.map(|spread| entry(results, &name(spread, effect)));
        std::iter::once(format!("{effect} {unit}")).chain(entries).collect()
    };
    let lines: Vec<Vec<String>> = effects.iter().copied().map(line).collect();
    let mut head = vec!["truth".to_owned()];
    head.extend(SPREADS.map(|spread| format!("noise {spread} %")));
    table(&head.iter().map(String::as_str).collect::<Vec<_>>(), &lines)
}

/// Returns what real speed-ups cost: how many of 100 runs find them, and after how many blocks.
pub(crate) fn costs(results: &Results) -> String {
    let line = |effect: f64| {
        let entry = |spread: f64| {
            let tally = results.get(&by_percent(spread, effect));
            format!("{} of 100 in {:.0} blocks", percent(tally, tally.better, 0), tally.mean_blocks())
        };
        std::iter::once(format!("{effect} %")).chain(SPREADS.map(entry)).collect()
    };
    let lines: Vec<Vec<String>> = PERCENTS.into_iter().filter(|effect| *effect >= 3.0).map(line).collect();
    let mut head = vec!["true speed-up".to_owned()];
    head.extend(SPREADS.map(|spread| format!("noise {spread} %")));
    table(&head.iter().map(String::as_str).collect::<Vec<_>>(), &lines)
}

fn text(results: &Results) -> String {
    format!(
        "## What a run finds\n\n\
         Two arms, the usual looks, the margin of 2 %. In each entry: how many of 100 runs end `better`, how many `equivalent` or \
         `trivial`, and after how many blocks in the mean; the others are `inconclusive`. Noise is the standard deviation of a \
         block difference. Two standard errors are 1 at most.\n\nBy the true speed-up in percent:\n\n{}\n\
         By the true difference in standard deviations of a block difference:\n\n{}\n",
        grid(results, &PERCENTS, "%", by_percent),
        grid(results, &DEVIATIONS, "sd", by_deviation)
    )
}

fn claims(results: &Results) -> Vec<Claim> {
    let mut claim = Claim::new("called `better` or `worse` without a difference, margin 2 %", Bound::AtMost(5.5));
    for spread in SPREADS {
        for cell in [by_deviation(spread, 0.0), by_percent(spread, 0.0)] {
            let tally = results.get(&cell);
            claim.add_share(tally, tally.better + tally.worse, &cell);
        }
    }
    vec![claim]
}
