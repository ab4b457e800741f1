//! What must be equal before the measurements of two launches may be compared.

use std::collections::BTreeMap;

use isobench_schema::block::BlockSpec;
use isobench_schema::comparability::{ComparabilityKey, KeyField};
use isobench_schema::container::ImageFacts;
use isobench_schema::ids::Digest;
use isobench_schema::measurement::DEFINITION;

use super::LaunchContext;

/// Returns the isolation as far as it may change a measurement: its level, the image, the bounds and the devices.
/// An image of the arm's own is part of its environment, as its commit is.
fn isolation(spec: &BlockSpec, own: Option<&ImageFacts>) -> String {
    let digest = |value: Result<Digest, serde_json::Error>| value.map_or_else(|error| error.to_string(), String::from);
    match &spec.container {
        None => spec.isolation.to_string(),
        Some(container) => {
            let rest = digest(Digest::of_json(&(&container.limits, &container.devices, &container.seccomp)));
            let image = match (own, &container.image) {
                (Some(_), _) => "of the arm's own",
                (None, Some(image)) => image.id.as_str(),
                (None, None) => "missing",
            };
            format!("{}, image {image}, limits {rest}", spec.isolation)
        }
    }
}

/// Returns everything that must be equal before the launch's measurement may be compared.
pub(super) fn key(context: &LaunchContext<'_>, packages: &[String]) -> ComparabilityKey {
    let LaunchContext { spec, block, .. } = *context;
    let digest = |value: Result<Digest, serde_json::Error>| value.map_or_else(|error| error.to_string(), String::from);
    let devices: Vec<&str> = block.host.devices.iter().map(|device| device.name.as_str()).collect();
    let drivers: Vec<&str> = block.host.devices.iter().map(|device| device.driver.as_str()).collect();
    let mut key = BTreeMap::from([
        (KeyField::Host, block.host.fingerprint.clone()),
        (KeyField::Client, format!("isobench {}, {}", env!("CARGO_PKG_VERSION"), block.scheduling.as_str())),
        (KeyField::Workload, digest(Digest::of_json(&spec.workload))),
        (KeyField::Seed, spec.prompt_seed.to_string()),
        (KeyField::Server, digest(Digest::of_json(&spec.server))),
        (KeyField::Inputs, digest(Digest::of_json(&spec.inputs))),
        (KeyField::Definition, DEFINITION.to_owned()),
        (KeyField::Isolation, isolation(spec, context.planned.environment.python.image())),
        (KeyField::Caches, "cold: private to the launch".to_owned()),
    ]);
    key.extend(spec.workload.script.iter().flat_map(super::script::key));
    let recipes = context.planned.environment.recipes();
    match (&spec.recipes, packages.is_empty() && recipes.is_empty()) {
        (applied, true) if applied.is_empty() => {}
        (applied, false) if applied.is_empty() => {
            key.insert(KeyField::Recipes, digest(Digest::of_json(&(packages, recipes))));
        }
        (applied, _) => {
            key.insert(KeyField::Recipes, digest(Digest::of_json(&(packages, recipes, applied))));
        }
    }
    if let Some(toolkit) = &context.planned.environment.toolkit {
        key.insert(KeyField::Toolkit, toolkit.image.id.clone());
    }
    if !devices.is_empty() {
        key.insert(KeyField::Device, devices.join(", "));
        key.insert(KeyField::Driver, drivers.join(", "));
    }
    ComparabilityKey(key)
}
