//! One answer that takes time: when its parts are due, and what becomes of it.

use crate::clock;
use crate::config::{Config, Framing};
use crate::connection::{Connection, Ending, Key};
use crate::event::{self, Piece, Voice, Words};
use crate::gzip::Gzip;
use crate::server::Server;
use crate::truth::{Now, Outcome, Record};

/// What is sent.
#[derive(Debug)]
pub(crate) enum Reply {
    /// Events.
    Events,
    /// All at once.
    Whole(Vec<u8>),
}

/// An answer under way. Times are in nanoseconds.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) voice: Voice,
    pub(crate) reply: Reply,
    /// Whether the client wants the usage at the end.
    pub(crate) usage: bool,
    pub(crate) asked: u64,
    /// The tokens that will be sent.
    pub(crate) tokens: u64,
    pub(crate) arrived: u64,
    pub(crate) served: Option<u64>,
    /// What is sent with the first token.
    pub(crate) start: Vec<u8>,
    pub(crate) gzip: Option<Gzip>,
    sent: u64,
    due: u64,
    first: u64,
    last: u64,
    /// The tokens of the events of which the last part hasn't left yet.
    unstamped: Vec<u64>,
}

impl Stream {
    /// Makes one that arrived at `arrived`.
    pub(crate) fn new(voice: Voice, reply: Reply, arrived: u64) -> Self {
        Self {
            voice,
            reply,
            usage: false,
            asked: 0,
            tokens: 0,
            arrived,
            served: None,
            start: Vec::new(),
            gzip: None,
            sent: 0,
            due: 0,
            first: 0,
            last: 0,
            unstamped: Vec::new(),
        }
    }

    /// Returns the record of it as it is now.
    pub(crate) fn record(&self, connection: &Connection, outcome: Outcome) -> Record {
        Record {
            connection: connection.number,
            accepted: connection.accepted,
            arrived: self.arrived,
            first: self.first,
            last: self.last,
            tokens: self.sent,
            outcome,
            streamed: matches!(self.reply, Reply::Events),
            asked: self.asked,
            served: self.served.unwrap_or(0),
        }
    }

    fn held_tokens(&self) -> u64 {
        self.voice.prompt_tokens + self.tokens
    }

    /// Appends the next write to `wire` and counts its tokens as sent, but doesn't say when.
    fn next_write(&mut self, config: &Config, words: &Words, event: &mut Vec<u8>, wire: &mut Vec<u8>) {
        wire.append(&mut self.start);
        if let Reply::Whole(body) = &self.reply {
            wire.extend_from_slice(body);
            self.sent = self.tokens;
            self.unstamped.push(self.tokens);
            return;
        }
        for _ in 0..config.coalesce.max(1) {
            let tokens = config.tpc.max(1).min(self.tokens - self.sent);
            if tokens == 0 {
                break;
            }
            let last = self.sent + tokens == self.tokens;
            for choice in 0..config.choices.max(1) {
                event.clear();
                self.voice.tokens(config, words, Piece { from: self.sent, tokens, last, choice }, event);
                event::frame(config, self.gzip.as_mut(), event, wire);
            }
            self.sent += tokens;
            self.unstamped.push(tokens);
        }
    }

    /// Appends what follows the last token.
    fn ending(&mut self, config: &Config, model: &str, event: &mut Vec<u8>, wire: &mut Vec<u8>) {
        if matches!(self.reply, Reply::Whole(_)) {
            return;
        }
        let mut put = |event: &mut Vec<u8>, wire: &mut Vec<u8>| {
            if !event.is_empty() {
                event::frame(config, self.gzip.as_mut(), event, wire);
            }
            event.clear();
        };
        event.clear();
        if self.usage && !config.nousage {
            self.voice.last_usage(config, model, self.tokens, event);
        }
        put(event, wire);
        if !config.nodone {
            event::done(config, event);
        }
        put(event, wire);
        if config.after_done {
            let late = Piece { from: self.tokens, tokens: 1, last: false, choice: 0 };
            self.voice.tokens(config, &Words::new("late"), late, event);
        }
        put(event, wire);
        event::frame_end(config, self.gzip.as_mut(), wire);
    }

    /// Returns how long the body will be, `opening` included: it is made once to be measured.
    pub(crate) fn body_length(&self, config: &Config, words: &Words, model: &str, opening: &[u8]) -> usize {
        let mut rehearsal = Self::new(self.voice.clone(), Reply::Events, 0);
        rehearsal.usage = self.usage;
        rehearsal.tokens = self.tokens;
        rehearsal.gzip = config.gzip.then(Gzip::new);
        let (mut event, mut body) = (Vec::new(), Vec::new());
        if !opening.is_empty() {
            event::frame(config, rehearsal.gzip.as_mut(), opening, &mut body);
        }
        while rehearsal.sent < rehearsal.tokens {
            rehearsal.next_write(config, words, &mut event, &mut body);
        }
        rehearsal.ending(config, model, &mut event, &mut body);
        body.len()
    }
}

impl Server {
    /// Takes a stream in: serves it, or lets it wait for a slot.
    pub(crate) fn admit(&mut self, key: Key, stream: Box<Stream>) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        connection.stream = Some(stream);
        if self.config.slots > 0 && self.active >= self.config.slots {
            self.queue.push_back(key);
            self.waiting += 1;
        } else {
            self.start(key);
        }
        self.truth.most_active = self.truth.most_active.max(self.active + self.waiting);
        self.truth.most_waiting = self.truth.most_waiting.max(self.waiting);
    }

    fn start(&mut self, key: Key) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let Some(stream) = &mut connection.stream else { return };
        let served = if self.config.slots > 0 { clock::now() } else { stream.arrived };
        stream.served = Some(served);
        self.active += 1;
        self.held_tokens += stream.held_tokens();
        let mut wait = self.config.ttft_us;
        if matches!(stream.reply, Reply::Whole(_)) {
            wait += stream.tokens.saturating_sub(1) * self.config.itl_us;
        }
        stream.due = served + wait * 1000;
        let due = (wait > 0).then_some(stream.due);
        if connection.pieces.is_empty() {
            self.schedule(key, due);
        }
    }

    /// Gives back what a stream held, and its slot to those that wait.
    pub(crate) fn release(&mut self, stream: &Stream) {
        if stream.served.is_none() {
            self.waiting -= 1;
            return;
        }
        self.active -= 1;
        self.held_tokens -= stream.held_tokens();
        while self.config.slots == 0 || self.active < self.config.slots {
            let Some(next) = self.queue.pop_front() else { break };
            let waits =
                |connection: &mut Connection| connection.stream.as_ref().is_some_and(|stream| stream.served.is_none());
            if self.connections.get_mut(next).is_some_and(waits) {
                self.waiting -= 1;
                self.start(next);
            }
        }
    }

    /// Returns what counts now.
    pub(crate) fn now(&self) -> Now {
        Now { active: self.active, waiting: self.waiting }
    }

    /// Does a connection's next step. `timed` says that it came from a timer, of which some are out of date.
    pub(crate) fn step(&mut self, key: Key, timed: bool) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        if timed && clock::now() < connection.due {
            return;
        }
        if connection.blocked {
            self.truth.blocked += u64::from(!connection.overdue);
            connection.overdue = true;
            return;
        }
        if let Some(piece) = connection.pieces.pop_front() {
            return self.step_piece(key, &piece);
        }
        let due = connection.due;
        let Some(stream) = &mut connection.stream else {
            if connection.idle_close {
                self.end(key, Ending::Close);
            }
            return;
        };
        if stream.served.is_none() {
            return;
        }
        let mut wire = std::mem::take(&mut self.wire);
        wire.clear();
        stream.next_write(&self.config, &self.words, &mut self.event, &mut wire);
        let now = clock::now();
        if timed {
            self.truth.lateness(now.saturating_sub(due));
        }
        if self.config.split_us > 0 {
            let rest = wire.split_off(cut(&wire));
            connection.pieces.push_back(rest);
            let at = now + self.config.split_us * 1000;
            self.transmit_parts(key, &wire);
            self.schedule(key, Some(at));
        } else {
            self.stamp(key, now);
            self.transmit_parts(key, &wire);
            self.advance(key);
        }
        self.wire = wire;
    }

    fn step_piece(&mut self, key: Key, piece: &[u8]) {
        self.stamp(key, clock::now());
        self.transmit_parts(key, piece);
        let Some(connection) = self.connections.get_mut(key) else { return };
        let Some(stream) = &connection.stream else { return };
        if stream.sent > 0 {
            self.advance(key);
        } else if stream.served.is_some() {
            // It was the rest of the head.
            let due = stream.due.max(clock::now());
            self.schedule(key, Some(due));
        }
    }

    /// Notes that the events that were made leave now.
    fn stamp(&mut self, key: Key, now: u64) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let Some(stream) = &mut connection.stream else { return };
        for tokens in stream.unstamped.drain(..) {
            if stream.first == 0 {
                stream.first = now;
            } else {
                self.truth.gap(now - stream.last, tokens);
            }
            stream.last = now;
            self.generated += tokens;
            self.truth.events += 1;
        }
    }

    /// Decides what follows a write.
    fn advance(&mut self, key: Key) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let Some(stream) = &mut connection.stream else { return };
        let reached = |tokens: u64| tokens > 0 && stream.sent >= tokens;
        if matches!(stream.reply, Reply::Events) {
            if reached(self.config.errmid) {
                return self.fail(key);
            }
            if reached(self.config.abort) {
                return self.leave(key, Outcome::Abort, Ending::Abort);
            }
            if reached(self.config.rst) {
                return self.leave(key, Outcome::Reset, Ending::Reset);
            }
            if reached(self.config.stall) {
                connection.hung = true;
                self.finish(key, Outcome::Stall);
                return;
            }
        }
        if stream.sent >= stream.tokens {
            let (mut wire, mut event) = (std::mem::take(&mut self.wire), std::mem::take(&mut self.event));
            wire.clear();
            stream.ending(&self.config, &self.model, &mut event, &mut wire);
            self.event = event;
            self.finish(key, Outcome::Done);
            self.transmit_parts(key, &wire);
            self.wire = wire;
            self.after_answer(key);
            return self.answer_all(key, clock::now());
        }
        let tokens = self.config.tpc.max(1) * self.config.coalesce.max(1);
        let gap = self.config.itl_us + self.config.itl_per_active_us * self.active;
        stream.due += gap * tokens * 1000;
        let due = (gap > 0).then_some(stream.due);
        self.schedule(key, due);
    }

    /// Ends a stream with an event that says so.
    fn fail(&mut self, key: Key) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let Some(stream) = &mut connection.stream else { return };
        let mut wire = Vec::new();
        self.event.clear();
        event::error(&self.config, &mut self.event);
        event::frame(&self.config, stream.gzip.as_mut(), &self.event, &mut wire);
        if !self.config.nodone {
            self.event.clear();
            event::done(&self.config, &mut self.event);
            event::frame(&self.config, stream.gzip.as_mut(), &self.event, &mut wire);
        }
        event::frame_end(&self.config, stream.gzip.as_mut(), &mut wire);
        self.finish(key, Outcome::Error);
        self.transmit_parts(key, &wire);
        // The length that was announced doesn't come true.
        if self.config.framing != Framing::Chunked {
            return self.end(key, Ending::Close);
        }
        self.after_answer(key);
        self.answer_all(key, clock::now());
    }

    fn leave(&mut self, key: Key, outcome: Outcome, ending: Ending) {
        self.finish(key, outcome);
        self.end(key, ending);
    }

    /// Takes the stream off its connection and keeps its record.
    fn finish(&mut self, key: Key, outcome: Outcome) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let Some(stream) = connection.stream.take() else { return };
        self.truth.record(stream.record(connection, outcome));
        self.release(&stream);
    }

    /// Counts an answer, and closes the connection if it was to be the last.
    pub(crate) fn after_answer(&mut self, key: Key) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        connection.answers += 1;
        if connection.close_after {
            return self.end(key, Ending::Close);
        }
        if self.config.close_idle > 0 && connection.answers.is_multiple_of(self.config.close_idle) {
            if self.config.close_idle_us == 0 {
                return self.end(key, Ending::Close);
            }
            connection.idle_close = true;
            let at = clock::now() + self.config.close_idle_us * 1000;
            self.schedule(key, Some(at));
        }
    }
}

/// Returns where a write is cut in two: within its last character of more than a byte in the first half, or its first
/// in the second, if there is one, else in the middle.
fn cut(wire: &[u8]) -> usize {
    let middle = wire.len() / 2;
    let within = |byte: &u8| byte & 0xc0 == 0x80;
    let before = wire.get(..middle).unwrap_or_default().iter().rposition(within);
    before.or_else(|| wire.iter().position(within)).unwrap_or(middle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_is_cut_within_a_character() {
        assert_eq!(cut(b"abcd"), 2);
        assert_eq!(cut("aéabcdef".as_bytes()), 2);
        assert_eq!(cut("aéa".as_bytes()), 2);
        assert_eq!(cut("abcdefé中a".as_bytes()), 7);
    }
}
