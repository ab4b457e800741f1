//! Result files that were changed in ways that happen.

use std::io::{self, Read};

use isobench_analysis::parse::binding::{Binding, ToolFamily, ToolVersion};
use isobench_analysis::parse::read;
use isobench_schema::reading::{MetricValue, Reading};

/// A whole result of vLLM's serving benchmark; what a test adds at the end goes before the closing brace.
const RESULT: &str = r#"{"date": "20250320-101500", "backend": "vllm", "model_id": "m", "tokenizer_id": "m",
"num_prompts": 200, "request_rate": "inf", "duration": 50.0, "completed": 200, "total_input_tokens": 4000,
"total_output_tokens": 2000, "request_throughput": 4.0, "output_throughput": 40.0, "mean_ttft_ms": 8.5"#;

fn bound(text: impl AsRef<[u8]>, binding: &Binding) -> Reading {
    read(text.as_ref(), binding).expect("a slice can be read")
}

fn reading(text: impl AsRef<[u8]>) -> Reading {
    bound(text, &Binding::default())
}

/// Checks the kind and the message of what is wrong with a text, and that it is said of a line.
#[track_caller]
fn check(text: impl AsRef<[u8]>, problem: Option<(&str, &str)>, line: u64) {
    check_reading(&reading(text), problem, line);
}

#[track_caller]
fn check_reading(found: &Reading, problem: Option<(&str, &str)>, line: u64) {
    let said = found.problem.as_ref().map(|problem| (problem.kind.as_str(), problem.message.as_str()));
    assert_eq!(said, problem);
    if let Some(problem) = &found.problem {
        assert_eq!(problem.line, Some(line), "{}", problem.message);
    }
}

#[track_caller]
fn check_added(added: &str, problem: Option<(&str, &str)>) {
    check(format!("{RESULT},\n{added}}}"), problem, 4);
}

#[test]
fn values_that_are_no_numbers_are_a_problem_where_a_number_must_be() {
    check_added("\"p99_ttft_ms\": 12.5", None);
    check_added("\"p99_ttft_ms\": NaN", Some(("not-a-number", "`p99_ttft_ms` is NaN, which is no number")));
    check_added("\"p99_ttft_ms\": -Infinity", Some(("not-a-number", "`p99_ttft_ms` is -Infinity, which is no number")));
    check_added("\"p99_ttft_ms\": null", Some(("not-a-number", "`p99_ttft_ms` is null, which is no number")));
    check_added("\"p99_ttft_ms\": \"inf\"", Some(("not-a-number", "`p99_ttft_ms` is inf, which is no number")));
    check_added("\"p99_ttft_ms\": 1e999", Some(("not-a-number", "`p99_ttft_ms` is inf, which is no number")));
    check_added(
        "\"p99_ttft_ms\": \"8.5\"",
        Some(("broken", "`p99_ttft_ms` is the text `8.5` where a number was expected")),
    );
    check_added("\"p99_ttft_ms\": true", Some(("broken", "`p99_ttft_ms` is `true` where a number was expected")));
    check_added(
        "\"p99_ttft_ms\": [1, 2]",
        Some(("broken", "`p99_ttft_ms` is a list or an object where a number was expected")),
    );
    let found = reading(format!("{RESULT}, \"p99_ttft_ms\": NaN}}"));
    assert_eq!(found.metrics["p99_ttft_ms"], MetricValue::NotANumber);
    assert_eq!(found.metrics["mean_ttft_ms"], MetricValue::Number(8.5));
}

#[test]
fn what_was_not_asked_for_may_be_absent_in_every_way() {
    for value in ["null", "NaN", "Infinity", "\"inf\"", "\"trace\""] {
        let found = reading(format!("{RESULT}, \"request_goodput:\": {value}, \"max_concurrency\": {value}}}"));
        assert_eq!(found.problem, None, "{value}");
        assert!(!found.metrics.contains_key("request_goodput") && !found.metrics.contains_key("max_concurrency"));
    }
}

#[test]
fn words_in_texts_and_keys_in_lists_are_no_metrics() {
    check_added(
        r#""generated_texts": ["\"completed\": 0, NaN} {", "\\"], "errors": [{"completed": 0, "failed": 9}]"#,
        None,
    );
    check_added(r#""label": "Infinity", "extra": {"completed": 0, "failed": 3}"#, None);
}

#[test]
fn a_key_that_is_there_twice_counts_only_if_it_says_the_same() {
    check_added("\"duration\": 50.0", None);
    check_added(
        "\"duration\": 50.5",
        Some(("contradictory", "`duration` is there more than once with different values")),
    );
}

#[test]
fn counts_that_do_not_fit_are_a_problem() {
    let some = |message| Some(("some-failed", message));
    check_added("\"failed\": 3", some("3 requests failed"));
    check(
        RESULT.replace("200, \"request_rate", "201, \"request_rate") + "}",
        some("200 requests were completed, but 201 were asked for"),
        2,
    );
    let none = RESULT.replace("\"completed\": 200", "\"completed\": 0") + "}";
    check(none, Some(("nothing-completed", "no request was completed, of 200")), 2);
    check(
        RESULT.replace("\"completed\": 200", "\"completed\": -1") + "}",
        some("-1 requests were completed, but 200 were asked for"),
        2,
    );
    check_added("\"failed\": -1", Some(("contradictory", "`failed` is -1, below zero")));
    let asked = Binding { asked: Some(300), ..Binding::default() };
    check_reading(
        &bound(format!("{RESULT}}}"), &asked),
        some("200 requests were completed, but 300 were asked for"),
        2,
    );
}

#[test]
fn rates_that_do_not_follow_from_totals_are_a_problem() {
    let other = RESULT.replace("\"request_throughput\": 4.0", "\"request_throughput\": 8.0") + "}";
    let message = "`request_throughput` is 8 per second over 50 s, which makes 400.0, but `completed` is 200";
    check(other, Some(("contradictory", message)), 1);
}

#[test]
fn a_known_result_without_a_key_is_broken_and_another_file_is_no_result() {
    let without = RESULT.replace("\"request_throughput\": 4.0, ", "") + "}";
    let message = "there is no `request_inthroughput` or `request_throughput` with a number";
    check(without, Some(("broken", message)), 1);
    let message = "its keys are those of no tool that is known: `a`, `model_id`";
    check("\n{\"model_id\": \"m\", \"a\": 1}", Some(("not-a-result", message)), 2);
    check("[]", Some(("not-a-result", "it has no keys of a tool that is known")), 1);
    check("{}", Some(("not-a-result", "it has no keys of a tool that is known")), 1);
    check("{\"a\": 1", Some(("not-a-result", "the file ends within the value that begins in line 1")), 1);
    let deep = "{\"a\": ".repeat(100_000);
    check(deep, Some(("not-a-result", "values are nested more than 200 deep")), 1);
}

#[test]
fn the_last_of_several_results_counts_and_its_number_is_said() {
    let other = RESULT.replace("\"mean_ttft_ms\": 8.5", "\"mean_ttft_ms\": 9.5");
    let slower = other.replace("\"backend\": \"vllm\"", "\"backend\": \"tgi\"");
    for between in ["", "\n", "\r\n\n  "] {
        let found = reading(format!("{RESULT}}}{between}{other}}}{between}"));
        assert_eq!(found.metrics["mean_ttft_ms"], MetricValue::Number(9.5));
        assert_eq!(found.notes, ["2 results are in the file, of which the last counts"]);
        let found = reading(format!("{RESULT}}}{between}{slower}}}{between}{slower}}}"));
        assert_eq!(found.notes, ["3 results are in the file, of which the last counts; they differ in `backend`"]);
    }
}

#[test]
fn no_earlier_result_stands_in_for_a_last_one_that_is_broken() {
    let broken = |text: String, message: &str, line: u64| {
        check_reading(&reading(&text), Some(("broken", message)), line);
        assert!(reading(&text).metrics.is_empty(), "{text}");
    };
    broken(format!("{RESULT}}}\n{RESULT}"), "the file ends within the value that begins in line 4", 6);
    broken(format!("{RESULT}}}\n{{"), "the file ends within the value that begins in line 4", 4);
    broken(format!("{RESULT}}}\n{RESULT}, nan}}"), "`n` stands where a key was expected", 6);
    broken(
        format!("{RESULT}}}\n{{\"other\": 1}}"),
        "the last value in the file is no result of a tool that is known",
        4,
    );
    broken(format!("{RESULT}, \"errors\": [\"a\nb\"]}}"), "a string holds the control character 0x0a", 3);
}

#[test]
fn bytes_that_are_no_text_do_no_harm_in_strings() {
    let mut text = format!("{RESULT}, \"generated_texts\": [\"").into_bytes();
    text.extend([0xff, 0xfe, 0xc3, 0x28]);
    text.extend(b"\"]}");
    check(text, None, 1);
    let wide: Vec<u8> = format!("{RESULT}}}").encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert!(reading(&wide).metrics.is_empty());
}

#[test]
fn a_version_that_does_not_write_the_keys_refuses_them() {
    let with = |version: &str| Binding {
        tool: Some(ToolFamily::VllmServe),
        version: ToolVersion::parse(version),
        ..Binding::default()
    };
    let text =
        format!("{RESULT}, \"request_goodput:\": null, \"burstiness\": 1.0, \"total_token_throughput\": 120.0}}");
    assert_eq!(bound(&text, &with("0.8.5")).problem, None);
    let found = bound(&text, &with("v0.11.0"));
    let message = "its keys are those of v0.8.0..v0.9.1, which v0.11.0 doesn't write";
    check_reading(&found, Some(("not-a-result", message)), 1);
    assert!(found.metrics.is_empty());
}

#[test]
fn an_error_of_the_input_is_no_reading() {
    struct Failing;
    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the disk is gone"))
        }
    }
    let input = RESULT.as_bytes().chain(Failing);
    let error = read(input, &Binding::default()).expect_err("the input can't be read");
    assert_eq!(error.to_string(), "the disk is gone");
}

#[test]
fn of_results_in_one_list_the_last_one_counts() {
    let found = reading(format!("[{RESULT}}},\n{}}}]", RESULT.replace("8.5", "9.5")));
    assert_eq!(found.problem, None);
    assert_eq!(found.metrics.get("mean_ttft_ms"), Some(&MetricValue::Number(9.5)));
    assert_eq!(found.notes, ["2 results are in the file, of which the last counts"]);
    let failed = format!("[{RESULT}}},\n{}}}]", RESULT.replace("\"completed\": 200", "\"completed\": 0"));
    check(failed, Some(("nothing-completed", "no request was completed, of 200")), 5);
}
