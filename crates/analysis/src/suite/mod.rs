//! From the judgements of a run's tasks to what they say together.
//!
//! - **Headlines** (`means`): for each kind of contrast the geometric mean of the speed-ups over tasks, with an interval over
//!   tasks, and the gain that is proven task by task.
//! - **Rates** (`rates`): how often an arm succeeded, of all tasks and of those that infrastructure didn't take away.
//! - **Claims** (`claims`): which tasks differ, with the error held over all of them.
//! - **Ranks** (`ranks`): which agents can be told apart.
//! - **Rules** (`rules`): what rules on single runs say instead, and what each rule says of an agent with an empty patch.
//!
//! Everything here follows from verdicts, estimates and block differences of tasks; no launch is looked at again.

mod claims;
mod means;
mod null_agent;
mod ranks;
mod rates;
mod rules;

use std::collections::{BTreeMap, BTreeSet};

use isobench_schema::ids::{ArmId, TaskId};
use isobench_schema::plan::{ExclusionReason, Plan, PlannedTask};
use isobench_schema::suite::{Rate, Suite, SuiteTasks};
use isobench_schema::verdict::{Contrast, Standing, TaskJudgement, Verdict};

use crate::stats::wilson_interval;

/// What is called different, and 1 less the coverage of every interval here.
const LEVEL: f64 = 0.05;

/// One task with its plan.
#[derive(Debug, Clone, Copy)]
struct Row<'a> {
    planned: &'a PlannedTask,
    judged: &'a TaskJudgement,
}

impl<'a> Row<'a> {
    /// Returns the contrast of two arms, if the task has it.
    fn contrast(self, of: &ArmId, against: &ArmId) -> Option<&'a Contrast> {
        self.judged.contrasts.iter().find(|contrast| contrast.of == *of && contrast.against == *against)
    }

    /// Returns an arm's own contrast: against the baseline, or else whichever it has.
    fn own(self, arm: &ArmId) -> Option<&'a Contrast> {
        let any = || self.judged.contrasts.iter().find(|contrast| contrast.of == *arm);
        self.contrast(arm, &ArmId::Baseline).or_else(any)
    }

    /// Returns whether an agent's arm failed by itself, broke a check, or has no patch: it left the baseline as it was.
    fn left_the_baseline(self, arm: &ArmId) -> bool {
        self.own(arm).is_some_and(|contrast| match contrast.verdict {
            Verdict::AgentFailed | Verdict::NotRun => true,
            Verdict::Invalid => contrast.charged_to.as_ref() == Some(arm),
            Verdict::Better
            | Verdict::Worse
            | Verdict::Trivial
            | Verdict::Equivalent
            | Verdict::Inconclusive
            | Verdict::NothingToBeat
            | Verdict::NotMeasured => false,
        })
    }
}

/// Two arms that are compared in some tasks. In the order of what must be shown first: human against baseline, agents against
/// baseline, agents against human.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    against: ArmId,
    of: ArmId,
}

/// Everything that a suite is made from.
struct Tasks<'a> {
    plan: &'a Plan,
    rows: Vec<Row<'a>>,
    /// The kinds of contrasts, and how many tasks have each.
    kinds: BTreeMap<Kind, u32>,
    /// The tasks that were asked for and left out whole.
    left_out: u32,
    /// Arms that were asked for and left out of their task.
    arms_left_out: BTreeSet<(&'a TaskId, &'a ArmId)>,
}

impl<'a> Tasks<'a> {
    fn of(plan: &'a Plan, tasks: &'a [TaskJudgement]) -> Self {
        let planned: BTreeMap<&TaskId, &PlannedTask> = plan.tasks.iter().map(|task| (&task.id, task)).collect();
        let row = |judged: &'a TaskJudgement| Some(Row { planned: planned.get(&judged.id)?, judged });
        let rows: Vec<Row<'a>> = tasks.iter().filter_map(row).collect();
        let mut kinds: BTreeMap<Kind, u32> = BTreeMap::new();
        for contrast in rows.iter().flat_map(|row| &row.judged.contrasts) {
            let kind = Kind { against: contrast.against.clone(), of: contrast.of.clone() };
            *kinds.entry(kind).or_default() += 1;
        }
        let asked = || plan.exclusions.iter().filter(|exclusion| exclusion.reason != ExclusionReason::NotChosen);
        let whole: BTreeSet<&TaskId> =
            asked().filter(|exclusion| exclusion.arm.is_none()).map(|exclusion| &exclusion.task).collect();
        let arms_left_out = asked().filter_map(|exclusion| Some((&exclusion.task, exclusion.arm.as_ref()?))).collect();
        let left_out = counted(whole.iter().filter(|id| !planned.contains_key(**id)).count());
        Self { plan, rows, kinds, left_out, arms_left_out }
    }

    /// Returns the agents of all tasks, in the order of their names.
    fn agents(&self) -> BTreeSet<&ArmId> {
        self.kinds.keys().map(|kind| &kind.of).filter(|arm| matches!(arm, ArmId::Agent(_))).collect()
    }

    /// Returns each task that has the contrast.
    fn contrasts<'k>(&'k self, kind: &'k Kind) -> impl Iterator<Item = (Row<'a>, &'a Contrast)> {
        self.rows.iter().filter_map(|row| Some((*row, row.contrast(&kind.of, &kind.against)?)))
    }

    /// Returns whether a task was run with a human arm.
    fn has_human(&self) -> bool {
        self.kinds.keys().any(|kind| kind.of == ArmId::Human)
    }

    /// Returns how the tasks stand.
    fn counts(&self) -> SuiteTasks {
        let of = |standing| counted(self.rows.iter().filter(|row| row.judged.standing == standing).count());
        SuiteTasks {
            planned: counted(self.rows.len()),
            left_out: self.left_out,
            rankable: of(Standing::Rankable),
            human_gain_unproven: of(Standing::HumanGainUnproven),
            nothing_to_beat: of(Standing::NothingToBeat),
            not_measured: of(Standing::NotMeasured),
            not_asked: of(Standing::NotAsked),
        }
    }
}

/// Returns what the tasks of a run say together, or `None` if no kind of contrast is in two of them.
pub fn of(plan: &Plan, tasks: &[TaskJudgement]) -> Option<Suite> {
    let tasks = Tasks::of(plan, tasks);
    if tasks.kinds.values().all(|count| *count < 2) {
        return None;
    }
    let rates = rates::of(&tasks);
    let (rules, side_by_side) = rules::of(&tasks, &rates);
    Some(Suite {
        tasks: tasks.counts(),
        headlines: means::headlines(&tasks),
        claims: claims::of(&tasks),
        ranks: ranks::of(&tasks),
        rates,
        rules,
        side_by_side,
        sentinels: sentinels(&tasks),
    })
}

/// Returns how often a sentinel was found to differ from the baseline that it is.
fn sentinels(tasks: &Tasks<'_>) -> Option<Rate> {
    let all = || tasks.rows.iter().filter_map(|row| row.judged.sentinel.as_ref());
    all().next()?;
    Some(rate(all().map(|found| found.rejected).sum(), all().map(|found| found.tested).sum()))
}

/// Returns a rate with its interval.
fn rate(successes: u32, trials: u32) -> Rate {
    let interval = wilson_interval(u64::from(successes), u64::from(trials), 1.0 - LEVEL);
    Rate { successes, trials, low: interval.map(|(low, _)| low), high: interval.map(|(_, high)| high) }
}

fn counted(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Returns the log ratio of a contrast if a look was reached with it.
fn estimate(contrast: &Contrast) -> Option<f64> {
    contrast.estimate.filter(|estimate| estimate.is_finite() && contrast.p.is_some())
}
