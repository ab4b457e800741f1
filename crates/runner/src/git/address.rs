//! Where a repository is: a folder, or a URL with one of the few transports that are allowed.

use std::fmt;
use std::path::PathBuf;

/// The address of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// An absolute path of this machine.
    Local(PathBuf),
    /// A URL.
    Remote {
        /// The URL.
        url: String,
        /// Git's name of its transport.
        protocol: &'static str,
    },
}

/// Why an address is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the repository address `{address}` {reason}")]
pub struct BadAddressError {
    /// The address.
    pub address: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

impl Address {
    /// Returns the checked address.
    ///
    /// # Errors
    /// Returns why it is refused: it could be read as an option, its transport isn't allowed, or it is a relative path.
    pub fn parse(address: &str) -> Result<Self, BadAddressError> {
        let bad = |reason| Err(BadAddressError { address: address.to_owned(), reason });
        if address.is_empty() {
            return bad("is empty");
        }
        if address.starts_with('-') {
            return bad("starts with `-` and could be read as an option");
        }
        if address.chars().any(char::is_control) {
            return bad("has control characters");
        }
        if address.starts_with('/') {
            return Ok(Self::Local(address.into()));
        }
        if address.contains("::") {
            return bad("names a remote helper; use a path, `https://`, `ssh://` or `file://`");
        }
        let remote = |protocol| Ok(Self::Remote { url: address.to_owned(), protocol });
        if let Some((scheme, rest)) = address.split_once("://") {
            let host = rest.split('/').next().unwrap_or_default();
            let host = host.rsplit('@').next().unwrap_or_default();
            return match scheme {
                "file" if rest.starts_with('/') => remote("file"),
                _ if host.is_empty() || host.starts_with('-') => bad("has no valid host"),
                "https" => remote("https"),
                "ssh" => remote("ssh"),
                _ => bad("has a transport that isn't allowed; use a path, `https://`, `ssh://` or `file://`"),
            };
        }
        match address.split_once(':') {
            // The short form of ssh: user@host:path.
            Some((host, path)) if !host.contains('/') => {
                let name = host.rsplit('@').next().unwrap_or_default();
                if name.is_empty() || name.starts_with('-') || path.is_empty() || path.starts_with('-') {
                    return bad("has no valid host or path");
                }
                remote("ssh")
            }
            Some(_) | None => bad("is a relative path; use an absolute one or a URL"),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(folder) => write!(formatter, "{}", folder.display()),
            Self::Remote { url, .. } => formatter.write_str(&without_user(url)),
        }
    }
}

/// Returns the URL without user and password, which belong into no record.
fn without_user(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit('@').next().unwrap_or(authority);
    format!("{scheme}://{host}{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(address: &str, expected: Result<&str, &str>) {
        let found = Address::parse(address);
        let found = found.as_ref().map(|address| match address {
            Address::Local(_) => "local",
            Address::Remote { protocol, .. } => protocol,
        });
        match (found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{address}"),
            (Err(found), Err(expected)) => assert!(found.reason.contains(expected), "{address}: {found}"),
            (found, _) => panic!("{address}: {found:?}"),
        }
    }

    #[test]
    fn only_paths_and_safe_transports_are_taken() {
        check("/srv/repo", Ok("local"));
        check("https://example.org/a/b.git", Ok("https"));
        check("ssh://git@example.org/a", Ok("ssh"));
        check("git@example.org:a/b.git", Ok("ssh"));
        check("file:///srv/repo", Ok("file"));
        check("", Err("empty"));
        check("--upload-pack=touch x", Err("option"));
        check("ext::sh -c id", Err("remote helper"));
        check("http://example.org/a", Err("transport"));
        check("git://example.org/a", Err("transport"));
        check("ftp://example.org/a", Err("transport"));
        check("file://host/x", Err("transport"));
        check("ssh://-oProxyCommand=id/x", Err("host"));
        check("ssh://user@-oProxyCommand=id/x", Err("host"));
        check("-x@host:a", Err("option"));
        check("user@-oProxyCommand=id:a", Err("host"));
        check("host:-x", Err("path"));
        check("a/b", Err("relative"));
        check("a\nb", Err("control"));
    }

    #[test]
    fn a_password_is_never_shown() {
        let address = Address::parse("https://user:secret@example.org/a.git").unwrap();
        assert_eq!(address.to_string(), "https://example.org/a.git");
    }
}
