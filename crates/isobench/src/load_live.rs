//! What is shown while a load is under way: sketches of the last minute, drawn by a thread of its own.
//!
//! The measuring threads only hand over finished requests; nothing here is on their way, and nothing here is reported.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use isobench_analysis::measure::RequestNumbers;
use isobench_report::load::live::{HISTORY_S, LiveLatency, LiveSnapshot, Painter, plain_line, render};
use isobench_schema::record::RequestRecord;

use crate::terminal::Terminal;

/// How often the view is drawn on a terminal, and how often a line is written elsewhere.
const FRAME: Duration = Duration::from_millis(200);
const LINE: Duration = Duration::from_secs(10);
/// Over how many seconds rates and percentiles of the moment are.
const MOMENT_S: u64 = 5;
/// The longest latency of a sketch, in microseconds, and its precision in digits.
const LONGEST_US: u64 = 3_600_000_000;
const DIGITS: u8 = 2;

/// What came in one second.
#[derive(Debug, Clone)]
struct Second {
    /// Seconds since the phase began.
    at: u64,
    completed: u32,
    tokens: u64,
    ttft_us: Histogram<u32>,
    itl_us: Histogram<u32>,
    /// Requests sent since the phase began, as far as was told in this second.
    sent: u64,
}

impl Second {
    fn new(at: u64, sent: u64) -> Self {
        let sketch = || Histogram::new_with_bounds(1, LONGEST_US, DIGITS).expect("the bounds and digits are allowed");
        Self { at, completed: 0, tokens: 0, ttft_us: sketch(), itl_us: sketch(), sent }
    }
}

/// What is known of a phase before it begins.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Expected {
    /// What it is called.
    pub(crate) phase: String,
    /// How long it is to be, in seconds, where that is known.
    pub(crate) seconds: Option<f64>,
    /// How many requests it has, where that is known.
    pub(crate) requests: Option<u64>,
    /// The rate asked for, in requests per second, in an open loop.
    pub(crate) rate_per_s: Option<f64>,
}

/// What was seen of a load so far.
#[derive(Debug)]
pub(crate) struct LoadMeter {
    expected: Expected,
    began: Instant,
    completed: u64,
    in_flight: u64,
    failures: BTreeMap<String, u64>,
    lag_us: Histogram<u32>,
    seconds: VecDeque<Second>,
    busy_share: Option<f64>,
}

impl LoadMeter {
    /// Returns a meter of a phase that begins now.
    pub(crate) fn new(expected: Expected, now: Instant) -> Self {
        let lag_us = Histogram::new_with_bounds(1, LONGEST_US, DIGITS).expect("the bounds and digits are allowed");
        Self {
            expected,
            began: now,
            completed: 0,
            in_flight: 0,
            failures: BTreeMap::new(),
            lag_us,
            seconds: VecDeque::new(),
            busy_share: None,
        }
    }

    /// Takes in a request that ended.
    pub(crate) fn record(&mut self, record: &RequestRecord, now: Instant) {
        if let Some(lag_ns) = record.lag_ns {
            self.lag_us.saturating_record((lag_ns / 1000).max(1));
        }
        if let Some(failure) = &record.failure {
            *self.failures.entry(failure.class.to_string()).or_default() += 1;
            return;
        }
        self.completed += 1;
        let numbers = RequestNumbers::of(record);
        let second = self.second(now);
        second.completed += 1;
        second.tokens += numbers.output_tokens;
        if let Some(us) = numbers.ttft_ms.and_then(microseconds) {
            second.ttft_us.saturating_record(us);
        }
        let mut before: Option<u64> = None;
        for (at, tokens) in record.chunk_ns.iter().zip(&record.chunk_tokens).filter(|(_, tokens)| **tokens > 0) {
            if let Some(earlier) = before.replace(*at) {
                let gap_us = (at.saturating_sub(earlier) / 1000 / u64::from(*tokens)).max(1);
                for _ in 0..*tokens {
                    second.itl_us.saturating_record(gap_us);
                }
            }
        }
    }

    /// Takes in how busy the busiest thread is, from 0 to 1.
    pub(crate) fn note_busy(&mut self, share: f64) {
        self.busy_share = Some(share);
    }

    /// Takes in how many requests are under way.
    pub(crate) fn note_in_flight(&mut self, in_flight: u64, now: Instant) {
        self.in_flight = in_flight;
        let sent = self.sent();
        self.second(now).sent = sent;
    }

    fn failed(&self) -> u64 {
        self.failures.values().sum()
    }

    fn sent(&self) -> u64 {
        self.completed + self.failed() + self.in_flight
    }

    /// Returns the second that `now` is in; those that are older than a minute go.
    fn second(&mut self, now: Instant) -> &mut Second {
        let at = now.saturating_duration_since(self.began).as_secs();
        if self.seconds.back().is_none_or(|last| last.at < at) {
            let sent = self.seconds.back().map_or(0, |last| last.sent);
            self.seconds.push_back(Second::new(at, sent));
        }
        while self.seconds.len() > HISTORY_S {
            self.seconds.pop_front();
        }
        self.seconds.back_mut().expect("one was pushed where there was none")
    }

    /// Returns what the load looks like at a moment.
    pub(crate) fn snapshot(&self, now: Instant) -> LiveSnapshot {
        let elapsed = now.saturating_duration_since(self.began);
        let from = elapsed.as_secs().saturating_sub(MOMENT_S);
        let moment: Vec<&Second> = self.seconds.iter().filter(|second| second.at >= from).collect();
        let over_s = elapsed.as_secs_f64().clamp(1e-3, real(MOMENT_S));
        let before = self.seconds.iter().rfind(|second| second.at < from).map_or(0, |second| second.sent);
        let sent_now = moment.last().map_or(before, |second| second.sent.max(before));
        LiveSnapshot {
            phase: self.expected.phase.clone(),
            elapsed_s: elapsed.as_secs_f64(),
            expected_s: self.expected.seconds,
            asked: self.expected.requests,
            sent: self.sent(),
            completed: self.completed,
            in_flight: self.in_flight,
            asked_per_s: self.expected.rate_per_s,
            sent_per_s: real(sent_now - before) / over_s,
            completed_per_s: real(moment.iter().map(|second| u64::from(second.completed)).sum()) / over_s,
            output_tok_per_s: real(moment.iter().map(|second| second.tokens).sum()) / over_s,
            ttft: self.latency(&moment, elapsed, |second| &second.ttft_us),
            itl: self.latency(&moment, elapsed, |second| &second.itl_us),
            failures: self.failures.iter().map(|(kind, count)| (kind.clone(), *count)).collect(),
            lag_p99_ms: quantile(&self.lag_us, 0.99),
            busy_share: self.busy_share,
        }
    }

    fn latency(&self, moment: &[&Second], elapsed: Duration, of: fn(&Second) -> &Histogram<u32>) -> LiveLatency {
        let mut sketch = Histogram::new_with_bounds(1, LONGEST_US, DIGITS).expect("the bounds and digits are allowed");
        for second in moment {
            // Both have the same bounds, so that nothing can lie outside.
            let _ = sketch.add(of(second));
        }
        let first = elapsed.as_secs().saturating_sub(HISTORY_S as u64 - 1);
        let history = (first..=elapsed.as_secs()).map(|at| {
            let second = self.seconds.iter().find(|second| second.at == at)?;
            quantile(of(second), 0.5)
        });
        LiveLatency { p50_ms: quantile(&sketch, 0.5), p99_ms: quantile(&sketch, 0.99), history_ms: history.collect() }
    }
}

/// Returns a quantile of a sketch in milliseconds.
fn quantile(sketch: &Histogram<u32>, at: f64) -> Option<f64> {
    (!sketch.is_empty()).then(|| real(sketch.value_at_quantile(at)) / 1000.0)
}

/// Returns milliseconds as whole microseconds of at least 1.
fn microseconds(ms: f64) -> Option<u64> {
    u64::try_from(Duration::try_from_secs_f64(ms / 1000.0).ok()?.as_micros().max(1)).ok()
}

#[expect(clippy::cast_precision_loss, reason = "what is shown has four digits")]
fn real(count: u64) -> f64 {
    count as f64
}

/// Shows a meter until it is dropped: a view on a terminal, a line now and then elsewhere.
pub(crate) struct LoadView {
    closing: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl LoadView {
    /// Begins to show a meter.
    pub(crate) fn start(terminal: Terminal, meter: Arc<Mutex<LoadMeter>>) -> Self {
        let closing = Arc::new(AtomicBool::new(false));
        let thread = thread::spawn({
            let closing = Arc::clone(&closing);
            move || {
                if terminal.is_live() { draw(terminal, &meter, &closing) } else { lines(terminal, &meter, &closing) }
            }
        });
        Self { closing, thread: Some(thread) }
    }
}

impl Drop for LoadView {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

/// Draws frames until `closing`, then takes the last one away.
fn draw(terminal: Terminal, meter: &Mutex<LoadMeter>, closing: &AtomicBool) {
    let mut painter = Painter::default();
    while !closing.load(Ordering::Relaxed) {
        let Ok(snapshot) = meter.lock().map(|meter| meter.snapshot(Instant::now())) else { return };
        let (width, height) = terminal.size();
        terminal.draw(&painter.frame(&render(&snapshot, width, height.saturating_sub(1)), width));
        thread::park_timeout(FRAME);
    }
    terminal.draw(&painter.clear(terminal.size().0));
}

/// Writes a line now and then until `closing`.
fn lines(terminal: Terminal, meter: &Mutex<LoadMeter>, closing: &AtomicBool) {
    let mut next = Instant::now() + LINE;
    while !closing.load(Ordering::Relaxed) {
        thread::park_timeout(next.saturating_duration_since(Instant::now()));
        if Instant::now() >= next {
            let Ok(line) = meter.lock().map(|meter| plain_line(&meter.snapshot(Instant::now()))) else { return };
            terminal.status(&line);
            next += LINE;
        }
    }
}

#[cfg(test)]
mod tests {
    use isobench_schema::failure::FailureClass;
    use isobench_schema::record::{Phase, RequestFailure};

    use super::*;

    fn record(tokens: &[u32]) -> RequestRecord {
        let mut record = RequestRecord::intended(Phase::Measure, 0, 0);
        record.chunk_ns = (0..tokens.len() as u64).map(|place| 50_000_000 + place * 10_000_000).collect();
        record.chunk_tokens = tokens.to_vec();
        record.lag_ns = Some(200_000);
        record
    }

    fn near(found: Option<f64>, expected: f64) {
        assert!(found.is_some_and(|found| (found / expected - 1.0).abs() < 0.02), "{found:?} {expected}");
    }

    #[test]
    fn the_moment_is_of_the_last_seconds_and_the_history_of_a_minute() {
        let began = Instant::now();
        let mut meter = LoadMeter::new(Expected { phase: "window".to_owned(), ..Expected::default() }, began);
        for second in 0..70 {
            let now = began + Duration::from_secs(second);
            for _ in 0..10 {
                meter.record(&record(&[1, 1, 2]), now);
            }
            meter.note_in_flight(8, now);
        }
        let mut failed = record(&[]);
        failed.failure = Some(RequestFailure { class: FailureClass::HttpError, message: String::new() });
        let now = began + Duration::from_millis(69_999);
        meter.record(&failed, now);
        let snapshot = meter.snapshot(now);
        assert_eq!((snapshot.completed, snapshot.in_flight, snapshot.sent), (700, 8, 709));
        near(snapshot.ttft.p50_ms, 50.0);
        near(snapshot.itl.p99_ms, 10.0);
        near(snapshot.itl.p50_ms, 5.0);
        near(snapshot.lag_p99_ms, 0.2);
        assert_eq!(snapshot.failures, [("http-error".to_owned(), 1)]);
        assert_eq!(snapshot.ttft.history_ms.len(), HISTORY_S);
        assert!(
            (snapshot.completed_per_s - 12.0).abs() < 2.1 && (snapshot.sent_per_s - 12.0).abs() < 2.1,
            "{snapshot:?}"
        );
    }

    #[test]
    fn nothing_seen_is_nothing_shown() {
        let now = Instant::now();
        let snapshot = LoadMeter::new(Expected::default(), now).snapshot(now);
        assert_eq!((snapshot.ttft.p50_ms, snapshot.lag_p99_ms, snapshot.busy_share), (None, None, None));
        assert!(snapshot.sent_per_s.abs() < f64::EPSILON);
    }
}
