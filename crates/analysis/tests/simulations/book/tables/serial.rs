//! Block differences that follow each other: how often that is seen, and what is wrong where it isn't.

use isobench_analysis::simulation::{Machine, Scenario, SerialTest};

use super::Table;
use crate::book::claims::Bound;
use crate::book::numbers::{percent, table};
use crate::book::{Cell, Claim, Results, usual, with_looks};

pub(super) const TABLE: Table = Table { cells, text, claims };

const RUNS: u32 = 5_000;

/// By how much a difference follows the one before.
const FOLLOWS: [f64; 7] = [0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9];

/// The designs: the usual looks without a margin, one look without a margin, and the usual looks with the usual margin.
const DESIGNS: [&str; 3] = ["looks", "fixed", "margin"];

fn name(design: &str, follows: f64) -> String {
    format!("serial/{design}/{follows}")
}

fn cells() -> Vec<Cell> {
    let scenario = |design: &str| match design {
        "looks" => usual(2),
        "fixed" => with_looks(2, &[24]),
        _ => Scenario { margin: 0.02, machine: Machine::steady(0.02), ..usual(2) },
    };
    let cell = |design: &str, follows: f64| {
        let mut scenario = scenario(design);
        scenario.machine.follows = follows;
        scenario.serial = SerialTest::EveryLook;
        Cell::new(name(design, follows), RUNS, scenario)
    };
    DESIGNS.iter().flat_map(|design| FOLLOWS.map(|follows| cell(design, follows))).collect()
}

fn text(results: &Results) -> String {
    let line = |follows: f64| {
        let mut cells = vec![format!("{follows}")];
        for design in DESIGNS {
            let tally = results.get(&name(design, follows));
            cells.push(percent(tally, tally.drift, 1));
            cells.push(percent(tally, tally.better + tally.worse, 1));
        }
        cells
    };
    let lines: Vec<Vec<String>> = FOLLOWS.into_iter().map(line).collect();
    let head = [
        "follows by",
        "looks: drift",
        "looks: called",
        "24 blocks: drift",
        "24 blocks: called",
        "margin: drift",
        "margin: called",
    ];
    format!(
        "## Differences that follow each other\n\n\
         Two arms are equal, but an arm's noise in one block is partly that of the block before (an autoregression of the first \
         order with this coefficient). Then blocks are worth less than they seem. *Drift*: runs that end `inconclusive` for it. \
         *Called*: runs that end `better` or `worse` all the same. *Looks*: after 6, 10, 16 and 24 blocks, without a margin; *24 \
         blocks*: one look; *margin*: the usual looks with the margin of 2 %, and noise of 2 %.\n\n\
         This is the weak place. With 24 blocks a strong dependence is seen, a weak one isn't. After six blocks hardly any can be: of \
         their 720 orders at most the seven most ordered have a p below 0.01. So with looks most runs end before it could be \
         seen, and the margin protects only as far as the noise is small beside it. Nothing in how isobench launches makes one block depend \
         on another; a machine whose state favours one arm for hours would. Where that is to be feared, `--fixed 24` looks once, \
         when it can be seen.\n\n{}\n",
        table(&head, &lines)
    )
}

fn claims(results: &Results) -> Vec<Claim> {
    let mut seen =
        Claim::new("24 differences that follow each other by 0.9 are `inconclusive: drift`", Bound::AtLeast(80.0));
    let cell = name("fixed", 0.9);
    seen.add_share(results.get(&cell), results.get(&cell).drift, &cell);
    let mut false_alarms = Claim::new("independent differences are called drift", Bound::AtMost(1.5));
    for design in DESIGNS {
        let cell = name(design, 0.0);
        false_alarms.add_share(results.get(&cell), results.get(&cell).drift, &cell);
    }
    vec![seen, false_alarms]
}
