//! Where requests come from that are not drawn from a seed alone: datasets, by the names that other clients know them by.
//!
//! A source yields one request after the other, and reads a row of a file when it is asked for. What it yields is a pure
//! function of its options, its files, the tokenizer and a seed.

mod adapters;
mod custom;
mod error;
mod exact;
mod image;
mod options;
mod prefixes;
mod random;
mod reader;
mod rows;
mod sessions;
mod sharegpt;
mod sonnet;
mod trace;
mod verse;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use isobench_schema::ids::Digest;
use isobench_schema::task::OptionValue;
use isobench_schema::workload::{Api, Prompts};
use serde::{Deserialize, Serialize};

pub use error::DatasetError;
pub(crate) use exact::{ExactText, Maker};
use options::{Options, PATHS};

use crate::schedule::Request;
use crate::schedule::draw::Draws;
use crate::tokenizer::Tokenizer;

/// What the requests of a workload may be made with, beside the workload itself.
#[derive(Debug, Clone, Default)]
pub struct Resources {
    /// The model's tokenizer.
    pub tokenizer: Option<Arc<Tokenizer>>,
    /// Relative paths of a dataset's options are from here; empty is the working folder.
    pub folder: PathBuf,
}

/// A source of requests.
pub(crate) trait Source {
    /// Returns the next request.
    fn next(&mut self) -> Result<Request, DatasetError>;

    /// Returns how many rows were left out.
    fn left_out(&self) -> u64 {
        0
    }

    /// Returns how many requests were made of rows that had been sent before.
    fn again(&self) -> u64 {
        0
    }

    /// Returns how many requests there are before they begin again, where each has a time of its own. It is asked before
    /// the first request.
    fn timed_requests(&mut self) -> Result<Option<u64>, DatasetError> {
        Ok(None)
    }

    /// Returns the file that requests come from, with its digest.
    fn file(&self) -> Option<Input> {
        None
    }
}

/// A file that requests are made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// The file.
    pub path: PathBuf,
    /// The digest of its bytes.
    pub digest: Digest,
}

/// What a source is opened for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) resources: &'a Resources,
    pub(crate) api: Api,
    /// The seed of the block.
    pub(crate) seed: u64,
    pub(crate) part: Part,
    /// How many requests will be asked for.
    pub(crate) requests: u32,
    /// The length of every answer; 0 where each has its own.
    pub(crate) output_tokens: u32,
    /// Whether requests have the times of a trace.
    pub(crate) times: Times,
}

/// What the requests are for. Both are drawn apart, and rows of a file are taken from different ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    WarmUp,
    Measure,
}

/// Where the times of requests come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Times {
    /// From an arrival process.
    Process,
    /// From the dataset's own rows, which then are taken in their order.
    Trace,
}

impl Part {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::WarmUp => "warm-up",
            Self::Measure => "measure",
        }
    }
}

impl Context<'_> {
    /// Returns the draws of this part for a purpose.
    pub(crate) fn draws(&self, purpose: &str) -> Draws {
        Draws::new(self.seed, &format!("{purpose}/{}", self.part.as_str()))
    }

    /// Returns the draws that are the same for both parts.
    pub(crate) fn shared_draws(&self, purpose: &str) -> Draws {
        Draws::new(self.seed, purpose)
    }

    /// Returns the tokenizer, or an error that says how to give one.
    pub(crate) fn tokenizer(&self, dataset: &str) -> Result<&Arc<Tokenizer>, DatasetError> {
        let missing = || DatasetError::MissingTokenizer { dataset: dataset.to_owned() };
        self.resources.tokenizer.as_ref().ok_or_else(missing)
    }

    /// Returns how many tokens the server puts around a prompt: none where it goes through a chat template, whose tokens
    /// only the server knows.
    pub(crate) fn special_tokens(&self, tokenizer: &Tokenizer) -> Result<u32, DatasetError> {
        match self.api {
            Api::Chat => Ok(0),
            Api::Completions | Api::Embeddings => Ok(tokenizer.special_tokens()?),
        }
    }

    /// Returns the length that is asked of every answer, by an option or the workload, if one is.
    pub(crate) fn asked(&self, given: Option<u32>) -> Option<u32> {
        let asked = self.output_tokens(given, 0);
        (asked > 0 || self.api == Api::Embeddings).then_some(asked)
    }

    /// Returns the length of answers: by an option, else the workload's, else a default. None where nothing is generated.
    pub(crate) fn output_tokens(&self, given: Option<u32>, default: u32) -> u32 {
        match self.api {
            Api::Embeddings => 0,
            Api::Chat | Api::Completions => match (given, self.output_tokens) {
                (Some(given), _) if given > 0 => given,
                (_, 0) => default,
                (_, asked) => asked,
            },
        }
    }
}

/// Returns the path of the file that prompts are made from, if they are.
pub(crate) fn file(prompts: &Prompts, resources: &Resources) -> Option<PathBuf> {
    match prompts {
        Prompts::Words { .. } | Prompts::TokenIds { .. } => None,
        Prompts::Dataset { options, .. } => match PATHS.iter().find_map(|name| options.get(*name)) {
            Some(OptionValue::Text(path)) => Some(resources.folder.join(path)),
            Some(OptionValue::Switch(_) | OptionValue::Whole(_) | OptionValue::Number(_)) | None => None,
        },
    }
}

/// The datasets, by name.
const NAMES: &[&str] = &[
    "random",
    "sharegpt",
    "sonnet",
    "custom",
    "prefix-repetition",
    "prefix-tree",
    "sessions",
    "image",
    "burstgpt",
    "azure",
    "mooncake",
    "timed",
];

/// Opens a dataset.
///
/// # Errors
/// Returns what is wrong with its name, its options or its file, or that it needs a tokenizer.
pub(crate) fn open(
    name: &str,
    given: &BTreeMap<String, OptionValue>,
    context: &Context<'_>,
) -> Result<Box<dyn Source>, DatasetError> {
    let mut options = Options::new(name, given);
    let trace = |kind, options: &mut Options<'_>| trace::Trace::open(kind, options, context);
    let source: Box<dyn Source> = match name {
        "random" => Box::new(random::Random::open(&mut options, context)?),
        "sharegpt" => Box::new(sharegpt::ShareGpt::open(&mut options, context)?),
        "sonnet" => Box::new(sonnet::Sonnet::open(&mut options, context)?),
        "custom" => Box::new(custom::Custom::open(&mut options, context)?),
        // A second name is vLLM's.
        "prefix-repetition" | "prefix_repetition" => Box::new(prefixes::Repetition::open(&mut options, context)?),
        "prefix-tree" => Box::new(prefixes::Tree::open(&mut options, context)?),
        "sessions" => Box::new(sessions::Sessions::open(&mut options, context)?),
        "image" => Box::new(image::Image::open(&mut options, context)?),
        "burstgpt" => Box::new(trace(trace::Kind::BurstGpt, &mut options)?),
        "azure" => Box::new(trace(trace::Kind::Azure, &mut options)?),
        "mooncake" => Box::new(trace(trace::Kind::Mooncake, &mut options)?),
        "timed" | "timed_trace" => Box::new(trace(trace::Kind::Timed, &mut options)?),
        _ => {
            return Err(DatasetError::Unknown {
                name: name.to_owned(),
                known: NAMES.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
            });
        }
    };
    let source = adapters::Adapters::over(source, &mut options, context)?;
    options.finish()?;
    Ok(source)
}

#[cfg(test)]
mod tests;
