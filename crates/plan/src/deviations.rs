//! The deviations of a task: what is run differently from what the task or the methodology asks.

use isobench_schema::deviation::{Deviation, DeviationKind};
use isobench_schema::environment::{Python, Recipe, Venv};
use isobench_schema::ids::ArmId;
use isobench_schema::plan::Design;
use isobench_schema::script::Script;
use isobench_schema::task::Task;

use crate::arms::Commits;
use crate::{defaults, image_names};

/// Returns the deviations that a task's own values are. An overlay of native files that are known to be the revision's own is
/// none; whether an image is of the revision that its name says is proven before each launch.
pub(crate) fn of_task(task: &Task, design: &Design, commits: &Commits) -> Vec<Deviation> {
    let mut packages = of_packages(task);
    if commits.are_native_files_exact() || image_names::is_of_commit(&task.environment.python) {
        packages.retain(|deviation| deviation.kind != DeviationKind::ReleaseOverlay);
    }
    [of_script(task), of_design(design), packages, of_trust(task), of_output(task)].concat()
}

fn deviation(kind: DeviationKind, subject: &str, asked: &str, run: impl Into<String>, reason: &str) -> Deviation {
    Deviation { kind, subject: subject.to_owned(), asked: asked.to_owned(), run: run.into(), reason: reason.to_owned() }
}

/// Returns what a benchmark script's numbers are: nobody has measured them from outside.
fn of_script(task: &Task) -> Vec<Deviation> {
    task.workload.script.iter().map(self_reported).collect()
}

/// Returns the deviation of a task whose numbers are what a benchmark script says of itself.
pub(crate) fn self_reported(script: &Script) -> Deviation {
    let run = match script.subcommand() {
        Some(_) => format!("`{}`, from `{}`", script.tool, script.path),
        None => format!("`{}`", script.path),
    };
    deviation(
        DeviationKind::SelfReported,
        "workload.script",
        "numbers that isobench's own client measures from outside",
        format!("what {run} of the {} says of itself", script.of),
        "the script holds the engine in its own process, so that an arm could write its own numbers; they are claims, checked \
         against the time that the process was seen to take",
    )
}

fn of_design(design: &Design) -> Vec<Deviation> {
    let mut deviations = Vec::new();
    let window = design.min_window_s.get();
    if window < defaults::MIN_WINDOW_S {
        deviations.push(deviation(
            DeviationKind::MinWindow,
            "design.min-window-s",
            &format!("{} s", defaults::MIN_WINDOW_S),
            format!("{window} s"),
            "the task sets a shorter window, in which noise weighs more",
        ));
    }
    let blocks = design.blocks();
    if blocks < defaults::FEWEST_BLOCKS {
        deviations.push(deviation(
            DeviationKind::FewerBlocks,
            "design.blocks",
            &defaults::FEWEST_BLOCKS.to_string(),
            blocks.to_string(),
            "the task sets fewer blocks, which can hardly decide anything",
        ));
    }
    deviations
}

/// Returns one deviation for each kind of recipe.
fn of_packages(task: &Task) -> Vec<Deviation> {
    let environment = &task.environment;
    let mut deviations: Vec<Deviation> = Vec::new();
    for recipe in Recipe::of(&environment.python, environment.overlay.as_deref()) {
        let found = of_recipe(recipe);
        match deviations.last_mut().filter(|last| last.subject == found.subject) {
            Some(last) => last.run = format!("{}, {}", last.run, found.run),
            None => deviations.push(found),
        }
    }
    if let Python::Venv(Venv { exclude_newer: Some(moment), .. }) = &environment.python {
        deviations.push(deviation(
            DeviationKind::PackageOverride,
            "environment.exclude-newer",
            "the newest versions that the requirements allow",
            format!("versions released by {moment}"),
            "the task bounds when packages were released, the same in every arm",
        ));
    }
    deviations
}

fn of_recipe(recipe: Recipe) -> Deviation {
    let packages = |subject, asked, run| {
        let reason = "the task pins or replaces packages, the same in every arm";
        deviation(DeviationKind::PackageOverride, subject, asked, run, reason)
    };
    match recipe {
        Recipe::ReplaceRequirement { requirement } => {
            packages("environment.overrides", "what each package requires", requirement)
        }
        Recipe::LeaveDependencies { requirement } => {
            packages("environment.no-dependencies", "packages with their dependencies", requirement)
        }
        Recipe::AliasPackage { alias } => {
            let run = format!("{} {}", alias.name, alias.version);
            packages("environment.aliases", "packages under their own names", run)
        }
        Recipe::StubModule { path } => {
            packages("environment.stub-modules", "the modules of the packages that are asked for", path)
        }
        Recipe::OverlayPackage { package } => deviation(
            DeviationKind::ReleaseOverlay,
            "environment.overlay",
            "native files built from each revision",
            format!("the native files of the installed `{package}`"),
            "the task lays the revision's files over an installed package, the same in every arm",
        ),
    }
}

fn of_trust(task: &Task) -> Vec<Deviation> {
    let mut deviations = Vec::new();
    if task.server.allow_network {
        let reason = "the task says that its engine needs the network";
        deviations.push(deviation(DeviationKind::NetworkAllowed, "server.allow-network", "false", "true", reason));
    }
    if task.environment.allow_binary_patch {
        let reason = "the task lets agent patches hold binary content, which no person can read";
        let subject = "environment.allow-binary-patch";
        deviations.push(deviation(DeviationKind::BinaryPatch, subject, "false", "true", reason));
    }
    deviations
}

fn of_output(task: &Task) -> Vec<Deviation> {
    let mut deviations = Vec::new();
    let unchecked =
        |subject, asked: &str, run, reason| deviation(DeviationKind::OutputUnchecked, subject, asked, run, reason);
    if task.workload.script.is_some() {
        let asked = defaults::PROBES.count.to_string();
        let reason = "a benchmark script keeps its answers to itself, so that wrong ones go unseen";
        return vec![unchecked("workload.probes.count", &asked, "0".to_owned(), reason)];
    }
    if task.workload.probes.count == 0 {
        let asked = defaults::PROBES.count.to_string();
        let reason = "the task turns the output check off, so that wrong answers go unseen";
        deviations.push(unchecked("workload.probes.count", &asked, "0".to_owned(), reason));
    }
    let temperature = task.workload.temperature;
    if temperature > 0.0 {
        let reason = "the task samples its answers, so that those of the window can't be compared";
        deviations.push(unchecked("workload.temperature", "0", temperature.to_string(), reason));
    }
    deviations
}

/// Returns the deviation that only some of the arms are run by choice, if so.
pub(crate) fn arms_chosen(asked: &[ArmId], run: &[ArmId]) -> Option<Deviation> {
    let names = |arms: &[ArmId]| arms.iter().map(ArmId::to_string).collect::<Vec<_>>().join(", ");
    let reason = "chosen on the command line";
    (asked != run).then(|| deviation(DeviationKind::ArmsChosen, "arms", &names(asked), names(run), reason))
}

/// Returns the deviation of a run of the baseline against itself.
pub(crate) fn baseline_against_itself(task: &Task) -> Deviation {
    let asked = task.human.as_ref().map_or_else(|| "no human arm".to_owned(), |human| format!("the commit `{human}`"));
    deviation(
        DeviationKind::Override,
        "human",
        &asked,
        format!("the baseline `{}` once more", task.baseline),
        "the baseline is run against itself to show the noise; agents are left out",
    )
}
