//! Small tables of programs, made by hand.

use isobench_schema::assessment::{FactSource, Finding, RevisionFacts};
use isobench_schema::environment::EngineKind;
use isobench_schema::ids::{CommitId, Moment};
use isobench_schema::tool::Tool;

use super::fit::fit_by;
use crate::command::Asked;
use crate::knowledge::Knowledge;
use crate::knowledge::options::{OptionSpec, Place, Program, Takes, ValueKind};

/// Programs with their places, and options: names, kind, default, choices and span.
const PROGRAMS: &str = "
benchmark_serving.py benchmarks/benchmark_serving.py 2023-06..2025-09
  --backend text =vllm {tgi,vllm,openai,openai-chat}
  --dataset text required ..2024-03
  --tokenizer text required ..2024-01
  --tokenizer text 2024-01..
  --model text required 2024-01..
  --dataset text 2024-03..2025-02
  --dataset-name text =sharegpt {sharegpt,sonnet} 2024-03..2024-07
  --dataset-name text =sharegpt {sharegpt,sonnet,random,hf} 2024-07..
  --dataset-path text 2024-03..
  --sonnet-input-len whole =550 2024-03..
  --sonnet-output-len whole =150 2024-03..
  --sharegpt-output-len whole 2024-03..
  --random-input-len whole =1024 2024-07..
  --random-output-len whole =128 2024-07..
  --num-prompts whole =1000
  --request-rate number =inf
  --max-concurrency whole 2024-11..
  --burstiness number =1.0 2024-11..
  --temperature number 2024-11..
  --top-p number 2024-11..
  --extra-body json 2024-11..
  --seed whole =0
  --save-result switch
  --result-filename text
  --ignore-eos switch 2024-10..
benchmark_throughput.py benchmarks/benchmark_throughput.py 2023-06..2025-09
  --model text =facebook/opt-125m
  --dataset text
  --dataset-name text =sharegpt {sharegpt,random} 2025-02..
  --dataset-path text 2025-02..
  --input-len whole
  --output-len whole
  --num-prompts whole =1000
  --tensor-parallel-size,-tp whole =1
  --load-format text
benchmark_latency.py benchmark/benchmark_latency.py 2023-04..2023-06
  --model text =facebook/opt-125m ..2023-06
benchmark_latency.py benchmarks/benchmark_latency.py 2023-06..2025-09
  --model text =facebook/opt-125m 2023-06..
  --input-len whole =32
  --output-len whole =128
  --batch-size whole =8
  --num-iters whole =30
  --num-iters-warmup whole =10
  --tensor-parallel-size,-tp whole =1 2023-06..
  --enable-chunked-prefill switch 2024-04..
  --speculative-model text 2024-06..2025-04
  --num-speculative-tokens whole 2024-06..2025-04
  --ngram-prompt-lookup-max whole 2024-06..2025-04
vllm_bench_serve vllm/benchmarks/serve.py 2025-03..
  --model text required
  --endpoint-type text =openai-comp {openai-comp,openai-chat} ..2025-06
  --backend text =vllm {vllm,openai} 2025-06..
  --dataset-name text =random {random}
  --random-input-len whole =1024
vllm_serve vllm/entrypoints/openai/api_server.py 2023-06..
  --model text
  --dtype text =auto {auto,half,float16,bfloat16}
  --quantization text {awq,fp8}
  --tensor-parallel-size,-tp whole =1
  --max-model-len whole
  --enable-chunked-prefill switch 2024-04..
  --enable-prefix-caching switch 2023-12..2025-01
  --enable-prefix-caching switch-or-no 2025-01..
  --use-v2-block-manager switch 2024-03..2025-07
  --num-scheduler-steps whole =1 2024-08..2025-07
  --guided-decoding-backend text =outlines {outlines,lm-format-enforcer} 2024-04..2024-12
  --guided-decoding-backend text =xgrammar {outlines,xgrammar} 2024-12..2025-09
  --structured-outputs-config json 2025-09..
  --speculative-model text 2024-04..2025-04
  --num-speculative-tokens whole 2024-04..2025-04
  --ngram-prompt-lookup-max whole 2024-04..2025-04
  --speculative-config json 2025-03..
  --device text =auto {auto,cuda,cpu} 2024-02..2025-07
  --load-format text
  --disable-log-requests switch ..2025-11
  --enable-log-requests switch-or-no 2025-08..
  --host text
  --port whole =8000
  --served-model-name text
  --middleware text
  --config text
  --ssl-keyfile text
  --api-key text
  --node-rank whole =0
  --trust-remote-code switch
  --chat-template text
sglang.bench_serving python/sglang/bench_serving.py 2024-07..
  --backend text =sglang
  --model text
  --num-prompts whole =1000
  --dataset-name text =sharegpt {sharegpt,random,generated-shared-prefix}
  --gen-num-groups whole ..2025-01
  --gsp-num-groups whole 2025-01..
sglang.launch_server python/sglang/launch_server.py 2024-01..
  --model-path,--model text required
  --tp-size,--tp whole =1
  --disable-radix-cache switch
";

fn moment(month: &str) -> Moment {
    Moment::new(format!("{month}-01T00:00:00Z")).unwrap()
}

fn span(text: &str) -> (Moment, Option<Moment>) {
    let (since, until) = text.split_once("..").unwrap();
    let since = if since.is_empty() { "2000-01" } else { since };
    (moment(since), (!until.is_empty()).then(|| moment(until)))
}

fn option_spec(line: &str) -> OptionSpec {
    let mut words = line.split_whitespace();
    let names = words.next().unwrap().split(',').map(ToOwned::to_owned).collect();
    let (takes, kind) = match words.next().unwrap() {
        "text" => (Takes::One, ValueKind::Text),
        "whole" => (Takes::One, ValueKind::Whole),
        "number" => (Takes::One, ValueKind::Number),
        "json" => (Takes::One, ValueKind::Json),
        "switch" => (Takes::Nothing, ValueKind::Text),
        "switch-or-no" => (Takes::NothingOrNo, ValueKind::Text),
        other => panic!("{other}"),
    };
    let mut spec = OptionSpec {
        names,
        takes,
        kind,
        choices: vec![],
        default: None,
        required: false,
        since: moment("2000-01"),
        until: None,
        since_commit: "0".repeat(12),
        until_commit: None,
        since_release: None,
        until_release: None,
    };
    for word in words {
        if word == "required" {
            spec.required = true;
        } else if let Some(default) = word.strip_prefix('=') {
            spec.default = Some(default.to_owned());
        } else if let Some(list) = word.strip_prefix('{') {
            spec.choices = list.trim_end_matches('}').split(',').map(ToOwned::to_owned).collect();
        } else {
            (spec.since, spec.until) = span(word);
        }
    }
    spec
}

pub(super) fn programs() -> Vec<Program> {
    let mut programs: Vec<Program> = Vec::new();
    for line in PROGRAMS.lines().filter(|line| !line.trim().is_empty()) {
        if line.starts_with(' ') {
            programs.last_mut().unwrap().push(option_spec(line));
            continue;
        }
        let [name, path, when] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let tool = Tool::parse(&name.replace('_', " ")).or_else(|| Tool::parse(name)).unwrap();
        let (since, until) = span(when);
        let place = Place {
            path: path.to_owned(),
            since,
            until,
            since_commit: "0".repeat(12),
            until_commit: None,
            since_release: None,
            until_release: None,
        };
        if let Some(program) = programs.iter_mut().find(|program| program.tool == tool) {
            program.place.push(place);
        } else {
            programs.push(Program::of(tool, place));
        }
    }
    programs
}

pub(super) fn revision(month: &str) -> RevisionFacts {
    RevisionFacts {
        commit: CommitId::new("a".repeat(40)).unwrap(),
        parent: None,
        committed: moment(month),
        subject: String::new(),
        after_release: None,
        first_release: None,
        native_key: None,
        files_changed: None,
        scripts: None,
        source: FactSource::Knowledge,
    }
}

/// What becomes of a command at a month, in lines: the argument lists, repairs and findings.
pub(super) fn shown(command: &str, server: Option<&str>, month: &str) -> String {
    let human = revision(if month == "2024-11" { "2024-12" } else { month });
    let mut baseline = revision(month);
    baseline.commit = CommitId::new("b".repeat(40)).unwrap();
    let engine = if command.contains("sglang") { EngineKind::Sglang } else { EngineKind::Vllm };
    let asked =
        Asked { command, server_command: server, engine, model: None, baseline: &baseline, human: Some(&human) };
    let programs = programs();
    let finding = |found: &Finding| {
        let state = if found.repaired { "repaired" } else { found.severity.as_str() };
        format!("{state} {}: {}", found.rule, found.message)
    };
    match fit_by(&asked, &programs, &Knowledge::embedded().translations) {
        Err(findings) => findings.iter().map(finding).collect::<Vec<_>>().join("\n"),
        Ok(fitted) => {
            let mut lines = vec![fitted.client_argv().join(" "), fitted.server_argv().join(" ")];
            lines.extend(fitted.variables.iter().map(|(name, value)| format!("{name}={value}")));
            lines.extend(fitted.repairs.iter().map(|r| format!("{} {}: {} -> {}", r.kind, r.subject, r.asked, r.run)));
            lines.extend(fitted.findings.iter().map(finding));
            lines.join("\n")
        }
    }
}
