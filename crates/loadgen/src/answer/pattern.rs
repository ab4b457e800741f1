//! What the events of one stream have in common: all but their text and the server's counts, for most servers.
//!
//! An event that is like one before it is known without reading all of its JSON again: the bytes around the text and the
//! counts are compared, which costs a part of it, and at many streams that is the client's time.

use std::ops::Range;

use crate::event::{EventBody, EventUsage, PlainText, TextField};
use crate::json::{Raw, Reader};

/// The longest event that is kept, in bytes.
const LONGEST: usize = 1024;
/// How many events in a row may be unlike the last before none is kept any more.
const MOST_MISSES: u8 = 4;

/// The last event that was read, and where its text and its counts are.
#[derive(Debug)]
pub(super) struct Pattern {
    event: Vec<u8>,
    text: Range<usize>,
    field: TextField,
    /// The value of `usage`; at the end and empty if there is none.
    usage: Range<usize>,
    misses: u8,
}

impl Pattern {
    /// Returns a pattern before the first event, with room for one if events are `expected`.
    pub(super) fn new(expected: bool) -> Self {
        let room = if expected { LONGEST } else { 0 };
        Self { event: Vec::with_capacity(room), text: 0..0, field: TextField::Text, usage: 0..0, misses: 0 }
    }

    /// Returns what an event says that is like the one kept, or `None` if it must be read.
    pub(super) fn read<'a>(&mut self, data: &'a [u8]) -> Option<(PlainText<'a>, EventUsage)> {
        let found = self.find(data)?;
        self.misses = 0;
        Some(found)
    }

    fn find<'a>(&self, data: &'a [u8]) -> Option<(PlainText<'a>, EventUsage)> {
        if self.event.is_empty() {
            return None;
        }
        let rest = data.strip_prefix(self.event.get(..self.text.start)?)?;
        let (text, rest) = Raw::unescaped(rest)?;
        let rest = rest.strip_prefix(self.event.get(self.text.end..self.usage.start)?)?;
        let (usage, rest) = if self.usage.is_empty() {
            (EventUsage::default(), rest)
        } else {
            let mut reader = Reader::new(std::str::from_utf8(rest).ok()?);
            (EventUsage::read(&mut reader).ok()?, reader.rest())
        };
        let is_like = rest == self.event.get(self.usage.end..)?;
        is_like.then_some((PlainText { field: self.field, text }, usage))
    }

    /// Keeps an event that was read, if it has no more than text and counts.
    pub(super) fn learn(&mut self, data: &[u8], body: &EventBody<'_>) {
        if self.misses == MOST_MISSES {
            return;
        }
        self.misses += u8::from(!self.event.is_empty());
        self.event.clear();
        let Some(PlainText { field, text }) = body.plain_text() else { return };
        let text = text.as_written();
        // The text is a part of the event.
        let from = text.as_ptr().addr().wrapping_sub(data.as_ptr().addr());
        let text = from..from.saturating_add(text.len());
        let usage = body.usage_at.clone().unwrap_or(data.len()..data.len());
        if data.len() <= self.event.capacity() && text.end <= usage.start {
            self.event.extend_from_slice(data);
            (self.text, self.field, self.usage) = (text, field, usage);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn learned(event: &str) -> Pattern {
        let mut pattern = Pattern::new(true);
        pattern.learn(event.as_bytes(), &EventBody::parse(event.as_bytes()).unwrap());
        pattern
    }

    fn text_of<'a>(pattern: &Pattern, event: &'a str) -> Option<&'a str> {
        pattern.find(event.as_bytes()).map(|(plain, _)| plain.text.as_written())
    }

    const COMPLETION: &str = r#"{"id":"a","choices":[{"index":0,"text":"one","finish_reason":null}],"usage":null}"#;
    const COUNTED: &str = r#"{"choices":[{"text":"one"}],"usage":{"prompt_tokens":3,"completion_tokens":9},"x":1}"#;
    const CHAT: &str = r#"{"choices":[{"delta":{"content":"one"},"finish_reason":null,"index":0}]}"#;

    #[test]
    fn an_event_of_the_same_kind_is_known_and_no_other() {
        for event in [COMPLETION, CHAT] {
            let pattern = learned(event);
            for text in ["one", "", " two", "größer", "a much longer text than before"] {
                assert_eq!(text_of(&pattern, &event.replace("one", text)), Some(text));
            }
            for text in ["a\\n", "a\"b", "\"", "\",\"token_ids\":[1],\"x\":\"", "a\nb"] {
                assert_eq!(text_of(&pattern, &event.replace("one", text)), None, "{text}");
            }
            assert_eq!(text_of(&pattern, &event.replace("null", "\"stop\"")), None);
            assert_eq!(text_of(&pattern, &event.replace("\"index\":0", "\"index\":1")), None);
            let mut broken = event.replace("one", "xyz").into_bytes();
            broken.iter_mut().filter(|byte| **byte == b'y').for_each(|byte| *byte = 0xff);
            assert!(pattern.find(&broken).is_none(), "no UTF-8");
        }
    }

    #[test]
    fn the_counts_are_read_anew() {
        let pattern = learned(COUNTED);
        let next = COUNTED.replace("one", "two").replace('9', " 10");
        let (plain, usage) = pattern.find(next.as_bytes()).unwrap();
        assert_eq!(plain.text.as_written(), "two");
        assert_eq!((usage.prompt_tokens, usage.completion_tokens), (Some(3), Some(10)));
        assert_eq!(text_of(&pattern, &COUNTED.replace('9', "\"9\"")), None);
        assert_eq!(text_of(&pattern, &COUNTED.replace("\"x\":1", "\"x\":2")), None);
        assert_eq!(
            text_of(&pattern, &COUNTED.replace("{\"prompt_tokens\":3,\"completion_tokens\":9}", "null")),
            Some("one")
        );
    }

    #[test]
    fn an_event_with_more_than_text_is_not_kept() {
        for event in [
            r#"{"choices":[{"text":"a","finish_reason":"stop"}]}"#,
            r#"{"choices":[{"text":"a","token_ids":[1]}]}"#,
            r#"{"usage":{"prompt_tokens":1,"completion_tokens":1},"choices":[{"text":"a"}]}"#,
            r#"{"choices":[{"text":"a"},{"text":"b"}]}"#,
            r#"{"choices":[{"index":1,"text":"a"}]}"#,
            r#"{"choices":[{"text":"a\n"}]}"#,
            r#"{"choices":[{"text":"a","delta":{"content":"b"}}]}"#,
            r#"{"choices":[{"delta":{"content":"b","reasoning":"a"}}]}"#,
            r#"{"choices":[{"text":"a"}],"error":{}}"#,
            r#"{"choices":[]}"#,
        ] {
            assert!(learned(event).event.is_empty(), "{event}");
        }
    }

    #[test]
    fn a_stream_whose_events_differ_is_given_up() {
        let mut pattern = Pattern::new(true);
        for id in 0..20 {
            let event = COMPLETION.replace("\"a\"", &id.to_string());
            assert!(pattern.read(event.as_bytes()).is_none());
            pattern.learn(event.as_bytes(), &EventBody::parse(event.as_bytes()).unwrap());
        }
        assert_eq!(pattern.misses, MOST_MISSES);
    }

    proptest! {
        #[test]
        fn what_is_known_is_what_would_be_read(
            text in ".{0,12}",
            escaped in any::<bool>(),
            count in 0_u64..1000,
            at in any::<proptest::sample::Index>(),
            byte in any::<u8>(),
        ) {
            let written = if escaped { serde_json::to_string(&text).unwrap() } else { format!("\"{text}\"") };
            for kind in [CHAT, COMPLETION, COUNTED] {
                let event = kind.replace("\"one\"", &written).replace('9', &count.to_string());
                let mut hurt = event.clone().into_bytes();
                *at.get_mut(&mut hurt) = byte;
                for event in [event.as_bytes(), &hurt] {
                    if let Some((plain, usage)) = learned(kind).find(event) {
                        let read = EventBody::parse(event).unwrap();
                        prop_assert_eq!(Some(plain), read.plain_text());
                        prop_assert_eq!(usage, read.usage);
                    }
                }
            }
        }
    }
}
