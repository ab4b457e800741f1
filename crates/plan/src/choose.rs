//! Choosing what to run: by task, arm, kind of workload and number.

use std::collections::BTreeSet;

use isobench_schema::commit_task::CommitTask;
use isobench_schema::ids::{ArmId, Revision, TaskId};
use isobench_schema::plan::{Exclusion, ExclusionReason};
use isobench_schema::script::ScriptOf;
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

/// Returns the arms that a task of a dataset of commits names, in the order baseline, human, agents.
fn arms_of_commit(task: &CommitTask) -> impl Iterator<Item = ArmId> {
    let agents = task.agents.iter().map(|agent| ArmId::Agent(agent.name.clone()));
    [ArmId::Baseline, ArmId::Human].into_iter().chain(agents)
}

/// Checks that every name in a choice is one of the dataset's.
pub(crate) fn check(dataset: &Dataset, choice: &Choice) -> Result<(), ChooseError> {
    let of_commits = dataset.commit_tasks.iter().map(|task| &task.id);
    let tasks: BTreeSet<&TaskId> = dataset.tasks.iter().map(|task| &task.id).chain(of_commits).collect();
    if let Some(task) = choice.tasks.iter().find(|task| !tasks.contains(task)) {
        let hint = nearest::hint(task.as_str(), tasks.iter().map(|task| task.as_str()));
        return Err(ChooseError::UnknownTask { task: task.clone(), hint });
    }
    if choice.arms.is_empty() {
        return Ok(());
    }
    let mut arms: BTreeSet<ArmId> = dataset.tasks.iter().flat_map(arms_of).collect();
    arms.extend(dataset.commit_tasks.iter().flat_map(arms_of_commit));
    if let Some(arm) = choice.arms.iter().find(|arm| !arms.contains(arm)) {
        let names: Vec<String> = arms.iter().map(ArmId::to_string).collect();
        let hint = nearest::hint(&arm.to_string(), names.iter().map(String::as_str));
        return Err(ChooseError::UnknownArm { arm: arm.clone(), hint });
    }
    Ok(())
}

/// What a choice means for one task.
pub(crate) enum Selection {
    /// It is run with these arms, in the order baseline, human, agents.
    Run(Vec<ArmId>),
    /// It isn't run.
    Left(Exclusion),
}

/// Says what a choice means for one task after the other, in the dataset's order.
pub(crate) struct Selector<'c> {
    choice: &'c Choice,
    wanted: BTreeSet<&'c TaskId>,
    taken: usize,
}

impl<'c> Selector<'c> {
    pub(crate) fn new(choice: &'c Choice) -> Self {
        Self { choice, wanted: choice.tasks.iter().collect(), taken: 0 }
    }

    /// Returns why a task isn't asked for by name, if it isn't.
    pub(crate) fn not_asked(&self, task: &TaskId) -> Option<Exclusion> {
        let left = !self.wanted.is_empty() && !self.wanted.contains(task);
        left.then(|| not_chosen(task, format!("task `{task}` was not asked for")))
    }

    /// Returns what the choice means for a task. Names that the dataset hasn't choose nothing.
    pub(crate) fn select(&mut self, task: &Task) -> Selection {
        if let Some(left) = self.not_asked(&task.id) {
            return Selection::Left(left);
        }
        let left = |message: String| Selection::Left(not_chosen(&task.id, message));
        if let Some(kind) = self.choice.kind.filter(|kind| *kind != task.workload.kind) {
            let found = task.workload.kind;
            return left(format!(
                "only `{kind}` workloads were asked for, and that of task `{}` is `{found}`",
                task.id
            ));
        }
        let arms = match self.arms(&task.id, arms_of(task)) {
            Ok(arms) => arms,
            Err(left) => return Selection::Left(left),
        };
        if let Some(left) = self.beyond_limit(&task.id) {
            return Selection::Left(left);
        }
        self.taken += 1;
        Selection::Run(arms)
    }

    /// Returns those of a task's arms that are asked for.
    ///
    /// # Errors
    /// Returns why the task isn't run if there are none.
    pub(crate) fn arms(&self, task: &TaskId, named: impl Iterator<Item = ArmId>) -> Result<Vec<ArmId>, Exclusion> {
        let asked = &self.choice.arms;
        let arms: Vec<ArmId> = named.filter(|arm| asked.is_empty() || asked.contains(arm)).collect();
        let none = || not_chosen(task, format!("task `{task}` has none of the arms asked for"));
        if arms.is_empty() { Err(none()) } else { Ok(arms) }
    }

    /// Returns why a task isn't run if enough were taken before it.
    fn beyond_limit(&self, task: &TaskId) -> Option<Exclusion> {
        let limit = self.choice.limit.filter(|limit| self.taken >= *limit)?;
        Some(not_chosen(task, format!("task `{task}` is beyond the limit of {limit} tasks")))
    }

    /// Returns why a task of a dataset of commits isn't chosen, as far as that can be known before it is assessed.
    pub(crate) fn leave_commit(&self, task: &CommitTask) -> Option<Exclusion> {
        self.not_asked(&task.id)
            .or_else(|| self.arms(&task.id, arms_of_commit(task)).err())
            .or_else(|| self.beyond_limit(&task.id))
    }

    /// Takes a task of a dataset of commits whose workload is of this kind, or returns why it isn't chosen.
    pub(crate) fn take_commit(&mut self, task: &TaskId, found: Option<WorkloadKind>) -> Option<Exclusion> {
        let asked = self.choice.kind.filter(|asked| Some(*asked) != found);
        if let Some(asked) = asked {
            let found = found.map_or_else(|| "isn't known".to_owned(), |found| format!("is `{found}`"));
            let message = format!("only `{asked}` workloads were asked for, and that of task `{task}` {found}");
            return Some(not_chosen(task, message));
        }
        self.taken += 1;
        None
    }
}

fn not_chosen(task: &TaskId, message: String) -> Exclusion {
    Exclusion { task: task.clone(), arm: None, reason: ExclusionReason::NotChosen, message }
}

/// Returns the tasks that a choice runs, with their arms.
pub(crate) fn chosen<'d>(dataset: &'d Dataset, choice: &'d Choice) -> impl Iterator<Item = (&'d Task, Vec<ArmId>)> {
    let mut selector = Selector::new(choice);
    dataset.tasks.iter().filter_map(move |task| match selector.select(task) {
        Selection::Run(arms) => Some((task, arms)),
        Selection::Left(_) => None,
    })
}

/// Returns the revisions that a plan of this choice needs looked up, as repository and revision, sorted, each once.
pub fn revisions_needed(dataset: &Dataset, choice: &Choice) -> Vec<(String, Revision)> {
    let mut needed = BTreeSet::new();
    for (task, arms) in chosen(dataset, choice) {
        if needs_baseline(task, &arms) {
            needed.insert((task.repository.clone(), task.baseline.clone()));
        }
        if let Some(human) = task.human.as_ref().filter(|_| needs_human(task, &arms)) {
            needed.insert((task.repository.clone(), human.clone()));
        }
    }
    needed.into_iter().collect()
}

/// Returns whether one of these arms, or the script that measures them, is made from the baseline revision.
pub(crate) fn needs_baseline(task: &Task, arms: &[ArmId]) -> bool {
    let of_arms = arms.iter().any(|arm| match arm {
        ArmId::Baseline | ArmId::Agent(_) => true,
        ArmId::Human => false,
    });
    of_arms || is_script_of(task, ScriptOf::Baseline)
}

/// Returns whether one of these arms, or the script that measures them, is made from the human revision.
pub(crate) fn needs_human(task: &Task, arms: &[ArmId]) -> bool {
    arms.contains(&ArmId::Human) || is_script_of(task, ScriptOf::Human)
}

fn is_script_of(task: &Task, of: ScriptOf) -> bool {
    task.workload.script.as_ref().is_some_and(|script| script.of == of)
}

/// Returns the absolute paths of files and folders that a plan of this choice needs digests of, sorted, each once.
pub fn inputs_needed(dataset: &Dataset, choice: &Choice) -> Vec<String> {
    let paths: BTreeSet<&str> = chosen(dataset, choice).flat_map(|(task, _)| input_paths(task)).collect();
    paths.into_iter().map(str::to_owned).collect()
}

/// Returns the absolute paths of the files and folders that a task's launches read.
pub(crate) fn input_paths(task: &Task) -> impl Iterator<Item = &str> {
    let model = task.server.model.as_str();
    std::iter::once(model).filter(|path| path.starts_with('/')).chain(task.inputs.paths())
}
