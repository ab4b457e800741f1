//! Inputs from a hub: weights, tokenizers and dataset files, each known by repository, commit and the hashes of its files.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::failure::{Failure, spelt_enum};
use crate::ids::{CommitId, Digest, Revision};

spelt_enum!(
    /// What a repository of a hub holds.
    HubKind {
        /// A model: weights, configuration and tokenizer.
        Model = "model",
        /// Dataset files.
        Dataset = "dataset",
    }
);

spelt_enum!(
    /// What an input is used for.
    InputRole {
        /// The engine serves it.
        Model = "model",
        /// The client counts tokens and makes prompts with it.
        Tokenizer = "tokenizer",
        /// The client takes prompts from it.
        Dataset = "dataset",
    }
);

impl InputRole {
    /// Returns the kind of repository that holds such an input.
    pub fn kind(self) -> HubKind {
        match self {
            Self::Model | Self::Tokenizer => HubKind::Model,
            Self::Dataset => HubKind::Dataset,
        }
    }
}

/// The longest name of a repository, in bytes: each of its two parts has 96 at most.
const LONGEST_REPOSITORY: usize = 193;

/// The branch that a hub's repository has if none is named.
pub const DEFAULT_REVISION: &str = "main";

/// The name of a repository on a hub, `OWNER/NAME`, or of old ones only `NAME`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HubRepository(String);

/// A text that can't name a repository on a hub.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is no repository of a hub: use `OWNER/NAME` of letters, digits, `.`, `_` and `-`, without `--` and `..`"
)]
pub struct InvalidRepositoryError {
    /// The text, shortened.
    text: String,
}

impl HubRepository {
    /// Returns the checked name: two parts at most, none of which leads anywhere else.
    ///
    /// # Errors
    /// Returns an error that says what a name may be. `--` would be taken for a slash in the hub's cache.
    pub fn new(text: impl Into<String>) -> Result<Self, InvalidRepositoryError> {
        let text = text.into();
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        let is_part = |part: &str| !part.is_empty() && !part.starts_with(['.', '-']) && part.bytes().all(plain);
        let is_name = text.len() <= LONGEST_REPOSITORY
            && !text.contains("--")
            && !text.contains("..")
            && text.split('/').count() <= 2
            && text.split('/').all(is_part);
        if is_name { Ok(Self(text)) } else { Err(InvalidRepositoryError { text: text.chars().take(100).collect() }) }
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for HubRepository {
    type Error = InvalidRepositoryError;
    fn try_from(text: String) -> Result<Self, InvalidRepositoryError> {
        Self::new(text)
    }
}

impl From<HubRepository> for String {
    fn from(name: HubRepository) -> Self {
        name.0
    }
}

impl fmt::Display for HubRepository {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.0)
    }
}

/// A repository of a hub at a revision, as a person names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HubReference {
    /// What it holds.
    pub kind: HubKind,
    /// Its name.
    pub repository: HubRepository,
    /// The branch, tag or commit.
    pub revision: Revision,
}

/// The reference as `KIND OWNER/NAME@REVISION`, by which facts know it.
impl fmt::Display for HubReference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}@{}", self.kind, self.repository, self.revision)
    }
}

/// Where a task takes a tokenizer or a dataset file from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "from", rename_all = "kebab-case", deny_unknown_fields)]
pub enum InputSource {
    /// A file or folder of this machine.
    Path {
        /// Its absolute path.
        path: String,
    },
    /// A repository of a hub.
    Hub(HubReference),
}

/// The inputs of a task besides a model that is a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskInputs {
    /// The model on a hub; absent, the engine takes `server.model` as it stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<HubReference>,
    /// The tokenizer that the client counts and makes prompts with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokenizer: Option<InputSource>,
    /// Where the dataset's file is. A path is that of the file itself; of a repository the file is named by the prompts'
    /// `dataset-path`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dataset: Option<InputSource>,
}

impl TaskInputs {
    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the references to a hub with what each is used for.
    pub fn on_hub(&self) -> Vec<(InputRole, &HubReference)> {
        let model = self.model.as_ref().map(|model| (InputRole::Model, model));
        let others = [(InputRole::Tokenizer, &self.tokenizer), (InputRole::Dataset, &self.dataset)];
        let others = others.into_iter().filter_map(|(role, source)| match source {
            Some(InputSource::Hub(reference)) => Some((role, reference)),
            Some(InputSource::Path { .. }) | None => None,
        });
        model.into_iter().chain(others).collect()
    }

    /// Returns the paths of this machine that are inputs.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        [&self.tokenizer, &self.dataset].into_iter().filter_map(|source| match source {
            Some(InputSource::Path { path }) => Some(path.as_str()),
            Some(InputSource::Hub(_)) | None => None,
        })
    }
}

/// What a file's bytes are known by: what the hub itself names them by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileHash {
    /// SHA-256 of the bytes, of large files.
    Sha256(Digest),
    /// The id of a git blob, which is SHA-1 over a head and the bytes, of small files.
    GitBlob(CommitId),
}

impl FileHash {
    /// Returns the hash as text, which is also its file's name in caches.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Sha256(digest) => digest.as_str(),
            Self::GitBlob(id) => id.as_str(),
        }
    }

    /// Reads a hash as caches and heads of answers spell it: 64 digits are SHA-256, 40 the id of a blob.
    pub fn parse(text: &str) -> Option<Self> {
        match text.len() {
            64 => Digest::new(text).ok().map(Self::Sha256),
            40 => CommitId::new(text).ok().map(Self::GitBlob),
            _ => None,
        }
    }
}

/// A file of an input.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputFile {
    /// Its path in the repository.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// What its bytes are known by.
    pub hash: FileHash,
}

/// Returns whether a path in a repository stays in it: no part is empty or leads up, and none is hidden from the eye.
pub fn is_inside(path: &str) -> bool {
    !path.is_empty()
        && path.len() <= 1000
        && !path.chars().any(char::is_control)
        && path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

spelt_enum!(
    /// Where an input was found when the plan was made.
    InputOrigin {
        /// In a folder of models that was named.
        Folder = "folder",
        /// In isobench's own cache, or in the hub's cache on this machine.
        HubCache = "hub-cache",
        /// On the hub, from where it is fetched.
        Hub = "hub",
    }
);

/// What is known of a repository at a revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "kebab-case", deny_unknown_fields)]
pub enum FoundInput {
    /// It is there.
    Found {
        /// The commit that the revision is; unknown of a folder.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        commit: Option<CommitId>,
        /// Where it was found.
        origin: InputOrigin,
        /// The folder, if it is one that was named.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        folder: Option<String>,
        /// Its files, sorted by path.
        files: Vec<InputFile>,
    },
    /// It can't be had.
    Missing {
        /// Why.
        failure: Failure,
    },
}

/// An input of a planned task, with every file that is needed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedInput {
    /// What it is used for.
    pub role: InputRole,
    /// The repository, at the revision that the task names.
    pub source: HubReference,
    /// The commit that the revision was when the plan was made; unknown of a folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitId>,
    /// Where it was found.
    pub origin: InputOrigin,
    /// The folder that holds it, if it is one that was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// The files that are needed, sorted by path.
    pub files: Vec<InputFile>,
    /// Their size together.
    pub bytes: u64,
    /// The digest over their paths, sizes and hashes: equal digests are equal inputs, wherever they came from.
    pub digest: Digest,
}

impl PlannedInput {
    /// Returns the name by which the comparability key knows it: without the revision as it was written, which may move.
    pub fn name(&self) -> String {
        let commit = self.commit.as_ref().map(|commit| format!("@{}", commit.short())).unwrap_or_default();
        format!("{} {}{commit}", self.role, self.source.repository)
    }
}

/// Returns the digest over files: of their paths, sizes and hashes.
pub fn digest_of(files: &[InputFile]) -> Digest {
    Digest::of_json(&files).expect("files have only string keys")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_is_two_plain_parts_at_most() {
        for (text, expected) in [
            ("org/model-1.5_b", true),
            ("gpt2", true),
            ("org/../model", false),
            ("/org/model", false),
            ("a/b/c", false),
            ("org/", false),
            ("", false),
            ("-x/y", false),
            ("org--model", false),
            ("org/mod el", false),
        ] {
            assert_eq!(HubRepository::new(text).is_ok(), expected, "{text}");
        }
        assert!(HubRepository::new("a".repeat(200)).is_err());
    }

    #[test]
    fn a_path_that_leads_out_of_a_repository_is_told() {
        for (path, expected) in [
            ("a/b.json", true),
            ("../a", false),
            ("/a", false),
            ("a//b", false),
            ("a/./b", false),
            ("", false),
            ("a\n", false),
        ] {
            assert_eq!(is_inside(path), expected, "{path}");
        }
    }

    #[test]
    fn a_hash_is_told_by_its_length() {
        assert!(matches!(FileHash::parse(&"a".repeat(64)), Some(FileHash::Sha256(_))));
        assert!(matches!(FileHash::parse(&"a".repeat(40)), Some(FileHash::GitBlob(_))));
        for text in ["", "a", &"A".repeat(40), &"a".repeat(41)] {
            assert_eq!(FileHash::parse(text), None, "{text}");
        }
        let hash = FileHash::GitBlob(CommitId::new("a".repeat(40)).unwrap());
        assert_eq!(serde_json::to_string(&hash).unwrap(), format!("{{\"git-blob\":\"{}\"}}", "a".repeat(40)));
    }
}
