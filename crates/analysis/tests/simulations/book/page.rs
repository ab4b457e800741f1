//! The page of the simulations, and the table in the page for who would run it once.

use super::claims::Claim;
use super::numbers::{table, thousands};
use super::results::{Results, SEED};
use super::tables::{self, power, rules};

/// Where things are kept, from the root of the repository.
pub(crate) const DATA: &str = "docs/data/simulations.json";
pub(crate) const PAGE: &str = "docs/simulations.md";
pub(crate) const ONCE: &str = "docs/why-not-once.md";
pub(crate) const PLOT: &str = "docs/images/false-wins.svg";

/// The command that writes all of them.
pub(crate) const COMMAND: &str = "cargo run --release -p isobench-analysis --example simulate_designs -- --write";

/// Returns every claim with the numbers that are held to it.
pub(crate) fn claims(results: &Results) -> Vec<Claim> {
    tables::ALL.iter().flat_map(|table| (table.claims)(results)).collect()
}

/// Returns `docs/simulations.md`.
pub(crate) fn page(results: &Results) -> String {
    let claims: Vec<Vec<String>> = claims(results).iter().map(Claim::row).collect();
    let tables: String = tables::ALL.iter().map(|table| (table.text)(results)).collect();
    let cells = u32::try_from(results.cells.len()).unwrap();
    let runs = results.runs() / 1_000;
    let head = ["claim", "bound, %", "worst number", "where", ""];
    format!(
        "# How often isobench is wrong, by simulation\n\n\
         <!-- Written by crates/analysis/examples/simulate_designs.rs; don't edit. -->\n\n\
         Made-up machines, made-up launches, and the code that judges a run (rules `{rules}`): {runs} thousand whole runs in {cells} \
         cells, seed {SEED}. A cell is one design on one machine. Each launch is drawn by itself: the effect that is asked for, what \
         its block has in common, what its slot and its time cost, and noise of its own. *Noise* is the standard deviation of a block \
         difference, the difference of two launches of one block as a log ratio. Runs of the tables: 40,000 for each rate without a \
         difference (100,000 where the difference is skewed), 20,000 for equivalence, intervals, costs and other rules, 10,000 for \
         power, 5,000 for differences that follow each other, 2,000 with futility. Where `±` is printed, it is two binomial standard errors.\n\n\
         ```sh\n{COMMAND}\n```\n\n\
         writes this page, [its counts](data/simulations.json), [the plot](images/false-wins.svg) and the table in [Why not just \
         run it once?](why-not-once.md) anew. Tests of the ordinary suite hold every count to the bounds below, simulate a sample of \
         the cells again with other seeds, and compare decisions with those of whole judged runs; `ISOBENCH_SLOW=1` simulates \
         every cell again. What the rules are is said in [methodology](methodology.md).\n\n\
         ## What is held\n\n{claims}\n{tables}",
        rules = results.rules,
        runs = thousands(u32::try_from(runs).unwrap()),
        cells = thousands(cells),
        claims = table(&head, &claims),
    )
    .trim_end()
    .to_owned()
        + "\n"
}

/// Returns `docs/why-not-once.md` with its tables written anew.
pub(crate) fn once(results: &Results, text: &str) -> String {
    let tables = [("false wins", rules::called_faster(results, 0.0)), ("costs", power::costs(results))];
    tables.into_iter().fold(text.to_owned(), |text, (name, table)| {
        let (begin, end) = (format!("<!-- simulated: {name} -->\n"), format!("<!-- end of simulated: {name} -->"));
        let (before, rest) = text.split_once(&begin).unwrap();
        let (_, after) = rest.split_once(&end).unwrap();
        format!("{before}{begin}\n{table}\n{end}{after}")
    })
}
