//! What the server said of itself over the window.

use std::collections::BTreeMap;

use isobench_schema::load_result::ServerMetric;
use isobench_schema::record::ServerSample;

use super::Window;
use crate::stats::real;

/// Returns the server's metrics over the looks that fell into the window.
pub(super) fn summary(looks: &[ServerSample], window: Window) -> BTreeMap<String, ServerMetric> {
    let within = looks.iter().filter(|look| (window.start_ns..=window.end_ns).contains(&look.at_ns));
    let mut metrics: BTreeMap<String, ServerMetric> = BTreeMap::new();
    for (name, &value) in within.flat_map(|look| &look.values).filter(|(_, value)| value.is_finite()) {
        let Some(metric) = metrics.get_mut(name) else {
            let first = ServerMetric { looks: 1, first: value, last: value, min: value, mean: value, max: value };
            metrics.insert(name.clone(), first);
            continue;
        };
        metric.looks += 1;
        metric.last = value;
        metric.min = metric.min.min(value);
        metric.max = metric.max.max(value);
        metric.mean += (value - metric.mean) / real(metric.looks);
    }
    metrics
}
