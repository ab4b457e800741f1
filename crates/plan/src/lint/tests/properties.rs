//! Whatever a task holds, the rules end, and end the same way.

use isobench_schema::assessment::{FactSource, RevisionFacts};
use isobench_schema::commit_task::{CommitTask, Origin, RowFormat};
use isobench_schema::environment::EngineKind;
use isobench_schema::ids::{CommitId, Moment, Revision, TaskId};
use isobench_schema::measurement::MetricName;
use proptest::prelude::*;

use super::*;
use crate::lint::{ids, rule};

/// Texts near to what rules look for, and anything else.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        proptest::sample::select(vec![
            "",
            "*",
            "Revert \"x",
            "[V1][Spec Decode] *",
            "[ROCm] é",
            "meta-llama/Llama-3.1-8B-Instruct",
            "MODEL",
            "vllm/v1/spec_decode/eagle.py",
            "vllm/worker/neuron_worker.py",
            "tests/x",
            "Qwen/Qwen3-7B-Instruct",
            "VLLM_USE_V1=1 vllm bench serve --model x/y --request-rate 1e300 --num-prompts 0",
            "python benchmarks/benchmark_serving.py -tp 4294967295 -pp 4294967295 --request-rate 0.5 --num-prompts=7",
            "python -m sglang.bench_serving --metric-percentiles 99.9,,x --request-rate nan",
        ])
        .prop_map(ToOwned::to_owned),
        ".{0,40}",
    ]
}

fn facts() -> impl Strategy<Value = RevisionFacts> {
    let moment = (2022u32..2028, 1u32..13, 1u32..29).prop_map(|(y, m, d)| format!("{y}-{m:02}-{d:02}T00:00:00Z"));
    let files = proptest::option::of(proptest::collection::vec(text(), 0..4));
    (moment, text(), files).prop_map(|(moment, subject, files_changed)| RevisionFacts {
        commit: CommitId::new("ca7a2d5f28eac9621474563cdda0e08596222755").unwrap(),
        parent: None,
        committed: Moment::new(moment).unwrap(),
        subject,
        after_release: None,
        first_release: None,
        native_key: None,
        files_changed,
        scripts: None,
        source: FactSource::Git,
    })
}

fn task() -> impl Strategy<Value = CommitTask> {
    let texts = (proptest::option::of(text()), proptest::option::of(text()), proptest::option::of(text()));
    let files = proptest::collection::vec(text(), 0..4);
    (texts, files, proptest::sample::select(EngineKind::ALL)).prop_map(|((subject, model, command), files, engine)| {
        CommitTask {
            id: TaskId::new("x").unwrap(),
            engine,
            repository: String::from("https://example.invalid/x"),
            commit: Revision::new("ca7a2d5f").unwrap(),
            parent: None,
            subject,
            model,
            benchmark_kind: None,
            command,
            server_command: None,
            files_changed: files,
            agents: Vec::new(),
            origin: Origin { file: String::new(), row: 1, format: RowFormat::Published },
            columns: serde_json::Map::new(),
            further_rows: Vec::new(),
        }
    })
}

proptest! {
    #[test]
    fn any_task_is_linted_the_same_way_twice(
        task in task(),
        baseline in proptest::option::of(facts()),
        human in proptest::option::of(facts()),
        rate in proptest::option::of(any::<f64>()),
        primary in proptest::option::of(proptest::sample::select(MetricName::ALL)),
        devices in proptest::option::of(0u32..10),
    ) {
        let held = Held { baseline, human, ..Held::of(task) };
        let case = Case { service_rate_per_s: rate, primary, devices, ..held.case() };
        let findings = lint(&case);
        prop_assert_eq!(&findings, &lint(&case));
        for finding in &findings {
            prop_assert!(ids::ALL.contains(&finding.rule.as_str()));
            prop_assert!(!finding.message.is_empty() && !finding.fix.is_empty());
            prop_assert!(finding.severity >= rule(&finding.rule).unwrap().severity, "never worse than its rule says");
        }
        let recipes = crate::recipe::needed(&case, &crate::recipe::Pins::default());
        prop_assert_eq!(&recipes, &crate::recipe::needed(&case, &crate::recipe::Pins::default()));
    }
}
