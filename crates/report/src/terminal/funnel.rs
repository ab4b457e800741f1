//! The funnel as a terminal page.

use isobench_schema::assessment::{Assessment, PlannedFor};

use super::Style;
use super::judgement::section;
use super::table::{Cell, Column, Layout, table};
use crate::funnel::{self, Builds, Costs, Funnel, FunnelRow, some_of};
use crate::number::{self, counted, duration};
use crate::words::Tone;

/// How many tasks a reason names.
const NAMED: usize = 5;

/// How many reasons a standing lists.
const LISTED: usize = 8;

/// How many further reasons a standing lists.
const FURTHER: usize = 4;

/// How many pairs that share no build are named.
const LISTED_PAIRS: usize = 40;

/// How many columns the longest bar takes.
const BAR: usize = 24;

/// Returns how far the tasks come, why, what has to be built, and what it costs.
pub fn funnel(assessments: &[Assessment], planned_for: Option<&PlannedFor>, style: Style) -> String {
    let funnel = funnel::funnel(assessments, planned_for);
    let mut out = String::new();
    let tasks = u64::try_from(funnel.tasks).unwrap_or(u64::MAX);
    out.push_str(&style.bold(&format!("How far {} come", counted(tasks, "task"))));
    out.push('\n');
    for row in &funnel.rows {
        standing(&mut out, row, funnel.tasks, style);
    }
    if let Some(builds) = &funnel.builds {
        native_builds(&mut out, builds, style);
    }
    costs(&mut out, &funnel.costs, style);
    openings(&mut out, &funnel, style);
    out
}

fn standing(out: &mut String, row: &FunnelRow, tasks: usize, style: Style) {
    let name = format!("{} {}", row.standing.symbol, row.standing.title);
    let head = format!("  {} {:>5} {:>6}", crate::text::pad(&name, 25), row.count, row.share);
    let room = style.width.saturating_sub(crate::text::width(&head) + 2).min(BAR);
    let filled = if tasks == 0 { 0 } else { (row.count * room).div_ceil(tasks) };
    let tone = if row.count == 0 { Tone::Absent } else { row.standing.tone };
    let line = format!("{head}  {}", "█".repeat(filled));
    out.push('\n');
    out.push_str(&style.paint(tone, line.trim_end()));
    out.push('\n');
    for reason in row.reasons.iter().take(LISTED) {
        let first = format!("  {:>5}  ", reason.tasks.len());
        style.paragraph(out, &first, &format!("{}: {}", reason.reason, some_of(&reason.tasks, NAMED)));
    }
    for reason in row.further.iter().take(FURTHER) {
        let first = format!("  {:>+5}  ", reason.tasks.len());
        style.paragraph(out, &first, &format!("also: {}: {}", reason.reason, some_of(&reason.tasks, NAMED)));
    }
    let left = u64::try_from(row.reasons.len().saturating_sub(LISTED) + row.further.len().saturating_sub(FURTHER))
        .unwrap_or(u64::MAX);
    if left > 0 {
        style.paragraph(out, "         ", &format!("and {}, each task's with --explain", counted(left, "more reason")));
    }
}

fn native_builds(out: &mut String, builds: &Builds, style: Style) {
    section(out, "Native builds", style);
    style.paragraph(out, "  ", &builds.sentence());
    if !builds.apart.is_empty() {
        style.paragraph(out, "  two builds: ", &some_of(&builds.apart, LISTED_PAIRS));
    }
    if !builds.unknown.is_empty() {
        style.paragraph(out, "  not known:  ", &some_of(&builds.unknown, NAMED * 2));
    }
}

fn costs(out: &mut String, costs: &Costs, style: Style) {
    if costs.total.tasks == 0 {
        return;
    }
    section(out, "Cost of what can run", style);
    let is_priced = costs.total.builds.known > 0;
    let mut columns = vec![
        Column { title: "devices", layout: Layout::Number },
        Column { title: "environment", layout: Layout::Word },
        Column { title: "tasks", layout: Layout::Number },
        Column { title: "preparing", layout: Layout::Number },
    ];
    columns.extend(is_priced.then_some(Column { title: "price", layout: Layout::Number }));
    columns.extend([
        Column { title: "device-hours", layout: Layout::Number },
        Column { title: "price", layout: Layout::Number },
    ]);
    let cells = |names: [String; 2], sum: &funnel::Sum| {
        let mut cells = names.to_vec();
        cells.extend([sum.tasks.to_string(), duration(sum.prepare_s)]);
        cells.extend(is_priced.then(|| sum.builds.text()));
        cells.extend([number::hours(sum.device_hours), sum.devices.text()]);
        cells.into_iter().map(Cell::plain).collect::<Vec<_>>()
    };
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    for line in &costs.lines {
        let rung = line.rung.map_or("–", isobench_schema::environment::Rung::as_str);
        rows.push(cells([line.devices.to_string(), rung.to_owned()], &line.sum));
    }
    rows.push(cells(["all".to_owned(), "–".to_owned()], &costs.total));
    table(out, &columns, &rows, style);
    if costs.without > 0 {
        let tasks = counted(u64::try_from(costs.without).unwrap_or(u64::MAX), "more task");
        style.paragraph(out, "  ", &format!("and {tasks} whose cost isn't known"));
    }
    for assumption in &costs.assumptions {
        style.paragraph(out, "  assumed: ", assumption);
    }
    style.paragraph(out, "  ", &format!("each {}", funnel::EACH_TASK));
}

fn openings(out: &mut String, funnel: &Funnel, style: Style) {
    if !funnel.openings.is_empty() {
        section(out, "What would open more", style);
    }
    for opening in &funnel.openings {
        style.paragraph(out, "  - ", opening);
    }
}
