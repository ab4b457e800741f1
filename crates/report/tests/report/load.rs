//! The pages of a load.

use std::collections::BTreeMap;

use isobench_report::html::Options;
use isobench_report::load::html::{SweepLevel, page, sweep_page};
use isobench_report::load::{csv, metric_rows, terminal};
use isobench_report::terminal::Style;
use isobench_schema::load_checks::AuditVerdict;
use isobench_schema::load_result::{LoadResult, ServerMetric, Validity};

use crate::load_sample::{client_bound, closed, paired, result, search, searched};

/// Returns a result of which nothing is known.
fn bare() -> LoadResult {
    LoadResult {
        metrics: BTreeMap::new(),
        from_send: BTreeMap::new(),
        intervals: BTreeMap::new(),
        too_few: Vec::new(),
        requests_needed: BTreeMap::new(),
        goodput: None,
        failures: Vec::new(),
        audit: None,
        halves: None,
        halves_change: None,
        warm_up: None,
        flow: None,
        littles_law: None,
        server: BTreeMap::new(),
        series: Vec::new(),
        distributions: BTreeMap::new(),
        ..result()
    }
}

#[test]
fn the_terminal_shows_what_it_rests_on() {
    insta::assert_snapshot!("load", terminal::summary(&result(), Style::default()));
    insta::assert_snapshot!("load_narrow", terminal::summary(&result(), Style { width: 60, color: false }));
    insta::assert_snapshot!("load_closed", terminal::summary(&closed(), Style::default()));
    insta::assert_snapshot!("load_client_bound", terminal::summary(&client_bound(), Style::default()));
    insta::assert_snapshot!("load_searched", terminal::summary(&searched(), Style::default()));
    insta::assert_snapshot!("load_paired", terminal::summary(&paired(), Style::default()));
}

#[test]
fn a_client_that_was_the_bottleneck_is_said_first() {
    let text = terminal::summary(&client_bound(), Style::default());
    assert!(text.starts_with(" INVALID: CLIENT-BOUND \n"), "{text}");
    let coloured = terminal::summary(&client_bound(), Style { width: 100, color: true });
    assert!(coloured.starts_with("\u{1b}[1;7m"), "{coloured:?}");
    let html = page(&client_bound(), &Options::default());
    let (alert, latency) = (html.find("role=\"alert\"").unwrap(), html.find(">Latency<").unwrap());
    assert!(alert < latency);
    for validity in Validity::ALL.iter().copied().filter(|validity| *validity != Validity::Valid) {
        let text = terminal::summary(&LoadResult { validity, ..result() }, Style::default());
        assert!(text.starts_with(" INVALID"), "{text}");
    }
}

#[test]
fn nothing_known_is_nothing_claimed() {
    let text = terminal::summary(&bare(), Style::default());
    assert!(!text.contains("NaN") && !text.contains("client "), "{text}");
    let html = page(&bare(), &Options::default());
    assert!(!html.contains("NaN") && !html.contains("<svg class=\"plot\""), "{html}");
    assert_eq!(csv::metrics(&bare()).lines().count(), 1);
    for width in [1, 20, 300] {
        terminal::summary(&paired(), Style { width, color: true });
    }
}

#[test]
fn rows_are_in_the_order_of_a_page_and_csv_has_one_line_each() {
    let rows = metric_rows(&result());
    let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names.first(), Some(&"completed"));
    let place = |name: &str| names.iter().position(|known| *known == name).unwrap();
    assert!(place("mean_ttft_ms") < place("p90_ttft_ms") && place("p90_ttft_ms") < place("p99_ttft_ms"));
    assert!(place("output_throughput") < place("mean_ttft_ms") && place("p99_ttft_ms") < place("mean_tpot_ms"));
    let text = csv::metrics(&result());
    assert_eq!(text.split("\r\n").count(), rows.len() + 2);
    assert!(text.contains("mean_ttft_ms,ms,57.21,56.1,58.4,55.9,\r\n"), "{text}");
    assert!(text.contains("p99_ttft_ms,ms,,,,,n too small\r\n"), "{text}");
}

/// Checks that every SVG of a page is well-formed and loads nothing.
fn check_page(html: &str) {
    let mut rest = html;
    let mut plots = 0;
    while let Some(start) = rest.find("<svg class=\"plot\"") {
        let (_, from) = rest.split_at(start);
        // Plots hold one inner picture.
        let end = from.match_indices("</svg>").nth(1).unwrap().0 + "</svg>".len();
        let (svg, after) = from.split_at(end);
        roxmltree::Document::parse(svg).unwrap_or_else(|error| panic!("{error}: {svg}"));
        plots += 1;
        rest = after;
    }
    assert!(plots >= 2, "{plots}");
    for outside in ["http-equiv=\"refresh\"", "<script", "<img", "<link", "url("] {
        assert!(!html.contains(outside), "{outside}");
    }
    assert!(!html.contains("NaN") && !html.contains("inf"), "a number that is none");
}

#[test]
fn the_page_has_every_plot() {
    let html = page(&result(), &Options::default());
    check_page(&html);
    for text in [
        "TTFT in ms",
        "ITL in ms",
        "Requests in flight",
        "Requests failed per second",
        "Distributions",
        "n too small",
        "above the axis",
    ] {
        assert!(html.contains(text), "{text}");
    }
    let html = page(&paired(), &Options::default());
    check_page(&html);
    for text in [
        "single-launch, exploratory",
        "−5.00 %",
        "no interval: 12 requests were answered by both, and 80 are needed",
        "the load has 7 slices of time",
        "+31.00 %",
        "ttft, typical request",
    ] {
        assert!(html.contains(text), "{text}: {html}");
    }
}

#[test]
fn the_page_says_what_was_checked() {
    let html = page(&client_bound(), &Options::default());
    for text in ["<b>idle-slots</b>", "not good enough", "full for 28.15 s", "places were empty for"] {
        assert!(html.contains(text), "{text}: {html}");
    }
    let html = page(&result(), &Options::default());
    for text in ["variation of the gaps", "1.000 ± 0.0410", "nothing shows that it didn", "steady after 14 slices"] {
        assert!(html.contains(text), "{text}: {html}");
    }
}

#[test]
fn a_search_is_on_the_page_of_its_step() {
    let html = page(&searched(), &Options::default());
    check_page(&html);
    assert_eq!(html.matches("class=\"point\"").count(), 5);
    for text in ["sustains 32 under way, and not 64 under way", "objective missed", "logarithmic"] {
        assert!(html.contains(text), "{text}: {html}");
    }
    let mut nothing = searched();
    nothing.sweep.as_mut().unwrap().steps.clear();
    assert!(!page(&nothing, &Options::default()).contains("NaN"));
}

#[test]
fn what_a_search_is_said_to_have_tried_is_what_it_tried() {
    let said = |highest_sustained, lowest_not_sustained, steps: usize| {
        let mut found = search();
        (found.highest_sustained, found.lowest_not_sustained) = (highest_sustained, lowest_not_sustained);
        found.steps.truncate(steps);
        let text =
            terminal::summary(&LoadResult { sweep: Some(found), ..closed() }, Style { width: 200, color: false });
        text.lines().find(|line| line.contains("sustain") && line.contains("tried")).unwrap().trim().to_owned()
    };
    assert_eq!(said(Some(32.0), None, 3), "sustains 32 under way, the highest level that was tried");
    let higher = "sustains 32 under way; higher ones up to 128 were tried and say nothing";
    assert_eq!(said(Some(32.0), None, 5), higher);
    assert_eq!(said(None, Some(8.0), 1), "doesn't sustain 8 under way, the lowest level that was tried");
    assert_eq!(said(None, Some(16.0), 2), "doesn't sustain 16 under way; lower ones were tried and say nothing");
}

#[test]
fn a_load_that_the_servers_cache_knew_is_said_to_be_one() {
    let mut known = result();
    for (name, last) in [("vllm:prefix_cache_queries_total", 1_000.0), ("vllm:prefix_cache_hits_total", 870.0)] {
        let metric = ServerMetric { looks: 2, first: 0.0, last, min: 0.0, mean: last / 2.0, max: last };
        known.server.insert(name.to_owned(), metric);
    }
    let note = "87 % of the prompts' tokens came from the server's prefix cache";
    assert!(terminal::summary(&known, Style { width: 200, color: false }).contains(note));
    assert!(page(&known, &Options::default()).contains(note));
    known.server.get_mut("vllm:prefix_cache_hits_total").unwrap().last = 400.0;
    assert!(!terminal::summary(&known, Style { width: 200, color: false }).contains("of the prompts' tokens"));
}

#[test]
fn a_client_of_which_too_little_is_known_is_not_praised() {
    let mut unproven = result();
    let audit = unproven.audit.as_mut().unwrap();
    audit.verdict = AuditVerdict::Unproven;
    audit.unknown = vec!["nothing shows how late the client read".to_owned()];
    let text = terminal::summary(&unproven, Style::default());
    assert!(text.contains("not shown to be good enough") && text.contains("? nothing shows"), "{text}");
}

#[test]
fn a_sweep_has_a_point_for_each_level() {
    let results: Vec<LoadResult> = [1.0, 2.0, 4.0]
        .iter()
        .map(|factor| {
            let mut found = result();
            for name in ["output_throughput", "median_ttft_ms"] {
                *found.metrics.get_mut(name).unwrap() *= factor;
            }
            found
        })
        .collect();
    let levels: Vec<SweepLevel<'_>> = results
        .iter()
        .zip([8.0, 16.0, 32.0])
        .map(|(result, level)| SweepLevel { name: "concurrency", level, result })
        .collect();
    let html = sweep_page(&search(), &levels, &Options::default());
    check_page(&html);
    assert_eq!(html.matches("class=\"point\"").count(), 6 + search().steps.len());
    assert!(
        !html.contains("p99</li>") && !html.contains("median and p99 TPOT"),
        "no level has a 99th percentile of it"
    );
    // Plots and tables don't depend on the order in which levels were run.
    let plots = |html: &str| html.split("<section class=\"task\"").next().unwrap().to_owned();
    let mut found = search();
    found.steps.reverse();
    let others: Vec<SweepLevel<'_>> = levels.iter().rev().copied().collect();
    assert_eq!(plots(&sweep_page(&found, &others, &Options::default())), plots(&html));
    assert!(!sweep_page(&search(), &[], &Options::default()).contains("NaN"));
}

#[test]
fn hostile_text_loses_its_force() {
    let mut hostile = paired();
    hostile.model = "<script>alert(1)</script>\u{1b}[2J".to_owned();
    hostile.urls = vec!["http://a/\u{202e}\"><i>".to_owned()];
    hostile.failures[0].examples = vec!["</td>\u{1b}[31m".to_owned()];
    let html = page(&hostile, &Options::default());
    assert!(!html.contains("<script>") && !html.contains("\"><i>") && !html.contains('\u{1b}'));
    let text = terminal::summary(&hostile, Style::default());
    assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'), "{text:?}");
}
