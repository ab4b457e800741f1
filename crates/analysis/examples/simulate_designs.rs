//! Simulates the designs of runs on made-up machines, and writes the tables of error rates, power and cost into the
//! documents.
//!
//! `cargo run --release -p isobench-analysis --example simulate_designs -- --write`; without `--write` it only says how the
//! bounds are kept, and `--again` prints the documents from the counts that are kept. Words after these choose cells by
//! their beginning, to look at their counts.

#![allow(clippy::print_stdout, reason = "the figures are the example's output")]
#![allow(clippy::unwrap_used, reason = "an example that meets the unexpected ends")]

#[path = "../tests/simulations/book/mod.rs"]
mod book;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use book::page::{DATA, ONCE, PAGE, PLOT, claims, once, page};
use book::plot::plot;
use book::results::SEED;
use book::{Results, cells};

fn main() {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    let is_asked = |option: &str| asked.iter().any(|word| word == option);
    let names: Vec<&String> = asked.iter().filter(|word| !word.starts_with("--")).collect();
    if is_asked("--again") {
        write(&Results::read(&fs::read_to_string(path(DATA)).unwrap()));
        return;
    }
    let begun = Instant::now();
    let mut results = Results::new();
    for cell in cells() {
        if !names.is_empty() && !names.iter().any(|name| cell.name.starts_with(name.as_str())) {
            continue;
        }
        let tally = cell.simulate(cell.runs, SEED);
        println!("{:7.1} s  {}: {}", begun.elapsed().as_secs_f64(), cell.name, serde_json::to_string(&tally).unwrap());
        results.cells.insert(cell.name, tally);
    }
    if !names.is_empty() {
        return;
    }
    if is_asked("--write") {
        write(&results);
    }
    println!("{} thousand runs", results.runs() / 1_000);
    for claim in claims(&results) {
        for (value, cell) in claim.misses() {
            println!("missed: {}: {value:.3} in {cell}", claim.text());
        }
    }
}

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

fn write(results: &Results) {
    let before = fs::read_to_string(path(ONCE)).unwrap();
    for (name, text) in
        [(DATA, results.write()), (PAGE, page(results)), (ONCE, once(results, &before)), (PLOT, plot(results))]
    {
        let path = path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}
