//! How the numbers of a load are written: counts as whole numbers.

use std::collections::BTreeMap;

use serde::Serializer;
use serde::ser::SerializeMap as _;

/// Numbers that are counts.
const COUNTS: [&str; 5] =
    ["completed", "failed", "total_input_tokens", "total_output_tokens", "max_concurrent_requests"];

/// The largest count up to which every whole number is one of a float.
const LARGEST: f64 = 9_007_199_254_740_992.0;

/// Returns a number as the count that it is, if it is one.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is whole, not negative and not too large"
)]
fn count(name: &str, value: f64) -> Option<u64> {
    let is_count = COUNTS.contains(&name) && value.fract().abs() < f64::EPSILON && (0.0..=LARGEST).contains(&value);
    is_count.then_some(value as u64)
}

/// Writes numbers by name, those that are counts without a point.
///
/// # Errors
/// As the serializer.
pub(super) fn with_whole_counts<S: Serializer>(
    numbers: &BTreeMap<String, f64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(numbers.len()))?;
    for (name, value) in numbers {
        match count(name, *value) {
            Some(count) => map.serialize_entry(name, &count)?,
            None => map.serialize_entry(name, value)?,
        }
    }
    map.end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_no_point_and_other_numbers_have() {
        let numbers: BTreeMap<String, f64> = [("completed", 64.0), ("failed", 0.5), ("duration", 3.0)]
            .map(|(name, value)| (name.to_owned(), value))
            .into();
        let mut out = Vec::new();
        with_whole_counts(&numbers, &mut serde_json::Serializer::new(&mut out)).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), r#"{"completed":64,"duration":3.0,"failed":0.5}"#);
    }
}
