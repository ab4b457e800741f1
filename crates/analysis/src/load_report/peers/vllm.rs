//! The result file of `vllm bench serve --save-result`, as v0.30.0 to v0.33.0 write it.
//!
//! Latency ends at the last chunk, not at the end of the stream. Tokens are the server's `usage` where it gives any. Times
//! per output token leave out answers of one token; for goodput these count as 0.

use isobench_schema::workload::{Api, Arrival};

use super::writer::{Object, Value};
use super::{NS_PER_S, PeerFacts, PeerView, keeps, max_concurrency, request_rate, since_start, statistics, ttft_s};
use crate::load_report::LoadReport;
use crate::measure::Sample;
use crate::stats::{Ordered, Sorted, Summary, real};

/// The end of a request's latency there: its last chunk.
fn end_ns(sample: &Sample) -> u64 {
    sample.last_chunk.ns().unwrap_or(sample.end_ns)
}

fn latency_s(sample: &Sample) -> f64 {
    since_start(sample, end_ns(sample))
}

fn tokens(sample: &Sample) -> u64 {
    sample.claimed.filter(|claimed| *claimed > 0).unwrap_or(sample.tokens)
}

fn prompt_tokens(sample: &Sample) -> u64 {
    u64::from(sample.prompt_claimed.unwrap_or(sample.input_tokens))
}

/// The time per output token after the first; `None` of one token.
fn tpot_s(sample: &Sample) -> Option<f64> {
    let tokens = tokens(sample);
    (tokens > 1).then(|| (latency_s(sample) - ttft_s(sample)) / real(tokens - 1))
}

/// The time that a request waited for its turn.
fn queue_s(sample: &Sample) -> f64 {
    real(sample.start_ns().saturating_sub(sample.intended_ns)) / NS_PER_S
}

impl LoadReport {
    /// Returns the load as the result file of `vllm bench serve`, one JSON object. `percentiles` lie between 0 and 100; vLLM's
    /// default is the 99th alone. Goodput is there if the objective is one that vLLM can express.
    pub fn vllm_json(&self, facts: &PeerFacts, percentiles: &[f64]) -> String {
        let view = PeerView::of(self);
        let mut object = Object::default();
        head(&mut object, self, facts);
        let table = Statistics { percentiles };
        match self.result.workload.api {
            Api::Embeddings => {
                view.pooling(&mut object);
                table.put(&mut object, "e2el", &Ordered::new(view.completed().map(latency_s)), 1e3);
            }
            Api::Completions | Api::Chat => {
                view.generation(&mut object);
                table.put(&mut object, "ttft", &Ordered::new(view.completed().map(ttft_s)), 1e3);
                table.put(&mut object, "tpot", &Ordered::new(view.completed().filter_map(tpot_s)), 1e3);
                table.put(&mut object, "itl", &self.taken.samples.gaps.by_chunk(), 1.0);
                table.put(&mut object, "e2el", &Ordered::new(view.completed().map(latency_s)), 1e3);
            }
        }
        object.to_json()
    }
}

fn head(object: &mut Object, report: &LoadReport, facts: &PeerFacts) {
    let workload = &report.result.workload;
    let backend = match workload.api {
        Api::Completions => "openai",
        Api::Chat => "openai-chat",
        Api::Embeddings => "openai-embeddings",
    };
    let burstiness = match &workload.arrival {
        Arrival::Open { burstiness, .. } => *burstiness,
        Arrival::Stages { burstiness, .. } => burstiness.unwrap_or(1.0),
        Arrival::Closed { .. }
        | Arrival::Constant { .. }
        | Arrival::Bursts { .. }
        | Arrival::Trace { .. }
        | Arrival::AllAtOnce => 1.0,
    };
    object.put("date", Value::Text(facts.date.clone()));
    object.put("endpoint_type", Value::Text(backend.to_owned()));
    object.put("backend", Value::Text(backend.to_owned()));
    object.put("label", Value::text(facts.label.as_deref()));
    object.put("model_id", Value::Text(report.result.model.clone()));
    object.put("tokenizer_id", Value::Text(facts.tokenizer.clone()));
    object.put("num_prompts", Value::Count(u64::from(workload.requests)));
    object.put("request_rate", request_rate(&workload.arrival).map_or(Value::Text("inf".to_owned()), Value::Real));
    object.put("burstiness", Value::Real(burstiness));
    object.put("max_concurrency", max_concurrency(report));
}

impl PeerView<'_> {
    fn generation(&self, object: &mut Object) {
        let input: u64 = self.completed().map(prompt_tokens).sum();
        let output: u64 = self.completed().map(tokens).sum();
        self.counts(object);
        object.put("failed", Value::Count(self.failed()));
        object.put("total_input_tokens", Value::Count(input));
        object.put("total_output_tokens", Value::Count(output));
        object.put("request_throughput", self.rate(self.count()));
        object.put("request_goodput", self.goodput());
        object.put("output_throughput", self.rate(real(output)));
        object.put("total_token_throughput", self.rate(real(input + output)));
        self.lists(object);
        object.put("max_output_tokens_per_s", self.peak_chunks());
        object.put("max_concurrent_requests", self.peak_requests(end_ns));
        // Nothing here is speech.
        object.put("rtfx", Value::Real(0.0));
    }

    fn pooling(&self, object: &mut Object) {
        let input: u64 = self.completed().map(prompt_tokens).sum();
        let sequences = u64::try_from(self.completed().count()).unwrap_or(u64::MAX);
        self.counts(object);
        object.put("total_input_tokens", Value::Count(input));
        object.put("total_input_sequences", Value::Count(sequences));
        object.put("request_throughput", self.rate(self.count()));
        object.put("input_sequence_throughput", self.rate(self.count()));
        object.put("total_token_throughput", self.rate(real(input)));
        self.lists(object);
    }

    fn counts(&self, object: &mut Object) {
        object.put("duration", Value::Real(self.duration_s));
        object.put("completed", Value::Count(u64::try_from(self.completed().count()).unwrap_or(u64::MAX)));
    }

    fn failed(&self) -> u64 {
        u64::try_from(self.requests.len() - self.completed().count()).unwrap_or(u64::MAX)
    }

    /// Puts the two lists that vLLM leaves in its file also without `--save-detailed`.
    fn lists(&self, object: &mut Object) {
        let latency = |sample: &&Sample| if sample.failure.is_none() { latency_s(sample) } else { 0.0 };
        object.put("latencies", Value::Reals(self.requests.iter().map(latency).collect()));
        object.put("queue_times", Value::Reals(self.requests.iter().map(|sample| queue_s(sample)).collect()));
    }

    fn goodput(&self) -> Value {
        let Some(bounds) = self.upper_bounds() else { return Value::Null };
        let is_good = |sample: &Sample| {
            keeps(ttft_s(sample), bounds.ttft_ms)
                && keeps(tpot_s(sample).unwrap_or(0.0), bounds.tpot_ms)
                && keeps(latency_s(sample), bounds.e2el_ms)
        };
        let good = self.completed().filter(|sample| is_good(sample)).count();
        self.rate(real(u64::try_from(good).unwrap_or(u64::MAX)))
    }
}

/// Puts the statistics of a duration.
struct Statistics<'a> {
    percentiles: &'a [f64],
}

impl Statistics<'_> {
    fn put(&self, object: &mut Object, name: &str, values: &dyn Sorted, to_ms: f64) {
        let Summary { mean, deviation, quantiles, .. } = statistics(values, self.percentiles, to_ms);
        let (median, rest) = quantiles.split_first().unwrap_or((&0.0, &[]));
        object.put(format!("mean_{name}_ms"), Value::Real(mean));
        object.put(format!("median_{name}_ms"), Value::Real(*median));
        object.put(format!("std_{name}_ms"), Value::Real(deviation));
        for (percentile, value) in self.percentiles.iter().zip(rest) {
            object.put(format!("p{percentile}_{name}_ms"), Value::Real(*value));
        }
    }
}
