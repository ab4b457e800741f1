//! How repositories of images are named: `ns/name`, `registry.example/ns/name`, `127.0.0.1:5000/name`.

use std::fmt;

use isobench_schema::ids::{ImageDigest, ImageTag, InvalidIdError};

use super::address::{Address, AddressError, Scheme, is_loopback};

/// How Docker Hub is named in references.
const HUB: &str = "docker.io";
/// Where Docker Hub's registry answers.
const HUB_REGISTRY: &str = "registry-1.docker.io";
/// Other names of Docker Hub.
const HUB_NAMES: [&str; 3] = ["docker.io", "index.docker.io", "registry-1.docker.io"];

/// Why a text names no repository or image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// It isn't one.
    #[error("`{text}` is no name of a repository: {rule}")]
    Name {
        /// The text, shortened.
        text: String,
        /// What it should be.
        rule: &'static str,
    },
    /// Its host can't be asked.
    #[error("the registry of `{text}` can't be asked")]
    Host {
        /// The text.
        text: String,
        /// Why.
        #[source]
        source: AddressError,
    },
    /// It has a tag or digest that is none.
    #[error("`{text}` names no image")]
    Target {
        /// The text.
        text: String,
        /// Why.
        #[source]
        source: InvalidIdError,
    },
}

/// A repository of images in a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    registry: String,
    name: String,
    scheme: Scheme,
}

impl Repository {
    /// Reads a repository's name as Docker does: without a host it is one of Docker Hub. `https://` may stand before it.
    ///
    /// # Errors
    /// Returns the rule that it breaks.
    pub fn parse(text: &str) -> Result<Self, ReferenceError> {
        let wrong = |rule| ReferenceError::Name { text: text.chars().take(120).collect(), rule };
        let (scheme, rest) = match (text.strip_prefix("https://"), text.strip_prefix("http://")) {
            (Some(rest), _) => (Some(Scheme::Https), rest),
            (None, Some(rest)) => (Some(Scheme::Http), rest),
            (None, None) => (None, text),
        };
        let is_host = |first: &str| first.contains(['.', ':']) || first == "localhost";
        let (registry, name) = match rest.split_once('/') {
            Some((first, name)) if is_host(first) || scheme.is_some() => (first.to_ascii_lowercase(), name.to_owned()),
            None if scheme.is_some() => return Err(wrong("no repository follows the host")),
            Some(_) | None => (HUB.to_owned(), rest.to_owned()),
        };
        let is_hub = HUB_NAMES.contains(&registry.as_str());
        let registry = if is_hub { HUB.to_owned() } else { registry };
        let name = if is_hub && !name.contains('/') { format!("library/{name}") } else { name };
        if !is_name(&name) {
            return Err(wrong("use lower-case letters, digits, `.`, `_`, `-` and `/`, as in `team/engine`"));
        }
        let scheme = scheme.unwrap_or(if is_loopback(&registry) { Scheme::Http } else { Scheme::Https });
        let repository = Self { registry, name, scheme };
        repository.base().map_err(|source| ReferenceError::Host { text: text.chars().take(120).collect(), source })?;
        Ok(repository)
    }

    /// Returns where the registry answers about this repository: `https://HOST/v2/NAME/`.
    pub(super) fn base(&self) -> Result<Address, AddressError> {
        Address::of_parts(self.scheme, self.host(), &format!("/v2/{}/", self.name))
    }

    fn host(&self) -> &str {
        if self.is_hub() { HUB_REGISTRY } else { &self.registry }
    }

    /// Returns the registry's name, by which credentials are found.
    pub fn registry(&self) -> &str {
        &self.registry
    }

    /// Returns the name in the registry.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether it is one of Docker Hub.
    pub fn is_hub(&self) -> bool {
        self.registry == HUB
    }
}

impl fmt::Display for Repository {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.registry, self.name)
    }
}

fn is_name(name: &str) -> bool {
    let part = |part: &str| {
        let alphanumeric = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let inner = |byte: u8| alphanumeric(&byte) || matches!(byte, b'.' | b'_' | b'-');
        let bytes = part.as_bytes();
        let ends = bytes.first().is_some_and(alphanumeric) && bytes.last().is_some_and(alphanumeric);
        ends && bytes.iter().copied().all(inner) && !part.contains("..")
    };
    name.len() <= 255 && name.split('/').all(part)
}

/// What of a repository is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// What a tag names now.
    Tag(ImageTag),
    /// Exactly this.
    Digest(ImageDigest),
}

impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tag(tag) => tag.fmt(formatter),
            Self::Digest(digest) => digest.fmt(formatter),
        }
    }
}

/// Reads `REPOSITORY:TAG` or `REPOSITORY@sha256:DIGEST`; without either, the tag is `latest`.
///
/// # Errors
/// Returns the rule that a part breaks.
pub fn parse_reference(text: &str) -> Result<(Repository, Target), ReferenceError> {
    let broken = |source| ReferenceError::Target { text: text.chars().take(120).collect(), source };
    if let Some((repository, digest)) = text.split_once('@') {
        let digest = ImageDigest::new(digest).map_err(broken)?;
        return Ok((Repository::parse(repository)?, Target::Digest(digest)));
    }
    let last = text.rfind('/').map_or(0, |place| place + 1);
    // A host with a port has a name behind it.
    if let Some((name, tag)) = text.get(last..).and_then(|name| name.split_once(':')) {
        let tag = ImageTag::new(tag).map_err(broken)?;
        let repository = text.get(..last + name.len()).unwrap_or(text);
        return Ok((Repository::parse(repository)?, Target::Tag(tag)));
    }
    let latest = ImageTag::new("latest").map_err(broken)?;
    Ok((Repository::parse(text)?, Target::Tag(latest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> (String, String) {
        let repository = Repository::parse(text).unwrap();
        (repository.to_string(), repository.base().unwrap().to_string())
    }

    #[test]
    fn repositories_are_named_as_docker_names_them() {
        for (text, name, base) in [
            ("team/engine", "docker.io/team/engine", "https://registry-1.docker.io/v2/team/engine/"),
            ("debian", "docker.io/library/debian", "https://registry-1.docker.io/v2/library/debian/"),
            ("index.docker.io/team/e", "docker.io/team/e", "https://registry-1.docker.io/v2/team/e/"),
            ("Ghcr.io/a/b/c", "ghcr.io/a/b/c", "https://ghcr.io/v2/a/b/c/"),
            ("127.0.0.1:5000/e", "127.0.0.1:5000/e", "http://127.0.0.1:5000/v2/e/"),
            ("localhost/e", "localhost/e", "http://localhost/v2/e/"),
            ("https://localhost:5443/e", "localhost:5443/e", "https://localhost:5443/v2/e/"),
        ] {
            assert_eq!(shown(text), (name.to_owned(), base.to_owned()), "{text}");
        }
    }

    #[test]
    fn what_is_no_repository_is_refused() {
        let refused =
            ["", "Team/engine", "a//b", "-x/y", "host.example/", "a/../b", "http://host.example/a", "a b", "https://h"];
        for text in refused {
            assert!(Repository::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_tag_or_a_digest_may_follow() {
        let of = |text: &str| {
            let (repository, target) = parse_reference(text).unwrap();
            format!("{repository} {target}")
        };
        assert_eq!(of("127.0.0.1:5000/e"), "127.0.0.1:5000/e latest");
        assert_eq!(of("127.0.0.1:5000/a/e:v1"), "127.0.0.1:5000/a/e v1");
        let digest = format!("sha256:{}", "a".repeat(64));
        assert_eq!(of(&format!("team/e@{digest}")), format!("docker.io/team/e {digest}"));
        assert!(parse_reference("team/e@sha256:abc").is_err());
        assert!(parse_reference("team/e:-x").is_err());
    }
}
