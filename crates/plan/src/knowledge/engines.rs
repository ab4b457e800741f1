//! What belongs to each engine: its repository, its native tree, where its wheels and images lie, how it is built.

use std::collections::BTreeMap;

use isobench_schema::environment::EngineKind;
use isobench_schema::ids::Moment;
use serde::Deserialize;

use super::packages::{EnginePackages, Packages};
use super::table;

/// What an engine runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Platform {
    /// NVIDIA devices.
    Cuda,
    /// The processor.
    Cpu,
}

/// What an image is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ImageOf {
    /// Each release.
    Release,
    /// Each commit of the main branch.
    Commit,
}

/// A module that the engine is imported as.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Module {
    /// Its name.
    pub name: String,
    /// The folder of the repository that must be on the search path.
    pub path: String,
    /// The first moment at which it is so.
    #[serde(default)]
    pub since: Option<Moment>,
    /// The first moment at which it no longer is.
    #[serde(default)]
    pub until: Option<Moment>,
    /// Where this is known from.
    pub source: String,
}

/// The Python of the engine's official images.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PythonVersion {
    /// The version: `3.12`.
    pub version: String,
    /// The first moment at which it is so.
    #[serde(default)]
    pub since: Option<Moment>,
    /// The first moment at which it no longer is.
    #[serde(default)]
    pub until: Option<Moment>,
    /// Where this is known from.
    pub source: String,
}

/// A file or folder of the native tree.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct NativePath {
    /// The path.
    pub path: String,
    /// It doesn't count at a revision that has this path too.
    #[serde(default)]
    pub unless: Option<String>,
    /// Since when the main branch has the path of `unless`.
    #[serde(default)]
    pub unless_since: Option<Moment>,
    /// Where this is known from.
    pub source: String,
}

/// A package of compiled kernels that is published by itself and that the engine's own files only ask for.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Kernels {
    /// The package.
    pub package: String,
    /// Where this is known from.
    pub source: String,
}

/// Files that an overlay keeps as the installed package has them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct KeptFiles {
    /// A glob: `*` within a folder, `**` across folders, `{a,b}`.
    pub pattern: String,
    /// Files among them that are the revision's own.
    #[serde(default)]
    pub except: Vec<String>,
    /// The first moment at which it is so.
    #[serde(default)]
    pub since: Option<Moment>,
    /// The first moment at which it no longer is.
    #[serde(default)]
    pub until: Option<Moment>,
    /// Where this is known from.
    pub source: String,
}

/// Where the wheels of single commits lie. `{commit}` stands for the 40 digits, `{release}` for the newest release before.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct WheelLayout {
    /// The platform that they are for.
    pub platform: Platform,
    /// The wheel's URL, if it can be told without asking.
    #[serde(default)]
    pub url: Option<String>,
    /// A package index of only this commit's wheels.
    #[serde(default)]
    pub index: Option<String>,
    /// The only Python that the URL's wheel is for; absent: any.
    #[serde(default)]
    pub python: Option<String>,
    /// Whether only some commits have one.
    #[serde(default)]
    pub optional: bool,
    /// The first moment at which it is so.
    #[serde(default)]
    pub since: Option<Moment>,
    /// The first moment at which it no longer is.
    #[serde(default)]
    pub until: Option<Moment>,
    /// Where this is known from.
    pub source: String,
}

/// Wheels that the archive was asked for in vain.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct MissingWheels {
    /// The day.
    pub seen: String,
    /// The commits, by 12 digits.
    pub commits: Vec<String>,
    /// Who asked.
    pub source: String,
}

/// How images are named.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ImageLayout {
    /// The name, with `{commit}` or `{release}`.
    pub name: String,
    /// What each image is made for.
    pub of: ImageOf,
    /// How long one is kept, if not for good.
    #[serde(default)]
    pub keep: Option<String>,
    /// The first moment at which it is so.
    #[serde(default)]
    pub since: Option<Moment>,
    /// The first moment at which it no longer is.
    #[serde(default)]
    pub until: Option<Moment>,
    /// Where this is known from.
    pub source: String,
}

/// How the native tree is built in place.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct BuildRule {
    /// The platform that it builds for.
    pub platform: Platform,
    /// The commands, each an argument list.
    pub commands: Vec<Vec<String>>,
    /// Variables for the commands.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// The first moment at which it is so.
    #[serde(default)]
    pub since: Option<Moment>,
    /// The first moment at which it no longer is.
    #[serde(default)]
    pub until: Option<Moment>,
    /// Where this is known from.
    pub source: String,
}

/// One engine.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Engine {
    /// The engine.
    pub engine: EngineKind,
    /// The URL of its repository.
    pub repository: String,
    /// Its main branch.
    pub main: String,
    /// Its package on the package index.
    pub package: String,
    /// Its benchmark and server programs, as files of the repository.
    pub scripts: Vec<String>,
    /// A script with this text only says where it has gone.
    #[serde(default)]
    pub stub: Option<String>,
    /// Where this is known from.
    pub source: String,
    /// The modules that it is imported as.
    pub module: Vec<Module>,
    /// The Python of its images.
    pub python: Vec<PythonVersion>,
    /// Its package of kernels, if what is compiled is a package of its own.
    #[serde(default)]
    pub kernels: Option<Kernels>,
    /// Its native tree, in the order in which it is hashed.
    pub native: Vec<NativePath>,
    /// What an overlay keeps.
    #[serde(default)]
    pub keep: Vec<KeptFiles>,
    /// Where wheels of single commits lie.
    #[serde(default)]
    pub wheel: Vec<WheelLayout>,
    /// Wheels known to be missing.
    #[serde(default)]
    pub missing_wheels: Vec<MissingWheels>,
    /// How images are named.
    #[serde(default)]
    pub image: Vec<ImageLayout>,
    /// How it is built.
    #[serde(default)]
    pub build: Vec<BuildRule>,
}

/// The engines, and the packages that they ask for over time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Engines {
    engines: Vec<Engine>,
    packages: Packages,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    engine: Vec<Engine>,
}

impl Engines {
    pub(super) fn embedded() -> Self {
        let table: Table = table("engines.toml", include_str!("../../../../knowledge/engines.toml"));
        Self { engines: table.engine, packages: Packages::embedded() }
    }

    /// Returns an engine.
    pub fn of(&self, engine: EngineKind) -> Option<&Engine> {
        self.engines.iter().find(|known| known.engine == engine)
    }

    /// Returns the packages that an engine asks for over time.
    pub fn packages(&self, engine: EngineKind) -> Option<&EnginePackages> {
        self.packages.of(engine)
    }

    /// Returns the newest release of a package by a day, `2024-11-28`; none if its releases aren't known or none is that old.
    pub fn released_by(&self, package: &str, day: &str) -> Option<&str> {
        self.packages.released_by(package, day)
    }
}

impl Engine {
    /// Returns the module that it is imported as at a moment.
    pub fn module_at(&self, moment: &Moment) -> Option<&Module> {
        self.module.iter().find(|row| holds(row.since.as_ref(), row.until.as_ref(), moment))
    }

    /// Returns the Python of its images at a moment.
    pub fn python_at(&self, moment: &Moment) -> Option<&PythonVersion> {
        self.python.iter().find(|row| holds(row.since.as_ref(), row.until.as_ref(), moment))
    }

    /// Returns where the wheel of a commit of this moment lies.
    pub fn wheel_at(&self, platform: Platform, moment: &Moment) -> Option<&WheelLayout> {
        let holds = |row: &&WheelLayout| holds(row.since.as_ref(), row.until.as_ref(), moment);
        self.wheel.iter().filter(|row| row.platform == platform).find(holds)
    }

    /// Returns since when wheels of single commits are published for a platform.
    pub fn wheels_since(&self, platform: Platform) -> Option<&Moment> {
        self.wheel.iter().filter(|row| row.platform == platform).filter_map(|row| row.since.as_ref()).min()
    }

    /// Returns who asked in vain for the wheel of a commit.
    pub fn missing_wheel(&self, commit: &str) -> Option<&MissingWheels> {
        self.missing_wheels.iter().find(|row| row.commits.iter().any(|known| commit.starts_with(known.as_str())))
    }

    /// Returns how images of this moment are named.
    pub fn image_at(&self, of: ImageOf, moment: &Moment) -> Option<&ImageLayout> {
        let holds = |row: &&ImageLayout| holds(row.since.as_ref(), row.until.as_ref(), moment);
        self.image.iter().rev().filter(|row| row.of == of).find(holds)
    }

    /// Returns how its tree is built at a moment.
    pub fn build_at(&self, platform: Platform, moment: &Moment) -> Option<&BuildRule> {
        let holds = |row: &&BuildRule| holds(row.since.as_ref(), row.until.as_ref(), moment);
        self.build.iter().filter(|row| row.platform == platform).find(holds)
    }

    /// Returns whether a file belongs to the native tree of a revision, so that a patch of it needs a build.
    pub fn is_native(&self, file: &str, moment: &Moment) -> bool {
        let counts = |row: &&NativePath| row.unless_since.as_ref().is_none_or(|since| moment < since);
        self.native.iter().filter(counts).any(|row| {
            let below = file.strip_prefix(row.path.as_str());
            below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }
}

fn holds(since: Option<&Moment>, until: Option<&Moment>, moment: &Moment) -> bool {
    since.is_none_or(|since| since <= moment) && until.is_none_or(|until| moment < until)
}

#[cfg(test)]
mod tests {
    use super::super::Knowledge;
    use super::*;

    const ENGINES: [EngineKind; 2] = [EngineKind::Vllm, EngineKind::Sglang];

    fn engine(kind: EngineKind) -> &'static Engine {
        Knowledge::embedded().engines.of(kind).unwrap()
    }

    fn at(moment: &str) -> Moment {
        Moment::new(moment).unwrap()
    }

    #[test]
    fn at_every_moment_there_is_one_module_and_one_python() {
        let moments = ["2023-02-23T00:00:00Z", "2024-03-01T00:00:00Z", "2024-12-01T00:00:00Z", "2026-08-01T00:00:00Z"];
        for (kind, moment) in ENGINES.into_iter().flat_map(|kind| moments.map(|moment| (kind, at(moment)))) {
            let engine = engine(kind);
            let modules = engine.module.iter().filter(|row| holds(row.since.as_ref(), row.until.as_ref(), &moment));
            let pythons = engine.python.iter().filter(|row| holds(row.since.as_ref(), row.until.as_ref(), &moment));
            assert_eq!((modules.count(), pythons.count()), (1, 1), "{kind:?} {moment}");
        }
        assert_eq!(engine(EngineKind::Vllm).module_at(&at("2023-02-23T00:00:00Z")).unwrap().name, "cacheflow");
    }

    #[test]
    fn layouts_of_wheels_follow_each_other_without_overlap() {
        for platform in [Platform::Cuda, Platform::Cpu] {
            let rows: Vec<_> = engine(EngineKind::Vllm).wheel.iter().filter(|row| row.platform == platform).collect();
            assert!(rows.iter().all(|row| row.url.is_some() || row.index.is_some()));
            assert!(rows.windows(2).all(|pair| pair[0].until == pair[1].since));
        }
        let url =
            |moment| engine(EngineKind::Vllm).wheel_at(Platform::Cuda, &at(moment)).and_then(|row| row.url.as_deref());
        assert_eq!(url("2024-05-01T00:00:00Z"), None);
        assert!(url("2024-08-01T00:00:00Z").unwrap().ends_with("vllm-{release}-cp38-abi3-manylinux1_x86_64.whl"));
        assert!(url("2024-11-28T00:00:00Z").unwrap().ends_with("vllm-1.0.0.dev-cp38-abi3-manylinux1_x86_64.whl"));
    }

    #[test]
    fn wheels_seen_missing_are_those_of_known_commits() {
        let knowledge = Knowledge::embedded();
        let engine = engine(EngineKind::Vllm);
        let missing: Vec<_> = engine.missing_wheels.iter().flat_map(|row| &row.commits).collect();
        assert_eq!(missing.len(), 32);
        for commit in missing {
            let facts = knowledge.commits.find(EngineKind::Vllm, commit).unwrap();
            assert!(engine.missing_wheel(facts.commit.as_str()).is_some());
        }
        assert!(engine.missing_wheel("0000000000000000000000000000000000000000").is_none());
    }

    #[test]
    fn what_is_compiled_is_native_and_its_neighbours_are_not() {
        let vllm = |file, moment| engine(EngineKind::Vllm).is_native(file, &at(moment));
        let (early, late) = ("2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z");
        assert!(vllm("csrc/cache_kernels.cu", late) && vllm("CMakeLists.txt", late) && vllm("cmake/utils.cmake", late));
        assert!(vllm("setup.py", early) && !vllm("setup.py", late));
        assert!(!vllm("vllm/worker/worker.py", late) && !vllm("csrc2/x.cu", late) && !vllm("requirements.txt", late));
        let sglang = |file| engine(EngineKind::Sglang).is_native(file, &at(late));
        assert!(sglang("sgl-kernel/csrc/x.cu") && !sglang("sgl-kernel/tests/x.py") && !sglang("python/sglang/x.py"));
    }

    #[test]
    fn every_row_names_its_source() {
        for kind in ENGINES {
            let engine = engine(kind);
            let rows = engine.native.iter().map(|row| &row.source).chain(engine.keep.iter().map(|row| &row.source));
            let rows = rows.chain(engine.wheel.iter().map(|row| &row.source));
            let rows = rows.chain(engine.image.iter().map(|row| &row.source));
            let rows = rows.chain(engine.build.iter().map(|row| &row.source)).chain([&engine.source]);
            for source in rows {
                assert!(source.starts_with("git:"), "{source}");
            }
        }
    }
}
