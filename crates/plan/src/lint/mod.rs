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

use changed::Changed;

pub use case::Case;
pub(crate) use case::finding;
pub use given::Given;
pub use registry::{Repairs, Rule, rule, rules};
pub use traits::{TRAITS, Traits};

/// A rule: what it finds in a task, given what the commit changes.
type Check = fn(&Case<'_>, &Changed<'_>) -> Vec<Finding>;

/// Every rule that isn't about the command's own grammar, in the order of [`ids::ALL`].
const CHECKS: &[Check] = &[
    |case, _| row::no_command(case),
    |case, _| model::model_missing(case),
    model::model_contradiction,
    |case, _| model::architecture_unsupported(case),
    |case, _| conflict::feature_conflict(case),
    hardware::hardware_wrong,
    |case, _| devices::devices_too_few(case),
    |case, _| devices::model_too_large(case),
    |case, _| load::throughput_at_fixed_rate(case),
    |case, _| load::rate_beyond_service(case),
    |case, _| row::revert(case),
    coverage::change_not_exercised,
    |case, _| load::too_few_requests(case),
    |case, _| row::revision_unknown(case),
];

/// Returns what the rules find in a task, in the order of [`ids::ALL`]; the command's own faults are in
/// [`crate::command::Fitted::findings`].
pub fn lint(case: &Case<'_>) -> Vec<Finding> {
    let changed = Changed::of(case);
    CHECKS.iter().flat_map(|check| check(case, &changed)).collect()
}
