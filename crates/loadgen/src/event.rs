//! What one event of a streamed answer says, for completions and chat alike.
//!
//! Only the fields that matter are read; text is borrowed from the event's bytes wherever it holds no escapes.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::Value;

/// Text that is borrowed where it can be.
#[derive(Debug, Deserialize)]
pub(crate) struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// One event.
#[derive(Debug, Deserialize)]
pub(crate) struct EventBody<'a> {
    #[serde(borrow, default)]
    pub(crate) choices: Choices<'a>,
    #[serde(default)]
    pub(crate) usage: Option<EventUsage>,
    #[serde(default)]
    pub(crate) error: Option<Value>,
    #[serde(borrow, default)]
    object: Option<Text<'a>>,
}

impl EventBody<'_> {
    /// Returns whether the event says that the answer failed: by a field `error`, or as an object of the kind `error`.
    pub(crate) fn is_error(&self) -> bool {
        self.error.is_some() || text(self.object.as_ref()) == "error"
    }
}

/// The server's token counts in an event.
#[derive(Debug, Deserialize)]
pub(crate) struct EventUsage {
    #[serde(default)]
    pub(crate) prompt_tokens: Option<u64>,
    #[serde(default)]
    pub(crate) completion_tokens: Option<u64>,
}

/// The choices of an event: the first one, and how many there are. One is read without allocation.
#[derive(Debug, Default)]
pub(crate) struct Choices<'a> {
    pub(crate) first: Option<Choice<'a>>,
    pub(crate) count: usize,
}

impl<'de: 'a, 'a> Deserialize<'de> for Choices<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OfChoices(PhantomData))
    }
}

struct OfChoices<'a>(PhantomData<&'a ()>);

impl<'de: 'a, 'a> Visitor<'de> for OfChoices<'a> {
    type Value = Choices<'a>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of choices")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Choices::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let first = list.next_element()?;
        let mut count = usize::from(first.is_some());
        while list.next_element::<IgnoredAny>()?.is_some() {
            count += 1;
        }
        Ok(Choices { first, count })
    }
}

/// One choice.
#[derive(Debug, Deserialize)]
pub(crate) struct Choice<'a> {
    #[serde(default)]
    pub(crate) index: Option<u64>,
    #[serde(borrow, default)]
    text: Option<Text<'a>>,
    #[serde(borrow, default)]
    delta: Option<Delta<'a>>,
    #[serde(borrow, default)]
    finish_reason: Option<Text<'a>>,
    #[serde(default)]
    pub(crate) token_ids: Option<Vec<u32>>,
}

#[derive(Debug, Deserialize)]
struct Delta<'a> {
    #[serde(borrow, default)]
    content: Option<Text<'a>>,
    #[serde(borrow, default)]
    reasoning: Option<Text<'a>>,
    #[serde(borrow, default)]
    reasoning_content: Option<Text<'a>>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<ToolCall<'a>>>,
}

#[derive(Debug, Deserialize)]
struct ToolCall<'a> {
    #[serde(borrow, default)]
    function: Option<Function<'a>>,
}

#[derive(Debug, Deserialize)]
struct Function<'a> {
    #[serde(borrow, default)]
    name: Option<Text<'a>>,
    #[serde(borrow, default)]
    arguments: Option<Text<'a>>,
}

impl Choice<'_> {
    /// Returns why the engine stopped, if it did.
    pub(crate) fn finish_reason(&self) -> Option<&str> {
        self.finish_reason.as_ref().map(|reason| &*reason.0)
    }

    /// Hands every part of the model's output in this choice to `take`: reasoning, content, and tool calls.
    pub(crate) fn each_output(&self, mut take: impl FnMut(&str)) {
        take(text(self.text.as_ref()));
        let Some(delta) = &self.delta else { return };
        // Some servers send the same reasoning under its old and its new name.
        let reasoning = text(delta.reasoning.as_ref());
        take(if reasoning.is_empty() { text(delta.reasoning_content.as_ref()) } else { reasoning });
        take(text(delta.content.as_ref()));
        let functions = delta.tool_calls.iter().flatten().filter_map(|call| call.function.as_ref());
        for function in functions {
            take(text(function.name.as_ref()));
            take(text(function.arguments.as_ref()));
        }
    }
}

fn text<'t>(text: Option<&'t Text<'_>>) -> &'t str {
    text.map_or("", |text| &text.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_borrowed_and_escaped_text_is_not() {
        let event: EventBody<'_> = serde_json::from_str(r#"{"choices":[{"text":"plain"}]}"#).unwrap();
        assert!(matches!(event.choices.first.unwrap().text.unwrap().0, Cow::Borrowed("plain")));
        let event: EventBody<'_> = serde_json::from_str(r#"{"choices":[{"text":"\n"}]}"#).unwrap();
        assert!(matches!(event.choices.first.unwrap().text.unwrap().0, Cow::Owned(_)));
    }
}
