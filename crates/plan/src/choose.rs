//! Choosing what to run: by task, arm, kind of workload and number.

use std::collections::BTreeSet;

use isobench_schema::ids::{ArmId, Revision, TaskId};
use isobench_schema::plan::{Exclusion, ExclusionReason};
use isobench_schema::task::Task;
use isobench_schema::workload::WorkloadKind;

use crate::dataset::Dataset;
use crate::nearest;

/// What to run of a dataset. The default is all of it. Settings are put over tasks when the dataset is read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Choice {
    /// The tasks; all if empty.
    pub tasks: Vec<TaskId>,
    /// The arms; all if empty.
    pub arms: Vec<ArmId>,
    /// Only workloads of this kind.
    pub kind: Option<WorkloadKind>,
    /// At most so many tasks, the first ones of those chosen otherwise.
    pub limit: Option<usize>,
}

/// Why a choice doesn't fit a dataset.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChooseError {
    /// No task has that name.
    #[error("unknown task `{task}`{hint}")]
    UnknownTask {
        /// The name.
        task: TaskId,
        /// The nearest task, as `; did you mean ..?`, or nothing.
        hint: String,
    },
    /// No task has that arm.
    #[error("unknown arm `{arm}`{hint}")]
    UnknownArm {
        /// The arm.
        arm: ArmId,
        /// The nearest arm, as `; did you mean ..?`, or nothing.
        hint: String,
    },
}

/// Returns the arms that a task names, in the order baseline, human, agents.
pub(crate) fn arms_of(task: &Task) -> impl Iterator<Item = ArmId> {
    let human = task.human.as_ref().map(|_| ArmId::Human);
    let agents = task.agents.iter().map(|agent| ArmId::Agent(agent.name.clone()));
    std::iter::once(ArmId::Baseline).chain(human).chain(agents)
}

/// Checks that every name in a choice is one of the dataset's.
pub(crate) fn check(dataset: &Dataset, choice: &Choice) -> Result<(), ChooseError> {
    let tasks: BTreeSet<&TaskId> = dataset.tasks.iter().map(|task| &task.id).collect();
    if let Some(task) = choice.tasks.iter().find(|task| !tasks.contains(task)) {
        let hint = nearest::hint(task.as_str(), tasks.iter().map(|task| task.as_str()));
        return Err(ChooseError::UnknownTask { task: task.clone(), hint });
    }
    if choice.arms.is_empty() {
        return Ok(());
    }
    let arms: BTreeSet<ArmId> = dataset.tasks.iter().flat_map(arms_of).collect();
    if let Some(arm) = choice.arms.iter().find(|arm| !arms.contains(arm)) {
        let names: Vec<String> = arms.iter().map(ArmId::to_string).collect();
        let hint = nearest::hint(&arm.to_string(), names.iter().map(String::as_str));
        return Err(ChooseError::UnknownArm { arm: arm.clone(), hint });
    }
    Ok(())
}

/// What a choice means for one task.
pub(crate) enum Selection<'d> {
    /// It is run with these arms, in the order baseline, human, agents.
    Run(&'d Task, Vec<ArmId>),
    /// It isn't run.
    Left(Exclusion),
}

/// Returns what a choice means for each task, in the dataset's order. Names that the dataset hasn't choose nothing.
pub(crate) fn select<'d>(dataset: &'d Dataset, choice: &Choice) -> Vec<Selection<'d>> {
    let wanted: BTreeSet<&TaskId> = choice.tasks.iter().collect();
    let mut taken = 0;
    let mut select = |task: &'d Task| {
        let left = |message: String| {
            let reason = ExclusionReason::NotChosen;
            Selection::Left(Exclusion { task: task.id.clone(), arm: None, reason, message })
        };
        if !wanted.is_empty() && !wanted.contains(&task.id) {
            return left(format!("task `{}` was not asked for", task.id));
        }
        if let Some(kind) = choice.kind.filter(|kind| *kind != task.workload.kind) {
            let found = task.workload.kind;
            return left(format!(
                "only `{kind}` workloads were asked for, and that of task `{}` is `{found}`",
                task.id
            ));
        }
        let arms: Vec<ArmId> =
            arms_of(task).filter(|arm| choice.arms.is_empty() || choice.arms.contains(arm)).collect();
        if arms.is_empty() {
            return left(format!("task `{}` has none of the arms asked for", task.id));
        }
        if let Some(limit) = choice.limit.filter(|limit| taken >= *limit) {
            return left(format!("task `{}` is beyond the limit of {limit} tasks", task.id));
        }
        taken += 1;
        Selection::Run(task, arms)
    };
    dataset.tasks.iter().map(&mut select).collect()
}

/// Returns the tasks that a choice runs, with their arms.
fn chosen<'d>(dataset: &'d Dataset, choice: &Choice) -> impl Iterator<Item = (&'d Task, Vec<ArmId>)> {
    select(dataset, choice).into_iter().filter_map(|selection| match selection {
        Selection::Run(task, arms) => Some((task, arms)),
        Selection::Left(_) => None,
    })
}

/// Returns the revisions that a plan of this choice needs looked up, as repository and revision, sorted, each once.
pub fn revisions_needed(dataset: &Dataset, choice: &Choice) -> Vec<(String, Revision)> {
    let mut needed = BTreeSet::new();
    for (task, arms) in chosen(dataset, choice) {
        if needs_baseline(&arms) {
            needed.insert((task.repository.clone(), task.baseline.clone()));
        }
        if let Some(human) = task.human.as_ref().filter(|_| arms.contains(&ArmId::Human)) {
            needed.insert((task.repository.clone(), human.clone()));
        }
    }
    needed.into_iter().collect()
}

/// Returns whether one of these arms is made from the baseline revision.
pub(crate) fn needs_baseline(arms: &[ArmId]) -> bool {
    arms.iter().any(|arm| match arm {
        ArmId::Baseline | ArmId::Agent(_) => true,
        ArmId::Human => false,
    })
}

/// Returns the absolute paths of files and folders that a plan of this choice needs digests of, sorted, each once.
pub fn inputs_needed(dataset: &Dataset, choice: &Choice) -> Vec<String> {
    let paths: BTreeSet<&str> = chosen(dataset, choice).flat_map(|(task, _)| input_paths(task)).collect();
    paths.into_iter().map(str::to_owned).collect()
}

/// Returns the absolute paths of the files and folders that a task's launches read.
pub(crate) fn input_paths(task: &Task) -> impl Iterator<Item = &str> {
    let model = task.server.model.as_str();
    std::iter::once(model).filter(|path| path.starts_with('/'))
}
