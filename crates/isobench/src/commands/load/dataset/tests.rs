//! Every flag of other clients that is said to be done: its requests can be made.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use clap::Parser as _;
use isobench_loadgen::schedule::{Resources, Schedule};
use isobench_loadgen::tokenizer::Tokenizer;
use isobench_plan::knowledge::Knowledge;
use isobench_plan::knowledge::load_flags::{CLIENTS, Meaning};
use isobench_plan::knowledge::options::{OptionSpec, Takes};
use isobench_schema::record::Phase;
use isobench_schema::workload::{Api, Arrival, Probes, TokenCounter, Workload, WorkloadKind};

use super::*;
use crate::args::{Arguments, Command};
use crate::flags::understand;

/// A tokenizer whose tokens are words.
fn resources(folder: &Path) -> Resources {
    let words = ('a'..='p').flat_map(|first| ('a'..='p').map(move |second| format!("{first}{second}")));
    let vocabulary: BTreeMap<String, usize> =
        std::iter::once("<unk>".to_owned()).chain(words).enumerate().map(|(id, word)| (word, id)).collect();
    let tokenizer = serde_json::json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
        "pre_tokenizer": {"type": "Whitespace"}, "post_processor": null, "decoder": null,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "<unk>"},
    });
    fs::write(folder.join("tokenizer.json"), tokenizer.to_string()).unwrap();
    let tokenizer = Arc::new(Tokenizer::at(folder).unwrap());
    Resources { tokenizer: Some(tokenizer), ..Resources::default() }
}

/// A file for each dataset that is read from one.
fn files(folder: &Path) -> BTreeMap<&'static str, String> {
    let text = "the of and to in is you that it he was for on are as";
    let said = serde_json::json!([{"conversations": [{"value": text}, {"value": text}]}]);
    let trace = |unit: u64| {
        (0..4).fold(String::new(), |mut lines, at| {
            let row = serde_json::json!({
                "timestamp": at * unit, "input_length": 6, "output_length": 5, "hash_ids": [1],
            });
            writeln!(lines, "{row}").unwrap();
            lines
        })
    };
    let rows = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n1,GPT-4,9,9,18,a\n2,GPT-4,9,9,18,a\n3,GPT-4,9,9,18,a\n4,GPT-4,9,9,18,a\n";
    let contents = [
        ("sharegpt", said.to_string()),
        ("custom", format!("{{\"prompt\": \"{text}\", \"output_tokens\": 4}}\n").repeat(4)),
        ("burstgpt", rows.to_owned()),
        ("mooncake", trace(1000)),
        ("timed-trace", trace(1)),
    ];
    let write = |(name, content): (&'static str, String)| {
        let path = folder.join(name);
        fs::write(&path, content).unwrap();
        (name, path.to_str().unwrap().to_owned())
    };
    contents.into_iter().map(write).collect()
}

/// Makes what a command line asks for; a line that is refused asks for nothing.
fn make(line: &[&str], resources: &Resources) -> Option<Result<(), String>> {
    let words = ["isobench", "load"].iter().chain(line).map(OsString::from).collect();
    let understood = understand(words).ok()?;
    let arguments = Arguments::try_parse_from(&understood.words).unwrap_or_else(|error| panic!("{line:?}: {error}"));
    let Command::Load(args) = arguments.command else { panic!("{line:?} isn't for `load`") };
    let prompts = match prompts(&args, args.workload.input_len.unwrap_or(512), true) {
        Ok(prompts) => prompts,
        Err(error) => return Some(Err(error.message)),
    };
    let is_chat = matches!(&prompts, Prompts::Dataset { name, .. } if name == "image");
    let workload = Workload {
        kind: WorkloadKind::Serving,
        api: if is_chat { Api::Chat } else { Api::Completions },
        requests: 1,
        prompts,
        output_tokens: args.workload.output_len.unwrap_or(0),
        ignore_eos: true,
        temperature: 0.0,
        arrival: Arrival::closed(1),
        max_in_flight: None,
        warm_up_requests: 0,
        probes: Probes { count: 0, output_tokens: 1 },
        counter: TokenCounter::Usage,
        extra_body: args.workload.extra_body.iter().map(|field| (field.key.clone(), field.value.clone())).collect(),
        script: None,
    };
    let made = Schedule::new(&workload, 1, Phase::Measure, resources);
    Some(made.map(|_schedule| ()).map_err(|error| error.to_string()))
}

/// Returns a value that a flag takes.
fn value(spec: &OptionSpec) -> Option<String> {
    let name = spec.names.first().map_or("", String::as_str);
    match (spec.takes, name, &spec.default) {
        (Takes::Nothing | Takes::NothingOrNo, _, _) => None,
        (_, "--extra-body" | "--extra-request-body" | "--chat-template-kwargs", _) => Some("{\"a\": 1}".to_owned()),
        (_, "--top-p" | "--min-p", _) => Some("0.5".to_owned()),
        (_, _, Some(default)) if !default.is_empty() && default != "0" => Some(default.clone()),
        (_, _, _) => Some("1".to_owned()),
    }
}

#[test]
fn what_is_said_to_be_done_can_be_made_for_every_dataset() {
    let folder = tempfile::tempdir().unwrap();
    let (resources, files) = (resources(folder.path()), files(folder.path()));
    let knowledge = Knowledge::embedded();
    let mut made = 0;
    let specs: Vec<&OptionSpec> =
        CLIENTS.iter().filter_map(|tool| knowledge.options.program(*tool)).flat_map(|known| &known.option).collect();
    for dataset in knowledge.load_flags.datasets.keys().map(String::as_str) {
        let mut line = vec!["http://a", "--dataset-name", dataset];
        if let Some(file) = files.get(dataset) {
            line.extend(["--dataset-path", file]);
        }
        for flag in &knowledge.load_flags.flags {
            let is_of_prompts =
                flag.names.iter().any(|name| name.starts_with("--random") || name.starts_with("--image"));
            if !matches!(flag.meaning, Meaning::DatasetOption(_) | Meaning::Body(_)) && !is_of_prompts {
                continue;
            }
            for name in &flag.names {
                let spec = specs.iter().find(|spec| spec.names.first() == Some(name)).unwrap();
                let value = value(spec);
                let words = line.iter().copied().chain([name.as_str()]).chain(value.as_deref());
                let line: Vec<&str> = words.collect();
                if let Some(result) = make(&line, &resources) {
                    assert_eq!(result, Ok(()), "{line:?}");
                    made += 1;
                }
            }
        }
    }
    assert!(made > 200, "{made}");
}

#[test]
fn what_other_clients_do_unasked_can_be_made_for_every_dataset() {
    let folder = tempfile::tempdir().unwrap();
    let (resources, files) = (resources(folder.path()), files(folder.path()));
    for (client, dataset) in [
        ("vllm bench serve", "random"),
        ("vllm bench serve", "prefix_repetition"),
        ("vllm bench serve", "sharegpt"),
        ("vllm bench serve", "custom"),
        ("vllm bench serve", "burstgpt"),
        ("vllm bench serve", "timed_trace"),
        ("python3 -m sglang.bench_serving", "random"),
        ("python3 -m sglang.bench_serving", "random-ids"),
        ("python3 -m sglang.bench_serving", "sharegpt"),
        ("python3 -m sglang.bench_serving", "generated-shared-prefix"),
        ("python3 -m sglang.bench_serving", "mooncake"),
        ("python3 -m sglang.bench_serving", "image"),
    ] {
        let mut line: Vec<&str> = client.split(' ').chain(["--model", "m", "--dataset-name", dataset]).collect();
        if let Some(file) = files.get(dataset.replace('_', "-").as_str()) {
            line.extend(["--dataset-path", file]);
        }
        assert_eq!(make(&line, &resources), Some(Ok(())), "{line:?}");
    }
}
