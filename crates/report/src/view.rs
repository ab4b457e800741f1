//! The view model: a judgement with every number formatted once, shared by terminal, Markdown and HTML.

mod build;

use isobench_schema::coverage::Coverage;

use crate::words::{StandingWord, VerdictWord};

pub use build::view;
pub(crate) use build::{deviation_view, devices, exclusion_view, problem_view, workload};

/// A judgement as people see it. All text is on one line and free of control characters.
#[derive(Debug, Clone, PartialEq)]
pub struct View {
    /// The run.
    pub run: String,
    /// The first digits of the plan's digest.
    pub plan: String,
    /// The version of the rules.
    pub rules: String,
    /// What the plan says of the whole run: dataset, isolation and the like, if the plan was given.
    pub facts: Vec<String>,
    /// Contrasts by verdict, those that occur, in the verdicts' order.
    pub counts: Vec<VerdictCount>,
    /// The tasks.
    pub tasks: Vec<TaskView>,
    /// What wasn't run.
    pub exclusions: Vec<ExclusionView>,
    /// What couldn't be read.
    pub problems: Vec<ProblemView>,
    /// How far the arms came and what a retry could change, if any was lost on the way.
    pub coverage: Option<Coverage>,
}

/// How many contrasts have a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VerdictCount {
    /// The verdict.
    pub verdict: VerdictWord,
    /// Of the human arm against the baseline.
    pub human_against_baseline: u32,
    /// Of an agent against the baseline.
    pub agent_against_baseline: u32,
    /// Of an agent against the human arm.
    pub agent_against_human: u32,
}

/// One task.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskView {
    /// Its name.
    pub id: String,
    /// One line for people.
    pub title: Option<String>,
    /// Whether it can rank agents.
    pub standing: StandingWord,
    /// The result in one line.
    pub headline: String,
    /// The primary metric's name.
    pub metric: String,
    /// Its unit.
    pub unit: &'static str,
    /// Which way it improves, in words.
    pub direction: &'static str,
    /// The margin, such as `2 %`.
    pub margin: String,
    /// The margin as a log ratio, for plots.
    pub margin_log: f64,
    /// How far the blocks have come, in words.
    pub blocks: String,
    /// The most blocks of the design.
    pub planned_blocks: u32,
    /// After how many blocks it is looked at, as far as that is known: those of the plan, or those that were taken.
    pub planned_looks: Vec<u32>,
    /// What the sentinel shows, in words, if there is one.
    pub sentinel: Option<String>,
    /// The blocks on the plot's axis: every complete one, and every one with a value.
    pub block_axis: Vec<u32>,
    /// What is run, in words, if the plan was given.
    pub workload: Option<String>,
    /// `†` if deviations apply to the numbers, else nothing.
    pub mark: &'static str,
    /// Every contrast.
    pub contrasts: Vec<ContrastView>,
    /// Every arm, in the order baseline, human, agents.
    pub arms: Vec<ArmView>,
    /// Metrics that at least one arm has a mean of; the arms' `means` follow this order.
    pub metrics: Vec<MetricView>,
    /// Failures and incidents of every arm.
    pub failures: Vec<FailureView>,
    /// Differences from what the task asks.
    pub deviations: Vec<DeviationView>,
    /// Launches that are not comparable with the others.
    pub unlike: Vec<String>,
    /// Checks that launches broke, with how many of them.
    pub checks: Vec<CheckView>,
    /// What a person has confirmed.
    pub confirmations: Vec<String>,
}

/// A check that launches of an arm broke.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckView {
    /// The arm.
    pub arm: String,
    /// The check's name.
    pub check: &'static str,
    /// How many launches broke it.
    pub launches: u32,
    /// For how many of them it is why they don't count.
    pub decided: u32,
    /// For how many of them it is why their block ran again.
    pub spoilt: u32,
    /// The numbers of the first one, and its block.
    pub first: String,
    /// Whether a person has confirmed it.
    pub confirmed: bool,
}

impl CheckView {
    /// Returns the check with its counts in one line.
    pub fn sentence(&self) -> String {
        let Self { arm, check, launches, decided, spoilt, first, .. } = self;
        let of = crate::number::counted(*launches, "launch");
        let effect = match (self.confirmed, *decided, *spoilt) {
            (true, _, _) => "confirmed by a person".to_owned(),
            (false, 0, 0) => "something else decides".to_owned(),
            (false, 0, spoilt) => format!("for {spoilt} of them the block ran again"),
            (false, decided, 0) => format!("for {decided} of them why they don't count"),
            (false, decided, spoilt) => {
                format!("for {decided} of them why they don't count, for {spoilt} the block ran again")
            }
        };
        format!("{arm}: {check} in {of}, {effect}; first in {first}")
    }
}

/// The name of a metric with its unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetricView {
    /// vLLM's name.
    pub name: &'static str,
    /// The unit.
    pub unit: &'static str,
}

/// What kind of pair a contrast is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pair {
    /// The human arm against the baseline.
    HumanAgainstBaseline,
    /// An agent against the baseline.
    AgentAgainstBaseline,
    /// An agent against the human arm.
    AgentAgainstHuman,
    /// Any other pair.
    Other,
}

/// One contrast.
#[derive(Debug, Clone, PartialEq)]
pub struct ContrastView {
    /// The arm that is asked about.
    pub of: String,
    /// The arm that it is compared with.
    pub against: String,
    /// What kind of pair they are.
    pub pair: Pair,
    /// The verdict.
    pub verdict: VerdictWord,
    /// The estimate, such as `1.24x`.
    pub speedup: Option<String>,
    /// The estimate as a percentage, such as `+24.1 %`.
    pub percent: Option<String>,
    /// The interval, such as `1.19x to 1.30x`.
    pub interval: Option<String>,
    /// Student's p.
    pub p: Option<String>,
    /// The exact sign-flip p.
    pub sign_flip_p: Option<String>,
    /// The lower end of the interval, if it is a gain.
    pub proven: Option<String>,
    /// Blocks that count.
    pub blocks: u32,
    /// The verdict in one sentence.
    pub reason: String,
    /// The arm that an invalidity is charged to.
    pub charged_to: Option<String>,
    /// What the plot shows.
    pub plot: IntervalPlot,
    /// Every look, in order.
    pub looks: Vec<LookView>,
    /// The finite difference of each block that counts.
    pub block_differences: Vec<(u32, f64)>,
}

/// One look at a contrast.
#[derive(Debug, Clone, PartialEq)]
pub struct LookView {
    /// Its number, from 1.
    pub number: u32,
    /// The blocks of the look as planned.
    pub planned: u32,
    /// The differences that count.
    pub blocks: u32,
    /// The estimate, such as `1.24x`.
    pub speedup: Option<String>,
    /// The interval, such as `1.19x to 1.30x`.
    pub interval_text: Option<String>,
    /// Student's p.
    pub p: Option<String>,
    /// The level that p is held to.
    pub level: String,
    /// What it says.
    pub decision: &'static str,
    /// Whether it is the look that decided.
    pub decides: bool,
    /// The estimate as a finite log ratio.
    pub estimate: Option<f64>,
    /// The interval as finite log ratios.
    pub interval: Option<(f64, f64)>,
}

impl ContrastView {
    /// Returns the contrast's name, such as `human vs baseline`.
    pub fn name(&self) -> String {
        format!("{} vs {}", self.of, self.against)
    }

    /// Returns the reason with what no column shows: charge, proven gain, sign-flip p.
    pub fn explanation(&self) -> String {
        let mut notes = Vec::new();
        notes.extend(self.charged_to.as_ref().map(|arm| format!("charged to {arm}")));
        notes.extend(self.proven.as_ref().map(|gain| format!("proven gain {gain}")));
        notes.extend(self.sign_flip_p.as_ref().map(|p| format!("sign-flip p {p}")));
        if notes.is_empty() { self.reason.clone() } else { format!("{} ({})", self.reason, notes.join("; ")) }
    }
}

/// The finite numbers of a contrast's plot, as log ratios (positive is better).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct IntervalPlot {
    /// The estimate.
    pub estimate: Option<f64>,
    /// The interval.
    pub interval: Option<(f64, f64)>,
    /// The difference in each block.
    pub differences: Vec<f64>,
}

/// One arm of a task.
#[derive(Debug, Clone, PartialEq)]
pub struct ArmView {
    /// Its name.
    pub name: String,
    /// The mean of the primary metric with its unit.
    pub mean: Option<String>,
    /// The mean of each of the task's metrics.
    pub means: Vec<Option<String>>,
    /// Launches that count.
    pub valid: u32,
    /// Launches in complete blocks.
    pub launches: u32,
    /// The primary metric in each block that counts: block, value, and the value as text.
    pub points: Vec<PointView>,
    /// Complete blocks in which the arm has no value that counts.
    pub missing: Vec<u32>,
}

/// The primary metric in one block.
#[derive(Debug, Clone, PartialEq)]
pub struct PointView {
    /// The block, from 0.
    pub block: u32,
    /// The value in the metric's unit, finite.
    pub value: f64,
    /// The value as text.
    pub text: String,
}

/// Whether a failure cost a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// The launch doesn't count.
    Failure,
    /// The launch counts all the same.
    Incident,
}

/// A failure of an arm.
#[derive(Debug, Clone, PartialEq)]
pub struct FailureView {
    /// Whether it cost launches.
    pub kind: FailureKind,
    /// The arm.
    pub arm: String,
    /// How often, such as `6 launches`.
    pub launches: String,
    /// The class.
    pub class: &'static str,
    /// The stage.
    pub stage: &'static str,
    /// One sentence.
    pub message: String,
    /// The check that it breaks, with its numbers.
    pub check: Option<String>,
    /// Why, as its logs say it.
    pub cause: Option<CauseView>,
    /// The lines that show it, most telling first.
    pub evidence: Vec<EvidenceView>,
}

/// Why something failed, as its logs say it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CauseView {
    /// The cause with its class, signature, and whom it speaks against.
    pub text: String,
    /// What would mend it.
    pub fix: String,
}

/// A line of evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvidenceView {
    /// Its place, such as `server.stderr:12`.
    pub place: String,
    /// The text.
    pub text: String,
}

/// A difference from what a task asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviationView {
    /// The kind.
    pub kind: &'static str,
    /// What differs.
    pub subject: String,
    /// What was asked.
    pub asked: String,
    /// What is run.
    pub run: String,
    /// Why.
    pub reason: String,
}

impl DeviationView {
    /// Returns the deviation in one sentence.
    pub fn sentence(&self) -> String {
        format!("{}: {} asked {}, run {} ({})", self.kind, self.subject, self.asked, self.run, self.reason)
    }
}

/// A task or an arm that wasn't run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExclusionView {
    /// The task, and the arm if only one is excluded.
    pub what: String,
    /// The reason.
    pub reason: &'static str,
    /// One sentence.
    pub message: String,
}

/// Something that couldn't be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProblemView {
    /// The file, and the line if known.
    pub place: String,
    /// What is wrong.
    pub message: String,
}
