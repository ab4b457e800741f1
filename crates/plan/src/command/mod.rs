//! From a command's text to argument lists that the baseline's own programs take, and to a typed workload.
//!
//! The command is read like a shell reads it ([`words`]).

pub mod fit;
pub mod options;
pub mod recognise;
pub mod words;
pub mod workload;

#[cfg(test)]
mod tables;

use std::collections::BTreeMap;

use isobench_schema::assessment::{Finding, RevisionFacts, Severity};
use isobench_schema::deviation::Deviation;
use isobench_schema::environment::EngineKind;
use isobench_schema::ids::Moment;
use isobench_schema::tool::Tool;

use self::options::Table;
use crate::knowledge::options::OptionSpec;

/// What is asked: the commands of a row, and the revisions that they are for.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The benchmark command, as it stands.
    pub command: &'a str,
    /// The server's command, as it stands.
    pub server_command: Option<&'a str>,
    /// The engine that the commit belongs to.
    pub engine: EngineKind,
    /// The model that the row names beside its commands; it counts only where they name none.
    pub model: Option<&'a str>,
    /// The revision whose programs must take the command.
    pub baseline: &'a RevisionFacts,
    /// The human commit: its benchmark scripts serve both arms where the baseline has none.
    pub human: Option<&'a RevisionFacts>,
}

/// One option of a program, given or added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenOption<'k> {
    /// The option with its values as the command has them, joined by spaces: `--dtype float16`; empty for one that was added.
    pub written: String,
    /// Its name as the program takes it at that moment, such as `--dtype` or `--no-enable-prefix-caching`.
    pub name: String,
    /// Its values.
    pub values: Vec<String>,
    /// What the program's parser says of it; absent for one that it doesn't know.
    pub spec: Option<&'k OptionSpec>,
}

/// A command that was made fit for the programs of one moment.
///
/// Every option of the command stands in exactly one of `client`, `server`, `superseded` and `refused`.
#[derive(Debug, Clone, PartialEq)]
pub struct Fitted<'k> {
    /// The benchmark program that is run in the end.
    pub tool: Tool,
    /// Where it is in the repository, such as `benchmarks/benchmark_serving.py`; empty if it is nowhere.
    pub place: String,
    /// The revision whose program it is: the baseline's, or the human commit's where the baseline has none.
    pub program_of: ProgramOf,
    /// Variables set before the commands.
    pub variables: BTreeMap<String, String>,
    /// Options of the benchmark program.
    pub client: Vec<GivenOption<'k>>,
    /// Options of the server. For an offline benchmark: those of its engine, as the server spells them.
    pub server: Vec<GivenOption<'k>>,
    /// Options without effect here, each with a deviation of the kind `option-superseded`.
    pub superseded: Vec<GivenOption<'k>>,
    /// Options that nothing takes, each with a finding that isn't repaired.
    pub refused: Vec<GivenOption<'k>>,
    /// When the benchmark program is as it is run.
    pub moment: Moment,
    /// Every option that the benchmark program has then, with its default.
    pub options: Table<'k>,
    /// Whether the baseline has a server.
    pub has_server: bool,
    /// What was changed, each with its reason.
    pub repairs: Vec<Deviation>,
    /// What is wrong with the command as it stands, repaired or not.
    pub findings: Vec<Finding>,
}

/// Whose program a command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramOf {
    /// The baseline's.
    Baseline,
    /// The human commit's, for every arm alike.
    Human,
}

/// What became of one option of the commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fate {
    /// The option with its values, as the command has them.
    pub written: String,
    /// What became of it, such as `workload.requests`, `server option --dtype`, or `isobench's own client does this`.
    pub became: String,
}

impl Fitted<'_> {
    /// Returns the model that is served: the server's, or else the benchmark program's.
    pub fn model(&self) -> Option<&str> {
        // The last one counts, as in `argparse`.
        self.server
            .iter()
            .rev()
            .chain(self.client.iter().rev())
            .find(|option| MODEL_OPTIONS.contains(&option.name.as_str()))?
            .values
            .first()
            .map(String::as_str)
    }

    /// Puts another model, and its tokenizer, in the place of the one that the programs are given.
    pub(crate) fn set_model(&mut self, model: &str) {
        let names = |name: &str| MODEL_OPTIONS.contains(&name) || TOKENIZER_OPTIONS.contains(&name);
        for option in self.server.iter_mut().chain(&mut self.client).filter(|option| names(&option.name)) {
            option.values = vec![model.to_owned()];
        }
    }

    /// Gives the server an option, by its name without dashes, in the place of all that `others` name.
    pub(crate) fn set_server(&mut self, others: &[&str], name: &str, value: &str) {
        let is_other = |option: &GivenOption<'_>| others.contains(&option.name.trim_start_matches('-'));
        let place = self.server.iter().position(is_other).unwrap_or(self.server.len());
        let (replaced, mut kept): (Vec<_>, Vec<_>) = self.server.drain(..).partition(is_other);
        let mut replaced = replaced.into_iter();
        let written = replaced.next().map(|option| option.written).unwrap_or_default();
        let option = GivenOption { written, name: format!("--{name}"), values: vec![value.to_owned()], spec: None };
        kept.insert(place, option);
        self.server = kept;
        self.superseded.extend(replaced);
    }

    /// Returns whether every error was repaired.
    pub fn is_fit(&self) -> bool {
        self.findings.iter().all(|finding| finding.severity != Severity::Error || finding.repaired)
    }

    /// Returns the benchmark program's argument list, with the program first; empty if the program is nowhere.
    pub fn client_argv(&self) -> Vec<String> {
        if self.place.is_empty() {
            return Vec::new();
        }
        argv(program(self.tool, &self.place), &self.client)
    }

    /// Returns the server's argument list, with the program first; empty if the baseline has no server.
    pub fn server_argv(&self) -> Vec<String> {
        if !self.has_server {
            return Vec::new();
        }
        argv(program(self.tool.server(), ""), &self.server)
    }
}

/// Names of the option that names the model, in any program.
const MODEL_OPTIONS: [&str; 2] = ["--model", "--model-path"];

/// Returns whether an option names the model.
pub(crate) fn is_model(name: &str) -> bool {
    MODEL_OPTIONS.contains(&name)
}

/// Names of the option that names the tokenizer, in any program.
const TOKENIZER_OPTIONS: [&str; 2] = ["--tokenizer", "--tokenizer-path"];

/// Returns how a program is started.
fn program(tool: Tool, place: &str) -> Vec<String> {
    let words: &[&str] = match tool {
        Tool::BenchmarkServing | Tool::BenchmarkThroughput | Tool::BenchmarkLatency | Tool::BenchmarkPrefixCaching => {
            &["python", place]
        }
        Tool::VllmBenchServe => &["vllm", "bench", "serve"],
        Tool::VllmBenchThroughput => &["vllm", "bench", "throughput"],
        Tool::VllmBenchLatency => &["vllm", "bench", "latency"],
        Tool::VllmServe => &["python", "-m", "vllm.entrypoints.openai.api_server"],
        Tool::SglangBenchServing
        | Tool::SglangBenchOneBatch
        | Tool::SglangBenchOneBatchServer
        | Tool::SglangBenchOfflineThroughput
        | Tool::SglangLaunchServer => &["python", "-m", tool.as_str()],
    };
    words.iter().map(ToString::to_string).collect()
}

/// Appends options to a program.
pub(crate) fn argv(mut program: Vec<String>, options: &[GivenOption<'_>]) -> Vec<String> {
    for option in options {
        match option.values.as_slice() {
            // A value that begins with a dash would be read as an option.
            [value] if value.starts_with('-') => program.push(format!("{}={value}", option.name)),
            values => {
                program.push(option.name.clone());
                program.extend_from_slice(values);
            }
        }
    }
    program
}
