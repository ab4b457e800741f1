//! Judgements: what the evidence says about each contrast, and how sure it is.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cause::Cause;
use crate::check::BrokenCheck;
use crate::comparability::KeyDifference;
use crate::confirmation::Confirmation;
use crate::coverage::Coverage;
use crate::deviation::Deviation;
use crate::failure::{Failure, FailureClass, spelt_enum};
use crate::format::Stored;
use crate::ids::{ArmId, Digest, RunId, TaskId};
use crate::measurement::{Direction, MetricName};
use crate::plan::{Exclusion, Look, Problem};

spelt_enum!(
    /// The verdict on a contrast.
    Verdict {
        /// Significantly faster, by at least the margin.
        Better = "better",
        /// Significantly slower, by at least the margin.
        Worse = "worse",
        /// A significant difference that is smaller than the margin: a tie with a direction.
        Trivial = "trivial",
        /// No difference as large as the margin.
        Equivalent = "equivalent",
        /// Not enough evidence.
        Inconclusive = "inconclusive",
        /// The human commit gained nothing, so that the task can't rank agents.
        NothingToBeat = "nothing-to-beat",
        /// The agent's arm failed by itself.
        AgentFailed = "agent-failed",
        /// A validity check failed.
        Invalid = "invalid",
        /// The baseline or the human arm couldn't be measured.
        NotMeasured = "not-measured",
        /// There was no patch for the arm.
        NotRun = "not-run",
    }
);

impl Verdict {
    /// Returns whether it says that something failed to be measured, or to count.
    pub fn is_failure(self) -> bool {
        match self {
            Self::AgentFailed | Self::Invalid | Self::NotMeasured => true,
            Self::Better
            | Self::Worse
            | Self::Trivial
            | Self::Equivalent
            | Self::Inconclusive
            | Self::NothingToBeat
            | Self::NotRun => false,
        }
    }
}

spelt_enum!(
    /// Whether a task can rank agents.
    Standing {
        /// The human commit is better: agents can be measured against it.
        Rankable = "rankable",
        /// The human commit's gain isn't proven yet.
        HumanGainUnproven = "human-gain-unproven",
        /// The human commit gained nothing.
        NothingToBeat = "nothing-to-beat",
        /// The baseline or the human arm couldn't be measured.
        NotMeasured = "not-measured",
        /// The task was run without a baseline or without a human arm.
        NotAsked = "not-asked",
    }
);

spelt_enum!(
    /// What a look says of a contrast.
    LookDecision {
        /// Significantly faster, by at least the margin.
        Better = "better",
        /// Significantly slower, by at least the margin.
        Worse = "worse",
        /// A significant difference that is smaller than the margin.
        Trivial = "trivial",
        /// No difference as large as the margin.
        Equivalent = "equivalent",
        /// The differences follow those of the block before, so that the tests don't hold.
        Drift = "drift",
        /// Nothing yet.
        Undecided = "undecided",
        /// Nothing, and the looks to come are unlikely to change that.
        Hopeless = "hopeless",
        /// Too few blocks can be compared.
        TooFew = "too-few",
        /// The verdict doesn't depend on these numbers: an arm failed, or there is nothing to beat.
        Settled = "settled",
    }
);

impl LookDecision {
    /// Returns the verdict, if the look decides one.
    pub fn verdict(self) -> Option<Verdict> {
        match self {
            Self::Better => Some(Verdict::Better),
            Self::Worse => Some(Verdict::Worse),
            Self::Trivial => Some(Verdict::Trivial),
            Self::Equivalent => Some(Verdict::Equivalent),
            Self::Drift | Self::Undecided | Self::Hopeless | Self::TooFew | Self::Settled => None,
        }
    }

    /// Returns whether the contrast needs no further blocks.
    pub fn ends_waiting(self) -> bool {
        match self {
            Self::Better | Self::Worse | Self::Trivial | Self::Equivalent | Self::Hopeless | Self::Settled => true,
            Self::Drift | Self::Undecided | Self::TooFew => false,
        }
    }
}

/// One look at one contrast: its numbers and the levels that they were held to. Differences are log ratios, positive is
/// better.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LookResult {
    /// The look's number, from 0.
    pub look: u32,
    /// The blocks of the look, as planned.
    pub planned: u32,
    /// The differences that count.
    pub blocks: u32,
    /// The two-sided level of the difference test: the plan's, or the one calculated for so many differences.
    pub level: f64,
    /// The one-sided level of each of the two equivalence tests.
    pub equivalence_level: f64,
    /// What it says.
    pub decision: LookDecision,
    /// The mean log ratio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<f64>,
    /// The lower end of the interval at `level`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Its upper end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// Student's two-sided p.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p: Option<f64>,
    /// The lower end of the equivalence interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub equivalence_low: Option<f64>,
    /// Its upper end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub equivalence_high: Option<f64>,
}

/// The verdict on one arm against another, in one metric. Differences are natural logarithms of ratios, with the sign
/// turned so that positive is better.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contrast {
    /// The arm that is asked about.
    pub of: ArmId,
    /// The arm that it is compared with.
    pub against: ArmId,
    /// The primary metric.
    pub metric: MetricName,
    /// The verdict.
    pub verdict: Verdict,
    /// The mean log ratio over blocks.
    pub estimate: Option<f64>,
    /// The lower end of the interval at the look's level.
    pub low: Option<f64>,
    /// The upper end of the interval at the look's level.
    pub high: Option<f64>,
    /// Student's two-sided p over block differences.
    pub p: Option<f64>,
    /// Blocks that count.
    pub blocks: u32,
    /// The verdict in one sentence.
    pub reason: String,
    /// The arm that an invalidity is charged to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub charged_to: Option<ArmId>,
    /// The estimate as a speed-up: 1.25 is 25 % better.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speedup: Option<f64>,
    /// The exact two-sided sign-flip p.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sign_flip_p: Option<f64>,
    /// The Hodges–Lehmann estimate of the log ratio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hodges_lehmann: Option<f64>,
    /// The lower end of the equivalence interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub equivalence_low: Option<f64>,
    /// The upper end of the equivalence interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub equivalence_high: Option<f64>,
    /// The smallest log ratio that this many blocks would find with a power of 80 %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mde: Option<f64>,
    /// For an inconclusive contrast: blocks that would decide, with a power of 80 %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks_needed: Option<u32>,
    /// The look at which it was judged: the first that decides it, else the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub look: Option<Look>,
    /// Every look at it, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub looks: Vec<LookResult>,
    /// The difference in each block that counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<BlockDifference>,
}

/// The difference between two arms in one block.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockDifference {
    /// The block.
    pub block: u32,
    /// The log ratio, positive is better.
    pub log_ratio: f64,
}

/// The primary metric of one arm in one block.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockValue {
    /// The block.
    pub block: u32,
    /// The launch's position in the block, from 0.
    pub position: u32,
    /// The value in the metric's unit.
    pub value: f64,
}

/// A failure and how often it was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CountedFailure {
    /// In how many launches.
    pub launches: u32,
    /// The first of them.
    pub failure: Failure,
    /// Why, as the logs of that launch say it: a claim of what was measured, on which no verdict rests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
}

/// What one arm did in a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArmJudgement {
    /// The arm.
    pub arm: ArmId,
    /// Launches in complete blocks.
    pub launches: u32,
    /// Launches that were measured and count.
    pub valid: u32,
    /// The primary metric in each block that counts.
    pub values: Vec<BlockValue>,
    /// The mean of every metric over the launches that count, each in its unit.
    pub means: BTreeMap<MetricName, f64>,
    /// Failures of launches, most frequent first.
    pub failures: Vec<CountedFailure>,
    /// Failures that did not undo a measurement.
    pub incidents: Vec<CountedFailure>,
}

/// What the evidence says about one task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskJudgement {
    /// The task.
    pub id: TaskId,
    /// One line for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Whether it can rank agents.
    pub standing: Standing,
    /// The primary metric.
    pub metric: MetricName,
    /// Which way it improves.
    pub direction: Direction,
    /// The smallest relative difference that matters.
    pub margin: f64,
    /// Complete blocks, and blocks of the plan.
    pub blocks: BlockCounts,
    /// Every contrast.
    pub contrasts: Vec<Contrast>,
    /// Every arm.
    pub arms: Vec<ArmJudgement>,
    /// Differences from what the task asks.
    pub deviations: Vec<Deviation>,
    /// How often the baseline was found to differ from itself, if the design has a sentinel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sentinel: Option<SentinelJudgement>,
    /// Launches whose comparability key differs from that of others of the task, with the fields and their values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unlike: Vec<Unlike>,
    /// Checks that launches broke, in the order of blocks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub broken: Vec<LaunchCheck>,
    /// What a person has confirmed of the task.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub confirmations: Vec<Confirmation>,
}

/// Two launches that can't be compared, or that are of one arm and not alike.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unlike {
    /// The block of the first one.
    pub block: u32,
    /// Its arm.
    pub of: ArmId,
    /// The block of the second one: the same where the two would be compared, else the first that counts.
    pub against_block: u32,
    /// Its arm.
    pub against: ArmId,
    /// In what they differ.
    pub differences: Vec<KeyDifference>,
}

/// A check that a launch broke.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaunchCheck {
    /// The launch's block.
    pub block: u32,
    /// Its arm.
    pub arm: ArmId,
    /// The class of the failure.
    pub class: FailureClass,
    /// The check, with its numbers where it has any.
    pub check: BrokenCheck,
    /// One sentence for people.
    pub message: String,
    /// Whether it keeps the launch from counting.
    pub effect: CheckEffect,
}

spelt_enum!(
    /// What follows from a broken check.
    CheckEffect {
        /// It is why the launch doesn't count.
        Decides = "decides",
        /// The launch doesn't count for another reason, which weighs more.
        Also = "also",
        /// It was broken in an attempt that infrastructure spoilt, in the place of which the block ran again.
        Spoilt = "spoilt",
        /// A person has confirmed it, so that it keeps nothing from counting.
        Confirmed = "confirmed",
    }
);

/// What the baseline under another name shows: how often one difference of nothing looks like something.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SentinelJudgement {
    /// The name that it had.
    pub arm: ArmId,
    /// Its difference to the baseline in each block that has both.
    pub differences: Vec<BlockDifference>,
    /// How many of them could be held against the spread of the task's other blocks.
    pub tested: u32,
    /// How many of those had a p below 0.05: one in twenty is expected.
    pub rejected: u32,
}

/// How far the blocks of a task have come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockCounts {
    /// Blocks of the plan.
    pub planned: u32,
    /// Blocks with a complete attempt.
    pub complete: u32,
    /// Attempts that were cut short.
    pub interrupted: u32,
    /// Attempts that infrastructure spoilt.
    pub spoilt: u32,
}

/// What the evidence of a run says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Judgement {
    /// The run.
    pub run: RunId,
    /// The digest of its plan.
    pub plan: Digest,
    /// The version of the rules.
    pub rules: String,
    /// Every task of the plan.
    pub tasks: Vec<TaskJudgement>,
    /// What wasn't run.
    pub exclusions: Vec<Exclusion>,
    /// What couldn't be read.
    pub problems: Vec<Problem>,
    /// How far the arms came, and what running them again could change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coverage: Option<Coverage>,
}

impl Stored for Judgement {
    const NAME: &'static str = "judgement";
    const VERSION: u32 = 4;

    fn upgrade(version: u32, mut value: Value) -> Option<Value> {
        // Version 1 had neither causes of failures nor a coverage, version 2 knew one look only, version 3 no checks by
        // name; all may be absent. What is unlike was told in sentences up to version 3; the evidence tells it anew.
        if version == 3 {
            for task in value.get_mut("tasks").and_then(Value::as_array_mut).into_iter().flatten() {
                task.as_object_mut().and_then(|task| task.remove("unlike"));
            }
        }
        (1..=3).contains(&version).then_some(value)
    }
}
