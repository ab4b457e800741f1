//! The JSON bodies of requests.

use std::collections::BTreeMap;

use isobench_schema::workload::{Api, TokenCounter};
use serde_json::{Map, Value, json};

use crate::schedule::{Prompt, Schedule, ScheduledRequest};

/// The fields that are the same in every body of a phase.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BodyFields {
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
pub(crate) fn is_reserved(field: &str) -> bool {
    RESERVED.contains(&field)
}

/// Returns the body of one request.
pub(crate) fn render(schedule: &Schedule, fields: &BodyFields, model: &str, request: &ScheduledRequest) -> Vec<u8> {
    let mut body = common(schedule, fields);
    let mut set = |name: &str, value: Value| drop(body.insert(name.to_owned(), value));
    set("model", json!(model));
    match (schedule.api(), &request.prompt) {
        (Api::Completions, Prompt::Text(text)) => set("prompt", json!(text)),
        (Api::Completions, Prompt::Ids(ids)) => set("prompt", json!(ids)),
        (Api::Chat, Prompt::Text(text)) => set("messages", json!([{ "role": "user", "content": text }])),
        // A schedule refuses this pair; the ids as text keep the body well-formed.
        (Api::Chat, Prompt::Ids(ids)) => set("messages", json!([{ "role": "user", "content": format!("{ids:?}") }])),
    }
    set("max_tokens", json!(request.output_tokens));
    if fields.ignore_eos {
        set("min_tokens", json!(request.output_tokens));
    }
    Value::Object(body).to_string().into_bytes()
}

/// Returns the fields that all bodies of the schedule share, as JSON with sorted keys.
pub(crate) fn render_common(schedule: &Schedule, fields: &BodyFields) -> Vec<u8> {
    Value::Object(common(schedule, fields)).to_string().into_bytes()
}

fn common(schedule: &Schedule, fields: &BodyFields) -> Map<String, Value> {
    let mut body: Map<String, Value> = fields.extra_body.clone().into_iter().collect();
    let mut set = |name: &str, value: Value| drop(body.insert(name.to_owned(), value));
    set("temperature", json!(fields.temperature));
    set("stream", json!(true));
    set("stream_options", json!({ "include_usage": true }));
    if fields.ignore_eos {
        set("ignore_eos", json!(true));
    }
    match schedule.counter() {
        TokenCounter::TokenIds => set("return_token_ids", json!(true)),
        TokenCounter::Whitespace => {}
    }
    body
}
