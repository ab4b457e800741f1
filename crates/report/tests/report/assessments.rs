//! What people see of a dataset of commits before a device is used.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use isobench_report::guide::{Measure, Reported, ReportedCategory, guide};
use isobench_report::lint::{Grouping, RuleText, Summary};
use isobench_report::terminal::{self, Style};
use isobench_report::{html, json, markdown};
use isobench_schema::assessment::{Assessment, PlannedFor, Severity, Standing};
use isobench_schema::plan::Problem;
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
