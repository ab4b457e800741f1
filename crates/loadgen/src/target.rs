//! Where requests go: a server's address, and the model that is asked for.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;

use crate::tls::{self, Protocol, SetUpTlsError, Trust};

/// Why a URL can't be a target.
#[derive(Debug, thiserror::Error)]
pub enum ParseTargetError {
    /// TLS can't be set up.
    #[error("`{url}` asks for https, and TLS can't be set up")]
    Tls {
        /// The URL.
        url: String,
        /// The cause.
        #[source]
        source: SetUpTlsError,
    },
    /// The path of a Unix socket is too long.
    #[error("`{path}` can't be the path of a Unix socket: it has more than {LONGEST_SOCKET_PATH} bytes")]
    SocketPath {
        /// The path.
        path: PathBuf,
    },
    /// It isn't a URL of the kind wanted.
    #[error("`{url}` is not a server's address: {rule}")]
    Malformed {
        /// The URL.
        url: String,
        /// The rule that it breaks.
        rule: &'static str,
    },
    /// The host has no address.
    #[error("the host `{host}` can't be resolved")]
    Unresolved {
        /// The host.
        host: String,
        /// What the resolver said, where it said anything.
        #[source]
        source: Option<io::Error>,
    },
}

/// The longest path of a Unix socket, in bytes.
const LONGEST_SOCKET_PATH: usize = 107;

/// Which version of HTTP is spoken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HttpVersion {
    /// HTTP/1.1; within TLS, HTTP/2 where the server speaks it.
    #[default]
    Auto,
    /// HTTP/1.1.
    Http1,
    /// HTTP/2; without TLS by prior knowledge.
    Http2,
}

/// How a server is spoken to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manner {
    /// The version of HTTP.
    pub http: HttpVersion,
    /// Whose certificates are trusted.
    pub trust: Trust,
}

impl Default for Manner {
    fn default() -> Self {
        Self { http: HttpVersion::Auto, trust: Trust::System }
    }
}

/// What an endpoint needs for TLS.
#[derive(Debug, Clone)]
pub(crate) struct Secure {
    /// The name that the certificate must have.
    pub(crate) name: String,
    /// For connections that carry the load.
    pub(crate) load: tls::Config,
    /// For single questions, which are HTTP/1.1.
    pub(crate) questions: tls::Config,
}

/// Where a connection goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A TCP port.
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
}

/// A server: its addresses, and the path that all its interfaces are below.
///
/// Connections go straight there: proxy variables of the environment are not read.
#[derive(Debug, Clone)]
pub struct Endpoint {
    host: String,
    addresses: Vec<Address>,
    prefix: String,
    http: HttpVersion,
    secure: Option<Secure>,
    headers: Vec<(String, String)>,
}

impl Endpoint {
    /// Returns the server that `url` names, spoken to in the usual manner.
    ///
    /// # Errors
    /// As [`Endpoint::parse_with`].
    pub fn parse(url: &str) -> Result<Self, ParseTargetError> {
        Self::parse_with(url, &Manner::default())
    }

    /// Returns the server that `url` names, for example `http://127.0.0.1:8000`, `https://name` or `http://name/prefix`.
    ///
    /// A prefix that ends in `/v1`, as other clients want it, means the same as one without. A name is resolved at
    /// once, which may wait for the system's resolver.
    ///
    /// # Errors
    /// Returns an error if `url` is no URL of a host, if the host can't be resolved, or if TLS can't be set up.
    pub fn parse_with(url: &str, manner: &Manner) -> Result<Self, ParseTargetError> {
        let malformed = |rule| ParseTargetError::Malformed { url: url.to_owned(), rule };
        let (scheme, rest) =
            url.split_once("://").ok_or_else(|| malformed("it must look like `http://host:port/prefix`"))?;
        let is_secure = scheme.eq_ignore_ascii_case("https");
        if !is_secure && !scheme.eq_ignore_ascii_case("http") {
            return Err(malformed("it must start with `http://` or `https://`"));
        }
        let usual_port = if is_secure { 443 } else { 80 };
        let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        if !path.bytes().all(|byte| byte.is_ascii_graphic()) || path.contains(['?', '#']) {
            return Err(malformed("the path must be plain ASCII without spaces, query and fragment"));
        }
        if authority.contains('@') {
            return Err(malformed("a user name or password in it is not supported"));
        }
        let (name, port) =
            split_port(authority, usual_port).ok_or_else(|| malformed("the port must be a number up to 65535"))?;
        let literal = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
        let plain = |name: &str, more: &str| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
        };
        if !literal.map_or_else(|| plain(name, ".-_"), |address| plain(address, ":.")) {
            return Err(malformed("the host must be a name or an address"));
        }
        let unresolved = |source| ParseTargetError::Unresolved { host: name.to_owned(), source };
        let found = (literal.unwrap_or(name), port).to_socket_addrs().map_err(|source| unresolved(Some(source)))?;
        let addresses: Vec<Address> = found.map(Address::Tcp).collect();
        if addresses.is_empty() {
            return Err(unresolved(None));
        }
        let prefix = path.trim_end_matches('/');
        let prefix = prefix.strip_suffix("/v1").unwrap_or(prefix).trim_end_matches('/').to_owned();
        let host = if port == usual_port { name.to_owned() } else { format!("{name}:{port}") };
        let secure = is_secure.then(|| secure(name, manner)).transpose();
        let secure = secure.map_err(|source| ParseTargetError::Tls { url: url.to_owned(), source })?;
        Ok(Self { host, addresses, prefix, http: manner.http, secure, headers: Vec::new() })
    }

    /// Returns the same server, reached through a Unix socket instead of its address.
    ///
    /// # Errors
    /// Returns an error if the path is too long for a socket.
    pub fn through(mut self, path: PathBuf) -> Result<Self, ParseTargetError> {
        if path.as_os_str().len() > LONGEST_SOCKET_PATH {
            return Err(ParseTargetError::SocketPath { path });
        }
        self.addresses = vec![Address::Unix(path)];
        Ok(self)
    }

    /// Returns the server with further headers in each request and question. They are part of no record: one may be a secret.
    ///
    /// # Errors
    /// Returns an error if a header would break the request, or is one that the client sets.
    pub fn with_headers(mut self, headers: Vec<(String, String)>) -> Result<Self, HeaderError> {
        for (name, value) in &headers {
            let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
            if name.is_empty() || !name.bytes().all(is_token) {
                return Err(HeaderError::Name { name: name.clone() });
            }
            if OWN_HEADERS.iter().any(|own| own.eq_ignore_ascii_case(name)) {
                return Err(HeaderError::Own { name: name.clone() });
            }
            if !value.bytes().all(|byte| byte == b'\t' || (b' '..=b'~').contains(&byte)) {
                return Err(HeaderError::Value { name: name.clone() });
            }
        }
        self.headers = headers;
        Ok(self)
    }

    /// Returns the further headers.
    pub fn headers(&self) -> &[(String, String)] {
        &self.headers
    }

    /// Returns the version of HTTP that is spoken.
    pub fn http(&self) -> HttpVersion {
        self.http
    }

    /// Returns what is needed for TLS, if it is spoken.
    pub(crate) fn secure(&self) -> Option<&Secure> {
        self.secure.as_ref()
    }

    /// Returns the scheme of its URLs.
    pub(crate) fn scheme(&self) -> &'static str {
        if self.secure.is_some() { "https" } else { "http" }
    }

    /// Returns what is connected to, for messages: the Unix socket if it is one, else host and port.
    pub(crate) fn place(&self) -> String {
        match self.addresses.as_slice() {
            [Address::Unix(path)] => path.display().to_string(),
            _ => self.host.clone(),
        }
    }

    /// Returns the host and port as requests name it.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the addresses, in the order in which they are tried.
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// Returns the path of `route`, for example `/v1/models`, below the prefix.
    pub fn path(&self, route: &str) -> String {
        format!("{}{route}", self.prefix)
    }
}

fn secure(name: &str, manner: &Manner) -> Result<Secure, SetUpTlsError> {
    let offered: &[Protocol] = match manner.http {
        HttpVersion::Auto => &[Protocol::Http2, Protocol::Http1],
        HttpVersion::Http1 => &[Protocol::Http1],
        HttpVersion::Http2 => &[Protocol::Http2],
    };
    Ok(Secure {
        name: name.to_owned(),
        load: tls::Config::new(manner.trust.clone(), offered)?,
        questions: tls::Config::new(manner.trust.clone(), &[Protocol::Http1])?,
    })
}

/// Returns host and port of an authority; `None` if the port isn't one.
fn split_port(authority: &str, usual: u16) -> Option<(&str, u16)> {
    // The colons of an IPv6 address stand in brackets.
    let after_host = authority.rfind(']').map_or(0, |at| at + 1);
    match authority.get(after_host..)?.rfind(':') {
        None => Some((authority, usual)),
        Some(at) => {
            let (name, port) = authority.split_at_checked(after_host + at)?;
            let port = port.strip_prefix(':')?;
            port.bytes().all(|byte| byte.is_ascii_digit()).then_some(())?;
            Some((name, port.parse().ok()?))
        }
    }
}

/// Headers that the client sets itself.
const OWN_HEADERS: [&str; 7] =
    ["host", "accept", "accept-encoding", "content-type", "content-length", "transfer-encoding", "connection"];

/// A path that requests can't be sent to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{path}` is no path of requests: it must begin with a slash, and be plain ASCII without spaces and fragment")]
pub struct PathError {
    /// What was given.
    pub path: String,
}

/// Why a header can't be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// The name isn't one.
    #[error("`{name}` is no header's name: it must be letters, digits and dashes")]
    Name {
        /// What was given.
        name: String,
    },
    /// The client sets it.
    #[error("the header `{name}` is set by the load client itself")]
    Own {
        /// The header.
        name: String,
    },
    /// The value would break the request. It isn't shown, as it may be a secret.
    #[error("the value of the header `{name}` must be printable ASCII on one line")]
    Value {
        /// The header.
        name: String,
    },
}

/// A server and the model that is asked for.
#[derive(Debug, Clone)]
pub struct Target {
    endpoint: Endpoint,
    model: String,
    path: Option<String>,
}

impl Target {
    /// Returns the server that `url` names, with `model`.
    ///
    /// # Errors
    /// As [`Endpoint::parse`].
    pub fn parse(url: &str, model: impl Into<String>) -> Result<Self, ParseTargetError> {
        Ok(Self::new(Endpoint::parse(url)?, model))
    }

    /// Returns a target on a server that is known already.
    pub fn new(endpoint: Endpoint, model: impl Into<String>) -> Self {
        Self { endpoint, model: model.into(), path: None }
    }

    /// Returns the target with requests sent to this path, below the endpoint's prefix, instead of the interface's own.
    ///
    /// # Errors
    /// Returns an error if it is no path.
    pub fn with_path(mut self, path: &str) -> Result<Self, PathError> {
        if !path.starts_with('/') || !path.bytes().all(|byte| byte.is_ascii_graphic()) || path.contains('#') {
            return Err(PathError { path: path.to_owned() });
        }
        self.path = Some(path.to_owned());
        Ok(self)
    }

    /// Returns where requests are sent whose interface has this path.
    pub(crate) fn path(&self, route: &str) -> String {
        self.endpoint.path(self.path.as_deref().unwrap_or(route))
    }

    /// Returns the server.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Returns the model's name.
    pub fn model(&self) -> &str {
        &self.model
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(url: &str, expected: Result<(&str, &str), &str>) {
        let found = Endpoint::parse(url).map(|e| (e.host().to_owned(), e.path("/v1/models")));
        let found = found.map_err(|error| error.to_string());
        assert_eq!(found, expected.map(|(h, p)| (h.to_owned(), p.to_owned())).map_err(str::to_owned), "{url}");
    }

    #[test]
    fn addresses_names_and_prefixes_are_read() {
        check("http://127.0.0.1:8000", Ok(("127.0.0.1:8000", "/v1/models")));
        check("HTTP://127.0.0.1/", Ok(("127.0.0.1", "/v1/models")));
        check("http://[::1]:81/a/b/", Ok(("[::1]:81", "/a/b/v1/models")));
        check("http://localhost:8000/v1/", Ok(("localhost:8000", "/v1/models")));
        check("https://127.0.0.1/v1", Ok(("127.0.0.1", "/v1/models")));
        check("https://127.0.0.1:80", Ok(("127.0.0.1:80", "/v1/models")));
        check("http://127.0.0.1:8000/a/v1", Ok(("127.0.0.1:8000", "/a/v1/models")));
    }

    #[test]
    fn anything_else_is_refused_with_the_rule_that_it_breaks() {
        let malformed = |url: &str, rule: &str| check(url, Err(&format!("`{url}` is not a server's address: {rule}")));
        malformed("127.0.0.1:8000", "it must look like `http://host:port/prefix`");
        malformed("ftp://127.0.0.1", "it must start with `http://` or `https://`");
        malformed("http://", "the host must be a name or an address");
        malformed("http://a b", "the host must be a name or an address");
        malformed("http://[::1", "the host must be a name or an address");
        malformed("http://127.0.0.1:99999", "the port must be a number up to 65535");
        malformed("http://127.0.0.1:+80", "the port must be a number up to 65535");
        malformed("http://me:secret@127.0.0.1", "a user name or password in it is not supported");
        let rule = "the path must be plain ASCII without spaces, query and fragment";
        malformed("http://127.0.0.1/a?b", rule);
        malformed("http://127.0.0.1/a\r\nx", rule);
    }
}
