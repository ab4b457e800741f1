//! What was sent, in words for any page.

use isobench_schema::load_result::{InputCounter, LoadResult};
use isobench_schema::task::OptionValue;
use isobench_schema::workload::{Api, Prompts};

use crate::number::{counted, significant};
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
    match own_length(&load.prompts).unwrap_or(u64::from(load.output_tokens)) {
        0 if load.api == Api::Embeddings => "none".to_owned(),
        0 => format!("as many tokens as the rows say, {bound}"),
        tokens => format!("{}, {bound}", counted(tokens, "token")),
    }
}

/// Returns what was sent in one line: interface, prompts, answers, seed.
pub(crate) fn line(result: &LoadResult) -> String {
    let number = |name: &str| result.metrics.get(name).copied();
    let completed = number("completed").filter(|completed| *completed > 0.0);
    let mean = |name: &str, unit: &str| {
        let mean = number(name)? / completed?;
        let unit =
            if (mean - 1.0).abs() < f64::EPSILON { unit.replacen("tokens", "token", 1) } else { unit.to_owned() };
        Some(format!("; on average {} {unit}", significant(mean)))
    };
    format!(
        "{} · prompts: {}{} · answers: {}{} · seed {}",
        result.workload.api,
        prompts(&result.workload.prompts),
        mean("total_input_tokens", input_unit(result)).unwrap_or_default(),
        answers(result),
        mean("total_output_tokens", "tokens").unwrap_or_default(),
        seed(result),
    )
}

/// Returns the seed; that of a level of a sweep isn't what was typed.
fn seed(result: &LoadResult) -> String {
    let made = if result.sweep.is_some() { " (this level's own, made of `--seed` and the level)" } else { "" };
    format!("{}{made}", result.seed)
}

/// Returns by what the lengths of prompts are known.
pub(crate) fn input_counter(result: &LoadResult) -> InputCounter {
    result.input_counted_by.unwrap_or(match &result.workload.prompts {
        Prompts::Words { .. } => InputCounter::Words,
        Prompts::TokenIds { .. } => InputCounter::TokenIds,
        Prompts::Dataset { .. } if result.tokenizer_digest.is_some() => InputCounter::Tokenizer,
        Prompts::Dataset { name, .. } if name == "random" => InputCounter::Words,
        Prompts::Dataset { .. } => InputCounter::Rows,
    })
}

/// Returns what the lengths of prompts are in.
fn input_unit(result: &LoadResult) -> &'static str {
    match input_counter(result) {
        InputCounter::Usage => "tokens by the server's usage",
        InputCounter::Words => "words, not tokens",
        InputCounter::Tokenizer | InputCounter::TokenIds | InputCounter::Rows => "tokens",
    }
}

/// Returns the length that a dataset's own option asks of every answer.
fn own_length(prompts: &Prompts) -> Option<u64> {
    let Prompts::Dataset { options, .. } = prompts else { return None };
    let is_length = |key: &str| key.replace('_', "-").ends_with("output-len");
    options.iter().filter(|(key, _)| is_length(key)).find_map(|(_, value)| match value {
        OptionValue::Whole(tokens) => u64::try_from(*tokens).ok().filter(|tokens| *tokens > 0),
        OptionValue::Switch(_) | OptionValue::Number(_) | OptionValue::Text(_) => None,
    })
}

fn option(value: &OptionValue) -> String {
    match value {
        OptionValue::Switch(on) => on.to_string(),
        OptionValue::Whole(number) => number.to_string(),
        OptionValue::Number(number) => number.to_string(),
        OptionValue::Text(text) => text.clone(),
    }
}
