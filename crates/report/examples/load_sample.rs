//! Writes the pages of a sample load to the standard output, to be looked at: `html`, `closed`, `paired`, `client-bound`, `searched`, `sweep` for a
//! browser, `terminal` for a terminal, and `live` draws some seconds of the live view.

#[path = "../tests/report/load_sample.rs"]
mod load_sample;

use std::io::{self, Write as _};
use std::thread;
use std::time::Duration;

use isobench_report::html::Options;
use isobench_report::load::html::{SweepLevel, page, sweep_page};
use isobench_report::load::live::{LiveLatency, LiveSnapshot, Painter, render};
use isobench_report::load::terminal;
use isobench_report::terminal::Style;
use isobench_schema::load_result::LoadResult;

/// How many frames the live view has, and how far they are apart.
const FRAMES: u32 = 60;
const FRAME: Duration = Duration::from_millis(200);

fn main() -> io::Result<()> {
    let options = Options { title: String::new(), note: Some("a sample".to_owned()) };
    let style = Style { width: 100, color: true };
    let text = match std::env::args().nth(1).as_deref() {
        None | Some("html") => page(&load_sample::result(), &options),
        Some("paired") => page(&load_sample::paired(), &options),
        Some("client-bound") => page(&load_sample::client_bound(), &options),
        Some("closed") => page(&load_sample::closed(), &options),
        Some("searched") => page(&load_sample::searched(), &options),
        Some("sweep") => sweep(&options),
        Some("terminal") => {
            [load_sample::result(), load_sample::client_bound(), load_sample::paired(), load_sample::searched()]
                .iter()
                .map(|result| terminal::summary(result, style) + "\n")
                .collect()
        }
        Some("live") => return live(),
        Some(name) => return Err(io::Error::other(format!("no sample is called `{name}`"))),
    };
    io::stdout().write_all(text.as_bytes())
}

fn sweep(options: &Options) -> String {
    let at = |level: f64| {
        let mut result = load_sample::result();
        let slower = 1.0 + (level / 40.0).powi(3);
        result.metrics.insert("output_throughput".to_owned(), 100.0 * level / (1.0 + level / 60.0));
        result.metrics.insert("median_ttft_ms".to_owned(), 50.0 * slower);
        result.metrics.insert("p99_ttft_ms".to_owned(), 70.0 * slower);
        (level, result)
    };
    let results: Vec<(f64, LoadResult)> = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0].map(at).into();
    let levels: Vec<SweepLevel<'_>> =
        results.iter().map(|(level, result)| SweepLevel { name: "concurrency", level: *level, result }).collect();
    sweep_page(&load_sample::search(), &levels, options)
}

fn live() -> io::Result<()> {
    let mut painter = Painter::default();
    for frame in 0..FRAMES {
        let now = f64::from(frame) / 5.0;
        let wave =
            |phase: f64| (0..frame.min(60)).map(|at| Some(50.0 + 20.0 * (f64::from(at) / 5.0 + phase).sin())).collect();
        let snapshot = LiveSnapshot {
            phase: "window".to_owned(),
            elapsed_s: now,
            expected_s: Some(12.0),
            sent: u64::from(frame * 4),
            completed: u64::from(frame * 4),
            in_flight: 8,
            asked_per_s: Some(20.0),
            sent_per_s: 20.0 + now.sin(),
            completed_per_s: 19.7,
            output_tok_per_s: 1260.0,
            ttft: LiveLatency { p50_ms: Some(52.0 + now), p99_ms: Some(77.0 + now), history_ms: wave(0.0) },
            itl: LiveLatency { p50_ms: Some(10.0), p99_ms: Some(12.0), history_ms: wave(1.0) },
            failures: if frame > 30 { vec![("http-error".to_owned(), 3)] } else { Vec::new() },
            lag_p99_ms: Some(0.3),
            busy_share: Some(0.2),
            ..LiveSnapshot::default()
        };
        let columns = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok()).unwrap_or(100);
        let text = painter.frame(&render(&snapshot, columns, 20), columns);
        io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush())?;
        thread::sleep(FRAME);
    }
    Ok(())
}
