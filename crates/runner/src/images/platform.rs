//! What an image runs on: `linux/amd64`.

use std::fmt;

use serde::Deserialize;

/// An operating system and an architecture, with a variant where there are several.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Platform {
    /// The operating system, such as `linux`.
    pub os: String,
    /// The architecture, such as `amd64`.
    pub architecture: String,
    /// The variant, such as `v8`.
    #[serde(default)]
    pub variant: Option<String>,
}

/// Why a text is no platform.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no platform: use an operating system and an architecture, as in `linux/amd64`")]
pub struct PlatformError(String);

impl Platform {
    /// Reads `OS/ARCHITECTURE` or `OS/ARCHITECTURE/VARIANT`.
    ///
    /// # Errors
    /// Returns an error if it isn't one.
    pub fn parse(text: &str) -> Result<Self, PlatformError> {
        let wrong = || PlatformError(text.chars().take(80).collect());
        let plain = |part: &&str| {
            !part.is_empty()
                && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
        };
        let parts: Vec<&str> = text.split('/').collect();
        if !parts.iter().all(plain) {
            return Err(wrong());
        }
        match parts.as_slice() {
            [os, architecture] => {
                Ok(Self { os: (*os).to_owned(), architecture: (*architecture).to_owned(), variant: None })
            }
            [os, architecture, variant] => Ok(Self {
                os: (*os).to_owned(),
                architecture: (*architecture).to_owned(),
                variant: Some((*variant).to_owned()),
            }),
            _ => Err(wrong()),
        }
    }

    /// Returns whether an image of another platform does for this one.
    pub fn accepts(&self, other: &Self) -> bool {
        let same_variant = self.variant.is_none() || self.variant == other.variant;
        self.os == other.os && self.architecture == other.architecture && same_variant
    }

    /// Returns whether it says nothing, as attestations beside images do.
    pub fn is_unknown(&self) -> bool {
        self.os == "unknown" || self.os.is_empty()
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.os, self.architecture)?;
        self.variant.as_ref().map_or(Ok(()), |variant| write!(formatter, "/{variant}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn platforms_are_read_and_compared() {
        let amd = Platform::parse("linux/amd64").unwrap();
        let arm = Platform::parse("linux/arm64/v8").unwrap();
        assert_eq!(arm.to_string(), "linux/arm64/v8");
        assert!(Platform::parse("linux/arm64").unwrap().accepts(&arm));
        assert!(!arm.accepts(&Platform::parse("linux/arm64").unwrap()));
        assert!(!amd.accepts(&arm));
        for text in ["", "linux", "a/b/c/d", "a//b", "linux/a b"] {
            assert!(Platform::parse(text).is_err(), "{text}");
        }
    }
}
