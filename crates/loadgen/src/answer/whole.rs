//! Answers that come whole: embeddings, and what a server sends that was asked for a stream and gives none.

use isobench_schema::failure::FailureClass;
use isobench_schema::record::Usage;

use crate::event::EventUsage;
use crate::failing::shown;
use crate::json::{Malformed, Reader};

/// What a whole body holds.
#[derive(Debug, Default)]
struct Body {
    embeddings: usize,
    empty_embedding: bool,
    has_choices: bool,
    is_error: bool,
    usage: EventUsage,
}

impl Body {
    fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let text = std::str::from_utf8(body).map_err(|_position| Malformed("it is no UTF-8"))?;
        let mut reader = Reader::new(text);
        let mut found = Self::default();
        reader.object(|reader, key| {
            match key {
                "data" => reader.array(|reader| found.take_embedding(reader))?,
                "choices" => found.has_choices = reader.value()? != "null",
                "error" => found.is_error |= reader.value()? != "null",
                "object" => found.is_error |= reader.value()? == "\"error\"",
                "usage" => found.usage = EventUsage::read(reader)?,
                _ => drop(reader.value()?),
            }
            Ok(())
        })?;
        reader.end()?;
        Ok(found)
    }

    /// Takes an item with an embedding: a list of numbers, or their bytes in base64.
    fn take_embedding(&mut self, reader: &mut Reader<'_>) -> Result<(), Malformed> {
        let mut is_empty = true;
        reader.object(|reader, key| {
            match key {
                "embedding" if reader.peek() == Some(b'"') => is_empty = reader.string()?.is_empty(),
                "embedding" => reader.array(|reader| {
                    is_empty = false;
                    reader.value().map(drop)
                })?,
                _ => drop(reader.value()?),
            }
            Ok(())
        })?;
        self.embeddings += 1;
        self.empty_embedding |= is_empty;
        Ok(())
    }
}

/// Returns the server's token counts in an answer with embeddings, or why it is none.
pub(super) fn embeddings(body: &[u8]) -> Result<Option<Usage>, (FailureClass, String)> {
    let malformed = |message: String| Err((FailureClass::StreamMalformed, message));
    match Body::parse(body) {
        Err(error) => malformed(format!("the answer can't be read ({error}): {}", shown(body))),
        Ok(Body { is_error: true, .. }) => {
            Err((FailureClass::StreamError, format!("the answer is an error: {}", shown(body))))
        }
        Ok(Body { embeddings: 0, .. }) => malformed(format!("the answer holds no embedding: {}", shown(body))),
        Ok(Body { empty_embedding: true, .. }) => {
            malformed(format!("the answer holds an embedding without a value: {}", shown(body)))
        }
        Ok(Body { usage: EventUsage { prompt_tokens, completion_tokens }, .. }) => Ok(prompt_tokens
            .map(|prompt_tokens| Usage { prompt_tokens, completion_tokens: completion_tokens.unwrap_or(0) })),
    }
}

/// Returns what is wrong with a whole body in the place of a stream.
pub(super) fn unstreamed(content_type: &str, body: &[u8]) -> (FailureClass, String) {
    let kind = shown(content_type.as_bytes());
    let (class, what) = match Body::parse(body) {
        Ok(Body { is_error: true, .. }) => (FailureClass::StreamError, format!("the answer is an error in `{kind}`")),
        Ok(Body { has_choices: true, .. }) => {
            let what = format!(
                "the server answered whole, in `{kind}`, although `stream` was asked for, so that none of its tokens has a time"
            );
            (FailureClass::StreamMalformed, what)
        }
        Ok(_) | Err(_) => (FailureClass::StreamMalformed, format!("the answer is `{kind}`, not a stream of events")),
    };
    if body.is_empty() {
        return (class, format!("{what}, with an empty body"));
    }
    (class, format!("{what}: {}", shown(body)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &str, expected: Result<Option<u64>, (FailureClass, &str)>) {
        let found = embeddings(body.as_bytes()).map(|usage| usage.map(|usage| usage.prompt_tokens));
        let expected = expected.map_err(|(class, message)| (class, format!("{message}: {body}")));
        assert_eq!(found, expected, "{body}");
    }

    #[test]
    fn embeddings_have_values() {
        let ok = r#"{"object":"list","data":[{"index":0,"embedding":[0.1,-2e-3]}],"usage":{"prompt_tokens":7}}"#;
        check(ok, Ok(Some(7)));
        check(r#"{"data":[{"embedding":"AAAA"},{"embedding":[1]}]}"#, Ok(None));
        let malformed = |message| Err((FailureClass::StreamMalformed, message));
        check(r#"{"data":[]}"#, malformed("the answer holds no embedding"));
        check(
            r#"{"data":[{"embedding":[1]},{"embedding":[]}]}"#,
            malformed("the answer holds an embedding without a value"),
        );
        check(r#"{"data":[{"index":0}]}"#, malformed("the answer holds an embedding without a value"));
        check(r#"{"data":null}"#, malformed("the answer can't be read (an array is expected)"));
        check("data: [DONE]", malformed("the answer can't be read (an object is expected)"));
        let error = r#"{"error":{"message":"no room"}}"#;
        check(error, Err((FailureClass::StreamError, "the answer is an error")));
    }

    #[test]
    fn a_whole_answer_in_the_place_of_a_stream_is_named() {
        let message = |body: &str| unstreamed("application/json", body.as_bytes());
        let (class, said) = message(r#"{"choices":[{"text":"a"}]}"#);
        assert_eq!(class, FailureClass::StreamMalformed);
        assert!(said.starts_with("the server answered whole, in `application/json`, although `stream` was"), "{said}");
        let said = message("{}");
        let expected = "the answer is `application/json`, not a stream of events: {}".to_owned();
        assert_eq!(said, (FailureClass::StreamMalformed, expected));
        let (class, said) = message(r#"{"error":"boom"}"#);
        let expected = "the answer is an error in `application/json`: {\"error\":\"boom\"}";
        assert_eq!((class, said.as_str()), (FailureClass::StreamError, expected));
        assert!(message("").1.ends_with("not a stream of events, with an empty body"));
    }
}
