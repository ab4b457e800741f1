//! Rules about how many devices a task needs.

use isobench_schema::assessment::Finding;

use super::case::{Case, finding};
use super::ids;

/// Finds tasks that need more devices than are planned.
pub(super) fn devices_too_few(case: &Case<'_>) -> Vec<Finding> {
    let Some(planned) = case.devices else { return Vec::new() };
    let asked = case.given.map_or(1, super::given::Given::devices);
    let needed = case.need.and_then(|need| need.devices).unwrap_or(0);
    let (message, subject) = if asked > planned {
        (format!("the command asks for {asked} devices, and the plan has {planned}"), "--tensor-parallel-size")
    } else if needed > planned {
        let model = case.need.map_or("the model", |need| need.model.as_str());
        (format!("`{model}` needs {needed} devices, and the plan has {planned}"), "--model")
    } else {
        return Vec::new();
    };
    let mut found = finding(ids::DEVICES_TOO_FEW, subject, message);
    found.evidence.extend(case.need.iter().flat_map(|need| need.because.clone()));
    vec![found]
}

/// Finds models that fit no number of the planned devices.
pub(super) fn model_too_large(case: &Case<'_>) -> Vec<Finding> {
    let Some(need) = case.need.filter(|need| need.devices.is_none()) else { return Vec::new() };
    let device = case.device.map_or("the planned device", |device| device.name.as_str());
    let message = format!("`{}` fits no number of {device}", need.model);
    let mut found = finding(ids::MODEL_TOO_LARGE, "--model", message);
    found.evidence.clone_from(&need.because);
    vec![found]
}
