//! What `argparse` makes of arguments; each expectation was seen with Python's own parser.

use isobench_schema::ids::Moment;

use super::*;
use crate::command::words::read;

const TABLE: &str = r#"
tool = "benchmark_serving.py"
source = "made by hand"
place = []
underscores = [{ since = "2024-01-01T00:00:00Z" }]
option = [
  { names = ["--tensor-parallel-size", "-tp"], takes = "one", kind = "whole", since = "2020-01-01T00:00:00Z", since-commit = "000000000000" },
  { names = ["--dataset-name"], takes = "one", choices = ["sharegpt", "random"], since = "2020-01-01T00:00:00Z", since-commit = "000000000000" },
  { names = ["--dataset-path"], takes = "one", since = "2020-01-01T00:00:00Z", since-commit = "000000000000" },
  { names = ["--request-rate"], takes = "one", kind = "number", since = "2020-01-01T00:00:00Z", since-commit = "000000000000" },
  { names = ["--ignore-eos"], takes = "nothing", since = "2020-01-01T00:00:00Z", since-commit = "000000000000" },
  { names = ["--stream"], takes = "nothing-or-no", since = "2020-01-01T00:00:00Z", since-commit = "000000000000" },
  { names = ["--goodput"], takes = "one-or-more", since = "2020-01-01T00:00:00Z", since-commit = "000000000000" },
  { names = ["--label"], takes = "at-most-one", since = "2020-01-01T00:00:00Z", since-commit = "000000000000" },
  { names = ["--compilation-config", "-O"], takes = "one", kind = "json", since = "2020-01-01T00:00:00Z", since-commit = "000000000000" },
  { names = ["--gone"], takes = "one", since = "2020-01-01T00:00:00Z", until = "2021-01-01T00:00:00Z", since-commit = "000000000000", until-commit = "111111111111" },
]
"#;

/// Shows options as `name=values`, operands as themselves, and refusals as `name=values: why`.
fn shown(arguments: &str, moment: &str) -> Vec<String> {
    let program: Program = toml::from_str(TABLE).unwrap();
    let script = read(&format!("program {arguments}")).unwrap();
    let parsed = Table::at(&program, &Moment::new(moment).unwrap()).parse(&script.commands[0].words[1..]);
    let option = |option: &GivenOption<'_>| format!("{}={}", option.name, option.values.join(","));
    let mut lines: Vec<String> = parsed.given.iter().map(option).collect();
    lines.extend(parsed.operands.iter().cloned());
    lines.extend(parsed.refused.iter().map(|refused| format!("{}: {:?}", option(&refused.option), refused.why)));
    lines
}

#[track_caller]
fn check(arguments: &str, expected: &[&str]) {
    assert_eq!(shown(arguments, "2025-01-01T00:00:00Z"), expected, "{arguments}");
}

#[test]
fn options_are_read_as_argparse_reads_them() {
    check("--dataset-path a --dataset-path=b", &["--dataset-path=a", "--dataset-path=b"]);
    check("-tp 4 -tp=2 -tp8", &["--tensor-parallel-size=4", "--tensor-parallel-size=2", "-tp8=: Unknown"]);
    check("--tensor_parallel_size 1_000 --tensor 2", &["--tensor-parallel-size=1_000", "--tensor-parallel-size=2"]);
    check(
        "--request-rate inf --request-rate=-1 --request-rate 1e3",
        &["--request-rate=inf", "--request-rate=-1", "--request-rate=1e3"],
    );
    check("--request-rate -1 --ignore-eos x", &["--request-rate=-1", "--ignore-eos=", "x"]);
    check("--goodput a b --label --stream --no-stream", &["--goodput=a,b", "--label=", "--stream=", "--no-stream="]);
    check("--ign -- --ignore-eos", &["--ignore-eos=", "--ignore-eos"]);
    check("--dataset-path '-a b' ''", &["--dataset-path=-a b", ""]);
    check(
        "--compilation-config '{\"level\": 3}' -O3 --compilation-config.level 3",
        &["--compilation-config={\"level\": 3}", "--compilation-config=3", "--compilation-config.level=3"],
    );
}

#[test]
fn what_argparse_refuses_is_refused() {
    check("--dtype float16 --ignore-eos", &["--ignore-eos=", "--dtype=float16: Unknown"]);
    check("--gone x", &["--gone=x: Unknown"]);
    check("--dataset x", &["--dataset=x: Ambiguous([\"--dataset-name\", \"--dataset-path\"])"]);
    check("--dataset-name hf", &["--dataset-name=hf: NotAmong([\"sharegpt\", \"random\"])"]);
    check("--tensor-parallel-size 1.5", &["--tensor-parallel-size=1.5: ValueKind(Whole)"]);
    check("--tensor-parallel-size 1__0", &["--tensor-parallel-size=1__0: ValueKind(Whole)"]);
    check("--request-rate fast", &["--request-rate=fast: ValueKind(Number)"]);
    check("--request-rate --ignore-eos", &["--ignore-eos=", "--request-rate=: ValueMissing"]);
    check("--ignore-eos=1", &["--ignore-eos=1: ValueUnexpected"]);
    check("--ignore-eos False", &["--ignore-eos=False: ValueUnexpected"]);
    check("--compilation-config {a:1}", &["--compilation-config={a:1}: ValueKind(Json)"]);
}

#[test]
fn underscores_are_taken_only_where_the_parser_takes_them() {
    assert_eq!(shown("--ignore_eos", "2023-01-01T00:00:00Z"), ["--ignore_eos=: Unknown"]);
    assert_eq!(shown("--ignore_eos", "2024-01-01T00:00:00Z"), ["--ignore-eos="]);
}

#[test]
fn an_option_is_known_in_its_time_only() {
    assert_eq!(shown("--gone x", "2020-12-31T23:59:59Z"), ["--gone=x"]);
    assert_eq!(shown("--gone x", "2019-12-31T23:59:59Z"), ["--gone=x: Unknown"]);
}
