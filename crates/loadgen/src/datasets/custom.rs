//! `custom`: requests from a file of JSON lines, one in each.
//!
//! A line is an object with one of `prompt` (text), `messages` (of a chat) and `token_ids`. It may have `output_tokens`,
//! `input_tokens` (the length where the client has no tokenizer), `model`, and any further field of a request's body that
//! the client doesn't set itself.

use std::sync::Arc;

use isobench_schema::workload::Api;
use serde_json::{Map, Value};

use super::reader::{Choice, Parsed, RowReader};
use super::{Context, DatasetError, Input, Options, Source};
use crate::schedule::{Content, Request, is_reserved};
use crate::tokenizer::Tokenizer;

const RULE: &str = "each line must be a JSON object with `prompt`, `messages` or `token_ids`";

/// The requests of a file.
pub(super) struct Custom {
    reader: RowReader,
    taker: Taker,
}

/// Takes lines for what they are.
struct Taker {
    tokenizer: Option<Arc<Tokenizer>>,
    special: u32,
    api: Api,
    output_tokens: Option<u32>,
}

impl Custom {
    /// Opens it.
    pub(super) fn open(options: &mut Options<'_>, context: &Context<'_>) -> Result<Self, DatasetError> {
        // In vLLM -1 stands for the length that the row has.
        let given = options.signed(&["custom-output-len", "output-len"])?.and_then(|given| u32::try_from(given).ok());
        let tokenizer = context.resources.tokenizer.clone();
        let special = match &tokenizer {
            Some(tokenizer) => context.special_tokens(tokenizer)?,
            None => 0,
        };
        let output_tokens = context.asked(given);
        let reader = RowReader::open(options, context, Choice::Shuffled, 0)?;
        Ok(Self { reader, taker: Taker { tokenizer, special, api: context.api, output_tokens } })
    }
}

impl Source for Custom {
    fn next(&mut self) -> Result<Request, DatasetError> {
        let Self { reader, taker } = self;
        let parse = |bytes: &[u8]| match taker.request(bytes) {
            Ok(request) => Ok(Parsed::Row(request)),
            Err(Refused::Row(what)) => Ok(Parsed::Bad(what)),
            Err(Refused::All(error)) => Err(error),
        };
        Ok(reader.next(RULE, parse)?.0)
    }

    fn left_out(&self) -> u64 {
        self.reader.left_out()
    }

    fn again(&self) -> u64 {
        self.reader.again()
    }

    fn file(&self) -> Option<Input> {
        Some(self.reader.input())
    }
}

/// Why a line is no request.
enum Refused {
    Row(String),
    All(DatasetError),
}

impl From<String> for Refused {
    fn from(what: String) -> Self {
        Self::Row(what)
    }
}

impl Taker {
    fn request(&self, bytes: &[u8]) -> Result<Request, Refused> {
        let mut fields: Map<String, Value> =
            serde_json::from_slice(bytes).map_err(|error| format!("it is no JSON object: {error}"))?;
        let contents = ["prompt", "messages", "token_ids"].map(|name| (name, fields.remove(name)));
        let mut given = contents.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let (Some((name, value)), None) = (given.next(), given.next()) else {
            return Err("it must have one of `prompt`, `messages` and `token_ids`".to_owned().into());
        };
        let known = take_whole(&mut fields, "input_tokens")?;
        let own = take_whole(&mut fields, "output_tokens")?;
        let model = match fields.remove("model") {
            None => None,
            Some(Value::String(model)) => Some(model),
            Some(other) => return Err(format!("`model` is {other}, but it must be a text").into()),
        };
        if let Some(field) = fields.keys().find(|field| *field != "temperature" && is_reserved(field)) {
            return Err(format!("it sets `{field}`, which the load client controls").into());
        }
        let output_tokens = match (self.output_tokens, own) {
            (Some(asked), _) => asked,
            (None, Some(own)) if own > 0 => own,
            (None, Some(_)) => return Err("`output_tokens` is 0, but it must be at least 1".to_owned().into()),
            (None, None) => {
                return Err("it has no `output_tokens`, and the workload gives no length of answers".to_owned().into());
            }
        };
        let (content, input_tokens) = self.content(name, value, known)?;
        Ok(Request { model, fields, ..Request::new(content, input_tokens, output_tokens) })
    }

    fn content(&self, name: &str, value: Value, known: Option<u32>) -> Result<(Content, u32), Refused> {
        match (name, value) {
            ("prompt", Value::String(text)) if !text.is_empty() => {
                let tokens = self.count(&text, known)?;
                Ok((Content::Text(text), tokens))
            }
            ("prompt", other) => Err(format!("`prompt` is {}, but it must be a text", short(&other)).into()),
            ("messages", messages) => {
                if self.api != Api::Chat {
                    let api = self.api.as_str();
                    return Err(
                        format!("`messages` can't be sent to the {api} interface: use the chat interface").into()
                    );
                }
                let texts = texts(&messages).ok_or_else(|| {
                    "`messages` must be a list of objects with `role` and `content`, a text or a list of parts"
                        .to_owned()
                })?;
                let mut tokens = 0;
                for text in texts {
                    tokens += self.count(text, known)?;
                }
                Ok((Content::Messages(messages), known.unwrap_or(tokens)))
            }
            (_, ids) => {
                if self.api == Api::Chat {
                    return Err("`token_ids` can't be sent to the chat interface: use the completions interface"
                        .to_owned()
                        .into());
                }
                let ids: Vec<u32> = serde_json::from_value(ids)
                    .map_err(|error| format!("`token_ids` must be a list of token ids: {error}"))?;
                if ids.is_empty() {
                    return Err("`token_ids` is empty".to_owned().into());
                }
                let tokens = u32::try_from(ids.len()).unwrap_or(u32::MAX);
                Ok((Content::Ids(ids), tokens))
            }
        }
    }

    /// Returns a text's length as the line says it, else as the tokenizer does.
    fn count(&self, text: &str, known: Option<u32>) -> Result<u32, Refused> {
        match (known, &self.tokenizer) {
            (Some(known), _) => Ok(known),
            (None, Some(tokenizer)) => {
                Ok(tokenizer.count(text).map_err(|error| Refused::All(error.into()))? + self.special)
            }
            (None, None) => Err(Refused::All(DatasetError::MissingLength { dataset: "custom".to_owned() })),
        }
    }
}

/// Returns the texts of messages, or `None` if they are none.
fn texts(messages: &Value) -> Option<Vec<&str>> {
    let mut texts = Vec::new();
    let messages = messages.as_array().filter(|messages| !messages.is_empty())?;
    for message in messages {
        message.get("role")?.as_str()?;
        match message.get("content")? {
            Value::String(text) => texts.push(text.as_str()),
            Value::Array(parts) => texts.extend(parts.iter().filter_map(|part| part.get("text")?.as_str())),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => return None,
        }
    }
    Some(texts)
}

fn take_whole(fields: &mut Map<String, Value>, name: &str) -> Result<Option<u32>, String> {
    match fields.remove(name) {
        None => Ok(None),
        Some(value) => match value.as_u64().and_then(|number| u32::try_from(number).ok()) {
            Some(number) => Ok(Some(number)),
            None => Err(format!("`{name}` is {}, but it must be a whole number", short(&value))),
        },
    }
}

/// Returns a value as an error shows it.
fn short(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) if text.is_empty() => "empty".to_owned(),
        Value::String(_) => "a text".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}
