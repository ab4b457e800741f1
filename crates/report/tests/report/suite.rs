//! What people see of a suite, in every format, and its plots.

use isobench_report::terminal::{self, Style};
use isobench_report::view::view;
use isobench_report::{csv, explain, html, json, markdown, svg};
use isobench_schema::ids::ArmId;
use isobench_schema::verdict::{Contrast, LookDecision, LookResult};

use crate::{sample, suite_sample};

/// Parses every file and returns them by name.
fn plots(tasks: usize) -> Vec<(String, String)> {
    let files = svg::files(&view(&suite_sample::suite(tasks), None));
    for file in &files {
        let parsed = roxmltree::Document::parse(&file.text);
        assert!(parsed.is_ok(), "{}: {:?}", file.name, parsed.err());
    }
    files.into_iter().map(|file| (file.name, file.text)).collect()
}

fn plot(tasks: usize, name: &str) -> String {
    plots(tasks).into_iter().find(|(found, _)| found == name).unwrap().1
}

#[test]
fn a_suite_reads_well_in_a_terminal() {
    let view = view(&suite_sample::suite(3), None);
    let text = terminal::judgement(&view, Style { width: 120, color: false });
    let (before, _) = text.split_once("\nvllm-project-vllm-").unwrap();
    insta::assert_snapshot!(before);
    let narrow = terminal::judgement(&view, Style { width: 60, color: false });
    assert!(narrow.lines().all(|line| line.chars().count() <= 60), "{narrow}");
}

#[test]
fn a_suite_reads_well_as_markdown() {
    let text = markdown::judgement(&view(&suite_sample::suite(3), None));
    let (_, suite) = text.split_once("## All tasks together").unwrap();
    let (suite, _) = suite.split_once("\n## vllm").unwrap();
    insta::assert_snapshot!(suite);
}

#[test]
fn a_suite_is_in_the_page_the_contract_and_the_csv() {
    let judgement = suite_sample::suite(12);
    let page = html::page(&view(&judgement, None), &html::Options::default());
    assert!(page.contains("All tasks together") && page.matches("svg class=\"drawing\"").count() == 4);
    let contract = json::contract(&judgement);
    assert_eq!(contract["suite"], serde_json::to_value(&judgement.suite).unwrap());
    let csv = csv::contrasts(&judgement);
    assert!(csv.lines().next().unwrap().ends_with("reason,overall_p,holm_p,benjamini_hochberg_p,confirmed"));
    assert!(csv.lines().nth(1).unwrap().ends_with(",0.001,0.01,0.004,"), "{csv}");
}

#[test]
fn what_counts_by_a_persons_word_is_marked_where_tasks_are_told_together() {
    let mut judgement = suite_sample::suite(3);
    let plain = view(&judgement, None);
    let task = &mut judgement.tasks[1];
    let human: ArmId = "human".parse().unwrap();
    task.confirmations = vec![sample::confirmation(&task.id, human, "the kernel is that fast")];
    let id = task.id.to_string();
    let marked = view(&judgement, None);
    let lead = marked.suite.as_ref().unwrap().lead.last().unwrap().clone();
    assert_eq!(lead, format!("Measurements of 1 task that broke a check count by a person's word (‡): {id}."));
    assert!(marked.tasks[1].headline.ends_with("; by a person's word ‡"), "{}", marked.tasks[1].headline);
    let rows = |view: &isobench_report::view::View| -> Vec<(String, bool)> {
        let forest = view.suite.as_ref().unwrap().forests.iter().find(|forest| forest.of == "human").unwrap();
        forest.rows.iter().map(|row| (row.task.clone(), row.text.ends_with(" ‡"))).collect()
    };
    assert!(rows(&plain).iter().all(|(_, is_marked)| !is_marked));
    assert!(rows(&marked).iter().all(|(task, is_marked)| *is_marked == (*task == id)), "{:?}", rows(&marked));
    assert!(terminal::judgement(&marked, Style { width: 120, color: false }).contains('‡'));
}

#[test]
fn a_forest_has_a_row_for_each_of_up_to_a_hundred_tasks() {
    for tasks in [2, 10, 100] {
        let plot = plot(tasks, "forest-human-baseline.svg");
        assert_eq!(plot.matches("class=\"task\"").count(), tasks);
        assert_eq!(plot.matches("class=\"diamond\"").count(), 1);
        assert!(plot.contains("prefers-color-scheme:dark") && !plot.contains("url("));
    }
}

#[test]
fn a_forest_of_more_is_compressed_and_paged() {
    let all = plots(250);
    let of = |name: &str| all.iter().find(|(found, _)| found == name).map(|(_, text)| text.as_str());
    let whole = of("forest-human-baseline.svg").unwrap();
    assert_eq!(whole.matches("class=\"task\"").count(), 0);
    let named: usize = (1..=3)
        .map(|page| of(&format!("forest-human-baseline-{page}.svg")).unwrap().matches("class=\"task\"").count())
        .sum();
    assert_eq!(named, 250);
    assert!(of("forest-human-baseline-4.svg").is_none());
    // An agent that failed in some tasks has its failures in the legend, and its mean with failures.
    let other = of("forest-agent-other-baseline-1.svg").unwrap();
    assert!(other.contains("agent-failed") && other.contains("with failures as no gain"));
}

#[test]
fn every_contrast_with_blocks_has_a_plot_and_the_coverage_a_funnel() {
    let files = svg::files(&view(&sample::every_verdict(), Some(&sample::plan())));
    let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
    assert!(names.contains(&"funnel.svg") && names.contains(&"chunked-prefill.human-baseline.svg"), "{names:?}");
    let harmless = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
    assert!(names.iter().all(|name| harmless(name)), "{names:?}");
    for (name, judgement) in sample::odd() {
        for file in svg::files(&view(&judgement, None)) {
            assert!(roxmltree::Document::parse(&file.text).is_ok(), "{name}: {}", file.name);
            assert!(!file.text.contains("NaN") && !file.text.contains("inf,"), "{name}: {}", file.name);
        }
    }
}

/// Returns the second look at a contrast, which decided as its verdict says.
fn look(contrast: &Contrast) -> LookResult {
    let decisions = [LookDecision::Better, LookDecision::Worse, LookDecision::Trivial, LookDecision::Equivalent];
    let decides = |decision: &LookDecision| decision.verdict() == Some(contrast.verdict);
    LookResult {
        look: 1,
        planned: 12,
        blocks: 12,
        level: 0.0163,
        equivalence_level: 0.0174,
        decision: decisions.into_iter().find(decides).unwrap_or(LookDecision::Undecided),
        estimate: contrast.estimate,
        low: contrast.low,
        high: contrast.high,
        p: contrast.p,
        equivalence_low: contrast.low,
        equivalence_high: contrast.high,
    }
}

#[test]
fn every_verdict_is_explained_in_one_sentence() {
    let mut judgement = sample::every_verdict();
    for contrast in judgement.tasks.iter_mut().flat_map(|task| &mut task.contrasts).filter(|c| c.p.is_some()) {
        contrast.looks = vec![look(contrast)];
    }
    let explanations = explain::judgement(&judgement);
    insta::assert_snapshot!("explained", explain::text(&explanations, Style { width: 110, color: false }));
    for item in &explanations {
        assert!(item.text.starts_with('`') && item.text.ends_with('.') && !item.text.contains(".."), "{}", item.text);
    }
    let suite = explain::judgement(&suite_sample::suite(12));
    let together: Vec<&str> = suite.iter().filter(|item| item.task.is_none()).map(|item| item.text.as_str()).collect();
    insta::assert_snapshot!("explained_suite", together.join("\n"));
    let json = explain::json(&explanations);
    assert_eq!(json["explanations"].as_array().unwrap().len(), explanations.len());
    assert_eq!(json["explanations"][0]["task"], "chunked-prefill");
}
