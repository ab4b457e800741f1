//! What the tasks of a run say together: headlines, rates of success, which tasks differ, ranks of agents, and what other
//! rules would have said. Differences are natural logarithms of ratios, positive is better.

use serde::{Deserialize, Serialize};

use crate::failure::spelt_enum;
use crate::ids::{ArmId, TaskId};
use crate::legacy::HardClass;
use crate::verdict::Verdict;

/// What the tasks of a run say together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    /// How many tasks there are, by what they can tell.
    pub tasks: SuiteTasks,
    /// The mean speed-up of each kind of contrast that at least two tasks have a number of.
    pub headlines: Vec<Headline>,
    /// How often the human commit and each agent succeeded.
    pub rates: Vec<ArmRates>,
    /// Which tasks differ, for each kind of contrast.
    pub claims: Vec<Claims>,
    /// How the agents compare with each other; empty with fewer than two.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranks: Vec<RankTable>,
    /// What each rule says of each agent, and of an agent with an empty patch.
    pub rules: Vec<RuleScore>,
    /// The classes of an earlier system's rules beside the verdicts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub side_by_side: Vec<SideBySide>,
    /// How often the baseline was found to differ from itself, if tasks have sentinels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sentinels: Option<Rate>,
}

/// Tasks by what they can tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SuiteTasks {
    /// Tasks that were planned.
    pub planned: u32,
    /// Tasks that were asked for and left out of the plan.
    pub left_out: u32,
    /// Planned tasks that can rank agents.
    pub rankable: u32,
    /// Planned tasks whose human commit's gain isn't proven.
    pub human_gain_unproven: u32,
    /// Planned tasks whose human commit gained nothing.
    pub nothing_to_beat: u32,
    /// Planned tasks whose baseline or human arm couldn't be measured.
    pub not_measured: u32,
    /// Planned tasks without a baseline or a human arm.
    pub not_asked: u32,
}

spelt_enum!(
    /// How an interval of a mean over tasks was made.
    OverTasks {
        /// The cluster bootstrap over tasks, bias-corrected and accelerated.
        ClusterBootstrap = "cluster-bootstrap",
        /// Student's t over tasks: there are too few for a bootstrap.
        StudentT = "student-t",
    }
);

/// A mean of log ratios over tasks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeanOverTasks {
    /// How many tasks.
    pub tasks: u32,
    /// The mean log ratio.
    pub estimate: f64,
    /// The same as a speed-up: the geometric mean over tasks.
    pub speedup: f64,
    /// The lower end of the 95 % interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Its upper end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// How the interval was made.
    pub method: OverTasks,
}

/// The mean speed-up of one arm against another over tasks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Headline {
    /// The arm that is asked about.
    pub of: ArmId,
    /// The arm that it is compared with.
    pub against: ArmId,
    /// Over the tasks in which both were measured; against the human commit only over those that can rank agents.
    pub measured: MeanOverTasks,
    /// The same with each task in which the agent failed by itself, or of which it has no patch, counted as if it had left
    /// the baseline as it was; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with_failures: Option<MeanOverTasks>,
    /// The mean of the tasks' proven gains, as a log ratio: the lower end of each interval, 0 where that is below 0.
    pub proven: f64,
    /// How many tasks have a proven gain.
    pub proven_tasks: u32,
}

/// Successes out of trials with the 95 % Wilson interval of their rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// How many succeeded.
    pub successes: u32,
    /// Out of how many.
    pub trials: u32,
    /// The lower end of the interval; absent without a trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Its upper end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
}

spelt_enum!(
    /// What counts as a success, by verdicts.
    SuccessRule {
        /// `better` than the baseline.
        BetterThanBaseline = "better-than-baseline",
        /// `better` than the human commit, `equivalent` or `trivial`: a loss as large as the margin is ruled out.
        AtLeastHuman = "at-least-human",
        /// `better` than the human commit.
        BetterThanHuman = "better-than-human",
    }
);

/// How often one arm succeeded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArmRates {
    /// The arm: the human commit, or an agent.
    pub arm: ArmId,
    /// By each rule that applies.
    pub rates: Vec<SuccessRate>,
}

/// How often one arm succeeded by one rule, and what became of all tasks. An agent's tasks that can't rank agents are counted
/// apart from both rates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SuccessRate {
    /// The rule.
    pub rule: SuccessRule,
    /// Of every task, also those that were left out, failed for whatever reason, or have no patch.
    pub strict: Rate,
    /// Of the tasks that infrastructure didn't take away.
    pub infrastructure_excluded: Rate,
    /// What became of the tasks.
    pub counts: OutcomeCounts,
}

/// What became of the tasks for one arm and rule. The counts add up to all tasks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutcomeCounts {
    /// The rule's verdict.
    pub succeeded: u32,
    /// Another verdict by numbers.
    pub not_succeeded: u32,
    /// Of the numbers nothing is decided.
    pub undecided: u32,
    /// The arm failed by itself, or broke a validity check.
    pub failed: u32,
    /// The task names the agent, and there is no patch.
    pub no_patch: u32,
    /// Infrastructure, or another arm: nothing that the arm answers for.
    pub infrastructure: u32,
    /// The task doesn't have the arm.
    pub without_arm: u32,
    /// Apart: the human commit gained nothing.
    pub nothing_to_beat: u32,
    /// Apart: the human commit's gain isn't proven.
    pub human_gain_unproven: u32,
}

/// Which tasks differ in one kind of contrast.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claims {
    /// The arm that is asked about.
    pub of: ArmId,
    /// The arm that it is compared with.
    pub against: ArmId,
    /// Tasks whose p by Holm's method is at most 0.05.
    pub holm: Called,
    /// Tasks whose p by Benjamini's and Hochberg's method is at most 0.05.
    pub benjamini_hochberg: Called,
    /// Every task with numbers, in the order of the plan.
    pub tests: Vec<TaskTest>,
}

/// How many tasks are called different, by direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Called {
    /// Faster.
    pub faster: u32,
    /// Slower.
    pub slower: u32,
}

/// The test of one task in a family of tasks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskTest {
    /// The task.
    pub task: TaskId,
    /// The mean log ratio, whose sign says which way it differs.
    pub estimate: f64,
    /// The p over all looks taken: the smallest error over the whole design with which a look would have found a
    /// difference; 1 where the differences drift.
    pub p: f64,
    /// The same inside the task: several agents by Holm's method, and no smaller than the p of what must be shown before it.
    pub in_task: f64,
    /// `in_task` by Holm's method over the tasks.
    pub holm: f64,
    /// `in_task` by Benjamini's and Hochberg's method over the tasks.
    pub benjamini_hochberg: f64,
}

spelt_enum!(
    /// What agents are ranked by.
    RankMeasure {
        /// The mean log ratio to the baseline, failures counted as no gain.
        SpeedUp = "speed-up",
        /// Successes: better than the baseline.
        BetterThanBaseline = "better-than-baseline",
        /// Successes: at least as good as the human commit.
        AtLeastHuman = "at-least-human",
    }
);

/// How the agents compare by one measure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RankTable {
    /// The measure.
    pub by: RankMeasure,
    /// The agents, best first.
    pub rows: Vec<RankRow>,
    /// Stretches of the table in which no two agents can be told apart, each as long as can be.
    pub groups: Vec<Vec<ArmId>>,
    /// Every pair of agents.
    pub pairs: Vec<RankPair>,
}

/// One agent's place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RankRow {
    /// The agent.
    pub arm: ArmId,
    /// The mean log ratio, or the rate of success, over the agent's own tasks.
    pub value: f64,
    /// Over how many tasks.
    pub tasks: u32,
    /// The best rank that isn't ruled out: 1 and how many agents are proven to be better.
    pub best: u32,
    /// The worst rank that isn't ruled out.
    pub worst: u32,
}

/// Two agents over the tasks that both have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RankPair {
    /// One agent.
    pub of: ArmId,
    /// The other.
    pub against: ArmId,
    /// How many tasks both have.
    pub tasks: u32,
    /// The mean log ratio of one to the other, or the difference of their rates; absent without a common task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<f64>,
    /// The lower end of the 95 % interval of a mean log ratio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Its upper end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// Of rates: tasks in which only the one succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_only: Option<u32>,
    /// Of rates: tasks in which only the other succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second_only: Option<u32>,
    /// The two-sided p of no difference; absent where nothing can be tested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p: Option<f64>,
    /// The same by Holm's method over all pairs of the table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holm: Option<f64>,
}

spelt_enum!(
    /// A rule that says whether an agent succeeded at a task.
    ScoringRule {
        /// An earlier system's: one run, at most 5 % worse than the human commit.
        ThresholdFive = "threshold:5%",
        /// An earlier system's: one run, at most 2 % worse than the human commit.
        ThresholdTwo = "threshold:2%",
        /// One run, more than 5 % better than the baseline.
        OverBaselineFive = "over-baseline:5%",
        /// One run, more than 2 % better than the baseline.
        OverBaselineTwo = "over-baseline:2%",
        /// `better` than the baseline.
        BetterThanBaseline = "better-than-baseline",
        /// `better` than the human commit, `equivalent` or `trivial`: a loss as large as the margin is ruled out.
        AtLeastHuman = "at-least-human",
        /// `better` than the human commit.
        BetterThanHuman = "better-than-human",
    }
);

/// What one rule says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleScore {
    /// The rule.
    pub rule: ScoringRule,
    /// Of each agent: its successes among the tasks that the rule can be applied to.
    pub agents: Vec<AgentScore>,
    /// Of an agent with an empty patch; absent where nothing tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub null_agent: Option<NullScore>,
}

/// An agent's successes by one rule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentScore {
    /// The agent.
    pub arm: ArmId,
    /// The rate.
    pub rate: Rate,
    /// Of a rule on single runs: successes that the verdict of all blocks doesn't share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unconfirmed: Option<u32>,
}

spelt_enum!(
    /// What the score of an agent with an empty patch is taken from.
    NullBasis {
        /// The baseline's launch in each block against the human commit's.
        SingleRuns = "single-runs",
        /// The baseline's launches of neighbouring blocks against each other, both ways.
        NeighbouringBaselines = "neighbouring-baselines",
        /// Simulated runs of each task's design without a difference, in the spread of its own block differences.
        Simulated = "simulated",
        /// The verdict on the human commit: the baseline against it is the same, the other way round.
        HumanVerdict = "human-verdict",
    }
);

/// What a rule says of an agent with an empty patch.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NullScore {
    /// The expected share of successes.
    pub expected: f64,
    /// Over how many tasks.
    pub trials: u32,
    /// What it is taken from.
    pub basis: NullBasis,
}

/// One agent in one task by the rules of an earlier system and by its verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SideBySide {
    /// The task.
    pub task: TaskId,
    /// The agent.
    pub arm: ArmId,
    /// The difference to the human commit in the first block in which both count, in percent, positive is better.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference_pct: Option<f64>,
    /// The class by 5 %.
    pub five: HardClass,
    /// The class by 2 %.
    pub two: HardClass,
    /// The verdict against the human commit.
    pub verdict: Verdict,
}
