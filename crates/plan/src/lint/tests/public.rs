//! What the rules find in the public tasks. Each line was checked by reading the commit's subject and changed files.

use std::collections::BTreeMap;

use isobench_schema::assessment::Severity;

use super::{Held, tasks};
use crate::lint::ids;

const NINETY_SIX: &str = include_str!("../../../../../examples/iso-bench/vllm-96.jsonl");
const PUBLISHED: &str = include_str!("../../../../../examples/iso-bench/tasks.jsonl");

/// Findings in the 96 tasks, milder ones with their severity; few requests are counted apart.
const IN_NINETY_SIX: &[(&str, &str)] = &[
    ("vllm-ec3b5ce9", "architecture-unsupported"),
    ("vllm-cf2f084d", "architecture-unsupported"),
    ("vllm-3a243095", "architecture-unsupported"),
    ("vllm-2f192835", "architecture-unsupported"),
    ("vllm-ad8d696a", "architecture-unsupported"),
    ("vllm-d7740ea4", "architecture-unsupported"),
    ("vllm-379da6dc", "feature-conflict, warning change-not-exercised"),
    ("vllm-8bc68e19", "architecture-unsupported, warning change-not-exercised"),
    ("vllm-80aa7e91", "architecture-unsupported, hardware-wrong"),
    ("vllm-7c01f706", "architecture-unsupported"),
    ("vllm-3476ed08", "architecture-unsupported"),
    ("vllm-9ed82e70", "architecture-unsupported"),
    ("vllm-ce6bf3a2", "no-command, hardware-wrong"),
    ("vllm-6d646d08", "warning change-not-exercised"),
    ("vllm-83450458", "feature-conflict"),
    ("vllm-98f47f2a", "warning change-not-exercised"),
    ("vllm-9323a315", "warning change-not-exercised"),
    ("vllm-3b61cb45", "warning change-not-exercised"),
    ("vllm-f092153f", "warning change-not-exercised"),
    ("vllm-25ebed2f", "warning change-not-exercised"),
    ("vllm-f26c4aee", "no-command"),
    ("vllm-b55ed6ef", "warning change-not-exercised"),
    ("vllm-526de822", "hardware-wrong"),
    ("vllm-3127e975", "no-command, warning change-not-exercised"),
    ("vllm-fc542144", "warning change-not-exercised"),
    ("vllm-30172b49", "warning change-not-exercised"),
    ("vllm-4c822298", "warning change-not-exercised"),
    ("vllm-0d243f2a", "hardware-wrong"),
    ("vllm-6a417b86", "hardware-wrong"),
    ("vllm-e206b543", "warning change-not-exercised"),
    ("vllm-9badee53", "warning change-not-exercised"),
    ("vllm-ca7a2d5f", "warning revert"),
    ("vllm-fb0acb6c", "warning change-not-exercised"),
    ("vllm-70b808fe", "note throughput-at-fixed-rate, warning change-not-exercised"),
    ("vllm-ccf02fcb", "warning revert"),
    ("vllm-99abb8b6", "warning change-not-exercised"),
    ("vllm-35fad35a", "warning change-not-exercised"),
    ("vllm-3092375e", "warning change-not-exercised"),
    ("vllm-299ebb62", "note throughput-at-fixed-rate"),
    ("vllm-bc7c4d20", "warning hardware-wrong"),
    ("vllm-015069b0", "model-missing, note throughput-at-fixed-rate, warning change-not-exercised"),
    ("vllm-67da5720", "warning model-contradiction, warning change-not-exercised"),
    ("vllm-e493e485", "warning change-not-exercised"),
    ("vllm-d55e446d", "warning change-not-exercised"),
    ("vllm-e7523c2e", "warning change-not-exercised"),
    (
        "vllm-7661e92e",
        "warning model-contradiction, model-contradiction, note throughput-at-fixed-rate, warning change-not-exercised",
    ),
    ("vllm-8a4e5c5f", "no-command"),
    ("vllm-dcc6cfb9", "warning change-not-exercised"),
    ("vllm-6d0734c5", "no-command, warning hardware-wrong"),
    ("vllm-e7b20426", "warning revert, warning change-not-exercised"),
    ("vllm-a3223766", "note throughput-at-fixed-rate, warning rate-beyond-service"),
    ("vllm-ed250545", "no-command"),
    ("vllm-61b8cea3", "no-command"),
    ("vllm-ac45c44d", "warning change-not-exercised"),
];

/// Findings in the 54 published tasks.
const IN_PUBLISHED: &[(&str, &str)] = &[
    ("vllm-3b61cb45", "warning change-not-exercised"),
    ("vllm-98f47f2a", "warning change-not-exercised"),
    ("vllm-bc7c4d20", "warning hardware-wrong"),
    ("vllm-6a417b86", "hardware-wrong"),
    ("vllm-9badee53", "warning change-not-exercised"),
    ("vllm-70b808fe", "note throughput-at-fixed-rate, warning change-not-exercised"),
    ("vllm-b55ed6ef", "warning change-not-exercised"),
    ("vllm-2deb029d", "warning change-not-exercised"),
    ("vllm-e7b20426", "warning revert, warning change-not-exercised"),
    ("vllm-299ebb62", "note throughput-at-fixed-rate"),
    ("vllm-30172b49", "warning change-not-exercised"),
    ("vllm-35fad35a", "warning change-not-exercised"),
    ("vllm-99abb8b6", "feature-conflict, warning feature-conflict"),
    ("vllm-a3223766", "note throughput-at-fixed-rate, warning rate-beyond-service"),
    ("vllm-ad8d696a", "architecture-unsupported"),
    ("vllm-4c822298", "warning change-not-exercised"),
    ("vllm-e206b543", "warning change-not-exercised"),
    ("vllm-fc542144", "warning change-not-exercised"),
    ("vllm-015069b0", "no-command"),
    ("sglang-021f76e4", "note throughput-at-fixed-rate"),
    ("sglang-c087ddd6", "warning change-not-exercised"),
    ("sglang-df7f61ee", "warning change-not-exercised"),
    ("sglang-132dad87", "warning change-not-exercised"),
    ("sglang-187b85b7", "warning change-not-exercised"),
    ("sglang-2ed68d7a", "warning change-not-exercised"),
    ("sglang-6b231325", "warning change-not-exercised"),
    ("sglang-dd1012fc", "warning change-not-exercised"),
    ("sglang-e3ec6bf4", "warning change-not-exercised"),
    ("sglang-da47621c", "warning change-not-exercised"),
    ("sglang-31589e17", "warning change-not-exercised"),
    ("sglang-73b13e69", "warning change-not-exercised"),
    ("sglang-a191a0e4", "warning change-not-exercised"),
];

/// Returns the findings of each task that has any but too few requests, and how many have too few requests.
fn found(text: &'static str) -> (Vec<(String, String)>, usize) {
    let mut few = 0;
    let mut rows = Vec::new();
    for task in tasks(text) {
        let held = Held::of(task);
        let mut names = Vec::new();
        for finding in held.findings() {
            if finding.rule == ids::TOO_FEW_REQUESTS {
                few += 1;
                continue;
            }
            names.push(match finding.severity {
                Severity::Error => finding.rule,
                severity @ (Severity::Warning | Severity::Note) => format!("{severity} {}", finding.rule),
            });
        }
        if !names.is_empty() {
            rows.push((held.task.id.to_string(), names.join(", ")));
        }
    }
    (rows, few)
}

fn check(text: &'static str, expected: &[(&str, &str)], expected_few: usize) {
    let (rows, few) = found(text);
    let expected: BTreeMap<&str, &str> = expected.iter().copied().collect();
    let rows: BTreeMap<&str, &str> = rows.iter().map(|(task, names)| (task.as_str(), names.as_str())).collect();
    for (task, names) in &expected {
        assert_eq!(rows.get(task), Some(names), "{task}");
    }
    for (task, names) in &rows {
        assert_eq!(expected.get(task), Some(names), "{task}");
    }
    assert_eq!(few, expected_few);
}

#[test]
fn the_ninety_six_have_these_faults_and_no_others() {
    check(NINETY_SIX, IN_NINETY_SIX, 40);
}

#[test]
fn the_published_tasks_have_these_faults_and_no_others() {
    check(PUBLISHED, IN_PUBLISHED, 31);
}

/// The message of a rule's first finding in a task of the 96.
fn message(commit: &str, rule: &str) -> String {
    let task = tasks(NINETY_SIX).into_iter().find(|task| task.commit.as_str().starts_with(commit)).unwrap();
    let findings = Held::of(task).findings();
    let found = findings.into_iter().find(|finding| finding.rule == rule);
    found.map_or_else(|| format!("no {rule}"), |finding| format!("{}; {}", finding.message, finding.fix))
}

#[test]
fn findings_name_what_is_wrong_and_what_to_do() {
    for (commit, rule, expected) in [
        (
            "015069b0",
            ids::MODEL_MISSING,
            "no model `Qwen/Qwen3-7B-Instruct` is published; Name the model that was meant; the nearest that is published is `Qwen/Qwen3-8B`.",
        ),
        (
            "7661e92e",
            ids::MODEL_CONTRADICTION,
            "the commit changes Nemotron-H models only, and `nvidia/Nemotron-4-340B-Instruct` isn't one; Name a Nemotron-H model, such as `nvidia/Nemotron-H-8B-Base-8K`.",
        ),
        (
            "3a243095",
            ids::ARCHITECTURE_UNSUPPORTED,
            "the baseline of 2024-03-25 can't load `meta-llama/Llama-3.1-8B-Instruct`; Ask for a model that the baseline loads, such as `meta-llama/Meta-Llama-3-8B-Instruct`, as a proxy; that is a deviation.",
        ),
        (
            "ca7a2d5f",
            ids::REVERT,
            "the commit takes back `dae68969774e`; Read its result as that of the commit taken back with the arms exchanged, or leave it out.",
        ),
        (
            "0d243f2a",
            ids::HARDWARE_WRONG,
            "the change is for AMD devices (ROCm), and NVIDIA H100 SXM 80GB is planned; Plan it on that hardware, or leave it out.",
        ),
        (
            "3b61cb45",
            ids::CHANGE_NOT_EXERCISED,
            "the workload doesn't use what the commit is about, which needs the variable `VLLM_USE_V1=1`; Give a workload with the variable `VLLM_USE_V1=1`.",
        ),
        (
            "98f47f2a",
            ids::CHANGE_NOT_EXERCISED,
            "the workload doesn't run the changed code, which needs the variable `VLLM_USE_V1=1`; Give a workload with the variable `VLLM_USE_V1=1`.",
        ),
        ("fa63e710", ids::CHANGE_NOT_EXERCISED, "no change-not-exercised"),
        ("8c1e77fb", ids::CHANGE_NOT_EXERCISED, "no change-not-exercised"),
    ] {
        assert_eq!(message(commit, rule), expected, "{commit}");
    }
}

#[test]
fn eleven_of_the_ninety_six_ask_for_llama_3_1_too_early() {
    let early = IN_NINETY_SIX.iter().filter(|(_, names)| names.contains(ids::ARCHITECTURE_UNSUPPORTED));
    let short: Vec<&str> = early.map(|(task, _)| &task[5..]).collect();
    let known = "ec3b5ce9 cf2f084d 3a243095 2f192835 ad8d696a d7740ea4 8bc68e19 80aa7e91 7c01f706 3476ed08 9ed82e70";
    assert_eq!(short.join(" "), known);
}
