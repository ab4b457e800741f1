//! What people see of a dataset of commits before a device is used.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use isobench_report::guide::{Measure, Reported, ReportedCategory, guide};
use isobench_report::lint::{Grouping, RuleText, Summary};
use isobench_report::terminal::{self, Style};
use isobench_report::{html, json, markdown};
use isobench_schema::assessment::{Assessment, Cost, NeededRecipe, PlannedFor, Severity, Standing};
use isobench_schema::deviation::{Deviation, DeviationKind};
use isobench_schema::ids::TaskId;
use isobench_schema::plan::{Exclusion, ExclusionReason, Problem};
use sha2::{Digest as _, Sha256};

use crate::{assessed, sample};

fn style(width: usize) -> Style {
    Style { width, color: false }
}

fn one(commit: &str) -> Assessment {
    assessed::every_standing().into_iter().find(|task| task.task.as_str().ends_with(commit)).unwrap()
}

fn problem() -> Problem {
    Problem {
        file: "rows.jsonl".to_owned(),
        line: Some(7),
        column: None,
        message: "`commit_hash` is no commit".to_owned(),
    }
}

fn rule() -> RuleText {
    RuleText {
        id: "placeholder".to_owned(),
        severity: Severity::Error,
        title: "A word such as `MODEL` was never replaced".to_owned(),
        meaning: "The command was copied from a template. Its words mean nothing to the program.".to_owned(),
        matters: "Nobody knows which workload was meant.".to_owned(),
        example: "`python benchmarks/benchmark_latency.py --model MODEL` names no model.".to_owned(),
        fix: "Write the value that the commit's author used.".to_owned(),
        repairs: "isobench never mends it.".to_owned(),
        source: "ISO-Bench run report of 2025-12-26".to_owned(),
    }
}

/// Every page of the terminal of some tasks.
fn pages(assessments: &[Assessment], width: usize) -> Vec<String> {
    let style = style(width);
    let mut pages = vec![
        terminal::funnel(assessments, None, style),
        terminal::plan(&assessed::plan(assessments.to_vec()), style),
        terminal::lint(assessments, &[problem()], Grouping::Task, style),
        terminal::lint(assessments, &[problem()], Grouping::Rule, style),
    ];
    pages.extend(assessments.iter().map(|task| terminal::assessment(task, None, style)));
    pages
}

#[test]
fn the_sample_covers_every_standing() {
    let tasks = assessed::every_standing();
    for standing in Standing::ALL {
        assert!(tasks.iter().any(|task| task.standing == *standing), "{standing}");
    }
}

#[test]
fn a_funnel_reads_well() {
    let tasks = assessed::every_standing();
    insta::assert_snapshot!("funnel", terminal::funnel(&tasks, None, style(100)));
    insta::assert_snapshot!("funnel_narrow", terminal::funnel(&tasks, None, style(60)));
    insta::assert_snapshot!("funnel_wide", terminal::funnel(&tasks, None, style(140)));
    let color = terminal::funnel(&tasks, None, Style { width: 100, color: true });
    insta::assert_snapshot!("funnel_color", color.replace('\u{1b}', "␛"));
    insta::assert_snapshot!("funnel_empty", terminal::funnel(&[], None, style(100)));
}

#[test]
fn a_plan_of_commits_ends_with_its_funnel() {
    let mut plan = assessed::plan(assessed::every_standing());
    plan.planned_for = Some(PlannedFor { device: "h100-80gb".to_owned(), count: 1, assumed: true });
    let page = terminal::plan(&plan, style(100));
    assert!(page.ends_with(&terminal::funnel(&plan.assessments, plan.planned_for.as_ref(), style(100))));
    insta::assert_snapshot!("plan_of_commits", page);
}

#[test]
fn the_story_of_a_task_fits_a_screen() {
    for task in assessed::every_standing() {
        let story = terminal::assessment(&task, None, style(100));
        assert!(story.lines().count() <= 40, "{story}");
    }
    for (name, commit) in
        [("as_is", "f26c4aee"), ("repaired", "296f927f"), ("too_large", "7661e92e"), ("built", "d4bc1a4d")]
    {
        insta::assert_snapshot!(format!("story_{name}"), terminal::assessment(&one(commit), None, style(100)));
    }
    insta::assert_snapshot!("story_no_command", terminal::assessment(&one("3127e975"), None, style(100)));
    insta::assert_snapshot!("story_narrow", terminal::assessment(&one("296f927f"), None, style(60)));
    let color = terminal::assessment(&one("296f927f"), None, Style { width: 100, color: true });
    insta::assert_snapshot!("story_color", color.replace('\u{1b}', "␛"));
}

#[test]
fn findings_read_well_by_task_and_by_rule() {
    let tasks = assessed::every_standing();
    insta::assert_snapshot!("lint", terminal::lint(&tasks, &[problem()], Grouping::Task, style(100)));
    insta::assert_snapshot!("lint_by_rule", terminal::lint(&tasks, &[], Grouping::Rule, style(100)));
    insta::assert_snapshot!("lint_narrow", terminal::lint(&tasks, &[problem()], Grouping::Task, style(60)));
    insta::assert_snapshot!("lint_nothing", terminal::lint(&[], &[], Grouping::Task, style(100)));
}

#[test]
fn a_rule_explains_itself() {
    insta::assert_snapshot!("rule", terminal::rule(&rule(), style(100)));
    insta::assert_snapshot!("rules", terminal::rules(&[rule(), rule()], style(100)));
}

#[test]
fn hostile_assessments_are_only_text() {
    for page in pages(&[assessed::hostile()], 100) {
        assert!(!page.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{page}");
    }
}

#[test]
fn terminals_are_never_overrun() {
    let mut tasks = assessed::every_standing();
    tasks.push(assessed::hostile());
    for width in [60, 100, 140] {
        for page in pages(&tasks, width) {
            let longest = page.lines().max_by_key(|line| line.chars().count()).unwrap();
            assert!(longest.chars().count() <= width, "{width}: {longest}");
        }
    }
    for width in [0, 20] {
        assert!(pages(&tasks, width).iter().all(|page| !page.is_empty()));
    }
}

#[test]
fn a_plan_reads_well_as_markdown() {
    let mut plan = assessed::plan(assessed::every_standing());
    plan.planned_for = Some(PlannedFor { device: "h100-80gb".to_owned(), count: 1, assumed: false });
    plan.problems = vec![problem()];
    insta::assert_snapshot!("plan_markdown", markdown::plan(&plan));
    insta::assert_snapshot!("plan_markdown_of_tasks", markdown::plan(&sample::plan()));
}

#[test]
fn the_page_of_a_plan_is_what_it_was() {
    let mut plan = assessed::plan(assessed::every_standing());
    plan.problems = vec![problem()];
    let page = html::plan_page(&plan, &html::Options::default());
    let (head, rest) = page.split_once("<style>").unwrap();
    let (_, body) = rest.split_once("</style>").unwrap();
    let (body, _) = body.split_once("<script>").unwrap();
    let of_tasks = html::plan_page(&sample::plan(), &html::Options::default());
    for part in ["chunked-prefill", "agent:half", "eight-gpus", "it needs 8 devices", "tasks/broken/task.toml:7"] {
        assert!(of_tasks.contains(part), "{part}");
    }
    insta::assert_snapshot!("plan_page", format!("{head}{body}").replace("><", ">\n<"));
}

#[test]
fn the_page_of_a_plan_runs_its_own_script_only() {
    let page = html::plan_page(&assessed::plan(vec![assessed::hostile()]), &html::Options::default());
    let (_, script) = page.split_once("<script>").unwrap();
    let (script, rest) = script.split_once("</script>").unwrap();
    let digest = STANDARD.encode(Sha256::digest(script));
    assert!(
        page.contains(&format!("script-src &#39;sha256-{digest}&#39;"))
            || page.contains(&format!("script-src 'sha256-{digest}'")),
        "{digest}"
    );
    assert!(!rest.contains("<script") && page.matches("<script").count() == 1);
    assert!(!page.contains(['\u{1b}', '\u{7}', '\u{202e}']));
    let without_namespace = page.replace("http://www.w3.org/2000/svg", "");
    for forbidden in ["<link", "<img", "<iframe", "url(", "@import", "innerHTML"] {
        assert!(!without_namespace.contains(forbidden), "{forbidden}");
    }
}

#[test]
fn findings_as_json_have_every_part() {
    let found = json::lint(&assessed::every_standing(), &[problem()]);
    let keys: Vec<&String> = found.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["findings", "problems", "summary"]);
    insta::assert_json_snapshot!("lint_json_summary", found["summary"]);
    insta::assert_json_snapshot!("lint_json_finding", found["findings"][0]);
    assert!(Summary::of(&assessed::every_standing(), &[]).is_broken());
    assert!(!Summary::of(&assessed::every_standing()[..4], &[]).is_broken());
    assert!(Summary::of(&[], &[problem()]).is_broken());
}

#[test]
fn a_guide_gives_a_reason_for_each_commit_on_which_it_differs() {
    let category = |name: &str, measure: Option<Measure>, commits: &[&str]| ReportedCategory {
        name: name.to_owned(),
        reported: u32::try_from(commits.len()).unwrap(),
        commits: commits.iter().map(|&commit| commit.to_owned()).collect(),
        measure,
        note: None,
    };
    let no_command = Measure::Rules(vec!["no-command".to_owned()]);
    let commands = ["3127e975", "b55ed6ef", "25ebed2f", "88693683", "296f927f", "f092153f", "ffffffff"];
    let reports = [Reported {
        title: "Report <of> a run".to_owned(),
        date: "2025-12-26".to_owned(),
        about: "a few commits on one device".to_owned(),
        categories: vec![
            category("no command", Some(no_command), &commands),
            category("no wheel", Some(Measure::NoWheel), &["f26c4aee", "d4bc1a4d"]),
            category("model too large", Some(Measure::TooLarge), &["baeded25", "fe66b347"]),
            category("several devices asked for", Some(Measure::DevicesAsked), &["98f47f2a"]),
            category("8 devices", Some(Measure::Devices(8)), &[]),
            category("time-out", None, &["c45f3c3a", "3b61cb45", "7661e92e", "526de822"]),
        ],
    }];
    let plan = assessed::plan(assessed::every_standing());
    let guide = guide("The commits", "Written by a test.", &plan, &reports);
    insta::assert_snapshot!("guide", guide);
}

#[test]
fn a_plan_of_commits_says_in_a_few_lines_what_it_leaves_out() {
    let mut plan = assessed::plan(assessed::every_standing());
    let exclusion = |commit: &str, arm: Option<&str>, reason: ExclusionReason, message: &str| Exclusion {
        task: TaskId::new(format!("vllm-{commit}")).unwrap(),
        arm: arm.map(sample::arm),
        reason,
        message: message.to_owned(),
    };
    let lacks = |commit: &str, dataset: &str| {
        exclusion(commit, None, ExclusionReason::ClientLacks, &format!("the client can't draw from `{dataset}`"))
    };
    plan.exclusions = vec![
        lacks("f26c4aee", "sharegpt"),
        lacks("296f927f", "prefix-caching"),
        lacks("fe66b347", "sharegpt"),
        exclusion("98f47f2a", None, ExclusionReason::NotChosen, "it wasn't asked for"),
        exclusion("d4bc1a4d", None, ExclusionReason::NotChosen, "it wasn't asked for"),
        exclusion("c45f3c3a", Some("human"), ExclusionReason::ToolMissing, "`nvcc` is missing"),
        exclusion("3127e975", None, ExclusionReason::CannotRun, "the dataset gives no command"),
    ];
    let page = terminal::plan(&plan, style(100));
    for line in [
        "plan of sample: 16 tasks assessed, 0 planned to run here\n",
        "6 tasks that can run are left out here: 3 with a workload that isobench's client can't run, 2 not\nasked for, 1 for which the plan gives no reason\n",
        "      3  (client-lacks) the client can't draw from `…`: f26c4aee, 296f927f, fe66b347\n",
        "      1  (tool-missing) `nvcc` is missing: c45f3c3a/human\n",
        "  2 tasks were not asked for\n",
    ] {
        assert!(page.contains(line), "{line}\n{page}");
    }
    assert!(!page.contains("(cannot-run)"), "{page}");
}

#[test]
fn devices_that_are_planned_already_open_nothing() {
    let mut tasks = assessed::every_standing();
    for task in tasks.iter_mut().filter(|task| task.standing == Standing::MoreDevices) {
        let is_too_large = task.need.as_ref().is_some_and(|need| need.devices.is_none());
        // A price of what can't run, and one of a launch that holds what is planned.
        let cost = one("f26c4aee").cost.unwrap();
        task.cost = Some(Cost { devices: if is_too_large { 16 } else { 1 }, ..Cost::clone(&cost) }.into());
    }
    let planned_for = PlannedFor { device: "h100-sxm".to_owned(), count: 1, assumed: false };
    let openings = isobench_report::funnel::funnel(&tasks, Some(&planned_for)).openings;
    assert!(openings.iter().any(|text| text.starts_with("8 devices would open 1 task more")), "{openings:?}");
    assert!(openings.iter().any(|text| text == "1 task would need devices with more memory"), "{openings:?}");
    assert!(!openings.iter().any(|text| text.starts_with("1 device ") || text.starts_with("16 ")), "{openings:?}");
}

#[test]
fn the_price_of_preparing_is_shown_where_one_is_known() {
    let mut tasks = assessed::every_standing();
    assert!(terminal::funnel(&tasks, None, style(100)).contains("preparing  price  device-hours"));
    for task in &mut tasks {
        task.cost = task.cost.as_ref().map(|cost| Cost { prepare_usd: None, ..Cost::clone(cost) }.into());
    }
    let page = terminal::funnel(&tasks, None, style(100));
    assert!(page.contains("preparing  device-hours"), "{page}");
    assert!(page.contains("assumed: a device costs $3.00 an hour\n") && !page.contains("6 blocks"), "{page}");
    assert!(!markdown::funnel(&tasks, None).contains("its price"));
}

#[test]
fn a_story_names_the_packages_that_fit_and_every_reason_of_an_option() {
    let mut task = one("296f927f");
    let packages: Vec<String> = (1..=40).map(|number| format!("package-{number}<=1.{number}")).collect();
    let reason = "x".repeat(75);
    let deviation = |kind, asked: &str, run: &str, reason: &str| Deviation {
        kind,
        subject: "subject".to_owned(),
        asked: asked.to_owned(),
        run: run.to_owned(),
        reason: reason.to_owned(),
    };
    task.repairs = vec![
        deviation(DeviationKind::PackageOverride, "open", &packages.join(", "), "released by 2024-08-31; or later"),
        deviation(DeviationKind::OptionTranslated, "`--a`", "`--b`", &format!("{reason} {reason}")),
        deviation(DeviationKind::OptionTranslated, "`--c`", "`--d`", &format!("{reason} {reason}")),
    ]
    .into();
    let story = terminal::assessment(&task, None, style(100));
    let lines: Vec<&str> = story.lines().skip_while(|line| !line.contains("package-override")).take(4).collect();
    assert!(lines[0].contains("40 packages (released by 2024-08-31): package-1<=1.1, "), "{story}");
    assert!(lines[2].ends_with(" more") && lines[3].contains("option-translated"), "{story}");
    assert_eq!(story.matches(&reason).count(), 2, "a reason that two options share is told once, whole: {story}");
}

#[test]
fn a_long_story_says_less_of_each_part() {
    let mut task = one("296f927f");
    let recipe = task.recipes[0].clone();
    let recipes = |number: usize| (0..number).map(|_| NeededRecipe { effect: "e ".repeat(90), ..recipe.clone() });
    task.recipes = recipes(3).collect::<Vec<_>>().into();
    let lines = |task: &Assessment| terminal::assessment(task, None, style(100)).lines().count();
    let short = lines(&task);
    task.recipes = recipes(20).collect::<Vec<_>>().into();
    assert!(lines(&task) <= 55 && lines(&task) - short < 17 * 2, "{}", lines(&task));
}
