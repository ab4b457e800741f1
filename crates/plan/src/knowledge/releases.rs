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
    /// When the commit on the main branch was made from which the release branched off.
    pub branched: Moment,
    /// When it was tagged.
    pub tagged: Moment,
    /// The tagged commit, 12 digits.
    pub commit: String,
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

    /// Returns the newest release that branched off no later than a moment.
    pub fn at(&self, engine: EngineKind, moment: &Moment) -> Option<&Release> {
        self.of(engine).iter().filter(|release| release.branched <= *moment).max_by_key(|release| &release.branched)
    }
}
