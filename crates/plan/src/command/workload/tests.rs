//! What commands become, against small tables made by hand.

mod values;

use isobench_schema::workload::Prompts;

use super::*;
use crate::command::Asked;
use crate::command::fit::fit_by;
use crate::command::tables::{programs, revision};
use crate::knowledge::Knowledge;

/// What a command becomes at a month, in lines.
fn shown(command: &str, month: &str) -> String {
    let baseline = revision(month);
    let engine = if command.contains("sglang") { EngineKind::Sglang } else { EngineKind::Vllm };
    let asked =
        Asked { command, server_command: None, engine, model: Some("row/model"), baseline: &baseline, human: None };
    let programs = programs();
    let knowledge = Knowledge::embedded();
    let fitted = fit_by(&asked, &programs, &knowledge.translations).unwrap();
    let derived = derive(&fitted, &knowledge.clients, Some(32_000));
    let mut lines = Vec::new();
    if let Some(workload) = &derived.workload {
        let prompts = match &workload.prompts {
            Prompts::TokenIds { input_tokens, .. } => format!("{input_tokens} token ids"),
            Prompts::Words { input_tokens } => format!("{input_tokens} words"),
            Prompts::Dataset { name, options } => {
                let options: Vec<String> = options
                    .iter()
                    .map(|(name, value)| format!(" {name}={}", serde_json::to_string(value).unwrap()))
                    .collect();
                format!("{name}{}", options.concat())
            }
        };
        let Workload { kind, api, requests, output_tokens, ignore_eos, temperature, warm_up_requests, arrival, .. } =
            workload;
        let arrival = serde_json::to_string(arrival).unwrap();
        lines.push(format!(
            "{kind} {api}: {requests} + {warm_up_requests} x {prompts} -> {output_tokens}, eos {ignore_eos}, t {temperature}, {arrival}"
        ));
        lines.extend(workload.extra_body.iter().map(|(name, value)| format!("body {name}={value}")));
    }
    lines.push(format!(
        "{} {}",
        derived.model.as_deref().unwrap_or("-"),
        serde_json::to_string(&derived.server).unwrap()
    ));
    lines.extend(derived.fates.iter().map(|fate| format!("{} => {}", fate.written, fate.became)));
    lines.extend(
        derived
            .repairs
            .iter()
            .map(|repair| format!("{} {}: {} -> {}", repair.kind, repair.subject, repair.asked, repair.run)),
    );
    lines.extend(derived.findings.iter().map(|found| format!("{} {}: {}", found.severity, found.rule, found.message)));
    lines.join("\n")
}

#[track_caller]
fn check(command: &str, month: &str, expected: &[&str]) {
    let found = shown(command, month);
    assert_eq!(found, expected.join("\n"), "{command} at {month}\n{found}");
}

#[test]
fn a_serving_command_becomes_a_serving_workload() {
    check(
        "python benchmarks/benchmark_serving.py --model m/x --dtype float16 --num-prompts 300 --seed 0",
        "2025-04",
        &[
            r#"serving completions: 300 + 8 x sharegpt dataset-path="ShareGPT_V3_unfiltered_cleaned_split.json" -> 0, eos false, t 0, {"kind":"all-at-once"}"#,
            r#"m/x {"dtype":"float16"}"#,
            "--model m/x => the server's model",
            "--num-prompts 300 => workload.requests",
            "--seed 0 => isobench seeds each block itself, alike for every arm",
            "--dtype float16 => server option `--dtype`",
        ],
    );
    check(
        "python benchmarks/benchmark_serving.py --model m/x --input-len 1024 --output-len 64 --request-rate 5 --ignore-eos",
        "2024-11",
        &[
            r#"serving completions: 1000 + 8 x 1024 token ids -> 64, eos true, t 0, {"kind":"open","rate_per_s":5.0,"burstiness":1.0}"#,
            "m/x {}",
            "--model m/x => the server's model",
            "--request-rate 5 => workload.arrival",
            "--ignore-eos => workload.ignore-eos",
            "--input-len 1024 => workload.prompts",
            "--output-len 64 => workload.output-tokens",
        ],
    );
    check(
        "python benchmarks/benchmark_serving.py --model m/x --dataset-path a.json --max-concurrency 4 --backend openai-chat",
        "2024-11",
        &[
            r#"serving chat: 1000 + 8 x sharegpt dataset-path="a.json" -> 0, eos false, t 0, {"kind":"closed","concurrency":4}"#,
            "m/x {}",
            "--model m/x => the server's model",
            "--dataset-path a.json => workload.prompts",
            "--max-concurrency 4 => workload.arrival",
            "--backend openai-chat => workload.api",
        ],
    );
}

#[test]
fn what_isobenchs_own_client_cannot_do_is_an_error() {
    check(
        "python benchmarks/benchmark_serving.py --model m/x --dataset-path a.json --max-concurrency 4 --request-rate 2",
        "2024-11",
        &[
            "m/x {}",
            "--model m/x => the server's model",
            "--dataset-path a.json => workload.prompts",
            "--max-concurrency 4 => workload.arrival",
            "--request-rate 2 => workload.arrival",
            "error feature-conflict: `--request-rate 2` and `--max-concurrency 4` together: isobench's own client keeps either a rate or a number of requests under way",
        ],
    );
    check(
        "python benchmarks/benchmark_serving.py --model m/x --dataset a.json --backend tgi",
        "2024-02",
        &[
            "m/x {}",
            "--model m/x => the server's model",
            "--dataset a.json => workload.prompts",
            "--backend tgi => workload.api",
            "error feature-conflict: the backend `tgi` isn't this engine's, or no interface that isobench's own client speaks",
        ],
    );
}

#[test]
fn what_a_client_sends_by_itself_is_sent() {
    check(
        "python benchmarks/benchmark_serving.py --model m/x --dataset a.json",
        "2024-02",
        &[
            r#"serving completions: 1000 + 8 x sharegpt dataset="a.json" -> 0, eos true, t 1, {"kind":"all-at-once"}"#,
            "m/x {}",
            "--model m/x => the server's model",
            "--dataset a.json => workload.prompts",
            "option-translated client.backend: `/generate` of the demonstration server -> `/v1/completions`",
        ],
    );
    check(
        "python benchmarks/benchmark_serving.py --model m/x --input-len 1000 --output-len 50",
        "2024-05",
        &[
            r#"serving completions: 1000 + 8 x sonnet dataset-name="sonnet" dataset-path="benchmarks/sonnet.txt" sonnet-input-len=1000 sonnet-output-len=50 -> 50, eos false, t 0, {"kind":"all-at-once"}"#,
            "m/x {}",
            "--model m/x => the server's model",
            "--input-len 1000 => workload.prompts",
            "--output-len 50 => workload.output-tokens",
        ],
    );
}

#[test]
fn an_offline_throughput_benchmark_sends_everything_at_once() {
    check(
        "python benchmarks/benchmark_throughput.py --model m/x --input-len 256 --output-len 128 -tp 8 --load-format dummy",
        "2024-05",
        &[
            r#"throughput completions: 1000 + 8 x 256 token ids -> 128, eos true, t 1, {"kind":"all-at-once"}"#,
            r#"m/x {"load-format":"dummy","tensor-parallel-size":8}"#,
            "--model m/x => the server's model",
            "--input-len 256 => workload.prompts",
            "--output-len 128 => workload.output-tokens",
            "-tp 8 => server option `--tensor-parallel-size`",
            "--load-format dummy => server option `--load-format`",
            "offline-through-server workload: `benchmark_throughput.py`, which holds the engine itself -> the same engine behind its server, loaded by isobench's own client",
        ],
    );
    check(
        "python benchmarks/benchmark_throughput.py --model m/x --num-prompts 7",
        "2024-05",
        &[
            r#"throughput completions: 7 + 8 x sharegpt dataset="ShareGPT_V3_unfiltered_cleaned_split.json" -> 0, eos true, t 1, {"kind":"all-at-once"}"#,
            "m/x {}",
            "--model m/x => the server's model",
            "--num-prompts 7 => workload.requests",
            "offline-through-server workload: `benchmark_throughput.py`, which holds the engine itself -> the same engine behind its server, loaded by isobench's own client",
        ],
    );
}

#[test]
fn an_offline_latency_benchmark_keeps_a_batch_under_way() {
    check(
        "python benchmarks/benchmark_latency.py --model m/x --batch-size 32 --enable-chunked-prefill",
        "2024-05",
        &[
            r#"latency completions: 960 + 320 x 32 token ids -> 128, eos true, t 1, {"kind":"closed","concurrency":32}"#,
            r#"m/x {"enable-chunked-prefill":true}"#,
            "--model m/x => the server's model",
            "--batch-size 32 => workload.requests and workload.arrival",
            "--enable-chunked-prefill => server option `--enable-chunked-prefill`",
            "offline-through-server workload: `benchmark_latency.py`, which holds the engine itself -> the same engine behind its server, loaded by isobench's own client",
        ],
    );
    check(
        "python benchmarks/benchmark_latency.py --model m/x --input-len 16",
        "2025-06",
        &[
            r#"latency completions: 240 + 80 x 16 token ids -> 128, eos true, t 1, {"kind":"closed","concurrency":8}"#,
            r#"m/x {"no-enable-prefix-caching":true}"#,
            "--model m/x => the server's model",
            "--input-len 16 => workload.prompts",
            "offline-through-server workload: `benchmark_latency.py`, which holds the engine itself -> the same engine behind its server, loaded by isobench's own client",
        ],
    );
}

#[test]
fn a_client_of_sglang_goes_past_the_end_of_answers() {
    check(
        "python -m sglang.bench_serving --num-prompt 480",
        "2024-09",
        &[
            r#"serving completions: 480 + 8 x sharegpt -> 0, eos true, t 0, {"kind":"all-at-once"}"#,
            "row/model {}",
            "--num-prompt 480 => workload.requests",
            "option-translated client.backend: the engine's own `/generate` -> `/v1/completions`",
        ],
    );
}
