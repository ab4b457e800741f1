//! Failed requests by class.

use std::collections::BTreeMap;

use isobench_schema::failure::FailureClass;
use isobench_schema::load_result::LoadFailures;

use super::Sample;

/// Returns the failures by class, the most frequent first.
pub(super) fn by_class(window: &[Sample]) -> Vec<LoadFailures> {
    let mut classes: BTreeMap<FailureClass, LoadFailures> = BTreeMap::new();
    for failure in window.iter().filter_map(|sample| sample.failure.as_deref()) {
        let class = failure.class;
        let found = classes.entry(class).or_insert(LoadFailures { class, count: 0, examples: Vec::new() });
        found.count += 1;
        if found.examples.len() < LoadFailures::EXAMPLES && !found.examples.contains(&failure.message) {
            found.examples.push(failure.message.clone());
        }
    }
    let mut failures: Vec<LoadFailures> = classes.into_values().collect();
    failures.sort_by_key(|failures| std::cmp::Reverse(failures.count));
    failures
}
