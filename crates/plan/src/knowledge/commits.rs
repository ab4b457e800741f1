//! Commits whose facts are known without a clone.

use std::collections::BTreeMap;

use isobench_schema::assessment::{FactSource, RevisionFacts};
use isobench_schema::environment::EngineKind;
use isobench_schema::ids::{CommitId, Moment};
use serde::Deserialize;

use super::table;

/// The fewest digits by which a commit may be named.
const FEWEST_DIGITS: usize = 7;

/// One commit as the table holds it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Row {
    id: CommitId,
    #[serde(default)]
    parent: Option<CommitId>,
    committed: Moment,
    subject: String,
    #[serde(default)]
    after: Option<String>,
    #[serde(default)]
    first: Option<String>,
    #[serde(default)]
    native: Option<String>,
    /// Which set of scripts it has.
    scripts: usize,
    #[serde(default)]
    files: Option<Vec<String>>,
}

/// The commits of one engine as the table holds them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct EngineRows {
    engine: EngineKind,
    source: String,
    script_sets: Vec<Vec<String>>,
    commit: Vec<Row>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    engine: Vec<EngineRows>,
}

/// The known commits of one engine.
#[derive(Debug, Clone, PartialEq, Eq)]
struct EngineCommits {
    engine: EngineKind,
    source: String,
    commits: BTreeMap<CommitId, RevisionFacts>,
}

/// The known commits of all engines.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Commits {
    engines: Vec<EngineCommits>,
}

impl Commits {
    pub(super) fn embedded() -> Self {
        let table: Table = table("commits.toml", include_str!("../../../../knowledge/commits.toml"));
        let commits = |rows: EngineRows| EngineCommits {
            engine: rows.engine,
            source: rows.source,
            commits: rows.commit.into_iter().map(|row| facts(row, &rows.script_sets)).collect(),
        };
        Self { engines: table.engine.into_iter().map(commits).collect() }
    }

    /// Returns the known commits of an engine, by their ids.
    pub fn of(&self, engine: EngineKind) -> impl Iterator<Item = &RevisionFacts> {
        self.engines.iter().filter(move |commits| commits.engine == engine).flat_map(|commits| commits.commits.values())
    }

    /// Returns where the rows of an engine come from.
    pub fn source(&self, engine: EngineKind) -> Option<&str> {
        self.engines.iter().find(|commits| commits.engine == engine).map(|commits| commits.source.as_str())
    }

    /// Returns the one known commit of an engine whose id begins with `id`; none for fewer than 7 digits, and none if two do.
    pub fn find(&self, engine: EngineKind, id: &str) -> Option<&RevisionFacts> {
        if id.len() < FEWEST_DIGITS {
            return None;
        }
        let commits = &self.engines.iter().find(|commits| commits.engine == engine)?.commits;
        if let Some(whole) = CommitId::new(id).ok().and_then(|id| commits.get(&id)) {
            return Some(whole);
        }
        let mut found = commits.values().filter(|facts| facts.commit.as_str().starts_with(id));
        let only = found.next()?;
        found.next().is_none().then_some(only)
    }
}

fn facts(row: Row, script_sets: &[Vec<String>]) -> (CommitId, RevisionFacts) {
    let facts = RevisionFacts {
        commit: row.id.clone(),
        parent: row.parent,
        committed: row.committed,
        subject: row.subject,
        after_release: row.after,
        first_release: row.first,
        native_key: row.native,
        files_changed: row.files,
        scripts: script_sets.get(row.scripts).cloned(),
        source: FactSource::Knowledge,
    };
    (row.id, facts)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::super::Knowledge;
    use super::*;

    /// Commit, role and native key as another reading of the same repository gave them.
    const OTHER_READING: &str = include_str!("testdata/native-keys.tsv");

    fn rows() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
        OTHER_READING.lines().filter(|line| !line.starts_with('#')).map(|line| {
            let fields: Vec<_> = line.split('\t').collect();
            (fields[0], fields[1], fields[2])
        })
    }

    fn key(commit: &str) -> &'static str {
        Knowledge::embedded().commits.find(EngineKind::Vllm, commit).unwrap().native_key.as_deref().unwrap()
    }

    #[test]
    fn a_commit_is_found_by_its_id_and_by_a_prefix_that_is_only_its_own() {
        let commits = &Knowledge::embedded().commits;
        let full = "8c1e77fb585c4f42783a3d88c1efc7c9e15fd89f";
        let facts = commits.find(EngineKind::Vllm, full).unwrap();
        assert_eq!(facts.commit.as_str(), full);
        assert_eq!(facts.source, FactSource::Knowledge);
        assert_eq!(commits.find(EngineKind::Vllm, "8c1e77f"), Some(facts));
        assert_eq!(commits.find(EngineKind::Vllm, "8c1e77"), None);
        assert_eq!(commits.find(EngineKind::Sglang, full), None);
        assert_eq!(commits.find(EngineKind::Generic, full), None);
        assert_eq!(commits.find(EngineKind::Vllm, "0000000"), None);
    }

    #[test]
    fn the_commits_of_both_engines_are_known_with_their_parents() {
        let commits = &Knowledge::embedded().commits;
        for (engine, humans, all) in [(EngineKind::Vllm, 96, 190), (EngineKind::Sglang, 15, 30)] {
            assert_eq!(commits.of(engine).count(), all);
            assert!(commits.of(engine).all(|facts| facts.scripts.is_some() && facts.native_key.is_some()));
            let human: Vec<_> = commits.of(engine).filter(|facts| facts.files_changed.is_some()).collect();
            assert_eq!(human.len(), humans);
            for facts in human {
                assert!(commits.find(engine, facts.parent.as_ref().unwrap().as_str()).is_some());
            }
        }
    }

    #[test]
    fn native_keys_part_the_commits_as_another_reading_does() {
        let (mut of_ours, mut of_theirs) = (BTreeMap::<_, BTreeSet<_>>::new(), BTreeMap::<_, BTreeSet<_>>::new());
        for (commit, _, theirs) in rows() {
            of_ours.entry(key(commit)).or_default().insert(theirs);
            of_theirs.entry(theirs).or_default().insert(key(commit));
        }
        assert_eq!(rows().count(), 190);
        assert!(of_ours.values().chain(of_theirs.values()).all(|keys| keys.len() == 1));
        assert_eq!(of_ours.len(), 82);
        let parents: BTreeSet<_> = rows().filter(|row| row.1.contains("parent")).map(|row| key(row.0)).collect();
        assert_eq!(parents.len(), 79);
    }

    #[test]
    fn all_but_seven_pairs_share_their_native_tree() {
        let commits = &Knowledge::embedded().commits;
        let differs = |facts: &&RevisionFacts| {
            let parent = commits.find(EngineKind::Vllm, facts.parent.as_ref().unwrap().as_str()).unwrap();
            parent.native_key != facts.native_key
        };
        let human = || commits.of(EngineKind::Vllm).filter(|facts| facts.files_changed.is_some());
        let differing: BTreeSet<_> = human().filter(differs).map(|facts| &facts.commit.as_str()[..8]).collect();
        let known = ["0ec82edd", "3b61cb45", "4fb56914", "8c1e77fb", "b6d10354", "e7b20426", "eefbf4a6"];
        assert_eq!(differing, BTreeSet::from(known));
        assert_eq!(human().count() - differing.len(), 89);
    }
}
