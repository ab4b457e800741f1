//! Reads the records of a million requests of 128 tokens, made up on the way, and says how long it took and how much memory
//! it needed: `cargo run --release -p isobench-analysis --example million_requests [REQUESTS] [TOKENS]
//! [SPREAD_MS]`. Gaps between tokens differ by up to twice `SPREAD_MS`.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a measurement for people, which may stop anywhere")]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use isobench_analysis::load_report::{LoadFacts, LoadReader, ReportOptions};
use isobench_analysis::objective::Objective;
use isobench_analysis::validity::{LaunchRules, PromptCounts};
use isobench_schema::format;
use isobench_schema::ids::Digest;
use isobench_schema::measurement::MetricName;
use isobench_schema::record::{AuditLine, Phase, PhaseAudit, RecordHeader, RequestRecord, Usage};
use isobench_schema::units::Seconds;
use isobench_schema::workload::{Api, Arrival, Probes, Prompts, TokenCounter, Workload, WorkloadKind};

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<u32>().unwrap());
    let requests = arguments.next().unwrap_or(1_000_000);
    let tokens = arguments.next().unwrap_or(128);
    let spread_ns = u64::from(arguments.next().unwrap_or(1)) * 1_000_000;
    let workload = workload(requests, tokens);
    let rules = LaunchRules {
        requests,
        probes: 0,
        exact_length: true,
        count_tolerance: 0.0,
        arrival: workload.arrival.clone(),
        failed_requests: 0,
        min_window_s: Seconds::new(0.0).unwrap(),
        primary: MetricName::OutputThroughput,
        margin: 0.02,
        prompt_counts: PromptCounts::Unknown,
        script: None,
    };
    let objective = Some(Objective::parse("ttft<200ms && tpot<=50ms").unwrap());
    let mut reader = LoadReader::new(ReportOptions {
        is_whole: true,
        prompts_by_usage: false,
        rules,
        percentiles: vec![99.9],
        objective,
    });
    let header = RecordHeader {
        client: "isobench 0.1.0".to_owned(),
        clock: "none".to_owned(),
        epoch_unix_ns: 0,
        seed: 1,
        workload: Digest::of(b"w"),
    };
    reader.feed((format::to_line(&header).unwrap() + "\n").as_bytes());
    let (mut bytes, mut made) = (0, Duration::ZERO);
    let mut random = Random(1);
    let mut line = Vec::new();
    let begun = Instant::now();
    for index in 0..requests {
        let making = Instant::now();
        line.clear();
        serde_json::to_writer(&mut line, &record(index, (tokens, spread_ns), &mut random)).unwrap();
        line.push(b'\n');
        bytes += line.len();
        made += making.elapsed();
        reader.feed(&line);
    }
    let audit = AuditLine { audit: audit(u64::from(requests) * 2_000_000) };
    reader.feed((serde_json::to_string(&audit).unwrap() + "\n").as_bytes());
    let read = begun.elapsed().saturating_sub(made);
    println!(
        "{requests} requests of {tokens} tokens, {} MB of records, read in {:.1} s",
        bytes >> 20,
        read.as_secs_f64()
    );
    println!("peak memory after reading: {} MB", peak_mb());
    let begun = Instant::now();
    let facts = LoadFacts {
        urls: vec!["http://localhost".to_owned()],
        model: "none".to_owned(),
        started: "1970-01-01T00:00:00Z".to_owned(),
        workload,
        tokenizer_digest: None,
        dataset_digest: None,
        counted_by: TokenCounter::TokenIds,
    };
    let report = reader.finish(facts).unwrap();
    println!("numbers in {:.1} s, peak memory in all: {} MB", begun.elapsed().as_secs_f64(), peak_mb());
    println!("audit: {:?}", report.result.audit.map(|audit| audit.verdict));
    println!("flow: {:?}", report.result.flow.map(|flow| flow.state));
    for name in ["mean_ttft_ms", "p99_ttft_ms", "mean_itl_ms", "p99_itl_ms", "p99.9_itl_ms", "output_throughput"] {
        println!("{name}: {:?} {:?}", report.result.metrics.get(name), report.result.intervals.get(name));
    }
}

/// Returns what a client saw of itself that had a quarter of a processor to do.
fn audit(ended_ns: u64) -> PhaseAudit {
    PhaseAudit {
        phase: Phase::Measure,
        began_ns: 0,
        ended_ns,
        workers: 1,
        busiest_ns: ended_ns / 4,
        processor_ns: ended_ns / 4,
        waited_ns: Some(0),
        reads: 1,
        stamped_reads: 1,
        lag_ns: vec![(20_000, 1)],
        longest_lag_ns: 20_000,
        reconnects: 0,
        connections: 1,
        retransmits: Some(0),
    }
}

fn workload(requests: u32, output_tokens: u32) -> Workload {
    Workload {
        kind: WorkloadKind::Serving,
        api: Api::Completions,
        requests,
        prompts: Prompts::Words { input_tokens: 8 },
        output_tokens,
        ignore_eos: true,
        temperature: 0.0,
        arrival: Arrival::Constant { rate_per_s: 500.0 },
        max_in_flight: None,
        warm_up_requests: 0,
        probes: Probes { count: 0, output_tokens: 0 },
        counter: TokenCounter::TokenIds,
        extra_body: BTreeMap::new(),
        script: None,
    }
}

/// Returns a request that is due 2 ms after the one before it, with a gap of about 10 ms between tokens and now and then a
/// long one.
fn record(index: u32, (tokens, spread_ns): (u32, u64), random: &mut Random) -> RequestRecord {
    let due = u64::from(index) * 2_000_000;
    let mut at = due + 50_000_000 + random.below(5_000_000);
    let mut chunk_ns = Vec::with_capacity(usize::try_from(tokens).unwrap());
    for _ in 0..tokens {
        chunk_ns.push(at);
        let long = if random.below(100) == 0 { random.below(100_000_000) } else { 0 };
        at += 9_000_000 + random.below(spread_ns) + random.below(spread_ns) + long;
    }
    RequestRecord {
        input_tokens: 8,
        output_tokens_asked: tokens,
        released_ns: Some(due),
        sent_ns: Some(due + 50_000),
        first_byte_ns: Some(due + 1_000_000),
        chunk_tokens: vec![1; chunk_ns.len()],
        end_ns: chunk_ns.last().copied().unwrap_or(due) + 10_000,
        chunk_ns,
        status: Some(200),
        finish_reason: Some("length".to_owned()),
        usage: Some(Usage { prompt_tokens: 8, completion_tokens: u64::from(tokens) }),
        ..RequestRecord::intended(Phase::Measure, index, due)
    }
}

/// Numbers that look random (xorshift64, Marsaglia 2003).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// Returns the most memory that the process has had so far, in megabytes, or 0 where the kernel doesn't say.
fn peak_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).map_or(0, |kib| kib / 1024)
}
