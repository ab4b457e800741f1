//! Checks, unlike launches and confirmations in words, the same in every format.

use isobench_schema::check::{BoundSide, BrokenCheck, CheckUnit, Measured};
use isobench_schema::comparability::KeyDifference;
use isobench_schema::confirmation::Confirmation;
use isobench_schema::verdict::Unlike;

use crate::number;
use crate::text::{clean, truncate};

/// How much of a key's value is shown: the beginning of a digest tells two apart.
const SHOWN: usize = 24;

/// Returns a check with what was measured, such as "check `client-lag`: 7.2 ms, at most 5 ms".
pub(crate) fn broken(check: &BrokenCheck) -> String {
    let numbers = numbers(check).map(|numbers| format!(": {numbers}")).unwrap_or_default();
    format!("check `{}`{numbers}", check.name)
}

/// Returns what was measured and what it was held to, such as "7.2 ms, at most 5 ms".
pub(crate) fn numbers(check: &BrokenCheck) -> Option<String> {
    let Measured { value, side, bound, unit } = check.measured?;
    let side = match side {
        BoundSide::AtMost => "at most",
        BoundSide::AtLeast => "at least",
    };
    Some(format!("{}, {side} {}", amount(value.get(), unit), amount(bound.get(), unit)))
}

fn amount(value: f64, unit: CheckUnit) -> String {
    match unit {
        CheckUnit::Share => number::percent(value),
        CheckUnit::Times => format!("{} times", plain(value)),
        CheckUnit::Count => number::whole(value),
        CheckUnit::Milliseconds | CheckUnit::Seconds | CheckUnit::TokensPerSecond | CheckUnit::Requests => {
            format!("{} {unit}", plain(value))
        }
    }
}

/// Returns a number without zeros at its end: a bound is a whole number where it can be.
fn plain(value: f64) -> String {
    let text = number::significant(value);
    if text.contains('.') && !text.contains('e') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// Returns a field in which two keys differ, with both values.
pub fn key_difference(difference: &KeyDifference) -> String {
    let shown = |value: &Option<String>| match value {
        Some(value) => format!("`{}`", truncate(&clean(value), SHOWN)),
        None => "nothing".to_owned(),
    };
    format!("{} ({} and {})", difference.field, shown(&difference.left), shown(&difference.right))
}

/// Returns which launches are unlike, and in what.
pub(crate) fn unlike(unlike: &Unlike) -> String {
    let Unlike { block, of, against_block, against, differences } = unlike;
    let fields: Vec<String> = differences.iter().map(key_difference).collect();
    let fields = fields.join(", ");
    if block == against_block {
        format!("block {block}: {of} and {against} can't be compared, they differ in {fields}")
    } else {
        format!("block {block}: {of} isn't as in block {against_block}, it differs in {fields}")
    }
}

/// Returns who confirmed something, and why.
pub fn confirmed_by(confirmation: &Confirmation) -> String {
    format!("confirmed by {} because {}", clean(&confirmation.by), clean(&confirmation.reason))
}

/// Returns a confirmation with what it is about.
pub(crate) fn confirmation(confirmation: &Confirmation) -> String {
    let checks: Vec<String> = confirmation.checks.iter().map(|check| format!("`{check}`")).collect();
    format!("{}: {} ({})", confirmation.arm, confirmed_by(confirmation), checks.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use isobench_schema::check::Check;

    #[test]
    fn a_check_is_told_with_its_value_and_bound() {
        for (check, expected) in [
            (Check::ClientLag.above(7.2, 5.0, CheckUnit::Milliseconds), "check `client-lag`: 7.2 ms, at most 5 ms"),
            (Check::ClientBusy.above(0.71, 0.7, CheckUnit::Share), "check `client-busy`: 71 %, at most 70 %"),
            (Check::AnswerLengths.above(3.0, 0.0, CheckUnit::Count), "check `answer-lengths`: 3, at most 0"),
            (Check::WindowLength.below(12.5, 30.0, CheckUnit::Seconds), "check `window-length`: 12.5 s, at least 30 s"),
            (
                Check::BelievableRatio.above(12.0, 10.0, CheckUnit::Times),
                "check `believable-ratio`: 12 times, at most 10 times",
            ),
            (Check::LiveProof.into(), "check `live-proof`"),
        ] {
            assert_eq!(broken(&check), expected);
        }
    }

    #[test]
    fn both_values_of_a_key_are_shown() {
        let difference = KeyDifference {
            field: isobench_schema::comparability::KeyField::Host,
            left: Some("0123456789abcdef0123456789abcdef".to_owned()),
            right: None,
        };
        assert_eq!(key_difference(&difference), "host (`0123456789abcdef0123456…` and nothing)");
    }
}
