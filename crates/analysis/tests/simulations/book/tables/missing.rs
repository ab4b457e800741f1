//! No difference where positions aren't balanced: blocks are lost, or looks aren't whole sets of orders.

use isobench_analysis::simulation::{Machine, Scenario};

use super::Table;
use crate::book::claims::Bound;
use crate::book::numbers::{percent, rate, table};
use crate::book::{Cell, Claim, Results, usual, with_looks};

pub(super) const TABLE: Table = Table { cells, text, claims };

const RUNS: u32 = 40_000;

/// The noise of a block difference, what each slot loses to the one before, and the drift.
const SPREAD: f64 = 0.01;
const SLOT: f64 = 0.02;
const DRIFT: f64 = 0.02;

fn rows() -> Vec<(&'static str, &'static str, Scenario)> {
    let lost = |scenario: Scenario, blocks: &[u32]| Scenario { lost: blocks.to_vec(), ..scenario };
    let uneven: [u32; 4] = [6, 10, 16, 24];
    vec![
        ("two-lost-one", "2 arms, the fourth block lost", lost(usual(2), &[3])),
        ("two-lost-two", "2 arms, the fourth and the thirteenth block lost", lost(usual(2), &[3, 12])),
        ("two-fixed-lost-one", "2 arms, one look after 24, the fourth block lost", lost(with_looks(2, &[24]), &[3])),
        ("three-lost-one", "3 arms, the fifth block lost", lost(usual(3), &[4])),
        ("three-lost-two", "3 arms, the fifth and the ninth block lost", lost(usual(3), &[4, 8])),
        ("two-odd", "2 arms, looks after 5, 9, 15 and 23 blocks", with_looks(2, &[5, 9, 15, 23])),
        ("three-uneven", "3 arms, looks after 6, 10, 16 and 24 blocks", with_looks(3, &uneven)),
        ("four-uneven", "4 arms, looks after 6, 10, 16 and 24 blocks", with_looks(4, &uneven)),
        ("five-uneven", "5 arms, looks after 6, 10, 16 and 24 blocks", with_looks(5, &uneven)),
        ("seven", "7 arms, whose set of 14 orders is too long for looks", usual(7)),
    ]
}

fn name(row: &str) -> String {
    format!("missing/{row}")
}

fn cells() -> Vec<Cell> {
    let machine = Machine { slot: SLOT, drift: DRIFT, ..Machine::steady(SPREAD) };
    let cell =
        |(row, _, scenario): (&str, &str, Scenario)| Cell::new(name(row), RUNS, Scenario { machine, ..scenario });
    rows().into_iter().map(cell).collect()
}

fn text(results: &Results) -> String {
    let line = |(row, text, _): (&str, &str, Scenario)| {
        let tally = results.get(&name(row));
        vec![
            text.to_owned(),
            rate(tally, tally.rejected, 2),
            rate(tally, tally.better + tally.worse, 2),
            percent(tally, tally.covered, 1),
        ]
    };
    let lines: Vec<Vec<String>> = rows().into_iter().map(line).collect();
    format!(
        "## No difference where positions are not balanced\n\n\
         Two arms are equal, each slot of a block is slower than the one before by 2 %, the session drifts by 2 %, and the noise \
         is 1 %. Where both arms didn't stand equally often at each position, the mean is that of the position model, if enough \
         degrees of freedom are left, and levels are those for the blocks that count. *Covered*: intervals at the end with the \
         truth in them.\n\n{}\n",
        table(&["design", "rejected", "called `better` or `worse`", "covered"], &lines)
    )
}

fn claims(results: &Results) -> Vec<Claim> {
    let mut rejected = Claim::new("rejected without a difference, positions not balanced", Bound::AtMost(5.5));
    let mut covered = Claim::new("intervals at the end cover the truth, positions not balanced", Bound::AtLeast(94.0));
    for (row, _, _) in rows() {
        let tally = results.get(&name(row));
        rejected.add_share(tally, tally.rejected, &name(row));
        covered.add_share(tally, tally.covered, &name(row));
    }
    vec![rejected, covered]
}
