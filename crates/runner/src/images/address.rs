//! Where a request goes: scheme, host and path, as far as registries need them.

use std::fmt;

/// Why a text is no address that may be asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no address that may be asked: {rule}")]
pub struct AddressError {
    /// The text, shortened.
    pub text: String,
    /// What it should be.
    pub rule: &'static str,
}

/// How a host is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// In the open, which only this machine itself is.
    Http,
    /// By TLS.
    Https,
}

/// An address without user, password and fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    scheme: Scheme,
    authority: String,
    /// With its query; begins with `/`.
    path: String,
}

/// How much of a refused text is shown.
const SHOWN: usize = 120;

fn refused(text: &str, rule: &'static str) -> AddressError {
    AddressError { text: text.chars().take(SHOWN).collect(), rule }
}

impl Address {
    /// Reads an absolute address.
    ///
    /// # Errors
    /// Returns the rule that it breaks.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let lower = text.get(..8).unwrap_or(text).to_ascii_lowercase();
        let (scheme, rest) = if lower.starts_with("https://") {
            (Scheme::Https, text.get(8..))
        } else if lower.starts_with("http://") {
            (Scheme::Http, text.get(7..))
        } else {
            return Err(refused(text, "it must begin with `https://`, or for this machine with `http://`"));
        };
        let rest = rest.unwrap_or_default();
        let (authority, path) = match rest.find(['/', '?']) {
            Some(place) => rest.split_at(place),
            None => (rest, "/"),
        };
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Self::of_parts(scheme, authority, &path)
    }

    /// Returns the address of a path on a host.
    ///
    /// # Errors
    /// Returns the rule that a part breaks.
    pub fn of_parts(scheme: Scheme, authority: &str, path: &str) -> Result<Self, AddressError> {
        let host_sign =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b':' | b'[' | b']');
        if authority.is_empty() || authority.len() > 255 || !authority.bytes().all(host_sign) {
            return Err(refused(authority, "a host is letters, digits, `.` and `-`, with a port or without"));
        }
        let path_sign = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'#' | b'\\' | b'"' | b'<' | b'>');
        if path.len() > 8192 || !path.starts_with('/') || !path.bytes().all(path_sign) {
            return Err(refused(path, "a path has no spaces, control characters or fragment"));
        }
        let address = Self { scheme, authority: authority.to_ascii_lowercase(), path: path.to_owned() };
        if scheme == Scheme::Http && !address.is_loopback() {
            return Err(refused(&address.to_string(), "other machines are spoken to by `https` only"));
        }
        Ok(address)
    }

    /// Returns the address that a `Location` or `Link` found at this address means.
    ///
    /// # Errors
    /// Returns the rule that it breaks.
    pub fn join(&self, reference: &str) -> Result<Self, AddressError> {
        if reference.starts_with("//") {
            return Err(refused(reference, "it must name its scheme"));
        }
        if reference.contains("://") {
            return Self::parse(reference);
        }
        let plain = self.path.split('?').next().unwrap_or("/");
        let path = if reference.starts_with('/') {
            reference.to_owned()
        } else if reference.starts_with('?') {
            format!("{plain}{reference}")
        } else {
            let folder = plain.rsplit_once('/').map_or("", |(folder, _)| folder);
            format!("{folder}/{reference}")
        };
        Self::of_parts(self.scheme, &self.authority, &path)
    }

    /// Returns this address with another part of a query added.
    #[must_use]
    pub fn with_query(&self, name: &str, value: &str) -> Self {
        let sign = if self.path.contains('?') { '&' } else { '?' };
        Self { path: format!("{}{sign}{name}={}", self.path, encode(value)), ..self.clone() }
    }

    /// Returns whether both are on one host, by one scheme and port.
    pub fn is_same_place(&self, other: &Self) -> bool {
        let with_port = |address: &Self| {
            let port = match address.scheme {
                Scheme::Http => ":80",
                Scheme::Https => ":443",
            };
            if address.host().len() == address.authority.len() {
                format!("{}{port}", address.authority)
            } else {
                address.authority.clone()
            }
        };
        self.scheme == other.scheme && with_port(self) == with_port(other)
    }

    /// Returns the host without its port.
    pub fn host(&self) -> &str {
        host_of(&self.authority)
    }

    /// Returns the host with its port, if it names one.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// Returns the path without its query.
    pub fn path(&self) -> &str {
        self.path.split('?').next().unwrap_or("/")
    }

    /// Returns whether this machine itself is meant.
    pub fn is_loopback(&self) -> bool {
        is_loopback(&self.authority)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.scheme {
            Scheme::Http => "http",
            Scheme::Https => "https",
        };
        write!(formatter, "{scheme}://{}{}", self.authority, self.path)
    }
}

/// Returns a host without its port.
fn host_of(authority: &str) -> &str {
    let after_brackets = authority.rfind(']').map_or(0, |place| place + 1);
    let colon = authority.get(after_brackets..).and_then(|rest| rest.rfind(':'));
    colon.and_then(|place| authority.get(..after_brackets + place)).unwrap_or(authority)
}

/// Returns whether a host, with or without its port, is this machine itself.
pub(super) fn is_loopback(authority: &str) -> bool {
    let host = host_of(authority).to_ascii_lowercase();
    let v4 = host.parse::<std::net::Ipv4Addr>().is_ok_and(|address| address.is_loopback());
    v4 || host == "localhost" || host == "[::1]"
}

/// Percent-encodes a value of a query.
pub(super) fn encode(value: &str) -> String {
    use fmt::Write as _;
    let mut out = String::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            write!(out, "%{byte:02X}").expect("a String takes every write");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_joined_as_servers_mean_them() {
        let base = Address::parse("https://Registry.example/v2/a/b/tags/list?n=5").unwrap();
        assert_eq!(base.to_string(), "https://registry.example/v2/a/b/tags/list?n=5");
        assert_eq!((base.host(), base.path()), ("registry.example", "/v2/a/b/tags/list"));
        for (reference, expected) in [
            ("/v2/x?last=1", "https://registry.example/v2/x?last=1"),
            ("?last=1", "https://registry.example/v2/a/b/tags/list?last=1"),
            ("list?last=2", "https://registry.example/v2/a/b/tags/list?last=2"),
            ("https://other.example:444/y", "https://other.example:444/y"),
        ] {
            assert_eq!(base.join(reference).unwrap().to_string(), expected, "{reference}");
        }
        assert_eq!(base.with_query("k", "a b&c").to_string().rsplit_once('&').unwrap().1, "k=a%20b%26c");
    }

    #[test]
    fn what_would_send_something_into_the_open_is_refused() {
        let base = Address::parse("https://registry.example/v2/").unwrap();
        for text in
            ["http://registry.example/", "//other/x", "ftp://a/", "https:///x", "https://u:p@h/", "https://h/a b"]
        {
            assert!(base.join(text).is_err(), "{text}");
        }
        for text in ["http://127.0.0.1:5000/v2/", "http://localhost/", "http://[::1]:5000/"] {
            assert!(Address::parse(text).unwrap().is_loopback(), "{text}");
        }
        assert!(Address::parse("http://127.0.0.1.example/").is_err());
    }

    #[test]
    fn a_default_port_is_the_same_place() {
        let same = |one: &str, other: &str| Address::parse(one).unwrap().is_same_place(&Address::parse(other).unwrap());
        assert!(same("https://a.example/x", "https://A.example:443/y"));
        assert!(!same("https://a.example/", "https://a.example:444/"));
        assert!(!same("http://localhost/", "https://localhost/"));
        assert!(!same("https://a.example/", "https://b.example/"));
    }
}
