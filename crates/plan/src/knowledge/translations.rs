//! How an option that a program refuses at one moment is said to another program, or at another moment.

use std::collections::BTreeMap;

use isobench_schema::environment::EngineKind;
use isobench_schema::ids::Moment;
use isobench_schema::tool::{Tool, ToolKind};
use serde::Deserialize;

use super::table;

/// The side of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// The benchmark program.
    Client,
    /// The server.
    Server,
}

/// One way to say an option. It counts only where the option is refused and what it becomes is taken.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Translation {
    /// The engine.
    pub engine: EngineKind,
    /// The option that is refused.
    pub from: String,
    /// The kinds of benchmark on whose programs it counts; empty: every kind.
    #[serde(default)]
    pub kinds: Vec<ToolKind>,
    /// Only with this value.
    #[serde(default)]
    pub value: Option<String>,
    /// Only if these options are given with these values.
    #[serde(default)]
    pub when: BTreeMap<String, String>,
    /// Only if none of these options is given.
    #[serde(default)]
    pub unless: Vec<String>,
    /// The option that it becomes.
    pub to: String,
    /// Whose option that is.
    pub side: Side,
    /// The value that it gets; absent: the same.
    #[serde(default)]
    pub to_value: Option<String>,
    /// Values that are called otherwise there.
    #[serde(default)]
    pub values: BTreeMap<String, String>,
    /// The option is a JSON object, and the value is this key's in it.
    #[serde(default)]
    pub json_key: Option<String>,
    /// The value is a JSON object, and these of its keys are options of their own there; the option that it becomes is one of
    /// them.
    #[serde(default)]
    pub spread: BTreeMap<String, String>,
    /// Options of the same side that it needs beside it, added unless they are given; an empty value is a switch.
    #[serde(default)]
    pub with: BTreeMap<String, String>,
    /// Why it is the same.
    pub reason: String,
    /// Where that is known from.
    pub source: String,
}

/// An option that a program refuses and needs no more: what it asks for is so without it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Superseded {
    /// The engine.
    pub engine: EngineKind,
    /// The option.
    pub option: String,
    /// The kinds of benchmark on whose programs it counts; empty: every kind.
    #[serde(default)]
    pub kinds: Vec<ToolKind>,
    /// Only with one of these values; empty: with any.
    #[serde(default)]
    pub values: Vec<String>,
    /// The first moment at which it is so; absent: from the beginning.
    #[serde(default)]
    pub since: Option<Moment>,
    /// The first moment at which it no longer is; absent: it still is.
    #[serde(default)]
    pub until: Option<Moment>,
    /// Only if one of these options is given; empty: always.
    #[serde(default)]
    pub needs: Vec<String>,
    /// Why it is so.
    pub reason: String,
    /// Where that is known from.
    pub source: String,
}

/// A switch that an offline benchmark gives its engine by itself.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Own {
    /// The programs.
    pub tools: Vec<Tool>,
    /// The first moment at which they do; absent: from the beginning.
    #[serde(default)]
    pub since: Option<Moment>,
    /// The first moment at which they no longer do; absent: they still do.
    #[serde(default)]
    pub until: Option<Moment>,
    /// The switch, as the server spells it.
    pub option: String,
    /// Only if none of these options is given.
    #[serde(default)]
    pub unless: Vec<String>,
    /// Why the server must be told.
    pub reason: String,
    /// Where that is known from.
    pub source: String,
}

/// The table `knowledge/translations.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Translations {
    /// In the order in which they are tried.
    #[serde(default)]
    pub translation: Vec<Translation>,
    /// Options that are needed no more.
    #[serde(default)]
    pub superseded: Vec<Superseded>,
    /// What offline benchmarks tell their engine by themselves.
    #[serde(default)]
    pub own: Vec<Own>,
}

impl Translations {
    pub(super) fn embedded() -> Self {
        table("translations.toml", include_str!("../../../../knowledge/translations.toml"))
    }
}
