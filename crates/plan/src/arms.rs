//! The arms of a task as environments: the only place that knows which arm is made of which revision and patch.

use std::collections::BTreeMap;

use isobench_schema::environment::{EnvironmentSpec, Patch, Python, Rung, Source, Toolkit, Venv};
use isobench_schema::facts::Facts;
use isobench_schema::ids::{AgentName, ArmId, CommitId, EnvironmentId};
use isobench_schema::plan::{PlannedArm, PlannedContrast};
use isobench_schema::script::ScriptOf;
use isobench_schema::task::Task;
use isobench_schema::workload::Workload;

use crate::{image_names, toolkit};

/// The commits that a task's arms are made of. A revision that no arm needs is absent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Commits {
    pub(crate) baseline: Option<CommitId>,
    pub(crate) human: Option<CommitId>,
    /// The rung of the ladder that each arm takes, where it was looked for.
    pub(crate) rungs: BTreeMap<ArmId, Rung>,
}

impl Commits {
    /// Returns whether native files are known to be those of every arm's own revision.
    pub(crate) fn are_native_files_exact(&self) -> bool {
        !self.rungs.is_empty() && self.rungs.values().all(|rung| *rung != Rung::Overlay)
    }
}

/// Whether an agent has a patch.
pub(crate) fn patch<'t>(task: &'t Task, arm: &ArmId) -> Option<&'t Patch> {
    match arm {
        ArmId::Baseline | ArmId::Human => None,
        ArmId::Agent(name) => task.agents.iter().find(|agent| agent.name == *name)?.patch.as_ref(),
    }
}

/// The arms that are run, with their environments.
#[derive(Debug, Default)]
pub(crate) struct Arms {
    pub(crate) arms: Vec<PlannedArm>,
    pub(crate) environments: BTreeMap<EnvironmentId, EnvironmentSpec>,
}

/// Returns the arms with their environments: the same recipe for each, and nothing but commit and patch differs.
///
/// An arm whose commit or image is absent is left out; the caller has excluded it.
pub(crate) fn build(
    task: &Task,
    arms: &[ArmId],
    commits: &Commits,
    (facts, toolkit): (&Facts, Option<&Toolkit>),
) -> Result<Arms, serde_json::Error> {
    let mut built = Arms::default();
    for arm in arms {
        let commit = match arm {
            ArmId::Baseline | ArmId::Agent(_) => &commits.baseline,
            ArmId::Human => &commits.human,
        };
        let Some(commit) = commit else { continue };
        let source = Source {
            repository: task.repository.clone(),
            commit: commit.clone(),
            patch: patch(task, arm).cloned(),
            allow_binary_patch: task.environment.allow_binary_patch,
        };
        let Ok(python) = image_names::pin(task, arm, commits, facts) else { continue };
        let mut spec = environment(task, source, &python);
        spec.toolkit = toolkit.cloned();
        toolkit::add_architectures(&mut spec, facts);
        if let Some(rung) = commits.rungs.get(arm) {
            spec.rung = *rung;
        }
        let environment = spec.id()?;
        built.environments.entry(environment.clone()).or_insert(spec);
        built.arms.push(PlannedArm { arm: arm.clone(), environment });
    }
    Ok(built)
}

fn environment(task: &Task, source: Source, python: &Python) -> EnvironmentSpec {
    let recipe = &task.environment;
    let commit = source.commit.clone();
    let rung = match &recipe.overlay {
        Some(_) if image_names::is_of_commit(&recipe.python) => Rung::Image,
        Some(_) => Rung::Overlay,
        None => Rung::Source,
    };
    EnvironmentSpec {
        engine: task.engine,
        rung,
        source,
        python: of_commit(python, &commit),
        overlay: recipe.overlay.clone(),
        native: recipe.native.clone(),
        toolkit: None,
        build: recipe.build.clone(),
        build_environment: recipe.build_environment.clone(),
        python_path: recipe.python_path.clone(),
        modules: recipe.modules.clone(),
    }
}

/// Returns a Python whose requirements and indexes name the arm's own commit where they say `{commit}`.
fn of_commit(python: &Python, commit: &CommitId) -> Python {
    let Python::Venv(venv) = python else { return python.clone() };
    let fill = |texts: &[String]| texts.iter().map(|text| text.replace("{commit}", commit.as_str())).collect();
    Python::Venv(Venv {
        requirements: fill(&venv.requirements),
        extra_indexes: fill(&venv.extra_indexes),
        ..venv.clone()
    })
}

/// Returns what is compared, in the fixed order in which claims are made: human against baseline, each agent against
/// baseline, each agent against human; only between arms that are run.
pub(crate) fn contrasts(arms: &[PlannedArm]) -> Vec<PlannedContrast> {
    let has = |wanted: &ArmId| arms.iter().any(|planned| planned.arm == *wanted);
    let agents = || arms.iter().map(|planned| &planned.arm).filter(|arm| matches!(arm, ArmId::Agent(_)));
    let mut contrasts = Vec::new();
    if has(&ArmId::Baseline) {
        let human = has(&ArmId::Human).then_some(&ArmId::Human);
        let contrast = |of: &ArmId| PlannedContrast { of: of.clone(), against: ArmId::Baseline };
        contrasts.extend(human.into_iter().chain(agents()).map(contrast));
    }
    if has(&ArmId::Human) {
        contrasts.extend(agents().map(|of| PlannedContrast { of: of.clone(), against: ArmId::Human }));
    }
    contrasts
}

/// Returns the task's workload, with the commit whose benchmark script is run, if one measures.
pub(crate) fn workload(task: &Task, commits: &Commits) -> Workload {
    let mut workload = task.workload.clone();
    if let Some(script) = &mut workload.script {
        script.commit = match script.of {
            ScriptOf::Baseline => commits.baseline.clone(),
            ScriptOf::Human => commits.human.clone(),
        };
    }
    workload
}

/// Returns an agent with an empty patch: the baseline's environment.
pub(crate) fn negative_control(arms: &[PlannedArm], name: &str) -> Option<PlannedArm> {
    let arm = ArmId::Agent(AgentName::new(name).ok()?);
    let baseline = arms.iter().find(|planned| planned.arm == ArmId::Baseline)?;
    let is_free = !arms.iter().any(|planned| planned.arm == arm);
    is_free.then(|| PlannedArm { arm, environment: baseline.environment.clone() })
}

/// Returns the chosen agents that have no patch.
pub(crate) fn not_run(task: &Task, chosen: &[ArmId]) -> Vec<ArmId> {
    let without = |arm: &&ArmId| match arm {
        ArmId::Baseline | ArmId::Human => false,
        ArmId::Agent(_) => patch(task, arm).is_none(),
    };
    chosen.iter().filter(without).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_requirement_of_each_arms_own_wheel_names_its_commit() {
        let venv = Venv {
            requirements: vec!["vllm @ https://example.invalid/{commit}/x.whl".to_owned(), "numpy<2".to_owned()],
            extra_indexes: vec!["https://example.invalid/{commit}".to_owned()],
            ..Venv::default()
        };
        let commit = CommitId::new("a".repeat(40)).unwrap();
        let Python::Venv(filled) = of_commit(&Python::Venv(venv), &commit) else { panic!("no virtual environment") };
        assert_eq!(
            filled.requirements,
            [format!("vllm @ https://example.invalid/{commit}/x.whl"), "numpy<2".to_owned()]
        );
        assert_eq!(filled.extra_indexes, [format!("https://example.invalid/{commit}")]);
        assert_eq!(of_commit(&Python::System, &commit), Python::System);
    }
}
