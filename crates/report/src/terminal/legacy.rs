//! Legacy evidence as a terminal page.

use isobench_schema::legacy::{CategoryCount, LegacyReport, StatusCount, Taxonomy, WrittenStatus};

use super::Style;
use super::judgement::section;
use super::table::{Cell, Column, Layout, table};
use crate::funnel::some_of;
use crate::legacy::found_instead;
use crate::number::counted;
use crate::text::clean;
use crate::view::problem_view;
use crate::words::coverage::{NO_VERDICT, category, flag};

/// How many names a flag gives.
const NAMED: usize = 5;

/// Returns what legacy evidence holds: its records, and what is wrong with their numbers.
pub fn legacy_summary(report: &LegacyReport, style: Style) -> String {
    let mut out = String::new();
    let files = counted(report.files, "file");
    style.heading(&mut out, &format!("Legacy evidence of {}", clean(&report.source)));
    style.paragraph(&mut out, "", &format!("{} from {files}", counted(report.records, "record")));
    statuses(&mut out, report, style);
    flags(&mut out, report, style);
    problems(&mut out, report, style);
    out
}

/// Returns what legacy evidence comes to.
pub fn legacy(report: &LegacyReport, style: Style) -> String {
    let mut out = legacy_summary(report, style);
    if let Some(taxonomy) = &report.taxonomy {
        categories(&mut out, taxonomy, style);
    }
    out.push('\n');
    out.push_str(&super::coverage(&report.coverage, style));
    out.push('\n');
    style.paragraph(&mut out, "", &NO_VERDICT.replace('*', ""));
    out
}

fn problems(out: &mut String, report: &LegacyReport, style: Style) {
    if report.problems.is_empty() {
        return;
    }
    section(out, "Could not be read", style);
    for item in report.problems.iter().map(problem_view) {
        style.paragraph(out, "  - ", &format!("{}: {}", item.place, item.message));
    }
}

fn statuses(out: &mut String, report: &LegacyReport, style: Style) {
    section(out, "Records", style);
    let columns = [
        Column { title: "shape", layout: Layout::Word },
        Column { title: "status as written", layout: Layout::Name },
        Column { title: "records", layout: Layout::Number },
        Column { title: "with numbers", layout: Layout::Number },
    ];
    let row = |count: &StatusCount| {
        let status = count.status.as_ref().map(|status| clean(WrittenStatus::as_str(status)));
        vec![
            Cell::plain(count.source.as_str()),
            Cell::optional(status.as_ref()),
            Cell::plain(count.records.to_string()),
            Cell::plain(count.with_numbers.to_string()),
        ]
    };
    table(out, &columns, &report.statuses.iter().map(row).collect::<Vec<_>>(), style);
}

fn flags(out: &mut String, report: &LegacyReport, style: Style) {
    if report.flags.is_empty() {
        return;
    }
    section(out, "What is wrong with the numbers", style);
    for found in &report.flags {
        let names: Vec<String> = found.names.iter().map(|name| clean(name)).collect();
        let first = format!("  {:>5}  ", names.len());
        style.paragraph(out, &first, &format!("{}: {}", flag(found.flag), some_of(&names, NAMED)));
        style.paragraph(out, "         such as: ", &clean(&found.example));
    }
}

fn categories(out: &mut String, taxonomy: &Taxonomy, style: Style) {
    section(out, "The categories of the earlier report", style);
    let columns = [
        Column { title: "category", layout: Layout::Word },
        Column { title: "records", layout: Layout::Number },
        Column { title: "meaning", layout: Layout::Name },
    ];
    let row = |count: &CategoryCount| {
        vec![
            Cell::plain(count.category.as_str()),
            Cell::plain(count.count.to_string()),
            Cell::plain(category(count.category)),
        ]
    };
    let counts = || taxonomy.counts.iter().filter(|count| count.count > 0);
    table(out, &columns, &counts().map(row).collect::<Vec<_>>(), style);
    let found = counts().filter_map(|count| Some((count.category, found_instead(taxonomy, count)?)));
    for (place, (category, text)) in found.enumerate() {
        if place == 0 {
            section(out, "What is found in their texts and commands", style);
        }
        style.paragraph(out, &format!("  {}: ", category.as_str()), &text);
    }
}
