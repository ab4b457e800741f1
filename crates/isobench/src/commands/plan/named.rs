//! Which task of a plan somebody means by a name, a commit or the beginning of one.

use std::collections::BTreeMap;

use isobench_plan::dataset::Dataset;
use isobench_plan::nearest::nearest;
use isobench_schema::ids::{Revision, TaskId};
use isobench_schema::plan::{Plan, Problem};

use crate::exit::{CommandError, Exit};

/// The fewest digits by which a commit is named.
const FEWEST: usize = 4;

/// How many tasks an error lists.
const LISTED: usize = 8;

/// A task, and what it can be named by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Named<'t> {
    id: &'t TaskId,
    human: Option<&'t str>,
    baseline: Option<&'t str>,
}

/// Returns the task of a plan that `text` names.
///
/// # Errors
/// Returns an error that lists the tasks it may be, or names the nearest one, if it isn't exactly one.
pub(super) fn task(plan: &Plan, text: &str) -> Result<TaskId, CommandError> {
    let named = of_plan(plan);
    find(&named, text)?.ok_or_else(|| unknown(text, &named, &plan.problems))
}

/// Returns the task that `text` names: its id, else its human commit, else its baseline, whole or the beginning, as long as
/// it is only one.
///
/// # Errors
/// Returns an error that lists the tasks it may be, if they are several.
pub(super) fn find(named: &[Named<'_>], text: &str) -> Result<Option<TaskId>, CommandError> {
    if let Some(task) = named.iter().find(|task| task.id.as_str() == text) {
        return Ok(Some(task.id.clone()));
    }
    if text.len() < FEWEST {
        return Ok(None);
    }
    for part in [Part::Human, Part::Suffix, Part::Whole, Part::Baseline] {
        let found: Vec<&TaskId> = named.iter().filter(|task| part.fits(task, text)).map(|task| task.id).collect();
        if let [only] = found.as_slice() {
            return Ok(Some((*only).clone()));
        }
        if !found.is_empty() {
            return Err(ambiguous(text, &found));
        }
    }
    Ok(None)
}

/// What a task can be named by.
#[derive(Debug, Clone, Copy)]
enum Part {
    /// The human commit.
    Human,
    /// The commit in its name, for a task whose revisions aren't known.
    Suffix,
    /// Its name.
    Whole,
    /// The baseline.
    Baseline,
}

impl Part {
    fn of<'t>(self, task: &Named<'t>) -> Option<&'t str> {
        match self {
            Self::Human => task.human,
            Self::Suffix => task.id.as_str().rsplit_once('-').map(|(_, suffix)| suffix),
            Self::Whole => Some(task.id.as_str()),
            Self::Baseline => task.baseline,
        }
    }

    fn fits(self, task: &Named<'_>, text: &str) -> bool {
        match (self, self.of(task)) {
            (_, None) => false,
            // A dataset may give a commit shortened.
            (Self::Human, Some(commit)) => commit.starts_with(text) || text.starts_with(commit),
            (Self::Suffix | Self::Whole | Self::Baseline, Some(name)) => name.starts_with(text),
        }
    }
}

/// Returns every task that the plan names, with what is known of it.
fn of_plan(plan: &Plan) -> Vec<Named<'_>> {
    let planned = plan.tasks.iter().map(|task| &task.id);
    let excluded = plan.exclusions.iter().map(|exclusion| &exclusion.task);
    let named = planned.chain(excluded).map(|id| Named { id, human: None, baseline: None });
    let assessed = plan.assessments.iter().map(|found| Named {
        id: &found.task,
        human: found.human.as_ref().map(|facts| facts.commit.as_str()),
        baseline: found.baseline.as_ref().map(|facts| facts.commit.as_str()),
    });
    let tasks: BTreeMap<&TaskId, Named<'_>> = named.chain(assessed).map(|task| (task.id, task)).collect();
    tasks.into_values().collect()
}

/// Returns every task of a dataset, with what it says of its commits.
pub(super) fn of_dataset(dataset: &Dataset) -> Vec<Named<'_>> {
    let tasks = dataset.tasks.iter().map(|task| Named { id: &task.id, human: None, baseline: None });
    let commits = dataset.commit_tasks.iter().map(|task| Named {
        id: &task.id,
        human: Some(task.commit.as_str()),
        baseline: task.parent.as_ref().map(Revision::as_str),
    });
    tasks.chain(commits).collect()
}

fn ambiguous(text: &str, found: &[&TaskId]) -> CommandError {
    let names: Vec<&str> = found.iter().take(LISTED).map(|id| id.as_str()).collect();
    let more = found.len().saturating_sub(LISTED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    CommandError::new(Exit::Usage, format!("`{text}` may be {} tasks: {}{more}", found.len(), names.join(", ")))
        .hint("give more of the name or of the commit")
}

fn unknown(text: &str, tasks: &[Named<'_>], problems: &[Problem]) -> CommandError {
    let error = CommandError::new(Exit::Usage, format!("the plan has no task `{text}`"));
    // A commit is compared at the length at which it was given.
    let cut = |commit: &'_ str| commit.get(..text.len()).unwrap_or(commit).to_owned();
    let of = |part: Part| tasks.iter().filter_map(move |task| Some((cut(part.of(task)?), task.id)));
    let commits: Vec<(String, &TaskId)> = of(Part::Human).chain(of(Part::Suffix)).collect();
    let names = tasks.iter().map(|task| task.id.as_str());
    let candidates = names.chain(commits.iter().map(|(name, _)| name.as_str()));
    let near = nearest(text, candidates).map(|near| {
        let of_commit = commits.iter().find(|(name, _)| name == near);
        of_commit.map_or_else(|| near.to_owned(), |(_, id)| id.to_string())
    });
    // It may be in a file that could not be read.
    let unread = problems.first().map(|problem| {
        let line = problem.line.map(|line| format!(":{line}")).unwrap_or_default();
        format!("{}{line} could not be read: {}", problem.file, problem.message)
    });
    error.hint(match (near, unread) {
        (Some(near), _) => format!("did you mean `{near}`? `isobench plan` lists all"),
        (None, Some(unread)) => unread,
        (None, None) => "`isobench plan` lists them".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use isobench_schema::assessment::Assessment;
    use isobench_schema::environment::Isolation;
    use isobench_schema::ids::Digest;
    use serde_json::json;

    use super::*;

    fn assessment((id, human, baseline): (&str, Option<&str>, Option<&str>)) -> Assessment {
        let revision = |start: Option<&str>| {
            start.map(|start| {
                json!({ "commit": format!("{start:0<40}"), "committed": "2024-11-20T12:00:00Z", "subject": "x", "source": "git" })
            })
        };
        serde_json::from_value(json!({
            "task": id, "standing": "cannot-run", "reasons": [], "baseline": revision(baseline), "human": revision(human),
            "findings": [], "repairs": [], "ladder": {}, "recipes": [],
        }))
        .unwrap()
    }

    fn plan() -> Plan {
        let tasks = [
            ("vllm-8c1e77fb", Some("8c1e77fb01"), Some("5fc5ce0fe4")),
            ("vllm-98f47f2a", Some("98f47f2a40"), Some("8c1e77fb01")),
            ("vllm-98f40000", Some("98f4000055"), None),
            ("vllm-0d243f2a", None, None),
        ];
        Plan {
            planner: "test".to_owned(),
            dataset: "test".to_owned(),
            facts: Digest::of(b""),
            seed: 1,
            isolation: Isolation::None,
            container: None,
            allow_unisolated: false,
            tasks: Vec::new(),
            exclusions: Vec::new(),
            problems: Vec::new(),
            assessments: tasks.map(assessment).to_vec(),
            planned_for: None,
        }
    }

    #[test]
    fn a_task_is_named_by_its_id_its_commit_or_the_beginning_of_one() {
        for (text, expected) in [
            ("vllm-98f47f2a", "vllm-98f47f2a"),
            ("98f47f2a40000000000000000000000000000000", "vllm-98f47f2a"),
            ("98f47", "vllm-98f47f2a"),
            // It is the baseline of another task too; the human commit comes first.
            ("8c1e77fb", "vllm-8c1e77fb"),
            ("5fc5ce", "vllm-8c1e77fb"),
            ("0d24", "vllm-0d243f2a"),
            ("vllm-8c", "vllm-8c1e77fb"),
        ] {
            assert_eq!(task(&plan(), text).unwrap().as_str(), expected, "{text}");
        }
    }

    #[test]
    fn what_isnt_one_task_is_an_error_that_leads_on() {
        for (text, message, hint) in [
            ("98f4", "`98f4` may be 2 tasks: vllm-98f40000, vllm-98f47f2a", "give more of the name or of the commit"),
            ("98f47f2b", "the plan has no task `98f47f2b`", "did you mean `vllm-98f47f2a`? `isobench plan` lists all"),
            (
                "vllm-8c1e77fd",
                "the plan has no task `vllm-8c1e77fd`",
                "did you mean `vllm-8c1e77fb`? `isobench plan` lists all",
            ),
            ("zzzzzzzz", "the plan has no task `zzzzzzzz`", "`isobench plan` lists them"),
        ] {
            let error = task(&plan(), text).unwrap_err();
            assert_eq!((error.message.as_str(), error.hint.as_deref()), (message, Some(hint)));
        }
        let mut plan = plan();
        let (file, message) = ("task.toml".to_owned(), "required key `id` is missing".to_owned());
        plan.problems.push(Problem { file, line: Some(3), column: None, message });
        let error = task(&plan, "zzzzzzzz").unwrap_err();
        assert_eq!(error.hint.as_deref(), Some("task.toml:3 could not be read: required key `id` is missing"));
    }
}
