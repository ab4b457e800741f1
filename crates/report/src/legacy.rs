//! What legacy evidence and old tables show, in words that every form shares.

use std::collections::{BTreeMap, BTreeSet};

use isobench_schema::assessment::Severity;
use isobench_schema::legacy::{CategoryCount, CategoryRow, Taxonomy};
use isobench_schema::old_tables::{OldTable, TableCell};

use crate::text::clean;

/// Returns what is found in the texts and commands of a category's records, beside what the category says; nothing where
/// neither was looked into, or nothing was found.
pub(crate) fn found_instead(taxonomy: &Taxonomy, count: &CategoryCount) -> Option<String> {
    let rows = || taxonomy.rows.iter().filter(|row| row.category == count.category);
    let classes = counts(rows().filter_map(|row| row.cause.as_ref()).map(|cause| cause.class.as_str()));
    let errors = |row: &CategoryRow| {
        let errors = row.findings.iter().filter(|finding| finding.severity == Severity::Error);
        errors.map(|finding| finding.rule.clone()).collect::<BTreeSet<String>>()
    };
    let rules: Vec<BTreeSet<String>> = rows().map(errors).filter(|rules| !rules.is_empty()).collect();
    let commands = counts(rules.iter().flatten().map(String::as_str)).map(|rules_found| {
        format!("{} of {} commands can't run as they are written: {rules_found}", rules.len(), count.count)
    });
    let classes = classes.map(|classes| format!("the texts show {classes}"));
    let parts: Vec<String> = classes.into_iter().chain(commands).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Returns names with how often each is there, the commonest first; nothing of nothing.
fn counts<'a>(names: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for name in names {
        *counts.entry(name).or_default() += 1;
    }
    let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    let texts: Vec<String> = counts.iter().map(|(name, count)| format!("{} {count}", clean(name))).collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

/// Returns a number of a table, with the printed one in brackets where that is another.
pub(crate) fn cell(cell: &TableCell) -> String {
    let here = cell.text().unwrap_or_else(|| "–".to_owned());
    match cell.published_text() {
        Some(published) if !cell.agrees() => format!("{here} [{published}]"),
        Some(_) | None => here,
    }
}

/// Returns in one sentence how a table and the published one agree.
pub(crate) fn agreement(table: &OldTable) -> String {
    let (all, equal) = table.agreement();
    match all {
        0 => "Nothing was published of it.".to_owned(),
        _ if all == equal => format!("All {all} published figures come out."),
        _ => {
            let differ = all - equal;
            format!("{equal} of {all} published figures come out; {differ} were printed as the brackets say.")
        }
    }
}
