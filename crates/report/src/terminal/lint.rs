//! What is wrong with a dataset, as a terminal page, and what the rules say.

use isobench_schema::assessment::{Assessment, Finding};
use isobench_schema::plan::Problem;

use super::Style;
use super::assessment::labelled;
use super::judgement::section;
use super::table::{Cell, Column, Layout, table};
use crate::lint::{Grouping, LintView, RuleText};
use crate::text::{clean, pad};
use crate::view::problem_view;
use crate::words::severity_tone;

/// Returns the findings of some tasks, what couldn't be read, and a summary.
pub fn lint(assessments: &[Assessment], problems: &[Problem], grouping: Grouping, style: Style) -> String {
    let view = LintView::new(assessments, problems, grouping);
    let mut out = String::new();
    for (place, group) in view.groups.iter().enumerate() {
        if place > 0 {
            out.push('\n');
        }
        out.push_str(&style.bold(&group.title));
        out.push('\n');
        for (label, item) in &group.findings {
            finding(&mut out, item, label, style);
        }
    }
    if !problems.is_empty() {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&style.bold("Could not be read"));
        out.push('\n');
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

/// Appends one finding: its severity, a label (its rule or its task), the message, and what to do where nothing was done.
pub(super) fn finding(out: &mut String, finding: &Finding, label: &str, style: Style) {
    let label = pad(label, crate::text::width(label).max(24));
    let first = format!("  {} {label} ", pad(finding.severity.as_str(), 8));
    let repaired = if finding.repaired { " (repaired)" } else { "" };
    // A narrow terminal has no room for columns.
    let first = if crate::text::width(&first) * 2 > style.width { format!("{}: ", first.trim_end()) } else { first };
    let indent = if crate::text::width(&first) * 2 > style.width { 4 } else { crate::text::width(&first) };
    let text = format!("{}{repaired}", clean(&finding.message));
    if indent == 4 {
        out.push_str(&style.paint(severity_tone(finding.severity), first.trim_end()));
        out.push('\n');
        style.paragraph(out, "    ", &text);
    } else {
        labelled(out, &first, severity_tone(finding.severity), &text, style);
    }
    if !finding.repaired {
        style.paragraph(out, &format!("{}fix: ", " ".repeat(indent)), &clean(&finding.fix));
    }
}

/// Returns what a rule says.
pub fn rule(rule: &RuleText, style: Style) -> String {
    let mut out = String::new();
    out.push_str(&style.bold(&clean(&rule.id)));
    out.push_str(&format!("  {}\n", style.paint(severity_tone(rule.severity), rule.severity.as_str())));
    style.paragraph(&mut out, "  ", &clean(&rule.title));
    for (title, text) in [("Why", &rule.explanation), ("Example", &rule.example), ("What to do", &rule.fix)] {
        section(&mut out, title, style);
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            style.paragraph(&mut out, "  ", &clean(line.trim()));
        }
    }
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
