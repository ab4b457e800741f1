//! The funnel of a plan: how far the tasks of a dataset come by what is known before a device is used, why, and at what
//! cost. It counts and adds up what the assessments say, and knows nothing of its own.

mod builds;
mod costs;
mod reasons;

use isobench_schema::assessment::{Assessment, PlannedFor, Standing};
use isobench_schema::ids::TaskId;

use crate::text::clean;
use crate::words::TaskStandingWord;

pub use builds::Builds;
pub use costs::{CostLine, Costs, Money, Sum};
pub(crate) use costs::{EACH_TASK, lowest_rung};
pub use reasons::ReasonGroup;
pub(crate) use reasons::alike;

/// How far the tasks come, as people see it. All text is on one line and free of control characters.
#[derive(Debug, Clone, PartialEq)]
pub struct Funnel {
    /// How many tasks there are.
    pub tasks: usize,
    /// Every standing in its order, best first, also those that no task has.
    pub rows: Vec<FunnelRow>,
    /// How many native builds the arms need; absent if no task's revisions are known.
    pub builds: Option<Builds>,
    /// What the tasks that can run cost.
    pub costs: Costs,
    /// What would open more tasks, or running them again, and at what cost: a sentence each.
    pub openings: Vec<String>,
}

/// One standing.
#[derive(Debug, Clone, PartialEq)]
pub struct FunnelRow {
    /// The standing in words.
    pub standing: TaskStandingWord,
    /// How many tasks stand there.
    pub count: usize,
    /// Their share of all tasks, such as `39 %`.
    pub share: String,
    /// Why they stand there, by each task's weightiest reason, the commonest first: every task is in one group.
    pub reasons: Vec<ReasonGroup>,
    /// What speaks against them besides, the commonest first. A task may be in several groups, or in none.
    pub further: Vec<ReasonGroup>,
}

/// Returns the funnel of some tasks, which are reckoned for these devices if they are known.
pub fn funnel(assessments: &[Assessment], planned_for: Option<&PlannedFor>) -> Funnel {
    let row = |&standing: &Standing| {
        let of: Vec<&Assessment> = assessments.iter().filter(|item| item.standing == standing).collect();
        FunnelRow {
            standing: TaskStandingWord::of(standing),
            count: of.len(),
            share: share(of.len(), assessments.len()),
            reasons: reasons::first(&of),
            further: reasons::further(&of),
        }
    };
    let costs = costs::costs(assessments.iter().filter(|item| can_run(item.standing)));
    Funnel {
        tasks: assessments.len(),
        rows: Standing::ALL.iter().map(row).collect(),
        builds: builds::builds(assessments),
        openings: costs::openings(assessments, planned_for, &costs),
        costs,
    }
}

/// Returns whether a task of that standing is run as it is planned.
pub(crate) fn can_run(standing: Standing) -> bool {
    match standing {
        Standing::AsIs | Standing::Repaired | Standing::Build => true,
        Standing::MoreDevices | Standing::Cannot => false,
    }
}

fn share(part: usize, whole: usize) -> String {
    if whole == 0 {
        return "–".to_owned();
    }
    let percent = crate::number::count(part) / crate::number::count(whole) * 100.0;
    if part > 0 && percent < 1.0 { "<1 %".to_owned() } else { format!("{percent:.0} %") }
}

/// Returns how a task is named in lists: by its commit's first eight digits where the id ends in them, as the datasets do.
pub(crate) fn short_name(task: &TaskId) -> String {
    let id = clean(task.as_str());
    let commit = id.rsplit_once('-').map(|(_, last)| last).filter(|last| {
        last.len() == 8 && last.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    });
    commit.map_or_else(|| id.clone(), str::to_owned)
}

/// Returns the first of some names, and how many more there are.
pub(crate) fn some_of(names: &[String], most: usize) -> String {
    let shown: Vec<&str> = names.iter().take(most).map(String::as_str).collect();
    match names.len().saturating_sub(most) {
        0 => shown.join(", "),
        more => format!("{} +{more} more", shown.join(", ")),
    }
}
