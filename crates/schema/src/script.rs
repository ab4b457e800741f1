//! A benchmark script of the engine itself: what is run of it, and what was seen of it from outside.

use serde::{Deserialize, Serialize};

use crate::failure::spelt_enum;
use crate::format::Stored;
use crate::ids::{CommitId, Digest};
use crate::tool::Tool;
use crate::units::Millis;

/// The identity of what a script says of itself: its numbers follow its own definitions, and nobody else has measured them.
pub const SELF_REPORTED: &str = "self-reported/1";

spelt_enum!(
    /// Whose files of a benchmark script are run, for every arm alike.
    ScriptOf {
        /// The baseline's.
        Baseline = "baseline",
        /// The human commit's, which brings the script with it.
        Human = "human",
    }
);

/// A benchmark script of the engine's repository, which holds the engine itself and says what it measured.
///
/// Its files are exported from git for each launch, without any patch; only the engine that it imports is the arm's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// The program, which tells how its output is read.
    pub tool: Tool,
    /// Its file in the repository, such as `benchmarks/benchmark_latency.py`.
    pub path: String,
    /// Whose files are run.
    pub of: ScriptOf,
    /// That commit; absent until the task is planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitId>,
    /// Its arguments, with `{model}` and `{tree}` replaced.
    pub arguments: Vec<String>,
    /// Whether it writes a result file where `--output-json` tells it to; else what it prints is read.
    pub output_json: bool,
}

impl Script {
    /// Every program that can be run so.
    pub const TOOLS: &[Tool] = &[
        Tool::BenchmarkLatency,
        Tool::BenchmarkThroughput,
        Tool::BenchmarkPrefixCaching,
        Tool::VllmBenchLatency,
        Tool::VllmBenchThroughput,
    ];

    /// Returns where a program of [`Script::TOOLS`] usually is.
    pub fn usual_path(tool: Tool) -> Option<&'static str> {
        match tool {
            Tool::BenchmarkLatency => Some("benchmarks/benchmark_latency.py"),
            Tool::BenchmarkThroughput => Some("benchmarks/benchmark_throughput.py"),
            Tool::BenchmarkPrefixCaching => Some("benchmarks/benchmark_prefix_caching.py"),
            Tool::VllmBenchLatency => Some("vllm/benchmarks/latency.py"),
            Tool::VllmBenchThroughput => Some("vllm/benchmarks/throughput.py"),
            Tool::BenchmarkServing
            | Tool::VllmBenchServe
            | Tool::VllmServe
            | Tool::SglangBenchServing
            | Tool::SglangBenchOneBatch
            | Tool::SglangBenchOneBatchServer
            | Tool::SglangBenchOfflineThroughput
            | Tool::SglangLaunchServer => None,
        }
    }

    /// Returns the words of the engine's command that lead to the program, if it is a part of the engine's package and no
    /// file that is started by its path.
    pub fn subcommand(&self) -> Option<[&'static str; 2]> {
        match self.tool {
            Tool::VllmBenchLatency => Some(["bench", "latency"]),
            Tool::VllmBenchThroughput => Some(["bench", "throughput"]),
            Tool::BenchmarkLatency
            | Tool::BenchmarkThroughput
            | Tool::BenchmarkPrefixCaching
            | Tool::BenchmarkServing
            | Tool::VllmBenchServe
            | Tool::VllmServe
            | Tool::SglangBenchServing
            | Tool::SglangBenchOneBatch
            | Tool::SglangBenchOneBatchServer
            | Tool::SglangBenchOfflineThroughput
            | Tool::SglangLaunchServer => None,
        }
    }

    /// Returns the folder of the repository that holds the script and what it imports beside it; empty at the root.
    pub fn folder(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(folder, _)| folder)
    }

    /// Returns who says what was measured, as the comparability key has it.
    pub fn author(&self) -> String {
        let commit = self.commit.as_ref().map_or("an unknown commit", CommitId::short);
        format!("self-reported by `{}` of {commit}", self.path)
    }
}

/// What was seen of a script from outside while it ran. Times are from the start of its process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptSeen {
    /// The commit whose files were run.
    pub commit: CommitId,
    /// The digest of those files, by path.
    pub files: Digest,
    /// How many they are.
    pub count: u64,
    /// From the start of the process until it had ended.
    pub wall_ms: Millis,
    /// Processor time that its processes had taken when they were last looked at, all threads together.
    pub processor_ms: Millis,
    /// The progress bars that it drew, in the order in which they appeared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bars: Vec<SeenBar>,
}

impl Stored for ScriptSeen {
    const NAME: &'static str = "script-seen";
    const VERSION: u32 = 1;
}

/// A progress bar, as it appeared in a log. What it says is a claim; when it said so is not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeenBar {
    /// What stands before the colon, such as `Processed prompts`; empty for a bar without a name.
    pub caption: String,
    /// When it was first seen.
    pub first_ms: Millis,
    /// When it was last seen to have changed.
    pub last_ms: Millis,
    /// How far it came, in percent.
    pub percent: u8,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_that_can_be_run_has_a_usual_place_and_a_folder() {
        for tool in Script::TOOLS {
            let path = Script::usual_path(*tool).unwrap().to_owned();
            let (of, commit, arguments) = (ScriptOf::Baseline, None, Vec::new());
            let script = Script { tool: *tool, path, of, commit, arguments, output_json: true };
            let in_package = script.folder() == "vllm/benchmarks";
            assert_eq!(script.subcommand().is_some(), in_package, "{tool}");
            assert!(in_package || script.folder() == "benchmarks", "{tool}");
        }
        assert_eq!(Script::usual_path(Tool::VllmServe), None);
    }
}
