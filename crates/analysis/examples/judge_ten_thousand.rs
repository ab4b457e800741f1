//! Judges 10,008 launches (139 tasks of 24 blocks of three arms) from what was read of them (8 probes of 64
//! words on each side, 16 answers of 32), and prints the time and the memory.
//!
//! `cargo run --release -p isobench-analysis --example judge_ten_thousand`

#![allow(clippy::print_stdout, reason = "the figures are the example's output")]
#![allow(clippy::unwrap_used, reason = "made-up values are right")]

#[path = "../tests/judging/support.rs"]
mod support;

use std::time::Instant;

use isobench_analysis::judge::Attempt;
use support::{answers, attempts, judged, plan, scaled, task, with, wobble};

const TASKS: u32 = 139;
const BLOCKS: u32 = 24;
const ARMS: &[&str] = &["baseline", "human", "agent:x"];

fn main() {
    let (probe, answer) = (["pump house"; 32].join(" "), ["night shift"; 16].join(" "));
    let tasks: Vec<_> = (0..TASKS).map(|number| task(&format!("task-{number}"), ARMS, BLOCKS)).collect();
    let all: Vec<Attempt> = tasks
        .iter()
        .flat_map(|task| {
            attempts(task, BLOCKS, |block, arm, launch| {
                let factor = match arm {
                    "human" => 1.2 * wobble(block, 0.05),
                    "agent:x" => 1.1 * wobble(block + 3, 0.05),
                    _ => 1.0,
                };
                with(scaled(launch, factor), |digest| {
                    digest.probes_before = answers(&[probe.as_str(); 8]);
                    digest.probes_after = digest.probes_before.clone();
                    digest.answers = answers(&[answer.as_str(); 16]);
                })
            })
        })
        .collect();
    let plan = plan(tasks);
    let digests: usize = all
        .iter()
        .flat_map(|attempt| &attempt.launches)
        .filter_map(|launch| Some(serde_json::to_string(launch.digest.as_ref()?).unwrap().len()))
        .sum();
    let before = resident_mib();

    let start = Instant::now();
    let judgement = judged(&plan, &all).unwrap();
    let seconds = start.elapsed().as_secs_f64();

    let contrasts: usize = judgement.tasks.iter().map(|task| task.contrasts.len()).sum();
    println!("launches judged: {}", TASKS * BLOCKS * 3);
    println!("contrasts: {contrasts}");
    println!("digests as JSON: {digests} bytes");
    println!("judging: {seconds:.3} s");
    println!("resident before: {before} MiB, after: {} MiB", resident_mib());
}

/// Returns the resident memory of this process in MiB, by the operating system; 0 where it doesn't say.
fn resident_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) / 1024
}
