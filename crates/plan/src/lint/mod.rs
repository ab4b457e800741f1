//! Rules that say what is wrong with a task before a device is used.
//!
//! Each rule is a pure function of one [`Case`]; what is known as data lies in `knowledge/` (`rules`, `coverage`, `hardware`,
//! `conflicts`, `reverts`). A rule that would need what isn't known finds nothing.

mod case;
mod changed;
pub mod condition;
mod conflict;
mod coverage;
mod devices;
mod given;
mod hardware;
pub mod ids;
mod load;
mod model;
mod pattern;
pub mod registry;
mod row;
#[cfg(test)]
mod tests;
mod traits;

use isobench_schema::assessment::Finding;

pub use case::Case;
pub use given::Given;
pub use registry::{Repairs, Rule, rule, rules};
pub use traits::{TRAITS, Traits};

/// A rule: what it finds in a task.
type Check = fn(&Case<'_>) -> Vec<Finding>;

/// Every rule that isn't about the command's own grammar, in the order of [`ids::ALL`].
const CHECKS: &[Check] = &[
    row::no_command,
    model::model_missing,
    model::model_contradiction,
    model::architecture_unsupported,
    conflict::feature_conflict,
    hardware::hardware_wrong,
    devices::devices_too_few,
    devices::model_too_large,
    load::throughput_at_fixed_rate,
    load::rate_beyond_service,
    row::revert,
    coverage::change_not_exercised,
    load::too_few_requests,
    row::revision_unknown,
];

/// Returns what the rules find in a task, in the order of [`ids::ALL`]; the command's own faults are in
/// [`crate::command::Fitted::findings`].
pub fn lint(case: &Case<'_>) -> Vec<Finding> {
    CHECKS.iter().flat_map(|check| check(case)).collect()
}
