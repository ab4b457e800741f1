//! The options of each baseline's programs, read from that revision's own source by `knowledge/tools/options.py at`.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use isobench_schema::environment::EngineKind;
use isobench_schema::ids::{CommitId, Moment};
use isobench_schema::tool::Tool;
use serde::Deserialize;

use super::argparse::{Parser, Spec};

/// All baselines.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baselines {
    specs: Vec<Spec>,
    sets: BTreeMap<String, Vec<usize>>,
    /// The baselines.
    pub revisions: Vec<Baseline>,
}

/// One baseline.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    /// The engine that it is a revision of.
    pub engine: EngineKind,
    /// Its commit.
    pub commit: CommitId,
    /// Its committer date.
    pub moment: Moment,
    /// Its programs.
    pub tools: BTreeMap<String, Program>,
}

/// One program of a baseline.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// The files that build its parser.
    pub places: Vec<String>,
    /// The files that are there but build none.
    #[serde(default)]
    pub stubs: Vec<String>,
    /// Whether its parser takes `_` for `-`.
    #[serde(default)]
    pub underscores: bool,
    #[serde(default)]
    options: Option<String>,
}

impl Baselines {
    /// Returns the stored ones.
    pub fn stored() -> &'static Self {
        static STORED: OnceLock<Baselines> = OnceLock::new();
        STORED.get_or_init(|| serde_json::from_str(include_str!("../fixtures/options-at-baselines.json")).unwrap())
    }

    /// Returns a baseline by the first digits of its commit.
    pub fn find(&self, commit: &str) -> Option<&Baseline> {
        self.revisions.iter().find(|revision| revision.commit.as_str().starts_with(commit))
    }

    /// Returns the options of a program at a baseline; none if it isn't there.
    pub fn options(&self, baseline: &Baseline, tool: Tool) -> Vec<&Spec> {
        let set = baseline.tools.get(tool.as_str()).and_then(|program| program.options.as_ref());
        set.map_or_else(Vec::new, |digest| self.sets[digest].iter().map(|at| &self.specs[*at]).collect())
    }

    /// Returns the parser of a program at a baseline; none if it isn't there.
    pub fn parser(&self, baseline: &Baseline, tool: Tool) -> Option<Parser<'_>> {
        let program = baseline.tools.get(tool.as_str())?;
        program.options.as_ref()?;
        Some(Parser { options: self.options(baseline, tool), underscores: program.underscores, positionals: 0 })
    }
}
