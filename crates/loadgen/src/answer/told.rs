//! What the events of a stream have told so far.

use isobench_schema::failure::FailureClass;
use isobench_schema::record::{RequestFailure, RequestRecord, Usage};
use isobench_schema::workload::TokenCounter;
use serde::de::IgnoredAny;

use super::counting::{Claims, Settled, words_begun};
use super::pattern::Pattern;
use crate::event::{Choice, EventBody, EventUsage};
use crate::failing::{failure, shown};
use crate::json::{Malformed, Raw};
use crate::sse::Event;

/// Bytes of text that a token has about, for the room that is made for it.
const TOKEN_BYTES: usize = 6;

/// Everything that an answer has told.
#[derive(Debug)]
pub(super) struct Told {
    counter: TokenCounter,
    pattern: Pattern,
    in_word: bool,
    claims: Claims,
    chunk_ns: Vec<u64>,
    chunk_tokens: Vec<u32>,
    chunk_bytes: Vec<u32>,
    content_chunk: Option<usize>,
    spread: bool,
    text: String,
    token_ids: Vec<u32>,
    /// Whether the server gives token ids.
    has_ids: bool,
    usage: Option<Usage>,
    finish_reason: Option<String>,
    last_event_ns: Option<u64>,
    done_ns: Option<u64>,
    failure: Option<RequestFailure>,
}

impl Told {
    /// Returns what is told before anything has come, with room for so many chunks.
    pub(super) fn new(counter: TokenCounter, chunks: usize) -> Self {
        let room = |wanted: bool| if wanted { Vec::with_capacity(chunks) } else { Vec::new() };
        Self {
            counter,
            // Token ids differ from event to event.
            pattern: Pattern::new(counter != TokenCounter::TokenIds),
            in_word: false,
            claims: Claims::default(),
            chunk_ns: Vec::with_capacity(chunks),
            chunk_tokens: room(true),
            chunk_bytes: room(counter == TokenCounter::Tokenizer),
            content_chunk: None,
            spread: false,
            text: String::with_capacity(chunks * TOKEN_BYTES),
            token_ids: room(counter == TokenCounter::TokenIds),
            has_ids: false,
            usage: None,
            finish_reason: None,
            last_event_ns: None,
            done_ns: None,
            failure: None,
        }
    }

    /// Takes one event.
    pub(super) fn take(&mut self, event: Event<'_>, at_ns: u64) {
        if let Err(failure) = self.try_take(event, at_ns) {
            self.failure = Some(failure);
        }
    }

    /// Takes a whole answer without chunks.
    pub(super) fn take_whole(&mut self, usage: Option<Usage>, at_ns: u64) {
        self.usage = usage;
        self.last_event_ns = Some(at_ns);
        self.done_ns = Some(at_ns);
    }

    /// Takes a failure, in the place of one that there may be.
    pub(super) fn fail(&mut self, class: FailureClass, message: impl Into<String>) {
        self.failure = Some(failure(class, message));
    }

    /// Returns whether the answer has failed.
    pub(super) fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Returns whether it has failed by an event that can't be read.
    pub(super) fn is_malformed(&self) -> bool {
        self.failure.as_ref().is_some_and(|failure| failure.class == FailureClass::StreamMalformed)
    }

    /// Returns whether the answer's end has been told.
    pub(super) fn has_ended(&self) -> bool {
        self.done_ns.is_some() || self.finish_reason.is_some()
    }

    /// Returns when the end mark came.
    pub(super) fn done_ns(&self) -> Option<u64> {
        self.done_ns
    }

    /// Returns when the last event came.
    pub(super) fn last_event_ns(&self) -> Option<u64> {
        self.last_event_ns
    }

    /// Returns how many chunks have come.
    pub(super) fn chunks(&self) -> usize {
        self.chunk_ns.len()
    }

    /// Returns whether tokens are counted as they come, rather than by a tokenizer later.
    pub(super) fn counts_now(&self) -> bool {
        match self.counter {
            TokenCounter::TokenIds | TokenCounter::Whitespace | TokenCounter::Usage => true,
            TokenCounter::Tokenizer => false,
        }
    }

    /// Settles the counts of an answer that is whole, or fails it where its tokens can't be counted.
    pub(super) fn settle(&mut self) {
        if self.has_failed() {
            return;
        }
        match self.counter {
            TokenCounter::TokenIds if !self.has_ids && !self.text.is_empty() => {
                let message = "the server gave no token ids for its text (`return_token_ids` was asked for), so its tokens \
                               can't be counted";
                self.fail(FailureClass::StreamMalformed, message);
            }
            TokenCounter::Usage => {
                let total = self.usage.map(|usage| usage.completion_tokens);
                match self.claims.settle(&mut self.chunk_tokens, total) {
                    Ok(settled) => self.spread = settled == Settled::Spread,
                    Err(message) => self.fail(FailureClass::StreamMalformed, message),
                }
            }
            TokenCounter::TokenIds | TokenCounter::Whitespace | TokenCounter::Tokenizer => {}
        }
    }

    /// Writes everything into `record`; `end_ns` is when the answer ended, unless `[DONE]` came before.
    pub(super) fn write(self, record: &mut RequestRecord, end_ns: u64) {
        let chunks = self.chunk_ns.len();
        let content_chunk = self.content_chunk.unwrap_or(chunks);
        record.content_chunk = (content_chunk > 0).then(|| u32::try_from(content_chunk).unwrap_or(u32::MAX));
        record.chunk_ns = self.chunk_ns;
        record.chunk_tokens = self.chunk_tokens;
        record.chunk_bytes = self.chunk_bytes;
        record.spread = self.spread;
        record.text = self.text;
        record.token_ids = self.has_ids.then_some(self.token_ids);
        record.usage = self.usage;
        record.finish_reason = self.finish_reason;
        record.end_ns = match &self.failure {
            None => self.done_ns.unwrap_or(end_ns),
            Some(_) => end_ns,
        };
        record.failure = self.failure;
    }

    fn try_take(&mut self, event: Event<'_>, at_ns: u64) -> Result<(), RequestFailure> {
        let data = event.data.trim_ascii();
        if data.is_empty() {
            return Ok(());
        }
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
        if let Some((plain, usage)) = self.pattern.read(data) {
            let claim = self.take_usage(usage);
            return self.take_choice(&plain.into(), claim, at_ns).map_err(|error| unreadable(data, error));
        }
        let body = EventBody::parse(data).map_err(|error| unreadable(data, error))?;
        self.pattern.learn(data, &body);
        if body.is_error {
            return Err(failure(FailureClass::StreamError, format!("the stream holds an error: {}", shown(data))));
        }
        let claim = self.take_usage(body.usage);
        let Some(choice) = body.choice else { return Ok(()) };
        if body.choices > 1 || choice.index != 0 {
            return Err(malformed(format!("an event holds another choice than the one asked for: {}", shown(data))));
        }
        self.take_choice(&choice, claim, at_ns).map_err(|error| unreadable(data, error))?;
        match choice.finish_reason().map(Raw::as_written) {
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

    /// Takes the server's counts; returns that of the answer's tokens so far, where they are given.
    fn take_usage(&mut self, usage: EventUsage) -> Option<u64> {
        let EventUsage { prompt_tokens, completion_tokens } = usage;
        let (Some(prompt_tokens), Some(completion_tokens)) = (prompt_tokens, completion_tokens) else { return None };
        self.usage = Some(Usage { prompt_tokens, completion_tokens });
        Some(completion_tokens)
    }

    fn take_choice(&mut self, choice: &Choice<'_>, claim: Option<u64>, at_ns: u64) -> Result<(), Malformed> {
        let (texts, ids) = (self.text.len(), self.token_ids.len());
        let held = choice.push_onto(&mut self.text, &mut self.token_ids)?;
        self.has_ids |= held.ids;
        let output = self.text.get(texts..).unwrap_or_default();
        let ids = self.token_ids.len() - ids;
        if output.is_empty() && ids == 0 {
            return Ok(());
        }
        if held.content && self.content_chunk.is_none() {
            self.content_chunk = Some(self.chunk_ns.len());
        }
        let tokens = match self.counter {
            TokenCounter::TokenIds => count(ids),
            TokenCounter::Whitespace => words_begun(output, &mut self.in_word),
            TokenCounter::Usage => self.claims.chunk(self.chunk_ns.is_empty(), claim),
            TokenCounter::Tokenizer => {
                self.chunk_bytes.push(count(output.len()));
                0
            }
        };
        self.chunk_ns.push(at_ns);
        self.chunk_tokens.push(tokens);
        Ok(())
    }
}

fn malformed(message: String) -> RequestFailure {
    failure(FailureClass::StreamMalformed, message)
}

/// Returns the failure of an event that can't be read, with the place where it breaks off if it is no JSON.
fn unreadable(data: &[u8], error: Malformed) -> RequestFailure {
    let why = match serde_json::from_slice::<IgnoredAny>(data) {
        Err(place) => place.to_string(),
        Ok(_) => error.to_string(),
    };
    malformed(format!("an event can't be read ({why}): {}", shown(data)))
}

fn count(things: usize) -> u32 {
    u32::try_from(things).unwrap_or(u32::MAX)
}
