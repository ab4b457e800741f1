//! What of a recorded command the checks of its numbers need. It is never run, so that it is only looked at.

/// What a command measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tool {
    /// Requests against a server.
    Serving,
    /// Every request at once: prints a throughput and no latency.
    Throughput,
    /// One batch at a time: prints a latency and no throughput.
    Latency,
    /// Something else.
    Other,
}

/// Returns what a command measures.
pub(super) fn tool(command: &str) -> Tool {
    let says = |words: &[&str]| words.iter().any(|word| command.contains(word));
    if says(&["benchmark_serving", "bench serve", "bench_serving"]) {
        Tool::Serving
    } else if says(&["benchmark_throughput", "bench throughput", "bench_offline_throughput"]) {
        Tool::Throughput
    } else if says(&["benchmark_latency", "bench latency", "bench_one_batch"]) {
        Tool::Latency
    } else {
        Tool::Other
    }
}

/// Returns the number that follows one of some options, as `--option 5` or `--option=5`.
pub(super) fn option(command: &str, names: &[&str]) -> Option<f64> {
    let mut words = command.split_whitespace();
    let mut found = None;
    while let Some(word) = words.next() {
        let (name, joined) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
        if names.contains(&name) {
            let value = joined.or_else(|| words.next());
            found = value.and_then(|value| value.parse::<f64>().ok()).filter(|value| value.is_finite());
        }
    }
    found
}

/// Returns the length of the prompts in tokens, where the command gives it.
pub(super) fn input_len(command: &str) -> Option<f64> {
    option(command, &["--input-len", "--random-input-len"]).filter(|length| *length > 0.0)
}

/// Returns the length of the answers in tokens, where the command gives it.
pub(super) fn output_len(command: &str) -> Option<f64> {
    option(command, &["--output-len", "--random-output-len"]).filter(|length| *length > 0.0)
}

/// Returns how many requests are sent, where the command gives it.
pub(super) fn requests(command: &str) -> Option<f64> {
    option(command, &["--num-prompts", "--num-prompt"]).filter(|count| *count > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_an_option_counts() {
        let command =
            "python benchmarks/benchmark_throughput.py --input-len 5 --input-len=512 --output-len x --num-prompts";
        assert_eq!((input_len(command), output_len(command), requests(command)), (Some(512.0), None, None));
        assert_eq!(tool(command), Tool::Throughput);
        assert_eq!(tool("vllm bench latency --model m"), Tool::Latency);
        assert_eq!(tool("python moe_mem.py"), Tool::Other);
    }
}
