//! What is known beforehand of the run that left a file: tool, version, number of requests.

use std::cmp::Ordering;
use std::fmt;

pub use isobench_schema::reading::ToolFamily;

/// What is known beforehand of the run that left a file. What isn't known is recognised.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Binding {
    /// The tool. If it is known, only its formats are tried.
    pub tool: Option<ToolFamily>,
    /// Its version. If it is known, a layout that this version doesn't print is refused.
    pub version: Option<ToolVersion>,
    /// The number of requests that were asked for.
    pub asked: Option<u64>,
}

/// How far a version is from the release that it is named after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Development,
    Candidate,
    Release,
    Post(u32),
}

/// A version of a tool, such as `v0.6.4.post1` or `0.9.2rc2.dev58+g0123abcd`. Versions are ordered by their release
/// numbers; development versions and candidates come before the release, post-releases after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolVersion {
    /// The release numbers; those behind the last that is given are 0.
    numbers: [u32; MOST_NUMBERS],
    /// How many are given.
    given: usize,
    phase: Phase,
}

/// The most release numbers of a version.
const MOST_NUMBERS: usize = 4;

impl ToolVersion {
    /// Returns the version that a text names: numbers with dots between them, with or without `v` before them, then any
    /// of `rcN`, `.postN`, `.devN` and `+LOCAL`.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let text = text.strip_prefix('v').unwrap_or(text);
        let text = text.split('+').next().unwrap_or(text);
        let mut version = Self { numbers: [0; MOST_NUMBERS], given: 0, phase: Phase::Release };
        let mut phase = Phase::Release;
        for part in text.split('.') {
            if let Ok(number) = part.parse() {
                if phase != Phase::Release {
                    return None;
                }
                version.push(number)?;
            } else if let Some(number) = part.strip_prefix("post") {
                phase = Phase::Post(number.parse().ok()?);
            } else if let Some(number) = part.strip_prefix("dev") {
                if !number.bytes().all(|byte| byte.is_ascii_digit()) {
                    return None;
                }
                phase = Phase::Development;
            } else {
                let (number, candidate) = part.split_at(part.find(|c: char| !c.is_ascii_digit())?);
                let candidate = candidate.strip_prefix("rc").or_else(|| candidate.strip_prefix(['a', 'b']))?;
                candidate.parse::<u32>().ok()?;
                version.push(number.parse().ok()?)?;
                phase = Phase::Candidate;
            }
        }
        (version.given > 0).then_some(Self { phase, ..version })
    }

    fn push(&mut self, number: u32) -> Option<()> {
        *self.numbers.get_mut(self.given)? = number;
        self.given += 1;
        Some(())
    }

    /// Returns the first two release numbers, which name a series of releases.
    fn series(&self) -> (u32, u32) {
        let [major, minor, ..] = self.numbers;
        (major, minor)
    }

    /// Returns whether this is a version between two releases, which may print what either of them does.
    fn is_between_releases(&self) -> bool {
        match self.phase {
            Phase::Development | Phase::Candidate => true,
            Phase::Release | Phase::Post(_) => false,
        }
    }
}

impl PartialOrd for ToolVersion {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ToolVersion {
    fn cmp(&self, other: &Self) -> Ordering {
        self.numbers.cmp(&other.numbers).then(self.phase.cmp(&other.phase))
    }
}

impl fmt::Display for ToolVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<String> = self.numbers.iter().take(self.given).map(u32::to_string).collect();
        write!(formatter, "v{}", numbers.join("."))?;
        match self.phase {
            Phase::Development => formatter.write_str(".dev"),
            Phase::Candidate => formatter.write_str("rc"),
            Phase::Release => Ok(()),
            Phase::Post(number) => write!(formatter, ".post{number}"),
        }
    }
}

/// The versions from one to another, both included; an end may be open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VersionRange {
    /// The first version.
    pub from: Option<&'static str>,
    /// The last version.
    pub to: Option<&'static str>,
}

impl VersionRange {
    /// Every version.
    pub const ALL: Self = Self { from: None, to: None };

    /// Returns the versions from one on.
    pub const fn from(from: &'static str) -> Self {
        Self { from: Some(from), to: None }
    }

    /// Returns the versions from one to another.
    pub const fn between(from: &'static str, to: &'static str) -> Self {
        Self { from: Some(from), to: Some(to) }
    }

    /// Returns the versions up to one.
    pub const fn to(to: &'static str) -> Self {
        Self { from: None, to: Some(to) }
    }

    /// Returns whether a version is in the range. A version between two releases is taken for either of them.
    pub fn contains(&self, version: &ToolVersion) -> bool {
        let between = version.is_between_releases();
        let after = self.first().is_none_or(|first| *version >= first || (between && version.numbers >= first.numbers));
        let before = self.last().is_none_or(|last| {
            let (major, minor) = last.series();
            *version <= last || (between && version.series() <= (major, minor + 1))
        });
        after && before
    }

    /// Returns the versions that are in both ranges.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        if self == other {
            return self;
        }
        let from = if other.first() > self.first() { other.from } else { self.from };
        let to = match (self.last(), other.last()) {
            (Some(mine), Some(theirs)) if theirs < mine => other.to,
            (Some(_), _) => self.to,
            (None, _) => other.to,
        };
        Self { from, to }
    }

    /// Returns whether no version is in the range.
    pub fn is_empty(&self) -> bool {
        matches!((self.first(), self.last()), (Some(first), Some(last)) if first > last)
    }

    fn first(&self) -> Option<ToolVersion> {
        self.from.and_then(ToolVersion::parse)
    }

    fn last(&self) -> Option<ToolVersion> {
        self.to.and_then(ToolVersion::parse)
    }
}

impl fmt::Display for VersionRange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.from, self.to) {
            (None, None) => formatter.write_str("all"),
            // What only versions between two releases print.
            (Some(from), Some(to)) if self.is_empty() => write!(formatter, "between {to} and {from}"),
            (from, to) => write!(formatter, "{}..{}", from.unwrap_or_default(), to.unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> ToolVersion {
        ToolVersion::parse(text).unwrap_or_else(|| panic!("{text} is a version"))
    }

    #[test]
    fn versions_are_read_in_every_form_and_ordered() {
        let ordered =
            ["0.1", "v0.4.0", "0.6.4", "0.6.4.post1", "0.9.2rc2.dev58+g0123abcd", "0.9.2rc2", "0.9.2", "0.10.0"];
        for pair in ordered.windows(2) {
            assert!(version(pair[0]) < version(pair[1]), "{pair:?}");
        }
        assert_eq!(version("0.5").cmp(&version("0.5.0")), Ordering::Equal);
        assert_eq!(version("v0.6.4.post1").to_string(), "v0.6.4.post1");
        for bad in ["", "v", "latest", "1.x", "1..2", "0.6.post", "1.dev1.2"] {
            assert_eq!(ToolVersion::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn ranges_hold_their_ends_and_what_lies_between_releases() {
        let range = VersionRange::between("v0.6.0", "v0.9.1");
        for (text, held) in [
            ("0.5.5", false),
            ("0.6.0.dev3", true),
            ("0.6.0", true),
            ("0.9.1", true),
            ("0.9.2.dev1", true),
            ("0.9.2", false),
            ("0.9.1.post1", false),
            ("0.11.0.dev1", false),
        ] {
            assert_eq!(range.contains(&version(text)), held, "{text}");
        }
        assert_eq!(range.and(VersionRange::from("v0.8.0")).to_string(), "v0.8.0..v0.9.1");
        assert_eq!(range.and(VersionRange::to("v0.7.0")).to_string(), "v0.6.0..v0.7.0");
        let window = VersionRange::to("v0.5.5").and(VersionRange::from("v0.6.0"));
        assert_eq!(window.to_string(), "between v0.5.5 and v0.6.0");
        assert!(window.is_empty() && window.contains(&version("0.6.0.dev3")) && !window.contains(&version("0.6.0")));
    }
}
