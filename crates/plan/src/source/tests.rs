//! Each rung with its reasons, the known pairs, and what must hold for any facts.

use std::collections::BTreeMap;

use isobench_schema::assessment::{FactSource, RevisionFacts, RungAnswer, RungVerdict};
use isobench_schema::deviation::DeviationKind;
use isobench_schema::environment::{EngineKind, Python, Rung};
use isobench_schema::ids::{AgentName, ArmId, CommitId, Moment};
use isobench_schema::images::ImageFacts;
use isobench_schema::task::TaskEnvironment;
use proptest::prelude::*;

mod of_images;

use super::{
    ArmSource, Images, Means, Platform, Probe, RUNGS, ReleaseOverlay, Request, ladders, taken, task_environment,
};
use crate::knowledge::Knowledge;

fn moment(text: &str) -> Moment {
    Moment::new(text).unwrap()
}

/// A revision that no table knows.
fn facts(digit: char, committed: &str, key: &str, after: Option<&str>) -> RevisionFacts {
    RevisionFacts {
        commit: CommitId::new(digit.to_string().repeat(40)).unwrap(),
        parent: None,
        committed: moment(committed),
        subject: "change".to_owned(),
        after_release: after.map(str::to_owned),
        first_release: None,
        native_key: Some(key.to_owned()),
        files_changed: None,
        scripts: None,
        source: FactSource::Git,
    }
}

fn agent() -> ArmId {
    ArmId::Agent(AgentName::new("a").unwrap())
}

/// A task of a baseline, a human commit and perhaps an agent whose patch touches these files.
#[derive(Debug)]
struct Case {
    engine: EngineKind,
    baseline: Option<RevisionFacts>,
    human: Option<RevisionFacts>,
    touched: Option<Vec<String>>,
    means: Means,
    registry: Option<ImageFacts>,
}

impl Case {
    fn new(baseline: RevisionFacts, human: RevisionFacts) -> Self {
        let means = Means::on(Platform::Cuda);
        Self {
            engine: EngineKind::Vllm,
            baseline: Some(baseline),
            human: Some(human),
            touched: None,
            means,
            registry: None,
        }
    }

    /// A pair in the time of per-commit wheels.
    fn with_wheels(human_key: &str) -> Self {
        let of = |digit, key| facts(digit, "2024-12-01T00:00:00Z", key, Some("v0.6.4.post1"));
        Self::new(of('a', "1111"), of('b', human_key))
    }

    /// A pair before the time of per-commit wheels.
    fn without_wheels() -> Self {
        let of = |digit| facts(digit, "2024-05-01T00:00:00Z", "2222", Some("v0.4.1"));
        Self::new(of('c'), of('d'))
    }

    /// A pair of the table of known commits, by the human one.
    fn known(engine: EngineKind, human: &str) -> Self {
        let commits = &Knowledge::embedded().commits;
        let human = commits.find(engine, human).unwrap();
        let baseline = commits.find(engine, human.parent.as_ref().unwrap().as_str()).unwrap();
        Self { engine, ..Self::new(baseline.clone(), human.clone()) }
    }

    fn patched(mut self, files: &[&str]) -> Self {
        self.touched = Some(files.iter().map(|file| (*file).to_owned()).collect());
        self
    }

    fn with<R>(&self, ask: impl FnOnce(&Request<'_>) -> R) -> R {
        let mut arms = vec![
            ArmSource { arm: ArmId::Baseline, revision: self.baseline.as_ref(), touched: None },
            ArmSource { arm: ArmId::Human, revision: self.human.as_ref(), touched: None },
        ];
        if let Some(touched) = &self.touched {
            arms.push(ArmSource { arm: agent(), revision: self.baseline.as_ref(), touched: Some(touched) });
        }
        ask(&Request {
            engine: self.engine,
            arms: &arms,
            means: &self.means,
            knowledge: Knowledge::embedded(),
            registry: self.registry.as_ref(),
        })
    }

    fn ladders(&self) -> BTreeMap<ArmId, Vec<RungAnswer>> {
        self.with(ladders)
    }

    fn environment(&self) -> Option<(TaskEnvironment, Vec<isobench_schema::deviation::Deviation>)> {
        self.with(|request| task_environment(request, &ladders(request)))
    }
}

fn rung_of(ladders: &BTreeMap<ArmId, Vec<RungAnswer>>, arm: &ArmId) -> Option<Rung> {
    taken(&ladders[arm]).map(|answer| answer.rung)
}

fn answer<'l>(ladders: &'l BTreeMap<ArmId, Vec<RungAnswer>>, arm: &ArmId, rung: Rung) -> &'l RungAnswer {
    ladders[arm].iter().find(|answer| answer.rung == rung).unwrap()
}

fn check(case: &Case, baseline: Option<Rung>, human: Option<Rung>, of_agent: Option<Rung>) {
    let ladders = case.ladders();
    let found = (rung_of(&ladders, &ArmId::Baseline), rung_of(&ladders, &ArmId::Human));
    assert_eq!(found, (baseline, human), "{ladders:#?}");
    if case.touched.is_some() {
        assert_eq!(rung_of(&ladders, &agent()), of_agent, "{ladders:#?}");
    }
}

fn venv(environment: &TaskEnvironment) -> &isobench_schema::environment::Venv {
    match &environment.python {
        Python::Venv(venv) => venv,
        Python::Absent | Python::System | Python::Image(_) => panic!("no virtual environment"),
    }
}

#[test]
fn arms_of_an_equal_native_tree_share_the_wheel_of_the_baseline() {
    let case = Case::with_wheels("1111").patched(&["vllm/worker/worker.py"]);
    check(&case, Some(Rung::Wheel), Some(Rung::NativeTree), Some(Rung::NativeTree));
    let ladders = case.ladders();
    let wheel = answer(&ladders, &ArmId::Baseline, Rung::Wheel);
    let url = format!(
        "https://vllm-wheels.s3.us-west-2.amazonaws.com/{}/vllm-1.0.0.dev-cp38-abi3-manylinux1_x86_64.whl",
        "a".repeat(40)
    );
    assert_eq!(wheel.artifact.as_deref(), Some(url.as_str()));
    assert!(wheel.reason.contains("assumed"), "{}", wheel.reason);
    assert_eq!(answer(&ladders, &ArmId::Human, Rung::NativeTree).artifact, wheel.artifact);
    assert!(answer(&ladders, &ArmId::Human, Rung::Wheel).reason.contains("`baseline`"));
    let (environment, deviations) = case.environment().unwrap();
    assert_eq!(venv(&environment).requirements[0], format!("vllm @ {url}"));
    assert_eq!(venv(&environment).python.as_deref(), Some("3.12"));
    assert_eq!((environment.overlay.as_deref(), environment.build.len()), (Some("vllm"), 0));
    assert_eq!(
        (&environment.python_path[..], &environment.modules[..]),
        (&[".".to_owned()][..], &["vllm".to_owned()][..])
    );
    assert_eq!(deviations.iter().map(|found| found.kind).collect::<Vec<_>>(), [DeviationKind::PackageOverride]);
}

#[test]
fn open_requirements_are_bounded_by_the_time_of_the_commit() {
    let (environment, _) = Case::with_wheels("1111").environment().unwrap();
    let requirements = &venv(&environment).requirements;
    let has = |wanted: &str| requirements.iter().any(|found| found == wanted);
    assert!(has("transformers<=4.47.1") && has("numpy<=2.2.1"), "{requirements:?}");
    // What the revision pins itself has no bound beside its pin.
    assert!(!requirements.iter().any(|found| found.starts_with("compressed-tensors<=")), "{requirements:?}");
}

#[test]
fn arms_of_different_native_trees_have_a_wheel_each() {
    let case = Case::with_wheels("9999").patched(&["vllm/worker/worker.py"]);
    check(&case, Some(Rung::Wheel), Some(Rung::Wheel), Some(Rung::NativeTree));
    let (environment, _) = case.environment().unwrap();
    let requirement = &venv(&environment).requirements[0];
    assert!(requirement.contains("/{commit}/vllm-1.0.0.dev-"), "{requirement}");
}

#[test]
fn a_patch_of_compiled_files_makes_every_arm_a_build() {
    let case = Case::with_wheels("1111").patched(&["vllm/x.py", "csrc/cache_kernels.cu"]);
    check(&case, Some(Rung::Source), Some(Rung::Source), Some(Rung::Source));
    let ladders = case.ladders();
    assert!(answer(&ladders, &agent(), Rung::NativeTree).reason.contains("`csrc/cache_kernels.cu`"));
    assert!(answer(&ladders, &ArmId::Baseline, Rung::Wheel).reason.contains("`agent:a` must be built"));
}

#[test]
fn before_the_archive_a_tree_is_built() {
    let case = Case::without_wheels();
    check(&case, Some(Rung::Source), Some(Rung::Source), None);
    let reason = &answer(&case.ladders(), &ArmId::Baseline, Rung::Wheel).reason.clone();
    assert_eq!(reason, "wheels of single commits are published since 2024-06-18, and this one is of 2024-05-01");
    let (environment, _) = case.environment().unwrap();
    assert_eq!(environment.build, [["{python}", "setup.py", "build_ext", "--inplace"]]);
    assert_eq!(environment.build_environment["NVCC_THREADS"], "2");
    let toolkit = environment.toolkit.as_ref().unwrap();
    assert_eq!((toolkit.cuda.as_deref(), toolkit.network), (Some("12.4"), true), "as torch 2.3 is built with");
    assert_eq!(environment.build_environment["SETUPTOOLS_SCM_PRETEND_VERSION"], "0.4.1");
    let requirements = &venv(&environment).requirements;
    for wanted in ["torch==2.3.0", "ninja", "ray>=2.9"] {
        assert!(requirements.iter().any(|found| found == wanted), "{wanted}: {requirements:?}");
    }
    assert_eq!((environment.overlay.as_deref(), venv(&environment).aliases.len()), (None, 1));
}

#[test]
fn a_release_stands_in_only_if_asked_to_and_as_a_deviation() {
    let mut case = Case::without_wheels();
    let refused = case.ladders();
    assert!(answer(&refused, &ArmId::Human, Rung::Overlay).reason.contains("only if asked to"));
    case.means.release_overlay = ReleaseOverlay::Allowed;
    check(&case, Some(Rung::Overlay), Some(Rung::Overlay), None);
    let (environment, deviations) = case.environment().unwrap();
    assert_eq!(venv(&environment).requirements[0], "vllm==0.4.1");
    assert!(deviations.iter().any(|found| found.kind == DeviationKind::ReleaseOverlay));
}

#[test]
fn a_release_never_stands_in_for_two_different_trees() {
    let mut case = Case::without_wheels();
    case.means.release_overlay = ReleaseOverlay::Allowed;
    case.human.as_mut().unwrap().native_key = Some("3333".to_owned());
    check(&case, Some(Rung::Source), Some(Rung::Source), None);
    assert!(answer(&case.ladders(), &ArmId::Baseline, Rung::Overlay).reason.contains("`human`"));
}

#[test]
fn a_release_of_an_equal_native_tree_serves_if_its_pytorch_is_the_same() {
    let releases = &Knowledge::embedded().releases;
    let release = releases.named(EngineKind::Vllm, "v0.5.0").unwrap();
    let mut case = Case::without_wheels();
    for arm in [&mut case.baseline, &mut case.human] {
        let facts = arm.as_mut().unwrap();
        facts.native_key.clone_from(&release.native_key);
        facts.committed = release.since().clone();
    }
    check(&case, Some(Rung::NativeTree), Some(Rung::NativeTree), None);
    assert_eq!(answer(&case.ladders(), &ArmId::Human, Rung::NativeTree).artifact.as_deref(), Some("vllm==0.5.0"));
    // Four months before, another PyTorch was asked for.
    for arm in [&mut case.baseline, &mut case.human] {
        arm.as_mut().unwrap().committed = moment("2024-02-01T00:00:00Z");
    }
    check(&case, Some(Rung::Source), Some(Rung::Source), None);
}

#[test]
fn what_an_archive_answered_counts_more_than_what_is_assumed_or_was_seen() {
    let mut case = Case::with_wheels("1111");
    let commit = case.baseline.as_ref().unwrap().commit.clone();
    case.means.probes.insert(commit, Probe::Absent);
    check(&case, Some(Rung::NativeTree), Some(Rung::Wheel), None);
    let mut case = Case::known(EngineKind::Vllm, "98f47f2a");
    assert!(answer(&case.ladders(), &ArmId::Baseline, Rung::Wheel).reason.contains("2025-12-26"));
    let of_human = &answer(&case.ladders(), &ArmId::Human, Rung::Wheel).reason.clone();
    assert!(of_human.ends_with("wasn't asked, and lacked that of its parent on 2025-12-26"), "{of_human}");
    case.means.probes.insert(case.baseline.as_ref().unwrap().commit.clone(), Probe::Present);
    check(&case, Some(Rung::Wheel), Some(Rung::NativeTree), None);
}

#[test]
fn nothing_is_taken_of_an_unknown_revision() {
    let mut case = Case::with_wheels("1111");
    case.human = None;
    let ladders = case.ladders();
    assert_eq!(rung_of(&ladders, &ArmId::Human), None);
    assert!(ladders[&ArmId::Human].iter().all(|answer| answer.answer == RungVerdict::Refused));
    assert!(case.environment().is_none());
}

#[test]
fn on_the_processor_a_tree_is_built_for_it() {
    let mut case = Case::with_wheels("1111");
    case.means = Means::on(Platform::Cpu);
    check(&case, Some(Rung::Source), Some(Rung::Source), None);
    let (environment, _) = case.environment().unwrap();
    assert_eq!(environment.build_environment["VLLM_TARGET_DEVICE"], "cpu");
    assert!(venv(&environment).requirements.iter().any(|found| found.starts_with("torch==2.5.1+cpu")));
    // Before the engine ran on processors, there is no way.
    for arm in [&mut case.baseline, &mut case.human] {
        arm.as_mut().unwrap().committed = moment("2024-01-01T00:00:00Z");
    }
    check(&case, None, None, None);
}

#[test]
fn sglang_runs_on_the_kernels_that_it_asks_for() {
    let case = Case::known(EngineKind::Sglang, "da47621c").patched(&["python/sglang/srt/layers/moe/topk.py"]);
    check(&case, Some(Rung::NativeTree), Some(Rung::NativeTree), Some(Rung::NativeTree));
    let (environment, _) = case.environment().unwrap();
    assert!(venv(&environment).requirements.iter().any(|found| found == "sgl-kernel==0.1.7"));
    assert_eq!((&environment.python_path[..], environment.overlay), (&["python".to_owned()][..], None));
    let case =
        Case::known(EngineKind::Sglang, "da47621c").patched(&["sgl-kernel/csrc/moe/moe_topk_softmax_kernels.cu"]);
    check(&case, Some(Rung::Source), Some(Rung::Source), Some(Rung::Source));
}

#[test]
fn every_known_pair_has_an_environment() {
    let commits = &Knowledge::embedded().commits;
    let mut counts = BTreeMap::<String, u32>::new();
    for engine in [EngineKind::Vllm, EngineKind::Sglang] {
        for human in commits.of(engine).filter(|facts| facts.files_changed.is_some()) {
            let case = Case::known(engine, human.commit.as_str());
            let ladders = case.ladders();
            let rung = |arm| rung_of(&ladders, &arm).unwrap();
            let (environment, _) = case.environment().unwrap();
            assert_eq!(environment.build.is_empty(), rung(ArmId::Human) != Rung::Source, "{}", human.commit);
            assert!(!venv(&environment).requirements.is_empty() && environment.modules.len() == 1);
            let name = format!("{engine:?} {:?} {:?}", rung(ArmId::Baseline), rung(ArmId::Human));
            *counts.entry(name).or_default() += 1;
        }
    }
    let counts: Vec<_> = counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
    let expected = [
        "15 Sglang NativeTree NativeTree",
        "2 Vllm NativeTree NativeTree",
        "12 Vllm NativeTree Wheel",
        "18 Vllm Source Source",
        "59 Vllm Wheel NativeTree",
        "5 Vllm Wheel Wheel",
    ];
    assert_eq!(counts, expected);
}

fn any_facts(digit: char) -> impl Strategy<Value = Option<RevisionFacts>> {
    let year = 2023..2027u32;
    let releases = prop::option::of(prop::sample::select(vec!["v0.1.0", "v0.4.0", "v0.6.3", "v0.10.0", "v9.9"]));
    let key = prop::option::of(prop::sample::select(vec!["1", "2", "e3b0c44298fc", "839aed321a12"]));
    prop::option::weighted(0.9, (year, 1..13u32, key, releases)).prop_map(move |some| {
        let (year, month, key, after) = some?;
        let mut facts = facts(digit, &format!("{year}-{month:02}-11T00:00:00Z"), "", after);
        facts.native_key = key.map(str::to_owned);
        Some(facts)
    })
}

fn any_case() -> impl Strategy<Value = Case> {
    let engine = prop::sample::select(vec![EngineKind::Vllm, EngineKind::Sglang, EngineKind::Generic]);
    let files = prop::sample::select(vec!["vllm/x.py", "csrc/x.cu", "sgl-kernel/csrc/x.cu"]);
    let touched = prop::option::of(prop::collection::vec(files, 1..3));
    let probe = prop::sample::select(vec![None, Some(Probe::Present), Some(Probe::Absent)]);
    let there = any::<[bool; 2]>();
    let means = (any::<[bool; 3]>(), probe).prop_map(|([cpu, images, overlay], probe)| {
        let mut means = Means::on(if cpu { Platform::Cpu } else { Platform::Cuda });
        means.images = if images { Images::Usable } else { Images::Unusable };
        means.release_overlay = if overlay { ReleaseOverlay::Allowed } else { ReleaseOverlay::Refused };
        means.probes.extend(probe.map(|probe| (CommitId::new("a".repeat(40)).unwrap(), probe)));
        means
    });
    let cases = (engine, any_facts('a'), any_facts('b'), touched, means, there);
    cases.prop_map(|(engine, baseline, human, touched, means, there)| {
        let touched = touched.map(|files| files.into_iter().map(str::to_owned).collect());
        let registry = Some(of_images::registry([("a", there[0]), ("b", there[1])]));
        Case { engine, baseline, human, touched, means, registry }
    })
}

proptest! {
    #[test]
    fn of_any_facts_one_rung_at_most_is_taken_and_all_above_it_are_refused(case in any_case()) {
        let ladders = case.ladders();
        for answers in ladders.values() {
            prop_assert_eq!(answers.iter().map(|answer| answer.rung).collect::<Vec<_>>(), RUNGS);
            let place = answers.iter().position(|answer| answer.answer == RungVerdict::Taken);
            for (index, answer) in answers.iter().enumerate() {
                let expected = match place {
                    Some(place) if index == place => RungVerdict::Taken,
                    Some(place) if index > place => RungVerdict::NotNeeded,
                    Some(_) | None => RungVerdict::Refused,
                };
                prop_assert_eq!(answer.answer, expected);
                prop_assert!(!answer.reason.is_empty());
            }
        }
        // Either every arm that can be had is built, or none is.
        let rungs: Vec<_> = ladders.values().filter_map(|answers| taken(answers)).map(|answer| answer.rung).collect();
        let built = rungs.iter().filter(|rung| **rung == Rung::Source).count();
        prop_assert!(built == 0 || built == rungs.len());
        // Either every arm runs from an image, or none does.
        let is_of_image = |answer: &RungAnswer| {
            let artifact = answer.artifact.as_deref().unwrap_or_default();
            artifact.starts_with(of_images::REPOSITORY)
        };
        let of_images = ladders.values().filter_map(|answers| taken(answers)).filter(|answer| is_of_image(answer)).count();
        prop_assert!(of_images == 0 || of_images == ladders.len());
        // Where both sides can be had, the planner can be told how.
        let both = [ArmId::Baseline, ArmId::Human].iter().all(|arm| taken(&ladders[arm]).is_some());
        if both && case.engine != EngineKind::Generic {
            let (environment, _) = case.environment().unwrap();
            prop_assert_eq!(matches!(environment.python, Python::Image(_)), of_images > 0);
        }
    }
}
