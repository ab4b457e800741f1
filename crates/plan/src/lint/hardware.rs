//! Changes for other hardware than the one that is planned for.

use isobench_schema::assessment::{Finding, Severity};

use super::case::{Case, finding};
use super::changed::Changed;
use super::ids;
use crate::knowledge::devices::Vendor;
use crate::knowledge::hardware::Hardware;

/// Finds commits whose files, or whose subject, are for other hardware.
///
/// If all files that matter run on nothing else, the finding is an error; if only the subject says so, a warning, since the
/// files are shared.
pub(super) fn hardware_wrong(case: &Case<'_>, changed: &Changed<'_>) -> Vec<Finding> {
    let others = case.knowledge.hardware.hardware.iter().filter(|row| applies(row, case) && !is_planned(row, case));
    let mut found: Vec<Finding> = others.filter_map(|row| of(row, case, changed)).collect();
    // The firmest one says it all.
    found.sort_by_key(|finding| finding.severity);
    found.truncate(1);
    found
}

fn applies(row: &Hardware, case: &Case<'_>) -> bool {
    row.engine.is_none_or(|engine| case.is(engine)) && case.moment().is_none_or(|moment| row.holds(moment))
}

/// Returns whether it is the hardware that is planned for. Where no device is chosen it is NVIDIA's, of any generation but the
/// newest.
fn is_planned(row: &Hardware, case: &Case<'_>) -> bool {
    let vendor = case.device.map_or(Vendor::Nvidia, |device| device.vendor);
    let capability = case.device.and_then(crate::knowledge::devices::DeviceRow::capability);
    row.vendor == Some(vendor) && row.capability.is_none_or(|needed| capability.is_some_and(|has| has >= needed))
}

fn of(row: &Hardware, case: &Case<'_>, changed: &Changed<'_>) -> Option<Finding> {
    let all = changed.is_all(&row.paths);
    let said = changed.subject_is(&row.subjects);
    let first = changed.files.first().copied()?;
    if !all && !said {
        return None;
    }
    let planned = case.device.map_or("an NVIDIA device", |device| device.name.as_str());
    let message = format!("the change is for {}, and {planned} is planned", row.name);
    let mut found = finding(ids::HARDWARE_WRONG, first, message);
    if all {
        found.evidence.push(format!("every changed file that matters is of it: {}", changed.list()));
        found.evidence.push(row.because.clone());
    } else {
        found.severity = Severity::Warning;
        found.evidence.push(format!("changed: {}, which may run on other hardware too", changed.list()));
    }
    found
        .evidence
        .extend(case.subject().filter(|_| said).map(|subject| format!("its subject is \u{201c}{subject}\u{201d}")));
    Some(found)
}
