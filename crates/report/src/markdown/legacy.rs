//! Legacy evidence as Markdown.

use isobench_schema::legacy::{CategoryCount, FlagCount, LegacyReport, StatusCount, Taxonomy, WrittenStatus};

use super::{code, dash, escape, push, sentence, table};
use crate::funnel::some_of;
use crate::legacy::found_instead;
use crate::number::counted;
use crate::text::clean;
use crate::view::problem_view;
use crate::words::coverage::{NO_VERDICT, category, flag};

/// How many names a flag gives.
const NAMED: usize = 8;

/// Returns what legacy evidence comes to.
pub fn legacy(report: &LegacyReport) -> String {
    let mut out = format!("# Legacy evidence of {}\n\n", escape(&clean(&report.source)));
    let (records, files) = (counted(report.records, "record"), counted(report.files, "file"));
    push(&mut out, &format!("{records} from {files}. {NO_VERDICT}"));
    push(&mut out, "## Records");
    let row = |count: &StatusCount| {
        let status = count.status.as_ref().map_or_else(dash, |status| code(&clean(WrittenStatus::as_str(status))));
        vec![count.source.to_string(), status, count.records.to_string(), count.with_numbers.to_string()]
    };
    table(&mut out, &["shape", "status as written", "records", "with numbers"], report.statuses.iter().map(row));
    if !report.flags.is_empty() {
        push(&mut out, "## What is wrong with the numbers");
        table(&mut out, &["records", "what", "such as", "which"], report.flags.iter().map(flagged));
    }
    if let Some(taxonomy) = &report.taxonomy {
        categories(&mut out, taxonomy);
    }
    out.push_str(&super::coverage(&report.coverage));
    if !report.problems.is_empty() {
        push(&mut out, "## Could not be read");
        let row = |item: crate::view::ProblemView| vec![escape(&item.place), sentence(&item.message)];
        table(&mut out, &["place", "message"], report.problems.iter().map(problem_view).map(row));
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

fn categories(out: &mut String, taxonomy: &Taxonomy) {
    push(out, "## The categories of the earlier report");
    let row = |count: &CategoryCount| {
        let found = found_instead(taxonomy, count).map_or_else(dash, |found| escape(&found));
        vec![code(count.category.as_str()), count.count.to_string(), category(count.category).to_owned(), found]
    };
    let counts = taxonomy.counts.iter().filter(|count| count.count > 0);
    table(out, &["category", "records", "meaning", "what is found in texts and commands"], counts.map(row));
}

fn flagged(found: &FlagCount) -> Vec<String> {
    let names: Vec<String> = found.names.iter().map(|name| code(&clean(name))).collect();
    vec![names.len().to_string(), escape(flag(found.flag)), sentence(&clean(&found.example)), some_of(&names, NAMED)]
}
