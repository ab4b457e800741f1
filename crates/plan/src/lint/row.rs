//! Rules about the row and its revisions: no command, revision unknown, revert.

use isobench_schema::assessment::Finding;

use super::case::{Case, finding};
use super::ids;

/// Finds a row without a benchmark command.
pub(super) fn no_command(case: &Case<'_>) -> Vec<Finding> {
    // An empty text is a command that can't be read.
    if case.task.command.is_some() {
        return Vec::new();
    }
    let message = "the row has no benchmark command".to_owned();
    let mut found = finding(ids::NO_COMMAND, "command", message);
    if let Some(kind) = &case.task.benchmark_kind {
        found.evidence.push(format!("the row only says that it is a `{kind}` benchmark"));
    }
    vec![found]
}

/// Finds revisions of which nothing is known.
pub(super) fn revision_unknown(case: &Case<'_>) -> Vec<Finding> {
    let unknown = |subject: &str, message: String| finding(ids::REVISION_UNKNOWN, subject, message);
    let mut found = Vec::new();
    if case.human.is_none() {
        found.push(unknown("commit", format!("nothing is known of the commit `{}`", case.task.commit)));
    }
    if case.baseline.is_none() {
        found.push(match &case.task.parent {
            Some(parent) => unknown("parent", format!("nothing is known of the parent `{parent}`")),
            None => unknown("parent", format!("the parent of `{}` is not known", case.task.commit)),
        });
    }
    found
}

/// Finds commits that take back others.
pub(super) fn revert(case: &Case<'_>) -> Vec<Finding> {
    let Some(subject) = case.subject().filter(|subject| is_revert(subject)) else { return Vec::new() };
    let row = case.human.and_then(|human| case.knowledge.reverts.revert.iter().find(|row| row.commit == human.commit));
    let what = match (row, quoted(subject)) {
        (Some(row), _) => format!("`{}`", row.takes_back.short()),
        (None, Some(quoted)) => format!("\u{201c}{quoted}\u{201d}"),
        (None, None) => "another commit".to_owned(),
    };
    let mut found = finding(ids::REVERT, "subject", format!("the commit takes back {what}"));
    found.evidence.push(format!("its subject is \u{201c}{subject}\u{201d}"));
    found.evidence.extend(row.map(|row| format!("known from {}", row.source)));
    vec![found]
}

/// Returns whether a subject is that of a revert, by git's own wording or the usual tag.
fn is_revert(subject: &str) -> bool {
    let subject = subject.trim_start().to_ascii_lowercase();
    ["revert \"", "revert '", "revert [", "[revert]", "revert:"].iter().any(|start| subject.starts_with(start))
}

/// Returns the subject that a revert quotes.
fn quoted(subject: &str) -> Option<&str> {
    let (_, inside) = subject.split_once('"')?;
    let inside = inside.rsplit_once('"').map_or(inside, |(inside, _)| inside);
    Some(inside.trim()).filter(|inside| !inside.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_subject_that_begins_as_a_revert_is_one() {
        for (subject, expected) in [
            ("Revert \"[Perf] Reduce MLA CPU overheads in V1 (#14384)\" (#14471)", true),
            ("[Revert] Take it back", true),
            ("revert: the cache", true),
            ("Reverting bits in the counter", false),
            ("[Model] RE: Mamba2 Prefill Performance Tweaks (#14857)", false),
            ("Fix what the Revert \"x\" broke", false),
        ] {
            assert_eq!(is_revert(subject), expected, "{subject}");
        }
    }

    #[test]
    fn the_quoted_subject_is_taken_also_when_it_was_cut_short() {
        assert_eq!(quoted("Revert \"A \"b\" c (#1)\" (#2)"), Some("A \"b\" c (#1)"));
        assert_eq!(
            quoted("Revert \"[Model] Flurry of U\u{2026} (#14848)"),
            Some("[Model] Flurry of U\u{2026} (#14848)")
        );
        assert_eq!(quoted("[Revert] x"), None);
    }
}
