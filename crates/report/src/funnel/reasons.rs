//! Reasons that say the same of different objects, grouped.

use std::collections::BTreeMap;

use isobench_schema::assessment::Assessment;

use super::short_name;
use crate::text::clean;

/// What stands for an object in a reason that several tasks share.
const ANY: &str = "…";

/// The fewest digits of a commit's short name.
const SHORTEST_COMMIT: usize = 7;

/// Tasks that stand where they stand for the same reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReasonGroup {
    /// The reason: one sentence, with `…` for what differs between the tasks.
    pub reason: String,
    /// The tasks, in the dataset's order.
    pub tasks: Vec<String>,
}

struct Found {
    first: String,
    is_same: bool,
    tasks: Vec<String>,
}

/// Returns the reasons of some tasks, the commonest first, then by their text.
pub(super) fn groups(tasks: &[&Assessment]) -> Vec<ReasonGroup> {
    let mut groups: BTreeMap<String, Found> = BTreeMap::new();
    for task in tasks {
        let name = short_name(&task.task);
        for reason in &task.reasons {
            let reason = clean(reason);
            let found = groups.entry(masked(&reason)).or_insert_with(|| Found {
                first: reason.clone(),
                is_same: true,
                tasks: Vec::new(),
            });
            found.is_same &= found.first == reason;
            if found.tasks.last() != Some(&name) {
                found.tasks.push(name.clone());
            }
        }
        if task.reasons.is_empty() {
            let none = || Found { first: "nothing speaks against it".to_owned(), is_same: true, tasks: Vec::new() };
            groups.entry(String::new()).or_insert_with(none).tasks.push(name);
        }
    }
    let group = |(masked, found): (String, Found)| ReasonGroup {
        reason: if found.is_same { found.first } else { masked },
        tasks: found.tasks,
    };
    let mut groups: Vec<ReasonGroup> = groups.into_iter().map(group).collect();
    groups.sort_by(|a, b| b.tasks.len().cmp(&a.tasks.len()).then_with(|| a.reason.cmp(&b.reason)));
    groups
}

/// Returns a reason with its objects left out: what stands between backticks, commits, and numbers that aren't whole.
fn masked(reason: &str) -> String {
    let quoted = reason.split('`').enumerate();
    // An odd number of backticks quotes nothing after the last one.
    let pieces = reason.matches('`').count();
    let quoted = quoted.map(|(place, part)| if place % 2 == 1 && place < pieces { ANY } else { part });
    let mut text = String::new();
    for (place, part) in quoted.enumerate() {
        if place > 0 {
            text.push('`');
        }
        text.push_str(part);
    }
    text.split(' ').map(masked_word).collect::<Vec<_>>().join(" ")
}

fn masked_word(word: &str) -> String {
    let bare = word.trim_matches(|c: char| matches!(c, ',' | ';' | ':' | '(' | ')' | '.'));
    let is_commit = bare.len() >= SHORTEST_COMMIT
        && bare.bytes().all(|byte| byte.is_ascii_hexdigit())
        && bare.bytes().any(|byte| byte.is_ascii_digit());
    let is_measure = bare.contains('.') && bare.parse::<f64>().is_ok();
    if is_commit || is_measure { word.replacen(bare, ANY, 1) } else { word.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_left_out_of_reasons_that_are_compared() {
        for (reason, expected) in [
            ("option `--dtype` is refused by `a.py`", "option `…` is refused by `…`"),
            ("no wheel of 8936316d1b2c is kept", "no wheel of … is kept"),
            ("it needs 140.2 GB, and a device has 80 GB", "it needs … GB, and a device has 80 GB"),
            ("the dataset gives no command", "the dataset gives no command"),
            ("a `lonely tick of 3.5", "a `lonely tick of …"),
            ("it has 8 requests (of 12.5, deadbeef1)", "it has 8 requests (of …, …)"),
        ] {
            assert_eq!(masked(reason), expected);
        }
    }
}
