//! Sums up what an engine's own log says of its speed while it runs. It never is a result: it knows neither when the load
//! began nor when it ended.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use memchr::memmem;

use super::value;

/// Finds [`WORD`].
static WORDS: LazyLock<memmem::Finder<'static>> = LazyLock::new(|| memmem::Finder::new(WORD));

/// The word that is in each line of the engine's log that is read.
pub(super) const WORD: &str = "throughput";

/// A value that is logged.
struct Logged {
    /// The words before [`WORD`].
    before: &'static str,
    /// The words between it and the value.
    between: &'static str,
    /// What is behind the value; empty if it may be anything.
    unit: &'static str,
    name: &'static str,
}

/// What is logged by vLLM and by SGLang.
const LOGGED: &[Logged] = &[
    Logged { before: "Avg prompt ", between: ": ", unit: " tokens/s", name: "prompt_throughput" },
    Logged { before: "Avg generation ", between: ": ", unit: " tokens/s", name: "generation_throughput" },
    Logged { before: "gen ", between: " (token/s): ", unit: ",", name: "generation_throughput" },
    Logged { before: "input ", between: " (token/s): ", unit: "", name: "prompt_throughput" },
];

/// The values of one name.
#[derive(Debug, Clone, Copy, Default)]
struct Summary {
    count: u32,
    sum: f64,
    max: f64,
    last: f64,
}

/// What an engine's log says.
#[derive(Debug, Clone, Default)]
pub(super) struct EngineLog {
    summaries: BTreeMap<&'static str, Summary>,
    lines: u32,
    first_line: u64,
}

impl EngineLog {
    /// Reads a line that may be one of the engine's. `is_ended` says whether it is all there.
    pub(super) fn feed(&mut self, line: &[u8], number: u64, is_ended: bool) {
        let mut is_logged = false;
        for place in WORDS.find_iter(line) {
            let Some((before, behind)) = line.split_at_checked(place) else { continue };
            let behind = behind.get(WORD.len()..).unwrap_or_default();
            if let Some((name, value)) = logged(before, behind, is_ended) {
                self.summaries.entry(name).or_default().take(value);
                is_logged = true;
            }
        }
        if is_logged {
            self.first_line = if self.lines == 0 { number } else { self.first_line };
            self.lines = self.lines.saturating_add(1);
        }
    }

    /// Returns the first line that is one of the engine's, if any is.
    pub(super) fn first_line(&self) -> Option<u64> {
        (self.lines > 0).then_some(self.first_line)
    }

    /// Returns the summary by names that no metric has. Rates are in tokens per second.
    pub(super) fn finish(self) -> BTreeMap<String, f64> {
        let mut named = BTreeMap::new();
        for (name, summary) in self.summaries {
            named.insert(format!("engine_log_mean_{name}"), summary.sum / f64::from(summary.count));
            named.insert(format!("engine_log_max_{name}"), summary.max);
            named.insert(format!("engine_log_last_{name}"), summary.last);
        }
        if self.lines > 0 {
            named.insert("engine_log_lines".to_owned(), f64::from(self.lines));
        }
        named
    }
}

/// Returns what stands around one [`WORD`], if it is one of the engine's values and whole.
fn logged(before: &[u8], behind: &[u8], is_ended: bool) -> Option<(&'static str, f64)> {
    let logged = LOGGED
        .iter()
        .find(|logged| before.ends_with(logged.before.as_bytes()) && behind.starts_with(logged.between.as_bytes()))?;
    let value = behind.get(logged.between.len()..)?;
    let end = value.iter().position(|byte| !(byte.is_ascii_digit() || *byte == b'.')).unwrap_or(value.len());
    let (digits, rest) = value.split_at_checked(end)?;
    let is_sure =
        if logged.unit.is_empty() { is_ended || !rest.is_empty() } else { rest.starts_with(logged.unit.as_bytes()) };
    let value = value::number(std::str::from_utf8(digits).ok()?)?;
    is_sure.then_some((logged.name, value))
}

impl Summary {
    fn take(&mut self, value: f64) {
        self.count = self.count.saturating_add(1);
        self.sum += value;
        self.max = self.max.max(value);
        self.last = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_engines_are_summed_up_under_names_of_their_own() {
        let mut log = EngineLog::default();
        log.feed(
            b"INFO 06-13 Avg prompt throughput: 10.0 tokens/s, Avg generation throughput: 51.2 tokens/s, Running: 5",
            3,
            true,
        );
        log.feed(
            b"INFO 06-13 Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 102.4 tokens/s, Run",
            4,
            true,
        );
        log.feed(b"Decode batch. #running-req: 1, gen throughput (token/s): 22.5, #queue-req: 0", 5, true);
        log.feed(b"Avg generation throughput: 9999", 6, true);
        log.feed(b"input throughput (token/s): 7", 7, false);
        assert_eq!(log.first_line(), Some(3));
        let named = log.finish();
        for (name, value) in [
            ("engine_log_lines", 3.0),
            ("engine_log_mean_prompt_throughput", 5.0),
            ("engine_log_max_generation_throughput", 102.4),
            ("engine_log_last_generation_throughput", 22.5),
        ] {
            assert_eq!(named.get(name), Some(&value), "{name}");
        }
    }
}
