//! The simulations of the documents: which there are, how they are run, kept and printed.

#![allow(dead_code, reason = "the test and the example each use a part of it")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "cells are made here and looked up by the same names")]

pub(crate) mod claims;
pub(crate) mod numbers;
pub(crate) mod page;
pub(crate) mod plot;
pub(crate) mod results;
pub(crate) mod tables;

use isobench_analysis::simulation::{Machine, RivalRules, Scenario, Tally, seeds};
use isobench_analysis::stats::sequential::looks;
use isobench_schema::order::{default_schedule, derive_seed, look_set};
use isobench_schema::plan::{Look, Spending};

pub(crate) use claims::Claim;
pub(crate) use results::Results;

/// The most blocks of a usual run.
pub(crate) const MOST: u32 = 24;

/// One number of a table, or a few that come from the same runs.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    /// Its table and its place there.
    pub(crate) name: String,
    /// How many runs are simulated for the documents.
    pub(crate) runs: u32,
    pub(crate) scenario: Scenario,
    pub(crate) rivals: Rivals,
}

/// Whether other rules are asked about the same launches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rivals {
    Asked,
    Left,
}

impl Cell {
    pub(crate) fn new(name: String, runs: u32, scenario: Scenario) -> Self {
        Self { name, runs, scenario, rivals: Rivals::Left }
    }

    pub(crate) fn with_rivals(self) -> Self {
        Self { rivals: Rivals::Asked, ..self }
    }

    /// Simulates so many runs, divided among threads; what comes out doesn't depend on how.
    pub(crate) fn simulate(&self, runs: u32, seed: u64) -> Tally {
        let seeds: Vec<u64> = seeds(runs, derive_seed(seed, &self.name)).collect();
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let rules = (self.rivals == Rivals::Asked).then(|| RivalRules::new(MOST).unwrap());
        let part = seeds.len().div_ceil(threads).max(1);
        let mut all = Tally::default();
        let tally = |seeds: &[u64]| Tally::of(&self.scenario, seeds.iter().copied(), rules.as_ref());
        let tally = &tally;
        std::thread::scope(|scope| {
            let workers: Vec<_> = seeds.chunks(part).map(|seeds| scope.spawn(move || tally(seeds))).collect();
            for worker in workers {
                all.add(&worker.join().unwrap());
            }
        });
        all
    }
}

/// Returns every cell of every table.
pub(crate) fn cells() -> Vec<Cell> {
    tables::ALL.iter().flat_map(|table| (table.cells)()).collect()
}

/// Returns a scenario of independent normal differences on a machine with a spread of 1 %, without a margin or an effect,
/// with the usual looks.
pub(crate) fn usual(arms: usize) -> Scenario {
    with_looks(arms, &schedule(arms))
}

/// Returns the usual looks of so many arms.
pub(crate) fn schedule(arms: usize) -> Vec<u32> {
    default_schedule(MOST, look_set(arms))
}

/// Returns the same with looks of one's own, one at 5 % if it is only one.
pub(crate) fn with_looks(arms: usize, schedule: &[u32]) -> Scenario {
    let looks = match schedule {
        [blocks] => vec![one_look(*blocks)],
        _ => looks(Spending::Even, schedule).unwrap(),
    };
    Scenario::plain(arms, looks, Machine::steady(0.01))
}

pub(crate) fn one_look(blocks: u32) -> Look {
    Look { blocks, level: 0.05, equivalence_level: 0.05 }
}
