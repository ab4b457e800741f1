//! What one event of a streamed answer says, for completions and chat alike.
//!
//! Only the fields that matter are kept, as they stand in the event's bytes; nothing is allocated.

use std::ops::Range;

use crate::json::{Malformed, Raw, Reader};

type Read<T> = Result<T, Malformed>;

/// One event.
#[derive(Debug, Default, Clone)]
pub(crate) struct EventBody<'a> {
    /// The first choice.
    pub(crate) choice: Option<Choice<'a>>,
    /// How many choices there are.
    pub(crate) choices: usize,
    /// The server's token counts.
    pub(crate) usage: EventUsage,
    /// Where they stand in the event's bytes, if they do.
    pub(crate) usage_at: Option<Range<usize>>,
    /// Whether the event says that the answer failed: by a field `error`, or as an object of the kind `error`.
    pub(crate) is_error: bool,
}

/// The server's token counts in an event, as far as they are given.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EventUsage {
    pub(crate) prompt_tokens: Option<u64>,
    pub(crate) completion_tokens: Option<u64>,
}

/// One choice.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Choice<'a> {
    pub(crate) index: u64,
    text: Option<Raw<'a>>,
    delta: Delta<'a>,
    finish_reason: Option<Raw<'a>>,
    /// A list that isn't `null`.
    token_ids: Option<&'a str>,
}

/// The field that holds a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextField {
    /// `text` of a completion.
    Text,
    /// `delta.content` of a chat.
    Content,
}

/// The whole output of an event whose choice has nothing but a text, which is the answer's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PlainText<'a> {
    pub(crate) field: TextField,
    pub(crate) text: Raw<'a>,
}

/// What a chat's choice adds. The calls are lists and objects that aren't `null`.
#[derive(Debug, Default, Clone, Copy)]
struct Delta<'a> {
    content: Option<Raw<'a>>,
    reasoning: Option<Raw<'a>>,
    reasoning_content: Option<Raw<'a>>,
    tool_calls: Option<&'a str>,
    function_call: Option<&'a str>,
}

impl<'a> EventBody<'a> {
    /// Reads the data of an event.
    pub(crate) fn parse(data: &'a [u8]) -> Read<Self> {
        let text = std::str::from_utf8(data).map_err(|_position| Malformed("it is no UTF-8"))?;
        let mut reader = Reader::new(text);
        let mut body = Self::default();
        reader.object(|reader, key| {
            match key {
                "choices" => body.take_choices(reader)?,
                "usage" => {
                    let from = reader.place();
                    body.usage = EventUsage::read(reader)?;
                    body.usage_at = Some(from..reader.place());
                }
                "error" => body.is_error |= !is_null(reader.value()?),
                "object" => body.is_error |= reader.string_or_null()?.is_some_and(|kind| kind.as_written() == "error"),
                _ => drop(reader.value()?),
            }
            Ok(())
        })?;
        reader.end()?;
        Ok(body)
    }

    /// Returns the text of an event that tells nothing else but counts.
    pub(crate) fn plain_text(&self) -> Option<PlainText<'a>> {
        let Self { choice: Some(choice), choices: 1, is_error: false, .. } = self else { return None };
        let Choice { index: 0, text, delta, finish_reason: None, token_ids: None } = *choice else { return None };
        let Delta { content, reasoning: None, reasoning_content: None, tool_calls: None, function_call: None } = delta
        else {
            return None;
        };
        let plain = match (text, content) {
            (Some(text), None) => PlainText { field: TextField::Text, text },
            (None, Some(text)) => PlainText { field: TextField::Content, text },
            (None, None) | (Some(_), Some(_)) => return None,
        };
        (!plain.text.is_escaped()).then_some(plain)
    }

    fn take_choices(&mut self, reader: &mut Reader<'a>) -> Read<()> {
        if reader.null()? {
            return Ok(());
        }
        reader.array(|reader| {
            self.choices += 1;
            if self.choices > 1 {
                return reader.value().map(drop);
            }
            self.choice = Some(Choice::read(reader)?);
            Ok(())
        })
    }
}

impl EventUsage {
    /// Reads an object or `null`.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Read<Self> {
        let mut usage = Self::default();
        if reader.null()? {
            return Ok(usage);
        }
        reader.object(|reader, key| {
            match key {
                "prompt_tokens" => usage.prompt_tokens = reader.count_or_null()?,
                "completion_tokens" => usage.completion_tokens = reader.count_or_null()?,
                _ => drop(reader.value()?),
            }
            Ok(())
        })?;
        Ok(usage)
    }
}

/// The kinds of output that one choice held.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Held {
    /// Text of the answer proper.
    pub(crate) content: bool,
    /// Token ids, also an empty list of them.
    pub(crate) ids: bool,
}

impl<'a> From<PlainText<'a>> for Choice<'a> {
    fn from(PlainText { field, text }: PlainText<'a>) -> Self {
        match field {
            TextField::Text => Self { text: Some(text), ..Self::default() },
            TextField::Content => Self { delta: Delta { content: Some(text), ..Delta::default() }, ..Self::default() },
        }
    }
}

impl<'a> Choice<'a> {
    fn read(reader: &mut Reader<'a>) -> Read<Self> {
        let mut choice = Self::default();
        reader.object(|reader, key| {
            match key {
                "index" => choice.index = reader.count_or_null()?.unwrap_or(0),
                "text" => choice.text = reader.string_or_null()?,
                "delta" => choice.delta = Delta::read(reader)?,
                "finish_reason" => choice.finish_reason = reader.string_or_null()?,
                "token_ids" => choice.token_ids = unless_null(reader)?,
                _ => drop(reader.value()?),
            }
            Ok(())
        })?;
        Ok(choice)
    }

    /// Returns why the engine stopped, if it did. Some servers send an empty reason until then.
    pub(crate) fn finish_reason(&self) -> Option<Raw<'a>> {
        self.finish_reason.filter(|reason| !reason.is_empty())
    }

    /// Puts the model's output in this choice behind `text` and `ids`: reasoning, content, and tool calls.
    pub(crate) fn push_onto(&self, text: &mut String, ids: &mut Vec<u32>) -> Read<Held> {
        let Delta { content, reasoning, reasoning_content, tool_calls, function_call } = self.delta;
        push(self.text, text)?;
        // Some servers send the same reasoning under its old and its new name.
        push(reasoning.filter(|reasoning| !reasoning.is_empty()).or(reasoning_content), text)?;
        push(content, text)?;
        if let Some(calls) = tool_calls {
            Reader::new(calls).array(|reader| {
                reader.object(|reader, key| match key {
                    "function" => push_call(reader, text),
                    _ => reader.value().map(drop),
                })
            })?;
        }
        if let Some(call) = function_call {
            push_call(&mut Reader::new(call), text)?;
        }
        if let Some(list) = self.token_ids {
            Reader::new(list).array(|reader| {
                let id = reader.count_or_null()?.and_then(|id| u32::try_from(id).ok());
                ids.push(id.ok_or(Malformed("a token id is expected"))?);
                Ok(())
            })?;
        }
        // A completion has nothing but content, also where a token has no text of its own.
        let content = self.text.is_some() || content.is_some_and(|content| !content.is_empty());
        Ok(Held { content, ids: self.token_ids.is_some() })
    }
}

impl<'a> Delta<'a> {
    fn read(reader: &mut Reader<'a>) -> Read<Self> {
        let mut delta = Self::default();
        if reader.null()? {
            return Ok(delta);
        }
        reader.object(|reader, key| {
            match key {
                "content" => delta.content = reader.string_or_null()?,
                "reasoning" => delta.reasoning = reader.string_or_null()?,
                "reasoning_content" => delta.reasoning_content = reader.string_or_null()?,
                "tool_calls" => delta.tool_calls = unless_null(reader)?,
                "function_call" => delta.function_call = unless_null(reader)?,
                _ => drop(reader.value()?),
            }
            Ok(())
        })?;
        Ok(delta)
    }
}

/// Puts the name and the arguments of a call behind `text`, in this order.
fn push_call(reader: &mut Reader<'_>, text: &mut String) -> Read<()> {
    if reader.null()? {
        return Ok(());
    }
    let (mut name, mut arguments) = (None, None);
    reader.object(|reader, key| {
        match key {
            "name" => name = reader.string_or_null()?,
            "arguments" => arguments = reader.string_or_null()?,
            _ => drop(reader.value()?),
        }
        Ok(())
    })?;
    push(name, text)?;
    push(arguments, text)
}

fn push(string: Option<Raw<'_>>, text: &mut String) -> Read<()> {
    string.map_or(Ok(()), |string| string.push_onto(text))
}

fn unless_null<'a>(reader: &mut Reader<'a>) -> Read<Option<&'a str>> {
    let value = reader.value()?;
    Ok((!is_null(value)).then_some(value))
}

fn is_null(value: &str) -> bool {
    value == "null"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(event: &str) -> Read<(String, Vec<u32>, Held)> {
        let (mut text, mut ids) = (String::new(), Vec::new());
        let held = EventBody::parse(event.as_bytes())?.choice.unwrap().push_onto(&mut text, &mut ids)?;
        Ok((text, ids, held))
    }

    fn check(event: &str, text: &str, ids: &[u32], content: bool) {
        let (found, found_ids, held) = output(event).unwrap();
        assert_eq!((found.as_str(), found_ids.as_slice(), held.content), (text, ids, content), "{event}");
    }

    #[test]
    fn output_has_one_order_whatever_that_of_the_fields() {
        check(r#"{"choices":[{"text":"a\n","token_ids":[1, 2]}]}"#, "a\n", &[1, 2], true);
        check(r#"{"choices":[{"delta":{"content":"b","reasoning_content":"a"}}]}"#, "ab", &[], true);
        check(r#"{"choices":[{"delta":{"reasoning":"a","reasoning_content":"a","content":""}}]}"#, "a", &[], false);
        let call = r#"{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"{}","name":"f"}},{}]}}]}"#;
        check(call, "f{}", &[], false);
        check(r#"{"choices":[{"delta":{"function_call":{"name":"f"}}}]}"#, "f", &[], false);
        check(r#"{"choices":[{"delta":{},"token_ids":[7]}]}"#, "", &[7], false);
    }

    #[test]
    fn a_field_of_the_wrong_kind_is_malformed() {
        for event in [
            r#"{"choices":{}}"#,
            r#"{"choices":[null]}"#,
            r#"{"choices":[{"text":1}]}"#,
            r#"{"choices":[{"token_ids":[-1]}]}"#,
            r#"{"choices":[{"token_ids":[4294967296]}]}"#,
            r#"{"choices":[{"token_ids":{}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"function":{"name":5}}]}}]}"#,
            r#"{"choices":[{"text":"\ud83e"}]}"#,
            r#"{"usage":{"prompt_tokens":1.5},"choices":[{}]}"#,
            "[]",
            "{} {}",
        ] {
            assert!(output(event).is_err(), "{event}");
        }
        assert_eq!(EventBody::parse(b"{\"a\":\"\xff\"}").unwrap_err().to_string(), "it is no UTF-8");
    }
}
