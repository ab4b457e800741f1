//! What the name of a wheel says: distribution, version, and the interpreters and machines that it is for.
//!
//! Names follow PEP 427, versions PEP 440, tags PEP 425 and the manylinux PEPs 513, 571, 599 and 600.

use std::fmt;
use std::str::FromStr as _;

pub use pep440_rs::Version;

/// The name of a wheel's file, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WheelName {
    /// The distribution's normalised name, such as `flash-attn`.
    pub distribution: String,
    /// Its version.
    pub version: Version,
    /// The build's number, which tells wheels of one version apart.
    pub build: Option<String>,
    /// Every combination of tags that it names.
    pub tags: Vec<Tag>,
}

/// One interpreter, one binary interface, one platform.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tag {
    /// The interpreter, such as `cp311` or `py3`.
    pub python: String,
    /// The binary interface, such as `abi3` or `none`.
    pub abi: String,
    /// The platform, such as `manylinux_2_31_x86_64` or `any`.
    pub platform: String,
}

impl fmt::Display for Tag {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}-{}", self.python, self.abi, self.platform)
    }
}

/// Why a file's name isn't a wheel's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is no wheel's name: {reason}")]
pub struct WheelNameError {
    /// The name.
    pub name: String,
    /// What is wrong with it.
    pub reason: String,
}

impl WheelName {
    /// Reads the name of a file, without folders. `%2B` and the like must have been decoded.
    ///
    /// # Errors
    /// Returns an error if it isn't a wheel's name.
    pub fn parse(name: &str) -> Result<Self, WheelNameError> {
        let error = |reason: String| WheelNameError { name: name.chars().take(200).collect(), reason };
        let stem = name.strip_suffix(".whl").ok_or_else(|| error("it doesn't end in `.whl`".to_owned()))?;
        let parts: Vec<&str> = stem.split('-').collect();
        let (distribution, version, build, python, abi, platform) = match parts.as_slice() {
            [distribution, version, python, abi, platform] => (distribution, version, None, python, abi, platform),
            [distribution, version, build, python, abi, platform] => {
                (distribution, version, Some(*build), python, abi, platform)
            }
            _ => return Err(error(format!("it has {} parts between hyphens, not 5 or 6", parts.len()))),
        };
        if build.is_some_and(|build| !build.starts_with(|first: char| first.is_ascii_digit())) {
            return Err(error("its build number doesn't begin with a digit".to_owned()));
        }
        if !is_name(distribution) {
            return Err(error(format!("`{distribution}` is no distribution's name")));
        }
        let version = Version::from_str(version).map_err(|_cause| error(format!("`{version}` is no version")))?;
        let sets = [python, abi, platform].map(|set| set.split('.').collect::<Vec<_>>());
        let [pythons, abis, platforms] = &sets;
        if let Some(bad) = sets.iter().flatten().find(|tag| !is_tag(tag)) {
            return Err(error(format!("`{bad}` is no tag")));
        }
        let mut tags = Vec::new();
        for python in pythons {
            for abi in abis {
                let tag = |platform: &&str| Tag {
                    python: (*python).to_owned(),
                    abi: (*abi).to_owned(),
                    platform: (*platform).to_owned(),
                };
                tags.extend(platforms.iter().map(tag));
            }
        }
        Ok(Self { distribution: normalised(distribution), version, build: build.map(str::to_owned), tags })
    }

    /// Returns whether a wheel of this name can be installed for `target`.
    pub fn fits(&self, target: &Target) -> bool {
        self.tags.iter().any(|tag| target.takes(tag))
    }

    /// Returns the tags as one text, for people.
    pub fn tag_text(&self) -> String {
        let tags: Vec<String> = self.tags.iter().map(ToString::to_string).collect();
        tags.join(", ")
    }
}

/// Returns the name of a distribution as PEP 503 normalises it.
pub fn normalised(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        match letter {
            '-' | '_' | '.' if text.ends_with('-') => {}
            '-' | '_' | '.' => text.push('-'),
            letter => text.push(letter.to_ascii_lowercase()),
        }
    }
    text
}

fn is_name(name: &str) -> bool {
    let is_end = |letter: Option<char>| letter.is_some_and(|letter| letter.is_ascii_alphanumeric());
    let good = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_');
    is_end(name.chars().next()) && is_end(name.chars().next_back()) && name.chars().all(good)
}

fn is_tag(tag: &str) -> bool {
    !tag.is_empty() && tag.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// The interpreter and machine that wheels are wanted for: Python on Linux with the GNU C library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The minor version of Python 3.
    pub python_minor: u32,
    /// The machine, such as `x86_64`.
    pub machine: String,
    /// The minor version of the C library 2.
    pub glibc_minor: u32,
}

impl Target {
    /// Returns whether a file with this tag can be installed.
    fn takes(&self, tag: &Tag) -> bool {
        self.takes_python(&tag.python, &tag.abi) && self.takes_platform(&tag.platform)
    }

    fn takes_python(&self, python: &str, abi: &str) -> bool {
        let own = format!("cp3{}", self.python_minor);
        let minor = |prefix: &str| python.strip_prefix(prefix)?.parse::<u32>().ok();
        match abi {
            "abi3" => minor("cp3").is_some_and(|minor| minor >= 2 && minor <= self.python_minor),
            "none" if python == "py3" || python == own => true,
            "none" => minor("py3").is_some_and(|minor| minor <= self.python_minor),
            abi => python == own && abi == own,
        }
    }

    fn takes_platform(&self, platform: &str) -> bool {
        if platform == "any" {
            return true;
        }
        let Some(rest) = platform.strip_suffix(self.machine.as_str()).and_then(|rest| rest.strip_suffix('_')) else {
            return false;
        };
        let needed = match rest {
            "linux" => Some(0),
            "manylinux1" => Some(5),
            "manylinux2010" => Some(12),
            "manylinux2014" => Some(17),
            rest => rest.strip_prefix("manylinux_2_").and_then(|minor| minor.parse().ok()),
        };
        needed.is_some_and(|needed| needed <= self.glibc_minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_wheels_are_read() {
        for (name, distribution, version, build, tags) in [
            ("vllm-0.6.6.dev17+g1234567-cp38-abi3-manylinux1_x86_64.whl", "vllm", "0.6.6.dev17+g1234567", None, 1),
            ("vllm-1.0.0.dev-cp38-abi3-manylinux1_x86_64.whl", "vllm", "1.0.0.dev0", None, 1),
            ("Flash_Attn-2.8.3-1-cp311-cp311-linux_x86_64.whl", "flash-attn", "2.8.3", Some("1"), 1),
            ("six-1.17.0-py2.py3-none-any.whl", "six", "1.17.0", None, 2),
            ("x-1-cp39-abi3-manylinux_2_17_x86_64.manylinux2014_x86_64.whl", "x", "1", None, 2),
        ] {
            let found = WheelName::parse(name).unwrap();
            assert_eq!((found.distribution.as_str(), found.version.to_string().as_str()), (distribution, version));
            assert_eq!((found.build.as_deref(), found.tags.len()), (build, tags), "{name}");
        }
    }

    #[test]
    fn what_is_no_wheels_name_is_refused_with_the_reason() {
        for (name, reason) in [
            ("vllm-0.6.6.tar.gz", "it doesn't end in `.whl`"),
            ("vllm-0.6.6-cp38.whl", "it has 3 parts between hyphens, not 5 or 6"),
            ("vllm-latest-cp38-abi3-any.whl", "`latest` is no version"),
            ("vllm-1-b-cp38-abi3-any.whl", "its build number doesn't begin with a digit"),
            ("../vllm-1-cp38-abi3-any.whl", "`../vllm` is no distribution's name"),
            ("vllm-1-cp38-abi3-a%ny.whl", "`a%ny` is no tag"),
            ("vllm-1-cp38-abi3-.whl", "`` is no tag"),
        ] {
            assert_eq!(WheelName::parse(name).unwrap_err().reason, reason);
        }
    }

    #[test]
    fn a_wheel_fits_by_interpreter_interface_machine_and_c_library() {
        let target = Target { python_minor: 11, machine: "x86_64".to_owned(), glibc_minor: 31 };
        for (tags, expected) in [
            ("cp38-abi3-manylinux1_x86_64", true),
            ("cp311-cp311-manylinux_2_31_x86_64", true),
            ("cp312-abi3-manylinux1_x86_64", false),
            ("cp310-cp310-manylinux1_x86_64", false),
            ("cp311-cp311-manylinux_2_34_x86_64", false),
            ("cp311-cp311-manylinux_2_34_x86_64.manylinux2014_x86_64", true),
            ("cp38-abi3-manylinux2014_aarch64", false),
            ("cp38-abi3-macosx_11_0_x86_64", false),
            ("py3-none-any", true),
            ("py2.py3-none-any", true),
            ("py312-none-any", false),
            ("cp311-none-linux_x86_64", true),
            ("cp311-cp311t-linux_x86_64", false),
        ] {
            let name = WheelName::parse(&format!("x-1-{tags}.whl")).unwrap();
            assert_eq!(name.fits(&target), expected, "{tags}");
        }
    }
}
