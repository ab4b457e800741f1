//! One request after another, each with deadlines and a bound: what an answer may take in time and bytes is known before.

use std::fs::File;
use std::io::{self, Read as _, Write};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use ureq::http::{HeaderMap, Method, Request, Response};
use ureq::{Agent, AsSendBody, SendBody, Timeout};

use super::address::{Address, is_loopback};
use super::authorities::Authorities;
use super::error::RegistryError;
use super::limits::retry_after;
use super::secret::{Secret, hide};
use crate::https;

/// How often a request that changes nothing is made again after the other side's momentary trouble.
const TRIES: u32 = 3;
/// From one such try to the next; the second wait is twice as long.
const BETWEEN_TRIES: Duration = Duration::from_millis(500);
/// The first wait where a registry says that it was asked too often, and not for how long; each further one is twice as long.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// The longest list of headers, in bytes.
const LONGEST_HEAD: usize = 64 * 1024;
/// The most times that an answer leads elsewhere.
const MOST_REDIRECTS: u32 = 5;
/// How much is copied at once, in bytes.
const CHUNK_BYTES: usize = 64 * 1024;
/// How much of a body is read to say what went wrong, in bytes.
const LONGEST_SAYING: u64 = 64 * 1024;
/// How much of it is shown, in characters.
const SHOWN: usize = 300;

/// How long a registry is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// Until a connection stands, its TLS too.
    pub connect: Duration,
    /// Without a single byte.
    pub silence: Duration,
    /// For a whole answer that is no blob, or for the head of one.
    pub answer: Duration,
    /// The slowest that a blob may come or go, in bytes a second, beyond `answer`.
    pub slowest_bytes_per_s: u64,
    /// Altogether, where a registry says that it was asked too often.
    pub throttled: Duration,
    /// The most tags of a repository that are taken in.
    pub most_tags: usize,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(15),
            silence: Duration::from_secs(45),
            answer: Duration::from_secs(120),
            slowest_bytes_per_s: 128 * 1024,
            throttled: Duration::from_secs(120),
            most_tags: 1_000_000,
        }
    }
}

/// Who is told what is being waited for.
pub type Notice = Box<dyn Fn(&str) + Send + Sync>;

/// What is sent along.
#[derive(Debug, Clone, Copy)]
pub(super) enum Payload<'p> {
    /// Nothing.
    None,
    /// These bytes, of this type.
    Bytes(&'p str, &'p [u8]),
    /// A file of so many bytes, from its beginning.
    File(&'p File, u64),
}

/// A request.
#[derive(Debug, Clone)]
pub(super) struct Ask<'a> {
    pub(super) method: Method,
    pub(super) address: &'a Address,
    /// What kinds of answers are understood.
    pub(super) accept: &'a str,
    pub(super) payload: Payload<'a>,
    /// How many bytes of an answer are waited for beyond a usual one.
    pub(super) expected_bytes: u64,
    /// How many bytes of what is asked for are there already, so that the rest is asked for.
    pub(super) from: u64,
}

impl<'a> Ask<'a> {
    pub(super) fn get(address: &'a Address, accept: &'a str) -> Self {
        Self { method: Method::GET, address, accept, payload: Payload::None, expected_bytes: 0, from: 0 }
    }

    fn changes_nothing(&self) -> bool {
        self.method == Method::GET || self.method == Method::HEAD
    }

    /// Returns how long it may take, all of it.
    fn allowed(&self, patience: &Patience) -> Duration {
        let sent = match self.payload {
            Payload::None | Payload::Bytes(..) => 0,
            Payload::File(_, bytes) => bytes,
        };
        let bytes = self.expected_bytes.max(sent);
        patience.answer + Duration::from_secs(bytes / patience.slowest_bytes_per_s.max(1))
    }
}

/// Asks.
pub(super) struct Http {
    agent: Agent,
    patience: Patience,
    notice: Notice,
    /// What was waited after having asked too often.
    waited: Mutex<Duration>,
    /// Everything secret that was sent, which answers may repeat.
    secrets: Mutex<Vec<Secret>>,
}

impl std::fmt::Debug for Http {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Http").field("patience", &self.patience).finish_non_exhaustive()
    }
}

/// The head of an answer, and a body to be read.
pub(super) struct Reply {
    pub(super) status: u16,
    headers: HeaderMap,
    body: ureq::Body,
    /// What was asked.
    pub(super) address: Address,
    allowed: Duration,
    silence: Duration,
    secrets: Vec<Secret>,
}

impl Http {
    pub(super) fn new(
        patience: Patience,
        notice: Notice,
        needs: Tls,
        authorities: &Authorities,
    ) -> Result<Self, RegistryError> {
        let (tls, trusted) = https::tls(authorities.certificates());
        if trusted == 0 && needs == Tls::Needed {
            return Err(RegistryError::NoAuthorities);
        }
        let config = Agent::config_builder()
            .tls_config(tls)
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .max_response_header_size(LONGEST_HEAD)
            .timeout_connect(Some(patience.connect))
            .timeout_resolve(Some(patience.connect))
            .timeout_recv_response(Some(patience.answer))
            .timeout_per_read(Some(patience.silence))
            .timeout_per_write(Some(patience.silence))
            .user_agent(concat!("isobench/", env!("CARGO_PKG_VERSION")))
            .build();
        let agent = Agent::new_with_config(config);
        Ok(Self { agent, patience, notice, waited: Mutex::new(Duration::ZERO), secrets: Mutex::new(Vec::new()) })
    }

    /// Keeps a secret that is sent, so that no message shows it.
    pub(super) fn keep(&self, secret: &Secret) {
        let mut secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        if !secrets.contains(secret) {
            secrets.push(secret.clone());
        }
    }

    /// Returns an error without the secrets that the other side may have put into it.
    pub(super) fn without_secrets(&self, error: RegistryError) -> RegistryError {
        error.map_texts(&|text| self.hide(text))
    }

    /// Returns a text without the secrets that were sent.
    pub(super) fn hide(&self, text: &str) -> String {
        hide(text, &self.secrets.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn patience(&self) -> &Patience {
        &self.patience
    }

    /// Asks, waits and asks again where that is what the registry wants, and follows where a request that changes nothing is led.
    ///
    /// `authorization` goes to the host of the address and to no other.
    pub(super) fn ask(&self, ask: &Ask<'_>, authorization: Option<&Secret>) -> Result<Reply, RegistryError> {
        self.follow(ask, authorization).map_err(|error| self.without_secrets(error))
    }

    fn follow(&self, ask: &Ask<'_>, authorization: Option<&Secret>) -> Result<Reply, RegistryError> {
        let mut address = ask.address.clone();
        for _ in 0..=MOST_REDIRECTS {
            let secret = authorization.filter(|_| address.is_same_place(ask.address));
            let reply = self.patiently(&Ask { address: &address, ..ask.clone() }, secret)?;
            let leads = matches!(reply.status, 301 | 302 | 303 | 307 | 308) && ask.changes_nothing();
            let Some(location) = reply.header("location").filter(|_| leads) else { return Ok(reply) };
            address = led(&address, location)?;
        }
        let why = format!("it leads elsewhere more than {MOST_REDIRECTS} times");
        Err(RegistryError::Endless { address: ask.address.to_string(), why })
    }

    fn patiently(&self, ask: &Ask<'_>, authorization: Option<&Secret>) -> Result<Reply, RegistryError> {
        let mut tries = 1;
        let mut next_wait = FIRST_WAIT;
        loop {
            let again = ask.changes_nothing() && tries < TRIES;
            let reply = match self.once(ask, authorization) {
                Err(RegistryError::Unreachable { source, .. }) if again && was_cut_off(&source) => {
                    thread::sleep(BETWEEN_TRIES * tries);
                    tries += 1;
                    continue;
                }
                other => other?,
            };
            let told = retry_after(|name| reply.header(name), SystemTime::now());
            let is_throttled = reply.status == 429 || reply.status == 503 && told.is_some();
            if is_throttled {
                let wait = told.unwrap_or(next_wait);
                next_wait *= 2;
                if !self.may_wait(wait) {
                    let registry = reply.address.authority().to_owned();
                    return Err(RegistryError::Throttled { registry, retry_after: told, said: reply.said() });
                }
                (self.notice)(&format!(
                    "`{}` was asked too often; asking again in {} s",
                    ask.address.authority(),
                    wait.as_secs_f64()
                ));
                thread::sleep(wait);
            } else if matches!(reply.status, 502..=504) && again {
                thread::sleep(BETWEEN_TRIES * tries);
                tries += 1;
            } else {
                return Ok(reply);
            }
        }
    }

    /// Returns whether so long may still be waited, and counts it.
    fn may_wait(&self, wait: Duration) -> bool {
        let mut waited = self.waited.lock().unwrap_or_else(PoisonError::into_inner);
        let after = waited.saturating_add(wait);
        let may = after <= self.patience.throttled;
        if may {
            *waited = after;
        }
        may
    }

    fn once(&self, ask: &Ask<'_>, authorization: Option<&Secret>) -> Result<Reply, RegistryError> {
        if let Some(secret) = authorization {
            self.keep(secret);
        }
        let allowed = ask.allowed(&self.patience);
        let sent = Instant::now();
        let answered = self.send(ask, authorization, allowed);
        let silence = self.patience.silence;
        match answered {
            Ok(response) => {
                let (head, body) = response.into_parts();
                let address = ask.address.clone();
                let secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner).clone();
                Ok(Reply {
                    status: head.status.as_u16(),
                    headers: head.headers,
                    body,
                    address,
                    allowed,
                    silence,
                    secrets,
                })
            }
            Err(ureq::Error::Timeout(which)) => {
                let (what, allowed) = if matches!(which, Timeout::Connect | Timeout::Resolve) {
                    ("the connection", self.patience.connect)
                } else if matches!(which, Timeout::PerRead | Timeout::PerWrite) {
                    ("silence", silence)
                } else {
                    ("it", sent.elapsed().min(allowed))
                };
                Err(RegistryError::Deadline { address: ask.address.to_string(), what, allowed })
            }
            Err(error) => {
                let source = Box::new(error);
                Err(RegistryError::Unreachable { address: ask.address.to_string(), source })
            }
        }
    }

    fn send(
        &self,
        ask: &Ask<'_>,
        authorization: Option<&Secret>,
        allowed: Duration,
    ) -> Result<Response<ureq::Body>, ureq::Error> {
        let mut request = Request::builder().method(ask.method.clone()).uri(ask.address.to_string());
        request = request.header("accept", ask.accept);
        if let Some(secret) = authorization {
            request = request.header("authorization", secret.reveal());
        }
        if ask.from > 0 {
            request = request.header("range", format!("bytes={}-", ask.from));
        }
        match ask.payload {
            Payload::None if ask.changes_nothing() => self.run(request.body(SendBody::none())?, allowed),
            // Servers want the length of what is sent, also where it is nothing.
            Payload::None => self.run(request.header("content-length", "0").body(&[][..])?, allowed),
            Payload::Bytes(kind, bytes) => self.run(request.header("content-type", kind).body(bytes)?, allowed),
            Payload::File(mut file, bytes) => {
                io::Seek::rewind(&mut file)?;
                let request = request.header("content-type", "application/octet-stream");
                let request = request.header("content-length", bytes.to_string());
                let mut whole = file.take(bytes);
                self.run(request.body(SendBody::from_reader(&mut whole))?, allowed)
            }
        }
    }

    fn run(&self, request: Request<impl AsSendBody>, allowed: Duration) -> Result<Response<ureq::Body>, ureq::Error> {
        let is_here = request.uri().authority().is_some_and(|authority| is_loopback(authority.as_str()));
        let configured = self.agent.configure_request(request).timeout_global(Some(allowed));
        // No proxy stands between this machine and itself.
        let configured = if is_here { configured.proxy(None) } else { configured };
        self.agent.run(configured.build())
    }
}

/// Whether an agent must be able to speak TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tls {
    /// It must.
    Needed,
    /// It asks this machine, and others only if it is led there.
    Unneeded,
}

impl Tls {
    /// Returns what asking this address needs.
    pub(super) fn of(address: &Address) -> Self {
        if address.is_loopback() { Self::Unneeded } else { Self::Needed }
    }
}

/// Returns where an answer leads.
pub(super) fn led(from: &Address, reference: &str) -> Result<Address, RegistryError> {
    let source = |source| RegistryError::Address { address: from.to_string(), source };
    let target = from.join(reference).map_err(source)?;
    if target.is_loopback() && !from.is_loopback() {
        let why = "which is this machine itself";
        return Err(RegistryError::LeadsElsewhere { address: from.to_string(), target: target.to_string(), why });
    }
    Ok(target)
}

/// Returns whether a connection that stood was cut off, so that asking again may help.
fn was_cut_off(error: &ureq::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    let ureq::Error::Io(error) = error else { return false };
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
}

impl Reply {
    /// Returns a header's text.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// Returns every line of a header.
    pub(super) fn headers(&self, name: &str) -> Vec<String> {
        self.headers.get_all(name).iter().filter_map(|value| Some(value.to_str().ok()?.to_owned())).collect()
    }

    /// Returns the type of the body without its parameters, in lower case.
    pub(super) fn content_type(&self) -> Option<String> {
        let text = self.header("content-type")?;
        Some(text.split(';').next().unwrap_or(text).trim().to_ascii_lowercase())
    }

    /// Returns the whole body.
    pub(super) fn bytes(self, limit: u64) -> Result<Vec<u8>, RegistryError> {
        let mut bytes = Vec::new();
        self.copy(limit, &mut bytes, &|_| ())?;
        Ok(bytes)
    }

    /// Writes the whole body, and says after each piece how much came. Returns its length.
    pub(super) fn copy(self, limit: u64, sink: &mut dyn Write, progress: &dyn Fn(u64)) -> Result<u64, RegistryError> {
        let Self { body, address, allowed, silence, secrets, .. } = self;
        let address = hide(&address.to_string(), &secrets);
        let mut reader = body.into_with_config().limit(u64::MAX).reader();
        let mut chunk = vec![0_u8; CHUNK_BYTES];
        let mut got = 0_u64;
        loop {
            let read = match reader.read(&mut chunk) {
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(body_error(error, address, got, (silence, allowed))),
            };
            let Some(piece) = chunk.get(..read).filter(|piece| !piece.is_empty()) else { return Ok(got) };
            got += u64::try_from(read).unwrap_or(u64::MAX);
            if got > limit {
                return Err(RegistryError::TooLong { address, limit });
            }
            sink.write_all(piece).map_err(|source| RegistryError::Folder {
                what: "write what came from",
                path: address.clone().into(),
                source,
            })?;
            progress(got);
        }
    }

    /// Returns what the body says went wrong, on one line, without the secrets that it may repeat.
    pub(super) fn said(mut self) -> String {
        let (status, secrets) = (self.status, std::mem::take(&mut self.secrets));
        let mut bytes = Vec::new();
        // What came until then is enough.
        let _ = self.copy(LONGEST_SAYING, &mut bytes, &|_| ());
        // A secret that is cut can't be recognised: it is hidden before.
        let said: String = hide(&saying(&bytes), &secrets).chars().take(SHOWN).collect();
        if said.is_empty() { format!("status {status}, and no words") } else { said }
    }
}

/// Finds the words in a body: those of `{"errors": [{"code", "message"}]}` and of `{"message"}`, or else its text.
fn saying(bytes: &[u8]) -> String {
    let parsed: Option<serde_json::Value> = serde_json::from_slice(bytes).ok();
    let text = |value: &serde_json::Value, key: &str| value.get(key).and_then(|text| text.as_str()).map(str::to_owned);
    let of_json = parsed.and_then(|value| {
        let first = value.get("errors").and_then(|errors| errors.get(0));
        let of_first = first.and_then(|first| text(first, "message").or_else(|| text(first, "code")));
        of_first.or_else(|| ["message", "detail", "details", "error"].iter().find_map(|key| text(&value, key)))
    });
    let said = of_json.unwrap_or_else(|| String::from_utf8_lossy(bytes).into_owned());
    let plain: String = said.chars().map(|sign| if sign.is_control() { ' ' } else { sign }).collect();
    let words: Vec<&str> = plain.split_whitespace().collect();
    words.join(" ")
}

fn body_error(error: io::Error, address: String, got: u64, (silence, allowed): (Duration, Duration)) -> RegistryError {
    let error = ureq::Error::from(error);
    if let ureq::Error::Timeout(which) = error {
        let is_silence = which == Timeout::PerRead;
        let (what, allowed) = if is_silence { ("silence", silence) } else { ("its answer", allowed) };
        return RegistryError::Deadline { address, what, allowed };
    }
    RegistryError::BrokenOff { address, got, source: error.into_io() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_registry_says_is_one_line() {
        for (body, expected) in [
            (r#"{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}"#, "authentication required"),
            (r#"{"errors":[{"code":"DENIED"}]}"#, "DENIED"),
            (r#"{"message":"object not found","errinfo":{}}"#, "object not found"),
            ("<html>\n\u{1b}[31mno\u{7}</html>", "<html> [31mno </html>"),
            ("", ""),
        ] {
            assert_eq!(saying(body.as_bytes()), expected);
        }
    }

    #[test]
    fn nobody_is_led_from_elsewhere_to_this_machine() {
        let from = Address::parse("https://registry.example/v2/").unwrap();
        assert!(matches!(led(&from, "http://127.0.0.1:1/x"), Err(RegistryError::LeadsElsewhere { .. })));
        assert!(matches!(led(&from, "http://other.example/x"), Err(RegistryError::Address { .. })));
        assert!(led(&from, "https://cdn.example/x").is_ok());
    }
}
