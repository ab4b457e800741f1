//! What several records have in common: numbers that are the same in two arms to the last digit, and the arm itself.

use std::collections::BTreeMap;

use isobench_schema::ids::ArmId;
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

/// What records must have in common to be of the same side of the same commit: shape, project, commit and arm.
type Side = (LegacySource, Option<String>, String, Option<ArmId>);

/// Marks records that are of the same commit and arm, by the same system, with other numbers: nothing says which of them
/// counts. A copy says the same, and is left alone: a row for each agent repeats the numbers of the other arms.
pub fn mark_several(records: &mut [LegacyRecord]) {
    let mut places: BTreeMap<Side, Vec<usize>> = BTreeMap::new();
    for (place, record) in records.iter().enumerate().filter(|(_, record)| !record.commit.is_empty()) {
        let side = (record.source, record.project.clone(), record.short().to_owned(), record.arm.clone());
        if record.has_numbers() {
            places.entry(side).or_default().push(place);
        }
    }
    for places in places.into_values() {
        let numbers: Vec<_> = places.iter().filter_map(|&place| Some(&records.get(place)?.metrics)).collect();
        if numbers.iter().all(|metrics| Some(metrics) == numbers.first()) {
            continue;
        }
        let count = places.len();
        let message =
            format!("{count} records are of this commit and arm, with other numbers: which counts doesn't show");
        for place in places {
            let Some(record) = records.get_mut(place) else { continue };
            let (flag, keys) = (LegacyFlag::SeveralOfOneArm, Vec::new());
            record.remarks.push(LegacyRemark { flag, keys, message: message.clone() });
        }
    }
}

fn name(records: &[LegacyRecord], place: usize) -> Option<String> {
    records.get(place)?.arm.as_ref().map(ToString::to_string)
}

fn is_telling(value: f64, unit: LegacyUnit) -> bool {
    let digits = value.to_string().bytes().filter(u8::is_ascii_digit).count();
    unit.is_measured() && value != 0.0 && digits >= FEWEST_DIGITS
}
