//! What benchmark programs send by themselves, over time.

use isobench_schema::ids::Moment;
use isobench_schema::tool::Tool;
use serde::Deserialize;

use super::table;

/// When a program asks the server to go on past the end-of-sequence token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IgnoreEos {
    /// Always.
    Always,
    /// Never.
    Never,
    /// If `--ignore-eos` is given.
    IfAsked,
    /// If `--ignore-eos` is given, or the prompts are random.
    RandomOrAsked,
    /// Unless `--disable-ignore-eos` is given.
    UnlessRefused,
}

/// An interface of a server that isn't OpenAI's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OwnApi {
    /// vLLM's demonstration server, `POST /generate`.
    Demo,
    /// SGLang's own, `POST /generate`.
    Native,
}

/// How a program samples, in one span of time.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Sampling {
    /// The program.
    pub tool: Tool,
    /// The first moment at which it does; absent: from the beginning.
    #[serde(default)]
    pub since: Option<Moment>,
    /// The first moment at which it no longer does; absent: it still does.
    #[serde(default)]
    pub until: Option<Moment>,
    /// The temperature that it sends unless it is told another; absent: none, so that the server's own counts.
    #[serde(default)]
    pub temperature: Option<f64>,
    /// When it goes on past the end of an answer.
    pub ignore_eos: IgnoreEos,
    /// The interface that it speaks with the engine's own backend; absent: OpenAI's, or none.
    #[serde(default)]
    pub api_of: Option<OwnApi>,
    /// Where that is known from.
    pub source: String,
}

/// The ratio at which all random prompts and answers have exactly the length asked, in one span of time.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ExactRatio {
    /// The programs.
    pub tools: Vec<Tool>,
    /// The first moment at which it is so; absent: from the beginning.
    #[serde(default)]
    pub since: Option<Moment>,
    /// The first moment at which it no longer is; absent: it still is.
    #[serde(default)]
    pub until: Option<Moment>,
    /// The ratio.
    pub ratio: f64,
    /// Where that is known from.
    pub source: String,
}

/// The table `knowledge/clients.toml`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Clients {
    /// How programs sample.
    pub sampling: Vec<Sampling>,
    /// At which ratio lengths are exact.
    pub exact_ratio: Vec<ExactRatio>,
}

impl Clients {
    pub(super) fn embedded() -> Self {
        table("clients.toml", include_str!("../../../../knowledge/clients.toml"))
    }

    /// Returns how a program samples at a moment.
    pub fn sampling(&self, tool: Tool, moment: &Moment) -> Option<&Sampling> {
        self.sampling.iter().find(|row| row.tool == tool && holds(row.since.as_ref(), row.until.as_ref(), moment))
    }

    /// Returns the ratio at which a program's random lengths are exact at a moment.
    pub fn exact_ratio(&self, tool: Tool, moment: &Moment) -> Option<f64> {
        let row =
            |row: &&ExactRatio| row.tools.contains(&tool) && holds(row.since.as_ref(), row.until.as_ref(), moment);
        self.exact_ratio.iter().find(row).map(|row| row.ratio)
    }
}

fn holds(since: Option<&Moment>, until: Option<&Moment>, moment: &Moment) -> bool {
    since.is_none_or(|since| since <= moment) && until.is_none_or(|until| moment < until)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_benchmark_samples_one_way_at_every_moment() {
        let clients = Clients::embedded();
        let moment = |text: &str| Moment::new(text).unwrap();
        let edges: BTreeSet<Moment> = clients
            .sampling
            .iter()
            .flat_map(|row| row.since.iter().chain(&row.until))
            .cloned()
            .chain([moment("2023-01-01T00:00:00Z")])
            .collect();
        for tool in Tool::ALL.iter().copied().filter(|tool| tool.server() != *tool) {
            for edge in &edges {
                let rows = clients
                    .sampling
                    .iter()
                    .filter(|row| row.tool == tool && holds(row.since.as_ref(), row.until.as_ref(), edge));
                assert_eq!(rows.count(), 1, "{tool} at {edge}");
            }
        }
    }

    #[test]
    fn the_ratio_of_exact_lengths_changed_its_meaning() {
        let clients = Clients::embedded();
        let at = |text: &str| clients.exact_ratio(Tool::BenchmarkServing, &Moment::new(text).unwrap());
        assert_eq!(at("2025-04-10T22:31:16Z"), Some(1.0));
        assert_eq!(at("2025-04-10T22:31:17Z"), Some(0.0));
    }
}
