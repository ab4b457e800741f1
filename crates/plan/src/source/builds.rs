//! How many native builds a set of pairs needs.

use std::collections::BTreeSet;

use isobench_schema::assessment::RevisionFacts;
use isobench_schema::ids::CommitId;

/// How many native builds a set of pairs needs, by the keys of their native trees.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Builds {
    /// Pairs of a baseline and a human commit whose keys are both known.
    pub pairs: usize,
    /// Pairs with a key that isn't known.
    pub unknown: usize,
    /// The human commits whose native tree differs from their baseline's.
    pub differing: Vec<CommitId>,
    /// Builds that all baselines together need.
    pub baselines: usize,
    /// Builds that all arms together need.
    pub all: usize,
}

impl Builds {
    /// Returns the number of pairs that share one native build.
    pub fn sharing(&self) -> usize {
        self.pairs - self.differing.len()
    }

    /// Says it in one sentence.
    pub fn sentence(&self) -> String {
        let Self { pairs, baselines, all, .. } = self;
        let sharing = self.sharing();
        format!(
            "{sharing} of {pairs} pairs share one native build; {baselines} builds serve all baselines, {all} all arms"
        )
    }
}

/// Counts the native builds that pairs of a baseline and a human commit need.
pub fn builds<'a>(pairs: impl Iterator<Item = (Option<&'a RevisionFacts>, Option<&'a RevisionFacts>)>) -> Builds {
    let (mut found, mut baselines, mut all) = (Builds::default(), BTreeSet::new(), BTreeSet::new());
    for (baseline, human) in pairs {
        let key = |facts: Option<&'a RevisionFacts>| facts.and_then(|facts| facts.native_key.as_deref());
        baselines.extend(key(baseline));
        all.extend(key(baseline).into_iter().chain(key(human)));
        match (key(baseline), human.zip(key(human))) {
            (Some(of_baseline), Some((human, of_human))) => {
                found.pairs += 1;
                if of_baseline != of_human {
                    found.differing.push(human.commit.clone());
                }
            }
            (None, _) | (_, None) => found.unknown += 1,
        }
    }
    Builds { baselines: baselines.len(), all: all.len(), ..found }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use isobench_schema::environment::EngineKind;

    use super::*;
    use crate::knowledge::Knowledge;

    #[test]
    fn the_known_pairs_share_their_builds_but_for_seven() {
        let commits = &Knowledge::embedded().commits;
        let human = commits.of(EngineKind::Vllm).filter(|facts| facts.files_changed.is_some());
        let parent = |facts: &RevisionFacts| commits.find(EngineKind::Vllm, facts.parent.as_ref()?.as_str());
        let found = builds(human.map(|facts| (parent(facts), Some(facts))));
        let differing: BTreeSet<_> = found.differing.iter().map(|commit| &commit.as_str()[..8]).collect();
        let known = ["0ec82edd", "3b61cb45", "4fb56914", "8c1e77fb", "b6d10354", "e7b20426", "eefbf4a6"];
        assert_eq!(differing, BTreeSet::from(known));
        assert_eq!(found.unknown, 0);
        let said = "89 of 96 pairs share one native build; 79 builds serve all baselines, 82 all arms";
        assert_eq!(found.sentence(), said);
    }

    #[test]
    fn a_pair_without_a_key_is_counted_apart() {
        let found = builds([(None, None)].into_iter());
        assert_eq!(found, Builds { unknown: 1, ..Builds::default() });
    }
}
