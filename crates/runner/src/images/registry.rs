//! A repository in a registry, asked over the distribution interface of OCI.
//!
//! One value asks with one set of credentials and keeps the tokens that it was given for them; other credentials are another
//! value. Credentials are sent where the registry says that its tokens are given, and with requests to the registry's own host;
//! no page, redirect or upload leads them to another.

use std::sync::{Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use isobench_schema::ids::ImageDigest;
use isobench_schema::images::RateLimit;
use serde::Deserialize;
use ureq::http::Method;

use super::address::{Address, encode};
use super::authorities::Authorities;
use super::challenge::Challenge;
use super::error::RegistryError;
use super::http::{Ask, Http, Notice, Patience, Payload, Reply, Tls, led};
use super::limits::rate_limit;
use super::manifest::{self, Manifest};
use super::reference::{Repository, Target};
use super::secret::{Credentials, Secret};

/// The longest manifest, in bytes: what the specification says that registries take.
const LONGEST_MANIFEST: u64 = 4 << 20;
/// The longest answer of a place that gives tokens, in bytes.
const LONGEST_TOKEN: u64 = 256 * 1024;
/// Who asks for tokens.
const CLIENT: &str = "isobench";

/// A repository that can be asked.
#[derive(Debug)]
pub struct Registry {
    pub(super) http: Http,
    pub(super) base: Address,
    repository: Repository,
    credentials: Option<Credentials>,
    authorization: Mutex<Option<Secret>>,
    pulls: Mutex<Option<RateLimit>>,
}

/// What a tag or digest names, by a question that fetches nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// Its digest, if the registry says it.
    pub digest: Option<ImageDigest>,
    /// What kind of manifest it is, as the registry says.
    pub content_type: Option<String>,
}

/// A manifest whose bytes are those of its digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedManifest {
    /// Its digest.
    pub digest: ImageDigest,
    /// What kind of manifest it is, as the registry says.
    pub content_type: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl FetchedManifest {
    /// Reads it.
    ///
    /// # Errors
    /// Returns what is wrong with it.
    pub fn read(&self) -> Result<Manifest, String> {
        manifest::read(&self.bytes, &self.content_type)
    }
}

/// The answer of a place that gives tokens.
#[derive(Deserialize)]
struct TokenAnswer {
    #[serde(default)]
    token: Option<String>,
    #[serde(default)]
    access_token: Option<String>,
}

impl Registry {
    /// Returns a repository that is asked with these credentials, or with none.
    ///
    /// # Errors
    /// Returns an error if this machine knows no certificates, or the address can't be asked.
    pub fn new(
        repository: Repository,
        credentials: Option<Credentials>,
        patience: Patience,
        notice: Notice,
    ) -> Result<Self, RegistryError> {
        Self::trusting(&Authorities::default(), repository, credentials, (patience, notice))
    }

    /// As [`Self::new`], and these authorities are trusted beyond those of this machine.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn trusting(
        authorities: &Authorities,
        repository: Repository,
        credentials: Option<Credentials>,
        (patience, notice): (Patience, Notice),
    ) -> Result<Self, RegistryError> {
        let base =
            repository.base().map_err(|source| RegistryError::Address { address: repository.to_string(), source })?;
        let http = Http::new(patience, notice, Tls::of(&base), authorities)?;
        match &credentials {
            Some(Credentials::Password { user, password }) => {
                http.keep(password);
                http.keep(&basic(user, password));
            }
            Some(Credentials::IdentityToken(token)) => http.keep(token),
            None => {}
        }
        Ok(Self { http, base, repository, credentials, authorization: Mutex::new(None), pulls: Mutex::new(None) })
    }

    /// Returns the repository.
    pub fn repository(&self) -> &Repository {
        &self.repository
    }

    /// Returns how much may be pulled, as the registry last said; none if it never did.
    pub fn pulls(&self) -> Option<RateLimit> {
        self.pulls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks what a tag or digest names, without fetching it; none if the registry has no such thing.
    ///
    /// # Errors
    /// Returns an error if the registry can't be asked or refuses.
    pub fn head(&self, target: &Target) -> Result<Option<Head>, RegistryError> {
        let address = self.manifest_address(target)?;
        let reply = self.send(&Ask { method: Method::HEAD, ..Ask::get(&address, manifest::ACCEPT) })?;
        match reply.status {
            200 => {
                let digest = reply.header("docker-content-digest").and_then(|text| ImageDigest::new(text).ok());
                Ok(Some(Head { digest, content_type: reply.content_type() }))
            }
            404 => Ok(None),
            _ => Err(self.unexpected(reply)),
        }
    }

    /// Fetches the manifest that a tag or digest names; none if the registry has no such thing.
    ///
    /// # Errors
    /// Returns an error if the registry can't be asked or refuses, or the bytes aren't those of the digest that it names.
    pub fn manifest(&self, target: &Target) -> Result<Option<FetchedManifest>, RegistryError> {
        let address = self.manifest_address(target)?;
        let reply = self.send(&Ask::get(&address, manifest::ACCEPT))?;
        match reply.status {
            200 => {}
            404 => return Ok(None),
            _ => return Err(self.unexpected(reply)),
        }
        let said = reply.header("docker-content-digest").map(str::to_owned);
        let content_type = reply.content_type().unwrap_or_default();
        let bytes = reply.bytes(LONGEST_MANIFEST)?;
        let found = ImageDigest::of(&bytes);
        let said = said.and_then(|said| ImageDigest::new(said).ok());
        let asked = match target {
            Target::Tag(_) => None,
            Target::Digest(digest) => Some(digest.clone()),
        };
        for expected in [asked, said].into_iter().flatten() {
            if expected != found {
                return Err(RegistryError::OtherBytes { address: address.to_string(), expected, found });
            }
        }
        Ok(Some(FetchedManifest { digest: found, content_type, bytes }))
    }

    pub(super) fn manifest_address(&self, target: &Target) -> Result<Address, RegistryError> {
        self.address(&format!("manifests/{target}"))
    }

    /// Returns the address of something of this repository.
    pub(super) fn address(&self, path: &str) -> Result<Address, RegistryError> {
        self.base.join(path).map_err(|source| RegistryError::Address { address: self.base.to_string(), source })
    }

    /// Asks, and lets the registry know who asks if it wants to.
    pub(super) fn send(&self, ask: &Ask<'_>) -> Result<Reply, RegistryError> {
        let known = self.authorization.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let reply = self.note(self.http.ask(ask, known.as_ref())?);
        if reply.status != 401 {
            return Ok(reply);
        }
        // Whoever a request was led to isn't told who asks.
        if !reply.address.is_same_place(&self.base) {
            let (address, target) = (ask.address.to_string(), reply.address.to_string());
            let why = "which wants to know who asks, and isn't told";
            return Err(self.http.without_secrets(RegistryError::LeadsElsewhere { address, target, why }));
        }
        let Some(challenge) = Challenge::read(&reply.headers("www-authenticate")) else {
            return Err(self.unexpected(reply));
        };
        let Some(secret) = self.answer(&challenge, &reply.address)? else {
            return Err(self.refused(reply));
        };
        *self.authorization.lock().unwrap_or_else(PoisonError::into_inner) = Some(secret.clone());
        let reply = self.note(self.http.ask(ask, Some(&secret))?);
        if reply.status == 401 { Err(self.refused(reply)) } else { Ok(reply) }
    }

    fn note(&self, reply: Reply) -> Reply {
        // Docker Hub's own interface has limits too, which aren't those of pulls; it is asked elsewhere.
        if let Some(limit) = rate_limit(|name| reply.header(name)) {
            *self.pulls.lock().unwrap_or_else(PoisonError::into_inner) = Some(limit);
        }
        reply
    }

    /// Returns what the registry wants to be told; none if it wants a password and there is none.
    fn answer(&self, challenge: &Challenge, from: &Address) -> Result<Option<Secret>, RegistryError> {
        match (challenge, &self.credentials) {
            (Challenge::Basic, Some(Credentials::Password { user, password })) => Ok(Some(basic(user, password))),
            (Challenge::Basic, Some(Credentials::IdentityToken(_)) | None) => Ok(None),
            (Challenge::Bearer { realm, service, scope }, credentials) => {
                let realm = led(from, realm).map_err(|error| self.http.without_secrets(error))?;
                let parts = [("service", service.as_deref()), ("scope", scope.as_deref())];
                let given = parts.into_iter().filter_map(|(name, value)| Some((name, value?)));
                let reply = match credentials {
                    Some(Credentials::IdentityToken(token)) => self.exchange(&realm, token, given)?,
                    Some(Credentials::Password { user, password }) => {
                        let address = given.fold(realm, |address, (name, value)| address.with_query(name, value));
                        let address = address.with_query("account", user);
                        self.http.ask(&Ask::get(&address, "application/json"), Some(&basic(user, password)))?
                    }
                    None => {
                        let address = given.fold(realm, |address, (name, value)| address.with_query(name, value));
                        self.http.ask(&Ask::get(&address, "application/json"), None)?
                    }
                };
                self.token(reply).map(Some)
            }
        }
    }

    /// Exchanges an identity token for one that the registry takes.
    fn exchange<'g>(
        &self,
        realm: &Address,
        token: &'g Secret,
        given: impl Iterator<Item = (&'g str, &'g str)>,
    ) -> Result<Reply, RegistryError> {
        let fixed = [("grant_type", "refresh_token"), ("client_id", CLIENT), ("refresh_token", token.reveal())];
        let pairs = fixed.into_iter().chain(given).map(|(name, value)| format!("{name}={}", encode(value)));
        let form = pairs.collect::<Vec<_>>().join("&");
        let payload = Payload::Bytes("application/x-www-form-urlencoded", form.as_bytes());
        self.http.ask(&Ask { method: Method::POST, payload, ..Ask::get(realm, "application/json") }, None)
    }

    fn token(&self, reply: Reply) -> Result<Secret, RegistryError> {
        let address = reply.address.to_string();
        match reply.status {
            200 => {}
            400 | 401 | 403 => return Err(self.refused(reply)),
            _ => return Err(self.unexpected(reply)),
        }
        let bytes = reply.bytes(LONGEST_TOKEN)?;
        // The parser's error may show what it read, which is secret.
        let answer: Option<TokenAnswer> = serde_json::from_slice(&bytes).ok();
        let token = answer.and_then(|answer| answer.token.or(answer.access_token));
        let sendable = |token: &String| !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
        let token = token
            .filter(sendable)
            .ok_or_else(|| RegistryError::NotARegistry { address, why: "it holds no token".to_owned() })?;
        Ok(Secret::new(format!("Bearer {token}")))
    }

    fn refused(&self, reply: Reply) -> RegistryError {
        let what = match &self.credentials {
            None => format!("to show `{}` to somebody whom it doesn't know", self.repository),
            Some(Credentials::Password { user, .. }) => format!("to show `{}` to `{user}`", self.repository),
            Some(Credentials::IdentityToken(_)) => {
                format!("to show `{}` to the holder of the identity token", self.repository)
            }
        };
        let registry = reply.address.authority().to_owned();
        RegistryError::Refused { registry, what, said: reply.said() }
    }

    /// Returns the error of an answer that wasn't asked for.
    pub(super) fn unexpected(&self, reply: Reply) -> RegistryError {
        if matches!(reply.status, 401 | 403) {
            return self.refused(reply);
        }
        let (address, status) = (reply.address.to_string(), reply.status);
        self.http.without_secrets(RegistryError::Status { address, status, said: reply.said() })
    }
}

fn basic(user: &str, password: &Secret) -> Secret {
    Secret::new(format!("Basic {}", STANDARD.encode(format!("{user}:{}", password.reveal()))))
}
