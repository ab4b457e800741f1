//! What people see, in every format, from a judgement that covers every verdict.

use crate::sample;

use isobench_report::terminal::{self, Style};
use isobench_report::view::view;
use isobench_report::{csv, html, json, markdown};
use isobench_schema::ids::TaskId;
use isobench_schema::verdict::{Judgement, Verdict};

fn html_of(judgement: &Judgement) -> String {
    let options = html::Options { title: String::new(), note: Some("generated for a test".to_owned()) };
    html::page(&view(judgement, Some(&sample::plan())), &options)
}

/// Parses every SVG of a page and returns how many there are.
fn parsed_svgs(page: &str) -> usize {
    let parts = page.split("<svg").skip(1);
    let parse = |part: &str| {
        let text = format!("<svg{}</svg>", part.split("</svg>").next().unwrap());
        let parsed = roxmltree::Document::parse(&text);
        assert!(parsed.is_ok(), "{:?}: {text}", parsed.err());
    };
    parts.map(parse).count()
}

#[test]
fn the_sample_covers_every_verdict() {
    let judgement = sample::every_verdict();
    for verdict in Verdict::ALL {
        assert!(judgement.tasks.iter().flat_map(|t| &t.contrasts).any(|c| c.verdict == *verdict), "{verdict}");
    }
}

#[test]
fn terminal_pages_read_well() {
    let judgement = sample::every_verdict();
    let view = view(&judgement, Some(&sample::plan()));
    insta::assert_snapshot!("terminal", terminal::judgement(&view, Style { width: 110, color: false }));
    let narrow = isobench_report::view::view(&sample::judgement_of(vec![judgement.tasks[1].clone()]), None);
    insta::assert_snapshot!("terminal_narrow", terminal::judgement(&narrow, Style { width: 48, color: false }));
    let color = terminal::judgement(&narrow, Style { width: 80, color: true });
    insta::assert_snapshot!("terminal_color", color.replace('\u{1b}', "␛"));
}

#[test]
fn plan_pages_read_well() {
    let plan = sample::plan();
    let style = Style { width: 100, color: false };
    insta::assert_snapshot!("plan", terminal::plan(&plan, style));
    let explain = |id: &str| terminal::explain(&plan, &TaskId::new(id).unwrap(), style);
    insta::assert_snapshot!("explain", explain("chunked-prefill").unwrap());
    insta::assert_snapshot!("explain_excluded", explain("eight-gpus").unwrap());
    assert_eq!(explain("unheard-of"), None);
}

#[test]
fn markdown_reads_well() {
    insta::assert_snapshot!(markdown::judgement(&view(&sample::every_verdict(), Some(&sample::plan()))));
}

#[test]
fn csv_is_rfc_4180() {
    let mut judgement = sample::every_verdict();
    judgement.tasks[0].contrasts[0].reason = "with a comma, a \"quote\" and\na line end".to_owned();
    insta::assert_snapshot!(csv::contrasts(&judgement).replace('\r', "␍"));
}

#[test]
fn the_html_page_is_what_it_was() {
    let page = html_of(&sample::every_verdict());
    let (head, rest) = page.split_once("<style>").unwrap();
    let (_, body) = rest.split_once("</style>").unwrap();
    // A line end before each tag makes a difference readable.
    insta::assert_snapshot!(format!("{head}<style></style>{body}").replace("><", ">\n<"));
}

#[test]
fn the_contract_is_the_stored_judgement_in_small() {
    let judgement = sample::every_verdict();
    let contract = json::contract(&judgement);
    let stored = serde_json::to_value(&judgement).unwrap();
    assert_eq!(contract.as_object().unwrap().keys().collect::<Vec<_>>(), ["tasks"]);
    for (small, whole) in contract["tasks"].as_array().unwrap().iter().zip(stored["tasks"].as_array().unwrap()) {
        // What applies only sometimes is there where it applies.
        let sometimes = ["broken", "confirmations", "unlike"];
        let always: Vec<&String> =
            small.as_object().unwrap().keys().filter(|name| !sometimes.contains(&name.as_str())).collect();
        assert_eq!(always, ["contrasts", "id", "standing"]);
        for name in sometimes {
            assert_eq!(small.get(name), whole.get(name), "{name}");
        }
        assert_eq!((&small["id"], &small["standing"]), (&whole["id"], &whole["standing"]));
        let pairs = small["contrasts"].as_array().unwrap().iter().zip(whole["contrasts"].as_array().unwrap());
        for (small, whole) in pairs {
            for name in ["of", "against", "metric", "verdict", "estimate", "low", "high", "p", "blocks", "reason"] {
                assert!(small.get(name).is_some(), "{name}");
            }
            let mut whole = whole.as_object().unwrap().clone();
            whole.remove("differences");
            whole.remove("look");
            assert_eq!(small.as_object().unwrap(), &whole);
        }
    }
    insta::assert_json_snapshot!(contract["tasks"][0]["contrasts"][7]);
}

#[test]
fn the_html_page_loads_nothing_and_runs_nothing() {
    let page = html_of(&sample::every_verdict());
    assert!(page.contains("default-src 'none'; style-src 'unsafe-inline'; img-src data:"));
    let without_namespace = page.replace("http://www.w3.org/2000/svg", "");
    for forbidden in ["<script", "http:", "https:", "<link", "<img", "<iframe", "url(", "@import", " on"] {
        let found = without_namespace.split(forbidden).nth(1);
        let attribute = |rest: &str| forbidden == " on" && !rest.starts_with("click=") && !rest.starts_with("load=");
        assert!(found.is_none_or(attribute), "{forbidden}");
    }
    assert!(parsed_svgs(&page) > 10);
}

#[test]
fn hostile_text_is_only_text() {
    let judgement = sample::hostile();
    let view = view(&judgement, None);
    let page = html_of(&judgement);
    let text = terminal::judgement(&view, Style { width: 100, color: false });
    let marked = markdown::judgement(&view);
    for (name, page) in [("html", &page), ("terminal", &text), ("markdown", &marked)] {
        assert!(!page.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{name}");
        assert!(page.contains("שלום"), "{name}");
    }
    assert!(!page.contains("<script"));
    assert!(parsed_svgs(&page) > 10);
    let mut fenced = false;
    for line in marked.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            assert!(!line.replace("<!-- -->", "").contains('<') || line.contains("`` "), "{line}");
            assert!(!line.contains("@all") || line.contains("`` "), "{line}");
        }
    }
    assert!(!fenced);
}

#[test]
fn odd_shapes_give_whole_pages() {
    for (name, judgement) in sample::odd() {
        let page = html_of(&judgement);
        assert!(page.ends_with("</html>"), "{name}");
        parsed_svgs(&page);
        for number in ["NaN", "inf%", "=\"inf"] {
            assert!(!page.contains(number), "{name}: {number}");
        }
        let view = view(&judgement, None);
        assert!(!markdown::judgement(&view).is_empty(), "{name}");
        for width in [0, 20, 60, 200] {
            assert!(!terminal::judgement(&view, Style { width, color: false }).is_empty(), "{name}");
        }
    }
}

#[test]
fn wide_enough_terminals_are_never_overrun() {
    for (name, judgement) in sample::odd() {
        let text = terminal::judgement(&view(&judgement, None), Style { width: 100, color: false });
        let longest = text.lines().map(|line| line.chars().count()).max();
        assert!(longest <= Some(100), "{name}: {longest:?}");
    }
}
