//! A plan made up for the pages.

use std::collections::BTreeMap;

use isobench_schema::environment::{EngineKind, EnvironmentSpec, Isolation, Patch, Python, Rung, Source};
use isobench_schema::ids::{CommitId, Digest, TaskId};
use isobench_schema::input::TaskInputs;
use isobench_schema::measurement::{Direction, MetricName};
use isobench_schema::plan::{Design, Look, Plan, PlannedArm, PlannedContrast, PlannedTask, Spending};
use isobench_schema::task::{Limits, MetricSpec, Requirements, ServerSpec};
use isobench_schema::units::Seconds;
use isobench_schema::workload::{Api, Arrival, Probes, Prompts, TokenCounter, Workload, WorkloadKind};

use super::{arm, every_verdict};

fn seconds(value: f64) -> Seconds {
    Seconds::new(value).unwrap()
}

fn environment(patch: Option<Patch>) -> EnvironmentSpec {
    let commit = CommitId::new("0123456789abcdef0123456789abcdef01234567").unwrap();
    EnvironmentSpec {
        engine: EngineKind::Generic,
        rung: Rung::Source,
        source: Source { repository: "/srv/engine".to_owned(), commit, patch, allow_binary_patch: false },
        python: Python::System,
        overlay: None,
        native: None,
        toolkit: None,
        build: Vec::new(),
        build_environment: BTreeMap::new(),
        python_path: vec![".".to_owned()],
        modules: Vec::new(),
    }
}

fn workload() -> Workload {
    Workload {
        kind: WorkloadKind::Serving,
        api: Api::Completions,
        requests: 32,
        prompts: Prompts::Words { input_tokens: 48 },
        output_tokens: 64,
        ignore_eos: true,
        temperature: 0.0,
        arrival: Arrival::closed(4),
        max_in_flight: None,
        warm_up_requests: 4,
        probes: Probes { count: 2, output_tokens: 16 },
        counter: TokenCounter::Whitespace,
        extra_body: BTreeMap::new(),
        script: None,
    }
}

/// A plan of one task with three arms, one exclusion and one problem.
pub(crate) fn plan() -> Plan {
    let patch = Patch::new("patches/half.patch", b"--- a/x\n+++ b/x\n".to_vec());
    let specs = [environment(None), environment(Some(patch))];
    let ids = specs.each_ref().map(|spec| spec.id().unwrap());
    let planned = |name: &str, place: usize| PlannedArm { arm: arm(name), environment: ids[place].clone() };
    let judged = every_verdict();
    let task = PlannedTask {
        id: TaskId::new("chunked-prefill").unwrap(),
        title: judged.tasks[0].title.clone(),
        engine: EngineKind::Generic,
        arms: vec![planned("baseline", 0), planned("human", 0), planned("agent:half", 1)],
        not_run: vec![arm("agent:later")],
        environments: ids.iter().cloned().zip(specs).collect(),
        contrasts: vec![PlannedContrast { of: arm("human"), against: arm("baseline") }],
        server: ServerSpec {
            command: Vec::new(),
            options: BTreeMap::new(),
            environment: BTreeMap::new(),
            pass_environment: Vec::new(),
            health: "/health".to_owned(),
            model: "tiny".to_owned(),
            served_model_name: "tiny".to_owned(),
            allow_network: false,
        },
        workload: workload(),
        metric: MetricSpec {
            primary: MetricName::OutputThroughput,
            direction: Direction::Higher,
            margin: 0.02,
            guards: Vec::new(),
            output_margin: 0.05,
            believable_ratio: None,
            ceiling: None,
        },
        design: Design {
            algorithm: 1,
            seed: 7,
            looks: vec![Look { blocks: 18, level: 0.05, equivalence_level: 0.05 }],
            min_window_s: seconds(1.5),
            replacements: 2,
            spending: Spending::Even,
            futility: None,
            sentinel: None,
        },
        limits: Limits {
            build_s: seconds(600.0),
            ready_s: seconds(120.0),
            request_s: seconds(60.0),
            stall_s: seconds(20.0),
            workload_s: seconds(300.0),
            stop_s: seconds(10.0),
            log_bytes: 1 << 20,
            failed_requests: 0,
        },
        requirements: Requirements::default(),
        deviations: judged.tasks[0].deviations.clone(),
        inputs: BTreeMap::new(),
        sources: TaskInputs::default(),
        fetched: Vec::new(),
        images: Vec::new(),
        recipes: Vec::new(),
        estimate_s: seconds(540.0),
        forecast: None,
    };
    Plan {
        planner: "isobench 0.1.0".to_owned(),
        dataset: "sample".to_owned(),
        facts: Digest::of(b"facts"),
        seed: 1,
        isolation: Isolation::None,
        container: None,
        allow_unisolated: true,
        tasks: vec![task],
        exclusions: judged.exclusions,
        problems: judged.problems,
        assessments: Vec::new(),
        planned_for: None,
    }
}
