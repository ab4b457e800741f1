//! What an arm runs in: its source, its patch, its packages and its build.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::container::{ContainerFacts, ContainerSpec, ImageFacts};
use crate::failure::spelt_enum;
use crate::ids::{CommitId, Digest, EnvironmentId, Moment};

spelt_enum!(
    /// An engine that isobench knows how to prepare and serve.
    EngineKind {
        /// Any engine that is started by the command in the task.
        Generic = "generic",
        /// vLLM.
        Vllm = "vllm",
        /// SGLang.
        Sglang = "sglang",
    }
);

spelt_enum!(
    /// Where an environment comes from: the rung of the ladder, the first that works from the top.
    Rung {
        /// An image of exactly this revision.
        Image = "image",
        /// A wheel of exactly this revision.
        Wheel = "wheel",
        /// Native files built from an equal native tree (a release's or another revision's), with this revision's Python files.
        NativeTree = "native-tree",
        /// The revision's files with the native files of an installed package, whose native tree may differ: a deviation.
        Overlay = "overlay",
        /// The revision's files, built by the task's command, or as they are.
        Source = "source",
    }
);

spelt_enum!(
    /// How far the measured code is kept from the rest of the machine.
    Isolation {
        /// A bare process: private folders and a clean environment, nothing else.
        None = "none",
        /// A container of its own: read-only files, no network but its own loopback, no capabilities, limits that are read back.
        Container = "container",
    }
);

impl Isolation {
    /// Returns the level of engines that run in such containers, or in none.
    pub fn of(container: Option<&ContainerSpec>) -> Self {
        if container.is_some() { Self::Container } else { Self::None }
    }
}

/// The bytes of a patch. In JSON: a string if they are UTF-8, else `{"base64": ".."}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "PatchText", into = "PatchText")]
pub struct PatchBytes(pub Vec<u8>);

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum PatchText {
    Text(String),
    Binary { base64: Base64 },
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
struct Base64(Vec<u8>);

impl TryFrom<String> for Base64 {
    type Error = base64::DecodeError;
    fn try_from(text: String) -> Result<Self, base64::DecodeError> {
        STANDARD.decode(text).map(Self)
    }
}

impl From<Base64> for String {
    fn from(bytes: Base64) -> Self {
        STANDARD.encode(bytes.0)
    }
}

impl From<PatchText> for PatchBytes {
    fn from(text: PatchText) -> Self {
        match text {
            PatchText::Text(text) => Self(text.into_bytes()),
            PatchText::Binary { base64 } => Self(base64.0),
        }
    }
}

impl From<PatchBytes> for PatchText {
    fn from(patch: PatchBytes) -> Self {
        match String::from_utf8(patch.0) {
            Ok(text) => Self::Text(text),
            Err(error) => Self::Binary { base64: Base64(error.into_bytes()) },
        }
    }
}

/// A patch with its name and digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Patch {
    /// Where it was read from, as the task names it; for people.
    pub name: String,
    /// The digest of its bytes.
    pub digest: Digest,
    /// Its bytes.
    pub bytes: PatchBytes,
}

impl Patch {
    /// Returns the patch with its digest.
    pub fn new(name: impl Into<String>, bytes: Vec<u8>) -> Self {
        Self { name: name.into(), digest: Digest::of(&bytes), bytes: PatchBytes(bytes) }
    }
}

/// The files that an arm is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// The git repository: an absolute path or a URL.
    pub repository: String,
    /// The commit whose tree is exported.
    pub commit: CommitId,
    /// The patch on top of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<Patch>,
    /// Whether the patch may hold binary content.
    pub allow_binary_patch: bool,
}

/// A second name under which an installed package can be found by `importlib.metadata`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackageAlias {
    /// The name.
    pub name: String,
    /// The version that it reports.
    pub version: String,
}

/// A module that is written into the folder of packages, in the place of one that can't be had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StubModule {
    /// Its file there, such as `pyairports/airports.py`; the folders above it become packages.
    pub path: String,
    /// What is in it.
    pub content: String,
}

/// The Python that an arm runs on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Python {
    /// None: the engine isn't a Python program.
    Absent,
    /// The machine's `python3`, with nothing installed.
    System,
    /// A virtual environment of its own, shared by the arms whose packages are equal.
    Venv(Venv),
    /// That of an image, with its packages: the engine runs in a container of it.
    Image(ImagePython),
}

impl Python {
    /// Returns the image that a plan has pinned, if the engine runs on one's Python.
    pub fn image(&self) -> Option<&ImageFacts> {
        match self {
            Self::Image(image) => image.pinned.as_ref(),
            Self::Absent | Self::System | Self::Venv(_) => None,
        }
    }
}

/// The Python of an image, with what is installed there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImagePython {
    /// The image's name. In a task, `{commit}` stands for each arm's commit and `{commitN}` for its first N digits.
    pub image: String,
    /// The name of the baseline's and the agents' image, where it is made otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_image: Option<String>,
    /// The interpreter in the image: a path, or a name that is looked up on the image's search path.
    pub program: String,
    /// The commit whose files the image must hold, where a registry's tag says so: the arm's own, or another one of an equal
    /// native tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holds: Option<CommitId>,
    /// The image that stood under the name when the plan was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<ImageFacts>,
}

/// A virtual environment's packages.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Venv {
    /// The Python version or interpreter, such as `3.11`; the machine's `python3` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub python: Option<String>,
    /// Requirements to install, as pip writes them.
    pub requirements: Vec<String>,
    /// Requirements that replace whatever a package asks for.
    pub overrides: Vec<String>,
    /// Requirements installed afterwards without their dependencies.
    pub no_dependencies: Vec<String>,
    /// Further package indexes, by URL.
    pub extra_indexes: Vec<String>,
    /// The moment up to which versions of packages must have been released; any if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclude_newer: Option<Moment>,
    /// Second names of installed packages.
    pub aliases: Vec<PackageAlias>,
    /// Modules that stand in for those of packages that can't be had.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stub_modules: Vec<StubModule>,
}

/// A change that makes an environment run which wouldn't otherwise, or not as cheaply. It is applied in every arm alike, is
/// part of the comparability key, and is a deviation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Recipe {
    /// A requirement replaces whatever packages ask for.
    ReplaceRequirement {
        /// The requirement, as pip writes it.
        requirement: String,
    },
    /// A requirement is installed without its dependencies.
    LeaveDependencies {
        /// The requirement, as pip writes it.
        requirement: String,
    },
    /// An installed package is found under a second name.
    AliasPackage {
        /// The second name and its version.
        alias: PackageAlias,
    },
    /// A module stands in for one that can't be had.
    StubModule {
        /// Its file in the folder of packages.
        path: String,
    },
    /// The native files of an installed package stand in for those that the revision would be built to.
    OverlayPackage {
        /// The package.
        package: String,
    },
}

impl Recipe {
    /// Returns the recipes that a Python and an overlay amount to, in a fixed order.
    pub fn of(python: &Python, overlay: Option<&str>) -> Vec<Self> {
        let mut recipes = Vec::new();
        if let Python::Venv(venv) = python {
            let replace = |requirement: &String| Self::ReplaceRequirement { requirement: requirement.clone() };
            let leave = |requirement: &String| Self::LeaveDependencies { requirement: requirement.clone() };
            let alias = |alias: &PackageAlias| Self::AliasPackage { alias: alias.clone() };
            recipes.extend(venv.overrides.iter().map(replace));
            recipes.extend(venv.no_dependencies.iter().map(leave));
            recipes.extend(venv.aliases.iter().map(alias));
            recipes.extend(venv.stub_modules.iter().map(|stub| Self::StubModule { path: stub.path.clone() }));
        }
        recipes.extend(overlay.map(|package| Self::OverlayPackage { package: package.to_owned() }));
        recipes
    }
}

/// A build of a revision's native files alone: made once for each native tree, and shared by every arm whose native tree is
/// equal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NativeBuild {
    /// The native tree: the files and folders of the revision that are compiled or decide how. Nothing else of it is there
    /// when they are built, so that equal native trees can't be built differently.
    pub paths: Vec<String>,
    /// Build commands, run in the native tree in this order, each an argument list. `{python}`, `{tree}` and `{jobs}` are
    /// replaced.
    pub commands: Vec<Vec<String>>,
    /// Variables for the build commands.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// The files that must come of it, relative to the tree; `*` stands for any part of a name. They alone are laid into the
    /// trees of arms.
    pub outputs: Vec<String>,
    /// Main memory that one job needs, in MiB: it bounds how many run at once.
    pub memory_per_job_mib: u32,
    /// The deadline of each command in seconds; that of every build command if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_s: Option<u32>,
}

/// The container that native files are built in, and build commands are run in, in the place of this machine itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Toolkit {
    /// The image that holds the compilers, as the plan has pinned it.
    pub image: ImageFacts,
    /// Whether the builds may reach the network.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub network: bool,
}

/// What a task says of the container that it is built in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolkitChoice {
    /// The image's name. If it is given, builds run in a container also where the engine doesn't.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The version of CUDA that the revision is built with, such as `12.8`, by which an image is chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cuda: Option<String>,
    /// Whether the builds may reach the network.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub network: bool,
}

/// Everything that decides what an arm runs in. Equal specifications are one environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnvironmentSpec {
    /// The engine.
    pub engine: EngineKind,
    /// Where it comes from on the ladder.
    pub rung: Rung,
    /// The revision's files.
    pub source: Source,
    /// The Python it runs on.
    pub python: Python,
    /// For an overlay: the installed package whose native files are laid under the revision's Python files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlay: Option<String>,
    /// The build of the native files, shared by the arms whose native trees are equal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native: Option<NativeBuild>,
    /// The container that native files and the tree are built in; this machine itself if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toolkit: Option<Toolkit>,
    /// Build commands, run in the tree in this order, each an argument list. `{python}` and `{tree}` are replaced.
    pub build: Vec<Vec<String>>,
    /// Variables for the build commands.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub build_environment: BTreeMap<String, String>,
    /// Folders of the tree that come first on Python's search path, for example `.` or `src`.
    pub python_path: Vec<String>,
    /// Top-level Python modules that must be found inside the tree.
    pub modules: Vec<String>,
}

impl EnvironmentSpec {
    /// Returns the recipes that it applies.
    pub fn recipes(&self) -> Vec<Recipe> {
        Recipe::of(&self.python, self.overlay.as_deref())
    }

    /// Returns the name that the specification's contents give it.
    ///
    /// # Errors
    /// Never for values built by this crate's types; the signature follows the serialiser's.
    pub fn id(&self) -> Result<EnvironmentId, serde_json::Error> {
        Ok(Digest::of_json(self)?.into())
    }
}

/// What was found out about an environment before and during a launch, from outside the measured code.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StaticProof {
    /// The digest over every file's path, mode and digest in the tree.
    pub tree: Option<Digest>,
    /// Number of files in the tree.
    pub files: u64,
    /// The digest of each file that the patch changes, by path; an absent digest is a removed file.
    pub changed: BTreeMap<String, Option<Digest>>,
    /// The digest of each native library in the tree, by path.
    pub native: BTreeMap<String, Digest>,
    /// The native build that the tree's native files come from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native_build: Option<Digest>,
    /// The image that the tree's native files were built in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toolkit: Option<ImageFacts>,
    /// The file that each module's import would take, resolved without importing it.
    pub modules: BTreeMap<String, String>,
    /// The interpreter, with links resolved.
    pub executable: Option<String>,
    /// The interpreter's version.
    pub python_version: Option<String>,
    /// Installed packages with versions, sorted, of a virtual environment.
    pub packages: Vec<String>,
    /// What was read back of each recipe, by its id.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub recipes: BTreeMap<String, String>,
    /// The image that the engine's container is made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageFacts>,
}

/// What the operating system says of the running engine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LiveProof {
    /// The process that owns the listening port.
    pub process: u32,
    /// Its executable, with links resolved.
    pub executable: String,
    /// Its working folder.
    pub working_folder: String,
    /// The native libraries that it has mapped from its tree, with their digests on disk.
    pub mapped: BTreeMap<String, Digest>,
    /// Mapped libraries from elsewhere, by path.
    pub mapped_elsewhere: Vec<String>,
    /// Names of the variables in its environment.
    pub environment: Vec<String>,
    /// What the engine itself reports; a claim.
    pub claimed_version: Option<String>,
    /// What the process shows of each recipe that sets a variable or an option, by its id.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub recipes: BTreeMap<String, String>,
    /// The container that it runs in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<ContainerFacts>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_round_trips_also_when_it_is_not_utf8() {
        for bytes in [b"--- a\n+++ b\n".to_vec(), vec![0xff, 0xfe, 0x00]] {
            let patch = Patch::new("x.patch", bytes);
            let text = serde_json::to_string(&patch).unwrap();
            assert_eq!(serde_json::from_str::<Patch>(&text).unwrap(), patch);
        }
    }
}
