//! Single rules, on one public row that is changed a little each time.

use isobench_schema::assessment::{DeviceNeed, Finding};
use isobench_schema::ids::Moment;
use isobench_schema::measurement::MetricName;

use super::*;
use crate::lint::ids;

/// A row of the 96 with another command and another baseline moment.
fn held(command: &str, moment: &str) -> Held {
    let text = include_str!("../../../../../examples/iso-bench/vllm-96.jsonl");
    let mut task = tasks(text).into_iter().find(|task| task.commit.as_str().starts_with("93e5f3c5")).unwrap();
    task.command = Some(command.to_owned());
    task.model = None;
    let mut held = Held::of(task);
    for facts in [&mut held.baseline, &mut held.human] {
        facts.as_mut().unwrap().committed = Moment::new(moment).unwrap();
    }
    held.human.as_mut().unwrap().files_changed = Some(vec![String::from("vllm/sequence.py")]);
    held
}

const PLAIN: &str =
    "python benchmarks/benchmark_serving.py --model meta-llama/Llama-3.1-8B-Instruct --dataset-name random";
const DAY: &str = "2025-04-12T00:00:00Z";

/// Returns the rules that find something, milder findings with their severity.
fn names(findings: &[Finding]) -> String {
    let name = |finding: &Finding| format!("{} {}", finding.severity, finding.rule);
    findings.iter().map(name).collect::<Vec<_>>().join(", ")
}

fn of(command: &str, moment: &str) -> String {
    names(&held(command, moment).findings())
}

#[test]
fn a_plain_task_has_no_fault() {
    assert_eq!(of(PLAIN, DAY), "");
}

#[test]
fn conflicts_hold_in_their_span() {
    let with = |rest: &str| format!("{PLAIN} {rest}");
    for (command, moment, expected) in [
        (
            with("--speculative-model '[ngram]'"),
            "2025-03-20T00:00:00Z",
            "error feature-conflict, warning feature-conflict",
        ),
        (with("--speculative-model '[ngram]' --ngram-prompt-lookup-max 4"), "2025-03-10T00:00:00Z", ""),
        (with("--speculative-model '[ngram]'"), "2025-05-20T00:00:00Z", ""),
        (
            format!("VLLM_USE_V1=1 {}", with("--speculative-model m/draft")),
            "2025-03-20T00:00:00Z",
            "error feature-conflict",
        ),
        (format!("VLLM_USE_V1=1 {PLAIN}"), "2024-08-01T00:00:00Z", "warning feature-conflict"),
        (format!("VLLM_USE_V1=1 {PLAIN}"), DAY, ""),
        (format!("VLLM_USE_V1=1 {PLAIN}"), "2025-12-01T00:00:00Z", "warning feature-conflict"),
        (format!("VLLM_ATTENTION_BACKEND=FLASHMLA {PLAIN}"), DAY, "error feature-conflict"),
        (
            format!("VLLM_ATTENTION_BACKEND=TRITON_ATTN_VLLM_V1 {PLAIN}"),
            "2025-03-01T00:00:00Z",
            "error feature-conflict",
        ),
        (format!("VLLM_ATTENTION_BACKEND=TRITON_ATTN_VLLM_V1 {PLAIN}"), DAY, ""),
        (with("--dtype float8"), DAY, "error feature-conflict"),
        (with("--num-scheduler-steps 8"), DAY, "warning feature-conflict"),
        (with("--num-scheduler-steps 1"), DAY, ""),
        (with("--enable-prefix-caching"), DAY, ""),
    ] {
        assert_eq!(of(&command, moment), expected, "{command} at {moment}");
    }
    let of_model = |model: &str, rest: &str| format!("python benchmarks/benchmark_serving.py --model {model} {rest}");
    for (model, rest, expected) in [
        ("ibm-ai-platform/Bamba-9B", "--enable-prefix-caching", "error feature-conflict"),
        ("google/gemma-3-12b-it", "--dtype float16", ""),
        ("Qwen/Qwen3-30B-A3B-FP8", "--tensor-parallel-size 4", "error feature-conflict"),
        ("Qwen/Qwen3-30B-A3B-FP8", "--tensor-parallel-size 2", ""),
        ("Qwen/Qwen3-30B-A3B-FP8", "--tensor-parallel-size 4 --enable-expert-parallel", ""),
    ] {
        assert_eq!(of(&of_model(model, rest), DAY), expected, "{model} {rest}");
    }
    assert_eq!(
        of(&of_model("google/gemma-3-12b-it", "--dtype float16"), "2025-07-01T00:00:00Z"),
        "error feature-conflict"
    );
}

#[test]
fn an_old_device_has_no_bfloat16() {
    let held = held(PLAIN, DAY);
    let on = |device| Case { device: Knowledge::embedded().devices.find(device), ..held.case() };
    assert_eq!(names(&lint(&on("t4"))), "error feature-conflict");
    assert_eq!(names(&lint(&on("a100"))), "");
}

#[test]
fn devices_are_counted_by_the_command_and_by_need() {
    let need = |devices| DeviceNeed {
        model: String::from("m/x"),
        devices,
        asked_tensor_parallel: None,
        weights_gb: 1.0,
        kv_bytes_per_token: 1,
        context_tokens: 1,
        workload_tokens: 1,
        device_gb: 1.0,
        because: vec![String::from("it is so")],
    };
    for (command, devices, needed, expected) in [
        ("", Some(1), Some(Some(1)), ""),
        ("--tensor-parallel-size 2", Some(1), Some(Some(1)), "error devices-too-few"),
        ("-tp 2 --pipeline-parallel-size 2", Some(3), None, "error devices-too-few"),
        ("-tp 2 --pipeline-parallel-size 2", Some(4), None, ""),
        ("", Some(1), Some(Some(2)), "error devices-too-few"),
        ("", None, Some(Some(2)), ""),
        ("", Some(8), Some(None), "error model-too-large"),
        ("-tp 2", None, None, ""),
    ] {
        let held = held(&format!("{PLAIN} {command}"), DAY);
        let need = needed.map(need);
        let case = Case { devices, need: need.as_ref(), ..held.case() };
        assert_eq!(names(&lint(&case)), expected, "{command} {devices:?} {needed:?}");
    }
}

#[test]
fn a_fixed_rate_is_a_fault_where_throughput_decides() {
    for (command, primary, service, expected) in [
        ("--request-rate 4", None, None, "note throughput-at-fixed-rate"),
        ("--request-rate 4", Some(MetricName::OutputThroughput), None, "warning throughput-at-fixed-rate"),
        ("--request-rate 4", Some(MetricName::MeanTtftMs), None, ""),
        ("--request-rate inf", Some(MetricName::OutputThroughput), None, ""),
        ("--request-rate 4", Some(MetricName::MeanTtftMs), Some(3.0), "warning rate-beyond-service"),
        ("--request-rate 4", Some(MetricName::MeanTtftMs), Some(5.0), ""),
        ("--request-rate 2000", Some(MetricName::MeanTtftMs), None, "warning rate-beyond-service"),
    ] {
        let held = held(&format!("{PLAIN} {command}"), DAY);
        let case = Case { primary, service_rate_per_s: service, ..held.case() };
        assert_eq!(names(&lint(&case)), expected, "{command} {primary:?} {service:?}");
    }
}

#[test]
fn a_percentile_needs_its_requests() {
    for (command, primary, expected) in [
        ("--num-prompts 662", None, ""),
        ("--num-prompts 661", None, "warning too-few-requests"),
        ("--num-prompts 661", Some(MetricName::P99TtftMs), "warning too-few-requests"),
        ("--num-prompts 661", Some(MetricName::MeanTtftMs), "note too-few-requests"),
        ("--num-prompts 64 --metric-percentiles 50,90", None, ""),
        ("--num-prompts 63 --metric-percentiles 50,90", None, "warning too-few-requests"),
        ("--num-prompts 10 --metric-percentiles 50", None, ""),
        ("--num-prompts MANY", None, ""),
    ] {
        let held = held(&format!("{PLAIN} {command}"), DAY);
        let case = Case { primary, ..held.case() };
        assert_eq!(names(&lint(&case)), expected, "{command} {primary:?}");
    }
    let offline = "python benchmarks/benchmark_throughput.py --model facebook/opt-125m --num-prompts 10 --input-len 8";
    assert_eq!(of(offline, DAY), "");
}

#[test]
fn revisions_that_are_not_known_are_named() {
    let held = held(PLAIN, DAY);
    let case = Case { baseline: None, human: None, ..held.case() };
    assert_eq!(names(&lint(&case)), "error revision-unknown, error revision-unknown");
    let case = Case { baseline: None, ..held.case() };
    assert_eq!(names(&lint(&case)), "error revision-unknown");
}

#[test]
fn the_row_and_the_command_must_name_one_model() {
    let mut held = held(PLAIN, DAY);
    for (model, expected) in [
        ("meta-llama/Meta-Llama-3.1-8B-Instruct", ""),
        ("meta-llama/Llama-3.1-8B", "warning model-contradiction"),
        ("facebook/opt-125m", "warning model-contradiction"),
    ] {
        held.task.model = Some(model.to_owned());
        assert_eq!(names(&held.findings()), expected, "{model}");
    }
    held.task.command = None;
    held.given = None;
    held.task.model = None;
    assert_eq!(names(&held.findings()), "error no-command");
}

#[test]
fn only_files_that_a_rule_knows_are_called_unused() {
    for (files, expected) in [
        (&["vllm/v1/core/scheduler.py"][..], ""),
        (&["vllm/core/scheduler.py", "vllm/worker/model_runner.py"], ""),
        (&["vllm/lora/layers.py"], "warning change-not-exercised"),
        (&["vllm/lora/layers.py", "vllm/envs.py"], "warning change-not-exercised"),
        (&["vllm/lora/layers.py", "vllm/v1/core/scheduler.py"], ""),
        (&["vllm/lora/layers.py", "vllm/model_executor/layers/fused_moe/layer.py"], "warning change-not-exercised"),
        (&["tests/a.py", "docs/b.md"], "warning change-not-exercised"),
        (&["vllm/config.py"], ""),
        (&["CMakeLists.txt"], ""),
        (&["csrc/quantization/awq/gemm_kernels.cu"], "warning change-not-exercised"),
        (&["csrc/attention/attention_kernels.cu"], ""),
        (&["vllm/distributed/device_communicators/pynccl.py"], "warning change-not-exercised"),
        (&["vllm/worker/tpu_model_runner.py"], "error hardware-wrong"),
        (&["vllm/worker/tpu_model_runner.py", "vllm/worker/model_runner.py"], ""),
    ] {
        let mut held = held(PLAIN, DAY);
        let files: Vec<String> = files.iter().map(|file| (*file).to_owned()).collect();
        let human = held.human.as_mut().unwrap();
        human.files_changed = Some(files.clone());
        human.subject = String::from("Make it faster");
        assert_eq!(names(&held.findings()), expected, "{files:?}");
    }
}

#[test]
fn the_planned_hardware_is_not_the_wrong_one() {
    let mut held = held(PLAIN, DAY);
    let human = held.human.as_mut().unwrap();
    human.files_changed = Some(vec![String::from("vllm/attention/backends/torch_sdpa.py")]);
    human.subject = String::from("[CPU] Faster attention");
    let on = |device| Case { device: Knowledge::embedded().devices.find(device), ..held.case() };
    assert_eq!(names(&lint(&on("cpu"))), "");
    assert_eq!(names(&lint(&on("h100"))), "error hardware-wrong");
    assert!(
        lint(&on("h100")).iter().all(|finding| finding.rule == ids::HARDWARE_WRONG && !finding.evidence.is_empty())
    );
}
