//! What other rules say of the same launches.

use isobench_analysis::simulation::{Machine, Rival, Scenario};

use super::Table;
use crate::book::claims::Bound;
use crate::book::numbers::{percent, table};
use crate::book::{Cell, Claim, Results, usual};

pub(super) const TABLE: Table = Table { cells, text, claims };

const RUNS: u32 = 20_000;

/// The noise of the difference of two launches, in percent.
pub(crate) const SPREADS: [f64; 6] = [0.5, 1.0, 2.0, 3.0, 4.0, 5.0];

/// The true speed-ups, in percent.
const EFFECTS: [f64; 3] = [0.0, 3.0, 5.0];

const MARGIN: f64 = 0.02;

fn name(spread: f64, effect: f64) -> String {
    format!("rules/{spread}/{effect}")
}

fn cells() -> Vec<Cell> {
    let cell = |spread: f64, effect: f64| {
        let machine = Machine::steady(spread / 100.0);
        let scenario = Scenario { margin: MARGIN, machine, effect: (effect / 100.0).ln_1p(), ..usual(2) };
        Cell::new(name(spread, effect), RUNS, scenario).with_rivals()
    };
    SPREADS.iter().flat_map(|spread| EFFECTS.map(|effect| cell(*spread, effect))).collect()
}

/// A rule with its name, what it costs, and how often it says `faster`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    Other(Rival),
    Ours,
}

/// The rules, in the order of the tables.
pub(crate) const RULES: [Rule; 7] = [
    Rule::Other(Rival::Bare2),
    Rule::Other(Rival::Bare5),
    Rule::Other(Rival::MannWhitney),
    Rule::Other(Rival::PeekFourTimes),
    Rule::Other(Rival::PeekAlways),
    Rule::Other(Rival::Once),
    Rule::Ours,
];

impl Rule {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Ours => "isobench, margin 2 %",
            Self::Other(Rival::Bare2) => "one run each, above 2 %",
            Self::Other(Rival::Bare5) => "one run each, above 5 %",
            Self::Other(Rival::MannWhitney) => "20 runs each, Mann–Whitney, p < 0.1",
            Self::Other(Rival::MannWhitneyAll) => "24 runs each, Mann–Whitney, p < 0.05",
            Self::Other(Rival::Once) => "24 blocks, t test, p < 0.05",
            Self::Other(Rival::PeekFourTimes) => "t test after 6, 10, 16, 24 blocks, p < 0.05 each",
            Self::Other(Rival::PeekAlways) => "t test after every block from the 6th on, p < 0.05 each",
        }
    }

    /// Returns how many runs of a cell the rule called faster.
    fn faster(self, results: &Results, cell: &str) -> u32 {
        let tally = results.get(cell);
        match self {
            Self::Ours => tally.better,
            Self::Other(rival) => tally.rivals[&rival].faster,
        }
    }

    /// Returns the share of comparisons of two equal arms in which the rule calls the second faster.
    pub(crate) fn false_wins(self, results: &Results, spread: f64) -> f64 {
        let cell = name(spread, 0.0);
        results.get(&cell).share(self.faster(results, &cell))
    }
}

/// Returns the table of what is called faster at a true speed-up, by rule and noise.
pub(crate) fn called_faster(results: &Results, effect: f64) -> String {
    let line = |rule: Rule| {
        let shares = SPREADS.map(|spread| {
            let cell = name(spread, effect);
            let tally = results.get(&cell);
            format!("{} %", percent(tally, rule.faster(results, &cell), 1))
        });
        std::iter::once(rule.text().to_owned()).chain(shares).collect()
    };
    let lines: Vec<Vec<String>> = RULES.into_iter().map(line).collect();
    let mut head = vec!["rule".to_owned()];
    head.extend(SPREADS.map(|spread| format!("noise {spread} %")));
    table(&head.iter().map(String::as_str).collect::<Vec<_>>(), &lines)
}

/// Returns the table of false wins, and of true speed-ups that are found.
fn text(results: &Results) -> String {
    let blocks = |effect: f64| {
        let cells = SPREADS.map(|spread| format!("{:.1}", results.get(&name(spread, effect)).mean_blocks()));
        std::iter::once(format!("{effect} %")).chain(cells).collect()
    };
    let blocks: Vec<Vec<String>> = EFFECTS.into_iter().map(blocks).collect();
    let mut head = vec!["true speed-up".to_owned()];
    head.extend(SPREADS.map(|spread| format!("noise {spread} %")));
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    format!(
        "## What other rules say of the same launches\n\n\
         Two arms, orders as isobench has them, without drift: what is wrong here is the rule's alone. *20 runs each, \
         Mann–Whitney*: the test of SWE-Perf (He and others 2025, arXiv 2507.12415) on launches, without its removal of \
         outliers. Noise is the standard deviation of the difference of two launches. Two standard errors are 0.7 at most.\n\n\
         Called faster though both are equal (the second arm; called slower as often):\n\n{}\n\
         Called faster at a true speed-up of 3 %:\n\n{}\n\
         Called faster at a true speed-up of 5 %:\n\n{}\n\
         Blocks that isobench took in the mean:\n\n{}\n",
        called_faster(results, 0.0),
        called_faster(results, 3.0),
        called_faster(results, 5.0),
        table(&head, &blocks)
    )
}

fn claims(results: &Results) -> Vec<Claim> {
    let mut claim = Claim::new("called `better` without a difference, margin 2 %", Bound::AtMost(2.75));
    for spread in SPREADS {
        claim.add(100.0 * Rule::Ours.false_wins(results, spread), &name(spread, 0.0));
    }
    vec![claim]
}
