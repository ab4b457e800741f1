//! The line that `sglang.bench_serving` appends to its result file, as v0.5.23 writes it.
//!
//! Latency ends with the stream. Tokens are the server's `usage` where it gives any, else the tokens that were asked for,
//! which are credited also where fewer came; the client's own count is what is there called *retokenized*.

use isobench_schema::task::OptionValue;
use isobench_schema::workload::{Api, Arrival, Prompts, Workload};

use super::writer::{Object, Value};
use super::{PeerFacts, PeerView, keeps, max_concurrency, request_rate, since_start, statistics, ttft_s};
use crate::load_report::LoadReport;
use crate::measure::Sample;
use crate::objective::UpperBounds;
use crate::stats::{Ordered, Sorted, Summary, real};

fn latency_s(sample: &Sample) -> f64 {
    since_start(sample, sample.end_ns)
}

fn tokens(sample: &Sample) -> u64 {
    sample.claimed.unwrap_or(u64::from(sample.asked))
}

/// The time per output token after the first; `None` of one token.
fn tpot_s(sample: &Sample) -> Option<f64> {
    let tokens = tokens(sample);
    (tokens > 1).then(|| (latency_s(sample) - ttft_s(sample)) / real(tokens - 1))
}

impl LoadReport {
    /// Returns the load as a line of the result file of `sglang.bench_serving`, without a line end. Goodput is there if the
    /// objective is one that SGLang can express.
    pub fn sglang_json(&self, facts: &PeerFacts) -> String {
        let view = PeerView::of(self);
        let mut object = Object::default();
        head(&mut object, self, facts);
        view.totals(&mut object);
        put(&mut object, "e2e_latency", &Ordered::new(view.completed().map(latency_s)), 1e3);
        put(&mut object, "ttft", &Ordered::new(view.completed().map(ttft_s)), 1e3);
        put(&mut object, "tpot", &Ordered::new(view.completed().filter_map(tpot_s)), 1e3);
        put(&mut object, "itl", &self.taken.samples.gaps.by_chunk(), 1.0);
        object.put("concurrency", view.rate(view.completed().map(latency_s).sum()));
        // The acceptance of drafts is known to the server alone.
        object.put("accept_length", Value::Null);
        object.put("max_output_tokens_per_s", view.peak_chunks());
        object.put("max_concurrent_requests", view.peak_requests(|sample| sample.end_ns));
        if let Some(bounds) = view.upper_bounds() {
            view.attainment(&mut object, bounds);
        }
        object.to_json()
    }
}

fn head(object: &mut Object, report: &LoadReport, facts: &PeerFacts) {
    let workload = &report.result.workload;
    let backend = match workload.api {
        Api::Completions => "sglang-oai",
        Api::Chat => "sglang-oai-chat",
        Api::Embeddings => "sglang-embedding",
    };
    let request_rate = match &workload.arrival {
        Arrival::Trace { .. } => Value::Text("trace".to_owned()),
        other @ (Arrival::Closed { .. }
        | Arrival::Open { .. }
        | Arrival::Constant { .. }
        | Arrival::Stages { .. }
        | Arrival::Bursts { .. }
        | Arrival::AllAtOnce) => request_rate(other).map_or(Value::Unlimited, Value::Real),
    };
    let random = random_lengths(workload);
    object.put("tag", Value::text(facts.label.as_deref()));
    object.put("backend", Value::Text(backend.to_owned()));
    object.put("dataset_name", Value::Text(facts.dataset.clone()));
    object.put("request_rate", request_rate);
    object.put("max_concurrency", max_concurrency(report));
    object.put("sharegpt_output_len", Value::Null);
    object.put("random_input_len", random.map_or(Value::Null, |[input, _]| Value::Count(input)));
    object.put("random_output_len", random.map_or(Value::Null, |[_, output]| Value::Count(output)));
    object.put(
        "random_range_ratio",
        random.and_then(|_| range_ratio(&workload.prompts)).map_or(Value::Null, Value::Real),
    );
    object.put("server_info", Value::Null);
}

/// Returns the lengths asked of random prompts and their answers.
fn random_lengths(workload: &Workload) -> Option<[u64; 2]> {
    let asked = |name: &str| match option(&workload.prompts, name)? {
        OptionValue::Whole(tokens) => u64::try_from(*tokens).ok(),
        OptionValue::Switch(_) | OptionValue::Number(_) | OptionValue::Text(_) => None,
    };
    let input = match &workload.prompts {
        Prompts::Words { input_tokens } | Prompts::TokenIds { input_tokens, .. } => u64::from(*input_tokens),
        Prompts::Dataset { name, .. } if name == "random" => asked("input-len")?,
        Prompts::Dataset { .. } => return None,
    };
    Some([input, asked("output-len").filter(|tokens| *tokens > 0).unwrap_or(u64::from(workload.output_tokens))])
}

/// Returns the ratio of the shortest length to the longest, as that client means it: there 1 says that all are as asked.
fn range_ratio(prompts: &Prompts) -> Option<f64> {
    let is_up_to = option(prompts, "range-meaning") == Some(&OptionValue::Text("up-to".to_owned()));
    #[expect(clippy::cast_precision_loss, reason = "a ratio is 0 or 1 where it is whole")]
    let given = match option(prompts, "random-range-ratio") {
        None => return Some(1.0),
        Some(OptionValue::Whole(ratio)) => *ratio as f64,
        Some(OptionValue::Number(ratio)) => *ratio,
        Some(OptionValue::Switch(_) | OptionValue::Text(_)) => return None,
    };
    Some(if is_up_to { given } else { (1.0 - given) / (1.0 + given) })
}

/// Returns an option of a dataset, by its name or the name that `random` gives it.
fn option<'p>(prompts: &'p Prompts, name: &str) -> Option<&'p OptionValue> {
    let Prompts::Dataset { options, .. } = prompts else { return None };
    options.get(name).or_else(|| options.get(&format!("random-{name}")))
}

impl PeerView<'_> {
    fn totals(&self, object: &mut Object) {
        let input: u64 = self.completed().map(|sample| u64::from(sample.input_tokens)).sum();
        let output: u64 = self.completed().map(tokens).sum();
        let counted: u64 = self.completed().map(|sample| sample.tokens).sum();
        object.put("duration", Value::Real(self.duration_s));
        object.put("completed", Value::Count(u64::try_from(self.completed().count()).unwrap_or(u64::MAX)));
        object.put("total_input_tokens", Value::Count(input));
        object.put("total_input_text_tokens", Value::Count(input));
        object.put("total_input_vision_tokens", Value::Count(0));
        object.put("total_output_tokens", Value::Count(output));
        object.put("total_output_tokens_retokenized", Value::Count(counted));
        object.put("request_throughput", self.rate(self.count()));
        object.put("input_throughput", self.rate(real(input)));
        object.put("output_throughput", self.rate(real(output)));
        object.put("total_throughput", self.rate(real(input + output)));
    }

    /// Puts the requests that met every bound, of all that were sent, and those that met each.
    fn attainment(&self, object: &mut Object, bounds: UpperBounds) {
        let requests: Vec<[f64; 3]> =
            self.completed().map(|sample| [ttft_s(sample), tpot_s(sample).unwrap_or(0.0), latency_s(sample)]).collect();
        let bounds = [("ttft", bounds.ttft_ms), ("tpot", bounds.tpot_ms), ("e2el", bounds.e2el_ms)];
        let sent = real(u64::try_from(self.requests.len()).unwrap_or(u64::MAX)).max(1.0);
        let share = |count: usize| Value::Real(real(u64::try_from(count).unwrap_or(u64::MAX)) / sent);
        let is_good = |values: &&[f64; 3]| values.iter().zip(bounds).all(|(value, (_, bound))| keeps(*value, bound));
        let good = requests.iter().filter(is_good).count();
        let (mut asked, mut each) = (Object::default(), Object::default());
        for (place, (name, bound)) in bounds.into_iter().enumerate() {
            let Some(bound) = bound else { continue };
            let met =
                requests.iter().filter(|values| values.get(place).is_some_and(|value| keeps(*value, Some(bound))));
            asked.put(name, Value::Real(bound));
            each.put(name, share(met.count()));
        }
        object.put("goodput_slos_ms", Value::Object(asked));
        object.put("request_goodput", self.rate(real(u64::try_from(good).unwrap_or(u64::MAX))));
        object.put("slo_attainment", share(good));
        object.put("slo_attainment_by_metric", Value::Object(each));
    }
}

/// Puts the statistics of a duration.
fn put(object: &mut Object, name: &str, values: &dyn Sorted, to_ms: f64) {
    let Summary { mean, deviation, quantiles, .. } = statistics(values, &[90.0, 95.0, 99.0], to_ms);
    object.put(format!("mean_{name}_ms"), Value::Real(mean));
    let (median, rest) = quantiles.split_first().unwrap_or((&0.0, &[]));
    object.put(format!("median_{name}_ms"), Value::Real(*median));
    object.put(format!("std_{name}_ms"), Value::Real(deviation));
    for (percentile, value) in [90, 95, 99].iter().zip(rest) {
        object.put(format!("p{percentile}_{name}_ms"), Value::Real(*value));
    }
}
