//! The table `knowledge/signatures.toml`: what failures look like, what they mean, and what would mend them.

use std::sync::OnceLock;

use isobench_schema::cause::{CauseStage, Confidence, FixKind};
use isobench_schema::ids::Digest;
use serde::Deserialize;

/// How much a signature says about the cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grade {
    /// It is a cause: the earliest one wins.
    #[default]
    Specific,
    /// It is what a cause elsewhere often leads to: it counts if nothing unknown failed before it and no cause shows.
    Symptom,
    /// It only says that something failed before: it counts if nothing else shows.
    Consequence,
    /// It is no failure by itself, but changes what a number means.
    Notice,
}

/// At which level of a logger a signature counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Accepts {
    /// On lines without a level, and on those of errors.
    #[default]
    Errors,
    /// On warnings and notes too, where it counts as a symptom at most.
    Any,
}

/// Who or what can mend it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fixable {
    /// The program that runs the benchmark, with another environment or command.
    Runner,
    /// Whoever wrote the task.
    Task,
    /// Another build.
    Build,
    /// Other hardware, or another driver.
    Hardware,
    /// It depends on the cause, which lies elsewhere.
    Elsewhere,
    /// Nobody.
    Nobody,
}

/// Whether the sample of a signature is a true log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Seen {
    /// At least one sample was written by the real program.
    Real,
    /// Every sample was composed after reports and sources.
    Template,
}

/// What would mend it, with the places of named groups.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FixTemplate {
    /// The kind.
    pub kind: FixKind,
    /// The recipes by id.
    #[serde(default)]
    pub recipes: Vec<String>,
    /// What to do: a lower-case fragment without a full stop.
    pub advice: String,
}

/// One signature.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Signature {
    /// Its name: a letter for the family and a number.
    pub id: String,
    /// The class, one of [`ClassRow`].
    pub class: String,
    /// Where on its way a launch or a client is when it fails so.
    pub stage: CauseStage,
    /// The programs that fail so: `vllm`, `sglang`, or `any`.
    pub engines: Vec<String>,
    /// The versions that do, in words; empty if it isn't bound to versions.
    #[serde(default)]
    pub versions: String,
    /// How much it says about the cause.
    #[serde(default)]
    pub grade: Grade,
    /// At which level of a logger it counts.
    #[serde(default)]
    pub accepts: Accepts,
    /// The role that the file's name must tell, where the line alone can't.
    pub file: Option<FileRole>,
    /// Phrases that must all stand on the line.
    #[serde(default)]
    pub all: Vec<String>,
    /// Phrases of which one must stand on the line.
    #[serde(default)]
    pub any: Vec<String>,
    /// Phrases that must not stand on the line.
    #[serde(default)]
    pub not: Vec<String>,
    /// Of each list, one phrase must have been written before, or stand on the line.
    #[serde(default)]
    pub after: Vec<Vec<String>>,
    /// Phrases that must not have been written before.
    #[serde(default)]
    pub unless_after: Vec<String>,
    /// A pattern that the line must match; its named groups can be used in `cause` and in the advice.
    pub pattern: Option<String>,
    /// The remembered number, one of [`Remembered`], that the group `count` must be less than where it is found.
    pub fewer_than: Option<String>,
    /// Whether the line must be the last of the log, as with a progress bar that stops.
    #[serde(default)]
    pub ending: Ending,
    /// The exit statuses that mean it when no line does; a signal is negative.
    #[serde(default)]
    pub exit: Vec<i32>,
    /// The cause in one sentence: a lower-case fragment without a full stop. `{name}` is a named group, `{name|else}` one that
    /// may be absent.
    pub cause: String,
    /// What would mend it.
    pub fix: FixTemplate,
    /// Who can mend it.
    pub fixable: Fixable,
    /// Whether the same again may well succeed.
    #[serde(default)]
    pub transient: bool,
    /// The signatures that it wins over when both show in one file, since it says the same more exactly.
    #[serde(default)]
    pub over: Vec<String>,
    /// How sure the cause is when this shows.
    #[serde(default = "high")]
    pub confidence: Confidence,
    /// Where this is known from.
    pub source: String,
    /// Whether its sample is a true log.
    pub seen: Seen,
}

/// What wrote a file, as its name tells, in the order of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileRole {
    /// What made the environment.
    Environment,
    /// The server.
    Server,
    /// It can't be told.
    Other,
    /// The benchmark client.
    Client,
    /// What ran it all.
    Harness,
}

impl FileRole {
    /// Returns the role that a file's name tells.
    pub fn of(file: &str) -> Self {
        let name = file.rsplit('/').next().unwrap_or(file).to_ascii_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
        if has(&["environment", "install", "build", "pip", "docker"]) {
            Self::Environment
        } else if has(&["server", "engine"]) {
            Self::Server
        } else if has(&["client", "bench", "load"]) {
            Self::Client
        } else if has(&["harness", "error", "result"]) {
            Self::Harness
        } else {
            Self::Other
        }
    }
}

/// Where in a log a signature's line must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// Anywhere.
    #[default]
    Anywhere,
    /// Nothing may follow.
    Last,
}

fn high() -> Confidence {
    Confidence::High
}

/// A class of causes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ClassRow {
    /// Its name.
    pub id: String,
    /// What it means, in one sentence: a lower-case fragment without a full stop.
    pub meaning: String,
    /// Whom it speaks against when it hits one arm alone.
    pub charge: Charge,
}

/// Whom a class speaks against when it hits one arm alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Charge {
    /// The arm.
    Arm,
    /// The machine, the network, or what ran it all.
    Infrastructure,
}

/// A number that a program printed of what it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Remembered {
    /// Its name.
    pub name: String,
    /// A phrase that stands before it.
    pub phrase: String,
    /// A pattern whose group `value` is the number.
    pub pattern: String,
}

/// The table.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Signatures {
    /// Pieces of words, one of which stands in every phrase: only lines with one are looked at. They must be rare in the logs
    /// of a healthy server.
    pub trigger: Vec<String>,
    /// Phrases that a server writes once it is ready, after which what was written before has been survived.
    pub ready: Vec<String>,
    /// Phrases that a server writes when it is told to end, after which what it writes follows from that.
    pub ending: Vec<String>,
    /// Numbers to remember.
    pub remembered: Vec<Remembered>,
    /// The classes.
    pub class: Vec<ClassRow>,
    /// The signatures. Where two show first on one line and neither is `over` the other, the earlier row wins.
    pub signature: Vec<Signature>,
}

/// The table as it is written.
const TEXT: &str = include_str!("../../../../knowledge/signatures.toml");

/// Returns the digest of the table: a cause that was found with another one is found anew.
pub fn table_digest() -> Digest {
    Digest::of(TEXT.as_bytes())
}

impl Signatures {
    /// Returns the table that is built into the program.
    pub fn embedded() -> &'static Self {
        static EMBEDDED: OnceLock<Signatures> = OnceLock::new();
        EMBEDDED.get_or_init(|| {
            match toml::from_str(TEXT) {
                Ok(table) => table,
                // A test reads the table, so that a program with a broken one is never built.
                Err(error) => unreachable!("knowledge/signatures.toml: {error}"),
            }
        })
    }

    /// Returns the signature of an id.
    pub fn find(&self, id: &str) -> Option<&Signature> {
        self.signature.iter().find(|row| row.id == id)
    }

    /// Returns the class of a name.
    pub fn class(&self, id: &str) -> Option<&ClassRow> {
        self.class.iter().find(|row| row.id == id)
    }
}

/// How many signatures of one stage there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StageCount {
    /// The stage.
    pub stage: CauseStage,
    /// Signatures with a true log.
    pub real: usize,
    /// Signatures with composed samples only.
    pub template: usize,
}

/// Returns every signature, for documents and explanations.
pub fn signatures() -> &'static [Signature] {
    &Signatures::embedded().signature
}

/// Returns every class.
pub fn classes() -> &'static [ClassRow] {
    &Signatures::embedded().class
}

/// Returns how many signatures there are of each stage that has some, in the order of the stages.
pub fn signatures_by_stage() -> Vec<StageCount> {
    let count = |stage, seen| signatures().iter().filter(|row| row.stage == stage && row.seen == seen).count();
    let counts = CauseStage::ALL.iter().map(|&stage| StageCount {
        stage,
        real: count(stage, Seen::Real),
        template: count(stage, Seen::Template),
    });
    counts.filter(|count| count.real + count.template > 0).collect()
}
