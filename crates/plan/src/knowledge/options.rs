//! The options of each benchmark and server program, by version: when each came, changed and went.

use std::sync::OnceLock;

use isobench_schema::ids::Moment;
use isobench_schema::tool::Tool;
use serde::Deserialize;

use super::{Window, table};

/// Names a table of the folder `knowledge/options/` and includes its text.
macro_rules! embedded {
    ($name:literal) => {
        (concat!("options/", $name, ".toml"), include_str!(concat!("../../../../knowledge/options/", $name, ".toml")))
    };
}

/// How many values an option takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Takes {
    /// None: it is a switch.
    Nothing,
    /// None, and `--no-NAME` switches it off (`BooleanOptionalAction`).
    NothingOrNo,
    /// One.
    One,
    /// One or none (`nargs="?"`).
    AtMostOne,
    /// One or more (`nargs="+"`).
    OneOrMore,
    /// Any number (`nargs="*"`).
    Any,
}

/// What a value of an option must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ValueKind {
    /// Any text.
    #[default]
    Text,
    /// A whole number.
    Whole,
    /// A number, `inf` and `nan` included.
    Number,
    /// `True` or `False` by Python's `bool()`: every text but the empty one is true.
    Bool,
    /// JSON.
    Json,
}

/// One option of one program in one span of time. An option whose values, default or choices changed has a row for each span.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct OptionSpec {
    /// Its spellings with dashes, the main one first: `["--tensor-parallel-size", "-tp"]`.
    pub names: Vec<String>,
    /// How many values it takes.
    pub takes: Takes,
    /// What a value must be.
    #[serde(default)]
    pub kind: ValueKind,
    /// The values that it allows; empty: any.
    #[serde(default)]
    pub choices: Vec<String>,
    /// The value that it has when it isn't given, as Python writes it; absent: `None` or not known.
    #[serde(default)]
    pub default: Option<String>,
    /// Whether the program refuses to start without it.
    #[serde(default)]
    pub required: bool,
    /// The first moment at which it is so.
    pub since: Moment,
    /// The first moment at which it no longer is; absent: it still is.
    #[serde(default)]
    pub until: Option<Moment>,
    /// The commit that made it so, 12 digits.
    pub since_commit: String,
    /// The commit that ended it, 12 digits.
    #[serde(default)]
    pub until_commit: Option<String>,
    /// The first release that has it so; absent: none is known that has.
    #[serde(default)]
    pub since_release: Option<String>,
    /// The first release that no longer has it so; absent: none is known.
    #[serde(default)]
    pub until_release: Option<String>,
}

/// Where a program is, and when: a script's path, or a module or subcommand.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Place {
    /// The file in the engine's repository.
    pub path: String,
    /// The first moment at which it is there.
    pub since: Moment,
    /// The first moment at which it is gone or only a stub; absent: it still is there.
    #[serde(default)]
    pub until: Option<Moment>,
    /// The commit that made it so, 12 digits.
    pub since_commit: String,
    /// The commit that ended it, 12 digits.
    #[serde(default)]
    pub until_commit: Option<String>,
    /// The first release that has it; absent: none is known that has.
    #[serde(default)]
    pub since_release: Option<String>,
    /// The first release that no longer has it; absent: none is known.
    #[serde(default)]
    pub until_release: Option<String>,
}

/// One program over time.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Program {
    /// The program.
    pub tool: Tool,
    /// Where the rows come from.
    pub source: String,
    /// When the parser takes `_` for `-` in names.
    pub underscores: Vec<Window>,
    /// Where it is.
    pub place: Vec<Place>,
    /// Its options.
    pub option: Vec<OptionSpec>,
}

/// The programs. Their tables are read when they are first asked for, all at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    programs: OnceLock<Vec<Program>>,
}

/// The tables, by file name.
const TABLES: [(&str, &str); 13] = [
    embedded!("benchmark-serving"),
    embedded!("benchmark-throughput"),
    embedded!("benchmark-latency"),
    embedded!("benchmark-prefix-caching"),
    embedded!("vllm-bench-serve"),
    embedded!("vllm-bench-throughput"),
    embedded!("vllm-bench-latency"),
    embedded!("vllm-serve"),
    embedded!("sglang-bench-serving"),
    embedded!("sglang-bench-one-batch"),
    embedded!("sglang-bench-one-batch-server"),
    embedded!("sglang-bench-offline-throughput"),
    embedded!("sglang-launch-server"),
];

impl Options {
    pub(super) fn embedded() -> Self {
        Self { programs: OnceLock::new() }
    }

    /// Returns every program.
    pub fn programs(&self) -> &[Program] {
        self.programs.get_or_init(|| TABLES.iter().map(|(name, text)| table(name, text)).collect())
    }

    /// Returns a program.
    pub fn program(&self, tool: Tool) -> Option<&Program> {
        self.programs().iter().find(|program| program.tool == tool)
    }
}

impl Program {
    /// Returns the options that the program has at a moment.
    pub fn options_at<'p>(&'p self, moment: &Moment) -> impl Iterator<Item = &'p OptionSpec> {
        let moment = moment.clone();
        self.option.iter().filter(move |option| holds(&option.since, option.until.as_ref(), &moment))
    }

    /// Returns where the program is at a moment; nowhere if it doesn't exist then.
    pub fn places_at<'p>(&'p self, moment: &Moment) -> impl Iterator<Item = &'p Place> {
        let moment = moment.clone();
        self.place.iter().filter(move |place| holds(&place.since, place.until.as_ref(), &moment))
    }

    /// Returns whether the program's parser takes `_` for `-` at a moment.
    pub fn underscores_at(&self, moment: &Moment) -> bool {
        self.underscores.iter().any(|window| window.holds(moment))
    }
}

fn holds(since: &Moment, until: Option<&Moment>, moment: &Moment) -> bool {
    since <= moment && until.is_none_or(|until| moment < until)
}
