//! Recipes: what makes an environment run that otherwise wouldn't, applied to every arm alike.
//!
//! Which recipes a task needs follows from the places of its revisions in time, its model, device and options, and from what is
//! installed anyway ([`needed`]). What isobench can do by itself goes into the task ([`apply`]); the rest is said.

pub mod repair;
mod requirement;
#[cfg(test)]
mod tests;

use isobench_schema::assessment::NeededRecipe;
use isobench_schema::deviation::{Deviation, DeviationKind};
use isobench_schema::environment::{Python, StubModule, Venv};
use isobench_schema::ids::Moment;
use isobench_schema::recipe::AppliedRecipe;
use isobench_schema::task::{OptionValue, ServerSpec, TaskEnvironment};

use crate::knowledge::Knowledge;
use crate::knowledge::bugs::Bug;
use crate::knowledge::recipes::{Action, RecipeRow};
use crate::lint::Case;
use crate::lint::condition;
use requirement::Requirement;

/// Requirements that are installed anyway.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pins(Vec<Requirement>);

impl Pins {
    /// Reads requirements, as pip writes them; those whose bounds aren't told by numbers say nothing.
    pub fn read<'p>(requirements: impl IntoIterator<Item = &'p String>) -> Self {
        Self(requirements.into_iter().filter_map(|pin| Requirement::read(pin)).collect())
    }

    /// Returns whether what a recipe must stand beside follows from them.
    fn suit(&self, row: &RecipeRow) -> bool {
        let follows = |beside: Requirement| self.0.iter().any(|pin| pin.implies(&beside));
        row.beside.as_ref().is_none_or(|beside| Requirement::read(beside).is_some_and(follows))
    }
}

/// Returns the recipes that a task's environments need, in the order in which they are applied.
///
/// If either revision lies in a recipe's span, every arm gets it. `pins` are requirements that are installed anyway; a recipe
/// whose requirement follows from them isn't needed.
pub fn needed(case: &Case<'_>, pins: &Pins) -> Vec<NeededRecipe> {
    let mut installed = pins.0.clone();
    let mut recipes = Vec::new();
    for row in &case.knowledge.recipes.recipe {
        if row.engine != case.task.engine || !pins.suit(row) || !lies_in(case, |moment| row.holds(moment)) {
            continue;
        }
        if !row.any.is_empty() && condition::any(&row.any, case) != Some(true) {
            continue;
        }
        if let Some(wanted) = requirement(&row.action) {
            if installed.iter().any(|pin| pin.implies(&wanted)) {
                continue;
            }
            installed.push(wanted);
        }
        recipes.push(row.needed());
    }
    recipes
}

/// Returns the known bugs that a task meets, whether something gets round them or not.
pub fn bugs<'k>(case: &Case<'k>) -> Vec<&'k Bug> {
    let rows = case.knowledge.bugs.bug.iter();
    rows.filter(|bug| bug.engine == case.task.engine && lies_in(case, |moment| bug.holds(moment)))
        .filter(|bug| condition::any(&bug.any, case) == Some(true))
        .collect()
}

/// Returns whether one of a task's revisions lies in a span.
fn lies_in(case: &Case<'_>, span: impl Fn(&Moment) -> bool) -> bool {
    [case.baseline, case.human].into_iter().flatten().any(|facts| span(&facts.committed))
}

/// Returns what an action asks to be installed for the engine.
fn requirement(action: &Action) -> Option<Requirement> {
    match action {
        Action::Require { requirement } | Action::Override { requirement } => Requirement::read(requirement),
        Action::LeaveOut { .. }
        | Action::BuildRequire { .. }
        | Action::StubModule { .. }
        | Action::KeepFile { .. }
        | Action::Variable { .. }
        | Action::Option { .. } => None,
    }
}

/// What became of recipes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Applied {
    /// Those that are in the task now.
    pub deviations: Vec<Deviation>,
    /// The same, with what each changes.
    pub recipes: Vec<AppliedRecipe>,
    /// Those that the task has without them.
    pub anyway: Vec<Left>,
    /// Those that isobench can't carry out.
    pub left: Vec<Left>,
}

/// A recipe that isn't in the task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// Its id.
    pub id: String,
    /// Why, and what follows.
    pub reason: String,
}

/// Puts recipes into a task, and says which it couldn't.
pub fn apply(recipes: &[NeededRecipe], environment: &mut TaskEnvironment, server: &mut ServerSpec) -> Applied {
    let mut applied = Applied::default();
    for recipe in recipes {
        let row = Knowledge::embedded().recipes.find(&recipe.id);
        let fate = row.map_or(Fate::Left("no recipe of this name is known"), |row| put(row, environment, server));
        let left = |reason: &str| Left { id: recipe.id.clone(), reason: reason.to_owned() };
        match fate {
            Fate::Put(subject) => {
                applied.recipes.extend(row.and_then(RecipeRow::applied));
                applied.deviations.push(Deviation {
                    kind: DeviationKind::RecipeApplied,
                    subject: subject.to_owned(),
                    asked: format!("without the recipe `{}`", recipe.id),
                    run: recipe.action.clone(),
                    reason: format!("{}; effect: {}", recipe.reason, recipe.effect),
                });
            }
            Fate::Anyway(reason) => applied.anyway.push(left(reason)),
            Fate::Left(reason) => applied.left.push(left(reason)),
        }
    }
    applied
}

/// What became of one recipe.
enum Fate {
    /// It was put into this setting of the task.
    Put(&'static str),
    /// The task has it without it.
    Anyway(&'static str),
    /// It couldn't be carried out.
    Left(&'static str),
}

fn put(row: &RecipeRow, environment: &mut TaskEnvironment, server: &mut ServerSpec) -> Fate {
    const NO_VENV: &str = "the environment has no packages of its own";
    match &row.action {
        Action::Require { requirement } => match packages(environment) {
            Some(venv) => {
                venv.requirements.push(requirement.clone());
                Fate::Put("environment.requirements")
            }
            None => Fate::Left(NO_VENV),
        },
        Action::Override { requirement } => match packages(environment) {
            Some(venv) => {
                venv.overrides.push(requirement.clone());
                Fate::Put("environment.overrides")
            }
            None => Fate::Left(NO_VENV),
        },
        Action::LeaveOut { package } => match packages(environment) {
            Some(venv) => {
                // A requirement whose marker never holds takes the place of all others of the package.
                venv.overrides.push(format!("{package}; sys_platform == 'never'"));
                Fate::Put("environment.overrides")
            }
            None => Fate::Left(NO_VENV),
        },
        Action::BuildRequire { requirement } => match (environment.build.is_empty(), packages(environment)) {
            (true, _) => Fate::Anyway("nothing is built"),
            (false, Some(venv)) => {
                venv.requirements.push(requirement.clone());
                Fate::Put("environment.requirements")
            }
            (false, None) => Fate::Left(NO_VENV),
        },
        Action::StubModule { module, content } => match packages(environment) {
            Some(venv) => {
                venv.stub_modules.push(StubModule { path: module.clone(), content: content.clone() });
                Fate::Put("environment.stub-modules")
            }
            None => Fate::Left(NO_VENV),
        },
        Action::KeepFile { .. } => Fate::Anyway("every arm runs the Python files of its own revision's tree"),
        Action::Variable { name, value } => {
            if server.environment.contains_key(name) {
                return Fate::Anyway("the task sets the variable itself");
            }
            server.environment.insert(name.clone(), value.clone());
            Fate::Put("server.environment")
        }
        Action::Option { name, value } => {
            if server.options.contains_key(name) {
                return Fate::Anyway("the task sets the option itself");
            }
            server.options.insert(name.clone(), OptionValue::Text(value.clone()));
            Fate::Put("server.options")
        }
    }
}

fn packages(environment: &mut TaskEnvironment) -> Option<&mut Venv> {
    match &mut environment.python {
        Python::Venv(venv) => Some(venv),
        Python::Absent | Python::System | Python::Image(_) => None,
    }
}
