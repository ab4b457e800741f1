//! Why a file is no measurement: the kind, the words and the line.

use isobench_schema::reading::ReadingProblemKind;
use isobench_schema::reading::ReadingProblemKind::{
    Broken, Contradictory, EngineLogOnly, NotAResult, NothingMeasured, ToolFailed,
};

use crate::support::read;

fn check(text: &str, kind: ReadingProblemKind, message: &str, line: Option<u64>) {
    let problem = read(text.as_bytes()).problem.unwrap_or_else(|| panic!("{text:?} is no measurement"));
    assert_eq!((problem.kind, problem.message.as_str(), problem.line), (kind, message, line), "{text:?}");
}

const HEADING: &str = "============ Serving Benchmark Result ============\n";
const RULE: &str = "==================================================\n";

fn row(label: &str, value: &str) -> String {
    format!("{label:<40} {value:<10}\n")
}

#[test]
fn files_without_a_result_say_what_happened_and_where() {
    check("", NotAResult, "the file is empty", None);
    check("hello\n", NotAResult, "no line of it is one of a result that is known", None);
    check(
        "Namespace(percentile_metrics='ttft,tpot,itl', request_rate=inf)\nkilling\n",
        NotAResult,
        "no line of it is one of a result that is known",
        None,
    );
    check(
        "usage: vllm [-h]\nvllm bench serve: error: unrecognized arguments: --dtype\n",
        ToolFailed,
        "`vllm bench serve` refuses its arguments: `unrecognized arguments: --dtype`",
        Some(2),
    );
    check(
        "x\nTraceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n    raise KeyError(5)\nKeyError: 5\n\nDuring handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\nValueError: outer\n",
        ToolFailed,
        "the tool stopped with `KeyError: 5`",
        Some(5),
    );
    check(
        "(EngineCore_0 pid=7) ERROR 08-03 11:42:20 [core.py:632] Traceback (most recent call last):\n(EngineCore_0 pid=7) ERROR 08-03 11:42:20 [core.py:632]     x = f()\n(EngineCore_0 pid=7) ERROR 08-03 11:42:20 [core.py:632] torch.OutOfMemoryError: CUDA out of memory.\n",
        ToolFailed,
        "the tool stopped with `torch.OutOfMemoryError: CUDA out of memory.`",
        Some(3),
    );
    check(
        "/usr/bin/python3: No module named sglang.bench_one_batch\n",
        ToolFailed,
        "the tool could not be started: `/usr/bin/python3: No module named sglang.bench_one_batch`",
        Some(1),
    );
    check(
        "Warming up...\nProfiling...\n",
        NothingMeasured,
        "the tool was asked for a profile, after which it ends without measuring",
        Some(2),
    );
    check(
        "Starting main benchmark run...\n",
        Broken,
        "the output begins as that of `vllm-serve` does, but the table `Serving Benchmark Result` is missing",
        Some(1),
    );
    check(
        "\nINFO x] Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 51.2 tokens/s\n",
        EngineLogOnly,
        "only the engine's own log says how fast it is, which is no result; no line of it is one of a result that is known",
        Some(2),
    );
}

#[test]
fn broken_results_name_the_label_and_what_was_expected() {
    let broken = format!("{HEADING}{}{}{RULE}", row("Successful requests:", "7"), row("Mean TTFT (ms):", "8x"));
    check(&broken, Broken, "`Mean TTFT (ms):` is followed by `8x`, which is not a number", Some(3));
    let empty = format!("{HEADING}{}{RULE}", row("Mean TTFT (ms):", ""));
    check(&empty, Broken, "`Mean TTFT (ms):` is followed by nothing", Some(2));
    check(
        &format!("{HEADING}{RULE}"),
        Broken,
        "the table `Serving Benchmark Result` has no row that is known",
        Some(1),
    );
    let twice = format!("{HEADING}{}{}{RULE}", row("Mean TTFT (ms):", "1.00"), row("Mean TTFT (ms):", "2.00"));
    check(&twice, Broken, "`Mean TTFT (ms):` stands twice in one table, with different values", Some(3));
    assert!(read(twice.as_bytes()).metrics.is_empty());
    // What stands there once may be a row of either table.
    let rows = ["1.00", "2.00"].map(|value| row("Mean TTFT (ms):", value)).concat();
    let mixed = format!("{HEADING}{}{}{rows}{RULE}", row("Successful requests:", "7"), row("Concurrency:", "2.50"));
    assert!(read(mixed.as_bytes()).metrics.is_empty());
    check(
        &format!("{HEADING}{}{RULE}", row("Mean TTFT (ms):", "0.00")),
        Broken,
        "the row `Successful requests:` is missing, so that nothing shows what was measured",
        Some(1),
    );
    let short =
        format!("{HEADING}{}Mean TTFT (ms):                          812.4\n{RULE}", row("Successful requests:", "7"));
    check(
        &short,
        Broken,
        "the row of `mean_ttft_ms` is shorter than the others, so that its value may be cut",
        Some(3),
    );
    assert!(!read(short.as_bytes()).metrics.contains_key("mean_ttft_ms"));
    check(
        "batch size: 16\nlatency: 1.21 s\n",
        Broken,
        "the result of `sglang-one-batch-server` isn't whole: a whole line `Input throughput:..` is missing",
        Some(1),
    );
    check(
        "Throughput: 48.49 requests/s, 24826.51 total tokens/s, 124",
        Broken,
        "the result of `vllm-throughput` isn't whole: the end of its last line is missing",
        Some(1),
    );
}

#[test]
fn values_that_contradict_each_other_are_no_measurement() {
    let rows = row("Successful requests:", "200")
        + &row("Benchmark duration (s):", "58.91")
        + &row("Request throughput (req/s):", "33.90");
    let message = "`request_throughput` is 33.9 over a `duration_s` of 58.91, but `completed` is 200";
    check(&format!("{HEADING}{rows}{RULE}"), Contradictory, message, Some(4));
}

#[test]
fn engine_lines_are_under_names_of_their_own() {
    let text = "INFO x] Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 51.2 tokens/s\nAvg latency: 1.5 seconds\n";
    let reading = read(text.as_bytes());
    assert!(reading.is_measurement());
    assert_eq!(reading.metrics.len(), 1);
    assert_eq!(reading.engine_log.get("engine_log_last_generation_throughput"), Some(&51.2));
}

#[test]
fn files_of_other_kinds_are_named() {
    let utf16: Vec<u8> = "Avg latency: 1.5 seconds\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let message = "the text is in UTF-16, as PowerShell writes it: convert it to UTF-8 first";
    let said = |bytes: &[u8]| read(bytes).problem.map(|problem| (problem.kind, problem.message, problem.line));
    assert_eq!(said(&utf16), Some((NotAResult, message.to_owned(), None)));
    let message = "the file is compressed by gzip: decompress it first";
    assert_eq!(said(b"\x1f\x8b\x08\0\0\0\0\0\x02\xff"), Some((NotAResult, message.to_owned(), None)));
}

#[test]
fn lines_of_two_results_that_run_into_each_other_give_no_value() {
    for (text, metric, tool, line) in [
        (
            "Avg latency: 1.0 seconds\n10% percentile latency: 0.9 seconds\n10% percentile latency: 1.9 seconds\n",
            "p10_latency_s",
            "vllm-latency",
            3,
        ),
        (
            "batch size: 16\nlatency: 1.21 s\nlatency: 2.21 s\noutput throughput: 105.79 token/s\n\
             (input + output) throughput: 13646.28 token/s\n",
            "latency_s",
            "sglang-one-batch-server",
            3,
        ),
    ] {
        let message = format!("`{metric}` stands twice in one result of `{tool}`, with different values");
        check(text, Broken, &message, Some(line));
        assert!(read(text.as_bytes()).metrics.is_empty());
    }
    let same = "Avg latency: 1.0 seconds\n10% percentile latency: 0.9 seconds\n10% percentile latency: 0.9 seconds\n";
    assert_eq!(read(same.as_bytes()).problem, None);
}

#[test]
fn exceptions_in_groups_and_without_a_message_are_named() {
    check(
        "  + Exception Group Traceback (most recent call last):\n  |   File \"x\", line 1\n  \
         | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)\n  +-+---------------- 1 ----------------\n    \
         | Traceback (most recent call last):\n    |   File \"y\", line 2\n    | ValueError: bad\n    +------------\n",
        ToolFailed,
        "the tool stopped with `ValueError: bad`",
        Some(7),
    );
    let text = "Traceback (most recent call last):\n  File \"x\", line 1, in y\nStopIteration\n";
    check(text, ToolFailed, "the tool stopped with `StopIteration`", Some(3));
}
