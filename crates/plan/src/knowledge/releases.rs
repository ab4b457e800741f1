//! The releases of each engine.

use isobench_schema::environment::EngineKind;
use isobench_schema::ids::Moment;
use serde::Deserialize;

use super::table;

/// One release.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Release {
    /// Its name, with `v`: `v0.6.4.post1`.
    pub name: String,
    /// When the commit on the main branch was made from which the release branched off; absent if that isn't known.
    #[serde(default)]
    pub branched: Option<Moment>,
    /// When it was tagged; without a tag at hand, when it was uploaded to the package index.
    pub tagged: Moment,
    /// The tagged commit, 12 digits; absent if it isn't known.
    #[serde(default)]
    pub commit: Option<String>,
    /// The digest of its native tree, as for revisions.
    #[serde(default)]
    pub native_key: Option<String>,
}

/// The releases of one engine.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct EngineReleases {
    /// The engine.
    pub engine: EngineKind,
    /// Where the rows come from.
    pub source: String,
    /// The releases, oldest first.
    pub release: Vec<Release>,
}

/// The releases of all engines.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Releases {
    /// One entry for each engine.
    #[serde(default)]
    pub engine: Vec<EngineReleases>,
}

impl Releases {
    pub(super) fn embedded() -> Self {
        table("releases.toml", include_str!("../../../../knowledge/releases.toml"))
    }

    /// Returns the releases of an engine, oldest first.
    pub fn of(&self, engine: EngineKind) -> &[Release] {
        self.engine.iter().find(|releases| releases.engine == engine).map_or(&[], |releases| &releases.release)
    }

    /// Returns the newest release that has certainly branched off by a moment.
    pub fn at(&self, engine: EngineKind, moment: &Moment) -> Option<&Release> {
        self.of(engine).iter().filter(|release| release.since() <= moment).max_by_key(|release| release.since())
    }

    /// Returns a release by its name.
    pub fn named(&self, engine: EngineKind, name: &str) -> Option<&Release> {
        self.of(engine).iter().find(|release| release.name == name)
    }
}

impl Release {
    /// Returns from when on it has certainly branched off: its branch point, or else when it was tagged.
    pub fn since(&self) -> &Moment {
        self.branched.as_ref().unwrap_or(&self.tagged)
    }

    /// Returns its version, without `v`.
    pub fn version(&self) -> &str {
        self.name.strip_prefix('v').unwrap_or(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Knowledge;
    use super::*;

    #[test]
    fn the_newest_release_of_a_moment_is_the_last_that_had_branched_off() {
        let releases = &Knowledge::embedded().releases;
        let at = |engine, moment: &str| Some(releases.at(engine, &Moment::new(moment).unwrap())?.name.as_str());
        assert_eq!(at(EngineKind::Vllm, "2023-06-01T00:00:00Z"), None);
        assert_eq!(at(EngineKind::Vllm, "2024-11-28T00:00:00Z"), Some("v0.6.4.post1"));
        assert_eq!(at(EngineKind::Sglang, "2025-05-02T08:00:00Z"), Some("v0.4.6.post2"));
        assert_eq!(at(EngineKind::Vllm, "2027-01-01T00:00:00Z"), Some("v0.33.0"));
    }

    #[test]
    fn releases_stand_in_order_and_once() {
        let releases = &Knowledge::embedded().releases;
        for engine in [EngineKind::Vllm, EngineKind::Sglang] {
            let rows = releases.of(engine);
            assert!(rows.len() > 90, "{engine:?}");
            assert!(rows.windows(2).all(|pair| pair[0].since() <= pair[1].since()), "{engine:?}");
            let names: std::collections::BTreeSet<_> = rows.iter().map(|release| &release.name).collect();
            assert_eq!(names.len(), rows.len());
            // What has a tag in the clone has all of it, what hasn't has nothing but its name and date.
            let whole = |release: &Release| release.branched.is_some() == release.native_key.is_some();
            assert!(rows.iter().all(whole));
        }
    }
}
