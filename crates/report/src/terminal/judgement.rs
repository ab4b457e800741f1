//! A judgement as a terminal page.

use super::Style;
use super::table::{Cell, Column, Layout, table};
use crate::text;
use crate::view::{FailureKind, FailureView, TaskView, View};
use std::fmt::Write as _;

/// Returns the judgement as text: for each task a headline, its contrasts, reasons, arms, failures and deviations.
pub fn judgement(view: &View, style: Style) -> String {
    let mut out = String::new();
    style.paragraph(&mut out, "", &format!("run {}, plan {}, rules {}", view.run, view.plan, view.rules));
    style.paragraph(&mut out, "", &view.facts.join(", "));
    if view.tasks.is_empty() {
        out.push_str("\nno task was run\n");
    }
    if view.tasks.len() > 1 {
        overview(&mut out, view, style);
    }
    for item in &view.tasks {
        task(&mut out, item, style);
    }
    if !view.exclusions.is_empty() {
        section(&mut out, "Not run", style);
        for item in &view.exclusions {
            style.paragraph(&mut out, "  - ", &format!("{} ({}): {}", item.what, item.reason, item.message));
        }
    }
    if !view.problems.is_empty() {
        section(&mut out, "Could not be read", style);
        for item in &view.problems {
            style.paragraph(&mut out, "  - ", &format!("{}: {}", item.place, item.message));
        }
    }
    if let Some(coverage) = &view.coverage {
        out.push('\n');
        out.push_str(&super::coverage(coverage, style));
    }
    out
}

/// Appends a blank line and a heading.
pub(super) fn section(out: &mut String, title: &str, style: Style) {
    out.push('\n');
    out.push_str(&style.bold(title));
    out.push('\n');
}

fn overview(out: &mut String, view: &View, style: Style) {
    section(out, &crate::number::counted(u64::try_from(view.tasks.len()).unwrap_or(u64::MAX), "task"), style);
    let columns = [
        Column { title: "verdict", layout: Layout::Word },
        Column { title: "human vs baseline", layout: Layout::Number },
        Column { title: "agents vs baseline", layout: Layout::Number },
        Column { title: "agents vs human", layout: Layout::Number },
    ];
    let row = |count: &crate::view::VerdictCount| {
        vec![
            Cell { text: count.verdict.to_string(), tone: Some(count.verdict.tone) },
            Cell::plain(count.human_against_baseline.to_string()),
            Cell::plain(count.agent_against_baseline.to_string()),
            Cell::plain(count.agent_against_human.to_string()),
        ]
    };
    table(out, &columns, &view.counts.iter().map(row).collect::<Vec<_>>(), style);
}

fn task(out: &mut String, task: &TaskView, style: Style) {
    out.push('\n');
    let head = format!("{}: {}", task.id, task.headline);
    for line in text::wrap(&head, style.width) {
        out.push_str(&style.bold(&line));
        out.push('\n');
    }
    if let Some(title) = &task.title {
        style.paragraph(out, "  ", title);
    }
    let standing = format!("{}: {}", task.standing.word, task.standing.meaning);
    for line in text::wrap(&standing, style.width.saturating_sub(2)) {
        writeln!(out, "  {}", style.paint(task.standing.tone, &line)).expect("a String takes every write");
    }
    let metric =
        format!("{} in {}, {}, margin {}; {}", task.metric, task.unit, task.direction, task.margin, task.blocks);
    style.paragraph(out, "  ", &metric);
    if let Some(workload) = &task.workload {
        style.paragraph(out, "  ", workload);
    }
    for deviation in &task.deviations {
        style.paragraph(out, "  † ", &deviation.sentence());
    }
    for text in &task.unlike {
        style.paragraph(out, "  ! not comparable: ", text);
    }
    for text in &task.confirmations {
        style.paragraph(out, "  ! ", text);
    }
    contrasts(out, task, style);
    arms(out, task, style);
    failures(out, task, style);
    checks(out, task, style);
}

fn contrasts(out: &mut String, task: &TaskView, style: Style) {
    if task.contrasts.is_empty() {
        out.push_str("\n  nothing was compared\n");
        return;
    }
    out.push('\n');
    let columns = [
        Column { title: "of", layout: Layout::Name },
        Column { title: "against", layout: Layout::Name },
        Column { title: "verdict", layout: Layout::Word },
        Column { title: "speed-up", layout: Layout::Number },
        Column { title: "interval", layout: Layout::Number },
        Column { title: "p", layout: Layout::Number },
        Column { title: "blocks", layout: Layout::Number },
    ];
    let row = |c: &crate::view::ContrastView| {
        vec![
            Cell::plain(&c.of),
            Cell::plain(&c.against),
            Cell { text: c.verdict.to_string(), tone: Some(c.verdict.tone) },
            Cell::optional(c.speedup.as_ref().map(|s| format!("{s}{}", task.mark)).as_ref()),
            Cell::optional(c.interval.as_ref()),
            Cell::optional(c.p.as_ref()),
            Cell::plain(c.blocks.to_string()),
        ]
    };
    table(out, &columns, &task.contrasts.iter().map(row).collect::<Vec<_>>(), style);
    out.push('\n');
    for contrast in &task.contrasts {
        style.paragraph(out, "  - ", &format!("{}: {}", contrast.name(), contrast.explanation()));
    }
    if let Some(sentinel) = &task.sentinel {
        style.paragraph(out, "  ", sentinel);
    }
}

fn arms(out: &mut String, task: &TaskView, style: Style) {
    if task.arms.is_empty() {
        return;
    }
    out.push('\n');
    let columns = [
        Column { title: "arm", layout: Layout::Name },
        Column { title: "mean", layout: Layout::Number },
        Column { title: "launches that count", layout: Layout::Number },
    ];
    let row = |arm: &crate::view::ArmView| {
        vec![
            Cell::plain(&arm.name),
            Cell::optional(arm.mean.as_ref().map(|mean| format!("{mean}{}", task.mark)).as_ref()),
            Cell::plain(format!("{} of {}", arm.valid, arm.launches)),
        ]
    };
    table(out, &columns, &task.arms.iter().map(row).collect::<Vec<_>>(), style);
}

fn failures(out: &mut String, task: &TaskView, style: Style) {
    for (kind, title) in [(FailureKind::Failure, "failures"), (FailureKind::Incident, "incidents (the launches count)")]
    {
        let mut found = task.failures.iter().filter(|failure| failure.kind == kind).peekable();
        if found.peek().is_some() {
            writeln!(out, "\n  {title}").expect("a String takes every write");
        }
        for failure in found {
            one_failure(out, failure, style);
        }
    }
}

/// Shows which checks were broken by how many launches, also where another failure decides.
fn checks(out: &mut String, task: &TaskView, style: Style) {
    if !task.checks.is_empty() {
        out.push_str("\n  checks that launches broke\n");
    }
    for item in &task.checks {
        style.paragraph(out, "  - ", &item.sentence());
    }
}

fn one_failure(out: &mut String, failure: &FailureView, style: Style) {
    let FailureView { arm, launches, class, stage, message, .. } = failure;
    style.paragraph(out, "  - ", &format!("{arm}: {class} at {stage}, {launches}: {message}"));
    if let Some(check) = &failure.check {
        style.paragraph(out, "      ", check);
    }
    if let Some(cause) = &failure.cause {
        style.paragraph(out, "      its logs say: ", &cause.text);
        style.paragraph(out, "      fix: ", &cause.fix);
    }
    if let Some(line) = failure.evidence.first() {
        let text = format!("{}  {}", line.place, line.text);
        writeln!(out, "      {}", text::truncate(&text, style.width.saturating_sub(6).max(20)))
            .expect("a String takes every write");
    }
}
