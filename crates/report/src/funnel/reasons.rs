//! Reasons that say the same of different objects, grouped.

use std::collections::BTreeMap;

use isobench_schema::assessment::Assessment;

use super::short_name;
use crate::text::clean;

/// What stands for an object in a reason that several tasks share.
const ANY: &str = "…";

/// The fewest digits of a commit's short name.
const SHORTEST_COMMIT: usize = 7;

/// The shape of a date.
const DATE: &[u8; 10] = b"dddd-dd-dd";

/// What is said of a task without any reason.
const NOTHING: &str = "nothing speaks against it";

/// Tasks that stand where they stand for the same reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReasonGroup {
    /// The reason: one sentence, with `…` for what differs between the tasks.
    pub reason: String,
    /// The tasks, in the dataset's order.
    pub tasks: Vec<String>,
}

/// Reasons that are alike but for their objects.
struct Found {
    /// The words that all of them have, and `…` for the others.
    words: Vec<String>,
    tasks: Vec<String>,
}

impl Found {
    fn new(reason: &str) -> Self {
        Self { words: words(reason), tasks: Vec::new() }
    }

    /// Leaves out what isn't in this reason too.
    fn join(&mut self, reason: &str) {
        for (known, word) in self.words.iter_mut().zip(words(reason)) {
            if *known != word {
                *known = masked_word(known);
            }
        }
    }
}

/// Returns the weightiest reason of each task, the commonest first, then by their text.
pub(super) fn first(tasks: &[&Assessment]) -> Vec<ReasonGroup> {
    alike(tasks.iter().map(|task| (short_name(&task.task), task.reasons.first().map_or(NOTHING, String::as_str))))
}

/// Returns the other reasons of each task, the commonest first, then by their text.
pub(super) fn further(tasks: &[&Assessment]) -> Vec<ReasonGroup> {
    alike(
        tasks
            .iter()
            .flat_map(|task| task.reasons.iter().skip(1).map(|reason| (short_name(&task.task), reason.as_str()))),
    )
}

/// Returns what is said of some names, grouped by reasons that are alike but for their objects, the commonest first.
pub(crate) fn alike<'a>(reasons: impl Iterator<Item = (String, &'a str)>) -> Vec<ReasonGroup> {
    let mut groups: BTreeMap<String, Found> = BTreeMap::new();
    for (name, reason) in reasons {
        let reason = clean(reason);
        let found = groups.entry(masked(&reason)).or_insert_with(|| Found::new(&reason));
        found.join(&reason);
        if found.tasks.last() != Some(&name) {
            found.tasks.push(name);
        }
    }
    let group = |found: Found| ReasonGroup { reason: found.words.join(" "), tasks: found.tasks };
    let mut groups: Vec<ReasonGroup> = groups.into_values().map(group).collect();
    groups.sort_by(|a, b| b.tasks.len().cmp(&a.tasks.len()).then_with(|| a.reason.cmp(&b.reason)));
    groups
}

/// Returns the words of a reason; what stands between backticks is one word, with what touches it.
fn words(reason: &str) -> Vec<String> {
    let (mut words, mut word, mut is_quoted) = (Vec::new(), String::new(), false);
    // After an odd last backtick nothing is quoted.
    let mut ticks = reason.matches('`').count();
    for c in reason.chars() {
        if c == '`' {
            ticks -= 1;
            is_quoted = !is_quoted && ticks > 0;
        }
        if c == ' ' && !is_quoted {
            words.push(std::mem::take(&mut word));
        } else {
            word.push(c);
        }
    }
    words.push(word);
    words
}

/// Returns a reason with its objects left out.
fn masked(reason: &str) -> String {
    words(reason).iter().map(|word| masked_word(word)).collect::<Vec<_>>().join(" ")
}

/// Returns a word without its object: what stands between backticks, a commit, a date, a release, a
/// number that isn't whole.
fn masked_word(word: &str) -> String {
    if let (Some(first), Some(last)) = (word.find('`'), word.rfind('`'))
        && first < last
    {
        let (before, after) = (word.get(..=first).unwrap_or_default(), word.get(last..).unwrap_or_default());
        return format!("{before}{ANY}{after}");
    }
    let bare = word.trim_matches(|c: char| matches!(c, ',' | ';' | ':' | '(' | ')' | '.'));
    let has_digit = bare.bytes().any(|byte| byte.is_ascii_digit());
    let is_commit = bare.len() >= SHORTEST_COMMIT && has_digit && bare.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_date = bare.len() == DATE.len()
        && bare.bytes().zip(DATE).all(|(found, wanted)| match wanted {
            b'd' => found.is_ascii_digit(),
            other => found == *other,
        });
    let is_release = bare.strip_prefix('v').is_some_and(|number| {
        has_digit
            && number.contains('.')
            && number.split('.').all(|part| part.starts_with(|c: char| c.is_ascii_digit()) || part.starts_with("post"))
    });
    let is_measure = bare.contains('.') && bare.parse::<f64>().is_ok();
    if is_commit || is_date || is_release || is_measure { word.replacen(bare, ANY, 1) } else { word.to_owned() }
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
            ("there is none at 0032903a5bb7 (after v0.6.4.post1), so", "there is none at … (after …), so"),
            ("it has 8 requests (of 12.5, deadbeef1)", "it has 8 requests (of …, …)"),
        ] {
            assert_eq!(masked(reason), expected);
        }
    }

    #[test]
    fn what_all_reasons_of_a_group_say_stays() {
        let mut found = Found::new("wheels are kept since 2024-06-18, and `a b` of 2024-05-01 is older");
        found.join("wheels are kept since 2024-06-18, and `c` of 2024-04-30 is older");
        assert_eq!(found.words.join(" "), "wheels are kept since 2024-06-18, and `…` of … is older");
    }
}
