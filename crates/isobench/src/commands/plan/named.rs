//! Which task of a plan somebody means by a name, a commit or the beginning of one.

use std::collections::BTreeSet;

use isobench_plan::nearest::nearest;
use isobench_schema::ids::TaskId;
use isobench_schema::plan::Plan;

use crate::exit::{CommandError, Exit};

/// The fewest digits by which a commit is named.
const FEWEST: usize = 4;

/// How many tasks an error lists.
const LISTED: usize = 8;

/// Returns the task that `text` names: its id, else its human commit, else its baseline, whole or the beginning, as long as
/// it is only one.
///
/// # Errors
/// Returns an error that lists the tasks it may be, or names the nearest one, if it isn't exactly one.
pub(super) fn task(plan: &Plan, text: &str) -> Result<TaskId, CommandError> {
    let ids = ids(plan);
    if let Some(id) = ids.iter().find(|id| id.as_str() == text) {
        return Ok((*id).clone());
    }
    let of = |start: fn(&Named<'_>) -> Option<String>| -> Vec<&TaskId> {
        let named = ids.iter().map(|&id| Named { plan, id });
        named.filter(|named| start(named).is_some_and(|name| name.starts_with(text))).map(|named| named.id).collect()
    };
    if text.len() >= FEWEST {
        for start in [human as fn(&Named<'_>) -> Option<String>, suffix, whole_id, baseline] {
            let found = of(start);
            if let [only] = found.as_slice() {
                return Ok((*only).clone());
            }
            if !found.is_empty() {
                return Err(ambiguous(text, &found));
            }
        }
    }
    Err(unknown(plan, text, &ids))
}

struct Named<'p> {
    plan: &'p Plan,
    id: &'p TaskId,
}

fn ids(plan: &Plan) -> BTreeSet<&TaskId> {
    let planned = plan.tasks.iter().map(|task| &task.id);
    let excluded = plan.exclusions.iter().map(|exclusion| &exclusion.task);
    planned.chain(excluded).chain(plan.assessments.iter().map(|assessment| &assessment.task)).collect()
}

fn human(named: &Named<'_>) -> Option<String> {
    let assessment = named.plan.assessments.iter().find(|assessment| assessment.task == *named.id)?;
    Some(assessment.human.as_ref()?.commit.to_string())
}

fn baseline(named: &Named<'_>) -> Option<String> {
    let assessment = named.plan.assessments.iter().find(|assessment| assessment.task == *named.id)?;
    Some(assessment.baseline.as_ref()?.commit.to_string())
}

/// The commit in a task's name, for a task whose revisions aren't known.
fn suffix(named: &Named<'_>) -> Option<String> {
    named.id.as_str().rsplit_once('-').map(|(_, suffix)| suffix.to_owned())
}

fn whole_id(named: &Named<'_>) -> Option<String> {
    Some(named.id.to_string())
}

fn ambiguous(text: &str, found: &[&TaskId]) -> CommandError {
    let names: Vec<&str> = found.iter().take(LISTED).map(|id| id.as_str()).collect();
    let more = found.len().saturating_sub(LISTED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    CommandError::new(Exit::Usage, format!("`{text}` may be {} tasks: {}{more}", found.len(), names.join(", ")))
        .hint("give more of the name or of the commit")
}

fn unknown(plan: &Plan, text: &str, ids: &BTreeSet<&TaskId>) -> CommandError {
    let humans = ids.iter().filter_map(|&id| Some((human(&Named { plan, id })?, id)));
    // A commit is compared at the length at which it was given.
    let commits: Vec<(String, &&TaskId)> =
        humans.map(|(commit, id)| (commit.get(..text.len()).unwrap_or(&commit).to_owned(), id)).collect();
    let suffixes: Vec<(String, &&TaskId)> =
        ids.iter().filter_map(|id| Some((suffix(&Named { plan, id })?, id))).collect();
    let names = ids.iter().map(|id| id.as_str());
    let candidates = names.chain(commits.iter().chain(&suffixes).map(|(name, _)| name.as_str()));
    let near = nearest(text, candidates).map(|near| {
        let of_commit = commits.iter().chain(&suffixes).find(|(name, _)| name == near);
        of_commit.map_or_else(|| near.to_owned(), |(_, id)| id.to_string())
    });
    let hint = match near {
        Some(near) => format!("did you mean `{near}`? `isobench plan` lists all"),
        None => "`isobench plan` lists them".to_owned(),
    };
    CommandError::new(Exit::Usage, format!("the plan has no task `{text}`")).hint(hint)
}
