//! Which server is loaded, how it is spoken to, and what it says that it serves.

use std::time::Duration;

use isobench_loadgen::get::{DiscoverModelError, Served, discover};
use isobench_loadgen::target::{Endpoint, HttpVersion, Manner, Target};
use isobench_loadgen::tls::Trust;
use tokio::runtime::Runtime;

use crate::exit::{CommandError, Exit, WithExit as _};
use crate::load_args::{LoadArgs, ServerArgs};

/// How long the server may take to name its model.
const DISCOVERY: Duration = Duration::from_secs(30);

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
    pub(super) fn find(args: &LoadArgs, url: &str, runtime: &Runtime) -> Result<Self, CommandError> {
        let endpoint = endpoint(&args.server, url)?.with_headers(headers(&args.server)).exit(Exit::Usage)?;
        let served = match &args.server.model {
            Some(model) => Served { model: model.clone(), max_model_len: None },
            None => runtime.block_on(discover(&endpoint, DISCOVERY)).map_err(|error| unknown_model(url, error))?,
        };
        let mut target = Target::new(endpoint, served.model);
        if let Some(path) = &args.server.endpoint {
            target = target.with_path(path).exit(Exit::Usage)?;
        }
        Ok(Self { url: url.to_owned(), target, max_model_len: served.max_model_len })
    }
}

fn endpoint(args: &ServerArgs, url: &str) -> Result<Endpoint, CommandError> {
    let trust = match (&args.ca_file, args.insecure) {
        (_, true) => Trust::Anyone,
        (Some(path), false) => Trust::SystemAnd(path.clone()),
        (None, false) => Trust::System,
    };
    let http = if args.http2 { HttpVersion::Http2 } else { HttpVersion::Auto };
    let endpoint = Endpoint::parse_with(url, &Manner { http, trust }).exit(Exit::Usage)?;
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
    let error = CommandError::from_error(Exit::Usage, error);
    CommandError { message: format!("`{url}`: {}", error.message), ..error }
        .hint("is the server up? `--model NAME` asks for a model without this question")
}
