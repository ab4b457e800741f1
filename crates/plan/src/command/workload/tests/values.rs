//! Values that are given and can't be used.

use super::shown;

/// Checks that a command is an error of the rule `value-refused` that names what is given, and has no workload.
#[track_caller]
fn check_refused(command: &str, message: &str) {
    let found = shown(command, "2024-11");
    let expected = format!("error value-refused: {message}");
    assert!(found.lines().any(|line| line == expected), "{command}\n{expected}\n{found}");
    assert_eq!(found.lines().filter(|line| line.starts_with("error")).count(), 1, "{command}\n{found}");
    assert!(!found.contains(" completions: "), "{command}\n{found}");
}

#[track_caller]
fn check_taken(command: &str, expected: &str) {
    let found = shown(command, "2024-11");
    assert!(found.contains(expected), "{command}\n{expected}\n{found}");
    assert!(!found.contains("error"), "{command}\n{found}");
}

#[test]
fn no_default_steps_in_for_what_is_given() {
    let needed = |needed: &str| format!("can't be used: isobench needs {needed}");
    for (given, needs) in [
        ("--burstiness 0", "a finite number above 0"),
        ("--burstiness -1", "a finite number above 0"),
        ("--burstiness inf", "a finite number above 0"),
        ("--burstiness nan", "a finite number above 0"),
        ("--temperature nan", "a finite number from 0"),
        ("--temperature -0.5", "a finite number from 0"),
        ("--max-concurrency -1", "a whole number from 0 to 1000000"),
        ("--max-concurrency 9000000000", "a whole number from 0 to 1000000"),
        ("--num-prompts 1000000000000000000", "a whole number from 1 to 1000000"),
        ("--num-prompts 1000001", "a whole number from 1 to 1000000"),
        ("--num-prompts 0", "a whole number from 1 to 1000000"),
        ("--top-p nan", "a number above 0 to 1"),
        ("--top-p 1.5", "a number above 0 to 1"),
        ("--extra-body [1]", "a JSON object"),
        ("--extra-body 5", "a JSON object"),
    ] {
        let command = format!("python benchmarks/benchmark_serving.py --model m/x --dataset-path a.json {given}");
        check_refused(&command, &format!("`{given}` {}", needed(needs)));
    }
    for (given, needs) in [
        ("--input-len 0", "a whole number from 1 to 10000000"),
        ("--output-len 0", "a whole number from 1 to 10000000"),
        ("--output-len 10000001", "a whole number from 1 to 10000000"),
        ("--num-iters 0", "a whole number from 1 to 1000000"),
        ("--num-iters-warmup 1000000000000", "a whole number from 0 to 1000000"),
        ("--batch-size -2", "a whole number from 1 to 1000000"),
    ] {
        let command = format!("python benchmarks/benchmark_latency.py --model m/x {given}");
        check_refused(&command, &format!("`{given}` {}", needed(needs)));
    }
}

#[test]
fn a_product_never_stops_at_the_largest_number() {
    check_refused(
        "python benchmarks/benchmark_latency.py --model m/x --batch-size 100000 --num-iters 100000",
        "`--batch-size` of 100000 and `--num-iters` of 100000 are 10000000000 requests, and isobench sends at most 1000000",
    );
    check_refused(
        "python benchmarks/benchmark_latency.py --model m/x --batch-size 1000 --num-iters 1 --num-iters-warmup 9999",
        "`--batch-size` of 1000 and `--num-iters-warmup` of 9999 are 9999000 requests, and isobench sends at most 1000000",
    );
}

#[test]
fn what_can_be_used_is_used() {
    let serving = "python benchmarks/benchmark_serving.py --model m/x --dataset-path a.json";
    for (given, expected) in [
        ("--request-rate 2 --burstiness 0.5", r#"{"kind":"open","rate_per_s":2.0,"burstiness":0.5}"#),
        ("--max-concurrency 0", r#"{"kind":"all-at-once"}"#),
        ("--num-prompts 1000000", "1000000 + 8 x "),
        ("--temperature 0.7", "t 0.7"),
        ("--top-p 0.9", "body top_p=0.9"),
        (r#"--extra-body '{"top_k": 5}'"#, "body top_k=5"),
    ] {
        check_taken(&format!("{serving} {given}"), expected);
    }
}

#[test]
fn the_last_of_two_bodies_counts() {
    let found = shown(
        r#"python benchmarks/benchmark_serving.py --model m/x --dataset-path a.json --extra-body '{"a": 1}' --extra-body '{"b": 2}'"#,
        "2024-11",
    );
    assert!(found.contains("body b=2") && !found.contains("body a=1"), "{found}");
}
