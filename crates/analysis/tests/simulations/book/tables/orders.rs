//! What the order of launches does to a test, where the machine drifts or the second of a block is slower.

use isobench_analysis::simulation::{Machine, Rival, Scenario, Sequence};

use super::Table;
use crate::book::claims::Bound;
use crate::book::numbers::{rate, signed, table};
use crate::book::{Cell, Claim, Results, with_looks};

pub(super) const TABLE: Table = Table { cells, text, claims };

const RUNS: u32 = 20_000;

/// The noise of a block difference, in percent.
const SPREAD: f64 = 2.5;

/// Drift over the session, and what the second of a block loses, in percent.
const MACHINES: [(f64, f64); 6] = [(0.0, 0.0), (1.0, 0.0), (2.0, 0.0), (5.0, 0.0), (0.0, 1.0), (2.0, 1.0)];

const SEQUENCES: [(&str, Sequence); 3] = [
    ("one-after-the-other", Sequence::OneAfterTheOther),
    ("alternating", Sequence::Alternating),
    ("planned", Sequence::Planned),
];

fn name(sequence: &str, (drift, slot): (f64, f64)) -> String {
    format!("orders/{sequence}/drift-{drift}/slot-{slot}")
}

fn cells() -> Vec<Cell> {
    let cell = |(text, sequence): (&str, Sequence), (drift, slot): (f64, f64)| {
        let machine = Machine { drift: drift / 100.0, slot: slot / 100.0, ..Machine::steady(SPREAD / 100.0) };
        let scenario = Scenario { sequence, machine, ..with_looks(2, &[24]) };
        Cell::new(name(text, (drift, slot)), RUNS, scenario).with_rivals()
    };
    MACHINES.iter().flat_map(|machine| SEQUENCES.map(|sequence| cell(sequence, *machine))).collect()
}

fn text(results: &Results) -> String {
    let line = |machine: (f64, f64)| {
        let mut cells = vec![format!("{} %", machine.0), format!("{} %", machine.1)];
        for (sequence, _) in SEQUENCES {
            let tally = results.get(&name(sequence, machine));
            cells.push(rate(tally, tally.rejected, 1));
            cells.push(signed(100.0 * tally.mean_estimate()));
        }
        let alone = results.get(&name("one-after-the-other", machine));
        let calls = alone.rivals[&Rival::MannWhitney];
        cells.push(rate(alone, calls.faster + calls.slower, 1));
        cells
    };
    let lines: Vec<Vec<String>> = MACHINES.into_iter().map(line).collect();
    let head = [
        "drift",
        "second slot slower by",
        "AA…BB: p < 0.05",
        "bias, %",
        "ABAB: p < 0.05",
        "bias, %",
        "ABBA: p < 0.05",
        "bias, %",
        "AA…BB: Mann–Whitney",
    ];
    format!(
        "## What the order of launches does\n\n\
         Two equal arms of 24 launches each, noise of 2.5 %, one test at 5 % at the end. *AA…BB*: all of one, then all of the other; \
         *ABAB*: the same one always first; *ABBA*: as isobench has it. Rejected by Student's t on differences, which should be 5 % \
         of runs, with the mean of the estimates; and called faster or slower by the test of SWE-Perf on 20 launches of each \
         (p < 0.1 on either side).\n\n{}\n",
        table(&head, &lines)
    )
}

fn claims(results: &Results) -> Vec<Claim> {
    let mut claim = Claim::new("rejected without a difference under drift and slots, ABBA", Bound::AtMost(5.5));
    for machine in MACHINES {
        let cell = name("planned", machine);
        claim.add_share(results.get(&cell), results.get(&cell).rejected, &cell);
    }
    vec![claim]
}
