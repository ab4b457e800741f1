//! Names, hashes and revisions: each with one checked constructor.

use std::fmt;
use std::io;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The longest name that a task, an agent or a run may have, in bytes.
const LONGEST_NAME: usize = 100;

/// Why a text isn't an identifier of the kind asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a valid {kind}: {rule}")]
pub struct InvalidIdError {
    /// The text that was refused, shortened to 120 characters.
    pub text: String,
    /// What it should have been.
    pub kind: &'static str,
    /// The rule that it breaks.
    pub rule: &'static str,
}

impl InvalidIdError {
    fn new(text: &str, kind: &'static str, rule: &'static str) -> Self {
        Self { text: text.chars().take(120).collect(), kind, rule }
    }
}

/// Returns whether `text` can be a file name on every platform and can't be taken for an option or a path.
fn is_plain_name(text: &str) -> bool {
    let starts_well = text.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric);
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    starts_well && text.len() <= LONGEST_NAME && text.as_bytes().iter().all(plain) && !text.ends_with('.')
}

/// Defines a newtype over a checked `String`.
macro_rules! checked_string {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $rule:literal, $check:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Returns the checked value.
            ///
            /// # Errors
            /// Returns the rule that `text` breaks.
            pub fn new(text: impl Into<String>) -> Result<Self, InvalidIdError> {
                let text = text.into();
                let check: fn(&str) -> bool = $check;
                if check(&text) { Ok(Self(text)) } else { Err(InvalidIdError::new(&text, $kind, $rule)) }
            }

            /// Returns the text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidIdError;
            fn try_from(text: String) -> Result<Self, InvalidIdError> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> Self {
                value.0
            }
        }

        impl FromStr for $name {
            type Err = InvalidIdError;
            fn from_str(text: &str) -> Result<Self, InvalidIdError> {
                Self::new(text)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.pad(&self.0)
            }
        }
    };
}

checked_string!(
    /// The name of a task, unique in its dataset.
    TaskId,
    "task id",
    "use 1 to 100 letters, digits, `.`, `_` and `-`, starting with a letter or digit",
    is_plain_name
);
checked_string!(
    /// The name of an agent whose patch is one arm.
    AgentName,
    "agent name",
    "use 1 to 100 letters, digits, `.`, `_` and `-`, starting with a letter or digit",
    is_plain_name
);
checked_string!(
    /// The name of a run, which is also the name of its folder.
    RunId,
    "run id",
    "use 1 to 100 letters, digits, `.`, `_` and `-`, starting with a letter or digit",
    is_plain_name
);
checked_string!(
    /// The name that an environment's contents give it: the digest of its specification.
    EnvironmentId,
    "environment id",
    "use 64 lower-case hexadecimal digits",
    |text| is_lower_hex(text, 64)
);
checked_string!(
    /// A revision as a person writes it: a commit, a tag or a branch.
    ///
    /// It can't start with `-`, so that it is never read as an option, and it has no white space, no control
    /// characters and none of git's range and path syntax.
    Revision,
    "revision",
    "use a commit, tag or branch name without spaces, control characters, `..`, `:`, `@{`, `^`, `~`, `?`, `*`, `[` or a leading `-`",
    |text| {
        !text.is_empty()
            && text.len() <= 255
            && !text.starts_with(['-', '/'])
            && !text.contains("..")
            && !text.contains("@{")
            && !text.chars().any(|c| c.is_control() || c.is_whitespace() || ":^~?*[\\".contains(c))
    }
);
checked_string!(
    /// A full git commit id: 40 lower-case hexadecimal digits, or 64 in a SHA-256 repository.
    CommitId,
    "commit id",
    "use the full id of 40 (or 64) lower-case hexadecimal digits",
    |text| is_lower_hex(text, 40) || is_lower_hex(text, 64)
);
checked_string!(
    /// A SHA-256 digest in lower-case hexadecimal.
    Digest,
    "digest",
    "use 64 lower-case hexadecimal digits",
    |text| is_lower_hex(text, 64)
);

checked_string!(
    /// The tag of an image in its repository.
    ImageTag,
    "image tag",
    "use 1 to 128 letters, digits, `_`, `.` and `-`, starting with a letter, a digit or `_`",
    is_image_tag
);
checked_string!(
    /// The digest by which registries name a manifest, a configuration or a layer: `sha256:` and 64 lower-case digits.
    ImageDigest,
    "image digest",
    "use `sha256:` and 64 lower-case hexadecimal digits",
    |text| text.strip_prefix("sha256:").is_some_and(|digits| is_lower_hex(digits, 64))
);

checked_string!(
    /// A moment in UTC, to the second, in the one spelling whose text order is the order in time: `2024-06-25T17:30:00Z`.
    Moment,
    "moment",
    "use UTC to the second, like `2024-06-25T17:30:00Z`",
    is_moment
);

fn is_moment(text: &str) -> bool {
    let shape = b"dddd-dd-ddTdd:dd:ddZ";
    let fits = |(found, wanted): (u8, &u8)| if *wanted == b'd' { found.is_ascii_digit() } else { found == *wanted };
    let number = |from: usize, to: usize| text.get(from..to).and_then(|digits| digits.parse::<u32>().ok());
    let within = |from, to, low, high| number(from, to).is_some_and(|value| (low..=high).contains(&value));
    text.len() == shape.len()
        && text.bytes().zip(shape).all(fits)
        && within(5, 7, 1, 12)
        && within(8, 10, 1, 31)
        && within(11, 13, 0, 23)
        && within(14, 16, 0, 59)
        && within(17, 19, 0, 60)
}

fn is_image_tag(text: &str) -> bool {
    let starts_well = text.as_bytes().first().is_some_and(|first| first.is_ascii_alphanumeric() || *first == b'_');
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    starts_well && text.len() <= 128 && text.bytes().all(plain)
}

fn is_lower_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

impl CommitId {
    /// Returns the first 12 digits, for people.
    pub fn short(&self) -> &str {
        self.0.get(..12).unwrap_or(&self.0)
    }
}

/// What is written is hashed.
#[derive(Debug)]
struct Hashing(Sha256);

impl io::Write for Hashing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl ImageDigest {
    /// Returns the digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self::from(Digest::of(bytes))
    }

    /// Returns the 64 digits.
    pub fn hex(&self) -> &str {
        self.0.split_once(':').map_or(&self.0, |(_, hex)| hex)
    }

    /// Returns the first 12 digits, for people.
    pub fn short(&self) -> &str {
        self.hex().get(..12).unwrap_or(self.hex())
    }
}

impl From<Digest> for ImageDigest {
    fn from(digest: Digest) -> Self {
        Self(format!("sha256:{digest}"))
    }
}

impl Digest {
    /// Returns the SHA-256 digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self::finish(Sha256::new_with_prefix(bytes))
    }

    /// Returns the digest of everything that was fed to `hasher`.
    pub fn finish(hasher: Sha256) -> Self {
        use fmt::Write as _;
        let mut text = String::with_capacity(64);
        for byte in hasher.finalize() {
            write!(text, "{byte:02x}").expect("a String takes every write");
        }
        Self(text)
    }

    /// Returns the digest of everything that `write` writes.
    ///
    /// # Errors
    /// Returns what `write` returns.
    pub fn of_written<E>(write: impl FnOnce(&mut dyn io::Write) -> Result<(), E>) -> Result<Self, E> {
        let mut hasher = io::BufWriter::with_capacity(1 << 16, Hashing(Sha256::new()));
        write(&mut hasher)?;
        let hashing = hasher.into_inner().expect("hashing takes every write");
        Ok(Self::finish(hashing.0))
    }

    /// Returns the digest of the canonical JSON of `value`: keys sorted, no white space.
    ///
    /// # Errors
    /// Returns an error if `value` can't be written as JSON, for example because a map has a key that is no string.
    pub fn of_json(value: &impl Serialize) -> Result<Self, serde_json::Error> {
        // `Value` keeps object keys in a sorted map, which makes the text canonical.
        Ok(Self::of(serde_json::to_string(&serde_json::to_value(value)?)?.as_bytes()))
    }

    /// Returns the first 12 digits, for people.
    pub fn short(&self) -> &str {
        self.0.get(..12).unwrap_or(&self.0)
    }
}

impl From<Digest> for EnvironmentId {
    fn from(digest: Digest) -> Self {
        Self(digest.0)
    }
}

/// One side of a comparison.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum ArmId {
    /// The revision before the change.
    Baseline,
    /// The real commit.
    Human,
    /// An agent's patch on the baseline.
    Agent(AgentName),
}

impl fmt::Display for ArmId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Baseline => formatter.pad("baseline"),
            Self::Human => formatter.pad("human"),
            Self::Agent(name) => formatter.pad(&format!("agent:{name}")),
        }
    }
}

impl FromStr for ArmId {
    type Err = InvalidIdError;
    fn from_str(text: &str) -> Result<Self, InvalidIdError> {
        match text {
            "baseline" => Ok(Self::Baseline),
            "human" => Ok(Self::Human),
            _ => match text.strip_prefix("agent:") {
                Some(name) => Ok(Self::Agent(AgentName::new(name)?)),
                None => Err(InvalidIdError::new(text, "arm", "use `baseline`, `human` or `agent:NAME`")),
            },
        }
    }
}

impl TryFrom<String> for ArmId {
    type Error = InvalidIdError;
    fn try_from(text: String) -> Result<Self, InvalidIdError> {
        text.parse()
    }
}

impl From<ArmId> for String {
    fn from(arm: ArmId) -> Self {
        arm.to_string()
    }
}

/// One attempt at one block of one task.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockId {
    /// The task.
    pub task: TaskId,
    /// The block's index in the design, from 0.
    pub block: u32,
    /// The attempt, from 1: a block that was cut short or hit by infrastructure runs again.
    pub attempt: u32,
}

impl fmt::Display for BlockId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/block-{}/attempt-{}", self.task, self.block, self.attempt)
    }
}

/// One launch: a fresh start of the engine for one arm in one attempt at a block.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LaunchId {
    /// The attempt at a block that it belongs to.
    #[serde(flatten)]
    pub block: BlockId,
    /// The arm.
    pub arm: ArmId,
}

impl LaunchId {
    /// Returns a name that is unique in a run and safe as a file name.
    pub fn file_name(&self) -> String {
        let BlockId { task, block, attempt } = &self.block;
        let arm = self.arm.to_string().replace(':', "-");
        format!("{task}.block-{block}.attempt-{attempt}.{arm}")
    }
}

impl fmt::Display for LaunchId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.block, self.arm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_as_file_names() {
        for good in ["a", "vllm-1234", "A.b_c-9"] {
            assert!(TaskId::new(good).is_ok(), "{good}");
        }
        for bad in ["", "-x", ".hidden", "a/b", "a b", "é", "x.", "..", &"a".repeat(101)] {
            assert!(TaskId::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_revision_is_never_an_option_or_a_range() {
        for good in ["main", "v0.6.0", "feature/x", "0123abcd", "HEAD"] {
            assert!(Revision::new(good).is_ok(), "{good}");
        }
        for bad in ["", "--upload-pack=x", "-q", "a..b", "main:file", "a b", "x\n", "HEAD~1", "HEAD@{1}", "/x"] {
            assert!(Revision::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_moment_has_one_spelling() {
        assert!(Moment::new("2024-06-25T17:30:00Z").is_ok());
        for bad in ["2024-06-25", "2024-06-25T17:30:00+02:00", "2024-13-25T17:30:00Z", "2024-06-25T24:30:00Z", ""] {
            assert!(Moment::new(bad).is_err(), "{bad}");
        }
        assert!(Moment::new("2024-06-25T17:30:00Z").unwrap() < Moment::new("2024-11-01T00:00:00Z").unwrap());
    }

    #[test]
    fn arms_are_spelt_one_way() {
        for text in ["baseline", "human", "agent:no-op"] {
            assert_eq!(text.parse::<ArmId>().unwrap().to_string(), text);
        }
        for bad in ["Baseline", "agent:", "agent", "agent:../x", "other"] {
            assert!(bad.parse::<ArmId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_digest_is_sha256_in_hex() {
        assert_eq!(Digest::of(b"").as_str(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert!(Digest::new("E3").is_err());
        let written = Digest::of_written(|out| out.write_all(b"ab").and_then(|()| out.write_all(b"c")));
        assert_eq!(written.unwrap(), Digest::of(b"abc"));
    }

    #[test]
    fn canonical_json_does_not_depend_on_the_order_of_keys() {
        let a: serde_json::Value = serde_json::from_str(r#"{"a":1,"b":2}"#).unwrap();
        let b: serde_json::Value = serde_json::from_str(r#"{ "b":2, "a":1 }"#).unwrap();
        assert_eq!(Digest::of_json(&a).unwrap(), Digest::of_json(&b).unwrap());
    }

    #[test]
    fn a_launch_id_round_trips_flat() {
        let block = BlockId { task: TaskId::new("t").unwrap(), block: 2, attempt: 1 };
        let id = LaunchId { block, arm: ArmId::Human };
        let text = serde_json::to_string(&id).unwrap();
        assert_eq!(text, r#"{"task":"t","block":2,"attempt":1,"arm":"human"}"#);
        assert_eq!(serde_json::from_str::<LaunchId>(&text).unwrap(), id);
    }
}
