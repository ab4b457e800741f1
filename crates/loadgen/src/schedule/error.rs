//! Why a workload can't be sent.

use std::io;

use crate::datasets::DatasetError;
use crate::tokenizer::TokenizerError;

/// Why a workload can't be sent.
#[derive(Debug, thiserror::Error)]
pub enum ScheduleError {
    /// A number that makes no sense.
    #[error("the workload's `{field}` is {value}, but it must be {rule}")]
    Number {
        /// The field.
        field: String,
        /// What it holds.
        value: String,
        /// What it must be.
        rule: &'static str,
    },
    /// A field of the extra body is one that the load client sets itself, or that would change how answers are read.
    #[error("the workload's extra body sets `{field}`, which the load client controls")]
    ReservedField {
        /// The field.
        field: String,
    },
    /// A sampling field of the extra body that no engine takes.
    #[error("the workload's extra body sets `{field}` to {value}, but it must be {rule}")]
    Sampling {
        /// The field.
        field: &'static str,
        /// What it holds.
        value: String,
        /// What it must be.
        rule: &'static str,
    },
    /// Token ids can't be sent to the chat interface.
    #[error(
        "prompts of token ids can't be sent to the chat interface: use `words` prompts or the completions interface"
    )]
    IdsInChat,
    /// Messages can only be sent to the chat interface.
    #[error(
        "request {request} is made of messages, which can't be sent to the {api} interface: use the chat interface"
    )]
    MessagesOutsideChat {
        /// The request, from 0.
        request: u32,
        /// The interface.
        api: &'static str,
    },
    /// The times of a trace are asked for, but the prompts have none.
    #[error(
        "the arrivals are those of a trace, but {prompts} have no times: use a dataset of a trace (`mooncake`, `azure`, `burstgpt`, `timed`) or another arrival"
    )]
    NoTimes {
        /// What the prompts are.
        prompts: String,
    },
    /// The requests can't be drawn from the dataset.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// The tokenizer can't be used.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// The prepared requests can't be kept.
    #[error("failed to keep the prepared requests in the folder for temporary files")]
    Keep {
        /// The cause.
        #[source]
        source: io::Error,
    },
}
