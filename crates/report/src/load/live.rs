//! The live view of a load: how far it is and what it sees so far. Pure: numbers come in, text goes out.
//!
//! Its percentiles are sketches of the last seconds and no result: those are computed from the records in the end.

use std::fmt::Write as _;

use crate::number::{self, significant};
use crate::text;

/// How many seconds back the small plots reach.
pub const HISTORY_S: usize = 60;

/// What a load looks like at one moment: plain numbers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LiveSnapshot {
    /// What is being done, such as `warm-up` or `window`.
    pub phase: String,
    /// Since the phase began, in seconds.
    pub elapsed_s: f64,
    /// How long the phase is to be, in seconds, where that is known.
    pub expected_s: Option<f64>,
    /// Requests of the phase, where their number is known.
    pub asked: Option<u64>,
    /// Requests sent.
    pub sent: u64,
    /// Requests that ended well.
    pub completed: u64,
    /// Requests under way.
    pub in_flight: u64,
    /// The rate asked for, in requests per second, in an open loop.
    pub asked_per_s: Option<f64>,
    /// Requests sent per second over the last seconds.
    pub sent_per_s: f64,
    /// Requests completed per second over the last seconds.
    pub completed_per_s: f64,
    /// Output tokens per second over the last seconds.
    pub output_tok_per_s: f64,
    /// The time to first token.
    pub ttft: LiveLatency,
    /// The inter-token latency.
    pub itl: LiveLatency,
    /// Failed requests by kind.
    pub failures: Vec<(String, u64)>,
    /// The 99th percentile of the client's own lag, in milliseconds.
    pub lag_p99_ms: Option<f64>,
    /// How busy the client's busiest thread is, from 0 to 1.
    pub busy_share: Option<f64>,
}

/// A latency over the last seconds.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LiveLatency {
    /// The median now, in milliseconds.
    pub p50_ms: Option<f64>,
    /// The 99th percentile now, in milliseconds.
    pub p99_ms: Option<f64>,
    /// The median of each of the last seconds, the oldest first; absent where nothing came.
    pub history_ms: Vec<Option<f64>>,
}

/// From this share on the client is called busy.
const BUSY: f64 = 0.7;
/// The widest that the bar becomes, in columns.
const WIDEST_BAR: usize = 40;
/// The eight heights of a small plot.
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Returns the view as at most `height` lines of at most `width` columns, without control characters.
pub fn render(snapshot: &LiveSnapshot, width: usize, height: usize) -> Vec<String> {
    let mut lines = vec![head(snapshot), bar(snapshot, width)];
    lines.push(rates(snapshot));
    let room = width.saturating_sub(50).min(HISTORY_S);
    lines.push(latency("TTFT", &snapshot.ttft, room));
    lines.push(latency("ITL ", &snapshot.itl, room));
    lines.extend(failures(snapshot));
    lines.extend(client(snapshot));
    lines.truncate(height.max(1));
    lines.iter().map(|line| text::truncate(&text::clean(line), width).into_owned()).collect()
}

/// Returns the view as one line for a log.
pub fn plain_line(snapshot: &LiveSnapshot) -> String {
    let mut parts = vec![head(snapshot), rates(snapshot)];
    for (name, latency) in [("TTFT", &snapshot.ttft), ("ITL", &snapshot.itl)] {
        if let (Some(p50), Some(p99)) = (latency.p50_ms, latency.p99_ms) {
            parts.push(format!("{name} p50 {} p99 {} ms", significant(p50), significant(p99)));
        }
    }
    parts.extend(failures(snapshot));
    text::clean(&parts.join(" · "))
}

fn head(snapshot: &LiveSnapshot) -> String {
    let elapsed = number::duration(snapshot.elapsed_s.max(0.0).round());
    // After its time a phase only waits for what is under way.
    let of = snapshot.expected_s.map(|expected| {
        let time = number::duration(expected.round());
        if snapshot.elapsed_s.round() > expected.round() {
            format!(", its {time} are over: waiting for the last answers")
        } else {
            format!(" of {time}")
        }
    });
    let asked = snapshot.asked.map(|asked| format!(" of {asked}")).unwrap_or_default();
    format!("{} · {elapsed}{} · {}{asked} requests done", snapshot.phase, of.unwrap_or_default(), done(snapshot))
}

fn done(snapshot: &LiveSnapshot) -> u64 {
    snapshot.completed + snapshot.failures.iter().map(|(_, count)| count).sum::<u64>()
}

/// How far the phase is: by requests where their number is known, else by time.
fn bar(snapshot: &LiveSnapshot, width: usize) -> String {
    #[expect(clippy::cast_precision_loss, reason = "a bar has few columns")]
    let by_requests = snapshot.asked.filter(|asked| *asked > 0).map(|asked| done(snapshot) as f64 / asked as f64);
    let by_time = snapshot.expected_s.filter(|expected| *expected > 0.0).map(|all| snapshot.elapsed_s / all);
    // Whichever comes first ends the phase.
    let share = by_requests.into_iter().chain(by_time).fold(0.0, f64::max).clamp(0.0, 1.0);
    let room = width.saturating_sub(8).min(WIDEST_BAR);
    let full = (0..room).filter(|place| number::count(place + 1) <= share * number::count(room)).count();
    format!("[{}{}] {:>3.0} %", "█".repeat(full), "░".repeat(room.saturating_sub(full)), (share * 100.0).floor())
}

fn rates(snapshot: &LiveSnapshot) -> String {
    let asked = snapshot.asked_per_s.map(|asked| format!(" (asked {})", significant(asked))).unwrap_or_default();
    format!(
        "sent {}/s{asked} · completed {}/s · in flight {} · {} tok/s",
        significant(snapshot.sent_per_s),
        significant(snapshot.completed_per_s),
        snapshot.in_flight,
        significant(snapshot.output_tok_per_s),
    )
}

fn latency(name: &str, latency: &LiveLatency, room: usize) -> String {
    let value = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), significant);
    let numbers = format!("{name} p50 {:>9} p99 {:>9} ms ", value(latency.p50_ms), value(latency.p99_ms));
    format!("{numbers} {}", sparkline(&latency.history_ms, room))
}

/// Returns the last `room` values as small bars, from 0 to the highest of them, and what the highest one is.
fn sparkline(values: &[Option<f64>], room: usize) -> String {
    let shown = values.get(values.len().saturating_sub(room)..).unwrap_or_default();
    let highest = shown.iter().flatten().copied().filter(|value| value.is_finite()).fold(0.0, f64::max);
    if room == 0 || highest <= 0.0 {
        return String::new();
    }
    let bars = shown.iter().map(|value| {
        let share = value.filter(|value| value.is_finite()).map(|value| (value / highest).clamp(0.0, 1.0));
        // The lowest bar whose top reaches the value.
        share.map_or(' ', |share| {
            let reaches = |place: &usize| number::count(place + 1) >= share * number::count(HEIGHTS.len());
            let place = (0..HEIGHTS.len()).find(reaches);
            place.and_then(|place| HEIGHTS.get(place)).copied().unwrap_or('█')
        })
    });
    let mut out: String = bars.collect();
    write!(out, " ≤{}", significant(highest)).expect("a String takes every write");
    out
}

fn failures(snapshot: &LiveSnapshot) -> Option<String> {
    let all: u64 = snapshot.failures.iter().map(|(_, count)| count).sum();
    let kinds: Vec<String> = snapshot.failures.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
    (all > 0).then(|| format!("failed {all}: {}", kinds.join(", ")))
}

fn client(snapshot: &LiveSnapshot) -> Option<String> {
    let lag = snapshot.lag_p99_ms.map(|lag| format!("lag p99 {} ms", significant(lag)));
    let busy = snapshot.busy_share.map(|share| {
        let warning = if share >= BUSY { ", which is too much" } else { "" };
        format!("busy {:.0} %{warning}", share * 100.0)
    });
    let parts: Vec<String> = lag.into_iter().chain(busy).collect();
    (!parts.is_empty()).then(|| format!("client {}", parts.join(" · ")))
}

/// Draws frames over one another.
///
/// Each line is overwritten and only its rest erased, so that nothing flickers. A terminal that became narrower has broken the
/// lines of the last frame, which is reckoned with.
#[derive(Debug, Clone, Default)]
pub struct Painter {
    /// The columns of each line of the last frame.
    last: Vec<usize>,
}

impl Painter {
    /// Returns the control text that draws `lines` over the last frame on a terminal of so many columns.
    pub fn frame(&mut self, lines: &[String], width: usize) -> String {
        let mut out = self.up(width);
        for line in lines {
            writeln!(out, "{line}\u{1b}[K").expect("a String takes every write");
        }
        out.push_str("\u{1b}[J");
        self.last = lines.iter().map(|line| text::width(line)).collect();
        out
    }

    /// Returns the control text that takes the last frame away.
    pub fn clear(&mut self, width: usize) -> String {
        let out = self.up(width) + "\u{1b}[J";
        self.last.clear();
        out
    }

    fn up(&self, width: usize) -> String {
        let rows: usize = self.last.iter().map(|columns| columns.div_ceil(width.max(1)).max(1)).sum();
        if rows > 0 { format!("\r\u{1b}[{rows}A") } else { String::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_whose_time_is_over_waits_for_its_last_answers() {
        let late = LiveSnapshot { elapsed_s: 34.0, expected_s: Some(30.0), ..snapshot() };
        let line = plain_line(&late);
        assert!(line.contains("are over: waiting for the last answers") && !line.contains(" of 30"), "{line}");
    }

    fn snapshot() -> LiveSnapshot {
        LiveSnapshot {
            phase: "window".to_owned(),
            elapsed_s: 12.3,
            expected_s: Some(30.0),
            sent: 250,
            completed: 240,
            in_flight: 8,
            asked_per_s: Some(20.0),
            sent_per_s: 20.02,
            completed_per_s: 19.5,
            output_tok_per_s: 1248.0,
            ttft: LiveLatency {
                p50_ms: Some(52.3),
                p99_ms: Some(61.0),
                history_ms: (0..12).map(|second| (second != 5).then(|| 40.0 + f64::from(second) * 4.0)).collect(),
            },
            itl: LiveLatency { p50_ms: Some(10.02), p99_ms: Some(10.9), history_ms: vec![Some(10.0); 12] },
            failures: vec![("http-error".to_owned(), 2)],
            lag_p99_ms: Some(0.31),
            busy_share: Some(0.82),
            ..LiveSnapshot::default()
        }
    }

    #[test]
    fn the_view_says_everything_in_few_lines() {
        let lines = render(&snapshot(), 100, 40);
        assert_eq!(
            lines,
            [
                "window · 12 s of 30 s · 242 requests done",
                "[████████████████░░░░░░░░░░░░░░░░░░░░░░░░]  41 %",
                "sent 20.02/s (asked 20.00) · completed 19.50/s · in flight 8 · 1,248 tok/s",
                "TTFT p50     52.30 p99     61.00 ms  ▄▅▅▅▆ ▇▇▇███ ≤84.00",
                "ITL  p50     10.02 p99     10.90 ms  ████████████ ≤10.00",
                "failed 2: http-error 2",
                "client lag p99 0.3100 ms · busy 82 %, which is too much",
            ]
        );
    }

    #[test]
    fn no_line_is_longer_than_the_terminal_and_nothing_is_shown_that_is_not_known() {
        for width in [1, 10, 40, 79, 200] {
            for height in [1, 3, 40] {
                let lines = render(&snapshot(), width, height);
                assert!(
                    lines.len() <= height && lines.iter().all(|line| text::width(line) <= width),
                    "{width} {lines:?}"
                );
            }
        }
        let empty = render(&LiveSnapshot::default(), 80, 40);
        assert!(empty.iter().any(|line| line.contains("p50         –")), "{empty:?}");
        assert!(!empty.iter().any(|line| line.contains("failed") || line.contains("client")), "{empty:?}");
        let nan = LiveLatency { history_ms: vec![Some(f64::NAN), Some(1.0)], ..LiveLatency::default() };
        assert_eq!(sparkline(&nan.history_ms, 10), " █ ≤1.000");
    }

    #[test]
    fn a_log_gets_one_line() {
        let line = plain_line(&snapshot());
        assert!(!line.contains('\n'));
        assert!(line.contains("TTFT p50 52.30 p99 61.00 ms") && line.contains("failed 2: http-error 2"), "{line}");
    }

    #[test]
    fn a_frame_covers_the_last_one_also_after_the_terminal_became_narrower() {
        let mut painter = Painter::default();
        let lines = ["x".repeat(60), "y".to_owned()];
        let first = painter.frame(&lines, 80);
        assert!(!first.contains("\u{1b}[2A"), "there is nothing to cover yet");
        assert!(painter.clone().frame(&lines, 80).starts_with("\r\u{1b}[2A"));
        // Sixty columns are three rows of twenty-five.
        assert!(painter.frame(&lines, 25).starts_with("\r\u{1b}[4A"));
        assert_eq!(painter.clear(80), "\r\u{1b}[2A\u{1b}[J");
        assert_eq!(painter.clear(80), "\u{1b}[J");
    }
}
