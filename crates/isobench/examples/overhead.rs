//! Measures what isobench adds to an engine and its load: from ready to the first request, and the share of a block that
//! is neither the engine nor the load. On the fake engine, whose times are exact:
//!
//! ```text
//! cargo build --release -p isobench -p isobench-testkit
//! cargo run --release -p isobench --example overhead
//! ```
//!
//! It takes about two minutes and wants an idle machine.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "a program for developers, which may just end if something isn't there"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use isobench_schema::event::{BlockEnd, EventKind};
use isobench_schema::outcome::{LaunchRecord, Outcome};
use isobench_schema::units::Millis;
use isobench_store::RunReader;
use isobench_testkit::{FakeRepository, Speed, TaskText};

/// The bounds that are aimed at.
const FIRST_REQUEST_MS: f64 = 20.0;
const SHARE: f64 = 0.02;

/// Launches whose first request is timed: two in each block.
const SHORT_BLOCKS: u32 = 12;
/// Blocks with a window of ten seconds.
const LONG_BLOCKS: u32 = 2;

/// How long a block took, and the records of its launches.
struct Block {
    took_ms: f64,
    launches: Vec<LaunchRecord>,
}

fn main() {
    let place = tempfile::tempdir().unwrap();
    let speed = Speed { ttft_us: 2000, itl_us: 400 };
    let repository = FakeRepository::create(&place.path().join("repository"), speed, speed).unwrap();
    let mut text = TaskText::new("overhead", &repository.dir);
    (text.requests, text.blocks) = (16, SHORT_BLOCKS);
    let short = measure(place.path(), "short", &text);
    // A request takes 8 ms and four are under way: ten seconds.
    (text.requests, text.blocks) = (4800, LONG_BLOCKS);
    let long = measure(place.path(), "long", &text);
    print_first_request(short.iter().chain(&long).flat_map(|block| &block.launches));
    print_shares(&long);
}

/// Runs a task, and returns its complete blocks.
fn measure(place: &Path, name: &str, text: &TaskText) -> Vec<Block> {
    let folder = place.join(format!("{name}-task"));
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("task.toml"), text.toml()).unwrap();
    let run = place.join(name);
    let status = Command::new(program())
        .arg("run")
        .arg(&folder)
        .arg("--out")
        .arg(&run)
        .arg("--quiet")
        .env("ISOBENCH_CACHE", place.join("cache"))
        .env("ISOBENCH_LEASES", place.join("leases"))
        .stdout(std::process::Stdio::null())
        .status()
        .unwrap();
    assert!(status.success(), "the run failed with {status}");
    let mut begun = BTreeMap::new();
    let mut blocks = Vec::new();
    for event in RunReader::open(&run).unwrap().events().unwrap() {
        let event = event.unwrap();
        match event.kind {
            EventKind::BlockStarted { id, .. } => {
                begun.insert(id, event.at_ms.get());
            }
            EventKind::BlockEnded { id, end: BlockEnd::Complete, launches, .. } => {
                assert!(launches.iter().all(|record| record.outcome == Outcome::Measured), "{launches:?}");
                blocks.push(Block { took_ms: event.at_ms.get() - begun[&id], launches });
            }
            EventKind::BlockEnded { .. }
            | EventKind::RunStarted { .. }
            | EventKind::OrphansEnded { .. }
            | EventKind::LookTaken { .. }
            | EventKind::LaunchStage { .. }
            | EventKind::Confirmed { .. }
            | EventKind::ConfirmationWithdrawn { .. }
            | EventKind::RunEnded { .. } => {}
        }
    }
    blocks
}

/// Returns the command, which cargo puts beside the folder of examples.
fn program() -> PathBuf {
    let this = std::env::current_exe().unwrap();
    let program = this.ancestors().nth(2).unwrap().join("isobench");
    assert!(program.is_file(), "build it first: cargo build --release -p isobench -p isobench-testkit");
    program
}

fn print_first_request<'r>(launches: impl Iterator<Item = &'r LaunchRecord>) {
    let mut times: Vec<f64> = launches.map(|record| record.timeline.first_request_ms.unwrap().get()).collect();
    times.sort_by(f64::total_cmp);
    let (middle, most) = (times[times.len() / 2], times[times.len() - 1]);
    println!("ready to first request, {} launches: median {middle:.2} ms, most {most:.2} ms", times.len());
    println!("  {}: the bound is {FIRST_REQUEST_MS} ms", word(most < FIRST_REQUEST_MS));
}

fn print_shares(blocks: &[Block]) {
    let mut parts: BTreeMap<&str, f64> = BTreeMap::new();
    let took: f64 = blocks.iter().map(|block| block.took_ms).sum();
    for record in blocks.iter().flat_map(|block| &block.launches) {
        let time = &record.timeline;
        for (name, part) in [
            ("environment", time.environment_ms),
            ("engine start", time.start_ms),
            ("warm-up", time.warm_up_ms),
            ("window", time.window_ms),
            ("engine stop", time.stop_ms),
        ] {
            *parts.entry(name).or_default() += part.map_or(0.0, Millis::get);
        }
    }
    println!("{} blocks of {} launches, {:.1} s", blocks.len(), blocks[0].launches.len(), took / 1000.0);
    for (name, part) in &parts {
        println!("  {name:<14}{:>10.1} ms {:>7.3} %", part, part / took * 100.0);
    }
    let rest = took - parts.values().sum::<f64>();
    let with_environment = rest + parts["environment"];
    println!("  {:<14}{rest:>10.1} ms {:>7.3} %", "everything else", rest / took * 100.0);
    println!("besides engine and load, environments included: {:.3} % of a block", with_environment / took * 100.0);
    println!("  {}: the bound is {} %", word(with_environment / took < SHARE), SHARE * 100.0);
}

fn word(holds: bool) -> &'static str {
    if holds { "held" } else { "NOT HELD" }
}
