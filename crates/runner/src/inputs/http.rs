//! Asking a hub over HTTP: patience, redirects that keep the token at home, and what an answer's refusal means.

use std::io::{self, Read};
use std::time::{Duration, Instant};

use isobench_schema::failure::{Failure, FailureClass, FailureStage};
use ureq::http::{HeaderMap, Method, Request};

use super::address::{Origin, redirected, shown};
use super::token::TokenReference;
use crate::environment::{PrepareContext, Stop};
use crate::https;

/// How many redirects are followed.
const REDIRECTS: u32 = 5;
/// How often a wait looks whether it was cancelled.
const TICK: Duration = Duration::from_millis(50);

/// How long a hub is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// For a connection.
    pub connect: Duration,
    /// For an answer's head, and between two reads of its body.
    pub read: Duration,
    /// How often a request is sent that fails in a way that may pass.
    pub tries: u32,
    /// The pause before the second try; each is twice the one before.
    pub pause: Duration,
    /// The longest pause that a hub may ask for.
    pub longest_pause: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            read: Duration::from_secs(60),
            tries: 5,
            pause: Duration::from_secs(1),
            longest_pause: Duration::from_secs(300),
        }
    }
}

/// A hub that can be asked.
#[derive(Debug, Clone)]
pub(super) struct Http {
    agent: ureq::Agent,
    endpoint: String,
    origin: Origin,
    token: Option<TokenReference>,
    patience: Patience,
}

/// An answer. Its body isn't read yet.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Box<dyn Read + Send>,
}

impl Answer {
    /// Returns the value of a head, if it is there and is text.
    pub(super) fn head(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok().map(str::trim).filter(|value| !value.is_empty())
    }
}

/// What became of one request.
enum Sent {
    Answered(Answer),
    /// It may succeed if it is sent again, after this pause if the hub asked for one.
    Passing {
        why: String,
        pause: Option<Duration>,
    },
}

/// Whether an answer's redirects are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Redirects {
    /// To wherever they lead.
    Followed,
    /// Only until an answer says what it links to.
    UntilLinked,
}

/// What is asked for.
#[derive(Debug, Clone)]
pub(super) struct Question {
    pub(super) method: Method,
    /// The path below the endpoint, encoded.
    pub(super) path: String,
    /// From which byte on.
    pub(super) from: u64,
    pub(super) redirects: Redirects,
}

impl Http {
    /// Returns a hub at an endpoint, or what is wrong with it.
    pub(super) fn new(endpoint: &str, token: Option<TokenReference>, patience: Patience) -> Result<Self, Failure> {
        let endpoint = endpoint.trim_end_matches('/').to_owned();
        let Some(origin) = Origin::of(&endpoint) else {
            let endpoint = without_user(&endpoint);
            let message = format!(
                "`{endpoint}` is no address of a hub: give `HF_ENDPOINT` as http:// or https://, without a user's name"
            );
            return Err(Failure::new(FailureStage::Acquire, FailureClass::HubOffline, message));
        };
        let (tls, _) = https::tls(&[]);
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .timeout_connect(Some(patience.connect))
            .timeout_recv_response(Some(patience.read))
            .timeout_per_read(Some(patience.read))
            .timeout_per_write(Some(patience.read))
            .tls_config(tls)
            .user_agent(concat!("isobench/", env!("CARGO_PKG_VERSION")))
            .build();
        Ok(Self { agent: agent.into(), endpoint, origin, token, patience })
    }

    pub(super) fn patience(&self) -> &Patience {
        &self.patience
    }

    /// Returns the place of the token that is sent, if one is.
    pub(super) fn token_place(&self) -> Option<String> {
        self.token.as_ref().map(TokenReference::place)
    }

    /// Returns a text of the hub without the token, which the hub may repeat.
    pub(super) fn hide(&self, text: &str) -> String {
        match self.token.as_ref().and_then(TokenReference::read) {
            Some(token) => text.replace(&token, "(secret)"),
            None => text.to_owned(),
        }
    }

    /// Asks until an answer comes that isn't about to pass.
    ///
    /// # Errors
    /// Returns `hub-offline` if none comes, and what was cancelled.
    pub(super) fn ask(&self, question: &Question, context: &PrepareContext<'_>) -> Result<Answer, Stop> {
        let mut pause = self.patience.pause;
        let mut tries = 1;
        loop {
            context.check_cancelled()?;
            let (why, asked) = match self.send(question) {
                Sent::Answered(answer) => return Ok(answer),
                Sent::Passing { why, pause } => (why, pause),
            };
            let wait = asked.unwrap_or(pause);
            if tries >= self.patience.tries || wait > self.patience.longest_pause {
                return Err(self.offline(&why, asked).into());
            }
            Self::wait(wait, context)?;
            tries += 1;
            pause = pause.saturating_mul(2);
        }
    }

    /// Returns the failure of a hub that doesn't answer.
    pub(super) fn offline(&self, why: &str, asked: Option<Duration>) -> Failure {
        let later =
            asked.map_or_else(String::new, |asked| format!(", and asks to be asked again in {} s", asked.as_secs()));
        let why = self.hide(why);
        let message = format!("the hub `{}` can't be asked: {why}{later}", self.endpoint);
        Failure::new(FailureStage::Acquire, FailureClass::HubOffline, message).transient()
    }

    /// Waits, unless it is cancelled.
    pub(super) fn wait(pause: Duration, context: &PrepareContext<'_>) -> Result<(), Stop> {
        let until = Instant::now() + pause;
        while Instant::now() < until {
            context.check_cancelled()?;
            std::thread::sleep(TICK.min(until.saturating_duration_since(Instant::now())));
        }
        Ok(())
    }

    fn send(&self, question: &Question) -> Sent {
        let mut url = format!("{}{}", self.endpoint, question.path);
        for _ in 0..=REDIRECTS {
            let answer = match self.send_once(question, &url) {
                Ok(answer) => answer,
                Err(error) => return Sent::Passing { why: format!("`{}`: {error}", shown(&url)), pause: None },
            };
            match answer.status {
                301 | 302 | 303 | 307 | 308 => {
                    if question.redirects == Redirects::UntilLinked && answer.head("x-linked-etag").is_some() {
                        return Sent::Answered(answer);
                    }
                    let Some(next) = answer.head("location").and_then(|location| redirected(&url, location)) else {
                        let why = format!("`{}` leads nowhere that can be followed", shown(&url));
                        return Sent::Passing { why, pause: None };
                    };
                    url = next;
                }
                408 | 429 | 500..=599 => {
                    let pause = answer.head("retry-after").and_then(|text| text.parse().ok()).map(Duration::from_secs);
                    let why = format!("`{}` answers with status {}", shown(&url), answer.status);
                    return Sent::Passing { why, pause };
                }
                _ => return Sent::Answered(answer),
            }
        }
        Sent::Passing { why: format!("`{}` leads on and on", shown(&url)), pause: None }
    }

    fn send_once(&self, question: &Question, url: &str) -> Result<Answer, ureq::Error> {
        let mut request =
            Request::builder().method(question.method.clone()).uri(url).header("accept-encoding", "identity");
        if question.from > 0 {
            request = request.header("range", format!("bytes={}-", question.from));
        }
        // Only the hub itself gets the token, and only where nobody reads along: redirects lead to others' machines.
        let is_home = Origin::of(url).is_some_and(|origin| origin == self.origin && origin.is_private());
        if let Some(token) = self.token.as_ref().filter(|_| is_home).and_then(TokenReference::read) {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let response = self.agent.run(request.body(())?)?;
        let (parts, body) = response.into_parts();
        Ok(Answer { status: parts.status.as_u16(), headers: parts.headers, body: Box::new(body.into_reader()) })
    }
}

/// Returns an address without the name and password that may stand in it.
fn without_user(address: &str) -> String {
    let (scheme, rest) = address.split_once("://").map_or(("", address), |(scheme, rest)| (scheme, rest));
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    match authority.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}://(secret)@{host}{path}"),
        None => address.to_owned(),
    }
}

/// Reads a whole body of at most so many bytes.
pub(super) fn whole(answer: &mut Answer, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    (&mut answer.body).take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::other(format!("the answer has more than {most} bytes")));
    }
    Ok(bytes)
}
