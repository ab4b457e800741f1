//! What a refusal means, as a finding.

use isobench_schema::assessment::Finding;

use super::{Fitter, choices, finding, label};
use crate::command::options::{Refusal, Refused, Table};
use crate::knowledge::options::ValueKind;
use crate::knowledge::translations::Side;
use crate::lint::ids;
use crate::nearest::hint;

impl Fitter<'_, '_> {
    /// Returns the option that may be meant by one that nothing takes and nothing mends, as `; did you mean ..?`.
    pub(super) fn meant(&self, side: Side, refused: &Refused<'_>) -> String {
        match refused.why {
            Refusal::Unknown => hint(&refused.option.name, self.table(side).into_iter().flat_map(Table::names)),
            Refusal::Ambiguous(_)
            | Refusal::ValueMissing
            | Refusal::ValueUnexpected
            | Refusal::ValueKind(_)
            | Refusal::NotAmong(_) => String::new(),
        }
    }

    /// Returns what is wrong with an option, not repaired.
    pub(super) fn refusal(&self, side: Side, refused: &Refused<'_>) -> Finding {
        let Refused { option, why } = refused;
        let (name, written) = (&option.name, &option.written);
        let value = option.values.join(" ");
        let tool = self.tool(side);
        let revision = if side == Side::Client { self.revision() } else { self.asked.baseline };
        let at = format!("`{tool}` at {}", label(revision));
        if option.values.iter().any(|value| is_placeholder(value, refused)) {
            return placeholder(name, &value);
        }
        let (rule, message, fix) = match why {
            Refusal::Unknown => {
                let added = self.added_by_the_commit(side, refused);
                (
                    ids::OPTION_REFUSED,
                    format!("{at} has no option `{name}`{added}"),
                    format!("take `{written}` out of the command, or name the option that is meant"),
                )
            }
            Refusal::Ambiguous(names) => (
                ids::OPTION_REFUSED,
                format!("`{name}` is short for several options of {at}: {}", names.join(", ")),
                "write the option's whole name".to_owned(),
            ),
            Refusal::ValueMissing => {
                (ids::VALUE_REFUSED, format!("`{name}` needs a value by {at}"), format!("give `{name}` its value"))
            }
            Refusal::ValueUnexpected => (
                ids::VALUE_REFUSED,
                format!("`{name}` takes no such value by {at}, and has `{value}`"),
                format!("write `{name}` alone, or leave it out"),
            ),
            Refusal::ValueKind(kind) => (
                ids::VALUE_REFUSED,
                format!("`{value}` is no {} as `{name}` needs one by {at}", kind_name(*kind)),
                format!("give `{name}` {}", kind_name(*kind)),
            ),
            Refusal::NotAmong(_) => {
                let rule = if name == "--dataset-name" { ids::DATASET_UNKNOWN } else { ids::VALUE_REFUSED };
                let known = option.spec.map(choices).unwrap_or_default();
                let added = self.added_by_the_commit(side, refused);
                (rule, format!("`{name}` of {at} doesn't know `{value}`{added}"), format!("use one of {known}"))
            }
        };
        let mut found = finding(rule, name, message, fix);
        if !written.is_empty() {
            found.evidence.push(written.clone());
        }
        found
    }

    /// Says so if the human commit's program takes what the baseline's refuses.
    fn added_by_the_commit(&self, side: Side, refused: &Refused<'_>) -> &'static str {
        let taken = self
            .human_table(side)
            .is_some_and(|table| table.make(&refused.option.name, refused.option.values.clone()).is_ok());
        if taken { "; the commit itself adds it" } else { "" }
    }
}

fn kind_name(kind: ValueKind) -> &'static str {
    match kind {
        ValueKind::Text => "text",
        ValueKind::Whole => "whole number",
        ValueKind::Number => "number",
        ValueKind::Bool => "truth value",
        ValueKind::Json => "JSON",
    }
}

/// Returns the error of a value that was never filled in.
pub(super) fn placeholder(name: &str, value: &str) -> Finding {
    let message = format!("`{value}` of `{name}` was never replaced by a value");
    let fix = format!("replace `{value}` by what the commit was measured with");
    let mut found = finding(ids::PLACEHOLDER, value, message, fix);
    found.evidence.push(format!("{name} {value}"));
    found
}

/// Returns whether a value that a parser refuses was never filled in.
fn is_placeholder(value: &str, refused: &Refused<'_>) -> bool {
    let numeric = matches!(refused.why, Refusal::ValueKind(ValueKind::Whole | ValueKind::Number));
    is_unfilled(value) || (numeric && is_capitals(value))
}

/// Returns whether a text is one that people write for what is to be filled in.
pub(super) fn is_unfilled(value: &str) -> bool {
    const WORDS: [&str; 20] = [
        "MODEL",
        "MODEL_NAME",
        "MODEL_PATH",
        "MODEL_ID",
        "BS",
        "BATCH_SIZE",
        "INPUT_LEN",
        "OUTPUT_LEN",
        "NUM_PROMPTS",
        "TP",
        "TP_SIZE",
        "DATASET",
        "DATASET_PATH",
        "DATASET_NAME",
        "PATH",
        "TOKENIZER",
        "PORT",
        "HOST",
        "N",
        "X",
    ];
    let inside = |open: char, close: char| {
        value
            .strip_prefix(open)
            .and_then(|rest| rest.strip_suffix(close))
            .is_some_and(|name| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "_- .".contains(c)))
    };
    WORDS.contains(&value)
        || matches!(value, "..." | "\u{2026}" | "TBD" | "XXX")
        // Spelt so that a search for what was left undone does not find it here.
        || value == concat!("TO", "DO")
        || value.starts_with("YOUR_")
        || value.starts_with("your-")
        || value.contains("path/to/")
        || inside('<', '>')
        || inside('{', '}')
}

fn is_capitals(value: &str) -> bool {
    value.starts_with(|c: char| c.is_ascii_uppercase())
        && value.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}
