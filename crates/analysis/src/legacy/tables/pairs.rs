//! The exact `McNemar` test of every two agents of a project.

use isobench_schema::old_tables::{OldTable, TableRow};

use super::agents::{Agent, Agents};
use super::published::Published;
use super::{cell, count, table};
use crate::stats::mcnemar_exact;

/// Tests every two agents on the commits that both have a result of.
pub(super) fn table_of(agents: &Agents<'_>, published: &Published) -> OldTable {
    let about = "Commits at which only one of two agents truly succeeded, and the two-sided p of the exact McNemar test. \
        Not corrected for the number of tests.";
    let columns = ["only the first", "only the second", "p"];
    let mut found = table("mcnemar", "Agents in pairs", about, &["project", "first", "second"], &columns);
    found.rows = agents.pairs().map(|(one, other)| row(one, other, published)).collect();
    found
}

fn row(one: &Agent<'_>, other: &Agent<'_>, published: &Published) -> TableRow {
    let printed = published.mcnemar(one.project, one.name, other.name);
    // In the order in which the pair was published.
    let (one, other) = match &printed {
        Some((first, _, _)) if first == other.name => (other, one),
        Some(_) | None => (one, other),
    };
    let only = |one: &Agent<'_>, other: &Agent<'_>| {
        one.count(|row| one.succeeded(&row.commit) == Some(true) && other.succeeded(&row.commit) == Some(false))
    };
    let (first, second) = (only(one, other), only(other, one));
    let as_u64 = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    let values = printed.map(|(_, _, values)| values);
    let [first_printed, second_printed, p_printed] = values.map_or([None; 3], |values| values.map(Some));
    TableRow {
        labels: vec![one.project.to_owned(), one.name.to_owned(), other.name.to_owned()],
        cells: vec![
            count(first, first_printed),
            count(second, second_printed),
            cell(mcnemar_exact(as_u64(first), as_u64(second)), p_printed, 3),
        ],
    }
}
