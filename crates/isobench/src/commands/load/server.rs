//! Which server is loaded, how it is spoken to, and what it says that it serves.

use std::time::Duration;

use isobench_loadgen::get::{DiscoverModelError, Served, discover};
use isobench_loadgen::target::{Endpoint, HttpVersion, Manner, ParseTargetError, Target};
use isobench_loadgen::tls::Trust;
use tokio::runtime::Runtime;

use super::carry::Limits;
use crate::exit::{CommandError, Exit, WithExit as _};
use crate::load_args::{DEFAULT_KEY_ENV, LoadArgs, ServerArgs};

/// How long the server may take to name its model.
pub(super) const DISCOVERY: Duration = Duration::from_secs(30);

/// A server that can be loaded.
#[derive(Debug, Clone)]
pub(super) struct Server {
    /// As it was typed.
    pub(super) url: String,
    pub(super) target: Target,
    /// Tokens that a prompt and its answer may have together, as the server says.
    pub(super) max_model_len: Option<u32>,
}

impl Server {
    /// Finds the server and its model.
    ///
    /// # Errors
    /// Returns what in the URL or the headers makes no sense, or that the server doesn't say what it serves.
    pub(super) fn find(args: &LoadArgs, url: &str, limits: &Limits, runtime: &Runtime) -> Result<Self, CommandError> {
        let names_key = args.server.api_key_env != DEFAULT_KEY_ENV;
        if names_key && std::env::var_os(&args.server.api_key_env).is_none() {
            // It isn't shown: it may be the key itself.
            let message = "the variable that `--api-key-env` names isn't set";
            return Err(CommandError::new(Exit::Usage, message).hint("give the name of a variable that holds the key"));
        }
        let endpoint = endpoint(&args.server, url)?.with_headers(headers(&args.server)).exit(Exit::Usage)?;
        let served = if let Some(model) = &args.server.model {
            Served { model: model.clone(), max_model_len: None }
        } else {
            let found = runtime.block_on(limits.over(discover(&endpoint, DISCOVERY)))?;
            found.map_err(|error| unknown_model(url, error))?
        };
        let mut target = Target::new(endpoint, served.model);
        if let Some(path) = &args.server.endpoint {
            target = target.with_path(path).exit(Exit::Usage)?;
        }
        Ok(Self { url: url.to_owned(), target, max_model_len: served.max_model_len })
    }
}

/// What stands in the place of a secret that a server gives back.
const MASK: &str = "[secret]";
/// Values that are shorter are too common to be masked.
const SHORTEST_SECRET: usize = 6;

impl Server {
    /// Returns a server's words without the secrets that were sent to it.
    pub(super) fn masked(&self, text: &str) -> String {
        let values = self.target.endpoint().headers().iter().map(|(_, value)| value.as_str());
        let secrets = values.map(|value| value.strip_prefix("Bearer ").unwrap_or(value));
        secrets
            .filter(|secret| secret.len() >= SHORTEST_SECRET)
            .fold(text.to_owned(), |text, secret| text.replace(secret, MASK))
    }
}

fn endpoint(args: &ServerArgs, url: &str) -> Result<Endpoint, CommandError> {
    let trust = match (&args.ca_file, args.insecure) {
        (_, true) => Trust::Anyone,
        (Some(path), false) => Trust::SystemAnd(path.clone()),
        (None, false) => Trust::System,
    };
    let http = if args.http2 { HttpVersion::Http2 } else { HttpVersion::Auto };
    let endpoint = Endpoint::parse_with(url, &Manner { http, trust }).map_err(|error| {
        let is_unknown = matches!(error, ParseTargetError::Unresolved { .. });
        let error = CommandError::from_error(Exit::Usage, error);
        if is_unknown {
            error.hint("check the host's name in the URL, and that this machine can look names up")
        } else {
            error
        }
    })?;
    match &args.unix {
        Some(path) => endpoint.through(path.clone()).exit(Exit::Usage),
        None => Ok(endpoint),
    }
}

/// Returns the further headers; the key of the interface comes from the environment, so that no process list shows it.
fn headers(args: &ServerArgs) -> Vec<(String, String)> {
    let mut headers: Vec<(String, String)> =
        args.headers.iter().map(|header| (header.name.clone(), header.value.clone())).collect();
    let is_given = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
    if let Some(key) = std::env::var(&args.api_key_env).ok().filter(|key| !key.is_empty() && !is_given) {
        headers.push(("Authorization".to_owned(), format!("Bearer {key}")));
    }
    headers
}

fn unknown_model(url: &str, error: DiscoverModelError) -> CommandError {
    let told: Vec<String> =
        std::iter::successors(Some(&error as &(dyn std::error::Error + 'static)), |error| error.source())
            .map(ToString::to_string)
            .collect();
    let is_plain = told.iter().any(|cause| cause.contains("plain http"));
    let hint = if is_plain {
        "if the server speaks plain HTTP, give its URL with `http://`"
    } else {
        "is the server up? `--model NAME` asks for a model without this question"
    };
    let error = CommandError::from_error(Exit::Usage, error);
    CommandError { message: format!("`{url}`: {}", error.message), ..error }.hint(hint)
}
