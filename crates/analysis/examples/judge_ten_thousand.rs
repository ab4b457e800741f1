//! Judges 10,000 tasks of six blocks of three arms (180,000 launches), each at the first of four looks, with what they say
//! together, from what was read of the launches, and prints the time and the memory.
//!
//! `cargo run --release -p isobench-analysis --example judge_ten_thousand`

#![allow(clippy::print_stdout, reason = "the figures are the example's output")]
#![allow(clippy::unwrap_used, reason = "made-up values are right")]

#[path = "../tests/judging/support.rs"]
mod support;

use std::time::Instant;

use isobench_analysis::judge::Attempt;
use isobench_analysis::stats::sequential;
use isobench_analysis::suite;
use isobench_schema::failure::FailureClass;
use isobench_schema::plan::Spending;
use support::{attempts, failed, judged, plan, scaled, task, wobble};

const TASKS: u32 = 10_000;
const BLOCKS: u32 = 6;
const ARMS: &[&str] = &["baseline", "human", "agent:x"];

fn main() {
    let looks = sequential::looks(Spending::Even, &[6, 12, 18, 24]).unwrap();
    let tasks: Vec<_> = (0..TASKS)
        .map(|number| {
            let mut task = task(&format!("task-{number}"), ARMS, BLOCKS);
            task.design.looks.clone_from(&looks);
            task.design.futility = Some(0.1);
            task
        })
        .collect();
    let all: Vec<Attempt> = (0..)
        .zip(&tasks)
        .flat_map(|(number, task): (u32, _)| {
            // Human gains of 0 to 30 %, agents of half as much, noise of 1 to 4 %; one agent in twenty fails.
            let gain = f64::from(number % 31) / 100.0;
            let noise = f64::from(number % 4 + 1) / 100.0;
            attempts(task, BLOCKS, |block, arm, launch| match arm {
                "human" => scaled(launch, (1.0 + gain) * wobble(block + number % 7, noise)),
                "agent:x" if number % 20 == 0 => failed(launch, FailureClass::StartCrashed),
                "agent:x" => scaled(launch, (1.0 + gain / 2.0) * wobble(block + 3 + number % 5, noise)),
                _ => launch,
            })
        })
        .collect();
    let plan = plan(tasks);
    let before = resident_mib();

    let start = Instant::now();
    let judgement = judged(&plan, &all).unwrap();
    let seconds = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let again = suite::of(&plan, &judgement.tasks);
    let suite_seconds = start.elapsed().as_secs_f64();

    assert_eq!(again, judgement.suite, "the same judgements say the same");
    let contrasts: usize = judgement.tasks.iter().map(|task| task.contrasts.len()).sum();
    let launches: usize = all.iter().map(|attempt| attempt.launches.len()).sum();
    println!("tasks: {}, launches: {launches}, contrasts: {contrasts}", plan.tasks.len());
    println!("judging all: {seconds:.3} s, of which the tasks together: {suite_seconds:.3} s");
    for headline in judgement.suite.iter().flat_map(|suite| &suite.headlines) {
        let mean = headline.measured;
        println!("{} against {}: {:.4}x over {} tasks", headline.of, headline.against, mean.speedup, mean.tasks);
    }
    println!("resident before: {before} MiB, after: {} MiB", resident_mib());
}

/// Returns the resident memory of this process in MiB, by the operating system; 0 where it doesn't say.
fn resident_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) / 1024
}
