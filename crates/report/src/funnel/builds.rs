//! How many native builds the arms of a dataset need: one for each native tree that occurs.

use std::collections::BTreeSet;
use std::sync::Arc;

use isobench_schema::assessment::{Assessment, RevisionFacts};

use super::short_name;

/// Native builds of a dataset, counted by native keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Builds {
    /// Pairs of baseline and human whose native keys are both known.
    pub pairs: usize,
    /// Of those, pairs that share one native build.
    pub shared: usize,
    /// Different builds of all baselines.
    pub of_baselines: usize,
    /// Different builds of all baselines and human commits.
    pub of_all: usize,
    /// The pairs that need two builds.
    pub apart: Vec<String>,
    /// Tasks of which a native key isn't known.
    pub unknown: Vec<String>,
}

impl Builds {
    /// Returns what is counted in one sentence.
    pub fn sentence(&self) -> String {
        format!(
            "{} of {} pairs share one native build between baseline and human; {} for all baselines, {} for all arms",
            self.shared,
            self.pairs,
            builds_of(self.of_baselines),
            self.of_all
        )
    }
}

fn builds_of(number: usize) -> String {
    crate::number::counted(u64::try_from(number).unwrap_or(u64::MAX), "build")
}

/// Returns the native builds of some tasks, or `None` if no native key is known.
pub(super) fn builds(assessments: &[Assessment]) -> Option<Builds> {
    let (mut baselines, mut all) = (BTreeSet::new(), BTreeSet::new());
    let mut found = Builds { pairs: 0, shared: 0, of_baselines: 0, of_all: 0, apart: Vec::new(), unknown: Vec::new() };
    for task in assessments {
        let key = |facts: &'_ Option<Arc<RevisionFacts>>| native_key(facts.as_deref());
        let (baseline, human) = (key(&task.baseline), key(&task.human));
        baselines.extend(baseline.clone());
        all.extend(baseline.clone().into_iter().chain(human.clone()));
        match (baseline, human) {
            (Some(baseline), Some(human)) => {
                found.pairs += 1;
                if baseline == human {
                    found.shared += 1;
                } else {
                    found.apart.push(short_name(&task.task));
                }
            }
            (None, _) | (_, None) => found.unknown.push(short_name(&task.task)),
        }
    }
    (found.of_baselines, found.of_all) = (baselines.len(), all.len());
    (found.of_all > 0).then_some(found)
}

fn native_key(facts: Option<&isobench_schema::assessment::RevisionFacts>) -> Option<String> {
    facts.and_then(|facts| facts.native_key.clone())
}
