//! Command lines of other clients, word by word.

use clap::{CommandFactory as _, Parser as _};
use isobench_plan::knowledge::load_flags::Meaning;

use super::*;
use crate::args::{Arguments, Command};
use crate::load_args::LoadArgs;

/// Splits as a shell would, with single quotes only.
fn words(line: &str) -> Vec<OsString> {
    let mut words = vec![OsString::from("isobench"), OsString::from("load")];
    for (place, part) in line.split('\'').enumerate() {
        if place % 2 == 1 {
            words.push(part.into());
        } else {
            words.extend(part.split_whitespace().map(OsString::from));
        }
    }
    words
}

fn meant(line: &str) -> String {
    let understood = understand(words(line)).unwrap_or_else(|error| panic!("{line}: {error}"));
    let texts: Vec<&str> = understood.words.iter().skip(2).map(|word| word.to_str().unwrap()).collect();
    texts.join(" ")
}

fn check(line: &str, expected: &str) {
    assert_eq!(meant(line), expected, "{line}");
    parsed(line);
}

fn parsed(line: &str) -> LoadArgs {
    let understood = understand(words(line)).unwrap();
    let arguments = Arguments::try_parse_from(understood.words).unwrap_or_else(|error| panic!("{line}: {error}"));
    let Command::Load(args) = arguments.command else { panic!("{line} isn't for `load`") };
    *args
}

fn refused(line: &str, expected: &str) {
    let error = understand(words(line)).expect_err(line);
    assert!(error.problems.iter().any(|problem| problem.contains(expected)), "{line}: {:?}", error.problems);
}

#[test]
fn our_own_flags_stay_as_they_are() {
    check("http://a --concurrency 4 --requests=9", "http://a --concurrency 4 --requests=9");
    check("http://a --output_len 4", "http://a --output-len 4");
    check("--against http://a http://b --seed 3", "--against http://a http://b --seed 3");
    check("http://a --goodput 'ttft<500ms && tpot<50ms' -q", "http://a --goodput ttft<500ms && tpot<50ms --quiet");
}

#[test]
fn json_takes_a_file_or_none() {
    check("http://a --json out.json", "http://a --json-file out.json");
    check("http://a --json=out.json", "http://a --json-file out.json");
    check("--json http://a", "--json http://a");
    check("--json 127.0.0.1:8000", "--json http://127.0.0.1:8000");
    check("http://a --json", "http://a --json");
    check("http://a --json -", "http://a --json");
    check("http://a --json --seed 3", "http://a --json --seed 3");
    let before = ["isobench", "--json", "--color", "never", "load", "http://a", "--num-prompts", "3"];
    let understood = understand(before.map(OsString::from).to_vec()).unwrap();
    assert_eq!(understood.words.last().unwrap(), "3");
    assert_eq!(understood.words.get(6).unwrap(), "--requests");
}

#[test]
fn other_commands_are_left_alone() {
    let line: Vec<OsString> = ["isobench", "run", "load", "--num-prompts"].map(OsString::from).to_vec();
    let understood = understand(line.clone()).unwrap();
    assert_eq!((understood.words, understood.rows), (line, Vec::new()));
}

#[test]
fn flags_of_other_clients_stand_beside_ours() {
    check(
        "http://a --num-prompts 50 --max_concurrency=8 --random-input-len 512 --output-len 9",
        "http://a --output-len 9 --concurrency 8 --input-len 512 --requests 50",
    );
    check("http://a --request-rate inf --max-concurrency 4", "http://a --concurrency 4");
    check("http://a --request-rate 5 --max-concurrency 4", "http://a --rate 5 --max-in-flight 4");
    check("http://a --request-rate inf", "http://a --arrival all-at-once");
    check("--host h --port 9", "http://h:9");
    check("--base-url http://h:9/ --backend openai-chat", "http://h:9 --api chat");
    check("http://a --goodput ttft:500 tpot:50", "http://a --goodput ttft:500 tpot:50");
    check("--goodput ttft:500 http://a", "http://a --goodput ttft:500");
    check(
        "http://a --extra-body '{\"top_p\": 0.5, \"user\": 1}'",
        "http://a --extra-body top_p=0.5 --extra-body user=1",
    );
    check("http://a --extra-body '{\"ignore_eos\": false, \"n\": 1}'", "http://a --stop-at-eos");
    check("http://a --extra-request-body '{\"temperature\": 0.5}'", "http://a --temperature 0.5");
    check("http://a --top-k 5", "http://a --extra-body top_k=5");
    check("http://a --lora-modules a b", "http://a --lora a,b");
    check("http://a --sharegpt-output-len 7 --dataset-path f.json", "http://a --dataset f.json --output-len 7");
    check("http://a --dataset-name sonnet --random-input-len 7", "http://a --dataset sonnet");
    check(
        "http://a --num-warmups 3 --disable-tqdm --flush-cache",
        "http://a --warm-up 3 --no-live --reset-prefix-cache",
    );
    check("http://a --save-result --result-dir r/ --result-filename x.json", "http://a --format vllm --out r/x.json");
    check("http://a --output-file x.jsonl", "http://a --format sglang --out x.jsonl");
    check("http://a --rate 3 --request-rate 5", "http://a --rate 3");
    check("http://a --model m --served-model-name s", "http://a --model m");
    check(
        "http://a --ramp-up-strategy linear --ramp-up-start-rps 2 --ramp-up-end-rps 2 --num-prompts 400",
        &format!("http://a --arrival stages:{} --requests 400", vec!["10.000000s@2.000000..2.000000"; 20].join(",")),
    );
}

#[test]
fn a_ramp_over_requests_has_its_rates_at_the_same_requests() {
    let line = "http://a --ramp-up-strategy exponential --ramp-up-start-rps 1 --ramp-up-end-rps 16 --num-prompts 1000";
    let args = parsed(line);
    let arrival = crate::load_args::arrivals::arrival(&args.arrival, 8).unwrap();
    let isobench_schema::workload::Arrival::Stages { stages, .. } = arrival else { panic!("{arrival:?}") };
    let requests: f64 =
        stages.iter().map(|stage| stage.seconds * f64::midpoint(stage.from_per_s, stage.to_per_s)).sum();
    assert!((requests - 1000.0).abs() < 0.01, "{requests}");
    assert!(
        (stages.get(10).unwrap().from_per_s - 4.0).abs() < 1e-6,
        "half of the requests are sent at the middle rate"
    );
}

#[test]
fn a_whole_command_of_vllm_is_understood_with_what_it_does_unasked() {
    let line = "vllm bench serve --backend openai --base-url http://h:1 --endpoint /v1/completions --model mock \
                --tokenizer ./tok --dataset-name random --random-input-len 32 --random-output-len 64 --num-prompts 20 \
                --max-concurrency 4 --ignore-eos --temperature 0 --percentile-metrics ttft,tpot,itl,e2el \
                --metric-percentiles 50,90,99 --save-result --result-filename r.json";
    for line in [line.to_owned(), format!("-- {line}"), format!("'{line}'"), format!("-- timeout 60 {line}")] {
        let args = parsed(&line);
        assert_eq!(args.url.as_deref(), Some("http://h:1"), "{line}");
        assert_eq!((args.workload.requests, args.arrival.concurrency), (Some(20), Some(4)));
        assert_eq!((args.workload.input_len, args.workload.output_len), (Some(32), Some(64)));
        assert_eq!(args.server.model.as_deref(), Some("mock"));
        assert!(!args.workload.stop_at_eos);
        assert_eq!(args.measuring.percentiles.0, [50.0, 90.0, 99.0]);
        assert_eq!(args.output.out.as_deref(), Some(std::path::Path::new("r.json")));
    }
    let unasked = parsed("vllm bench serve --model m");
    assert_eq!(unasked.url.as_deref(), Some("http://127.0.0.1:8000"));
    assert_eq!(
        (unasked.workload.requests, unasked.workload.input_len, unasked.workload.output_len),
        (Some(1000), Some(1024), Some(128))
    );
    assert_eq!(unasked.workload.seed, 0);
    assert!((unasked.workload.temperature - 1.0).abs() < 1e-9);
    assert!(parsed("vllm bench serve --model m --dataset-name sonnet").workload.stop_at_eos);
    let ours = parsed("--json o.json -- vllm bench serve --model m --num-prompts 3");
    assert!(ours.output.json_file.is_some());
}

#[test]
fn options_of_datasets_have_our_names_and_count_for_their_dataset() {
    check("http://a --random-batch-size 1 --common-prefix-len 7", "http://a --dataset-option random-prefix-len=7");
    check("http://a --prefix-repetition-prefix-len 7", "http://a");
    check(
        "http://a --dataset prefix-repetition --prefix-repetition-prefix-len 7",
        "http://a --dataset prefix-repetition --dataset-option prefix-repetition-prefix-len=7",
    );
    check(
        "http://a --dataset-path f.json --no-oversample",
        "http://a --dataset f.json --dataset-option no-oversample=true",
    );
    check("http://a --dataset-name random --dataset-path f.json", "http://a --dataset random");
    let shared = meant(
        "python3 -m sglang.bench_serving --dataset-name generated-shared-prefix --gsp-num-groups 4 \
         --gsp-prompts-per-group 8 --gsp-system-prompt-len 100 --gsp-group-distribution uniform --gsp-ordered",
    );
    for part in [
        "--dataset shared-prefix",
        "--requests 32",
        "prefix-repetition-num-prefixes=4",
        "prefix-repetition-prefix-len=100",
        "prefix-repetition-suffix-len=128",
        "--output-len 256",
        "disable-shuffle=true",
    ] {
        assert!(shared.contains(part), "{part}: {shared}");
    }
    let image = meant("http://a --dataset-name image --image-resolution 512x768 --image-count 2");
    assert_eq!(
        image,
        "http://a --dataset image --dataset-option image-width=768 --dataset-option image-height=512 \
         --dataset-option image-count=2"
    );
}

#[test]
fn what_was_typed_wins_over_what_a_client_does_unasked() {
    let lengths = |line: &str| {
        let workload = parsed(line).workload;
        (workload.input_len, workload.output_len)
    };
    let short = (Some(50), Some(5));
    assert_eq!(lengths("vllm bench serve --input-len 50 --output-len 5"), short);
    assert_eq!(lengths("vllm bench serve --dataset-name sonnet --input-len 50 --output-len 5"), short);
    assert_eq!(lengths("vllm bench serve --input-len 50"), (Some(50), Some(128)));
    assert_eq!(lengths("--input-len 50 --output-len 5 -- vllm bench serve --model m"), short);
    // A flag that counts for another dataset says nothing.
    assert_eq!(lengths("vllm bench serve --sonnet-input-len 50"), (Some(1024), Some(128)));
    let prefix = meant(
        "--dataset-option prefix-repetition-prefix-len=5 -- vllm bench serve --dataset-name prefix_repetition \
         --output-len 3",
    );
    assert!(!prefix.contains("prefix-len=256") && prefix.contains("--output-len 3"), "{prefix}");
}

#[test]
fn a_result_without_a_name_has_the_one_that_its_client_gives() {
    let name = |line: &str| parsed(line).output.out.unwrap().to_str().unwrap().to_owned();
    let name_of =
        name("vllm bench serve --model a/m --save-result --result-dir r --request-rate 5 --max-concurrency 3");
    assert!(name_of.starts_with("r/openai-5.0qps-concurrency3-m-2"), "{name_of}");
    let unbounded = name("http://a --model m --backend vllm --save-result");
    assert!(unbounded.starts_with("vllm-infqps-m-2"), "{unbounded}");
}

#[test]
fn our_own_flags_may_follow_a_pasted_command() {
    let line = "vllm bench serve --model m --num-prompts 3 --goodput ttft:5 tpot:6 --json o.json --html p.html \
                --explain-flags --dry-run -q --disable-tqdm --records=r.jsonl --warm-up 2";
    for line in [line.to_owned(), format!("-- {line}"), format!("'{line}'")] {
        let args = parsed(&line);
        assert!(args.explain_flags && args.dry_run && args.output.no_live, "{line}");
        assert_eq!(args.output.json_file.as_deref(), Some(std::path::Path::new("o.json")));
        assert!(args.output.html.is_some() && args.output.records.is_some());
        assert_eq!(args.measuring.goodput.as_deref(), Some("ttft:5 tpot:6"));
        assert_eq!(args.workload.requests, Some(3));
        assert!(meant(&line).contains("--quiet"), "{line}");
    }
    // A flag that the client has too is the client's.
    assert_eq!(parsed("vllm bench serve --model m --seed 4 --csv m.csv").workload.seed, 4);
    refused("vllm bench serve --model m --extra-body top_p=0.5", "of another kind");
    refused("vllm bench serve --model m --jsn o.json", "did you mean");
}

#[test]
fn a_whole_command_of_sglang_has_its_own_ratio_and_port() {
    let line = "python3 -m sglang.bench_serving --backend sglang --dataset-name random-ids --random-input-len 32 \
                --random-output-len 64 --random-range-ratio 0.5 --num-prompts 8 --max-concurrency 2 --model m";
    let args = parsed(line);
    assert_eq!(args.url.as_deref(), Some("http://127.0.0.1:30000"));
    // Between 16 and 32.
    assert_eq!((args.workload.input_len, args.workload.output_len), (Some(32), Some(64)));
    let (ratio, meaning) = ("random-range-ratio=0.5", "range-meaning=up-to");
    assert!(meant(line).contains(ratio) && meant(line).contains(meaning), "{}", meant(line));
    assert!(!args.workload.stop_at_eos);
    let exact = meant(&line.replace("0.5", "1"));
    assert!(exact.contains("--input-len 32") && !exact.contains("range-ratio"), "{exact}");
}

#[test]
fn what_is_unknown_or_impossible_is_said() {
    refused("http://a --num-prompt 5", "did you mean `--num-prompts`?");
    refused("http://a --concurency 5", "did you mean `--concurrency`?");
    refused("http://a --profile", "a profiler changes what is measured");
    refused("http://a --use-beam-search", "controlled by the load client");
    refused("http://a --extra-body '{\"n\": 2}'", "controlled by the load client");
    refused("http://a --dataset-name sharegpt", "`--dataset-path FILE`");
    refused("http://a --random-batch-size 4", "each request has one prompt");
    refused("http://a --disable-stream", "without a stream there is no first token");
    refused("http://a --dataset-name hf", "this dataset isn't read here");
    refused("http://a --backend tgi", "isn't spoken here");
    refused("http://a --num-prompts", "needs a value");
    refused("http://a --num-prompts many", "of another kind");
    refused("http://a --request-rate -1", "above 0");
    refused("-- vllm bench throughput --model m", "no client that loads a running server");
    refused("python3 benchmarks/multi_turn/benchmark_serving_multi_turn.py -i f.json", "`--dataset sessions`");
    refused("-- vlm bench serve", "no client of that name");
    refused("vllm bench serve --num-promts 3", "did you mean `--num-prompts`?");
    refused("http://a --goodput ttft:5 x:y", "limits in milliseconds");
}

#[test]
fn a_flag_that_is_far_from_any_is_not_suggested() {
    let error = understand(words("http://a --frobnicate 5")).expect_err("no such flag");
    assert!(!error.to_string().contains("did you mean"), "{error}");
}

#[test]
fn explain_flags_shows_what_would_be_refused() {
    let understood = understand(words("http://a --explain-flags --profile --num-prompt 4 --disable-tqdm")).unwrap();
    let refused = understood.rows.iter().filter(|row| row.fate == Fate::Refused).count();
    assert_eq!((refused, understood.rows.len()), (2, 5), "{:?}", understood.rows);
}

#[test]
fn every_flag_that_something_becomes_is_ours() {
    let own = own::OwnFlags::of_load();
    for flag in &Knowledge::embedded().load_flags.flags {
        if let Meaning::Becomes(ours) = &flag.meaning {
            assert!(own.find(ours).is_some(), "{ours}");
        }
    }
    Arguments::command().debug_assert();
}

#[test]
fn words_that_are_ours_mean_the_same_without_the_tables_of_others() {
    let own = OwnFlags::of_load();
    for line in [
        "http://a:1 --concurrency 8 --requests 64 --input-len 32 --output-len 32 --tokenizer d --json f.json",
        "--against http://a http://b --rate 5 --burstiness 2 --no-live --json f",
        "--model m http://a --counter usage --workers 2 --pin 1 --warm-up steady --goodput ttft<5ms",
    ] {
        let texts: Vec<String> = words(line).iter().skip(2).map(|word| word.to_str().unwrap().to_owned()).collect();
        let plain = own.plain(&texts).unwrap_or_else(|| panic!("{line} isn't plain"));
        let all = meaning::mean(split::split(&texts, &own, Knowledge::embedded()), Knowledge::embedded()).words;
        let args = |words: &[String]| {
            let words = ["isobench", "load"].into_iter().chain(words.iter().map(String::as_str));
            format!("{:?}", Arguments::try_parse_from(words).unwrap())
        };
        assert_eq!(args(&plain), args(&all), "{line}");
    }
    for line in ["a:1", "http://a --num-prompts 5", "http://a --output_len 5", "http://a --json", "--explain-flags"] {
        let texts: Vec<String> = words(line).iter().skip(2).map(|word| word.to_str().unwrap().to_owned()).collect();
        assert_eq!(own.plain(&texts), None, "{line}");
    }
}
