//! The published figures that can be recomputed.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::PUBLISHED;
use super::rows::ReadTableError;

/// A figure for each project and agent.
type Of<T> = BTreeMap<String, BTreeMap<String, T>>;

/// What was published of the human side against the baseline in one project.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HumanGain {
    pub(super) covered: f64,
    pub(super) of: f64,
    pub(super) min: f64,
    pub(super) median: f64,
    pub(super) max: f64,
    pub(super) over_5pct: f64,
}

/// The figures as they are written.
#[derive(Debug, Clone, Default, Deserialize)]
struct Written {
    #[serde(default)]
    published_quadrants: Of<[f64; 4]>,
    #[serde(default)]
    published_true_success_pct: Of<f64>,
    #[serde(default)]
    published_hard_success_pct_website: Of<f64>,
    #[serde(default)]
    published_gap_pp_website_vllm: BTreeMap<String, f64>,
    #[serde(default)]
    published_correct_target_pct_website: Of<f64>,
    #[serde(default)]
    published_approach_counts_website: Of<BTreeMap<String, f64>>,
    #[serde(default)]
    audit_wilson95_true_success_pct: Of<[f64; 2]>,
    #[serde(default)]
    audit_same_only_true_success_pct: Of<f64>,
    #[serde(default)]
    audit_mcnemar: Vec<(String, String, String, f64, f64, f64)>,
    #[serde(default)]
    audit_human_vs_baseline: BTreeMap<String, HumanGain>,
    #[serde(flatten)]
    others: BTreeMap<String, Value>,
}

/// The keys that say what the figures are about, and are no tables.
const ABOUT: [&str; 3] = ["note", "tasks", "threshold_pct"];

/// The figures.
#[derive(Debug, Clone, Default)]
pub(super) struct Published {
    written: Written,
    /// The names of the tables that can't be recomputed.
    pub(super) others: Vec<String>,
}

pub(super) fn read(bytes: &[u8]) -> Result<Published, ReadTableError> {
    let written: Written =
        serde_json::from_slice(bytes).map_err(|source| ReadTableError::Json { file: PUBLISHED, source })?;
    let others = written.others.keys().filter(|key| !ABOUT.contains(&key.as_str())).cloned().collect();
    Ok(Published { written, others })
}

fn of<T: Clone>(table: &Of<T>, project: &str, agent: &str) -> Option<T> {
    table.get(project)?.get(agent).cloned()
}

impl Published {
    pub(super) fn quadrants(&self, project: &str, agent: &str) -> Option<[f64; 4]> {
        of(&self.written.published_quadrants, project, agent)
    }

    pub(super) fn true_success(&self, project: &str, agent: &str) -> Option<f64> {
        of(&self.written.published_true_success_pct, project, agent)
    }

    pub(super) fn hard_success(&self, project: &str, agent: &str) -> Option<f64> {
        of(&self.written.published_hard_success_pct_website, project, agent)
    }

    pub(super) fn gap(&self, project: &str, agent: &str) -> Option<f64> {
        self.written.published_gap_pp_website_vllm.get(agent).copied().filter(|_| project == "vllm")
    }

    pub(super) fn correct_target(&self, project: &str, agent: &str) -> Option<f64> {
        of(&self.written.published_correct_target_pct_website, project, agent)
    }

    pub(super) fn approaches(&self, project: &str, agent: &str) -> Option<BTreeMap<String, f64>> {
        of(&self.written.published_approach_counts_website, project, agent)
    }

    pub(super) fn wilson(&self, project: &str, agent: &str) -> Option<[f64; 2]> {
        of(&self.written.audit_wilson95_true_success_pct, project, agent)
    }

    pub(super) fn same_only(&self, project: &str, agent: &str) -> Option<f64> {
        of(&self.written.audit_same_only_true_success_pct, project, agent)
    }

    /// Returns the published test of a pair, in the order in which it was published.
    pub(super) fn mcnemar(&self, project: &str, one: &str, other: &str) -> Option<(String, String, [f64; 3])> {
        let is_pair = |(p, a, b, ..): &&(String, String, String, f64, f64, f64)| {
            p == project && ((a == one && b == other) || (a == other && b == one))
        };
        let (_, a, b, first, second, p) = self.written.audit_mcnemar.iter().find(is_pair)?;
        Some((a.clone(), b.clone(), [*first, *second, *p]))
    }

    pub(super) fn human_gain(&self, project: &str) -> Option<HumanGain> {
        self.written.audit_human_vs_baseline.get(project).cloned()
    }
}
