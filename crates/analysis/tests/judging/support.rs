//! Plans and launches made up for tests and for the benchmark.

#![allow(dead_code, reason = "each test uses a part of it")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "made-up values are right")]

use std::collections::BTreeMap;

use isobench_analysis::block;
use isobench_analysis::judge::{Attempt, JudgeError, JudgeInput, judge};
use isobench_analysis::launch::LaunchInput;
use isobench_analysis::measure::{Answer, AnswerDigests, LaunchDigest, Tokens};
use isobench_schema::block::BlockSpec;
use isobench_schema::comparability::{ComparabilityKey, KeyField};
use isobench_schema::confirmation::Confirmations;
use isobench_schema::environment::{EngineKind, Isolation};
use isobench_schema::failure::{Failure, FailureClass, FailureStage};
use isobench_schema::ids::{ArmId, BlockId, Digest, LaunchId, RunId, TaskId};
use isobench_schema::input::TaskInputs;
use isobench_schema::measurement::{DEFINITION, Measurement, MetricName, RequestCounts};
use isobench_schema::order;
use isobench_schema::outcome::{LaunchRecord, Outcome, Timeline};
use isobench_schema::plan::{Design, Look, Plan, PlannedArm, PlannedContrast, PlannedTask, Spending};
use isobench_schema::task::{Limits, MetricSpec, Requirements, ServerSpec};
use isobench_schema::units::Seconds;
use isobench_schema::verdict::{Contrast, Judgement};
use isobench_schema::workload::{Api, Arrival, Probes, Prompts, TokenCounter, Workload, WorkloadKind};

/// The baseline's primary metric.
pub(crate) const BASE: f64 = 100.0;

pub(crate) fn arm(name: &str) -> ArmId {
    name.parse().unwrap()
}

/// Returns a task of these arms with one look after `blocks` blocks; throughput decides, by 2 %.
pub(crate) fn task(name: &str, arms: &[&str], blocks: u32) -> PlannedTask {
    let arms: Vec<ArmId> = arms.iter().map(|name| arm(name)).collect();
    let mut contrasts = Vec::new();
    for of in arms.iter().filter(|of| **of != ArmId::Baseline) {
        contrasts.push(PlannedContrast { of: of.clone(), against: ArmId::Baseline });
        if matches!(of, ArmId::Agent(_)) && arms.contains(&ArmId::Human) {
            contrasts.push(PlannedContrast { of: of.clone(), against: ArmId::Human });
        }
    }
    let arms =
        arms.into_iter().map(|arm| PlannedArm { environment: Digest::of(arm.to_string().as_bytes()).into(), arm });
    PlannedTask {
        id: TaskId::new(name).unwrap(),
        title: None,
        engine: EngineKind::Generic,
        arms: arms.collect(),
        not_run: Vec::new(),
        environments: BTreeMap::new(),
        contrasts,
        server: server(),
        workload: workload(),
        metric: MetricSpec {
            primary: MetricName::OutputThroughput,
            direction: MetricName::OutputThroughput.direction(),
            margin: 0.02,
            guards: Vec::new(),
            output_margin: 0.05,
            believable_ratio: None,
            ceiling: None,
        },
        design: Design {
            algorithm: order::ALGORITHM,
            seed: 1,
            looks: vec![look(blocks)],
            min_window_s: seconds(1.0),
            replacements: 2,
            spending: Spending::Even,
            futility: None,
            sentinel: None,
        },
        limits: Limits {
            build_s: seconds(60.0),
            ready_s: seconds(60.0),
            request_s: seconds(60.0),
            stall_s: seconds(60.0),
            workload_s: seconds(60.0),
            stop_s: seconds(10.0),
            log_bytes: 1 << 20,
            failed_requests: 0,
        },
        requirements: Requirements::default(),
        deviations: Vec::new(),
        inputs: BTreeMap::new(),
        sources: TaskInputs::default(),
        fetched: Vec::new(),
        images: Vec::new(),
        recipes: Vec::new(),
        estimate_s: seconds(1.0),
        forecast: None,
    }
}

pub(crate) fn look(blocks: u32) -> Look {
    Look { blocks, level: 0.05, equivalence_level: 0.05 }
}

fn seconds(value: f64) -> Seconds {
    Seconds::new(value).unwrap()
}

fn server() -> ServerSpec {
    ServerSpec {
        command: Vec::new(),
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
        requests: 100,
        prompts: Prompts::Words { input_tokens: 8 },
        output_tokens: 4,
        ignore_eos: true,
        temperature: 0.0,
        arrival: Arrival::closed(4),
        max_in_flight: None,
        warm_up_requests: 4,
        probes: Probes { count: 2, output_tokens: 4 },
        counter: TokenCounter::Whitespace,
        extra_body: BTreeMap::new(),
        script: None,
    }
}

pub(crate) fn plan(tasks: Vec<PlannedTask>) -> Plan {
    Plan {
        planner: "isobench 0.1.0".to_owned(),
        dataset: "made up".to_owned(),
        facts: Digest::of(b"facts"),
        seed: 1,
        isolation: Isolation::None,
        container: None,
        allow_unisolated: true,
        tasks,
        exclusions: Vec::new(),
        problems: Vec::new(),
        assessments: Vec::new(),
        planned_for: None,
    }
}

/// Returns the answers to requests 0, 1, ..
pub(crate) fn answers(texts: &[&str]) -> Vec<Answer> {
    let answer = |(index, text): (u32, &&str)| Answer {
        index,
        line: u64::from(index) + 2,
        tokens: text.split(' ').count(),
        kept: Tokens::Words((*text).to_owned()),
        whole: None,
    };
    (0..).zip(texts).map(answer).collect()
}

/// Returns the digests of a window of 100 answers, so many of which, from the last on, aren't the usual ones.
pub(crate) fn window(wrong: u64) -> AnswerDigests {
    (0..100_u64).map(|index| Some(if index + wrong >= 100 { 1000 + index } else { index })).collect()
}

/// Returns a launch that was measured with this primary metric, in a task's attempt at a block.
pub(crate) fn measured(task: &PlannedTask, id: &BlockId, arm: &ArmId, value: f64) -> LaunchInput {
    let launch = LaunchId { block: id.clone(), arm: arm.clone() };
    let place = task.arms.iter().position(|planned| planned.arm == *arm).unwrap();
    let key = [(KeyField::Host, "h".to_owned()), (KeyField::Seed, id.block.to_string())];
    let record = LaunchRecord {
        launch: launch.clone(),
        position: u32::try_from(place).unwrap(),
        environment: task.arms[place].environment.clone(),
        outcome: Outcome::Measured,
        incidents: Vec::new(),
        evidence: BTreeMap::new(),
        timeline: Timeline::default(),
        client: None,
        device: None,
        key: ComparabilityKey(key.into()),
    };
    let values = [(task.metric.primary, value), (MetricName::MeanTtftMs, 1e3 / value)];
    let measurement = Measurement {
        launch,
        definition: DEFINITION.to_owned(),
        values: values.into(),
        too_few: Vec::new(),
        requests: RequestCounts { asked: 100, completed: 100, failed: 0 },
        input_tokens: 800,
        output_tokens: 400,
        window_s: 4.0,
    };
    let probes = answers(&["one two three four", "five six seven eight"]);
    let digest = LaunchDigest {
        measurement,
        client: "isobench 0.1.0".to_owned(),
        seed: u64::from(id.block),
        workload: Digest::of(&id.block.to_le_bytes()),
        probes_before: probes.clone(),
        probes_after: probes,
        answers: answers(&["red green blue", "black white grey"]),
        answer_digests: window(0),
        audits: Vec::new(),
        findings: Vec::new(),
    };
    LaunchInput { record, digest: Some(digest), cause: None }
}

/// Turns a launch into one that failed.
pub(crate) fn failed(mut launch: LaunchInput, class: FailureClass) -> LaunchInput {
    let failure = Failure::new(FailureStage::Start, class, format!("{class} seen"));
    launch.record.outcome = Outcome::Failed { failure };
    launch.digest = None;
    launch
}

/// Turns a launch into one that breaks a check.
pub(crate) fn broken(mut launch: LaunchInput, class: FailureClass) -> LaunchInput {
    if let Some(digest) = &mut launch.digest {
        digest.findings.push(Failure::new(FailureStage::Validity, class, format!("{class} seen")));
    }
    launch
}

/// Changes what was read of a launch.
pub(crate) fn with(mut launch: LaunchInput, change: impl Fn(&mut LaunchDigest)) -> LaunchInput {
    launch.digest.as_mut().into_iter().for_each(change);
    launch
}

/// Returns a first attempt at each block of the task, each launch as `make` turns it out of one whose metric is
/// [`BASE`].
pub(crate) fn attempts(
    task: &PlannedTask,
    blocks: u32,
    make: impl Fn(u32, &str, LaunchInput) -> LaunchInput,
) -> Vec<Attempt> {
    (0..blocks).map(|block| attempt(task, block, 1, &make)).collect()
}

/// Returns one attempt at a block, ended by the rules.
pub(crate) fn attempt(
    task: &PlannedTask,
    block: u32,
    number: u32,
    make: &impl Fn(u32, &str, LaunchInput) -> LaunchInput,
) -> Attempt {
    let id = BlockId { task: task.id.clone(), block, attempt: number };
    let launches: Vec<LaunchInput> = task
        .arms
        .iter()
        .map(|planned| make(block, &planned.arm.to_string(), measured(task, &id, &planned.arm, BASE)))
        .collect();
    Attempt { id, end: block::end(&launches, &std::collections::BTreeMap::new()), launches }
}

/// Returns the specification of an attempt as far as the checks at its end need it.
pub(crate) fn spec(task: &PlannedTask, attempt: &Attempt) -> BlockSpec {
    BlockSpec {
        run: "run".to_owned(),
        id: attempt.id.clone(),
        launches: Vec::new(),
        engine: task.engine,
        server: task.server.clone(),
        workload: task.workload.clone(),
        prompt_seed: u64::from(attempt.id.block),
        metric: task.metric.clone(),
        min_window_s: task.design.min_window_s,
        limits: task.limits,
        inputs: task.inputs.clone(),
        sources: TaskInputs::default(),
        fetched: Vec::new(),
        images: Vec::new(),
        recipes: Vec::new(),
        isolation: Isolation::None,
        container: None,
        allow_unisolated: true,
    }
}

/// Multiplies the primary metric.
pub(crate) fn scaled(launch: LaunchInput, factor: f64) -> LaunchInput {
    with(launch, |digest| {
        if let Some(value) = digest.measurement.values.get_mut(&MetricName::OutputThroughput) {
            *value *= factor;
        }
    })
}

/// A small wobble that differs from block to block, around 1.
pub(crate) fn wobble(block: u32, size: f64) -> f64 {
    let steps = [0.3, -0.8, 1.0, -0.4, 0.6, -0.7, 0.2, -0.2];
    1.0 + size * steps[usize::try_from(block).unwrap() % steps.len()]
}

pub(crate) fn judged(plan: &Plan, attempts: &[Attempt]) -> Result<Judgement, JudgeError> {
    confirmed(plan, attempts, &Confirmations::default())
}

/// Judges with what a person has confirmed.
pub(crate) fn confirmed(
    plan: &Plan,
    attempts: &[Attempt],
    confirmations: &Confirmations,
) -> Result<Judgement, JudgeError> {
    judge(&JudgeInput { run: RunId::new("run").unwrap(), plan, attempts, confirmations })
}

/// Judges a plan of one task and returns its judgement.
pub(crate) fn verdicts(task: PlannedTask, attempts: &[Attempt]) -> isobench_schema::verdict::TaskJudgement {
    judged(&plan(vec![task]), attempts).unwrap().tasks.remove(0)
}

pub(crate) fn find<'c>(contrasts: &'c [Contrast], of: &str, against: &str) -> &'c Contrast {
    contrasts.iter().find(|contrast| contrast.of == arm(of) && contrast.against == arm(against)).unwrap()
}
