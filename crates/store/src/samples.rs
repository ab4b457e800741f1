//! Plans, events and blocks for this crate's tests.

use std::collections::BTreeMap;

use isobench_schema::block::{BlockComplete, BlockLaunch, BlockSpec};
use isobench_schema::comparability::ComparabilityKey;
use isobench_schema::environment::{EngineKind, EnvironmentSpec, Isolation, Python, Rung, Source};
use isobench_schema::event::{BlockEnd, EventKind};
use isobench_schema::facts::Facts;
use isobench_schema::format;
use isobench_schema::ids::{ArmId, BlockId, CommitId, Digest, LaunchId, RunId, TaskId};
use isobench_schema::input::TaskInputs;
use isobench_schema::measurement::{Direction, MetricName};
use isobench_schema::order;
use isobench_schema::outcome::{Artifact, LaunchRecord, Outcome, Timeline};
use isobench_schema::plan::{Design, Look, Plan, PlannedArm, PlannedTask, Spending};
use isobench_schema::task::{Limits, MetricSpec, Requirements, ServerSpec};
use isobench_schema::units::Seconds;
use isobench_schema::workload::{Api, Arrival, Probes, Prompts, TokenCounter, Workload, WorkloadKind};

pub(crate) fn run_id() -> RunId {
    RunId::new("run").unwrap()
}

pub(crate) fn facts() -> Facts {
    Facts::default()
}

/// Returns arms in the order in which the plan's first block launches them.
pub(crate) fn arms() -> Vec<ArmId> {
    ["baseline", "human", "agent:a"].iter().map(|arm| arm.parse().unwrap()).collect()
}

/// Returns a plan of one task with three arms and six blocks.
pub(crate) fn plan() -> Plan {
    let seed = (0..1000).find(|&seed| order::orders(3, 6, seed)[0] == [0, 1, 2]).unwrap();
    let id = environment().id().unwrap();
    let look = Look { blocks: 6, level: 0.05, equivalence_level: 0.05 };
    let task = PlannedTask {
        id: TaskId::new("task").unwrap(),
        title: None,
        engine: EngineKind::Generic,
        arms: arms().into_iter().map(|arm| PlannedArm { arm, environment: id.clone() }).collect(),
        not_run: Vec::new(),
        environments: [(id, environment())].into(),
        contrasts: Vec::new(),
        server: server(),
        workload: workload(),
        metric: metric(),
        design: Design {
            algorithm: order::ALGORITHM,
            seed,
            looks: vec![look],
            min_window_s: seconds(0.1),
            replacements: 2,
            spending: Spending::Even,
            futility: None,
            sentinel: None,
        },
        limits: limits(),
        requirements: Requirements::default(),
        deviations: Vec::new(),
        inputs: BTreeMap::new(),
        sources: TaskInputs::default(),
        fetched: Vec::new(),
        images: Vec::new(),
        recipes: Vec::new(),
        estimate_s: seconds(1.0 / 3.0),
        forecast: None,
    };
    Plan {
        planner: "isobench 0".to_owned(),
        dataset: "sample".to_owned(),
        facts: Digest::of(format::to_pretty(&facts()).unwrap().as_bytes()),
        seed: 1,
        isolation: Isolation::None,
        container: None,
        allow_unisolated: true,
        tasks: vec![task],
        exclusions: Vec::new(),
        problems: Vec::new(),
        assessments: Vec::new(),
        planned_for: None,
    }
}

pub(crate) fn block_id(block: u32, attempt: u32) -> BlockId {
    BlockId { task: TaskId::new("task").unwrap(), block, attempt }
}

fn order_of(block: u32) -> Vec<ArmId> {
    let plan = plan();
    Plan::blocks(&plan.tasks[0]).unwrap()[block as usize].order.clone()
}

pub(crate) fn run_started() -> EventKind {
    let plan = plan().digest().unwrap();
    EventKind::RunStarted { run: run_id(), plan, isobench: "0".to_owned(), process: 1 }
}

pub(crate) fn block_started(block: u32, attempt: u32) -> EventKind {
    EventKind::BlockStarted { id: block_id(block, attempt), order: order_of(block) }
}

pub(crate) fn block_ended(block: u32, attempt: u32) -> EventKind {
    block_complete(block, attempt, &[]).into()
}

/// Returns the end of a block each of whose launches has the evidence.
pub(crate) fn block_complete(block: u32, attempt: u32, evidence: &[(&str, Artifact)]) -> BlockComplete {
    let id = block_id(block, attempt);
    let evidence: BTreeMap<String, Artifact> =
        evidence.iter().map(|(name, artifact)| ((*name).to_owned(), artifact.clone())).collect();
    let record = |(position, arm)| LaunchRecord {
        launch: LaunchId { block: id.clone(), arm },
        position,
        environment: environment().id().unwrap(),
        outcome: Outcome::Measured,
        incidents: Vec::new(),
        evidence: evidence.clone(),
        timeline: Timeline::default(),
        client: None,
        device: None,
        key: ComparabilityKey::default(),
    };
    let launches = (0..).zip(order_of(block)).map(record).collect();
    BlockComplete { id, end: BlockEnd::Complete, launches, charged: BTreeMap::new() }
}

pub(crate) fn block_spec(block: u32, attempt: u32) -> BlockSpec {
    let launch = |arm| BlockLaunch { arm, environment: environment(), settled: None };
    BlockSpec {
        run: run_id().to_string(),
        id: block_id(block, attempt),
        launches: order_of(block).into_iter().map(launch).collect(),
        engine: EngineKind::Generic,
        server: server(),
        workload: workload(),
        prompt_seed: 1,
        metric: metric(),
        min_window_s: seconds(0.1),
        limits: limits(),
        inputs: BTreeMap::new(),
        sources: TaskInputs::default(),
        fetched: Vec::new(),
        images: Vec::new(),
        recipes: Vec::new(),
        isolation: Isolation::None,
        container: None,
        allow_unisolated: true,
    }
}

/// Returns bytes that hardly compress: a xorshift sequence.
pub(crate) fn noise(size: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[0]
    };
    std::iter::repeat_with(next).take(size).collect()
}

fn seconds(value: f64) -> Seconds {
    Seconds::new(value).unwrap()
}

fn environment() -> EnvironmentSpec {
    let commit = CommitId::new("0".repeat(40)).unwrap();
    EnvironmentSpec {
        engine: EngineKind::Generic,
        rung: Rung::Source,
        source: Source { repository: "/repository".to_owned(), commit, patch: None, allow_binary_patch: false },
        python: Python::Absent,
        overlay: None,
        native: None,
        toolkit: None,
        build: Vec::new(),
        build_environment: BTreeMap::new(),
        python_path: Vec::new(),
        modules: Vec::new(),
    }
}

fn server() -> ServerSpec {
    ServerSpec {
        command: vec!["engine".to_owned()],
        options: BTreeMap::new(),
        environment: BTreeMap::new(),
        pass_environment: Vec::new(),
        health: "/health".to_owned(),
        model: "model".to_owned(),
        served_model_name: "model".to_owned(),
        allow_network: false,
    }
}

fn workload() -> Workload {
    Workload {
        kind: WorkloadKind::Serving,
        api: Api::Completions,
        requests: 4,
        prompts: Prompts::Words { input_tokens: 8 },
        output_tokens: 8,
        ignore_eos: true,
        temperature: 0.0,
        arrival: Arrival::closed(2),
        max_in_flight: None,
        warm_up_requests: 1,
        probes: Probes { count: 1, output_tokens: 8 },
        counter: TokenCounter::Whitespace,
        extra_body: BTreeMap::new(),
        script: None,
    }
}

fn metric() -> MetricSpec {
    MetricSpec {
        primary: MetricName::OutputThroughput,
        direction: Direction::Higher,
        margin: 0.02,
        guards: Vec::new(),
        output_margin: 0.0,
        believable_ratio: None,
        ceiling: None,
    }
}

fn limits() -> Limits {
    Limits {
        build_s: seconds(1.0),
        ready_s: seconds(1.0),
        request_s: seconds(1.0),
        stall_s: seconds(1.0),
        workload_s: seconds(1.0),
        stop_s: seconds(1.0),
        log_bytes: 1000,
        failed_requests: 0,
    }
}
