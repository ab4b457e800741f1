//! A difference of exactly the margin that is called equivalent.

use isobench_analysis::simulation::{Machine, Scenario};

use super::Table;
use crate::book::claims::Bound;
use crate::book::numbers::{percent, rate, table};
use crate::book::{Cell, Claim, Results, usual};

pub(super) const TABLE: Table = Table { cells, text, claims };

const RUNS: u32 = 20_000;

/// The margin, and the noise of a block difference, in percent.
const MARGIN: f64 = 0.02;
const SPREADS: [f64; 6] = [0.2, 0.5, 1.0, 2.0, 3.0, 5.0];
const ARMS: [usize; 4] = [2, 3, 4, 5];

fn name(arms: usize, spread: f64) -> String {
    format!("equivalence/{arms}/{spread}")
}

fn uncorrected(spread: f64) -> String {
    format!("equivalence/uncorrected/{spread}")
}

fn cells() -> Vec<Cell> {
    let at_margin = |arms: usize, spread: f64| Scenario {
        margin: MARGIN,
        effect: MARGIN.ln_1p(),
        machine: Machine::steady(spread / 100.0),
        ..usual(arms)
    };
    let mut cells = Vec::new();
    for spread in SPREADS {
        cells.extend(ARMS.map(|arms| Cell::new(name(arms, spread), RUNS, at_margin(arms, spread))));
        let mut naive = at_margin(2, spread);
        naive.looks.iter_mut().for_each(|look| look.equivalence_level = 0.05);
        cells.push(Cell::new(uncorrected(spread), RUNS, naive));
    }
    cells
}

fn text(results: &Results) -> String {
    let line = |spread: f64| {
        let mut cells = vec![format!("{spread} %")];
        cells.extend(ARMS.map(|arms| {
            let tally = results.get(&name(arms, spread));
            rate(tally, tally.within, 2)
        }));
        let two = results.get(&name(2, spread));
        cells.push(percent(two, two.equivalent + two.trivial, 2));
        let naive = results.get(&uncorrected(spread));
        cells.push(rate(naive, naive.within, 2));
        cells
    };
    let lines: Vec<Vec<String>> = SPREADS.into_iter().map(line).collect();
    let head = ["noise", "2 arms", "3 arms", "4 arms", "5 arms", "2 arms, called", "2 arms, levels of one look"];
    format!(
        "## False equivalence\n\n\
         The true difference is exactly the margin of 2 %. The share of runs in which the equivalence tests hold at some look; \
         *called*: runs that end `equivalent` or `trivial`, which are fewer, because a run that is `better` has ended. *Levels of \
         one look*: the same tests at 5 % at each of the four looks, which is what happens if nobody corrects for looking.\n\n{}\n",
        table(&head, &lines)
    )
}

fn claims(results: &Results) -> Vec<Claim> {
    let mut claim = Claim::new("called equivalent at exactly the margin, over all looks", Bound::AtMost(5.5));
    for spread in SPREADS {
        for arms in ARMS {
            let cell = name(arms, spread);
            claim.add_share(results.get(&cell), results.get(&cell).within, &cell);
        }
    }
    vec![claim]
}
