//! Whether intervals cover the truth wherever a run ends.

use isobench_analysis::simulation::Scenario;

use super::Table;
use crate::book::claims::Bound;
use crate::book::numbers::{percent, table};
use crate::book::{Cell, Claim, Results, usual};

pub(super) const TABLE: Table = Table { cells, text, claims };

const RUNS: u32 = 20_000;

/// The truth and the margins, in standard deviations of a block difference.
const EFFECTS: [f64; 7] = [0.0, 0.3, 0.7, 1.0, 1.5, 2.0, 3.0];
const DESIGNS: [(usize, f64); 6] = [(2, 0.0), (2, 0.5), (2, 1.0), (3, 0.5), (4, 0.5), (5, 0.5)];

fn name(arms: usize, margin: f64, effect: f64) -> String {
    format!("coverage/{arms}/{margin}/{effect}")
}

fn cells() -> Vec<Cell> {
    let cell = |(arms, margin): (usize, f64), effect: f64| {
        let usual = usual(arms);
        let spread = usual.machine.spread;
        let scenario = Scenario { margin: (margin * spread).exp_m1(), effect: effect * spread, ..usual };
        Cell::new(name(arms, margin, effect), RUNS, scenario)
    };
    DESIGNS.iter().flat_map(|design| EFFECTS.map(|effect| cell(*design, effect))).collect()
}

fn text(results: &Results) -> String {
    let line = |effect: f64| {
        let mut cells = vec![format!("{effect}")];
        cells.extend(DESIGNS.map(|(arms, margin)| {
            let tally = results.get(&name(arms, margin, effect));
            percent(tally, tally.covered, 1)
        }));
        cells.extend(DESIGNS.iter().take(3).map(|(arms, margin)| {
            let tally = results.get(&name(*arms, *margin, effect));
            percent(tally, tally.naively_covered, 1)
        }));
        cells
    };
    let lines: Vec<Vec<String>> = EFFECTS.into_iter().map(line).collect();
    let column = |(arms, margin): (usize, f64)| format!("{arms} arms, {margin} sd");
    let mut head = vec!["truth, sd".to_owned()];
    head.extend(DESIGNS.map(column));
    head.extend(DESIGNS.iter().take(3).map(|design| format!("naive: {}", column(*design))));
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    format!(
        "## Intervals at the end\n\n\
         The share of runs whose interval covers the truth, by the truth and the margin in standard deviations of a block \
         difference; runs end as early as the looks let them. *Naive*: the interval that would be reported if nobody knew of the \
         looks. Two standard errors are 0.3.\n\n{}\n",
        table(&head, &lines)
    )
}

fn claims(results: &Results) -> Vec<Claim> {
    let mut claim = Claim::new("intervals at the end cover the truth", Bound::AtLeast(94.0));
    for (arms, margin) in DESIGNS {
        for effect in EFFECTS {
            let cell = name(arms, margin, effect);
            claim.add_share(results.get(&cell), results.get(&cell).covered, &cell);
        }
    }
    vec![claim]
}
