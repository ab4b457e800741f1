//! One answer: its tokens, their times, and its JSON.

use std::time::Duration;

use isobench_testkit::{Fault, words};
use serde_json::{Value, json};

use crate::engine::Engine;

/// The interface that a request came by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    Completions,
    Chat,
}

/// One answer.
#[derive(Debug)]
pub(crate) struct Answer<'e> {
    engine: &'e Engine,
    api: Api,
    tokens: Vec<u32>,
    prompt_tokens: u64,
    /// What the usage claims.
    claimed: u64,
    finish_reason: &'static str,
    pub(crate) stream: bool,
    include_usage: bool,
    return_token_ids: bool,
}

/// Tokens that are sent in one event.
#[derive(Debug)]
pub(crate) struct Group {
    tokens: Vec<u32>,
    /// The place of the last one in the answer, from 0.
    last: u64,
    ends: bool,
}

impl<'e> Answer<'e> {
    /// Returns the answer to a request; `None` if it has no prompt.
    pub(crate) fn new(api: Api, body: &Value, engine: &'e Engine) -> Option<Self> {
        let prompt = match api {
            Api::Completions => body.get("prompt")?,
            Api::Chat => body.get("messages")?.as_array()?.last()?.get("content")?,
        };
        let (text, prompt_tokens) = match prompt.as_str() {
            Some(text) => (text.to_owned(), text.split_whitespace().count()),
            None => (prompt.to_string(), prompt.as_array()?.len()),
        };
        let number = |name: &str| body.get(name).and_then(Value::as_u64);
        let flag = |value: Option<&Value>| value.and_then(Value::as_bool).unwrap_or(false);
        let asked = number("max_tokens").or_else(|| number("max_completion_tokens")).unwrap_or(16).max(1);
        let (short, liar) = (engine.has(&Fault::Short), engine.has(&Fault::Liar));
        let sent = if short || liar { (asked / 2).max(1) } else { asked };
        let text = if engine.has(&Fault::Garbage) { text + " garbage" } else { text };
        Some(Self {
            engine,
            api,
            tokens: words::answer(&text).take(usize::try_from(sent).ok()?).collect(),
            prompt_tokens: u64::try_from(prompt_tokens).ok()?,
            claimed: if liar { asked } else { sent },
            finish_reason: if short { "stop" } else { "length" },
            stream: flag(body.get("stream")),
            include_usage: flag(body.get("stream_options").and_then(|options| options.get("include_usage"))),
            return_token_ids: flag(body.get("return_token_ids")),
        })
    }

    /// Returns the tokens in the groups in which they are sent.
    pub(crate) fn groups(&self, size: u32) -> Vec<Group> {
        let size = usize::try_from(size).unwrap_or(usize::MAX).max(1);
        let mut sent = 0;
        let mut groups: Vec<Group> = Vec::new();
        for tokens in self.tokens.chunks(size) {
            sent += tokens.len() as u64;
            groups.push(Group { tokens: tokens.to_vec(), last: sent.saturating_sub(1), ends: false });
        }
        if let Some(last) = groups.last_mut() {
            last.ends = true;
        }
        groups
    }

    /// Returns when a group is sent, from the request's start.
    pub(crate) fn time_of(&self, group: &Group) -> Duration {
        self.engine.token_time(group.last)
    }

    /// Returns when the last token is sent, from the request's start.
    pub(crate) fn time_of_all(&self) -> Duration {
        self.engine.token_time((self.tokens.len() as u64).saturating_sub(1))
    }

    /// Returns the event that a chat begins with.
    pub(crate) fn opening(&self) -> Option<String> {
        let choice = json!({ "index": 0, "delta": { "role": "assistant", "content": "" }, "finish_reason": null });
        (self.api == Api::Chat).then(|| self.envelope(&json!([choice])).to_string())
    }

    /// Returns the event of a group.
    pub(crate) fn event(&self, group: &Group) -> String {
        let text: String = group.tokens.iter().map(|id| words::text(*id)).collect();
        let reason = group.ends.then_some(self.finish_reason);
        let mut choice = match self.api {
            Api::Completions => json!({ "index": 0, "text": text, "finish_reason": reason }),
            Api::Chat => json!({ "index": 0, "delta": { "content": text }, "finish_reason": reason }),
        };
        self.add_ids(&mut choice, &group.tokens);
        self.envelope(&json!([choice])).to_string()
    }

    /// Returns the event that tells the usage, if the request asked for it.
    pub(crate) fn usage_event(&self) -> Option<String> {
        let mut event = self.envelope(&json!([]));
        if let Some(event) = event.as_object_mut() {
            event.insert("usage".to_owned(), self.usage());
        }
        self.include_usage.then(|| event.to_string())
    }

    /// Returns the body of an answer that isn't streamed.
    pub(crate) fn body(&self) -> String {
        let text: String = self.tokens.iter().map(|id| words::text(*id)).collect();
        let mut choice = match self.api {
            Api::Completions => json!({ "index": 0, "text": text, "finish_reason": self.finish_reason }),
            Api::Chat => json!({
                "index": 0,
                "message": { "role": "assistant", "content": text },
                "finish_reason": self.finish_reason,
            }),
        };
        self.add_ids(&mut choice, &self.tokens);
        let object = match self.api {
            Api::Completions => "text_completion",
            Api::Chat => "chat.completion",
        };
        let model = &self.engine.args.model;
        json!({ "id": "fake", "object": object, "created": 0, "model": model, "choices": [choice], "usage": self.usage() })
            .to_string()
    }

    fn add_ids(&self, choice: &mut Value, ids: &[u32]) {
        if let Some(choice) = choice.as_object_mut().filter(|_| self.return_token_ids) {
            choice.insert("token_ids".to_owned(), json!(ids));
        }
    }

    fn usage(&self) -> Value {
        let total = self.prompt_tokens + self.claimed;
        json!({ "prompt_tokens": self.prompt_tokens, "completion_tokens": self.claimed, "total_tokens": total })
    }

    fn envelope(&self, choices: &Value) -> Value {
        let object = match self.api {
            Api::Completions => "text_completion",
            Api::Chat => "chat.completion.chunk",
        };
        json!({ "id": "fake", "object": object, "created": 0, "model": self.engine.args.model, "choices": choices })
    }
}
