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
    pub(crate) disorder: Option<(&'static str, &'static str)>,
    pub(crate) failure: Option<RequestFailure>,
}

impl Sample {
    pub(crate) fn of(record: &RequestRecord, line: u64) -> Self {
        let tokens = record.output_tokens();
        let since = |at: u64| elapsed_ms(record.intended_ns, at);
        let first_token =
            record.chunk_ns.iter().zip(&record.chunk_tokens).find(|(_, count)| **count > 0).map(|(at, _)| *at);
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
            disorder: disorder(record),
            failure: record.failure.clone(),
        }
    }

    /// Returns the request's name for people.
    pub(crate) fn name(&self) -> String {
        format!("{} request {}", self.phase, self.index)
    }
}

/// Returns the gaps between tokens in milliseconds, each with the number of tokens that it stands for.
///
/// The clock is the token's: a chunk of k tokens that comes a gap g after the chunk before it stands for k gaps of g/k.
/// The first chunk with a token starts the clock and gives none; a chunk without a token doesn't stop it.
pub(super) fn gaps_ms(record: &RequestRecord) -> impl Iterator<Item = (f64, u64)> {
    let tokens = record.chunk_ns.iter().zip(&record.chunk_tokens).filter(|(_, count)| **count > 0);
    let mut before: Option<u64> = None;
    tokens.filter_map(move |(at, count)| {
        let gap = before.replace(*at).map(|earlier| elapsed_ms(earlier, *at));
        gap.map(|gap| (gap / f64::from(*count), u64::from(*count)))
    })
}

/// Returns the milliseconds from one time to another, negative if the second one is earlier.
fn elapsed_ms(from_ns: u64, to_ns: u64) -> f64 {
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
    fn gaps_are_on_the_token_clock() {
        let mut record = record(Phase::Measure, 0);
        record.chunk_ns = vec![1_000_000, 3_000_000, 4_000_000, 9_000_000];
        record.chunk_tokens = vec![2, 1, 0, 3];
        assert_eq!(gaps_ms(&record).collect::<Vec<_>>(), [(2.0, 1), (2.0, 3)]);
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
