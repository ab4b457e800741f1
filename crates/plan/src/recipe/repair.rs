//! A new plan out of an old one: with recipes for the causes of its failures, on every arm alike.

use std::collections::{BTreeMap, BTreeSet};

use isobench_schema::assessment::NeededRecipe;
use isobench_schema::environment::{EnvironmentSpec, Python};
use isobench_schema::ids::{EnvironmentId, Moment, TaskId};
use isobench_schema::plan::{Exclusion, ExclusionReason, Plan, PlannedTask};
use isobench_schema::task::TaskEnvironment;

use super::requirement::Requirement;
use super::{Applied, Left, Pins, apply};
use crate::knowledge::Knowledge;
use crate::knowledge::recipes::{Action, RecipeRow};

/// A cause whose recipes are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownCause {
    /// The task that failed by it.
    pub task: TaskId,
    /// The signature that its logs show.
    pub signature: String,
    /// The recipes that cure it; those that don't suit the task are left.
    pub recipes: Vec<String>,
}

/// A plan that was repaired.
#[derive(Debug, Clone, PartialEq)]
pub struct Repaired {
    /// The new plan: of the tasks that a recipe changes.
    pub plan: Plan,
    /// What was applied, by task.
    pub applied: BTreeMap<TaskId, Vec<String>>,
    /// Recipes that couldn't be, by task, with the reason.
    pub left: Vec<(TaskId, Left)>,
}

/// Applies recipes to the tasks of a plan. The arms, seeds and designs stay as they are.
///
/// # Errors
/// Returns an error if an environment can't be written as JSON, which its name needs.
pub fn repair(plan: &Plan, causes: &[KnownCause]) -> Result<Repaired, serde_json::Error> {
    let mut repaired =
        Repaired { plan: Plan { tasks: Vec::new(), ..plan.clone() }, applied: BTreeMap::new(), left: Vec::new() };
    for task in &plan.tasks {
        let causes: Vec<&KnownCause> = causes.iter().filter(|cause| cause.task == task.id).collect();
        let wanted = wanted(plan, task, &causes, &mut repaired.left);
        let (changed, applied) = with_recipes(task, &wanted, &causes)?;
        repaired.left.extend(applied.left.into_iter().map(|left| (task.id.clone(), left)));
        if let Some(changed) = changed {
            let names = changed.recipes.iter().map(|recipe| recipe.id.clone());
            let is_new = |id: &String| !task.recipes.iter().any(|recipe| recipe.id == *id);
            repaired.applied.insert(task.id.clone(), names.filter(is_new).collect());
            repaired.plan.tasks.push(changed);
        } else {
            let message = format!("task `{}` has no failure that a recipe of the program mends", task.id);
            let (task, reason) = (task.id.clone(), ExclusionReason::NotChosen);
            repaired.plan.exclusions.push(Exclusion { task, arm: None, reason, message });
        }
    }
    Ok(repaired)
}

/// Returns the recipes that suit a task, in the table's order: of its engine, in whose span one of its revisions lies where
/// that is known, and of several that change the same thing the first.
fn wanted(
    plan: &Plan,
    task: &PlannedTask,
    causes: &[&KnownCause],
    left: &mut Vec<(TaskId, Left)>,
) -> Vec<&'static RecipeRow> {
    let named: BTreeSet<&str> = causes.iter().flat_map(|cause| &cause.recipes).map(String::as_str).collect();
    let assessment = plan.assessments.iter().find(|assessment| assessment.task == task.id);
    let moments: Vec<&Moment> = assessment
        .into_iter()
        .flat_map(|found| [&found.baseline, &found.human])
        .flatten()
        .map(|facts| &facts.committed)
        .collect();
    let pins = pins(task);
    let mut taken = BTreeSet::new();
    let mut wanted = Vec::new();
    let rows = Knowledge::embedded().recipes.recipe.iter();
    for row in rows.filter(|row| named.contains(row.id.as_str()) && row.engine == task.engine) {
        if !moments.is_empty() && !moments.iter().any(|moment| row.holds(moment)) {
            continue;
        }
        if !pins.suit(row) {
            let beside = row.beside.as_deref().unwrap_or_default();
            let reason = format!("it is for environments with `{beside}`, which this task's don't ask for");
            left.push((task.id.clone(), Left { id: row.id.clone(), reason }));
            continue;
        }
        if task.recipes.iter().any(|recipe| recipe.id == row.id) {
            let reason = "it was applied already, and the task failed by the same cause all the same";
            left.push((task.id.clone(), Left { id: row.id.clone(), reason: reason.to_owned() }));
            continue;
        }
        if taken.insert(subject(&row.action)) {
            wanted.push(row);
        }
    }
    wanted
}

/// Returns what a task's environments ask for by themselves.
fn pins(task: &PlannedTask) -> Pins {
    let asked = task.environments.values().flat_map(|spec| match &spec.python {
        Python::Absent | Python::System | Python::Image(_) => Vec::new(),
        Python::Venv(venv) => venv.requirements.iter().chain(&venv.overrides).collect(),
    });
    Pins::read(asked)
}

/// Returns what an action changes, so that no two recipes change the same.
fn subject(action: &Action) -> String {
    match action {
        Action::Require { requirement } | Action::Override { requirement } | Action::BuildRequire { requirement } => {
            let package = Requirement::read(requirement).map_or_else(|| requirement.clone(), |read| read.package);
            format!("package {package}")
        }
        Action::LeaveOut { package } => format!("without {package}"),
        Action::StubModule { module, .. } => format!("module {module}"),
        Action::KeepFile { path } => format!("file {path}"),
        Action::Variable { name, .. } => format!("variable {name}"),
        Action::Option { name, .. } => format!("option {name}"),
    }
}

/// Returns a task with recipes in every one of its environments, or `None` if nothing of it changes.
fn with_recipes(
    task: &PlannedTask,
    rows: &[&RecipeRow],
    causes: &[&KnownCause],
) -> Result<(Option<PlannedTask>, Applied), serde_json::Error> {
    let needed: Vec<NeededRecipe> = rows.iter().map(|row| row.needed()).collect();
    let mut changed = task.clone();
    let mut first: Option<Applied> = None;
    let mut renamed: BTreeMap<EnvironmentId, EnvironmentId> = BTreeMap::new();
    changed.environments.clear();
    for (id, spec) in &task.environments {
        let mut environment = of_spec(spec);
        let mut server = task.server.clone();
        let applied = apply(&needed, &mut environment, &mut server);
        let spec = EnvironmentSpec { python: environment.python, ..spec.clone() };
        let name = spec.id()?;
        renamed.insert(id.clone(), name.clone());
        changed.environments.insert(name, spec);
        changed.server = server;
        first.get_or_insert(applied);
    }
    for arm in &mut changed.arms {
        if let Some(name) = renamed.get(&arm.environment) {
            arm.environment = name.clone();
        }
    }
    let mut applied = first.unwrap_or_default();
    if applied.recipes.is_empty() {
        return Ok((None, applied));
    }
    let signatures: Vec<&str> = causes.iter().map(|cause| cause.signature.as_str()).collect();
    for deviation in &mut applied.deviations {
        deviation.reason = format!("{}; an earlier run failed by {}", deviation.reason, signatures.join(", "));
    }
    changed.deviations.extend(applied.deviations.iter().cloned());
    changed.recipes.extend(applied.recipes.iter().cloned());
    Ok((Some(changed), applied))
}

fn of_spec(spec: &EnvironmentSpec) -> TaskEnvironment {
    TaskEnvironment {
        python: spec.python.clone(),
        overlay: spec.overlay.clone(),
        native: spec.native.clone(),
        toolkit: None,
        build: spec.build.clone(),
        build_environment: spec.build_environment.clone(),
        python_path: spec.python_path.clone(),
        modules: spec.modules.clone(),
        allow_binary_patch: spec.source.allow_binary_patch,
    }
}
