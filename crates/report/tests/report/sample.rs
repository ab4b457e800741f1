//! Hand-made judgements: every verdict, hostile text, and odd shapes.

#[path = "lost.rs"]
mod lost;
#[path = "planned.rs"]
mod planned;

use std::collections::BTreeMap;

use isobench_schema::check::{Check, CheckUnit};
use isobench_schema::comparability::{KeyDifference, KeyField};
use isobench_schema::confirmation::Confirmation;
use isobench_schema::deviation::{Deviation, DeviationKind};
use isobench_schema::failure::{EvidenceLine, Failure, FailureClass, FailureStage};
use isobench_schema::ids::{ArmId, Digest, RunId, TaskId};
use isobench_schema::measurement::{Direction, MetricName};
use isobench_schema::plan::{Exclusion, ExclusionReason, Problem};
use isobench_schema::units::Millis;
use isobench_schema::verdict::{
    ArmJudgement, BlockCounts, BlockDifference, BlockValue, CheckEffect, Contrast, CountedFailure, Judgement,
    LaunchCheck, Standing, TaskJudgement, Unlike, Verdict,
};

pub(crate) use planned::plan;

/// Text that tries to be markup in every format.
pub(crate) const HOSTILE: &str = "<script>alert('x')</script> & \"q\" | `tick` \u{1b}[31mred\u{7} \u{202e}drowssap שלום ]]> --> @all #1 https://x.invalid";

pub(crate) fn arm(name: &str) -> ArmId {
    name.parse().unwrap()
}

/// A spread that looks random and is the same everywhere: between -1 and 1.
fn wobble(place: u32, salt: u32) -> f64 {
    let mixed = (place.wrapping_mul(2_654_435_761) ^ salt.wrapping_mul(40_503)).wrapping_mul(2_246_822_519);
    f64::from(mixed >> 8) / f64::from(1u32 << 23) - 1.0
}

/// A contrast with numbers around `ratio`.
pub(crate) fn contrast(of: &str, against: &str, verdict: Verdict, ratio: f64) -> Contrast {
    let estimate = ratio.ln();
    let salt = u32::try_from(of.len()).unwrap();
    let differences: Vec<BlockDifference> =
        (0..6).map(|block| BlockDifference { block, log_ratio: estimate + 0.02 * wobble(block, salt) }).collect();
    Contrast {
        estimate: Some(estimate),
        low: Some(estimate - 0.015),
        high: Some(estimate + 0.015),
        p: Some(if estimate.abs() > 0.015 { 0.000_04 } else { 0.41 }),
        blocks: 6,
        speedup: Some(ratio),
        sign_flip_p: Some(0.031_25),
        hodges_lehmann: Some(estimate),
        mde: Some(0.021),
        differences,
        ..absent(of, against, verdict, said(verdict))
    }
}

/// A sentence for a verdict that has numbers.
fn said(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "significantly faster, by at least the margin of 2 %",
        Verdict::Worse => "significantly slower, by at least the margin of 2 %",
        Verdict::Trivial => "faster, but by less than the margin of 2 %",
        Verdict::Equivalent => "no difference as large as the margin of 2 %",
        Verdict::Inconclusive => "not enough evidence for a margin of 2 %; about 22 blocks would decide",
        Verdict::NothingToBeat => "the human commit is equivalent to the baseline",
        Verdict::AgentFailed | Verdict::Invalid | Verdict::NotMeasured | Verdict::NotRun => "no numbers",
    }
}

/// A contrast without numbers.
pub(crate) fn absent(of: &str, against: &str, verdict: Verdict, reason: &str) -> Contrast {
    Contrast {
        of: arm(of),
        against: arm(against),
        metric: MetricName::OutputThroughput,
        verdict,
        estimate: None,
        low: None,
        high: None,
        p: None,
        blocks: 0,
        reason: reason.to_owned(),
        charged_to: None,
        speedup: None,
        sign_flip_p: None,
        hodges_lehmann: None,
        equivalence_low: None,
        equivalence_high: None,
        mde: None,
        blocks_needed: None,
        looks: Vec::new(),
        look: None,
        differences: Vec::new(),
    }
}

/// An arm whose values lie around `mean`.
pub(crate) fn measured(name: &str, mean: f64) -> ArmJudgement {
    let salt = u32::try_from(name.len()).unwrap() + 17;
    let value =
        |block: u32| BlockValue { block, position: block % 3, value: mean * (1.0 + 0.03 * wobble(block, salt)) };
    ArmJudgement {
        arm: arm(name),
        launches: 6,
        valid: 6,
        values: (0..6).map(value).collect(),
        means: BTreeMap::from([
            (MetricName::OutputThroughput, mean),
            (MetricName::MeanTtftMs, 12_000.0 / mean),
            (MetricName::P90E2elMs, 90_000.0 / mean),
        ]),
        failures: Vec::new(),
        incidents: Vec::new(),
    }
}

/// An arm of which no launch counts.
pub(crate) fn failed(name: &str, failure: Failure) -> ArmJudgement {
    let cause = (failure.class == FailureClass::NeverReady).then(lost::cause);
    ArmJudgement {
        launches: 6,
        valid: 0,
        values: Vec::new(),
        means: BTreeMap::new(),
        failures: vec![CountedFailure { launches: 6, failure, cause }],
        ..measured(name, 1.0)
    }
}

pub(crate) fn task(id: &str, contrasts: Vec<Contrast>, arms: Vec<ArmJudgement>) -> TaskJudgement {
    TaskJudgement {
        id: TaskId::new(id).unwrap(),
        title: None,
        standing: Standing::Rankable,
        metric: MetricName::OutputThroughput,
        direction: Direction::Higher,
        margin: 0.02,
        blocks: BlockCounts { planned: 6, complete: 6, interrupted: 0, spoilt: 0 },
        contrasts,
        arms,
        deviations: Vec::new(),
        sentinel: None,
        spread: None,
        unlike: Vec::new(),
        broken: Vec::new(),
        confirmations: Vec::new(),
    }
}

pub(crate) fn judgement_of(tasks: Vec<TaskJudgement>) -> Judgement {
    Judgement {
        run: RunId::new("sample").unwrap(),
        plan: Digest::of(b"plan"),
        rules: "isobench/1".to_owned(),
        tasks,
        exclusions: Vec::new(),
        problems: Vec::new(),
        coverage: Some(lost::coverage()),
        suite: None,
    }
}

fn crash() -> Failure {
    Failure::new(FailureStage::Start, FailureClass::StartCrashed, "the engine ended with exit status 1 after 0.4 s")
        .with_evidence([
            EvidenceLine::new("server.stderr", Some(41), "RuntimeError: kernel `fused|softmax` <not> found"),
            EvidenceLine::new("server.stderr", Some(38), "  File \"engine/scheduler.py\", line 112, in step"),
        ])
}

fn short() -> Failure {
    Failure::new(FailureStage::Validity, FailureClass::OutputLength, "32 of 32 answers have 40 tokens instead of 64")
        .breaking(Check::AnswerLengths.above(32.0, 0.0, CheckUnit::Count))
        .with_evidence([EvidenceLine::new("requests.jsonl", Some(2), "\"output_tokens\":40,\"asked\":64")])
}

/// Two launches of the short agent, and one that a person has confirmed.
fn broken_checks() -> Vec<LaunchCheck> {
    let lengths = Check::AnswerLengths.above(32.0, 0.0, CheckUnit::Count);
    let ratio = Check::BelievableRatio.above(12.3, 10.0, CheckUnit::Times);
    let check = |block, name: &str, class, check, effect| {
        let message = "what was found".to_owned();
        LaunchCheck { block, arm: arm(name), class, check, message, effect }
    };
    vec![
        check(0, "agent:short", FailureClass::OutputLength, lengths, CheckEffect::Decides),
        check(1, "agent:short", FailureClass::OutputLength, lengths, CheckEffect::Decides),
        check(1, "agent:half", FailureClass::Implausible, ratio, CheckEffect::Confirmed),
    ]
}

/// A person's word on an arm.
pub(crate) fn confirmation(task: &TaskId, arm: ArmId, reason: &str) -> Confirmation {
    Confirmation {
        task: task.clone(),
        arm,
        checks: vec![Check::BelievableRatio],
        by: "ann".to_owned(),
        reason: reason.to_owned(),
        at_ms: Millis::new(1_764_000_000_000.0).unwrap(),
    }
}

fn every_agent_task() -> TaskJudgement {
    let mut invalid =
        absent("agent:short", "baseline", Verdict::Invalid, "answers of agent:short are shorter than asked");
    invalid.charged_to = Some(arm("agent:short"));
    let mut inconclusive = contrast("agent:half", "human", Verdict::Inconclusive, 0.988);
    (inconclusive.low, inconclusive.high) = (Some(-0.041), Some(0.018));
    inconclusive.blocks_needed = Some(22);
    let mut trivial = contrast("agent:tiny", "baseline", Verdict::Trivial, 1.011);
    (trivial.low, trivial.high, trivial.p) = (Some(0.003), Some(0.019), Some(0.012));
    let crash_reason = "agent:crash failed in 6 of 6 blocks where the baseline ran: start-crashed";
    let contrasts = vec![
        contrast("human", "baseline", Verdict::Better, 1.162),
        contrast("agent:half", "baseline", Verdict::Better, 1.147),
        inconclusive,
        contrast("agent:slow", "baseline", Verdict::Worse, 0.905),
        trivial,
        contrast("agent:no-op", "baseline", Verdict::Equivalent, 1.002),
        absent("agent:crash", "baseline", Verdict::AgentFailed, crash_reason),
        invalid,
        absent("agent:later", "baseline", Verdict::NotRun, "no patch was given for agent:later"),
    ];
    let mut slow = measured("agent:slow", 181.0);
    let forced =
        Failure::new(FailureStage::Workload, FailureClass::StopForced, "process 4242 ignored SIGTERM for 10 s");
    slow.incidents = vec![CountedFailure { launches: 2, failure: forced, cause: None }];
    let mut half = measured("agent:half", 229.4);
    half.values.truncate(5);
    half.valid = 5;
    let died = Failure::new(FailureStage::Workload, FailureClass::ServerDied, "the engine died of signal 9 in block 5");
    half.failures = vec![CountedFailure { launches: 1, failure: died.transient(), cause: None }];
    let arms = vec![
        measured("baseline", 200.0),
        measured("human", 232.4),
        half,
        slow,
        measured("agent:tiny", 202.2),
        measured("agent:no-op", 200.4),
        failed("agent:crash", crash()),
        failed("agent:short", short()),
    ];
    let mut task = task("chunked-prefill", contrasts, arms);
    task.title = Some("Schedule chunked prefills together with decodes".to_owned());
    task.blocks.interrupted = 1;
    task.broken = broken_checks();
    task.confirmations = vec![confirmation(&task.id, arm("agent:half"), "it caches prefixes, as the task allows")];
    task.deviations = vec![Deviation {
        kind: DeviationKind::MinWindow,
        subject: "design.min-window".to_owned(),
        asked: "30 s".to_owned(),
        run: "1.5 s".to_owned(),
        reason: "the demo must end within minutes".to_owned(),
    }];
    task
}

/// A judgement with every verdict and every standing.
pub(crate) fn every_verdict() -> Judgement {
    let mut nothing = task(
        "cache-keys",
        vec![
            contrast("human", "baseline", Verdict::NothingToBeat, 1.001),
            contrast("agent:half", "baseline", Verdict::Equivalent, 0.999),
        ],
        vec![measured("baseline", 88.0), measured("human", 88.1), measured("agent:half", 87.9)],
    );
    nothing.standing = Standing::NothingToBeat;
    let oom = Failure::new(FailureStage::Ready, FailureClass::NeverReady, "no answer on /health within 120 s");
    let mut unmeasured = task(
        "moe-kernel",
        vec![
            absent("human", "baseline", Verdict::NotMeasured, "the baseline was never ready"),
            absent("agent:half", "baseline", Verdict::NotMeasured, "the baseline was never ready"),
        ],
        vec![failed("baseline", oom.clone()), failed("human", oom)],
    );
    unmeasured.standing = Standing::NotMeasured;
    let value = |text: &str| Some(text.to_owned());
    let host = KeyDifference { field: KeyField::Host, left: value("91ab"), right: value("c0ff") };
    let human = arm("human");
    unmeasured.unlike =
        vec![Unlike { block: 3, of: human.clone(), against_block: 0, against: human, differences: vec![host] }];
    let mut unproven = task(
        "sampler",
        vec![contrast("human", "baseline", Verdict::Inconclusive, 1.018)],
        vec![measured("baseline", 5123.0)],
    );
    unproven.standing = Standing::HumanGainUnproven;
    let mut alone = task("one-arm", Vec::new(), vec![measured("baseline", 0.0123)]);
    alone.standing = Standing::NotAsked;
    let mut judgement = judgement_of(vec![every_agent_task(), nothing, unmeasured, unproven, alone]);
    judgement.exclusions = vec![Exclusion {
        task: TaskId::new("eight-gpus").unwrap(),
        arm: None,
        reason: ExclusionReason::MachineTooSmall,
        message: "it needs 8 devices and this machine has none".to_owned(),
    }];
    judgement.problems = vec![Problem {
        file: "tasks/broken/task.toml".to_owned(),
        line: Some(7),
        column: None,
        message: "unknown key `margn`".to_owned(),
    }];
    judgement
}

/// A judgement in which every free text is hostile.
pub(crate) fn hostile() -> Judgement {
    let set = |text: &mut String| HOSTILE.clone_into(text);
    let mut judgement = every_verdict();
    set(&mut judgement.rules);
    for task in &mut judgement.tasks {
        task.title = Some(HOSTILE.to_owned());
        let hostile = || Some(HOSTILE.to_owned());
        let differences = vec![KeyDifference { field: KeyField::Host, left: hostile(), right: hostile() }];
        let (of, against) = (arm("human"), arm("baseline"));
        task.unlike = vec![Unlike { block: 0, of: of.clone(), against_block: 0, against, differences }];
        task.confirmations = vec![confirmation(&task.id, of, HOSTILE)];
        for contrast in &mut task.contrasts {
            set(&mut contrast.reason);
        }
        for deviation in &mut task.deviations {
            set(&mut deviation.subject);
            set(&mut deviation.asked);
            set(&mut deviation.run);
            set(&mut deviation.reason);
        }
        for counted in task.arms.iter_mut().flat_map(|arm| arm.failures.iter_mut().chain(&mut arm.incidents)) {
            set(&mut counted.failure.message);
            counted.failure.evidence =
                vec![EvidenceLine { file: HOSTILE.to_owned(), line: Some(1), text: HOSTILE.to_owned() }];
        }
    }
    for exclusion in &mut judgement.exclusions {
        set(&mut exclusion.message);
    }
    for problem in &mut judgement.problems {
        set(&mut problem.file);
        set(&mut problem.message);
    }
    judgement
}

/// Judgements of odd shapes, by name.
pub(crate) fn odd() -> Vec<(&'static str, Judgement)> {
    let mut one_block = task("t", vec![contrast("human", "baseline", Verdict::Inconclusive, 1.5)], Vec::new());
    one_block.arms = vec![measured("baseline", 3.0), measured("human", 4.5)];
    one_block.arms.iter_mut().for_each(|arm| arm.values.truncate(1));
    one_block.contrasts[0].differences.truncate(1);
    let huge_values = [f64::MAX, f64::MIN_POSITIVE, f64::INFINITY, f64::NAN, 0.0, -1e300];
    let mut huge = task("t", vec![contrast("human", "baseline", Verdict::Better, 1e200)], Vec::new());
    huge.margin = 1e6;
    huge.contrasts[0].high = Some(f64::INFINITY);
    huge.contrasts[0].low = Some(-800.0);
    huge.arms = vec![measured("baseline", f64::MAX), measured("human", 1e-300)];
    for (value, odd) in huge.arms[0].values.iter_mut().zip(huge_values) {
        value.value = odd;
    }
    huge.arms[1].values[0].block = u32::MAX;
    huge.blocks = BlockCounts { planned: u32::MAX, complete: u32::MAX, interrupted: u32::MAX, spoilt: u32::MAX };
    let all_failed = task("t", Vec::new(), vec![failed("baseline", crash()), failed("human", short())]);
    let names: Vec<String> = (0..58).map(|place| format!("agent:{}{place}", "very-long-name".repeat(6))).collect();
    let mut many = task("t", vec![contrast("human", "baseline", Verdict::Better, 1.3)], Vec::new());
    many.id = TaskId::new("x".repeat(100)).unwrap();
    many.contrasts.extend(names.iter().map(|name| contrast(name, "baseline", Verdict::Better, 1.1)));
    many.arms = vec![measured("baseline", 100.0), measured("human", 130.0)];
    many.arms.extend(names.iter().map(|name| measured(name, 110.0)));
    vec![
        ("nothing", judgement_of(Vec::new())),
        ("no data", judgement_of(vec![task("t", Vec::new(), Vec::new())])),
        ("one block", judgement_of(vec![one_block])),
        ("all failed", judgement_of(vec![all_failed])),
        ("huge values", judgement_of(vec![huge])),
        ("sixty arms with long names", judgement_of(vec![many])),
    ]
}
