//! What an answer says, as its bytes come in: text, tokens, their times, and how it ends.
//!
//! - A *chunk* is an event that carries text, reasoning, a tool call or token ids. An event with a role, with empty
//!   text, with `usage` or with `[DONE]` is none. Its time is that of the read that completed it.
//! - The text is everything that the model put out, in the order in which it came: reasoning, content, and the names
//!   and arguments of tool calls.
//! - An answer is whole if its body ended in order and it had a finish reason or `[DONE]`, or if it had `[DONE]` before
//!   its connection closed. It has its length if it isn't shorter than was demanded.
//! - While chunks come as asked, nothing is allocated: text, times and ids have room from the start.

mod counting;
mod pattern;
mod told;
mod whole;

#[cfg(test)]
mod tests;

use isobench_schema::failure::FailureClass;
use isobench_schema::record::RequestRecord;
use isobench_schema::workload::TokenCounter;

use crate::failing::shown;
use crate::sse::Parser;
pub use counting::check_length;
use told::Told;

/// The longest body of an answer without tokens that is accepted, in bytes.
const LONGEST_EMPTY: u64 = 2 * 1024 * 1024;
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
    /// Whether an answer with fewer tokens than asked has failed, rather than having stopped where the model chose to.
    pub exact: bool,
}

impl Lengths {
    /// Returns the longest body of an answer that is accepted, in bytes.
    fn longest_body(self) -> u64 {
        let Self { input_tokens, output_tokens, .. } = self;
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
    parser: Parser,
    lengths: Lengths,
    bytes: u64,
    told: Told,
}

impl Answer {
    /// Returns an empty answer, with room for the chunks that were asked. One that is much longer than asked fails, so that
    /// no engine fills the client's memory.
    pub fn new(counter: TokenCounter, lengths: Lengths) -> Self {
        let chunks = usize::try_from(lengths.output_tokens.min(8192)).unwrap_or(0) + 1;
        Self { parser: Parser::new(), lengths, bytes: 0, told: Told::new(counter, chunks) }
    }

    /// Takes bytes of the body that one read at `at_ns` brought. Nothing is taken after a failure.
    pub fn push(&mut self, mut bytes: &[u8], at_ns: u64) {
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        let longest = self.lengths.longest_body();
        if self.bytes > longest && !self.told.has_failed() {
            let asked = self.lengths.output_tokens;
            let message = format!("the answer is longer than {longest} bytes, the most for {asked} tokens asked");
            self.told.fail(FailureClass::StreamMalformed, message);
        }
        while !self.told.has_failed() {
            match self.parser.next(&mut bytes) {
                Ok(Some(event)) => self.told.take(event, at_ns),
                Ok(None) => break,
                Err(error) => self.told.fail(FailureClass::StreamMalformed, error.to_string()),
            }
        }
    }

    /// Takes the end of the body, in order, at `at_ns`.
    pub fn end(&mut self, at_ns: u64) {
        self.take_unfinished(at_ns);
        if !self.told.has_ended() {
            let chunks = self.told.chunks();
            let message = format!("the stream ended after {chunks} chunks without a finish reason or `[DONE]`");
            self.fail_by(FailureClass::StreamTruncated, message);
        }
        self.told.settle();
    }

    /// Takes the end of the connection within the body at `at_ns`; `how` says how it ended.
    pub fn cut(&mut self, how: &str, at_ns: u64) {
        self.take_unfinished(at_ns);
        let message = format!("{how} after {} chunks, before the end of the stream", self.told.chunks());
        self.fail_by(FailureClass::StreamTruncated, message);
        self.told.settle();
    }

    /// Takes a failure from outside, such as a deadline, unless the answer has one or is done.
    pub fn fail_by(&mut self, class: FailureClass, message: impl Into<String>) {
        if self.told.done_ns().is_none() && !self.told.has_failed() {
            self.told.fail(class, message);
        }
    }

    /// Takes a whole answer with embeddings, which came at `at_ns`. It is whole if each of its embeddings has a value.
    pub fn embedding(&mut self, body: &[u8], at_ns: u64) {
        match whole::embeddings(body) {
            Ok(usage) => self.told.take_whole(usage, at_ns),
            Err((class, message)) => self.fail_by(class, message),
        }
    }

    /// Takes a whole body that came although a stream was asked for: a failure that says what it is, by its
    /// `content_type`.
    pub fn unstreamed(&mut self, content_type: &str, body: &[u8]) {
        let (class, message) = whole::unstreamed(content_type, body);
        self.fail_by(class, message);
    }

    /// Returns how far the answer has come.
    pub fn progress(&self) -> Progress {
        match (self.told.has_failed(), self.told.done_ns(), self.told.chunks()) {
            (true, _, _) => Progress::Failed,
            (false, Some(_), _) => Progress::Done,
            (false, None, 0) => Progress::Waiting,
            (false, None, _) => Progress::Streaming,
        }
    }

    /// Returns when the last event came. Comments are no events.
    pub fn last_event_ns(&self) -> Option<u64> {
        self.told.last_event_ns()
    }

    /// Writes everything into `record`; `end_ns` is when the answer ended, unless `[DONE]` came before. An answer that is
    /// shorter than demanded fails here, but for one whose tokens are counted later (see [`check_length`]).
    pub fn write(self, record: &mut RequestRecord, end_ns: u64) {
        let exact = self.lengths.exact && self.told.counts_now();
        self.told.write(record, end_ns);
        check_length(record, exact);
    }

    /// Takes the event that the stream ended in. One that can't be read was cut off rather than malformed.
    fn take_unfinished(&mut self, at_ns: u64) {
        if self.told.has_failed() {
            return;
        }
        let Some(event) = self.parser.finish() else { return };
        self.told.take(event, at_ns);
        if self.told.is_malformed() && self.told.done_ns().is_none() {
            let message = format!("the stream ended within an event: {}", shown(event.data));
            self.told.fail(FailureClass::StreamTruncated, message);
        }
    }
}
