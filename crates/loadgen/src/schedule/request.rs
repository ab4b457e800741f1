//! One request as its source draws it, before it is rendered.

use isobench_schema::record::Turn;
use serde_json::{Map, Value};

/// What is asked.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// Text: a prompt, the one message of a chat, or the input of an embedding.
    Text(String),
    /// Token ids.
    Ids(Vec<u32>),
    /// The messages of a chat, a JSON array.
    Messages(Value),
    /// What comes next in a conversation: text is a message of the user, a JSON array holds several messages. The turns
    /// before it, with the model's own answers, go before it.
    Turn(Value),
}

/// One request of a source.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// What is asked.
    pub content: Content,
    /// The prompt's length in tokens (in words for worded prompts); for a turn with everything before it, the answers at
    /// the length asked.
    pub input_tokens: u32,
    /// Tokens asked of the answer.
    pub output_tokens: u32,
    /// The model asked for, where it isn't the load's.
    pub model: Option<String>,
    /// Its place in a conversation. Turns of one session come one after the other, from 0.
    pub turn: Option<Turn>,
    /// How long the user thinks before this turn, from the end of the answer before, in nanoseconds.
    pub think_ns: u64,
    /// Its time in a trace, in nanoseconds since the trace's first request.
    pub at_ns: Option<u64>,
    /// Further fields of its body, over those of the workload.
    pub fields: Map<String, Value>,
}

impl Request {
    /// Returns a request with these lengths and nothing else.
    pub fn new(content: Content, input_tokens: u32, output_tokens: u32) -> Self {
        Self {
            content,
            input_tokens,
            output_tokens,
            model: None,
            turn: None,
            think_ns: 0,
            at_ns: None,
            fields: Map::new(),
        }
    }
}
