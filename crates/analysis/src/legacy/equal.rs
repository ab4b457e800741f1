//! Numbers that are the same in two arms to the last digit.

use std::collections::BTreeMap;

use isobench_schema::legacy::{LegacyFlag, LegacyRecord, LegacyRemark, LegacySource, LegacyUnit};

/// Numbers below this many digits are equal by chance often enough.
const FEWEST_DIGITS: usize = 4;

/// A number of a commit, by what must be equal: shape, project, commit, key, and the bits of the number.
type Same = (LegacySource, Option<String>, String, String, u64);

/// Marks numbers that two arms of a commit have in common to the last digit. A measurement of two servers never repeats
/// itself so; a number that was copied, or that something else than the engine sets, does.
pub fn mark_equal(records: &mut [LegacyRecord]) {
    let mut seen: BTreeMap<Same, Vec<usize>> = BTreeMap::new();
    for (place, record) in records.iter().enumerate() {
        for metric in &record.metrics {
            let Some(value) = metric.value.filter(|value| is_telling(*value, metric.unit)) else { continue };
            let key =
                (record.source, record.project.clone(), record.short().to_owned(), metric.key.clone(), value.to_bits());
            seen.entry(key).or_default().push(place);
        }
    }
    for ((_, _, _, key, bits), places) in seen {
        let arms: Vec<String> = places.iter().filter_map(|&place| name(records, place)).collect();
        let differ = arms.iter().any(|arm| Some(arm) != arms.first());
        if !differ {
            continue;
        }
        let mut named: Vec<&str> = arms.iter().map(String::as_str).collect();
        named.sort_unstable();
        named.dedup();
        let message = format!("`{key}` is {} in {} alike", f64::from_bits(bits), named.join(" and "));
        for place in places {
            let Some(record) = records.get_mut(place) else { continue };
            let (flag, keys) = (LegacyFlag::EqualAcrossArms, vec![key.clone()]);
            record.remarks.push(LegacyRemark { flag, keys, message: message.clone() });
        }
    }
}

fn name(records: &[LegacyRecord], place: usize) -> Option<String> {
    records.get(place)?.arm.as_ref().map(ToString::to_string)
}

fn is_telling(value: f64, unit: LegacyUnit) -> bool {
    let measured = match unit {
        LegacyUnit::Milliseconds
        | LegacyUnit::Seconds
        | LegacyUnit::TokensPerSecond
        | LegacyUnit::RequestsPerSecond
        | LegacyUnit::Unknown => true,
        LegacyUnit::Percent | LegacyUnit::Count => false,
    };
    let digits = value.to_string().bytes().filter(u8::is_ascii_digit).count();
    measured && value != 0.0 && digits >= FEWEST_DIGITS
}
