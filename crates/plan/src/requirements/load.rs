//! What a workload asks of a server, as numbers: lengths, and requests at once.

use std::collections::BTreeMap;

use isobench_schema::task::OptionValue;
use isobench_schema::workload::{Arrival, Prompts, Workload};

/// The lengths of a workload's requests in tokens.
#[derive(Debug, Clone, PartialEq)]
pub struct Lengths {
    /// The mean prompt.
    pub input: f64,
    /// The mean answer.
    pub output: f64,
    /// The longest prompt and answer together.
    pub longest: u64,
    /// What is assumed, where the workload doesn't say it.
    pub assumed: Option<String>,
}

/// Lengths in vLLM's and SGLang's own benchmarks with conversations of `ShareGPT`: prompts of at most 1,024 tokens, with their
/// answers at most 2,048. The means are an estimate for tokenizers like Llama's.
const SHAREGPT: (f64, f64, u64) = (220.0, 190.0, 2048);

/// A prompt where nothing is known of it.
const UNKNOWN_INPUT: f64 = 512.0;

impl Lengths {
    /// Returns the lengths of a workload.
    pub fn of(workload: &Workload) -> Self {
        let output = f64::from(workload.output_tokens);
        let exact = |input: u32| Self {
            input: f64::from(input),
            output,
            longest: u64::from(input) + u64::from(workload.output_tokens),
            assumed: None,
        };
        match &workload.prompts {
            Prompts::Words { input_tokens } | Prompts::TokenIds { input_tokens, .. } => exact(*input_tokens),
            Prompts::Dataset { name, options } => Self::of_dataset(name, options, workload.output_tokens),
        }
    }

    fn of_dataset(name: &str, options: &BTreeMap<String, OptionValue>, output_tokens: u32) -> Self {
        let number = |names: &[&str]| {
            let value = names.iter().find_map(|name| options.get(*name))?;
            match value {
                OptionValue::Whole(number) => u32::try_from(*number).ok(),
                OptionValue::Text(text) => text.parse().ok(),
                OptionValue::Switch(_) | OptionValue::Number(_) => None,
            }
        };
        let given = (number(&["random-input-len", "sonnet-input-len", "input-len"]), output_tokens);
        let (input, output, longest) = match (name, given) {
            (_, (Some(input), output)) => (f64::from(input), f64::from(output), u64::from(input) + u64::from(output)),
            ("sharegpt", (None, 0)) => SHAREGPT,
            ("sharegpt", (None, output)) => (SHAREGPT.0, f64::from(output), 1024 + u64::from(output)),
            (_, (None, output)) => (UNKNOWN_INPUT, f64::from(output), 512 + u64::from(output)),
        };
        let assumed = number(&["random-input-len", "sonnet-input-len", "input-len"])
            .is_none()
            .then(|| format!("prompts of dataset `{name}` are taken for {input:.0} tokens, answers for {output:.0}"));
        Self { input, output, longest, assumed }
    }

    /// Returns the mean tokens that one request holds in the cache when it ends.
    pub fn whole(&self) -> f64 {
        self.input + self.output
    }
}

/// Returns the most requests that a workload has under way at once, if the server takes them all; for an open loop as many as
/// there are.
pub fn at_once(workload: &Workload) -> u32 {
    let requests = workload.requests.max(1);
    match workload.arrival {
        Arrival::Closed { concurrency, .. } => concurrency.clamp(1, requests),
        Arrival::Open { .. }
        | Arrival::Constant { .. }
        | Arrival::Stages { .. }
        | Arrival::Bursts { .. }
        | Arrival::Trace { .. }
        | Arrival::AllAtOnce => workload.max_in_flight.map_or(requests, |most| most.clamp(1, requests)),
    }
}
