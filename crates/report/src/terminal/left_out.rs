//! What a plan of commits leaves out although it can run, in a few lines.

use std::collections::{BTreeMap, BTreeSet};

use isobench_schema::ids::TaskId;
use isobench_schema::plan::{Exclusion, ExclusionReason, Plan};

use super::Style;
use crate::funnel::{alike, can_run, short_name, some_of};
use crate::number::counted;

/// How many tasks a group names.
const NAMED: usize = 5;

/// Returns why tasks that can run aren't planned here, or `None` if all of them are.
pub(super) fn sentence(plan: &Plan) -> Option<String> {
    let planned: BTreeSet<&TaskId> = plan.tasks.iter().map(|task| &task.id).collect();
    let mut why: BTreeMap<&TaskId, ExclusionReason> = BTreeMap::new();
    for item in plan.exclusions.iter().filter(|item| item.arm.is_none()) {
        why.entry(&item.task).or_insert(item.reason);
    }
    let left = plan.assessments.iter().filter(|item| can_run(item.standing) && !planned.contains(&item.task));
    let mut counts: BTreeMap<Option<ExclusionReason>, usize> = BTreeMap::new();
    for item in left {
        *counts.entry(why.get(&item.task).copied()).or_default() += 1;
    }
    let all: usize = counts.values().sum();
    if all == 0 {
        return None;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(reason, count)| (std::cmp::Reverse(*count), *reason));
    let parts: Vec<String> = counts.into_iter().map(|(reason, count)| format!("{count} {}", phrase(reason))).collect();
    let verb = if all == 1 { "is" } else { "are" };
    Some(format!("{} that can run {verb} left out here: {}", counted(number(all), "task"), parts.join(", ")))
}

fn phrase(reason: Option<ExclusionReason>) -> &'static str {
    match reason {
        None => "for which the plan gives no reason",
        Some(ExclusionReason::NotChosen) => "not asked for",
        Some(ExclusionReason::RevisionNotFound) => "with a revision that isn't found",
        Some(ExclusionReason::RepositoryUnavailable) => "with a repository that can't be read",
        Some(ExclusionReason::MachineTooSmall) => "too large for this machine",
        Some(ExclusionReason::ToolMissing) => "with a program missing on this machine",
        Some(ExclusionReason::InputMissing) => "with a file missing",
        Some(ExclusionReason::Contradiction) => "with a contradiction",
        Some(ExclusionReason::CannotRun) => "that can't be measured as they stand",
        Some(ExclusionReason::ClientLacks) => "with a workload that isobench's client can't run",
        Some(ExclusionReason::IsolationMissing) => "without the isolation that agent patches need",
    }
}

/// Appends what is left out for another reason than a standing, which the funnel tells: a line for each reason.
pub(super) fn grouped(out: &mut String, plan: &Plan, style: Style) {
    let told: BTreeSet<&TaskId> =
        plan.assessments.iter().filter(|item| !can_run(item.standing)).map(|item| &item.task).collect();
    let (mut tasks, mut arms) = (0, 0);
    let mut others: BTreeMap<ExclusionReason, Vec<&Exclusion>> = BTreeMap::new();
    for item in &plan.exclusions {
        match (item.reason, item.arm.is_some()) {
            (ExclusionReason::NotChosen, false) => tasks += 1,
            (ExclusionReason::NotChosen, true) => arms += 1,
            (_, false) if told.contains(&item.task) => {}
            (_, _) => others.entry(item.reason).or_default().push(item),
        }
    }
    for (reason, items) in others {
        for group in alike(items.into_iter().map(|item| (name(item), item.message.as_str()))) {
            let text = format!("({reason}) {}: {}", group.reason, some_of(&group.tasks, NAMED));
            style.paragraph(out, &format!("  {:>5}  ", group.tasks.len()), &text);
        }
    }
    for (count, what) in [(tasks, "task"), (arms, "arm")] {
        if count > 0 {
            let verb = if count == 1 { "was" } else { "were" };
            style.paragraph(out, "  ", &format!("{} {verb} not asked for", counted(number(count), what)));
        }
    }
}

fn name(item: &Exclusion) -> String {
    let task = short_name(&item.task);
    item.arm.as_ref().map_or_else(|| task.clone(), |arm| format!("{task}/{arm}"))
}

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
