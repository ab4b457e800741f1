//! Addresses on a hub: parts of URLs, and where a redirect leads.

use std::fmt::Write as _;

/// Where a request goes: scheme, host and port, which decide whether a token may go along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Origin {
    is_secret: bool,
    host: String,
    port: u16,
}

impl Origin {
    /// Returns the origin of a URL with `http` or `https`.
    pub(super) fn of(url: &str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        let is_secret = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => return None,
        };
        let authority = rest.split(['/', '?', '#']).next()?;
        // A name before `@` would only hide which host is meant.
        if authority.is_empty() || authority.contains('@') {
            return None;
        }
        let default = if is_secret { 443 } else { 80 };
        let has_port = authority.rsplit_once(':').filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
        let (host, port) = match has_port {
            Some((host, port)) => (host, port.parse().ok()?),
            None => (authority, default),
        };
        Some(Self { is_secret, host: host.to_ascii_lowercase(), port })
    }

    /// Returns whether a secret may be sent there: nobody on the way can read it.
    pub(super) fn is_private(&self) -> bool {
        let host = self.host.trim_matches(['[', ']']);
        let is_here = host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
        self.is_secret || is_here
    }
}

/// Returns where a redirect from `url` leads; `None` if it can't be followed, as out of a connection that is encrypted.
pub(super) fn redirected(url: &str, location: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let target = if location.contains("://") {
        location.to_owned()
    } else if let Some(other) = location.strip_prefix("//") {
        format!("{scheme}://{other}")
    } else if location.starts_with('/') {
        format!("{scheme}://{authority}{location}")
    } else {
        let path = rest.strip_prefix(authority)?.split(['?', '#']).next()?;
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        format!("{scheme}://{authority}{folder}/{location}")
    };
    let (from, to) = (Origin::of(url)?, Origin::of(&target)?);
    (to.is_secret || !from.is_secret).then_some(target)
}

/// Returns a URL without what follows its path, which may hold a signature.
pub(super) fn shown(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or(url)
}

/// Returns a part of a URL's path with everything encoded that has a meaning there; `keep` stays as it is.
pub(super) fn encoded(text: &str, keep: &[u8]) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || keep.contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_goes_only_where_nobody_reads_it() {
        for (url, expected) in [
            ("https://hub.example/x", Some(true)),
            ("http://hub.example", Some(false)),
            ("http://127.0.0.1:8000/x", Some(true)),
            ("http://[::1]:8000/x", Some(true)),
            ("http://localhost", Some(true)),
            ("http://127.0.0.1@evil.example/x", None),
            ("http://127.0.0.1.evil.example", Some(false)),
            ("ftp://x", None),
            ("x", None),
        ] {
            assert_eq!(Origin::of(url).map(|origin| origin.is_private()), expected, "{url}");
        }
        assert_ne!(Origin::of("http://a:1"), Origin::of("http://a:2"));
        assert_eq!(Origin::of("https://A/x"), Origin::of("https://a:443/y"));
    }

    #[test]
    fn a_redirect_is_followed_as_browsers_do_but_never_out_of_encryption() {
        for (url, location, expected) in [
            ("https://a/x/y?z", "/w", Some("https://a/w")),
            ("https://a/x/y", "w", Some("https://a/x/w")),
            ("https://a/x", "//b/w", Some("https://b/w")),
            ("https://a/x", "https://b/w", Some("https://b/w")),
            ("https://a/x", "http://b/w", None),
            ("http://a/x", "http://b/w", Some("http://b/w")),
            ("http://a/x", "file:///etc/passwd", None),
        ] {
            assert_eq!(redirected(url, location).as_deref(), expected, "{url} {location}");
        }
    }

    #[test]
    fn what_has_a_meaning_in_a_path_is_encoded() {
        assert_eq!(encoded("a b/ü?#%.json", b"/"), "a%20b/%C3%BC%3F%23%25.json");
        assert_eq!(encoded("refs/pr/1", b""), "refs%2Fpr%2F1");
    }
}
