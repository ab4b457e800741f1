//! The page `/metrics`, with vLLM's names.

use std::fmt::Write as _;

use crate::server::Server;

/// Returns the page as the server's state and its settings have it.
pub(crate) fn page(server: &Server) -> String {
    let (config, prefixes) = (&server.config, &server.prefixes);
    let used = number(server.held_tokens) / number(config.kv_tokens.max(1));
    let rows = [
        ("num_requests_running", "gauge", config.running.unwrap_or(number(server.active))),
        ("num_requests_waiting", "gauge", config.waiting.unwrap_or(number(server.waiting))),
        ("kv_cache_usage_perc", "gauge", config.kv_usage.unwrap_or(used.min(1.0))),
        ("prefix_cache_queries_total", "counter", config.prefix_queries.unwrap_or(number(prefixes.queries))),
        ("prefix_cache_hits_total", "counter", config.prefix_hits.unwrap_or(number(prefixes.hits))),
        ("num_preemptions_total", "counter", config.preemptions.unwrap_or(0.0)),
        ("generation_tokens_total", "counter", number(server.generated)),
    ];
    let mut page = String::new();
    for (name, kind, value) in rows {
        let family = name.strip_suffix("_total").unwrap_or(name);
        // Writing to a string can't fail.
        writeln!(page, "# HELP vllm:{family} As the truth server has it.\n# TYPE vllm:{family} {kind}").ok();
        writeln!(page, "vllm:{name}{{engine=\"0\",model_name=\"{}\"}} {value:?}", server.model).ok();
    }
    page
}

#[expect(clippy::cast_precision_loss, reason = "counts of tests are far below 2^53")]
fn number(count: u64) -> f64 {
    count as f64
}
