//! What looking early saves, and what it costs, against one look after 24 blocks at the same error.

use isobench_analysis::simulation::{Rival, Scenario};
use isobench_analysis::stats::sequential::{Boundary, Interim, Sides};
use isobench_schema::plan::Spending;

use super::Table;
use crate::book::claims::Bound;
use crate::book::numbers::{percent, table};
use crate::book::{Cell, Claim, MOST, Results, schedule, usual};

pub(super) const TABLE: Table = Table { cells, text, claims };

const RUNS: u32 = 20_000;
/// Each look of a run that may be given up draws 4,000 futures.
const RUNS_WITH_FUTILITY: u32 = 2_000;

/// The truth, in standard deviations of a block difference.
const EFFECTS: [f64; 9] = [0.0, 0.3, 0.5, 0.7, 1.0, 1.2, 1.5, 2.0, 3.0];
const ARMS: [usize; 4] = [2, 3, 4, 5];

/// The chance to be decided below which `run` doesn't wait, unless it is told otherwise.
const FUTILITY: f64 = 0.1;

/// At these effects a run may take so much of 24 blocks, in percent.
const SHARES: [(f64, f64); 3] = [(0.7, 75.0), (1.0, 55.0), (2.0, 30.0)];

fn name(arms: usize, effect: f64) -> String {
    format!("cost/{arms}/{effect}")
}

fn with_futility(effect: f64) -> String {
    format!("cost/futility/{effect}")
}

fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for effect in EFFECTS {
        for arms in ARMS {
            let usual = usual(arms);
            let scenario = Scenario { effect: effect * usual.machine.spread, ..usual };
            let cell = Cell::new(name(arms, effect), RUNS, scenario.clone());
            if arms == 2 {
                cells.push(cell.with_rivals());
                let scenario = Scenario { futility: Some(FUTILITY), ..scenario };
                cells.push(Cell::new(with_futility(effect), RUNS_WITH_FUTILITY, scenario));
            } else {
                cells.push(cell);
            }
        }
    }
    cells
}

fn calculated() -> Boundary {
    Boundary::spending(Sides::Two, Spending::Even, 0.05, &Interim::schedule(&schedule(2))).unwrap()
}

/// Returns a run's mean blocks in percent of 24.
fn share(results: &Results, cell: &str) -> f64 {
    100.0 * results.get(cell).mean_blocks() / f64::from(MOST)
}

/// Returns the power of one test at 5 % after 24 blocks, of the same launches, in percent.
fn fixed(results: &Results, effect: f64) -> f64 {
    let tally = results.get(&name(2, effect));
    let calls = tally.rivals[&Rival::Once];
    100.0 * tally.share(calls.faster + calls.slower)
}

fn text(results: &Results) -> String {
    let boundary = calculated();
    let line = |effect: f64| {
        let tally = results.get(&name(2, effect));
        let given_up = results.get(&with_futility(effect));
        let power = 100.0 * tally.share(tally.rejected);
        vec![
            format!("{effect}"),
            format!("{:.1}", fixed(results, effect)),
            format!("{power:.1} ({:.1})", 100.0 * boundary.power(effect)),
            format!("{:.1}", fixed(results, effect) - power),
            format!("{:.1} ({:.1})", tally.mean_blocks(), boundary.mean_blocks(effect)),
            format!("{:.0} %", share(results, &name(2, effect))),
            percent(given_up, given_up.rejected, 1),
            format!("{:.1}", given_up.mean_blocks()),
        ]
    };
    let lines: Vec<Vec<String>> = EFFECTS.into_iter().map(line).collect();
    let head = [
        "truth, sd",
        "found by 24 blocks",
        "found with looks",
        "points lost",
        "mean blocks",
        "of 24",
        "found, futility",
        "mean blocks, futility",
    ];
    let by_arms = |effect: f64| {
        let cells = ARMS.map(|arms| format!("{:.0} %", share(results, &name(arms, effect))));
        std::iter::once(format!("{effect}")).chain(cells).collect()
    };
    let arms: Vec<Vec<String>> = EFFECTS.into_iter().map(by_arms).collect();
    format!(
        "## What looking early saves\n\n\
         Against one look after 24 blocks, whose error is the same 5 %: how often a difference is found, by its size in standard \
         deviations of a block difference, and how many blocks that takes. Two arms, looks after 6, 10, 16 and 24 blocks, no \
         margin; what is calculated without simulation in parentheses. *Futility*: the same where a run is given up whose \
         chance is below 10 % (`--futility`, which is so by default). Two standard errors of what is found are 0.7 at most, \
         with futility 2.2.\n\n{}\n\
         Mean blocks by the number of arms, in percent of 24. Four arms first look after 8 blocks and five after 10, and may take \
         30.\n\n{}\n",
        table(&head, &lines),
        table(&["truth, sd", "2 arms", "3 arms", "4 arms", "5 arms"], &arms)
    )
}

fn claims(results: &Results) -> Vec<Claim> {
    let texts = [
        "mean blocks at 0.7 sd, in percent of 24, 2 and 3 arms",
        "mean blocks at 1 sd, in percent of 24, 2 and 3 arms",
        "mean blocks at 2 sd, in percent of 24, 2 and 3 arms",
    ];
    let mut claims = Vec::new();
    for (text, (effect, most)) in texts.into_iter().zip(SHARES) {
        let mut claim = Claim::new(text, Bound::AtMost(most));
        for arms in [2, 3] {
            let cell = name(arms, effect);
            claim.add(share(results, &cell), &cell);
        }
        claims.push(claim);
    }
    let mut lost = Claim::new("points of power lost at 0.7 sd, 2 arms", Bound::AtMost(7.0));
    let tally = results.get(&name(2, 0.7));
    lost.add(fixed(results, 0.7) - 100.0 * tally.share(tally.rejected), &name(2, 0.7));
    claims.push(lost);
    claims
}
