//! Which recipes tasks need, and what becomes of them.

use std::collections::BTreeMap;

use isobench_schema::assessment::{FactSource, RevisionFacts};
use isobench_schema::commit_task::{CommitTask, Origin, RowFormat};
use isobench_schema::environment::EngineKind;
use isobench_schema::ids::{CommitId, Revision, TaskId};

use super::*;
use crate::lint::{Given, Traits};

const MODEL: &str = "meta-llama/Llama-3.1-8B-Instruct";

fn facts(commit: char, moment: &str) -> RevisionFacts {
    RevisionFacts {
        commit: CommitId::new(commit.to_string().repeat(40)).unwrap(),
        parent: None,
        committed: Moment::new(moment).unwrap(),
        subject: String::new(),
        after_release: None,
        first_release: None,
        native_key: None,
        files_changed: None,
        scripts: None,
        source: FactSource::Git,
    }
}

fn task(engine: EngineKind, commit: &str) -> CommitTask {
    CommitTask {
        id: TaskId::new("x").unwrap(),
        engine,
        repository: String::from("https://example.invalid/x"),
        commit: Revision::new(commit).unwrap(),
        parent: None,
        subject: None,
        model: Some(MODEL.to_owned()),
        benchmark_kind: None,
        command: None,
        server_command: None,
        files_changed: Vec::new(),
        agents: Vec::new(),
        origin: Origin { file: String::new(), row: 1, format: RowFormat::Published },
        columns: serde_json::Map::new(),
        further_rows: Vec::new(),
    }
}

/// Asks with two revisions, options, a device and pins, and gives back ids.
struct Question<'q> {
    engine: EngineKind,
    baseline: &'q str,
    human: &'q str,
    options: &'q [(&'q str, &'q str)],
    device: &'q str,
    pins: &'q [&'q str],
}

impl Question<'_> {
    fn with<T>(&self, answer: impl FnOnce(&Case<'_>, &Pins) -> T) -> T {
        let knowledge = Knowledge::embedded();
        let (baseline, human) = (facts('a', self.baseline), facts('b', self.human));
        let mut given = Given::default();
        for (name, value) in self.options {
            given.push(name, vec![(*value).to_owned()]);
        }
        let task = task(self.engine, human.commit.as_str());
        let traits = knowledge.models.find(MODEL).and_then(Traits::of_row);
        let case = Case {
            task: &task,
            baseline: Some(&baseline),
            human: Some(&human),
            given: Some(&given),
            traits: traits.as_ref(),
            workload: None,
            primary: None,
            need: None,
            device: knowledge.devices.find(self.device),
            devices: None,
            service_rate_per_s: None,
            knowledge,
        };
        let pins: Vec<String> = self.pins.iter().map(|pin| (*pin).to_owned()).collect();
        answer(&case, &Pins::read(&pins))
    }

    fn ids(&self) -> String {
        self.with(needed).iter().map(|recipe| recipe.id.as_str()).collect::<Vec<_>>().join(" ")
    }

    fn bugs(&self) -> usize {
        self.with(|case, _| bugs(case).len())
    }
}

/// Both revisions at one moment, on an H100, with nothing given.
fn at(moment: &str) -> Question<'_> {
    Question { engine: EngineKind::Vllm, baseline: moment, human: moment, options: &[], device: "h100", pins: &[] }
}

#[test]
fn each_recipe_is_needed_in_its_span_and_nowhere_else() {
    for (moment, expected) in [
        ("2024-03-01T00:00:00Z", "numpy-1 transformers-4 outlines-0.0.34 setuptools-below-77"),
        ("2024-04-22T00:00:00Z", "numpy-1 transformers-with-logits-warper setuptools-below-77 cmake-3"),
        (
            "2024-06-16T23:07:01Z",
            "transformers-with-logits-warper outlines-below-0.1 no-pyairports-from-the-index pyairports-stub setuptools-below-77 cmake-3",
        ),
        (
            "2024-08-24T07:51:38Z",
            "transformers-with-logits-warper no-pyairports-from-the-index setuptools-below-77 cmake-3",
        ),
        ("2025-03-23T22:07:03Z", "transformers-4 cmake-3"),
        ("2025-03-23T22:07:04Z", "transformers-4 fa-utils-from-the-tree cmake-3"),
        ("2025-04-28T00:27:55Z", "transformers-4 fa-utils-from-the-tree"),
        ("2025-04-28T00:27:56Z", "transformers-4"),
        ("2025-04-30T07:33:29Z", "transformers-without-aimv2"),
        ("2025-07-14T15:36:42Z", "transformers-without-aimv2"),
        ("2025-07-14T15:36:43Z", "transformers-4"),
        ("2025-12-01T00:00:00Z", ""),
    ] {
        assert_eq!(at(moment).ids(), expected, "{moment}");
    }
    let sglang = Question { engine: EngineKind::Sglang, ..at("2024-07-01T00:00:00Z") };
    assert_eq!(sglang.ids(), "sglang-outlines-below-0.1 sglang-no-pyairports-from-the-index");
    let generic = Question { engine: EngineKind::Generic, ..at("2024-07-01T00:00:00Z") };
    assert_eq!(generic.ids(), "");
}

#[test]
fn a_recipe_for_a_version_is_needed_beside_it_alone() {
    let of = |pins: &'static [&'static str]| Question { pins, ..at("2026-02-26T00:00:00Z") }.ids();
    assert_eq!(of(&[]), "");
    assert_eq!(of(&["torch==2.9.1"]), "");
    assert_eq!(of(&["torch==2.10.0"]), "torchvision-of-torch-2.10");
    assert_eq!(of(&["torch==2.10.0", "torchvision==0.25.0"]), "");
}

#[test]
fn one_arm_in_the_span_is_enough_for_all() {
    let first = Question { human: "2025-07-14T15:36:43Z", ..at("2025-07-14T15:36:42Z") };
    assert_eq!(first.ids(), "transformers-without-aimv2");
    let second = Question { human: "2025-04-30T07:33:29Z", ..at("2025-04-30T07:33:28Z") };
    assert_eq!(second.ids(), "transformers-without-aimv2");
}

#[test]
fn a_recipe_that_follows_from_what_is_installed_anyway_is_not_needed() {
    let pins = ["vllm @ https://x/y.whl", "numpy<=1.26.4", "transformers<=4.40.2"];
    let question = Question { pins: &pins, ..at("2024-04-22T00:00:00Z") };
    assert_eq!(question.ids(), "setuptools-below-77 cmake-3");
    let question = Question { pins: &["numpy<=2.0.1"], ..at("2024-04-22T00:00:00Z") };
    assert_eq!(question.ids(), "numpy-1 transformers-with-logits-warper setuptools-below-77 cmake-3");
}

#[test]
fn a_condition_on_the_device_is_asked() {
    let moment = "2025-03-20T00:00:00Z";
    assert_eq!(at(moment).ids(), "transformers-4 cmake-3");
    let old = Question { device: "t4", ..at(moment) };
    assert_eq!(old.ids(), "transformers-4 half-precision-below-ampere cmake-3");
    let chosen = Question { options: &[("--dtype", "half")], ..old };
    assert_eq!(chosen.ids(), "transformers-4 cmake-3");
}

#[test]
fn the_port_bug_needs_several_workers_and_has_a_way_round() {
    let within = "2024-10-01T00:00:00Z";
    for (moment, options, expected) in [
        (within, &[("--pipeline-parallel-size", "2")][..], true),
        (within, &[("--tensor-parallel-size", "2"), ("--disable-frontend-multiprocessing", "")], true),
        (within, &[("--tensor-parallel-size", "2")], false),
        (within, &[("--disable-frontend-multiprocessing", "")], false),
        (within, &[("--tensor-parallel-size", "1"), ("--disable-frontend-multiprocessing", "")], false),
        (within, &[], false),
        ("2024-09-16T20:56:27Z", &[("--pipeline-parallel-size", "2")], false),
        ("2024-11-05T15:50:57Z", &[("--pipeline-parallel-size", "2")], false),
    ] {
        let question = Question { options, ..at(moment) };
        assert_eq!(question.bugs() == 1, expected, "{moment} {options:?}");
        assert_eq!(question.ids().contains("spawn-workers"), expected, "{moment} {options:?}");
    }
}

#[test]
fn the_five_commits_that_were_left_out_for_the_port_bug_are_not() {
    let knowledge = Knowledge::embedded();
    let bug = knowledge.bugs.bug.iter().find(|bug| bug.id == "vllm-8791").unwrap();
    let short: Vec<&str> = bug.unaffected.iter().map(|commit| &commit.as_str()[..8]).collect();
    assert_eq!(short, ["25ebed2f", "88693683", "9323a315", "b2e0ad3b", "f092153f"]);
    for commit in &bug.unaffected {
        let human = knowledge.commits.find(EngineKind::Vllm, commit.as_str()).unwrap();
        let parent = knowledge.commits.find(EngineKind::Vllm, human.parent.as_ref().unwrap().as_str()).unwrap();
        assert!(!bug.holds(&human.committed) && !bug.holds(&parent.committed), "{commit}");
        let question = Question {
            options: &[("--pipeline-parallel-size", "2")],
            baseline: parent.committed.as_str(),
            human: human.committed.as_str(),
            ..at("2024-10-01T00:00:00Z")
        };
        assert_eq!(question.bugs(), 0, "{commit}");
    }
    assert!(bug.note.as_ref().unwrap().contains("contain the fix"));
}

#[test]
fn every_bug_has_its_recipe_or_says_that_nothing_gets_round_it() {
    let knowledge = Knowledge::embedded();
    for bug in &knowledge.bugs.bug {
        assert!(!bug.any.is_empty() && !bug.source.is_empty(), "{}", bug.id);
        if let Some(recipe) = &bug.recipe {
            let recipe = knowledge.recipes.find(recipe).unwrap_or_else(|| panic!("{}: no recipe `{recipe}`", bug.id));
            assert_eq!(
                (recipe.engine, recipe.since.as_ref(), recipe.until.as_ref()),
                (bug.engine, Some(&bug.since), bug.until.as_ref())
            );
        }
    }
}

fn of_build(action: &Action) -> Option<Requirement> {
    if let Action::BuildRequire { requirement } = action { Requirement::read(requirement) } else { None }
}

#[test]
fn no_two_recipes_of_one_moment_contradict_each_other() {
    let rows = &Knowledge::embedded().recipes.recipe;
    let ends = rows.iter().flat_map(|row| [&row.since, &row.until]).flatten();
    for moment in ends {
        for engine in EngineKind::ALL {
            let held: Vec<Requirement> = rows
                .iter()
                .filter(|row| row.engine == *engine && row.holds(moment))
                .filter_map(|row| requirement(&row.action).or_else(|| of_build(&row.action)))
                .collect();
            for (place, a) in held.iter().enumerate() {
                for b in &held[place + 1..] {
                    assert!(!a.contradicts(b), "{moment}: {a:?} and {b:?}");
                }
            }
        }
    }
}

#[test]
fn every_recipe_is_whole() {
    let rows = &Knowledge::embedded().recipes.recipe;
    for (place, row) in rows.iter().enumerate() {
        assert!(rows[place + 1..].iter().all(|other| other.id != row.id), "{}", row.id);
        assert!(!row.symptoms.is_empty() && !row.reason.is_empty() && !row.effect.is_empty() && !row.source.is_empty());
        assert!(row.since.is_none() || row.until.is_none() || row.since < row.until, "{}", row.id);
        if let Action::Require { requirement }
        | Action::Override { requirement }
        | Action::BuildRequire { requirement } = &row.action
        {
            assert!(Requirement::read(requirement).is_some(), "{}", row.id);
        }
        assert!(row.beside.as_ref().is_none_or(|beside| Requirement::read(beside).is_some()), "{}", row.id);
    }
}

fn environment(build: &[&str]) -> TaskEnvironment {
    TaskEnvironment {
        python: Python::Venv(Venv::default()),
        overlay: None,
        native: None,
        toolkit: None,
        build: build.iter().map(|command| vec![(*command).to_owned()]).collect(),
        build_environment: BTreeMap::new(),
        python_path: Vec::new(),
        modules: Vec::new(),
        allow_binary_patch: false,
    }
}

fn server() -> ServerSpec {
    ServerSpec {
        command: Vec::new(),
        options: BTreeMap::new(),
        environment: BTreeMap::new(),
        pass_environment: Vec::new(),
        health: String::from("/health"),
        model: MODEL.to_owned(),
        served_model_name: MODEL.to_owned(),
        allow_network: false,
    }
}

#[test]
fn recipes_go_into_the_task_and_what_cannot_is_said() {
    let question = Question { options: &[("--pipeline-parallel-size", "2")], ..at("2024-10-01T00:00:00Z") };
    let recipes = question.with(needed);
    let (mut environment, mut server) = (environment(&[]), server());
    let applied = apply(&recipes, &mut environment, &mut server);
    let Python::Venv(venv) = &environment.python else { panic!("a venv") };
    assert_eq!(venv.requirements, ["transformers<4.49"]);
    assert_eq!(venv.overrides, ["pyairports; sys_platform == 'never'"]);
    assert_eq!(server.environment["VLLM_WORKER_MULTIPROC_METHOD"], "spawn");
    assert!(applied.deviations.iter().all(|deviation| deviation.kind == DeviationKind::RecipeApplied));
    assert_eq!(applied.deviations.len(), 3);
    let anyway: Vec<&str> = applied.anyway.iter().map(|left| left.id.as_str()).collect();
    assert_eq!((anyway, applied.left.len()), (vec!["setuptools-below-77", "cmake-3"], 0));
}

#[test]
fn a_stub_takes_the_place_of_a_lost_module_and_build_tools_are_for_builds() {
    let recipes = at("2024-07-01T00:00:00Z").with(needed);
    let (mut environment, mut server) = (environment(&["build"]), server());
    let applied = apply(&recipes, &mut environment, &mut server);
    let Python::Venv(venv) = &environment.python else { panic!("a venv") };
    assert_eq!(venv.requirements, ["transformers<4.49", "outlines<0.1", "setuptools<77", "cmake<4"]);
    let stubs: Vec<&str> = venv.stub_modules.iter().map(|stub| stub.path.as_str()).collect();
    assert_eq!((stubs, applied.left.len()), (vec!["pyairports/airports.py"], 0));
}

#[test]
fn without_packages_of_its_own_an_environment_takes_no_requirement() {
    let recipes = at("2025-06-01T00:00:00Z").with(needed);
    let (mut environment, mut server) = (environment(&[]), server());
    environment.python = Python::System;
    let applied = apply(&recipes, &mut environment, &mut server);
    assert_eq!((applied.deviations.len(), applied.left.len()), (0, 1));
    let unknown = NeededRecipe {
        id: String::from("no-such"),
        action: String::new(),
        reason: String::new(),
        effect: String::new(),
    };
    assert_eq!(apply(&[unknown], &mut environment, &mut server).left.len(), 1);
}
