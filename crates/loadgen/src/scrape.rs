//! Looking at a server's own metrics while it is under load, on a thread of its own.

use std::collections::BTreeMap;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use isobench_schema::record::ServerSample;

use crate::clock::Clock;
use crate::get::ask_blocking;
use crate::target::Endpoint;

/// Where servers show their metrics.
const ROUTE: &str = "/metrics";
/// How long one look may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// Looks that bring nothing, one after the other, after which the server isn't asked any more.
const MOST_FAILURES: u32 = 3;

/// What the names of the metrics that are kept hold: what is running and waiting, how full the cache is, how often it was
/// hit, what was preempted, and how speculation did.
const KEPT: &[&str] = &[
    "num_requests_running",
    "num_requests_waiting",
    "num_requests_swapped",
    "num_running_reqs",
    "num_queue_reqs",
    "cache_usage",
    "token_usage",
    "prefix_cache_queries",
    "prefix_cache_hits",
    "cache_hit_rate",
    "num_preemptions",
    "spec_decode",
    "requests_processing",
    "requests_deferred",
];
/// Parts of a histogram, which say nothing at one moment.
const LEFT_OUT: &[&str] = &["_bucket", "_created"];

/// A thread that looks at a server's metrics again and again.
#[derive(Debug)]
pub struct Scraper {
    stop: mpsc::Sender<()>,
    thread: JoinHandle<Vec<ServerSample>>,
}

impl Scraper {
    /// Looks at the metrics of `endpoint` once, so that there is a look from before whatever follows, and then every
    /// `interval`; the times are of `clock`. The first look may take two seconds.
    ///
    /// # Errors
    /// Returns an error if there is no thread to be had.
    pub fn start(endpoint: Endpoint, interval: Duration, clock: Clock) -> std::io::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let mut samples: Vec<ServerSample> = look(&endpoint, &clock).into_iter().collect();
        let mut failures = u32::from(samples.is_empty());
        let body = move || loop {
            // Without metrics there is nothing to do but wait to be stopped.
            let pause = if failures < MOST_FAILURES { interval } else { Duration::MAX };
            let is_stopped = stopped.recv_timeout(pause) != Err(RecvTimeoutError::Timeout);
            if failures < MOST_FAILURES {
                match look(&endpoint, &clock) {
                    Some(sample) => {
                        samples.push(sample);
                        failures = 0;
                    }
                    None => failures += 1,
                }
            }
            if is_stopped {
                return samples;
            }
        };
        let thread = std::thread::Builder::new().name("load-metrics".to_owned()).spawn(body)?;
        Ok(Self { stop, thread })
    }

    /// Looks once more, so that there is a look from after all that was before, and stops; returns what was seen.
    pub fn stop(self) -> Vec<ServerSample> {
        drop(self.stop);
        self.thread.join().unwrap_or_default()
    }
}

fn look(endpoint: &Endpoint, clock: &Clock) -> Option<ServerSample> {
    let reply = ask_blocking("GET", endpoint, ROUTE, PATIENCE).ok().filter(|reply| reply.status == 200)?;
    let values = values(&String::from_utf8_lossy(&reply.body));
    (!values.is_empty()).then(|| ServerSample { at_ns: clock.now_ns(), values })
}

/// Returns the values of the metrics that are kept, by the names of their families, summed over labels.
///
/// The format is Prometheus' text exposition format 0.0.4: `name{labels} value [timestamp]` in each line that is no comment.
fn values(text: &str) -> BTreeMap<String, f64> {
    let mut values = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let Some((name, value)) = sample(line) else { continue };
        let is_kept = KEPT.iter().any(|kept| name.contains(kept)) && !LEFT_OUT.iter().any(|end| name.ends_with(end));
        if is_kept && value.is_finite() {
            *values.entry(name.to_owned()).or_insert(0.0) += value;
        }
    }
    values
}

/// Splits a line into the name and the value. A label's value may hold anything but a bare quote.
fn sample(line: &str) -> Option<(&str, f64)> {
    let name_end = line.find(['{', ' ', '\t'])?;
    let (name, rest) = line.split_at(name_end);
    let rest = if rest.starts_with('{') { after_labels(rest)? } else { rest };
    Some((name, rest.split_whitespace().next()?.parse().ok()?))
}

/// Returns what comes after the labels' closing brace.
fn after_labels(text: &str) -> Option<&str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            '}' if !is_quoted => return text.get(at + 1..),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use super::*;

    #[test]
    fn values_of_a_family_are_summed_over_labels() {
        let text = "# HELP vllm:num_requests_running x\n# TYPE vllm:num_requests_running gauge\n\
                    vllm:num_requests_running{engine=\"0\",model_name=\"a}b\\\"\"} 3.0\n\
                    vllm:num_requests_running{engine=\"1\"} 4 1700000000\n\
                    vllm:kv_cache_usage_perc 0.25\nvllm:prefix_cache_hits_total{} 7\n\
                    vllm:prefix_cache_hits_created{} 1.7e9\nother_metric 9\nvllm:num_requests_waiting NaN\nbroken{x=\"\n";
        let expected = [
            ("vllm:kv_cache_usage_perc", 0.25),
            ("vllm:num_requests_running", 7.0),
            ("vllm:prefix_cache_hits_total", 7.0),
        ];
        assert_eq!(values(text), expected.map(|(name, value)| (name.to_owned(), value)).into());
    }

    #[test]
    fn there_is_a_look_before_and_one_after() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = Endpoint::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        let answer = |hits: u32| {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = [0; 1_024];
            let read = stream.read(&mut asked).unwrap();
            assert!(asked[..read].starts_with(b"GET /metrics"), "{asked:?}");
            let body = format!("vllm:prefix_cache_hits_total {hits}\n");
            let length = body.len();
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}").unwrap();
        };
        let (before, between, after) = std::thread::scope(|scope| {
            scope.spawn(|| (1..=2).for_each(answer));
            let clock = Clock::start();
            let scraper = Scraper::start(endpoint, Duration::from_hours(1), clock).unwrap();
            let between = clock.now_ns();
            let samples = scraper.stop();
            let [before, after] = samples.try_into().unwrap();
            (before, between, after)
        });
        let hits = |sample: &ServerSample| sample.values.values().copied().collect::<Vec<f64>>();
        assert_eq!((hits(&before), hits(&after)), (vec![1.0], vec![2.0]));
        assert!(before.at_ns <= between && between <= after.at_ns);
    }

    #[test]
    fn a_server_without_metrics_is_left_alone() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = Endpoint::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        drop(listener);
        let scraper = Scraper::start(endpoint, Duration::from_millis(1), Clock::start()).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(scraper.stop(), []);
    }
}
