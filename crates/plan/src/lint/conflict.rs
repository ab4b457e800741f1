//! Options that don't go together, or not with the model, the device or the revision.

use isobench_schema::assessment::Finding;

use super::case::{Case, finding};
use super::{condition, ids};

/// Finds the conflicts of the table that the task meets for certain.
pub(super) fn feature_conflict(case: &Case<'_>) -> Vec<Finding> {
    let Some(moment) = case.moment() else { return Vec::new() };
    let rows = case.knowledge.conflicts.conflict.iter();
    rows.filter(|row| case.is(row.engine) && row.holds(moment) && condition::all(&row.when, case) == Some(true))
        .map(|row| {
            let mut found = finding(ids::FEATURE_CONFLICT, &row.subject, &row.message);
            found.severity = row.severity;
            found.fix.clone_from(&row.fix);
            found.repaired = row.recipe.is_some();
            found.evidence.push(format!("{} ({moment}); {}", row.id, row.source));
            found
        })
        .collect()
}
