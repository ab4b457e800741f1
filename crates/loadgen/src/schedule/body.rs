//! The JSON bodies of requests.

use std::collections::BTreeMap;

use isobench_schema::workload::{Api, TokenCounter};
use serde_json::{Map, Value, json};

use super::{Content, Request};

/// The fields that are the same in every body of a phase.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BodyFields {
    /// The interface.
    pub(crate) api: Api,
    /// How tokens are counted, which some servers must be asked for.
    pub(crate) counter: TokenCounter,
    /// The sampling temperature.
    pub(crate) temperature: f64,
    /// Whether answers must have the length asked, whatever the model says.
    pub(crate) ignore_eos: bool,
    /// Further fields, sent as they are.
    pub(crate) extra_body: BTreeMap<String, Value>,
}

/// Fields that the client sets itself, and fields that would change how many answers there are, how long they are, or
/// what a chunk means.
const RESERVED: [&str; 16] = [
    "best_of",
    "echo",
    "ignore_eos",
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "min_tokens",
    "model",
    "n",
    "prompt",
    "prompt_embeds",
    "return_token_ids",
    "stream",
    "stream_options",
    "temperature",
    "use_beam_search",
];

/// Returns whether the extra body must not set `field`.
pub fn is_reserved(field: &str) -> bool {
    RESERVED.contains(&field)
}

/// The body of one request, without its first field, the model.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Rendered {
    /// What comes after the model; for a turn of a conversation only its own message.
    pub(crate) body: Vec<u8>,
    /// For a turn, what comes after the messages.
    pub(crate) tail: Vec<u8>,
}

/// Returns the body of one request.
pub(crate) fn render(fields: &BodyFields, request: &Request) -> Rendered {
    let mut rest = common(fields, request);
    let message = |content: Value| json!({ "role": "user", "content": content });
    match (fields.api, &request.content) {
        (Api::Chat, Content::Turn(turn)) => {
            let messages = match turn.as_array() {
                Some(messages) => messages.iter().map(Value::to_string).collect::<Vec<_>>().join(","),
                None => message(turn.clone()).to_string(),
            };
            return Rendered { body: messages.into_bytes(), tail: after(&rest) };
        }
        (Api::Completions, Content::Text(text)) => set(&mut rest, "prompt", json!(text)),
        (Api::Completions, Content::Ids(ids)) => set(&mut rest, "prompt", json!(ids)),
        (Api::Embeddings, Content::Text(text)) => set(&mut rest, "input", json!(text)),
        (Api::Embeddings, Content::Ids(ids)) => set(&mut rest, "input", json!(ids)),
        (Api::Chat, Content::Text(text)) => set(&mut rest, "messages", json!([message(json!(text))])),
        (Api::Chat, Content::Messages(messages)) => set(&mut rest, "messages", messages.clone()),
        // A schedule refuses these pairs; the content as text keeps the body well-formed.
        (Api::Chat, Content::Ids(ids)) => set(&mut rest, "messages", json!([message(json!(format!("{ids:?}")))])),
        (Api::Completions, Content::Messages(value) | Content::Turn(value)) => {
            set(&mut rest, "prompt", json!(value.to_string()));
        }
        (Api::Embeddings, Content::Messages(value) | Content::Turn(value)) => {
            set(&mut rest, "input", json!(value.to_string()));
        }
    }
    Rendered { body: after(&rest), tail: Vec::new() }
}

/// Returns the fields as they follow another one, with the object's end.
fn after(fields: &Map<String, Value>) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(fields).unwrap_or_default();
    match bytes.first_mut() {
        Some(first) if !fields.is_empty() => *first = b',',
        _ => bytes = b"}".to_vec(),
    }
    bytes
}

fn set(fields: &mut Map<String, Value>, name: &str, value: Value) {
    fields.insert(name.to_owned(), value);
}

/// Returns everything but model and content.
fn common(fields: &BodyFields, request: &Request) -> Map<String, Value> {
    let mut body: Map<String, Value> = fields.extra_body.clone().into_iter().collect();
    if fields.api != Api::Embeddings {
        set(&mut body, "temperature", json!(fields.temperature));
        set(&mut body, "stream", json!(true));
        set(&mut body, "stream_options", json!({ "include_usage": true }));
        set(&mut body, "max_tokens", json!(request.output_tokens));
        if fields.ignore_eos {
            set(&mut body, "ignore_eos", json!(true));
            set(&mut body, "min_tokens", json!(request.output_tokens));
        }
        match fields.counter {
            TokenCounter::TokenIds => set(&mut body, "return_token_ids", json!(true)),
            TokenCounter::Usage => {
                let options = json!({ "include_usage": true, "continuous_usage_stats": true });
                set(&mut body, "stream_options", options);
            }
            TokenCounter::Whitespace | TokenCounter::Tokenizer => {}
        }
    }
    body.extend(request.fields.clone());
    body
}
