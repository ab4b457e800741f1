//! One request in numbers.

use isobench_schema::record::{Phase, RequestFailure, RequestRecord};

use crate::stats::real;

const NS_PER_MS: f64 = 1e6;

/// What the numbers and checks need of one request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sample {
    pub(crate) line: u64,
    pub(crate) phase: Phase,
    pub(crate) index: u32,
    pub(crate) intended_ns: u64,
    pub(crate) sent_ns: Option<u64>,
    pub(crate) end_ns: u64,
    pub(crate) input_tokens: u32,
    pub(crate) asked: u32,
    /// Tokens of the answer, counted by the client.
    pub(crate) tokens: u64,
    /// Tokens of the answer by the server's own count.
    pub(crate) claimed: Option<u64>,
    /// From the intended send to the first chunk with a token.
    pub(crate) ttft_ms: Option<f64>,
    /// From the intended send to the end.
    pub(crate) e2el_ms: f64,
    /// (E2EL − TTFT)/(tokens − 1), from two tokens on.
    pub(crate) tpot_ms: Option<f64>,
    /// The first two times that are not in order, if any: an intended send comes first, then the answer's head, its
    /// chunks and its end.
    pub(crate) disorder: Option<Box<(&'static str, &'static str)>>,
    pub(crate) failure: Option<Box<RequestFailure>>,
    /// When the client turned to it.
    pub(crate) released: Moment,
    /// When the connection that was opened for it was ready.
    pub(crate) connected: Moment,
    /// When its first byte was handed over, or its last one where that alone is known.
    pub(crate) out: Moment,
    /// The first chunk with content.
    pub(crate) content: Moment,
    /// The first chunk with a token and the last one.
    pub(crate) first_token: Moment,
    pub(crate) last_token: Moment,
    /// The first chunk and the last one.
    pub(crate) first_chunk: Moment,
    pub(crate) last_chunk: Moment,
    /// Tokens of the first chunk that has any.
    pub(crate) first_tokens: u32,
    pub(crate) chunks: u32,
    /// Tokens of the prompt by the server's own count, `u32::MAX` for any more: half the bytes of a million samples.
    pub(crate) prompt_claimed: Option<u32>,
    /// Whether it met the objective, where there is one.
    pub(crate) is_good: bool,
    /// Whether it is a later turn of a conversation.
    pub(crate) is_later_turn: bool,
}

/// A time that may be absent, in the room of one word: there is one sample for each of a million requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment(u64);

impl Moment {
    /// No clock of a load comes here: it would be 584 years after its zero.
    const ABSENT: u64 = u64::MAX;

    fn of(time: Option<u64>) -> Self {
        Self(time.unwrap_or(Self::ABSENT))
    }

    /// Returns the time in nanoseconds.
    pub(crate) fn ns(self) -> Option<u64> {
        (self.0 != Self::ABSENT).then_some(self.0)
    }
}

impl Sample {
    pub(crate) fn of(record: &RequestRecord, line: u64) -> Self {
        let tokens = record.output_tokens();
        let since = |at: u64| elapsed_ms(record.intended_ns, at);
        let mut counted = record.chunk_ns.iter().zip(&record.chunk_tokens).filter(|(_, count)| **count > 0);
        let first = counted.next();
        let first_token = first.map(|(at, _)| *at);
        let last_token = counted.next_back().map(|(at, _)| *at).or(first_token);
        let content = match record.content_chunk {
            None => first_token,
            Some(place) => usize::try_from(place).ok().and_then(|place| record.chunk_ns.get(place)).copied(),
        };
        let ttft_ms = first_token.map(since);
        let e2el_ms = since(record.end_ns);
        let gaps = real(tokens.saturating_sub(1));
        Self {
            line,
            phase: record.phase,
            index: record.index,
            intended_ns: record.intended_ns,
            sent_ns: record.sent_ns,
            end_ns: record.end_ns,
            input_tokens: record.input_tokens,
            asked: record.output_tokens_asked,
            tokens,
            claimed: record.usage.map(|usage| usage.completion_tokens),
            ttft_ms,
            e2el_ms,
            tpot_ms: ttft_ms.filter(|_| tokens >= 2).map(|ttft| (e2el_ms - ttft) / gaps),
            disorder: disorder(record).map(Box::new),
            failure: record.failure.clone().map(Box::new),
            released: Moment::of(record.released_ns),
            connected: Moment::of(record.connected_ns),
            out: Moment::of(record.first_out_ns.or(record.sent_ns)),
            content: Moment::of(content),
            first_token: Moment::of(first_token),
            last_token: Moment::of(last_token),
            first_chunk: Moment::of(record.chunk_ns.first().copied()),
            last_chunk: Moment::of(record.chunk_ns.last().copied()),
            first_tokens: first.map_or(0, |(_, count)| *count),
            chunks: u32::try_from(record.chunk_ns.len()).unwrap_or(u32::MAX),
            prompt_claimed: record.usage.map(|usage| u32::try_from(usage.prompt_tokens).unwrap_or(u32::MAX)),
            is_good: false,
            is_later_turn: record.turn.is_some_and(|turn| turn.turn > 0),
        }
    }

    /// Returns when the client sent it, as near as the record tells: when it turned to it.
    pub(crate) fn start_ns(&self) -> u64 {
        self.released.ns().or(self.sent_ns).unwrap_or(self.intended_ns)
    }

    /// Returns the milliseconds from the moment when the last byte was handed over to another moment.
    pub(crate) fn ms_after_send(&self, to_ns: u64) -> Option<f64> {
        self.sent_ns.map(|sent| elapsed_ms(sent, to_ns))
    }

    /// Returns the time from the scheduled send to the first content, in milliseconds.
    pub(crate) fn ttfc_ms(&self) -> Option<f64> {
        self.content.ns().map(|at| elapsed_ms(self.intended_ns, at))
    }

    /// Returns the time that all gaps on the token clock take, in milliseconds, and their number.
    pub(crate) fn token_gaps(&self) -> Option<(f64, u64)> {
        let time = elapsed_ms(self.first_token.ns()?, self.last_token.ns()?);
        Some((time, self.tokens - u64::from(self.first_tokens)))
    }

    /// Returns the time that all gaps on the chunk clock take, in milliseconds, and their number.
    pub(crate) fn chunk_gaps(&self) -> Option<(f64, u64)> {
        let time = elapsed_ms(self.first_chunk.ns()?, self.last_chunk.ns()?);
        Some((time, u64::from(self.chunks).checked_sub(1)?))
    }

    /// Returns the request's name for people.
    pub(crate) fn name(&self) -> String {
        format!("{} request {}", self.phase, self.index)
    }
}

/// Returns the milliseconds from one time to another, negative if the second one is earlier.
pub(crate) fn elapsed_ms(from_ns: u64, to_ns: u64) -> f64 {
    let distance = real(from_ns.abs_diff(to_ns)) / NS_PER_MS;
    if to_ns < from_ns { -distance } else { distance }
}

fn disorder(record: &RequestRecord) -> Option<(&'static str, &'static str)> {
    let head = record.first_byte_ns.map(|at| ("the answer's head", at));
    let chunks = record.chunk_ns.iter().map(|at| ("a chunk", *at));
    let end = std::iter::once(("the end", record.end_ns));
    let mut before = ("the intended send", record.intended_ns);
    for next in head.into_iter().chain(chunks).chain(end) {
        if next.1 < before.1 {
            return Some((before.0, next.0));
        }
        before = next;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::tests::record;

    #[test]
    fn times_run_from_the_intended_send() {
        let mut record = record(Phase::Measure, 0);
        record.intended_ns = 1_000_000;
        record.sent_ns = Some(5_000_000);
        record.chunk_ns = vec![7_000_000, 9_000_000, 11_000_000, 12_000_000];
        record.chunk_tokens = vec![0, 1, 2, 1];
        record.end_ns = 13_000_000;
        let sample = Sample::of(&record, 2);
        assert_eq!((sample.ttft_ms, sample.e2el_ms, sample.tpot_ms), (Some(8.0), 12.0, Some(4.0 / 3.0)));
    }

    #[test]
    fn one_token_has_no_time_per_further_token() {
        let mut record = record(Phase::Measure, 0);
        (record.chunk_ns, record.chunk_tokens) = (vec![5], vec![1]);
        assert_eq!(Sample::of(&record, 2).tpot_ms, None);
        (record.chunk_ns, record.chunk_tokens) = (vec![], vec![]);
        assert_eq!(Sample::of(&record, 2).ttft_ms, None);
    }

    #[test]
    fn times_out_of_order_are_named() {
        let mut record = record(Phase::Measure, 0);
        assert_eq!(disorder(&record), None);
        record.chunk_ns = vec![40_000_000, 30_000_000];
        assert_eq!(disorder(&record), Some(("a chunk", "a chunk")));
        record.chunk_ns = vec![record.end_ns + 1];
        assert_eq!(disorder(&record), Some(("a chunk", "the end")));
        record.intended_ns = record.end_ns + 5;
        assert_eq!(disorder(&record), Some(("the intended send", "the answer's head")));
    }
}
