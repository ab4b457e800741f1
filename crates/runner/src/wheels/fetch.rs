//! Gets pages of indexes and wheels over HTTP, each bounded in time and size, and each file against its hash.

use std::fs::{self, File};
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use isobench_schema::ids::Digest;
use sha2::{Digest as _, Sha256};
use ureq::http::Response;
use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};
use ureq::{Agent, Body};

use super::address;
use super::index::{Listing, PageForm, ReadIndexError, read_page};

/// What is asked for of an index: JSON if it has it.
const FORMS: &str = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1";
/// The longest page that is read, in bytes: that of a package with all its releases is some megabytes.
const LONGEST_PAGE: u64 = 64 << 20;
/// The largest file that is taken, in bytes.
const LARGEST_FILE: u64 = 8 << 30;
/// The most times that an answer leads elsewhere.
const MOST_REDIRECTS: u32 = 5;
/// How long a connection may take, and how long a server may be silent.
const SILENCE: Duration = Duration::from_secs(60);
/// How long a page may take.
const PAGE_PATIENCE: Duration = Duration::from_secs(120);
/// How long a file may take.
const FILE_PATIENCE: Duration = Duration::from_secs(4 * 3600);
/// How much is copied at once, in bytes.
const CHUNK: usize = 256 * 1024;

/// Why something can't be had.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The server doesn't have it.
    #[error("`{address}` isn't there (HTTP {status})")]
    NotFound {
        /// Its address.
        address: String,
        /// The answer.
        status: u16,
    },
    /// The server refuses or can't answer.
    #[error("`{address}` was answered with HTTP {status}")]
    Status {
        /// Its address.
        address: String,
        /// The answer.
        status: u16,
    },
    /// The answer leads somewhere that isn't followed.
    #[error("`{address}` leads to `{to}`, which isn't followed: {reason}")]
    Redirect {
        /// The address.
        address: String,
        /// Where it leads.
        to: String,
        /// Why it isn't followed.
        reason: String,
    },
    /// There is no connection, or it broke.
    #[error("`{address}` can't be fetched whole")]
    Network {
        /// The address.
        address: String,
        /// Why.
        #[source]
        source: Box<ureq::Error>,
    },
    /// The connection broke in the middle.
    #[error("`{address}` was cut off after {bytes} bytes")]
    CutOff {
        /// The address.
        address: String,
        /// The bytes that came.
        bytes: u64,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It is larger than is taken.
    #[error("`{address}` is larger than {most} bytes")]
    TooLarge {
        /// The address.
        address: String,
        /// The most that is taken.
        most: u64,
    },
    /// What came isn't what was wanted.
    #[error("`{address}` has the SHA-256 {found}, and {wanted} is wanted")]
    HashMismatch {
        /// The address.
        address: String,
        /// The digest of what came.
        found: Digest,
        /// The digest that was wanted.
        wanted: Digest,
    },
    /// The file can't be written.
    #[error("failed to write `{path}`")]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The page isn't an index.
    #[error(transparent)]
    Page(#[from] ReadIndexError),
}

/// Whether something else than what was asked for may be answered by another host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hosts {
    /// Only the one that was asked: nothing else tells that the answer is right.
    Same,
    /// Any: the answer is held against its hash.
    Any,
}

/// Gets things over HTTP.
#[derive(Debug, Clone)]
pub struct Fetcher {
    agent: Agent,
}

impl Default for Fetcher {
    fn default() -> Self {
        Self::new()
    }
}

impl Fetcher {
    /// Returns one that trusts the authorities that this machine trusts.
    pub fn new() -> Self {
        let found = rustls_native_certs::load_native_certs().certs;
        let certificates = found.iter().map(|certificate| Certificate::from_der(certificate).to_owned()).collect();
        let tls = TlsConfig::builder()
            .provider(TlsProvider::Rustls)
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .root_certs(RootCerts::Specific(Arc::new(certificates)))
            .build();
        let config = Agent::config_builder()
            .tls_config(tls)
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_connect(Some(SILENCE))
            .timeout_recv_response(Some(SILENCE))
            .timeout_per_read(Some(SILENCE))
            .user_agent(concat!("isobench/", env!("CARGO_PKG_VERSION")))
            .build();
        Self { agent: config.new_agent() }
    }

    /// Reads a page of an index.
    ///
    /// # Errors
    /// Returns an error if it can't be had whole or isn't an index.
    pub fn page(&self, address: &str) -> Result<Listing, FetchError> {
        let (response, address) = self.ask(address, FORMS, Hosts::Same, PAGE_PATIENCE)?;
        let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let form = if kind.contains("json") { PageForm::Json } else { PageForm::Html };
        let (mut body, mut bytes) = (response.into_body().into_reader().take(LONGEST_PAGE + 1), Vec::new());
        if let Err(source) = body.read_to_end(&mut bytes) {
            return Err(cut_off(&address, bytes.len() as u64, source));
        }
        if bytes.len() as u64 > LONGEST_PAGE {
            return Err(FetchError::TooLarge { address: address::shown(&address), most: LONGEST_PAGE });
        }
        Ok(read_page(&address, &String::from_utf8_lossy(&bytes), form)?)
    }

    /// Returns whether something is at an address.
    ///
    /// # Errors
    /// Returns an error if the server says neither that it is there nor that it isn't.
    pub fn is_there(&self, address: &str) -> Result<bool, FetchError> {
        match self.ask(address, "*/*", Hosts::Any, PAGE_PATIENCE) {
            Ok(_) => Ok(true),
            Err(FetchError::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Gets a file to `to`, where it stands whole and with the wanted digest, or not at all. Returns its digest and size.
    ///
    /// # Errors
    /// Returns an error if the file can't be had whole, or is another one than is wanted.
    pub fn file(&self, address: &str, wanted: Option<&Digest>, to: &Path) -> Result<(Digest, u64), FetchError> {
        let hosts = if wanted.is_some() { Hosts::Any } else { Hosts::Same };
        let (response, address) = self.ask(address, "*/*", hosts, FILE_PATIENCE)?;
        let write_error = |source| FetchError::Write { path: to.to_owned(), source };
        let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(write_error)?;
        let mut unfinished = tempfile::NamedTempFile::new_in(folder).map_err(write_error)?;
        let (digest, bytes) = copy(response, &address, unfinished.as_file_mut(), &write_error)?;
        if let Some(wanted) = wanted.filter(|wanted| **wanted != digest) {
            let (address, wanted) = (address::shown(&address), wanted.clone());
            return Err(FetchError::HashMismatch { address, found: digest, wanted });
        }
        unfinished.as_file().sync_all().map_err(write_error)?;
        unfinished.persist(to).map_err(|error| write_error(error.error))?;
        Ok((digest, bytes))
    }

    /// Asks for what is at an address, and follows where the answer leads. Returns the answer and its own address.
    fn ask(
        &self,
        address: &str,
        accept: &str,
        hosts: Hosts,
        patience: Duration,
    ) -> Result<(Response<Body>, String), FetchError> {
        let mut here = address.to_owned();
        for _ in 0..=MOST_REDIRECTS {
            let request = self.agent.get(&here).header("accept", accept);
            let response = request.config().timeout_global(Some(patience)).build().call();
            let shown = address::shown(&here);
            let response =
                response.map_err(|source| FetchError::Network { address: shown.clone(), source: Box::new(source) })?;
            let status = response.status().as_u16();
            match status {
                200 => return Ok((response, here)),
                301 | 302 | 303 | 307 | 308 => here = next(&here, &response, hosts)?,
                404 | 410 => return Err(FetchError::NotFound { address: shown, status }),
                // Object stores answer so for what isn't there, if they don't list their contents.
                403 if here.contains(".amazonaws.com/") => return Err(FetchError::NotFound { address: shown, status }),
                _ => return Err(FetchError::Status { address: shown, status }),
            }
        }
        let reason = format!("it leads on more than {MOST_REDIRECTS} times");
        Err(FetchError::Redirect { address: address::shown(address), to: address::shown(&here), reason })
    }
}

/// Returns where an answer leads, if that may be followed.
fn next(here: &str, response: &Response<Body>, hosts: Hosts) -> Result<String, FetchError> {
    let location = response.headers().get("location").and_then(|location| location.to_str().ok()).unwrap_or_default();
    let refused = |to: &str, reason: &str| FetchError::Redirect {
        address: address::shown(here),
        to: address::shown(to),
        reason: reason.to_owned(),
    };
    let to = address::join(here, location).ok_or_else(|| refused(location, "it is no address of HTTP"))?;
    if here.starts_with("https://") && !to.starts_with("https://") {
        return Err(refused(&to, "it gives up encryption"));
    }
    if hosts == Hosts::Same && address::host_of(here) != address::host_of(&to) {
        return Err(refused(&to, "it is another host, and no hash says what must come; name one with `--sha256`"));
    }
    Ok(to)
}

/// Copies the body of an answer into a file.
fn copy(
    response: Response<Body>,
    address: &str,
    to: &mut File,
    write_error: &dyn Fn(io::Error) -> FetchError,
) -> Result<(Digest, u64), FetchError> {
    let length = response.headers().get("content-length").and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    let too_large = || FetchError::TooLarge { address: address::shown(address), most: LARGEST_FILE };
    if length.is_some_and(|length| length > LARGEST_FILE) {
        return Err(too_large());
    }
    let mut body = response.into_body().into_with_config().limit(u64::MAX).reader();
    let (mut hasher, mut bytes, mut chunk) = (Sha256::new(), 0_u64, vec![0; CHUNK]);
    loop {
        let read = body.read(&mut chunk).map_err(|source| cut_off(address, bytes, source))?;
        let Some(part) = chunk.get(..read).filter(|part| !part.is_empty()) else { break };
        bytes += part.len() as u64;
        if bytes > LARGEST_FILE {
            return Err(too_large());
        }
        hasher.update(part);
        to.write_all(part).map_err(write_error)?;
    }
    if let Some(length) = length.filter(|length| *length != bytes) {
        let source = io::Error::new(io::ErrorKind::UnexpectedEof, format!("{length} bytes were announced"));
        return Err(cut_off(address, bytes, source));
    }
    Ok((Digest::finish(hasher), bytes))
}

fn cut_off(address: &str, bytes: u64, source: io::Error) -> FetchError {
    FetchError::CutOff { address: address::shown(address), bytes, source }
}
