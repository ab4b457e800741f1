//! What is wrong with a dataset, as a terminal page, and what the rules say.

use std::fmt::Write as _;

use isobench_schema::assessment::Assessment;
use isobench_schema::plan::Problem;

use super::Style;
use super::assessment::labelled;
use super::table::{Cell, Column, Layout, table};
use crate::lint::{Grouping, LintView, Listed, RuleText};
use crate::text::{self, clean, pad};
use crate::view::problem_view;
use crate::words::severity_tone;

/// Columns before a label.
const SEVERITY: usize = 12;

/// Returns the findings of some tasks, what couldn't be read, and a summary.
pub fn lint(assessments: &[Assessment], problems: &[Problem], grouping: Grouping, style: Style) -> String {
    let view = LintView::new(assessments, problems, grouping);
    let mut out = String::new();
    for (place, group) in view.groups.iter().enumerate() {
        if place > 0 {
            out.push('\n');
        }
        style.heading(&mut out, &group.title);
        findings(&mut out, &group.findings, style);
    }
    if !problems.is_empty() {
        if !out.is_empty() {
            out.push('\n');
        }
        style.heading(&mut out, "Could not be read");
        for item in problems.iter().map(problem_view) {
            style.paragraph(&mut out, "  - ", &format!("{}: {}", item.place, item.message));
        }
    }
    if !out.is_empty() {
        out.push('\n');
    }
    style.paragraph(&mut out, "", &view.summary);
    out
}

/// Appends findings: severity, rule where the title doesn't say it, the message, the tasks where they are several, and what
/// to do where nothing was done.
pub(super) fn findings(out: &mut String, items: &[Listed<'_>], style: Style) {
    let rule = |item: &Listed<'_>| match item {
        Listed::OfRule(finding) => text::width(&clean(&finding.rule)),
        Listed::OfTasks(..) => 0,
    };
    let longest = items.iter().map(rule).max().unwrap_or(0);
    // A narrow terminal has no room for columns.
    let columns = (SEVERITY + longest) * 2 <= style.width;
    for item in items {
        let (finding, tasks) = match item {
            Listed::OfRule(finding) => (finding, None),
            Listed::OfTasks(finding, tasks) => (finding, Some(tasks)),
        };
        let repaired = if finding.repaired { " (repaired)" } else { "" };
        let message = format!("{}{repaired}", clean(&finding.message));
        let tone = severity_tone(finding.severity);
        let severity = format!("  {} ", pad(finding.severity.as_str(), 8));
        let indent = match tasks {
            None if columns => {
                let first = format!("{severity}{}  ", pad(&clean(&finding.rule), longest));
                labelled(out, &first, tone, &message, style);
                text::width(&first)
            }
            None => {
                labelled(out, &severity, tone, &clean(&finding.rule), style);
                style.paragraph(out, "    ", &message);
                4
            }
            Some(tasks) => {
                labelled(out, &severity, tone, &message, style);
                style.paragraph(out, &format!("{}in ", " ".repeat(SEVERITY - 1)), &tasks.join(", "));
                SEVERITY - 1
            }
        };
        if !finding.repaired {
            style.paragraph(out, &format!("{}fix: ", " ".repeat(indent)), &clean(&finding.fix));
        }
    }
}

/// Returns what a rule says.
pub fn rule(rule: &RuleText, style: Style) -> String {
    let mut out = String::new();
    out.push_str(&style.bold(&clean(&rule.id)));
    writeln!(out, "  {}", style.paint(severity_tone(rule.severity), rule.severity.as_str()))
        .expect("a String takes every write");
    style.paragraph(&mut out, "  ", &clean(&rule.title));
    let parts = [
        ("means", &rule.meaning),
        ("matters", &rule.matters),
        ("example", &rule.example),
        ("fix", &rule.fix),
        ("repairs", &rule.repairs),
        ("source", &rule.source),
    ];
    labelled_parts(&mut out, &parts.map(|(label, text)| (label, text.as_str())), style);
    out
}

/// Returns what a word means, part by part; parts without a text are left out.
pub fn meanings(word: &str, parts: &[(&str, &str)], style: Style) -> String {
    let mut out = style.bold(&clean(word)) + "\n";
    labelled_parts(&mut out, parts, style);
    out
}

fn labelled_parts(out: &mut String, parts: &[(&str, &str)], style: Style) {
    for (label, text) in parts.iter().filter(|(_, text)| !text.is_empty()) {
        style.paragraph(out, &format!("  {} ", pad(label, 8)), &clean(text));
    }
}

/// Returns what a word that plans use means.
pub fn meaning(word: &str, text: &str, style: Style) -> String {
    let mut out = style.bold(&clean(word)) + "\n";
    style.paragraph(&mut out, "  ", &clean(text));
    out
}

/// Returns every rule, one line each.
pub fn rules(rules: &[RuleText], style: Style) -> String {
    let columns = [
        Column { title: "rule", layout: Layout::Word },
        Column { title: "severity", layout: Layout::Word },
        Column { title: "title", layout: Layout::Name },
    ];
    let row = |rule: &RuleText| {
        vec![
            Cell::plain(clean(&rule.id)),
            Cell { text: rule.severity.to_string(), tone: Some(severity_tone(rule.severity)) },
            Cell::plain(clean(&rule.title)),
        ]
    };
    let mut out = String::new();
    table(&mut out, &columns, &rules.iter().map(row).collect::<Vec<_>>(), style);
    out
}
