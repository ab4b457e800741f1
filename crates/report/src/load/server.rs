//! What the server says of itself, for any page.

use isobench_schema::load_result::{LoadResult, ServerMetric};
use isobench_schema::task::OptionValue;
use isobench_schema::workload::Prompts;

use crate::number::percent;

/// Counters beside those whose names end in `_total`: what their names hold.
const COUNTERS: [&str; 4] = ["prefix_cache_queries", "prefix_cache_hits", "num_preemptions", "spec_decode_num_"];
/// Datasets whose prompts share beginnings, or may.
const SHARING: [&str; 5] = ["sonnet", "sessions", "custom", "mooncake", "timed"];

/// Returns how much a counter grew over the window; nothing for what goes up and down.
pub(crate) fn grown(name: &str, metric: &ServerMetric) -> Option<f64> {
    let is_counter = name.ends_with("_total") || COUNTERS.iter().any(|known| name.contains(known));
    Some(metric.last - metric.first).filter(|grown| is_counter && *grown >= 0.0)
}

/// Returns a note where most of the prompts' tokens were known to the server, and the load isn't made for that.
pub(crate) fn cache_note(result: &LoadResult) -> Option<String> {
    if is_sharing(&result.workload.prompts) {
        return None;
    }
    // A cache beside the engine's own counts under its own name.
    let sum = |counter: &str| -> f64 {
        let own = result.server.iter().filter(|(name, _)| name.contains(counter) && !name.contains("external"));
        own.filter_map(|(name, metric)| grown(name, metric)).sum()
    };
    let (hits, queries) = (sum("prefix_cache_hits"), sum("prefix_cache_queries"));
    (queries > 0.0 && hits > 0.5 * queries).then(|| {
        format!(
            "{} of the prompts' tokens came from the server's prefix cache: give another `--seed`, or `--reset-prefix-cache`",
            percent((hits / queries).min(1.0))
        )
    })
}

fn is_sharing(prompts: &Prompts) -> bool {
    match prompts {
        Prompts::Words { .. } | Prompts::TokenIds { .. } => false,
        Prompts::Dataset { name, options } => {
            let has_prefix =
                options.iter().any(|(key, value)| key.ends_with("prefix-len") && *value != OptionValue::Whole(0));
            name.contains("prefix") || SHARING.contains(&name.as_str()) || has_prefix
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metric(first: f64, last: f64) -> ServerMetric {
        ServerMetric { looks: 2, first, last, min: first, mean: first, max: last }
    }

    #[test]
    fn only_counters_grow() {
        assert_eq!(grown("vllm:prompt_tokens_total", &metric(2.0, 5.0)), Some(3.0));
        assert_eq!(grown("vllm:gpu_prefix_cache_hits", &metric(2.0, 5.0)), Some(3.0));
        assert_eq!(grown("vllm:num_requests_waiting", &metric(2.0, 5.0)), None);
        // A server that was launched again began at 0.
        assert_eq!(grown("vllm:prompt_tokens_total", &metric(5.0, 2.0)), None);
    }

    #[test]
    fn a_dataset_with_common_beginnings_is_known() {
        let dataset = |name: &str, options: &[(&str, i64)]| Prompts::Dataset {
            name: name.to_owned(),
            options: options.iter().map(|(key, value)| ((*key).to_owned(), OptionValue::Whole(*value))).collect(),
        };
        for sharing in [dataset("prefix_repetition", &[]), dataset("random", &[("random-prefix-len", 64)])] {
            assert!(is_sharing(&sharing), "{sharing:?}");
        }
        for fresh in [dataset("random", &[("random-prefix-len", 0)]), dataset("sharegpt", &[])] {
            assert!(!is_sharing(&fresh), "{fresh:?}");
        }
    }
}
