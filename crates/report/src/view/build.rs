//! From a judgement to its view: the only place where numbers of a report are formatted.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use isobench_schema::assessment::PlannedFor;
use isobench_schema::cause::{Blame, Cause};
use isobench_schema::deviation::Deviation;
use isobench_schema::ids::ArmId;
use isobench_schema::measurement::MetricName;
use isobench_schema::plan::{Exclusion, Plan, PlannedTask, Problem};
use isobench_schema::verdict::{
    ArmJudgement, CheckEffect, Contrast, CountedFailure, Judgement, LookResult, SentinelJudgement, TaskJudgement,
    Verdict,
};
use isobench_schema::workload::{Arrival, Prompts, Workload};

use super::{
    ArmView, CauseView, CheckView, ContrastView, DeviationView, EvidenceView, ExclusionView, FailureKind, FailureView,
    IntervalPlot, LookView, MetricView, Pair, PointView, ProblemView, TaskView, VerdictCount, View,
};
use crate::noise::{self, NoiseRow};
use crate::number::{self, counted};
use crate::text::clean;
use crate::words::{self, StandingWord, VerdictWord};

/// Returns the view of a judgement. The plan, if given, adds what was run; it changes no number.
pub fn view(judgement: &Judgement, plan: Option<&Plan>) -> View {
    View {
        run: judgement.run.to_string(),
        plan: judgement.plan.short().to_owned(),
        rules: clean(&judgement.rules),
        facts: plan.map(plan_facts).unwrap_or_default(),
        counts: counts(&judgement.tasks),
        noise: judgement.tasks.iter().filter_map(NoiseRow::of).collect(),
        tasks: judgement.tasks.iter().map(|task| task_view(task, plan.and_then(|p| p.task(&task.id)))).collect(),
        exclusions: judgement.exclusions.iter().map(exclusion_view).collect(),
        problems: judgement.problems.iter().map(problem_view).collect(),
        suite: super::suite::view(judgement),
        coverage: judgement.coverage.clone().filter(|coverage| coverage.steps.iter().any(|step| !step.lost.is_empty())),
    }
}

fn plan_facts(plan: &Plan) -> Vec<String> {
    vec![
        format!("dataset {}", clean(&plan.dataset)),
        format!("planned by {}", clean(&plan.planner)),
        format!("isolation {}", plan.isolation),
    ]
}

fn pair(of: &ArmId, against: &ArmId) -> Pair {
    match (of, against) {
        (ArmId::Human, ArmId::Baseline) => Pair::HumanAgainstBaseline,
        (ArmId::Agent(_), ArmId::Baseline) => Pair::AgentAgainstBaseline,
        (ArmId::Agent(_), ArmId::Human) => Pair::AgentAgainstHuman,
        (ArmId::Baseline | ArmId::Human | ArmId::Agent(_), _) => Pair::Other,
    }
}

fn counts(tasks: &[TaskJudgement]) -> Vec<VerdictCount> {
    let count = |verdict: Verdict, wanted: Pair| {
        let contrasts = tasks.iter().flat_map(|task| &task.contrasts);
        let found = contrasts.filter(|c| c.verdict == verdict && pair(&c.of, &c.against) == wanted).count();
        u32::try_from(found).unwrap_or(u32::MAX)
    };
    let all = Verdict::ALL.iter().map(|&verdict| VerdictCount {
        verdict: VerdictWord::of(verdict),
        human_against_baseline: count(verdict, Pair::HumanAgainstBaseline),
        agent_against_baseline: count(verdict, Pair::AgentAgainstBaseline),
        agent_against_human: count(verdict, Pair::AgentAgainstHuman),
    });
    all.filter(|c| c.human_against_baseline + c.agent_against_baseline + c.agent_against_human > 0).collect()
}

fn task_view(task: &TaskJudgement, planned: Option<&PlannedTask>) -> TaskView {
    let metrics: BTreeSet<MetricName> = task.arms.iter().flat_map(|arm| arm.means.keys().copied()).collect();
    let axis = block_axis(task);
    let contrasts: Vec<ContrastView> = task.contrasts.iter().map(contrast_view).collect();
    let failures = |arm: &ArmJudgement| {
        let of = |kind, list: &[CountedFailure]| -> Vec<FailureView> {
            list.iter().map(|counted| failure_view(kind, &arm.arm, counted)).collect()
        };
        let mut all = of(FailureKind::Failure, &arm.failures);
        all.extend(of(FailureKind::Incident, &arm.incidents));
        all
    };
    TaskView {
        id: task.id.to_string(),
        title: task.title.as_deref().map(clean),
        standing: StandingWord::of(task.standing),
        headline: headline(&contrasts) + by_word(task),
        metric: task.metric.to_string(),
        unit: task.metric.unit(),
        direction: words::direction(task.direction),
        margin: number::percent(task.margin),
        margin_log: task.margin.max(0.0).ln_1p(),
        blocks: blocks(task),
        workload: planned.map(|planned| workload(&planned.workload, planned.server.model.as_str())),
        mark: if task.deviations.is_empty() { "" } else { "†" },
        planned_blocks: task.blocks.planned,
        planned_looks: planned_looks(task, planned),
        sentinel: task.sentinel.as_ref().map(sentinel),
        spread: task.spread.as_ref().map(noise::found),
        arms: task.arms.iter().map(|arm| arm_view(arm, task.metric, &metrics, &axis)).collect(),
        metrics: metrics.iter().map(|m| MetricView { name: m.as_str(), unit: m.unit() }).collect(),
        failures: task.arms.iter().flat_map(failures).collect(),
        deviations: task.deviations.iter().map(deviation_view).collect(),
        unlike: task.unlike.iter().map(words::check::unlike).collect(),
        checks: checks(task),
        confirmations: task.confirmations.iter().map(words::check::confirmation).collect(),
        contrasts,
        block_axis: axis,
    }
}

/// Returns the human arm's result and how the agents fared against the baseline.
fn headline(contrasts: &[ContrastView]) -> String {
    let mut parts = Vec::new();
    if let Some(human) = contrasts.iter().find(|c| c.pair == Pair::HumanAgainstBaseline) {
        let speedup = human.speedup.as_ref().map(|s| format!(" {s}")).unwrap_or_default();
        parts.push(format!("human {}{speedup}", human.verdict.word));
    }
    let agents: Vec<&ContrastView> = contrasts.iter().filter(|c| c.pair == Pair::AgentAgainstBaseline).collect();
    if let [only] = agents.as_slice() {
        let speedup = only.speedup.as_ref().map(|s| format!(" {s}")).unwrap_or_default();
        parts.push(format!("{} {}{speedup}", only.of, only.verdict.word));
    } else if !agents.is_empty() {
        let tally = |&verdict: &Verdict| {
            let word = verdict.as_str();
            let found = agents.iter().filter(|c| c.verdict.word == word).count();
            (found > 0).then(|| format!("{found} {word}"))
        };
        parts.push(format!("agents: {}", Verdict::ALL.iter().filter_map(tally).collect::<Vec<_>>().join(", ")));
    }
    if parts.is_empty() { "nothing was compared".to_owned() } else { parts.join("; ") }
}

/// Returns what follows a task's headline if a person's word lets measurements count that broke a check.
fn by_word(task: &TaskJudgement) -> &'static str {
    if task.confirmations.is_empty() { "" } else { "; by a person's word ‡" }
}

fn blocks(task: &TaskJudgement) -> String {
    let counts = task.blocks;
    let looks = task.contrasts.iter().map(|contrast| contrast.looks.len()).max().unwrap_or(0);
    let mut text = if looks > 0 && counts.complete < counts.planned {
        let times = if looks == 1 { "once".to_owned() } else { format!("{looks} times") };
        let most = counted(counts.planned, "block");
        format!("{} of at most {most} complete, looked at {times}", number::grouped(counts.complete))
    } else {
        format!("{} of {} complete", number::grouped(counts.complete), counted(counts.planned, "block"))
    };
    for (number, what) in [(counts.interrupted, "interrupted"), (counts.spoilt, "spoilt by infrastructure")] {
        if number > 0 {
            write!(text, ", {} {what}", counted(number, "attempt")).expect("a String takes every write");
        }
    }
    text
}

/// The most blocks that are assumed from a count alone; no design comes near it.
const MOST_BLOCKS: u32 = 10_000;

/// Returns the blocks on the plot's axis: every complete one, and every one with a value.
fn block_axis(task: &TaskJudgement) -> Vec<u32> {
    let mut blocks: BTreeSet<u32> = task.arms.iter().flat_map(|arm| &arm.values).map(|value| value.block).collect();
    // Blocks are run in order, so that the complete ones are the first ones.
    blocks.extend(0..task.blocks.complete.min(MOST_BLOCKS));
    blocks.into_iter().collect()
}

/// Returns what is run, in words.
pub(crate) fn workload(workload: &Workload, model: &str) -> String {
    let arrival = match &workload.arrival {
        Arrival::Closed { concurrency, .. } => format!("{concurrency} under way at a time"),
        Arrival::Open { rate_per_s, burstiness } => {
            format!("{} req/s, burstiness {}", number::significant(*rate_per_s), number::significant(*burstiness))
        }
        Arrival::Constant { rate_per_s } => format!("{} req/s at equal gaps", number::significant(*rate_per_s)),
        Arrival::Stages { stages, .. } => format!("{} stages of rates", stages.len()),
        Arrival::Bursts { size, period_s } => {
            format!("bursts of {size} every {} s", number::significant(*period_s))
        }
        Arrival::Trace { speed } => format!("the times of a trace, {} times as fast", number::significant(*speed)),
        Arrival::AllAtOnce => "all at once".to_owned(),
    };
    let input = match &workload.prompts {
        Prompts::Words { input_tokens } | Prompts::TokenIds { input_tokens, .. } => format!("{input_tokens} tokens in"),
        Prompts::Dataset { name, .. } => format!("prompts of {}", clean(name)),
    };
    let script = workload.script.as_ref();
    let by = script.map_or_else(String::new, |script| format!(", self-reported by {}", clean(&script.path)));
    format!(
        "{} of {}: {}, {input}, {} tokens out, {arrival}{by}",
        workload.kind,
        clean(model),
        counted(workload.requests, "request"),
        workload.output_tokens
    )
}

/// Returns after how many blocks a task is looked at: by its plan, or else by the looks that were taken.
fn planned_looks(task: &TaskJudgement, planned: Option<&PlannedTask>) -> Vec<u32> {
    if let Some(planned) = planned {
        return planned.design.looks.iter().map(|look| look.blocks).collect();
    }
    let taken = task.contrasts.iter().flat_map(|contrast| contrast.looks.iter().map(|look| look.planned));
    taken.collect::<BTreeSet<u32>>().into_iter().collect()
}

/// Returns what a sentinel shows, in a sentence.
fn sentinel(found: &SentinelJudgement) -> String {
    format!(
        "Sentinel {}: the baseline under this name was found to differ from itself in {} of {} (one in twenty is expected).",
        found.arm,
        found.rejected,
        counted(found.tested, "comparison")
    )
}

fn look_view(contrast: &Contrast, look: &LookResult) -> LookView {
    let estimate = finite(look.estimate);
    let interval = finite(look.low).zip(finite(look.high));
    let ends = interval.map(|(low, high)| [low.exp(), high.exp()]);
    let shown: Vec<f64> = estimate.map(f64::exp).into_iter().chain(ends.into_iter().flatten()).collect();
    let decimals = number::speedup_decimals(&shown);
    let show = |value: f64| number::speedup(value, decimals);
    let first = contrast.looks.iter().find(|look| look.decision.verdict().is_some());
    LookView {
        number: look.look.saturating_add(1),
        planned: look.planned,
        blocks: look.blocks,
        speedup: estimate.map(|estimate| show(estimate.exp())),
        interval_text: ends.map(|[low, high]| format!("{} to {}", show(low), show(high))),
        p: finite(look.p).map(number::p_value),
        level: number::level(look.level),
        decision: look.decision.as_str(),
        decides: first.is_some_and(|first| first.look == look.look),
        estimate,
        interval,
    }
}

fn finite(value: Option<f64>) -> Option<f64> {
    value.filter(|v| v.is_finite())
}

fn contrast_view(contrast: &Contrast) -> ContrastView {
    let estimate = finite(contrast.estimate);
    let interval = finite(contrast.low).zip(finite(contrast.high));
    let ends = interval.map(|(low, high)| [low.exp(), high.exp()]);
    // The stored speed-up is the estimate's exponential; it is shown as it is stored.
    let speedup = finite(contrast.speedup).or(estimate.map(f64::exp));
    let shown: Vec<f64> = speedup.into_iter().chain(ends.into_iter().flatten()).collect();
    let decimals = number::speedup_decimals(&shown);
    let show = |value: f64| number::speedup(value, decimals);
    ContrastView {
        of: contrast.of.to_string(),
        against: contrast.against.to_string(),
        pair: pair(&contrast.of, &contrast.against),
        verdict: VerdictWord::of(contrast.verdict),
        speedup: speedup.map(show),
        percent: estimate.map(number::signed_percent),
        interval: ends.map(|[low, high]| format!("{} to {}", show(low), show(high))),
        p: finite(contrast.p).map(number::p_value),
        sign_flip_p: finite(contrast.sign_flip_p).map(number::p_value),
        proven: interval.filter(|(low, _)| *low > 0.0).map(|(low, _)| show(low.exp())),
        blocks: contrast.blocks,
        reason: clean(&contrast.reason),
        charged_to: contrast.charged_to.as_ref().map(ToString::to_string),
        plot: IntervalPlot {
            estimate,
            interval,
            differences: contrast.differences.iter().map(|d| d.log_ratio).filter(|d| d.is_finite()).collect(),
        },
        looks: contrast.looks.iter().map(|look| look_view(contrast, look)).collect(),
        block_differences: contrast
            .differences
            .iter()
            .filter(|difference| difference.log_ratio.is_finite())
            .map(|difference| (difference.block, difference.log_ratio))
            .collect(),
    }
}

fn arm_view(arm: &ArmJudgement, primary: MetricName, metrics: &BTreeSet<MetricName>, axis: &[u32]) -> ArmView {
    let value = |metric: &MetricName| finite(arm.means.get(metric).copied());
    let with_value: BTreeSet<u32> = arm.values.iter().map(|value| value.block).collect();
    let lost = usize::try_from(arm.launches).unwrap_or(usize::MAX).saturating_sub(with_value.len());
    let points = arm.values.iter().filter(|value| value.value.is_finite());
    ArmView {
        name: arm.arm.to_string(),
        mean: value(&primary).map(|mean| format!("{} {}", number::significant(mean), primary.unit())),
        means: metrics.iter().map(|metric| value(metric).map(number::significant)).collect(),
        valid: arm.valid,
        launches: arm.launches,
        points: points
            .map(|v| PointView { block: v.block, value: v.value, text: number::significant(v.value) })
            .collect(),
        missing: axis.iter().copied().filter(|block| !with_value.contains(block)).take(lost).collect(),
    }
}

fn failure_view(kind: FailureKind, arm: &ArmId, counted_failure: &CountedFailure) -> FailureView {
    let failure = &counted_failure.failure;
    let place = |file: &str, line: Option<u64>| match line {
        Some(line) => format!("{}:{line}", clean(file)),
        None => clean(file),
    };
    let lines = failure.evidence.iter().map(|line| (place(&line.file, line.line), &line.text));
    let cause = counted_failure.cause.as_ref();
    // Where the cause is known, its lines tell most; what was seen outside the logs comes after.
    let shown = cause.filter(|cause| cause.signature.is_some()).map_or(&[][..], |cause| &cause.evidence);
    let of_cause = shown.iter().map(|line| (place(&line.file, Some(line.line)), &line.text));
    let mut evidence: Vec<EvidenceView> =
        of_cause.chain(lines).map(|(place, text)| EvidenceView { place, text: clean(text) }).collect();
    let mut seen = BTreeSet::new();
    evidence.retain(|line| seen.insert(line.place.clone()) || !line.place.contains(':'));
    FailureView {
        kind,
        arm: arm.to_string(),
        launches: counted(counted_failure.launches, "launch"),
        class: failure.class.as_str(),
        stage: failure.stage.as_str(),
        message: clean(&failure.message),
        check: failure.check.as_ref().map(words::check::broken),
        cause: cause.filter(|cause| cause.signature.is_some()).map(cause_view),
        evidence,
    }
}

/// Returns the checks that launches broke, counted by arm and check, in the order in which they were first broken.
fn checks(task: &TaskJudgement) -> Vec<CheckView> {
    let mut counted: Vec<CheckView> = Vec::new();
    for found in &task.broken {
        let (arm, check) = (found.arm.to_string(), found.check.name.as_str());
        let decides = u32::from(found.effect == CheckEffect::Decides);
        let spoilt = u32::from(found.effect == CheckEffect::Spoilt);
        if let Some(known) = counted.iter_mut().find(|known| known.arm == arm && known.check == check) {
            known.launches += 1;
            known.decided += decides;
            known.spoilt += spoilt;
        } else {
            counted.push(CheckView {
                arm,
                check,
                launches: 1,
                decided: decides,
                spoilt,
                first: match words::check::numbers(&found.check) {
                    Some(numbers) => format!("block {} ({numbers})", found.block),
                    None => format!("block {}", found.block),
                },
                confirmed: found.effect == CheckEffect::Confirmed,
            });
        }
    }
    counted
}

/// Returns why something failed, as people see it.
fn cause_view(cause: &Cause) -> CauseView {
    let signature = cause.signature.as_ref().map(|id| format!(", {}", clean(id))).unwrap_or_default();
    let blame = match cause.blame {
        Some(Blame::Shared) => ", as in every arm",
        Some(Blame::Arm) => ", in this arm only",
        Some(Blame::Infrastructure) if cause.is_claim() => {
            ", which blames the machine, but no log of the baseline says so"
        }
        Some(Blame::Infrastructure) => ", which speaks against the machine",
        Some(Blame::Unclear) | None => "",
    };
    let recipes = match cause.fix.recipes.as_slice() {
        [] => String::new(),
        recipes => format!(" (recipe {})", recipes.iter().map(|id| clean(id)).collect::<Vec<_>>().join(", ")),
    };
    CauseView {
        text: format!("{} ({}{signature}{blame})", clean(&cause.cause), clean(&cause.class)),
        fix: format!("{}{recipes}", clean(&cause.fix.advice)),
    }
}

/// Returns a deviation as people see it.
pub(crate) fn deviation_view(deviation: &Deviation) -> DeviationView {
    DeviationView {
        kind: deviation.kind.as_str(),
        subject: clean(&deviation.subject),
        asked: clean(&deviation.asked),
        run: clean(&deviation.run),
        reason: clean(&deviation.reason),
    }
}

/// Returns an exclusion as people see it.
pub(crate) fn exclusion_view(exclusion: &Exclusion) -> ExclusionView {
    let what = match &exclusion.arm {
        Some(arm) => format!("{}/{arm}", exclusion.task),
        None => exclusion.task.to_string(),
    };
    ExclusionView { what, reason: exclusion.reason.as_str(), message: clean(&exclusion.message) }
}

/// Returns a problem as people see it.
pub(crate) fn problem_view(problem: &Problem) -> ProblemView {
    let mut place = clean(&problem.file);
    if let Some(line) = problem.line {
        place = format!("{place}:{line}");
    }
    if let Some(column) = &problem.column {
        place = format!("{place}, `{}`", clean(column));
    }
    ProblemView { place, message: clean(&problem.message) }
}

/// Returns the devices that assessments reckon with, in words.
pub(crate) fn devices(planned_for: &PlannedFor) -> String {
    let assumed = if planned_for.assumed { ", which is assumed: this machine has no device that is known" } else { "" };
    format!(
        "reckoned for {} of {} at a launch{assumed}",
        counted(planned_for.count, "device"),
        clean(&planned_for.device)
    )
}
