//! Writes the table of boundaries: the levels of the looks of usual schedules.
//!
//! `cargo run --release -p isobench-analysis --example boundaries > knowledge/boundaries.toml`

#![allow(clippy::print_stdout, reason = "the table is the example's output")]
#![allow(clippy::unwrap_used, reason = "the schedules are right")]

use isobench_analysis::stats::sequential::StoredBoundary;
use isobench_schema::order::default_schedule;
use isobench_schema::plan::Spending;

const HEAD: &str = "\
# The levels of the looks of usual schedules: `difference` has the two-sided level of each look, `equivalence` the
# one-sided level of each of the two tests. `error` is what either has over all looks. Other schedules are calculated when
# they are asked for (crates/analysis/src/stats/sequential/).
#
# Written by `cargo run --release -p isobench-analysis --example boundaries`; a test calculates each row anew.

error = 0.05
";

/// The most blocks of the schedules, and the sizes of sets of orders: of two, three, four and five arms.
const MOST: [u32; 2] = [24, 48];
const SETS: [u32; 4] = [2, 6, 4, 10];

fn main() {
    println!("{HEAD}");
    for &spending in Spending::ALL {
        let mut schedules: Vec<Vec<u32>> =
            MOST.iter().flat_map(|most| SETS.map(|set| default_schedule(*most, set))).collect();
        schedules.sort();
        schedules.dedup();
        for looks in schedules {
            let row = StoredBoundary::calculate(spending, &looks).unwrap();
            println!("[[boundary]]\n{}", toml::to_string(&row).unwrap());
        }
    }
}
