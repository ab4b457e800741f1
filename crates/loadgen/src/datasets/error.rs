//! Why requests can't be drawn from a dataset.

use std::io;
use std::path::PathBuf;

use crate::tokenizer::TokenizerError;

/// Why requests can't be drawn from a dataset.
#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    /// No dataset has this name.
    #[error("there is no dataset `{name}`: the names are {known}")]
    Unknown {
        /// The name.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// An option that the dataset doesn't have.
    #[error("dataset `{dataset}` has no option `{option}`: it has {known}")]
    UnknownOption {
        /// The dataset.
        dataset: String,
        /// The option.
        option: String,
        /// Those that there are.
        known: String,
    },
    /// An option that makes no sense.
    #[error("option `{option}` of dataset `{dataset}` is `{value}`, but it must be {rule}")]
    Option {
        /// The dataset.
        dataset: String,
        /// The option.
        option: String,
        /// What it holds.
        value: String,
        /// What it must be.
        rule: String,
    },
    /// An option that must be given.
    #[error("dataset `{dataset}` needs the option `{option}`: {what}")]
    MissingOption {
        /// The dataset.
        dataset: String,
        /// The option.
        option: &'static str,
        /// What it says.
        what: &'static str,
    },
    /// No tokenizer was given.
    #[error(
        "dataset `{dataset}` needs the model's tokenizer: give the model's folder or its `tokenizer.json` as tokenizer"
    )]
    MissingTokenizer {
        /// The dataset.
        dataset: String,
    },
    /// No tokenizer was given, and a row doesn't say how long its prompt is.
    #[error(
        "dataset `{dataset}` needs the model's tokenizer, or `input_tokens`, the length of the prompt in tokens, in each row"
    )]
    MissingLength {
        /// The dataset.
        dataset: String,
    },
    /// The dataset has no meaning for the interface.
    #[error("dataset `{dataset}` can't be sent to the {api} interface: use {instead}")]
    Interface {
        /// The dataset.
        dataset: String,
        /// The interface.
        api: &'static str,
        /// What can be done.
        instead: &'static str,
    },
    /// The file can't be read.
    #[error("failed to read the dataset `{path}`")]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A row that is no request.
    #[error("`{path}`, {place}: {what}")]
    Row {
        /// The file.
        path: PathBuf,
        /// The line, or the place in a list.
        place: String,
        /// What is wrong.
        what: String,
    },
    /// The file as a whole can't be understood.
    #[error("`{path}` can't be read as a dataset: {what}")]
    Form {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// No row can be used.
    #[error("`{path}` has no row that can be sent: {rule}")]
    Empty {
        /// The file.
        path: PathBuf,
        /// Which rows can.
        rule: &'static str,
    },
    /// There are fewer rows than requests, and none may be sent twice.
    #[error("`{path}` has {rows} rows, but {wanted} requests are asked: ask fewer, or allow rows to be sent again")]
    TooFew {
        /// The file.
        path: PathBuf,
        /// Its rows.
        rows: usize,
        /// Requests.
        wanted: u32,
    },
    /// The tokenizer can't be used.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// The tokenizer gives no text of this length.
    #[error(
        "no text of exactly {tokens} tokens was found with the tokenizer `{path}`: send token ids (`token-ids`) or words"
    )]
    NotExact {
        /// The length.
        tokens: u32,
        /// The tokenizer.
        path: PathBuf,
    },
    /// An image can't be made.
    #[error("failed to make an image of {width} by {height} pixels: {cause}")]
    Image {
        /// Pixels from left to right.
        width: u32,
        /// Pixels from top to bottom.
        height: u32,
        /// The cause.
        cause: String,
    },
}
