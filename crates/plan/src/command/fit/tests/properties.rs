//! What holds for every command.

use isobench_schema::assessment::Severity;
use isobench_schema::deviation::DeviationKind;
use isobench_schema::environment::EngineKind;
use proptest::prelude::*;

use super::super::fit_by;
use crate::command::Asked;
use crate::command::tables::{programs, revision};
use crate::knowledge::Knowledge;

/// Options that the programs know, don't know, or know by another name.
fn any_option() -> impl Strategy<Value = Vec<String>> {
    let names = prop::sample::select(vec![
        "--model",
        "--dtype",
        "--dataset",
        "--dataset-name",
        "--dataset-path",
        "--input-len",
        "--output-len",
        "--batch-size",
        "--multi-step",
        "--guided-decoding-backend",
        "--speculative-model",
        "--num-speculative-tokens",
        "--tokenizer",
        "--use-v2-block-manager",
        "--device",
        "--backend",
        "--endpoint-type",
        "-tp",
        "--enable-prefix-caching",
        "--no-enable-prefix-caching",
        "--port",
        "--middleware",
        "--trust-remote-code",
        "--nothing",
        "--num",
        "--seed",
        "--ignore-eos",
        "--disable-log-requests",
        "--host",
        "word",
    ]);
    let values = prop::sample::select(vec![
        "", "8", "sharegpt", "random", "[ngram]", "float8", "cuda", "True", "false", "vllm", "MODEL", "/data/x",
    ]);
    (names, values).prop_map(|(name, value)| {
        let words = if value.is_empty() { vec![name] } else { vec![name, value] };
        words.into_iter().map(ToOwned::to_owned).collect()
    })
}

proptest! {
    #[test]
    fn no_option_is_ever_lost(
        options in prop::collection::vec(any_option(), 0..8),
        server in prop::option::of(prop::collection::vec(any_option(), 0..4)),
        program in prop::sample::select(vec!["python benchmarks/benchmark_serving.py", "python benchmarks/benchmark_latency.py", "vllm bench serve"]),
        year in 2023..2027_i32,
        month in 1..13_i32,
    ) {
        let words = |options: &[Vec<String>]| options.concat().iter().map(|word| crate::command::words::quote(word)).collect::<Vec<_>>().join(" ");
        let command = format!("{program} {}", words(&options));
        let server_command = server.as_ref().map(|server| format!("vllm serve {}", words(server)));
        let month = format!("{year}-{month:02}");
        let (baseline, human) = (revision(&month), revision("2026-12"));
        let asked = Asked {
            command: &command,
            server_command: server_command.as_deref(),
            engine: EngineKind::Vllm,
            model: Some("row/model"),
            baseline: &baseline,
            human: Some(&human),
        };
        let programs = programs();
        let fitted = fit_by(&asked, &programs, &Knowledge::embedded().translations).unwrap();
        let lists = [&fitted.client, &fitted.server, &fitted.superseded, &fitted.refused];
        let mut kept: Vec<&str> = lists.into_iter().flatten().flat_map(|option| option.written.split(' ')).collect();
        let mut given: Vec<String> = options.concat();
        given.extend(server.unwrap_or_default().concat());
        kept.retain(|word| !word.is_empty());
        kept.sort_unstable();
        given.sort_unstable();
        prop_assert_eq!(kept, given, "{}", command);
        // Every option that is refused or needless has its reason.
        let errors = fitted.findings.iter().filter(|found| found.severity == Severity::Error && !found.repaired).count();
        prop_assert!(errors >= fitted.refused.len().min(1));
        let needless = fitted.repairs.iter().filter(|repair| repair.kind == DeviationKind::OptionSuperseded).count();
        prop_assert_eq!(needless, fitted.superseded.len());
    }

    #[test]
    fn what_is_fit_is_taken_as_it_is(options in prop::collection::vec(any_option(), 0..6), year in 2024..2026_i32) {
        let words = options.concat().iter().map(|word| crate::command::words::quote(word)).collect::<Vec<_>>().join(" ");
        let command = format!("python benchmarks/benchmark_serving.py --model m/x {words}");
        let month = format!("{year}-02");
        let (baseline, human) = (revision(&month), revision("2026-12"));
        let engine = EngineKind::Vllm;
        let asked = Asked { command: &command, server_command: None, engine, model: None, baseline: &baseline, human: Some(&human) };
        let programs = programs();
        let tables = &Knowledge::embedded().translations;
        let fitted = fit_by(&asked, &programs, tables).unwrap();
        if fitted.is_fit() {
            let line = |argv: Vec<String>| crate::command::words::join(argv.iter().map(String::as_str));
            let (client, server) = (line(fitted.client_argv()), line(fitted.server_argv()));
            let again = Asked { command: &client, server_command: Some(&server), ..asked };
            let second = fit_by(&again, &programs, tables).unwrap();
            prop_assert_eq!(&second.repairs, &vec![], "{} / {}", client, server);
            prop_assert_eq!(second.client_argv(), fitted.client_argv());
            prop_assert_eq!(second.server_argv(), fitted.server_argv());
        }
    }
}
