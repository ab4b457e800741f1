//! What happened, as the server knows it.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::clock;

/// The most gaps between events that are kept.
const MOST_GAPS: usize = 40_000_000;

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Answered to the end.
    Done,
    /// Ended by an event with an error.
    Error,
    /// Ended by closing the connection.
    Abort,
    /// Ended by resetting the connection.
    Reset,
    /// Left without an end.
    Stall,
    /// The client went away.
    Dropped,
    /// Refused with an HTTP status.
    Refused,
}

impl Outcome {
    fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Error => "error",
            Self::Abort => "abort",
            Self::Reset => "reset",
            Self::Stall => "stall",
            Self::Dropped => "dropped",
            Self::Refused => "refused",
        }
    }
}

/// A request. Times are nanoseconds of `CLOCK_MONOTONIC`; 0 is never.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    /// The connection's number, from 1 up.
    pub(crate) connection: u64,
    /// When the connection was accepted.
    pub(crate) accepted: u64,
    /// When the last byte of the request arrived at this machine, by the kernel's stamp.
    pub(crate) arrived: u64,
    /// When the first token's event was handed to the kernel, or the last part of it.
    pub(crate) first: u64,
    /// The same of the last token.
    pub(crate) last: u64,
    /// The tokens that left.
    pub(crate) tokens: u64,
    pub(crate) outcome: Outcome,
    /// Whether its tokens left one by one.
    pub(crate) streamed: bool,
    /// The tokens that were asked for.
    pub(crate) asked: u64,
    /// When it got its slot.
    pub(crate) served: u64,
}

/// All records and counts since the last reset.
#[derive(Debug, Default)]
pub(crate) struct Truth {
    records: Vec<Record>,
    /// For each event but a stream's first: nanoseconds since the event before, and its tokens.
    gaps: Vec<(u32, u32)>,
    pub(crate) accepts: u64,
    pub(crate) events: u64,
    pub(crate) writes: u64,
    /// Connections that the client has broken.
    pub(crate) resets: u64,
    /// Steps that had to wait for the client to read.
    pub(crate) blocked: u64,
    pub(crate) most_active: u64,
    pub(crate) most_waiting: u64,
    pub(crate) prefix_cache_resets: u64,
    pub(crate) cache_flushes: u64,
    late_max: u64,
    late: u64,
}

/// What counts from the start on, whatever is reset.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    pub(crate) active: u64,
    pub(crate) waiting: u64,
}

impl Truth {
    /// Keeps a request's record.
    pub(crate) fn record(&mut self, record: Record) {
        self.records.push(record);
    }

    /// Keeps a gap between events.
    pub(crate) fn gap(&mut self, nanoseconds: u64, tokens: u64) {
        if self.gaps.len() < MOST_GAPS {
            let short = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
            self.gaps.push((short(nanoseconds), short(tokens)));
        }
    }

    /// Notes how late a step was, in nanoseconds.
    pub(crate) fn lateness(&mut self, nanoseconds: u64) {
        self.late_max = self.late_max.max(nanoseconds);
        if nanoseconds > 100_000 {
            self.late += 1;
        }
    }

    /// Returns the records, one a line, without a head:
    /// `connection,accepted,arrived,first,last,tokens,outcome,asked,served`.
    pub(crate) fn log(&self) -> String {
        let mut lines = String::with_capacity(self.records.len() * 100);
        for r in &self.records {
            let times = (r.connection, r.accepted, r.arrived, r.first, r.last);
            let (connection, accepted, arrived, first, last) = times;
            let outcome = r.outcome.name();
            // Writing to a string can't fail.
            writeln!(
                lines,
                "{connection},{accepted},{arrived},{first},{last},{},{outcome},{},{}",
                r.tokens, r.asked, r.served
            )
            .ok();
        }
        lines
    }

    /// Returns the numbers; the distributions are of the requests that were answered to the end, and those of
    /// single tokens of the streams among them.
    pub(crate) fn stats(&self, now: Now) -> Value {
        let done = || self.records.iter().filter(|record| record.outcome == Outcome::Done);
        let streams = || done().filter(|record| record.streamed);
        let count = |outcome| self.records.iter().filter(|record| record.outcome == outcome).count();
        let first_arrival = self.records.iter().map(|record| record.arrived).min().unwrap_or(0);
        let last_token = self.records.iter().map(|record| record.last).max().unwrap_or(0);
        let tpot = |record: &Record| {
            (record.tokens > 1).then(|| millis(record.last - record.first) / number(record.tokens - 1))
        };
        let mut itl = Vec::with_capacity(self.gaps.len());
        for (gap, tokens) in &self.gaps {
            let each = millis(u64::from(*gap)) / f64::from(*tokens);
            itl.extend(std::iter::repeat_n(each, usize::try_from(*tokens).unwrap_or(0)));
        }
        json!({
            "requests": done().count(),
            "failed": self.records.len() - done().count(),
            "refused": count(Outcome::Refused),
            "dropped": count(Outcome::Dropped),
            "tokens": done().map(|record| record.tokens).sum::<u64>(),
            "events": self.events,
            "writes": self.writes,
            "accepts": self.accepts,
            "active": now.active,
            "waiting": now.waiting,
            "maxactive": self.most_active,
            "maxwaiting": self.most_waiting,
            "resets": self.resets,
            "blocked": self.blocked,
            "prefix_cache_resets": self.prefix_cache_resets,
            "cache_flushes": self.cache_flushes,
            "late_max_ms": millis(self.late_max),
            "late_over_100us": self.late,
            "span_s": millis(last_token.saturating_sub(first_arrival)) / 1e3,
            "first_arrive_ns": first_arrival,
            "last_ns": last_token,
            "cpu_s": millis(clock::processor_time()) / 1e3,
            "ttft_ms": distribution(streams().map(|record| millis(record.first - record.arrived)).collect()),
            "tpot_ms": distribution(streams().filter_map(tpot).collect()),
            "itl_ms": distribution(itl),
            "icl_ms": distribution(self.gaps.iter().map(|(gap, _)| millis(u64::from(*gap))).collect()),
            "e2el_ms": distribution(done().map(|record| millis(record.last - record.arrived)).collect()),
        })
    }
}

/// Returns `n`, mean, max and percentiles, which are interpolated between the nearest two; `null` of nothing.
fn distribution(mut values: Vec<f64>) -> Value {
    values.sort_unstable_by(f64::total_cmp);
    let Some(max) = values.last() else { return Value::Null };
    let count = number(u64::try_from(values.len()).unwrap_or(u64::MAX));
    let percentile = |share: f64| {
        let place = share * (count - 1.0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is a place in the list")]
        let below = place.floor() as usize;
        let low = values.get(below).copied().unwrap_or(*max);
        let high = values.get(below + 1).copied().unwrap_or(*max);
        low + (high - low) * place.fract()
    };
    json!({
        "n": values.len(),
        "mean": values.iter().sum::<f64>() / count,
        "p50": percentile(0.5),
        "p90": percentile(0.9),
        "p99": percentile(0.99),
        "max": max,
    })
}

/// Returns nanoseconds in milliseconds.
pub(crate) fn millis(nanoseconds: u64) -> f64 {
    number(nanoseconds) / 1e6
}

#[expect(clippy::cast_precision_loss, reason = "counts and durations of tests are far below 2^53")]
fn number(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(arrived: u64, first: u64, last: u64, tokens: u64, outcome: Outcome) -> Record {
        Record {
            connection: 1,
            accepted: 0,
            arrived,
            first,
            last,
            tokens,
            outcome,
            streamed: true,
            asked: tokens,
            served: arrived,
        }
    }

    #[test]
    fn only_requests_that_were_answered_to_the_end_count() {
        let mut truth = Truth::default();
        truth.record(record(0, 50_000_000, 80_000_000, 4, Outcome::Done));
        truth.record(record(0, 70_000_000, 80_000_000, 2, Outcome::Done));
        truth.record(record(0, 1, 2, 2, Outcome::Error));
        truth.gap(20_000_000, 2);
        truth.gap(30_000_000, 1);
        let stats = truth.stats(Now { active: 0, waiting: 0 });
        assert_eq!(
            (stats["requests"].as_u64(), stats["failed"].as_u64(), stats["tokens"].as_u64()),
            (Some(2), Some(1), Some(6))
        );
        for (metric, value, expected) in [
            ("ttft_ms", "mean", 60.0),
            ("ttft_ms", "p50", 60.0),
            ("ttft_ms", "p99", 69.8),
            ("tpot_ms", "max", 10.0),
            ("itl_ms", "n", 3.0),
            ("itl_ms", "p50", 10.0),
            ("icl_ms", "mean", 25.0),
            ("e2el_ms", "mean", 80.0),
        ] {
            let found = stats[metric][value].as_f64().unwrap();
            assert!((found - expected).abs() < 1e-9, "{metric} {value}: {found}");
        }
        assert_eq!(truth.log().lines().nth(2), Some("1,0,0,1,2,2,error,2,0"));
    }
}
