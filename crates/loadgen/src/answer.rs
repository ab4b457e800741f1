//! What a streamed answer says, as its bytes come in: text, tokens, their times, and how it ends.
//!
//! - A *chunk* is an event that carries text, reasoning, a tool call or token ids. An event with a role, with empty
//!   text, with `usage` or with `[DONE]` is none. Its time is that of the read that completed it.
//! - The text is everything that the model put out, in the order in which it came: reasoning, content, and the names
//!   and arguments of tool calls.
//! - An answer is whole if its body ended in order and it had a finish reason or `[DONE]`, or if it had `[DONE]` before
//!   its connection closed. Its length is not judged here.

use isobench_schema::failure::FailureClass;
use isobench_schema::record::{RequestFailure, RequestRecord, Usage};
use isobench_schema::workload::TokenCounter;

use crate::event::{Choice, EventBody};
use crate::failing::{failure, shown};
use crate::sse::{Event, Parser};

/// The longest body of an answer without tokens that is accepted, in bytes.
const LONGEST_EMPTY: u64 = 64 * 1024;
/// By how much it may be longer for each token asked: an engine sends some hundred bytes with each.
const LONGEST_TOKEN: u64 = 4 * 1024;
/// By how much it may be longer for each token of the prompt, whose ids an engine may send back.
const LONGEST_PROMPT_TOKEN: u64 = 16;

/// The lengths of a request, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lengths {
    /// Tokens of the prompt.
    pub input_tokens: u32,
    /// Tokens asked of the answer.
    pub output_tokens: u32,
}

impl Lengths {
    /// Returns the longest body of an answer that is accepted, in bytes.
    fn longest_body(self) -> u64 {
        let Self { input_tokens, output_tokens } = self;
        LONGEST_EMPTY + LONGEST_TOKEN * u64::from(output_tokens) + LONGEST_PROMPT_TOKEN * u64::from(input_tokens)
    }
}

/// How far an answer has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// No chunk has come.
    Waiting,
    /// A chunk has come.
    Streaming,
    /// The end mark has come.
    Done,
    /// The answer has failed.
    Failed,
}

/// The interpretation of one answer.
#[derive(Debug)]
pub struct Answer {
    counter: TokenCounter,
    parser: Parser,
    lengths: Lengths,
    bytes: u64,
    in_word: bool,
    chunk_ns: Vec<u64>,
    chunk_tokens: Vec<u32>,
    text: String,
    token_ids: Option<Vec<u32>>,
    usage: Option<Usage>,
    finish_reason: Option<String>,
    last_event_ns: Option<u64>,
    done_ns: Option<u64>,
    failure: Option<RequestFailure>,
}

impl Answer {
    /// Returns an empty answer, with room for the chunks that were asked. One that is much longer than asked fails, so that
    /// no engine fills the client's memory.
    pub fn new(counter: TokenCounter, lengths: Lengths) -> Self {
        let room = usize::try_from(lengths.output_tokens.min(8192)).unwrap_or(0) + 1;
        Self {
            counter,
            parser: Parser::new(),
            lengths,
            bytes: 0,
            in_word: false,
            chunk_ns: Vec::with_capacity(room),
            chunk_tokens: Vec::with_capacity(room),
            text: String::with_capacity(room * 6),
            token_ids: None,
            usage: None,
            finish_reason: None,
            last_event_ns: None,
            done_ns: None,
            failure: None,
        }
    }

    /// Takes bytes of the body that one read at `at_ns` brought. Nothing is taken after a failure.
    pub fn push(&mut self, mut bytes: &[u8], at_ns: u64) {
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        let longest = self.lengths.longest_body();
        if self.failure.is_none() && self.bytes > longest {
            let asked = self.lengths.output_tokens;
            let message = format!("the answer is longer than {longest} bytes, the most for {asked} tokens asked");
            self.fail(FailureClass::StreamMalformed, message);
        }
        // The parser is taken out, so that its events can be looked at while the answer changes.
        let mut parser = std::mem::take(&mut self.parser);
        while self.failure.is_none() {
            match parser.next(&mut bytes) {
                Ok(Some(event)) => {
                    if let Err(failure) = self.take(event, at_ns) {
                        self.failure = Some(failure);
                    }
                }
                Ok(None) => break,
                Err(error) => self.fail(FailureClass::StreamMalformed, error.to_string()),
            }
        }
        self.parser = parser;
    }

    /// Takes the end of the body, in order, at `at_ns`.
    pub fn end(&mut self, at_ns: u64) {
        self.take_unfinished(at_ns);
        if self.failure.is_some() {
            return;
        }
        if self.done_ns.is_none() && self.finish_reason.is_none() {
            let message =
                format!("the stream ended after {} chunks without a finish reason or `[DONE]`", self.chunk_ns.len());
            return self.fail(FailureClass::StreamTruncated, message);
        }
        self.check_whole();
    }

    /// Takes the end of the connection within the body at `at_ns`; `how` says how it ended.
    pub fn cut(&mut self, how: &str, at_ns: u64) {
        self.take_unfinished(at_ns);
        if self.failure.is_some() {
            return;
        }
        if self.done_ns.is_none() {
            let message = format!("{how} after {} chunks, before the end of the stream", self.chunk_ns.len());
            return self.fail(FailureClass::StreamTruncated, message);
        }
        self.check_whole();
    }

    /// Takes a failure from outside, such as a deadline, unless the answer has one or is done.
    pub fn fail_by(&mut self, class: FailureClass, message: impl Into<String>) {
        if self.failure.is_none() && self.done_ns.is_none() {
            self.fail(class, message);
        }
    }

    /// Returns how far the answer has come.
    pub fn progress(&self) -> Progress {
        match (&self.failure, self.done_ns, self.chunk_ns.is_empty()) {
            (Some(_), _, _) => Progress::Failed,
            (None, Some(_), _) => Progress::Done,
            (None, None, false) => Progress::Streaming,
            (None, None, true) => Progress::Waiting,
        }
    }

    /// Returns when the last event came. Comments are no events.
    pub fn last_event_ns(&self) -> Option<u64> {
        self.last_event_ns
    }

    /// Writes everything into `record`; `end_ns` is when the answer ended, unless `[DONE]` came before.
    pub fn write(self, record: &mut RequestRecord, end_ns: u64) {
        record.chunk_ns = self.chunk_ns;
        record.chunk_tokens = self.chunk_tokens;
        record.text = self.text;
        record.token_ids = self.token_ids;
        record.usage = self.usage;
        record.finish_reason = self.finish_reason;
        record.end_ns = match &self.failure {
            None => self.done_ns.unwrap_or(end_ns),
            Some(_) => end_ns,
        };
        record.failure = self.failure;
    }

    fn fail(&mut self, class: FailureClass, message: impl Into<String>) {
        self.failure = Some(failure(class, message));
    }

    fn take(&mut self, event: Event<'_>, at_ns: u64) -> Result<(), RequestFailure> {
        let data = event.data.trim_ascii();
        if data.is_empty() {
            return Ok(());
        }
        let malformed = |message: String| failure(FailureClass::StreamMalformed, message);
        if self.done_ns.is_some() {
            return Err(malformed(format!("an event came after `[DONE]`: {}", shown(data))));
        }
        self.last_event_ns = Some(at_ns);
        if data == b"[DONE]" {
            self.done_ns = Some(at_ns);
            return Ok(());
        }
        if event.kind == b"error" {
            return Err(failure(
                FailureClass::StreamError,
                format!("the stream holds an error event: {}", shown(data)),
            ));
        }
        let body: EventBody<'_> = serde_json::from_slice(data)
            .map_err(|error| malformed(format!("an event can't be read ({error}): {}", shown(data))))?;
        if body.is_error() {
            return Err(failure(FailureClass::StreamError, format!("the stream holds an error: {}", shown(data))));
        }
        if let Some(usage) = &body.usage
            && let (Some(prompt_tokens), Some(completion_tokens)) = (usage.prompt_tokens, usage.completion_tokens)
        {
            self.usage = Some(Usage { prompt_tokens, completion_tokens });
        }
        let Some(choice) = &body.choices.first else { return Ok(()) };
        if body.choices.count > 1 || choice.index.is_some_and(|index| index != 0) {
            return Err(malformed(format!("an event holds another choice than the one asked for: {}", shown(data))));
        }
        self.take_choice(choice, at_ns);
        match choice.finish_reason() {
            Some(reason @ ("abort" | "error")) => Err(failure(
                FailureClass::StreamError,
                format!("the engine gave up on the answer with the finish reason `{reason}`"),
            )),
            Some(reason) => {
                self.finish_reason = Some(reason.to_owned());
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn take_choice(&mut self, choice: &Choice<'_>, at_ns: u64) {
        let before = self.text.len();
        choice.each_output(|text| self.text.push_str(text));
        let output = self.text.get(before..).unwrap_or_default();
        let words = words_begun(output, &mut self.in_word);
        let ids = choice.token_ids.as_deref().unwrap_or_default();
        if choice.token_ids.is_some() {
            self.token_ids.get_or_insert_default().extend_from_slice(ids);
        }
        if output.is_empty() && ids.is_empty() {
            return;
        }
        self.chunk_ns.push(at_ns);
        self.chunk_tokens.push(match self.counter {
            TokenCounter::TokenIds => u32::try_from(ids.len()).unwrap_or(u32::MAX),
            TokenCounter::Whitespace => words,
            TokenCounter::Tokenizer | TokenCounter::Usage => 0,
        });
    }

    /// Takes the event that the stream ended in. One that can't be read was cut off rather than malformed.
    fn take_unfinished(&mut self, at_ns: u64) {
        if self.failure.is_some() {
            return;
        }
        let mut parser = std::mem::take(&mut self.parser);
        let Some(event) = parser.finish() else { return };
        match self.take(event, at_ns) {
            Ok(()) => {}
            Err(RequestFailure { class: FailureClass::StreamMalformed, .. }) if self.done_ns.is_none() => {
                let message = format!("the stream ended within an event: {}", shown(event.data));
                self.fail(FailureClass::StreamTruncated, message);
            }
            Err(failure) => self.failure = Some(failure),
        }
    }

    /// Checks a whole answer for what would make its tokens uncountable.
    fn check_whole(&mut self) {
        match self.counter {
            TokenCounter::TokenIds if self.token_ids.is_none() && !self.text.is_empty() => {
                let message = "the server gave no token ids for its text (`return_token_ids` was asked for), so its tokens \
                               can't be counted";
                self.fail(FailureClass::StreamMalformed, message);
            }
            TokenCounter::TokenIds | TokenCounter::Whitespace | TokenCounter::Tokenizer | TokenCounter::Usage => {}
        }
    }
}

/// Returns how many words begin in `text`; `in_word` carries over whether the text before it ended within a word.
fn words_begun(text: &str, in_word: &mut bool) -> u32 {
    let mut words = 0;
    for c in text.chars() {
        let is_space = c.is_whitespace();
        if !is_space && !*in_word {
            words += 1;
        }
        *in_word = !is_space;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Seen {
        text: String,
        tokens: Vec<u32>,
        chunk_ns: Vec<u64>,
        reason: Option<String>,
        usage: Option<u64>,
        failure: Option<(FailureClass, String)>,
    }

    fn asked(output_tokens: u32) -> Lengths {
        Lengths { input_tokens: 0, output_tokens }
    }

    #[test]
    fn an_answer_much_longer_than_asked_is_malformed_and_nothing_more_of_it_is_kept() {
        for (lengths, longest) in [
            (asked(1), 64 * 1024 + 4 * 1024),
            (Lengths { input_tokens: 1000, output_tokens: 256 }, 64 * 1024 + 256 * 4 * 1024 + 16_000),
        ] {
            let mut answer = Answer::new(TokenCounter::Whitespace, lengths);
            let event = "data: {\"choices\":[{\"text\":\"a \"}]}\n\n";
            let whole = longest / event.len();
            (0..whole).for_each(|_| answer.push(event.as_bytes(), 1));
            assert_eq!(answer.progress(), Progress::Streaming);
            (0..1000).for_each(|_| answer.push(event.as_bytes(), 2));
            let seen = seen(answer, |_| ());
            let tokens = lengths.output_tokens;
            let message = format!("the answer is longer than {longest} bytes, the most for {tokens} tokens asked");
            assert_eq!((seen.failure, seen.text.len()), (Some((FailureClass::StreamMalformed, message)), 2 * whole));
        }
    }

    fn seen(mut answer: Answer, end: fn(&mut Answer)) -> Seen {
        end(&mut answer);
        Seen {
            text: answer.text,
            tokens: answer.chunk_tokens,
            chunk_ns: answer.chunk_ns,
            reason: answer.finish_reason,
            usage: answer.usage.map(|usage| usage.completion_tokens),
            failure: answer.failure.map(|failure| (failure.class, failure.message)),
        }
    }

    fn read(counter: TokenCounter, events: &[&str]) -> Seen {
        let mut answer = Answer::new(counter, asked(8));
        for (at, event) in (0..).zip(events) {
            answer.push(format!("data: {event}\n\n").as_bytes(), at);
        }
        seen(answer, |answer| answer.end(99))
    }

    fn check_failure(events: &[&str], class: FailureClass, message: &str) {
        let failure = read(TokenCounter::Whitespace, events).failure;
        assert_eq!(failure, Some((class, message.to_owned())), "{events:?}");
    }

    #[test]
    fn role_empty_and_usage_events_are_no_chunks() {
        let seen = read(
            TokenCounter::Whitespace,
            &[
                r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#,
                r#"{"choices":[{"index":0,"delta":{"content":null}}]}"#,
                r#"{"choices":[{"index":0,"delta":{"content":" one"}}],"usage":null}"#,
                r#"{"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}"#,
                r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":77,"total_tokens":80}}"#,
                "[DONE]",
            ],
        );
        assert_eq!((seen.text.as_str(), seen.tokens, seen.chunk_ns), (" one", vec![1], vec![2]));
        assert_eq!((seen.reason.as_deref(), seen.usage, seen.failure), (Some("length"), Some(77), None));
    }

    #[test]
    fn reasoning_and_tool_calls_are_output_and_the_same_reasoning_counts_once() {
        let seen = read(
            TokenCounter::Whitespace,
            &[
                r#"{"choices":[{"delta":{"reasoning":"a b ","reasoning_content":"a b "}}]}"#,
                r#"{"choices":[{"delta":{"reasoning_content":"c "}}]}"#,
                r#"{"choices":[{"delta":{"tool_calls":[{"function":{"name":"f ","arguments":"{ }"}}]}}]}"#,
                r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#,
            ],
        );
        assert_eq!((seen.text.as_str(), seen.tokens), ("a b c f { }", vec![2, 1, 3]));
        assert_eq!(seen.failure, None);
    }

    #[test]
    fn a_word_that_is_split_over_chunks_counts_where_it_begins() {
        let chunk = |text: &str| format!(r#"{{"choices":[{{"text":"{text}"}}]}}"#);
        let events = ["wo", "rd next", " ", "one\\u00a0two", " "].map(chunk);
        let mut events: Vec<&str> = events.iter().map(String::as_str).collect();
        events.push("[DONE]");
        assert_eq!(read(TokenCounter::Whitespace, &events).tokens, [1, 1, 0, 2, 0]);
    }

    #[test]
    fn tokens_are_counted_by_their_ids_even_where_there_is_no_text() {
        let events = [
            r#"{"choices":[{"text":"","token_ids":[5]}]}"#,
            r#"{"choices":[{"text":"é and more","token_ids":[6,7,8]}]}"#,
            r#"{"choices":[{"text":"","token_ids":[],"finish_reason":"stop"}]}"#,
        ];
        let seen = read(TokenCounter::TokenIds, &events);
        assert_eq!((seen.tokens, seen.failure), (vec![1, 3], None));
    }

    #[test]
    fn text_without_ids_can_not_be_counted_by_ids() {
        let seen = read(TokenCounter::TokenIds, &[r#"{"choices":[{"text":"a"}]}"#, "[DONE]"]);
        let (class, message) = seen.failure.unwrap();
        assert_eq!(class, FailureClass::StreamMalformed);
        assert!(message.starts_with("the server gave no token ids"), "{message}");
    }

    #[test]
    fn an_error_in_the_stream_is_a_failure_whatever_follows() {
        let chunk = r#"{"choices":[{"text":"a"}]}"#;
        let error = r#"{"error":{"message":"boom","code":500}}"#;
        let message = format!("the stream holds an error: {error}");
        check_failure(&[chunk, error, "[DONE]"], FailureClass::StreamError, &message);
        let old = r#"{"object":"error","message":"boom"}"#;
        check_failure(&[chunk, old], FailureClass::StreamError, &format!("the stream holds an error: {old}"));
        let abort = r#"{"choices":[{"text":"","finish_reason":"abort"}]}"#;
        let message = "the engine gave up on the answer with the finish reason `abort`";
        check_failure(&[chunk, abort, "[DONE]"], FailureClass::StreamError, message);
    }

    #[test]
    fn an_event_that_is_not_json_is_malformed_and_shown() {
        let message = "an event can't be read (expected value at line 1 column 12): {\"choices\":oops}";
        check_failure(&[r#"{"choices":oops}"#, "[DONE]"], FailureClass::StreamMalformed, message);
        let other = r#"{"choices":[{"index":1,"text":"a"}]}"#;
        let message = format!("an event holds another choice than the one asked for: {other}");
        check_failure(&[other], FailureClass::StreamMalformed, &message);
        let late = r#"{"choices":[{"text":"late"}]}"#;
        let message = format!("an event came after `[DONE]`: {late}");
        check_failure(&["[DONE]", late], FailureClass::StreamMalformed, &message);
        let mut answer = Answer::new(TokenCounter::Whitespace, asked(1));
        answer.push(b"data: {\"choices\":[{\"text\":\"\xff\"}]}\n\n", 0);
        assert_eq!(answer.progress(), Progress::Failed);
    }

    #[test]
    fn either_a_finish_reason_or_the_end_mark_makes_an_answer_whole() {
        let chunk = r#"{"choices":[{"text":"a"}]}"#;
        let last = r#"{"choices":[{"text":"b","finish_reason":"length"}]}"#;
        assert_eq!(read(TokenCounter::Whitespace, &[chunk, last]).failure, None);
        assert_eq!(read(TokenCounter::Whitespace, &[chunk, "[DONE]"]).failure, None);
        let message = "the stream ended after 1 chunks without a finish reason or `[DONE]`";
        check_failure(&[chunk], FailureClass::StreamTruncated, message);
    }

    fn cut(stream: &str) -> Option<(FailureClass, String)> {
        let mut answer = Answer::new(TokenCounter::Whitespace, asked(1));
        answer.push(stream.as_bytes(), 0);
        seen(answer, |answer| answer.cut("the server closed the connection", 9)).failure
    }

    #[test]
    fn a_cut_connection_truncates_unless_the_end_mark_had_come() {
        let truncated = |message: &str| Some((FailureClass::StreamTruncated, message.to_owned()));
        let last = "data: {\"choices\":[{\"text\":\"b\",\"finish_reason\":\"length\"}]}\n\n";
        let message = "the server closed the connection after 1 chunks, before the end of the stream";
        assert_eq!(cut(last), truncated(message));
        assert_eq!(cut(&format!("{last}data: [DONE]\n\n")), None);
        assert_eq!(cut(&format!("{last}data: [DONE]")), None);
        assert_eq!(cut("data: {\"choi"), truncated("the stream ended within an event: {\"choi"));
    }
}
