//! What the server said of itself over the window.

use std::collections::{BTreeMap, BTreeSet};

use isobench_schema::load_result::ServerMetric;
use isobench_schema::record::ServerSample;

use super::Window;
use crate::stats::mean;

/// Returns the server's metrics: the ends are of the last look before the window and of the first one after it, the rest of
/// the looks within, or of the ends if there are none. What a look is missing for is left out.
pub(super) fn summary(looks: &[ServerSample], window: Window) -> BTreeMap<String, ServerMetric> {
    let names: BTreeSet<&String> = looks.iter().flat_map(|look| look.values.keys()).collect();
    names.into_iter().filter_map(|name| Some((name.clone(), metric(looks, name, window)?))).collect()
}

fn metric(looks: &[ServerSample], name: &str, window: Window) -> Option<ServerMetric> {
    let mut values: Vec<(u64, f64)> = looks
        .iter()
        .filter_map(|look| Some((look.at_ns, *look.values.get(name)?)))
        .filter(|(_, value)| value.is_finite())
        .collect();
    values.sort_by_key(|(at_ns, _)| *at_ns);
    let before = values.iter().rev().find(|(at_ns, _)| *at_ns <= window.start_ns).map(|(_, value)| *value);
    let after = values.iter().find(|(at_ns, _)| *at_ns >= window.end_ns).map(|(_, value)| *value);
    let is_within = |at_ns: u64| (window.start_ns..=window.end_ns).contains(&at_ns);
    let mut within: Vec<f64> = values.iter().filter(|(at_ns, _)| is_within(*at_ns)).map(|(_, value)| *value).collect();
    if within.is_empty() {
        within = vec![before?, after?];
    }
    Some(ServerMetric {
        looks: u64::try_from(within.len()).unwrap_or(u64::MAX),
        first: before.or_else(|| within.first().copied())?,
        last: after.or_else(|| within.last().copied())?,
        min: within.iter().copied().reduce(f64::min)?,
        mean: mean(&within)?,
        max: within.iter().copied().reduce(f64::max)?,
    })
}
