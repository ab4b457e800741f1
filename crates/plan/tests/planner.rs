//! Plans: designs, seeds, deviations, exclusions; same input, same bytes.

mod example;

use example::{EvenLevels, SAMPLE, changed, facts, options, plan, read_task};
use isobench_plan::choose::{Choice, inputs_needed, revisions_needed};
use isobench_plan::dataset::Dataset;
use isobench_plan::estimate;
use isobench_plan::planner::{self, DesignOptions, PlanOptions};
use isobench_schema::container::{ContainerSpec, ImageFacts};
use isobench_schema::deviation::{Deviation, DeviationKind};
use isobench_schema::environment::Isolation;
use isobench_schema::facts::{Device, Facts, ResolvedRevision};
use isobench_schema::failure::{Failure, FailureClass, FailureStage};
use isobench_schema::format;
use isobench_schema::ids::{ArmId, TaskId};
use isobench_schema::plan::{Plan, PlannedTask};
use isobench_schema::workload::WorkloadKind;
use proptest::prelude::*;

fn task(plan: &Plan) -> &PlannedTask {
    plan.tasks.first().unwrap_or_else(|| unreachable!("no task: {:?}", plan.exclusions))
}

fn arms(task: &PlannedTask) -> Vec<String> {
    task.arms.iter().map(|planned| planned.arm.to_string()).collect()
}

fn with(dataset: &Dataset, change: impl FnOnce(&mut PlanOptions)) -> Plan {
    let mut options = options();
    change(&mut options);
    planner::plan(dataset, &facts(dataset), &options, &EvenLevels).expect("a plan")
}

fn arm(name: &str) -> ArmId {
    name.parse().expect("an arm")
}

#[test]
fn a_task_is_planned_with_every_arm_that_has_something_to_run() {
    let plan = plan(&read_task(SAMPLE, &[]));
    let task = task(&plan);
    assert_eq!(arms(task), ["baseline", "human", "agent:fast"]);
    assert_eq!(task.not_run, [arm("agent:absent")]);
    let contrasts: Vec<_> = task.contrasts.iter().map(|one| format!("{} {}", one.of, one.against)).collect();
    assert_eq!(contrasts, ["human baseline", "agent:fast baseline", "agent:fast human"]);
    assert_eq!(task.environments.len(), 3);
    for planned in &task.arms {
        let spec = task.environments.get(&planned.environment).unwrap();
        assert_eq!(spec.id().unwrap(), planned.environment);
        assert_eq!(spec.source.patch.is_some(), planned.arm == arm("agent:fast"));
    }
    assert_eq!((task.design.blocks(), task.design.replacements), (6, 2));
    assert_eq!(task.deviations, []);
    assert_eq!(plan.exclusions, []);
}

#[test]
fn seeds_and_the_digest_are_the_same_for_ever() {
    let plan = plan(&read_task(SAMPLE, &[]));
    let blocks = Plan::blocks(task(&plan)).unwrap();
    let prompts = blocks.iter().map(|block| block.prompt_seed).next().unwrap();
    assert_eq!((task(&plan).design.seed, prompts), (5_395_466_590_906_756, 7_144_989_640_108_925));
    let other = with(&read_task(SAMPLE, &[]), |options| options.seed = 8);
    assert_ne!(task(&other).design.seed, task(&plan).design.seed);
    assert_eq!(plan.digest().unwrap(), example::plan(&read_task(SAMPLE, &[])).digest().unwrap());
}

#[test]
fn looks_are_rounded_up_to_balanced_orders() {
    for (arms, expected) in [
        (2, &[6, 10, 16, 24][..]),
        (3, &[6, 12, 18, 24]),
        (4, &[8, 12, 16, 24]),
        (5, &[10, 20, 30]),
        (6, &[6, 12, 18, 24]),
        (9, &[6, 10, 16, 24]),
    ] {
        assert_eq!(planner::default_looks(24, arms), expected, "{arms}");
    }
}

#[test]
fn a_task_is_looked_at_as_it_asks_or_as_the_options_say() {
    let looks = |settings: &[&str], design: DesignOptions| {
        let plan = with(&read_task(SAMPLE, settings), |options| options.design = design);
        task(&plan).design.looks.iter().map(|look| (look.blocks, look.level)).collect::<Vec<_>>()
    };
    let quarter = 0.0125;
    let default = DesignOptions::default;
    assert_eq!(looks(&[], default()), [(6, quarter), (12, quarter), (18, quarter), (24, quarter)]);
    assert_eq!(looks(&["design.max-blocks=12"], default()), [(6, 0.025), (12, 0.025)]);
    assert_eq!(looks(&["design.blocks=9"], default()), [(9, 0.05)], "one look has the whole error");
    let most = |max_blocks| DesignOptions { max_blocks, ..default() };
    assert_eq!(looks(&["design.max-blocks=48"], most(Some(12))), [(6, 0.025), (12, 0.025)]);
    let asked = DesignOptions { looks: Some(vec![7]), ..default() };
    assert_eq!(looks(&["design.blocks=9"], asked), [(7, 0.05)]);

    let dataset = read_task(SAMPLE, &[]);
    let design = DesignOptions { looks: Some(vec![8, 8]), ..default() };
    let options = PlanOptions { design, ..options() };
    let error = planner::plan(&dataset, &facts(&dataset), &options, &EvenLevels).unwrap_err();
    let told = "task `sample` can't be looked at after [8, 8] blocks: each look must come after the one before it";
    assert_eq!(error.to_string(), told);
}

/// Checks the deviations of the sample with one text replaced, as kind, subject, asked and run.
fn check_deviation(text: &str, settings: &[&str], expected: &[(DeviationKind, &str, &str, &str)]) {
    let plan = plan(&read_task(text, settings));
    let found: Vec<_> = task(&plan)
        .deviations
        .iter()
        .map(|Deviation { kind, subject, asked, run, .. }| (*kind, subject.as_str(), asked.as_str(), run.as_str()))
        .collect();
    assert_eq!(found, expected);
    assert!(task(&plan).deviations.iter().all(|deviation| !deviation.reason.is_empty()));
}

#[test]
fn every_deviation_is_planned() {
    let venv = "[environment]\npython = \"venv\"\n";
    let add = |lines: &str| changed("[server]", &format!("{lines}\n[server]"));
    let serve = |line: &str| changed("[server]", &format!("[server]\n{line}"));
    let load = |line: &str| changed("[workload]", &format!("[workload]\n{line}"));
    for (text, kind, subject, asked, run) in [
        (add("[design]\nmin-window-s = 1.5"), DeviationKind::MinWindow, "design.min-window-s", "30 s", "1.5 s"),
        (add("[design]\nblocks = 2"), DeviationKind::FewerBlocks, "design.blocks", "6", "2"),
        (
            add(&format!("{venv}overrides = [\"a\", \"b<2\"]")),
            DeviationKind::PackageOverride,
            "environment.overrides",
            "what each package requires",
            "a, b<2",
        ),
        (
            add(&format!("{venv}no-dependencies = [\"a\"]")),
            DeviationKind::PackageOverride,
            "environment.no-dependencies",
            "packages with their dependencies",
            "a",
        ),
        (
            add(&format!("{venv}aliases = [{{name = \"a\", version = \"1\"}}]")),
            DeviationKind::PackageOverride,
            "environment.aliases",
            "packages under their own names",
            "a 1",
        ),
        (
            add(&format!("{venv}overlay = \"vllm\"")),
            DeviationKind::ReleaseOverlay,
            "environment.overlay",
            "native files built from each revision",
            "the native files of the installed `vllm`",
        ),
        (
            add("[environment]\nallow-binary-patch = true"),
            DeviationKind::BinaryPatch,
            "environment.allow-binary-patch",
            "false",
            "true",
        ),
        (serve("allow-network = true"), DeviationKind::NetworkAllowed, "server.allow-network", "false", "true"),
        (load("probes = {count = 0}"), DeviationKind::OutputUnchecked, "workload.probes.count", "4", "0"),
        (load("temperature = 0.5"), DeviationKind::OutputUnchecked, "workload.temperature", "0", "0.5"),
    ] {
        check_deviation(&text, &[], &[(kind, subject, asked, run)]);
    }
    check_deviation(
        SAMPLE,
        &["server.dtype=float32"],
        &[(DeviationKind::Override, "server.dtype", "nothing", "float32")],
    );
    check_deviation(
        SAMPLE,
        &["design.blocks=2"],
        &[
            (DeviationKind::Override, "design.blocks", "several looks", "2"),
            (DeviationKind::FewerBlocks, "design.blocks", "6", "2"),
        ],
    );
    check_deviation(SAMPLE, &["workload.requests=100", "server.health=/health"], &[]);
}

#[test]
fn chosen_arms_are_a_deviation_and_the_others_are_excluded() {
    let plan = with(&read_task(SAMPLE, &[]), |options| options.choice.arms = vec![arm("agent:fast"), arm("baseline")]);
    let both = task(&plan);
    assert_eq!(arms(both), ["baseline", "agent:fast"]);
    assert_eq!(both.not_run, []);
    let deviation = both.deviations.first().unwrap();
    assert_eq!(deviation.kind, DeviationKind::ArmsChosen);
    assert_eq!(deviation.asked, "baseline, human, agent:fast, agent:absent");
    assert_eq!(deviation.run, "baseline, agent:fast");
    assert_eq!(
        exclusions(&plan),
        [
            "human not-chosen: arm `human` was not asked for",
            "agent:absent not-chosen: arm `agent:absent` was not asked for",
        ]
    );
    let plan = with(&read_task(SAMPLE, &[]), |options| options.choice.arms = vec![arm("human")]);
    assert_eq!(arms(task(&plan)), ["human"]);
    assert_eq!(task(&plan).contrasts, []);
}

fn exclusions(plan: &Plan) -> Vec<String> {
    let text = |arm: &Option<ArmId>| arm.as_ref().map_or_else(|| "task".to_owned(), ArmId::to_string);
    plan.exclusions.iter().map(|one| format!("{} {}: {}", text(&one.arm), one.reason, one.message)).collect()
}

/// Checks the exclusions of a task under changed facts, and the arms that are left.
fn check_exclusion(text: &str, change: impl FnOnce(&mut Facts), expected: &str, left: &[&str]) {
    let dataset = read_task(text, &[]);
    let mut facts = facts(&dataset);
    change(&mut facts);
    let plan = planner::plan(&dataset, &facts, &options(), &EvenLevels).expect("a plan");
    assert_eq!(exclusions(&plan), [expected]);
    assert_eq!(plan.tasks.first().map(arms).unwrap_or_default(), left);
}

fn missing(facts: &mut Facts, revision: &str, class: FailureClass) {
    let failure = Failure::new(FailureStage::Acquire, class, "it is gone");
    let revisions = facts.revisions.values_mut().next().expect("a repository");
    revisions.insert(revision.to_owned(), ResolvedRevision::Missing { failure });
}

#[test]
fn what_cannot_run_is_excluded_with_its_reason() {
    let needs = |line: &str| changed("[server]", &format!("[requirements]\n{line}\n[server]"));
    let none = |_: &mut Facts| {};
    check_exclusion(
        &needs("devices = 2"),
        |facts| facts.host.devices = vec![Device { name: "x".to_owned(), memory_mib: 1, driver: "1".to_owned() }],
        "task machine-too-small: task `sample` needs 2 accelerators, the machine has 1",
        &[],
    );
    check_exclusion(
        &needs("memory-gib = 8.5"),
        none,
        "task machine-too-small: task `sample` needs 8.5 GiB of memory, the machine has 8.0 GiB",
        &[],
    );
    check_exclusion(
        &needs("disk-gib = 100"),
        none,
        "task machine-too-small: task `sample` needs 100 GiB of free disk, the machine has 10.0 GiB",
        &[],
    );
    let tools = |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), "1".to_owned())).collect();
    check_exclusion(
        SAMPLE,
        |facts| facts.host.tools = tools(&["git"]),
        "task tool-missing: task `sample` needs `python3`, which is not on this machine",
        &[],
    );
    check_exclusion(
        SAMPLE,
        |facts| missing(facts, "after", FailureClass::RevisionNotFound),
        "human revision-not-found: revision `after` of `/data/set/repo`: it is gone",
        &["baseline", "agent:fast"],
    );
    check_exclusion(
        SAMPLE,
        |facts| missing(facts, "before", FailureClass::RevisionNotFound),
        "task revision-not-found: revision `before` of `/data/set/repo`: it is gone",
        &[],
    );
    check_exclusion(
        SAMPLE,
        |facts| missing(facts, "before", FailureClass::RepositoryUnavailable),
        "task repository-unavailable: revision `before` of `/data/set/repo`: it is gone; `repository` must be a URL or a folder, relative to the task's own",
        &[],
    );
    check_exclusion(
        SAMPLE,
        |facts| facts.revisions.clear(),
        "task revision-not-found: revision `before` of `/data/set/repo` was not looked up for these facts",
        &[],
    );
    let weights = changed("model = \"tiny\"", "model = \"weights\"");
    check_exclusion(
        &weights,
        |facts| facts.inputs.clear(),
        "task input-missing: `/data/set/t/weights`, which `server.model` names, was not looked up for these facts",
        &[],
    );
    check_exclusion(
        &weights,
        |facts| facts.inputs.values_mut().for_each(|digest| *digest = None),
        "task input-missing: `/data/set/t/weights`, which `server.model` names, does not exist",
        &[],
    );
    assert_eq!(task(&plan(&read_task(&weights, &[]))).inputs.keys().collect::<Vec<_>>(), ["/data/set/t/weights"]);
}

#[test]
fn a_task_with_nothing_left_to_compare_is_not_run() {
    let dataset = read_task(SAMPLE, &[]);
    let mut facts = facts(&dataset);
    missing(&mut facts, "after", FailureClass::RevisionNotFound);
    let with_arms = |arms: &[&str]| {
        let choice = Choice { arms: arms.iter().map(|name| arm(name)).collect(), ..Choice::default() };
        planner::plan(&dataset, &facts, &PlanOptions { choice, ..options() }, &EvenLevels).expect("a plan")
    };
    let alone = with_arms(&["baseline", "human"]);
    assert!(alone.tasks.is_empty());
    let why = exclusions(&alone);
    let expected = "task revision-not-found: task `sample` has nothing left to compare but `baseline`; `human` is left out: \
                    revision `after` of `/data/set/repo`: it is gone";
    assert!(why.iter().any(|line| line == expected), "{why:?}");
    // What was asked for alone is run alone.
    assert_eq!(arms(task(&with_arms(&["baseline"]))), ["baseline"]);
    assert_eq!(arms(task(&with_arms(&["baseline", "human", "agent:fast"]))), ["baseline", "agent:fast"]);
}

#[test]
fn agents_do_not_run_unisolated_unless_allowed() {
    let plan = with(&read_task(SAMPLE, &[]), |options| options.allow_unisolated = false);
    assert_eq!(
        exclusions(&plan),
        [
            "agent:fast isolation-missing: the patch is a stranger's program and would run with isolation `none`; to run it all the same, give `--allow-unisolated`"
        ]
    );
    assert_eq!(arms(task(&plan)), ["baseline", "human"]);
    assert_eq!(task(&plan).not_run, [arm("agent:absent")]);
}

#[test]
fn agents_run_in_containers_and_their_files_are_built_in_them() {
    let in_containers = |dataset: &Dataset| {
        with(dataset, |options| {
            options.allow_unisolated = false;
            options.container = Some(ContainerSpec { image: Some(ImageFacts::default()), ..ContainerSpec::default() });
        })
    };
    let mut dataset = read_task(SAMPLE, &[]);
    dataset.tasks[0].environment.build.clear();
    let plan = in_containers(&dataset);
    assert_eq!((plan.isolation, exclusions(&plan)), (Isolation::Container, Vec::new()));
    assert_eq!(arms(task(&plan)), ["baseline", "human", "agent:fast"]);
    dataset.tasks[0].environment.build = vec![vec!["make".to_owned()]];
    let plan = in_containers(&dataset);
    assert_eq!(exclusions(&plan), Vec::<String>::new());
    assert!(task(&plan).environments.values().all(|spec| spec.toolkit.is_some()));
}

#[test]
fn an_arm_without_a_patch_alone_leaves_nothing_to_run() {
    let plan = with(&read_task(SAMPLE, &[]), |options| options.choice.arms = vec![arm("agent:absent")]);
    assert!(plan.tasks.is_empty());
    assert_eq!(
        exclusions(&plan).last().unwrap(),
        "task not-chosen: task `sample` has no patch for any of the arms asked for"
    );
}

fn two_tasks() -> Dataset {
    let mut dataset = read_task(SAMPLE, &[]);
    let mut second = dataset.tasks.first().cloned().expect("a task");
    second.id = TaskId::new("second").expect("an id");
    dataset.tasks.push(second);
    dataset
}

#[test]
fn tasks_are_chosen_by_name_kind_and_number() {
    let id = |text: &str| TaskId::new(text).unwrap();
    let check = |choice: Choice, left: &[&str], expected: &[&str]| {
        let plan = with(&two_tasks(), |options| options.choice = choice);
        assert_eq!(plan.tasks.iter().map(|task| task.id.as_str()).collect::<Vec<_>>(), left);
        assert_eq!(exclusions(&plan), expected);
    };
    let tasks = vec![id("second")];
    check(Choice { tasks, ..Choice::default() }, &["second"], &["task not-chosen: task `sample` was not asked for"]);
    check(
        Choice { limit: Some(1), ..Choice::default() },
        &["sample"],
        &["task not-chosen: task `second` is beyond the limit of 1 tasks"],
    );
    check(
        Choice { kind: Some(WorkloadKind::Latency), ..Choice::default() },
        &[],
        &[
            "task not-chosen: only `latency` workloads were asked for, and that of task `sample` is `serving`",
            "task not-chosen: only `latency` workloads were asked for, and that of task `second` is `serving`",
        ],
    );
    let dataset = two_tasks();
    let choice = Choice { tasks: vec![id("sampel")], ..Choice::default() };
    let error =
        planner::plan(&dataset, &facts(&dataset), &PlanOptions { choice, ..options() }, &EvenLevels).unwrap_err();
    assert_eq!(error.to_string(), "unknown task `sampel`; did you mean `sample`?");
    let choice = Choice { arms: vec![arm("agent:fats")], ..Choice::default() };
    let error =
        planner::plan(&dataset, &facts(&dataset), &PlanOptions { choice, ..options() }, &EvenLevels).unwrap_err();
    assert_eq!(error.to_string(), "unknown arm `agent:fats`; did you mean `agent:fast`?");
}

#[test]
fn only_what_a_choice_needs_is_looked_up() {
    let dataset = read_task(&changed("model = \"tiny\"", "model = \"weights\""), &[]);
    let needed = |arms: Vec<ArmId>| {
        let choice = Choice { arms, ..Choice::default() };
        revisions_needed(&dataset, &choice).into_iter().map(|(_, revision)| revision.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(needed(Vec::new()), ["after", "before"]);
    assert_eq!(needed(vec![arm("human")]), ["after"]);
    assert_eq!(needed(vec![arm("agent:fast")]), ["before"]);
    assert_eq!(inputs_needed(&dataset, &Choice::default()), ["/data/set/t/weights"]);
    assert!(inputs_needed(&dataset, &Choice { limit: Some(0), ..Choice::default() }).is_empty());
}

#[test]
fn the_baseline_can_be_run_against_itself() {
    let plan = with(&read_task(SAMPLE, &[]), |options| options.baseline_against_itself = true);
    let task = task(&plan);
    assert_eq!(arms(task), ["baseline", "human"]);
    assert_eq!(task.environments.len(), 1);
    assert_eq!(task.not_run, []);
    assert_eq!(task.contrasts.len(), 1);
    let deviation = task.deviations.first().unwrap();
    assert_eq!((deviation.kind, deviation.run.as_str()), (DeviationKind::Override, "the baseline `before` once more"));
}

#[test]
fn the_estimate_is_blocks_times_launches_and_the_environments_once() {
    let plan =
        plan(&read_task(SAMPLE, &["design.min-window-s=10", "workload.warm-up-requests=0", "workload.probes.count=0"]));
    let task = task(&plan);
    let launch = estimate::START_GENERIC_S + 10.0 * 1.2 + estimate::STOP_S;
    assert!((estimate::launch_s(task) - launch).abs() < 1e-9);
    let expected = 18.0 * launch + 3.0 * estimate::ENVIRONMENT_S;
    assert!((task.estimate_s.get() - expected).abs() < 1e-9);
    assert!((plan.estimate_s() - expected).abs() < 1e-9);
}

proptest! {
    #[test]
    fn same_input_same_bytes(seed in 0..u64::MAX, requests in 1..5000_u32, allow in any::<bool>(), null in any::<bool>()) {
        let bytes = || {
            let dataset = read_task(SAMPLE, &[&format!("workload.requests={requests}")]);
            let plan = with(&dataset, |options| {
                options.seed = seed;
                options.allow_unisolated = allow;
                options.baseline_against_itself = null;
            });
            format::to_pretty(&plan).expect("JSON")
        };
        let first = bytes();
        prop_assert_eq!(&first, &bytes());
        let read: Plan = format::from_slice(first.as_bytes()).expect("a plan");
        prop_assert_eq!(format::to_pretty(&read).expect("JSON"), first);
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "[a-z\\[\\]={}\"., 0-9\n-]{0,200}") {
        let _ = read_task(&text, &[]);
        let _ = read_task(&format!("{SAMPLE}\n{text}"), &[]);
    }
}
