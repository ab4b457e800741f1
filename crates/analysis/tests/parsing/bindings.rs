//! What is known of a run beforehand: its tool, its version, how many requests were asked for.

use isobench_analysis::parse;
use isobench_analysis::parse::binding::{Binding, ToolFamily, ToolVersion};
use isobench_schema::reading::{MetricValue, Reading, ReadingProblemKind};

use crate::support::console_samples;

fn sample(name: &str) -> Vec<u8> {
    console_samples().iter().find(|sample| sample.name == name).expect("the sample is there").bytes.clone()
}

fn read(bytes: &[u8], tool: Option<ToolFamily>, version: Option<&str>, asked: Option<u64>) -> Reading {
    let version = version.map(|version| ToolVersion::parse(version).expect("a version"));
    parse::read(bytes, &Binding { tool, version, asked }).expect("memory can be read")
}

fn problem(reading: &Reading) -> Option<(ReadingProblemKind, &str)> {
    reading.problem.as_ref().map(|problem| (problem.kind, problem.message.as_str()))
}

#[test]
fn another_tools_result_is_not_a_result_of_the_one_that_is_named() {
    let bytes = sample("latency-v0.4.1-v0.5.0.txt");
    let reading = read(&bytes, Some(ToolFamily::VllmServe), None, None);
    let message = "the table `Serving Benchmark Result` was expected, which `vllm-serve` prints";
    assert_eq!(problem(&reading), Some((ReadingProblemKind::NotAResult, message)));
    assert!(reading.metrics.is_empty());
    assert!(read(&bytes, Some(ToolFamily::VllmLatency), None, None).is_measurement());
}

#[test]
fn a_layout_that_the_named_version_does_not_print_is_refused() {
    let bytes = sample("serving-v0.6.4-v0.9.1.txt");
    assert!(read(&bytes, None, Some("0.6.4.post1"), None).is_measurement());
    assert!(read(&bytes, None, Some("0.9.2rc2.dev58+g0123abcd"), None).is_measurement());
    let reading = read(&bytes, None, Some("v0.5.4"), None);
    let message =
        "this is what `vllm-serve` v0.6.0..v0.12.0 prints, not v0.5.4: the file is of another version or another tool";
    assert_eq!(problem(&reading), Some((ReadingProblemKind::NotAResult, message)));
    assert_eq!(reading.format.as_deref(), Some("vllm-serve-table"));
    assert!(reading.metrics.is_empty());
}

#[test]
fn fewer_requests_than_were_asked_for_are_no_measurement() {
    let bytes = sample("serving-v0.6.4-v0.9.1.txt");
    assert!(read(&bytes, None, None, Some(200)).is_measurement());
    let reading = read(&bytes, None, None, Some(201));
    let message = "`completed` is 200, but 201 requests were asked for";
    assert_eq!(problem(&reading), Some((ReadingProblemKind::SomeFailed, message)));
    assert_eq!(reading.metrics.get("completed"), Some(&MetricValue::Number(200.0)));
}

#[test]
fn of_two_tools_the_last_one_counts_unless_one_is_named() {
    let mut bytes = sample("latency-v0.4.1-v0.5.0.txt");
    bytes.extend(sample("serving-v0.6.4-v0.9.1.txt"));
    let reading = read(&bytes, None, None, None);
    assert_eq!(reading.tool.as_deref(), Some("vllm-serve"));
    assert_eq!(reading.also, ["vllm-latency"]);
    assert!(!reading.metrics.contains_key("avg_latency_s") && reading.is_measurement());
    let reading = read(&bytes, Some(ToolFamily::VllmLatency), None, None);
    assert_eq!(reading.tool.as_deref(), Some("vllm-latency"));
    assert!(!reading.metrics.contains_key("completed") && reading.is_measurement());
}

#[test]
fn of_two_tables_of_one_tool_the_last_whole_one_counts() {
    let mut bytes = sample("serving-v0.6.4-v0.9.1.txt");
    bytes.extend(sample("serving-v0.9.2-v0.10.0.txt"));
    let reading = read(&bytes, None, None, None);
    assert_eq!(reading.metrics.get("completed"), Some(&MetricValue::Number(150.0)));
    assert!(reading.is_measurement() && reading.also.is_empty());
    bytes.truncate(bytes.len() - 60);
    let reading = read(&bytes, None, None, None);
    assert_eq!(reading.metrics.get("completed"), Some(&MetricValue::Number(200.0)));
    let message =
        "a result of `vllm-serve` begins after the last whole one and has no end; the values are of the whole one";
    assert_eq!(problem(&reading), Some((ReadingProblemKind::Broken, message)));
}
