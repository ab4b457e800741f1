//! From all launches of a run to the verdicts.
//!
//! A contrast gets its verdict by the first of these rules that holds:
//!
//! | order | rule | verdict |
//! | --- | --- | --- |
//! | 1 | there was no patch for one of the arms | `not-run` |
//! | 2 | agent against human, and the human commit is worse than, trivially different from or equivalent to the baseline | `nothing-to-beat` |
//! | 3 | it is against the baseline, and the baseline failed by itself | `not-measured`, or `invalid` charged to it |
//! | 4 | an agent's arm failed by itself | `agent-failed`, or `invalid` charged to it |
//! | 5 | the human or the baseline arm failed by itself | `not-measured`, or `invalid` charged to it |
//! | 6 | under 5 blocks can be compared, for a broken check that no arm answers for | `invalid` |
//! | 7 | none can be compared, because the baseline or the human arm has no launch that counts | `not-measured` |
//! | 8 | under 5 blocks can be compared, or no look is complete | `inconclusive` |
//! | 9 | the differences have a positive serial correlation (p < 0.01): drift | `inconclusive` |
//! | 10 | p is below the look's level and the estimate is at least the margin | `better` or `worse` |
//! | 11 | p is below the look's level and the difference is equivalent | `trivial` |
//! | 12 | two one-sided tests at the look's level find the difference inside the margin | `equivalent` |
//! | 13 | anything else | `inconclusive` |
//!
//! Rules 9 to 13 are asked at each complete look in turn, and the first look that decides (10 to 12) gives the verdict with
//! its own numbers: blocks that were run later, because another contrast needed them, don't change it. Where none decides,
//! it is the last look's.
//!
//! Rule 2 comes before an agent's failure, so that all agents are kept out of the win rates of a task that can't rank
//! them; how the agent did against the baseline has its own contrast.
//!
//! An arm *failed by itself* if its own failures hit at least two blocks, or at least 10 % of them. Its own are those
//! of a class that is charged to the arm, unless every arm of the block failed by it. The kind of verdict follows from
//! its most frequent class.
//!
//! All differences are natural logarithms of ratios, positive is better. The margin δ is ln(1 + margin) on that scale,
//! so that a margin of 2 % means a speed-up of 1.02, or of 1/1.02.

mod arms;
mod belief;
mod blocks;
mod contrast;
mod coverage;
pub(crate) mod levels;
pub(crate) mod looks;
mod output;
mod reason;
mod sentinel;
mod spread;

use std::collections::BTreeMap;

use isobench_schema::block::BlockSpec;
use isobench_schema::confirmation::Confirmations;
use isobench_schema::event::{BlockEnd, ContrastLook};
use isobench_schema::failure::{Charge, Failure};
use isobench_schema::ids::{ArmId, BlockId, LaunchId, RunId, TaskId};
use isobench_schema::outcome::Outcome;
use isobench_schema::plan::{Plan, PlannedTask};
use isobench_schema::verdict::{Contrast, Judgement, LookDecision, LookResult, Standing, TaskJudgement, Verdict};

use crate::launch::LaunchInput;
use crate::suite;
use arms::Arms;
use blocks::{Block, Launch, TaskBlocks};
use contrast::Evidence;
use output::Asked;

/// The version of the rules of this module and of the checks.
pub const RULES: &str = "isobench/3";

/// One attempt at a block, as it ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempt {
    /// The task, block and attempt.
    pub id: BlockId,
    /// What became of it.
    pub end: BlockEnd,
    /// Its launches.
    pub launches: Vec<LaunchInput>,
}

/// Everything that a run is judged by.
#[derive(Debug, Clone)]
pub struct JudgeInput<'a> {
    /// The run.
    pub run: RunId,
    /// Its plan.
    pub plan: &'a Plan,
    /// Every attempt that has ended, in any order.
    pub attempts: &'a [Attempt],
    /// What a person has confirmed.
    pub confirmations: &'a Confirmations,
}

/// Why a run can't be judged: its record contradicts itself.
#[derive(Debug, thiserror::Error)]
pub enum JudgeError {
    /// An attempt at a task that the plan hasn't.
    #[error("the record has a block of task `{task}`, which is not in the plan")]
    UnknownTask {
        /// The task.
        task: TaskId,
    },
    /// An attempt at a block that the design hasn't.
    #[error("the record has the block {id}, but the plan has only {planned} blocks of that task")]
    UnknownBlock {
        /// The block.
        id: BlockId,
        /// How many blocks are planned.
        planned: u32,
    },
    /// Two attempts at one block that both count.
    #[error("the record has two complete attempts at one block: {first} and {second}")]
    TwoComplete {
        /// The earlier one.
        first: BlockId,
        /// The later one.
        second: BlockId,
    },
    /// A launch that is recorded in a block that it doesn't belong to.
    #[error("the launch {launch} is recorded in the block {id}")]
    WrongBlock {
        /// The launch.
        launch: LaunchId,
        /// The block.
        id: BlockId,
    },
    /// An arm that was launched twice in one attempt.
    #[error("the launch {launch} is recorded twice")]
    TwoLaunches {
        /// The launch.
        launch: LaunchId,
    },
    /// The plan's digest can't be computed.
    #[error("the plan can't be written as JSON")]
    Plan {
        /// Why.
        #[source]
        source: serde_json::Error,
    },
}

/// Returns what the evidence of a run says. The order of attempts and launches doesn't matter.
///
/// # Errors
/// Returns where the record contradicts the plan or itself.
pub fn judge(input: &JudgeInput<'_>) -> Result<Judgement, JudgeError> {
    let mut by_task: BTreeMap<&TaskId, Vec<&Attempt>> = BTreeMap::new();
    for attempt in input.attempts {
        by_task.entry(&attempt.id.task).or_default().push(attempt);
    }
    let mut tasks = Vec::with_capacity(input.plan.tasks.len());
    for task in &input.plan.tasks {
        let attempts = by_task.remove(&task.id).unwrap_or_default();
        tasks.push(judge_task(task, attempts, input.confirmations, usize::MAX)?.1);
    }
    if let Some((task, _)) = by_task.pop_first() {
        return Err(JudgeError::UnknownTask { task: task.clone() });
    }
    Ok(Judgement {
        coverage: Some(coverage::of_run(input.plan, &tasks)),
        suite: suite::of(input.plan, &tasks),
        run: input.run.clone(),
        plan: input.plan.digest().map_err(|source| JudgeError::Plan { source })?,
        rules: RULES.to_owned(),
        tasks,
        exclusions: input.plan.exclusions.clone(),
        problems: input.plan.problems.clone(),
    })
}

/// Returns what the checks find against the arms of one block whose launches were measured, and what the plan is at fault
/// for in them, by the evidence of this block alone: the same wherever the block ran.
pub fn charged(spec: &BlockSpec, attempt: &Attempt) -> BTreeMap<ArmId, Failure> {
    // Nobody has confirmed anything of a block that has only just ended.
    let confirmations = Confirmations::default();
    let mut blocks = [Block::of(attempt, &confirmations)];
    let asked = Asked { metric: &spec.metric, workload: &spec.workload, confirmations: &confirmations };
    output::check(asked, &mut blocks);
    let launches = blocks.into_iter().flat_map(|block| block.launches);
    let measured = launches.filter(|launch| launch.input.record.outcome == Outcome::Measured);
    let charged = |launch: Launch<'_>| {
        let arm = launch.arm().clone();
        let counts = |failure: &Failure| failure.class.charge() == Charge::Arm || failure.class.is_fault_of_plan();
        Some((arm, launch.failure.filter(counts)?))
    };
    measured.filter_map(charged).collect()
}

/// What a look decides about a task under way.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskLook {
    /// What it says of each contrast.
    pub contrasts: Vec<ContrastLook>,
    /// Whether the task's further blocks are not run.
    pub stops: bool,
    /// Why: one sentence.
    pub reason: String,
}

/// Returns what the look of that number, from 0, decides about a task: it stops if every contrast is decided, hopeless, or
/// settled by something else than its numbers. Blocks after the look don't count. `None` if its blocks aren't all done.
///
/// # Errors
/// Returns where the record contradicts the plan or itself.
pub fn look(
    task: &PlannedTask,
    attempts: &[Attempt],
    confirmations: &Confirmations,
    number: u32,
) -> Result<Option<TaskLook>, JudgeError> {
    let most = usize::try_from(number).unwrap_or(usize::MAX).saturating_add(1);
    let (reached, judged) = judge_task(task, attempts.iter().collect(), confirmations, most)?;
    let Some(planned) = task.design.looks.get(most - 1).filter(|_| reached == most) else { return Ok(None) };
    let is_last = task.design.looks.len() == most;
    let empty = |decision| LookResult {
        look: number,
        planned: planned.blocks,
        blocks: 0,
        level: planned.level,
        equivalence_level: planned.equivalence_level,
        decision,
        estimate: None,
        low: None,
        high: None,
        p: None,
        equivalence_low: None,
        equivalence_high: None,
    };
    let waits = |contrast: &&Contrast| !contrast.looks.iter().any(|result| result.decision.ends_waiting());
    let waiting: Vec<String> = judged
        .contrasts
        .iter()
        .filter(|contrast| !settled(contrast))
        .filter(waits)
        .map(|contrast| format!("{} against {}", contrast.of, contrast.against))
        .collect();
    let result = |contrast: &Contrast| match contrast.looks.last() {
        Some(result) if !settled(contrast) => *result,
        Some(_) | None => empty(LookDecision::Settled),
    };
    let contrasts = { judged.contrasts.iter() }.map(|contrast| ContrastLook {
        of: contrast.of.clone(),
        against: contrast.against.clone(),
        result: result(contrast),
    });
    let reason = match (waiting.is_empty(), is_last) {
        (true, _) => "nothing is left to decide".to_owned(),
        (false, true) => "it was the last look".to_owned(),
        (false, false) => format!("undecided: {}", waiting.join(", ")),
    };
    Ok(Some(TaskLook { contrasts: contrasts.collect(), stops: waiting.is_empty() || is_last, reason }))
}

/// Returns whether more blocks can't change a verdict, whatever their numbers are.
fn settled(contrast: &Contrast) -> bool {
    match contrast.verdict {
        Verdict::NotRun | Verdict::NothingToBeat | Verdict::AgentFailed => true,
        // Charged to an arm, it failed by itself; else too few blocks could be compared so far.
        Verdict::Invalid => contrast.charged_to.is_some(),
        Verdict::NotMeasured => contrast.looks.is_empty(),
        Verdict::Better | Verdict::Worse | Verdict::Trivial | Verdict::Equivalent | Verdict::Inconclusive => false,
    }
}

/// Returns how many looks are complete, `most_looks` at most, and what they say.
fn judge_task(
    task: &PlannedTask,
    attempts: Vec<&Attempt>,
    confirmations: &Confirmations,
    most_looks: usize,
) -> Result<(usize, TaskJudgement), JudgeError> {
    let mut blocks = TaskBlocks::choose(task, attempts, confirmations, most_looks)?;
    let asked = Asked { metric: &task.metric, workload: &task.workload, confirmations };
    output::check(asked, &mut blocks.blocks);
    let arms = Arms::of(task, &blocks);
    let evidence = Evidence { task, blocks: &blocks, arms: &arms };
    let mut contrasts: Vec<Contrast> =
        task.contrasts.iter().map(|planned| contrast::judge(evidence, planned)).collect();
    let standing = if is_against_itself(task) { Standing::NotAsked } else { standing(&contrasts) };
    if standing == Standing::NothingToBeat {
        contrasts.iter_mut().for_each(nothing_to_beat);
    }
    if task.workload.script.is_some() {
        contrasts.iter_mut().for_each(self_reported);
    }
    let sentinel = sentinel::judge(task, &blocks, &contrasts);
    let judgement = TaskJudgement {
        id: task.id.clone(),
        title: task.title.clone(),
        standing,
        metric: task.metric.primary,
        direction: task.metric.direction,
        margin: task.metric.margin,
        blocks: blocks.counts,
        spread: spread::judge(task, &contrasts, sentinel.as_ref()),
        contrasts,
        sentinel,
        unlike: blocks.unlike(task),
        broken: blocks.broken(confirmations),
        confirmations: confirmations.of_task(&task.id).cloned().collect(),
        arms: arms.judgements,
        deviations: task.deviations.clone(),
    };
    Ok((blocks.reached(), judgement))
}

/// Returns whether the human arm is the baseline once more, which can't be better.
fn is_against_itself(task: &PlannedTask) -> bool {
    let environment =
        |arm: &ArmId| task.arms.iter().find(|planned| planned.arm == *arm).map(|found| &found.environment);
    environment(&ArmId::Human).is_some_and(|human| environment(&ArmId::Baseline) == Some(human))
}

/// Returns whether the task can rank agents, by the human commit's verdict.
fn standing(contrasts: &[Contrast]) -> Standing {
    let human = contrasts.iter().find(|contrast| contrast.of == ArmId::Human && contrast.against == ArmId::Baseline);
    match human.map(|contrast| contrast.verdict) {
        None | Some(Verdict::NotRun) => Standing::NotAsked,
        Some(Verdict::Better) => Standing::Rankable,
        Some(Verdict::Worse | Verdict::Trivial | Verdict::Equivalent | Verdict::NothingToBeat) => {
            Standing::NothingToBeat
        }
        Some(Verdict::Inconclusive) => Standing::HumanGainUnproven,
        Some(Verdict::AgentFailed | Verdict::Invalid | Verdict::NotMeasured) => Standing::NotMeasured,
    }
}

/// Marks a verdict whose numbers are what a benchmark script says of itself: a claim.
fn self_reported(contrast: &mut Contrast) {
    contrast.reason = format!("self-reported: {}", contrast.reason);
}

/// Turns the verdict on an agent against a human commit that gained nothing. Its numbers stay.
fn nothing_to_beat(contrast: &mut Contrast) {
    let ranks = matches!(contrast.of, ArmId::Agent(_)) && contrast.against == ArmId::Human;
    if ranks && contrast.verdict != Verdict::NotRun {
        contrast.verdict = Verdict::NothingToBeat;
        contrast.charged_to = None;
        contrast.reason = format!("the human commit gained nothing over the baseline; {}", contrast.reason);
    }
}
