//! What single logs and several together show: healthy ones, unknown failures, handled ones, and the texts of harnesses.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may fail so")]

use isobench_analysis::classify::{Classifier, Exit, FileFindings};
use isobench_schema::cause::{Cause, CauseStage, Confidence, FixKind};

fn read(file: &str, text: &str) -> FileFindings {
    let mut reader = Classifier::new().log(file);
    reader.feed(text.as_bytes());
    reader.finish()
}

fn classify(files: &[(&str, &str)], exit: Option<Exit>) -> Cause {
    let files: Vec<_> = files.iter().map(|(file, text)| read(file, text)).collect();
    Classifier::new().classify(&files, exit)
}

fn check(text: &str, signature: Option<&str>) -> Cause {
    let cause = classify(&[("log", text)], None);
    assert_eq!(cause.signature.as_deref(), signature, "{text}\n{cause:#?}");
    cause
}

const OUT_OF_MEMORY: &str = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n";
const READY: &str = "INFO:     Application startup complete.\n";
const ODD: &str = "Traceback (most recent call last):\n  File \"/opt/x.py\", line 3, in step\n    raise ValueError(\"No \
                   available memory for the cache blocks\")\nValueError: the flux is out of order\n";
const GENERIC: &str =
    "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n";

#[test]
fn a_log_without_failure_has_no_cause() {
    for text in [
        "",
        "\n\n",
        READY,
        "INFO 08-03 11:42:05 [loggers.py:123] Engine 000: Avg prompt throughput: 5.0 tokens/s\n",
        "============ Serving Benchmark Result ============\nSuccessful requests:                     100       \n\
         Failed requests:                         0         \n==================================================\n",
        "WARNING 08-03 11:42:05 [config.py:12] CUDA out of memory may happen\n",
        "INFO 08-03 11:42:05 [logger.py:41] Received request cmpl-1: prompt: 'ValueError: No available memory for the cache \
         blocks', params: SamplingParams(n=1)\n",
        "Namespace(model='x', note='torch.OutOfMemoryError: CUDA out of memory')\n",
        "WARNING: Retrying (Retry(total=4)) after connection broken by 'NewConnectionError(...)': /simple/vllm/\n",
        "Loading safetensors checkpoint shards:  25% Completed | 1/4 [00:00<00:01,  2.04it/s]\r",
        "/opt/x.py:12: UserWarning: Failed to do it: KeyError: 'model.x'\n",
        "HEAD is now at 995a796 [Bugfix] Fix torch.OutOfMemoryError: CUDA out of memory in profiling\n",
        "'(MaxRetryError(\"HTTPSConnectionPool(host='huggingface.co', port=443): Max retries exceeded\"))' thrown while \
         requesting HEAD https://huggingface.co/x/resolve/main/config.json\nRetrying in 1s [Retry 1/5].\n",
        "host:1:1 [0] NCCL INFO dlerror=libnccl-net.so: cannot open shared object file: No such file or directory\n",
    ] {
        let cause = check(text, None);
        assert_eq!((cause.stage, cause.class.as_str()), (CauseStage::Unknown, "unknown"), "{text}");
        assert_eq!(cause.confidence, Confidence::None);
        assert!(cause.evidence.is_empty() && cause.cause.contains("nothing that was written"), "{cause:#?}");
    }
}

#[test]
fn a_cause_reads_well_where_the_line_names_nothing() {
    let found = check("error: HTTP error 404 while getting http://x/COMMIT/vllm-1.0.0.dev-cp38.whl\n", Some("F1"));
    assert_eq!(found.cause, "no wheel is published for the commit");
    let found = check("HFValidationError: Repo id must be in the form 'repo_name': '/srv/x'.\n", Some("C8"));
    assert_eq!(found.cause, "the hub has no model of that name");
}

#[test]
fn a_line_that_shows_two_signatures_is_shown_once() {
    let text = "error: subprocess-exited-with-error\n  Traceback (most recent call last):\n    File \"<string>\", line 8, in \
                <module>\n  ModuleNotFoundError: No module named 'torch'\n  error: subprocess-exited-with-error\n";
    let found = classify(&[("log", text)], None);
    let mut offsets: Vec<u64> = found.evidence.iter().map(|line| line.offset).collect();
    let shown = offsets.len();
    offsets.sort_unstable();
    offsets.dedup();
    assert_eq!((offsets.len(), found.consequences.len()), (shown, 2), "{found:#?}");
}

#[test]
fn prefixes_of_what_carries_a_log_hide_no_cause() {
    let lines = "Traceback (most recent call last):\n  File \"/opt/x.py\", line 3, in step\n    raise ValueError(\"no\")\n\
                 ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`\n";
    let refused = "usage: vllm serve [-h]\nvllm: error: unrecognized arguments: --num-scheduler-steps 8\n";
    for prefix in [
        "vllm-1  | ",
        "2025-07-01T10:00:00.123456789Z stderr F ",
        "2025-07-01T10:00:00.123456+00:00 ",
        "Jul 01 10:00:00 host1 vllm[1234]: ",
        "2025-07-01T10:00:00+0200 host1 vllm[1234]: ",
        "2025-07-01T10:00:00.1234567Z ##[error]",
        "[pod/vllm-0/vllm] ",
        "vllm-1  | (EngineCore_0 pid=7) ERROR 08-03 11:42:20 [core.py:632] ",
        "#22 1200.3 ",
        "E   ",
    ] {
        for (text, signature) in [(lines, "D3"), (refused, "C19")] {
            let text: Vec<String> = text.lines().map(|line| format!("{prefix}{line}\n")).collect();
            check(&text.concat(), Some(signature));
        }
    }
}

#[test]
fn an_unknown_failure_stays_unknown_and_shows_its_innermost_exception() {
    let text = format!("{ODD}\nDuring handling of the above exception, another exception occurred:\n\n{ODD}{GENERIC}");
    let cause = check(&text, None);
    assert_eq!(cause.confidence, Confidence::None);
    let first = &cause.evidence[0];
    assert_eq!((first.line, first.text.as_str()), (4, "ValueError: the flux is out of order"));
    assert_eq!(first.offset, text.find("ValueError: the flux").map(|at| at as u64).unwrap());
    assert_eq!(cause.consequences, ["E8"]);
    assert_eq!(cause.fix.kind, FixKind::None);
}

#[test]
fn what_was_handled_before_the_server_was_ready_is_no_cause() {
    for handled in [ODD, OUT_OF_MEMORY, "Exception ignored in: <function x>\n"] {
        check(&format!("{handled}{READY}"), None);
        check(&format!("{handled}{READY}ValueError: Token id 12 is out of vocabulary\n"), Some("C31"));
    }
    let warned: Vec<String> = ODD
        .replace("flux", "CUDA out of memory")
        .lines()
        .map(|line| format!("(EngineCore pid=7) WARNING 08-03 11:42:20 [core.py:632] {line}"))
        .collect();
    let warned = warned.join("\n") + "\n";
    check(&warned, None);
    check(&format!("{warned}RuntimeError: Numpy is not available\n"), Some("B4"));
    check(&format!("Exception ignored in: <function x at 0x7f>\n{ODD}"), None);
}

#[test]
fn the_earliest_known_error_is_the_cause_and_the_rest_follows() {
    let cause = check(&format!("{OUT_OF_MEMORY}{GENERIC}{ODD}"), Some("D1"));
    assert_eq!(cause.consequences, ["E8"]);
    assert_eq!(cause.confidence, Confidence::High);
    let cause = check(&format!("{GENERIC}{OUT_OF_MEMORY}"), Some("D1"));
    assert_eq!(cause.consequences, ["E8"]);
    let cause = check(&format!("{ODD}{OUT_OF_MEMORY}"), Some("D1"));
    assert_eq!(cause.confidence, Confidence::Medium, "something unknown failed before");
    assert_eq!(check(GENERIC, Some("E8")).confidence, Confidence::Low);
    for lost in [
        "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.",
        "torch.distributed.DistNetworkError: Failed to recv, got 0 bytes. Connection was likely closed. Did the remote \
         server shutdown or crash?",
    ] {
        let cause = check(&format!("[rank1]: {lost}\n[rank0]: {OUT_OF_MEMORY}"), Some("D1"));
        assert_eq!(cause.consequences, ["E27"], "what a rank says that lost the others only follows");
    }
}

#[test]
fn tracebacks_of_several_processes_are_kept_apart() {
    let first: Vec<String> =
        ODD.lines().map(|line| format!("(Worker_TP0 pid=7) ERROR 08-03 11:42:20 [x.py:1] {line}")).collect();
    let second: Vec<String> = ODD
        .replace("the flux is out of order", "No available memory for the cache blocks.")
        .lines()
        .map(|line| format!("(Worker_TP1 pid=8) ERROR 08-03 11:42:20 [x.py:1] {line}"))
        .collect();
    let mixed: Vec<&str> = first.iter().zip(&second).flat_map(|(one, other)| [one.as_str(), other]).collect();
    let cause = check(&mixed.join("\n"), Some("D3"));
    assert_eq!(cause.evidence[0].line, 8, "source text in a traceback is no evidence: {cause:#?}");
}

#[test]
fn files_of_one_launch_are_read_in_its_order() {
    let refused = "usage: benchmark_serving.py [-h]\nbenchmark_serving.py: error: unrecognized arguments: --dtype x\n";
    let gone = "aiohttp.client_exceptions.ServerDisconnectedError: Server disconnected\n";
    let crash = "RuntimeError: CUDA error: an illegal memory access was encountered\n";
    let served = format!("{READY}{crash}");
    for (files, signature) in [
        (vec![("client.log", gone), ("server.stderr", served.as_str())], Some("D12")),
        (vec![("client.log", refused), ("server.stderr", READY)], Some("A1")),
        (vec![("client.log", gone), ("server.stderr", READY)], Some("A23")),
        (vec![("client.log", gone), ("server.stderr", ODD)], None),
        (vec![("harness.txt", "BASELINE server failed to start"), ("server.stderr", OUT_OF_MEMORY)], Some("D1")),
        (vec![("environment.log", OUT_OF_MEMORY), ("server.stderr", READY)], None),
        (vec![("server.stderr", GENERIC), ("server.stdout", OUT_OF_MEMORY)], Some("D1")),
        (vec![("harness.txt", "Baseline benchmark produced no metrics"), ("client.log", refused)], Some("A1")),
    ] {
        let cause = classify(&files, None);
        assert_eq!(cause.signature.as_deref(), signature, "{files:?}\n{cause:#?}");
    }
}

#[test]
fn the_way_in_which_it_ended_counts_when_nothing_else_shows() {
    for (text, exit, signature) in [
        (READY, Exit::Signal(9), Some("D13")),
        (READY, Exit::Status(137), Some("D13")),
        ("", Exit::Signal(11), Some("I10")),
        ("", Exit::Status(139), Some("I10")),
        (GENERIC, Exit::Signal(9), Some("D13")),
        (OUT_OF_MEMORY, Exit::Signal(9), Some("D1")),
        (ODD, Exit::Signal(9), None),
        ("", Exit::Status(127), Some("E19")),
        ("", Exit::Status(3), None),
        ("", Exit::Status(0), None),
    ] {
        let cause = classify(&[("server.log", text)], Some(exit));
        assert_eq!(cause.signature.as_deref(), signature, "{text:?} {exit:?}\n{cause:#?}");
    }
    let cause = classify(&[("server.log", "")], Some(Exit::Status(3)));
    assert_eq!(cause.cause, "it ended with status 3, and nothing that was written looks like a failure");
    let told = format!("{READY}INFO:     Shutting down\nvllm.v1.engine.exceptions.EngineDeadError: EngineCore ended\n");
    assert_eq!(classify(&[("server.log", &told)], Some(Exit::Status(0))).signature, None);
}

#[test]
fn sentences_name_what_the_lines_name() {
    for (text, cause, advice) in [
        (
            "benchmark_serving.py: error: unrecognized arguments: --dtype float16",
            "the client benchmark_serving.py doesn't know the option `--dtype`",
            "give options of the engine to the server",
        ),
        (
            "ValueError: To serve at least one request with the models's max seq len (131072), (16.00 GiB KV cache is needed, \
             which is larger than the available KV cache memory (11.20 GiB). Based on the available memory, the estimated \
             maximum model length is 91744.",
            "one request of 131072 tokens needs a cache of 16.00 GiB, and 11.20 GiB are left",
            "set `--max-model-len` to 91744",
        ),
        (
            "ValueError: Model architectures ['Qwen3ForCausalLM'] are not supported for now.",
            "the commit doesn't know the architecture 'Qwen3ForCausalLM'",
            "mark the task",
        ),
        (
            "Namespace(num_prompts=100)\nSuccessful requests:                     97        ",
            "only 97 of 100 requests were answered",
            "compare",
        ),
    ] {
        let found = classify(&[("log", text)], None);
        assert_eq!(found.cause, cause, "{found:#?}");
        assert!(found.fix.advice.starts_with(advice), "{found:#?}");
    }
}

#[test]
fn texts_that_a_harness_kept_show_the_true_cause_where_they_hold_it() {
    for (text, signature) in [
        ("[Errno 32] Broken pipe", "E18"),
        ("Baseline install failed: No wheel available and no ancestor wheel found for 36fb68f94792", "F1"),
        ("Baseline benchmark produced no metrics", "H1"),
        ("BASELINE server failed to start", "H2"),
        (
            "vLLM 0.6.4.post2.dev375+gd263bd9d has known port binding bug (issue #8791) - serving benchmarks not supported",
            "E3",
        ),
        (
            "BASELINE server failed to start. Logs:\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 896.00 MiB. \
             GPU 0 has a total capacity of 79.18 GiB of which 812.56 MiB is free. Process 1 has 78.38 GiB memory in use.",
            "D1",
        ),
        (
            "BASELINE server failed to start. Logs:\nCapturing CUDA graph shapes: 90%|████████▊ | ... (timed out during CUDA \
             graph capture)",
            "D8",
        ),
        (
            "BASELINE server failed to start. Logs:\nValueError: 'aimv2' is already used by a Transformers config, pick \
             another name.\n(from vllm/transformers_utils/configs/ovis.py)",
            "B1",
        ),
        (
            "Baseline wheel install failed: Failed to install wheel:\nHTTP status client error (404 Not Found) for url\n\
             (https://vllm-wheels.s3.us-west-2.amazonaws.com/f1c85201/vllm-1.0.0.dev-cp38-abi3-manylinux1_x86_64.whl)",
            "F1",
        ),
        ("(no error field - missing perf command in dataset)", "H4"),
        ("(no error field - blocked model)", "H5"),
        ("(no error field - malformed perf command with placeholders)", "H6"),
        ("Command '['git', 'reset', '--hard', 'HEAD']' timed out after 60 seconds", "H3"),
    ] {
        check(text, Some(signature));
    }
}
