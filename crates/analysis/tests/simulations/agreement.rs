//! The counts come out again: cells simulated anew, with other seeds, agree with them.

use isobench_analysis::simulation::Tally;

use crate::book::numbers::agree;
use crate::book::{Cell, cells};
use crate::documents::results;

/// Another seed than that of the documents, so that the evidence is another.
const OTHER_SEED: u64 = 1;

/// How many standard errors two counts of one share may be apart. With some 300 cells of 9 shares each, that one
/// is beyond 5 by chance has a probability below 0.2 %.
const ERRORS: f64 = 5.0;

/// A sample of the tables, and how many runs of a cell of it.
const SAMPLE: [&str; 8] = [
    "null/2/even/6-10-16-24",
    "null/3/even/6-12-18-24",
    "model/drift-5/2",
    "missing/five-uneven",
    "equivalence/2/0.5",
    "cost/2/1",
    "rules/3/5",
    "orders/one-after-the-other/drift-2/slot-0",
];
const RUNS: u32 = 300;
/// Of every cell, if slow tests are asked for.
const SLOW_RUNS: u32 = 400;
/// But never more than one of so many that are kept: cells with few runs are those that take long.
const OF_KEPT: u32 = 20;

fn disagreements(cell: &Cell, kept: &Tally, runs: u32) -> Vec<String> {
    let found = cell.simulate(runs, OTHER_SEED);
    let counts = |tally: &Tally| {
        let own = [
            ("better", tally.better),
            ("worse", tally.worse),
            ("tie", tally.trivial + tally.equivalent),
            ("drift", tally.drift),
            ("rejected", tally.rejected),
            ("within", tally.within),
            ("covered", tally.covered),
            ("hopeless", tally.hopeless),
        ];
        let mut all: Vec<(String, u32)> = own.map(|(name, count)| (name.to_owned(), count)).into();
        for (rival, calls) in &tally.rivals {
            all.push((format!("{rival:?} faster"), calls.faster));
            all.push((format!("{rival:?} slower"), calls.slower));
        }
        all
    };
    let both = counts(&found).into_iter().zip(counts(kept));
    both.filter(|((_, now), (_, before))| !agree((*now, found.runs), (*before, kept.runs), ERRORS))
        .map(|((name, now), (_, before))| {
            format!("{}: {name} {now} of {} instead of {before} of {}", cell.name, found.runs, kept.runs)
        })
        .collect()
}

fn check(names: impl Fn(&str) -> bool, runs: u32) {
    let kept = results();
    let cells: Vec<Cell> = cells().into_iter().filter(|cell| names(&cell.name)).collect();
    assert!(!cells.is_empty());
    let wrong: Vec<String> = cells
        .iter()
        .flat_map(|cell| disagreements(cell, kept.get(&cell.name), runs.min(cell.runs / OF_KEPT)))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_sample_of_the_cells_comes_out_again() {
    check(|name| SAMPLE.contains(&name), RUNS);
    assert!(SAMPLE.iter().all(|name| results().cells.contains_key(*name)));
}

#[test]
fn every_cell_comes_out_again() {
    if std::env::var_os("ISOBENCH_SLOW").is_none() {
        println!("skipped: every cell of the simulations takes minutes; ISOBENCH_SLOW=1 does it");
        return;
    }
    check(|_| true, SLOW_RUNS);
}

#[test]
fn numbers_do_not_depend_on_threads() {
    let cell = cells().into_iter().find(|cell| cell.name == "null/2/even/6-10-16-24").unwrap();
    assert_eq!(cell.simulate(37, 4), cell.simulate(37, 4));
    assert_ne!(cell.simulate(37, 4), cell.simulate(37, 5));
}
