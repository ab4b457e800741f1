//! What each engine's main branch asked for over time, and when open requirements could first be met by a version.

use isobench_schema::environment::EngineKind;
use isobench_schema::ids::Moment;
use serde::Deserialize;

use super::table;

/// For which use a package is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    /// Everywhere.
    Common,
    /// On NVIDIA devices.
    Cuda,
    /// On the processor.
    Cpu,
    /// To build.
    Build,
    /// No package: the Python and CUDA that the engine asks for or is published with.
    Platform,
}

/// What is asked for from one moment on.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Span {
    /// The first moment; it holds until the next span's.
    pub since: Moment,
    /// The commit that began it, 12 digits.
    pub commit: String,
    /// The requirements, as pip writes them; none: no longer asked for.
    pub asks: Vec<String>,
}

/// One package over time.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Package {
    /// Its normalised name.
    pub name: String,
    /// For which use it is asked for.
    pub group: Group,
    /// The spans, oldest first.
    pub spans: Vec<Span>,
}

impl Package {
    /// Returns what is asked for at a moment.
    pub fn asks_at(&self, moment: &Moment) -> &[String] {
        self.spans.iter().rev().find(|span| span.since <= *moment).map_or(&[], |span| &span.asks)
    }
}

/// The packages of one engine over time.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct EnginePackages {
    /// The engine.
    pub engine: EngineKind,
    /// Where the rows come from.
    pub source: String,
    /// The packages.
    pub package: Vec<Package>,
}

impl EnginePackages {
    /// Returns what an engine's groups ask for at a moment, in the order of the table.
    pub fn asks_at<'p>(&'p self, groups: &'p [Group], moment: &'p Moment) -> impl Iterator<Item = &'p str> {
        let wanted = move |package: &&Package| groups.contains(&package.group);
        self.package.iter().filter(wanted).flat_map(move |package| package.asks_at(moment)).map(String::as_str)
    }

    /// Returns the requirements of one package at a moment, in the first of the groups that asks for it.
    pub fn package_at<'p>(&'p self, name: &str, groups: &[Group], moment: &Moment) -> &'p [String] {
        let of = |group: &Group| self.package.iter().find(|package| package.name == name && package.group == *group);
        groups.iter().filter_map(of).map(|package| package.asks_at(moment)).find(|asks| !asks.is_empty()).unwrap_or(&[])
    }
}

/// Versions of one package: `2024-11-18 4.46.3`, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReleasedPackage {
    name: String,
    versions: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Released {
    source: String,
    package: Vec<ReleasedPackage>,
}

/// The packages of all engines over time.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Packages {
    engine: Vec<EnginePackages>,
    released: Released,
}

impl Packages {
    pub(super) fn embedded() -> Self {
        table("packages.toml", include_str!("../../../../knowledge/packages.toml"))
    }

    pub(super) fn of(&self, engine: EngineKind) -> Option<&EnginePackages> {
        self.engine.iter().find(|packages| packages.engine == engine)
    }

    pub(super) fn released_by(&self, package: &str, day: &str) -> Option<&str> {
        let versions = &self.released.package.iter().find(|released| released.name == package)?.versions;
        let dated = versions.iter().filter_map(|row| row.split_once(' '));
        let by_then = dated.filter(|(date, _)| *date <= day);
        by_then.map(|(_, version)| version).max_by_key(|version| parts(version))
    }

    #[cfg(test)]
    fn source(&self) -> &str {
        &self.released.source
    }
}

/// Returns the numbers of a version, `.post` last.
fn parts(version: &str) -> Vec<u64> {
    version.split(['.', '-']).filter_map(|part| part.trim_start_matches("post").parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packages(engine: EngineKind) -> EnginePackages {
        Packages::embedded().of(engine).unwrap().clone()
    }

    fn at(moment: &str) -> Moment {
        Moment::new(moment).unwrap()
    }

    #[test]
    fn what_is_asked_for_follows_the_main_branch() {
        let vllm = packages(EngineKind::Vllm);
        let torch = |moment| vllm.package_at("torch", &[Group::Cuda, Group::Common], &at(moment)).to_vec();
        assert_eq!(torch("2023-12-20T00:00:00Z"), ["torch==2.1.2"]);
        assert_eq!(torch("2024-11-28T00:00:00Z"), ["torch==2.5.1"]);
        assert_eq!(torch("2025-07-20T00:00:00Z"), ["torch==2.7.1"]);
        assert!(torch("2023-01-01T00:00:00Z").is_empty());
        let sglang = packages(EngineKind::Sglang);
        let kernels = sglang.package_at("sgl-kernel", &[Group::Cuda], &at("2025-06-13T12:00:00Z"));
        assert_eq!(kernels, ["sgl-kernel==0.1.7"]);
    }

    #[test]
    fn spans_stand_in_order_and_each_changes_something() {
        for engine in [EngineKind::Vllm, EngineKind::Sglang] {
            for package in &packages(engine).package {
                let name = &package.name;
                assert!(package.spans.windows(2).all(|pair| pair[0].since <= pair[1].since), "{name}");
                assert!(package.spans.windows(2).all(|pair| pair[0].asks != pair[1].asks), "{name}");
                assert!(package.spans.iter().all(|span| span.commit.len() == 12), "{name}");
            }
        }
    }

    #[test]
    fn the_newest_version_of_a_day_is_by_number_and_not_by_date() {
        let packages = Packages::embedded();
        assert!(packages.source().contains("PyPI"));
        assert_eq!(packages.released_by("transformers", "2024-11-28"), Some("4.46.3"));
        assert_eq!(packages.released_by("numpy", "2024-06-01"), Some("1.26.4"));
        assert_eq!(packages.released_by("transformers", "2020-01-01"), None);
        assert_eq!(packages.released_by("no-such-package", "2024-01-01"), None);
    }
}
