//! Where prompts come from: a source by its name, or a file whose form can be seen.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use isobench_schema::task::OptionValue;
use isobench_schema::workload::Prompts;

use crate::exit::{CommandError, Exit};
use crate::load_args::LoadArgs;

/// How much of a file is looked at.
const LOOKED_AT: u64 = 4096;

/// Names of sources that are the same thing.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("prefix_repetition", "prefix-repetition"),
    ("shared-prefix", "prefix-repetition"),
    ("generated-shared-prefix", "prefix-repetition"),
    ("random-ids", "random"),
    ("multi-turn", "sessions"),
];

/// Returns the prompts that were asked for.
///
/// # Errors
/// Returns an error for a file that can't be read or whose form can't be seen.
pub(super) fn prompts(args: &LoadArgs, input_tokens: u32, has_tokenizer: bool) -> Result<Prompts, CommandError> {
    let given = &args.workload;
    if let Some(vocabulary_size) = given.vocabulary_size {
        return Ok(Prompts::TokenIds { input_tokens, vocabulary_size, first_id: 10.min(vocabulary_size / 2) });
    }
    let mut options: BTreeMap<String, OptionValue> =
        given.dataset_options.iter().map(|option| (option.key.clone(), option.value.clone())).collect();
    if !args.server.lora.is_empty() {
        options.entry("lora-modules".to_owned()).or_insert(OptionValue::Text(args.server.lora.join(",")));
    }
    let name = match given.dataset.as_deref() {
        None if has_tokenizer || !options.is_empty() => "random".to_owned(),
        None => return Ok(Prompts::Words { input_tokens }),
        Some(name) if name.contains(['/', '.']) || Path::new(name).is_file() => {
            options.entry("dataset-path".to_owned()).or_insert(OptionValue::Text(name.to_owned()));
            kind(Path::new(name))?.to_owned()
        }
        Some(name) => OTHER_NAMES.iter().find(|(other, _)| *other == name).map_or(name, |(_, name)| name).to_owned(),
    };
    if matches!(name.as_str(), "random" | "sonnet" | "image") {
        let is_given = options.keys().any(|key| key.ends_with("input-len"));
        if !is_given {
            options.insert("input-len".to_owned(), OptionValue::Whole(i64::from(input_tokens)));
        }
    }
    if name == "random" && !has_tokenizer && options.len() == 1 {
        return Ok(Prompts::Words { input_tokens });
    }
    Ok(Prompts::Dataset { name, options })
}

/// Returns the file that prompts come from, if one is named.
pub(super) fn file(args: &LoadArgs) -> Option<PathBuf> {
    let given = &args.workload;
    let option = given.dataset_options.iter().find(|option| option.key.replace('_', "-") == "dataset-path");
    match option.map(|option| &option.value) {
        Some(OptionValue::Text(path)) => Some(PathBuf::from(path)),
        Some(OptionValue::Switch(_) | OptionValue::Whole(_) | OptionValue::Number(_)) => None,
        None => given.dataset.as_deref().map(PathBuf::from).filter(|path| path.is_file()),
    }
}

/// Returns the source that reads a file, by its first bytes.
fn kind(path: &Path) -> Result<&'static str, CommandError> {
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(LOOKED_AT).read_to_end(&mut start));
    if let Err(error) = read {
        let message = format!("can't read the dataset `{}`", path.display());
        return Err(CommandError { source: Some(error.into()), ..CommandError::new(Exit::Usage, message) });
    }
    let text = String::from_utf8_lossy(&start);
    if text.trim().is_empty() {
        let message = format!("the dataset `{}` is empty", path.display());
        return Err(CommandError::new(Exit::Usage, message).hint("give a file with a row for each request"));
    }
    let first = text.lines().next().unwrap_or_default();
    let found = match first {
        _ if first.contains("ContextTokens") => Some("azure"),
        _ if first.contains("Request tokens") => Some("burstgpt"),
        _ if first.contains("\"hash_ids\"") => Some("mooncake"),
        _ if text.trim_start().starts_with('[') && text.contains("\"conversations\"") => Some("sharegpt"),
        _ if first.contains("\"timestamp\"") => Some("timed"),
        _ if first.contains("\"messages\"") && text.contains("\"assistant\"") => return Err(two_ways(path)),
        _ if first.contains("\"prompt\"") || first.contains("\"messages\"") || first.contains("\"token_ids\"") => {
            Some("custom")
        }
        _ => None,
    };
    found.ok_or_else(|| {
        let message = format!("the form of the dataset `{}` can't be seen from its first line", path.display());
        CommandError::new(Exit::Usage, message)
            .hint("name it: `--dataset custom --dataset-option dataset-path=FILE`, or sharegpt, timed, burstgpt, mooncake, azure")
    })
}

/// Returns the error for a file of conversations, which can be sent in two ways.
fn two_ways(path: &Path) -> CommandError {
    let path = path.display();
    CommandError::new(Exit::Usage, format!("`{path}` holds conversations, which can be sent in two ways")).hint(
        format!(
            "turn by turn, with the model's own answers: `--dataset sessions --dataset-option dataset-path={path}`; \
             or each whole, as one request: `--api chat --dataset custom --dataset-option dataset-path={path}`"
        ),
    )
}

#[cfg(test)]
mod tests;
