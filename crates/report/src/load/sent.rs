//! What was sent, in words for any page.

use isobench_schema::load_result::LoadResult;
use isobench_schema::task::OptionValue;
use isobench_schema::workload::{Api, Prompts};

use crate::number::significant;
use crate::text::clean;

/// Returns what the prompts are.
pub(crate) fn prompts(prompts: &Prompts) -> String {
    match prompts {
        Prompts::Words { input_tokens } => format!("{input_tokens} random words"),
        Prompts::TokenIds { input_tokens, .. } => format!("{input_tokens} random token ids"),
        Prompts::Dataset { name, options } => {
            let options = options.iter().map(|(key, value)| format!(" {key}={}", option(value)));
            clean(&(name.clone() + &options.collect::<String>()))
        }
    }
}

/// Returns how long the answers were asked to be.
pub(crate) fn answers(result: &LoadResult) -> String {
    let load = &result.workload;
    let bound = if load.ignore_eos { "all of them asked for" } else { "at most" };
    match load.output_tokens {
        0 if load.api == Api::Embeddings => "none".to_owned(),
        0 => format!("as many tokens as the rows say, {bound}"),
        tokens => format!("{tokens} tokens, {bound}"),
    }
}

/// Returns what was sent in one line: interface, prompts, answers, seed.
pub(crate) fn line(result: &LoadResult) -> String {
    let number = |name: &str| result.metrics.get(name).copied();
    let completed = number("completed").filter(|completed| *completed > 0.0);
    let mean = |name: &str| Some(format!("; on average {} tokens", significant(number(name)? / completed?)));
    format!(
        "{} · prompts: {}{} · answers: {}{} · seed {}",
        result.workload.api,
        prompts(&result.workload.prompts),
        mean("total_input_tokens").unwrap_or_default(),
        answers(result),
        mean("total_output_tokens").unwrap_or_default(),
        result.seed,
    )
}

fn option(value: &OptionValue) -> String {
    match value {
        OptionValue::Switch(on) => on.to_string(),
        OptionValue::Whole(number) => number.to_string(),
        OptionValue::Number(number) => number.to_string(),
        OptionValue::Text(text) => text.clone(),
    }
}
