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

/// A program's table as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Written {
    tool: Tool,
    source: String,
    underscores: Vec<Window>,
    place: Vec<Place>,
    option: Vec<OptionSpec>,
}

impl From<Written> for Program {
    fn from(written: Written) -> Self {
        let Written { tool, source, underscores, place, option } = written;
        let mut program = Self { tool, source, underscores, place, option, spans: Vec::new() };
        program.number();
        program
    }
}

/// One program over time.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "Written")]
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
    /// When each option is there, by its place in the list: from the first number until before the second.
    spans: Vec<(u64, u64)>,
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
        let moment = number(moment);
        let there = move |(_, (since, until)): &(_, &(u64, u64))| (*since..*until).contains(&moment);
        self.option.iter().zip(&self.spans).filter(there).map(|(option, _)| option)
    }

    /// Returns a program without options, for tables made by hand.
    #[cfg(test)]
    pub(crate) fn of(tool: Tool, place: Place) -> Self {
        let source = "made by hand".to_owned();
        Self { tool, source, underscores: Vec::new(), place: vec![place], option: Vec::new(), spans: Vec::new() }
    }

    /// Adds an option.
    #[cfg(test)]
    pub(crate) fn push(&mut self, option: OptionSpec) {
        self.option.push(option);
        self.number();
    }

    /// Puts the options' moments down as numbers: a program has more than a thousand rows, and each command asks for those of
    /// one moment.
    fn number(&mut self) {
        let span = |option: &OptionSpec| (number(&option.since), option.until.as_ref().map_or(u64::MAX, number));
        self.spans = self.option.iter().map(span).collect();
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

/// Returns a moment's digits as a number, which has the same order.
fn number(moment: &Moment) -> u64 {
    let digits = moment.as_str().bytes().filter(u8::is_ascii_digit);
    digits.fold(0, |number, digit| number * 10 + u64::from(digit - b'0'))
}

fn holds(since: &Moment, until: Option<&Moment>, moment: &Moment) -> bool {
    since <= moment && until.is_none_or(|until| moment < until)
}
