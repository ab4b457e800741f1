//! The program's options.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Parser;

use crate::config::KEYS;

/// An OpenAI-compatible server for tests that sends words on an exact schedule and records when each one left.
#[derive(Debug, Parser)]
#[command(name = "isobench-truth-server", version, after_long_help = keys())]
pub(crate) struct Args {
    /// The port of 127.0.0.1 to listen on; 0 takes a free one.
    #[arg(long, default_value_t = 8000)]
    pub(crate) port: u16,
    /// A Unix socket to listen on too, without TLS.
    #[arg(long, value_name = "PATH")]
    pub(crate) unix: Option<PathBuf>,
    /// A file of words, one a line, that are sent as tokens.
    #[arg(long, value_name = "FILE")]
    pub(crate) words: Option<PathBuf>,
    /// The model's name, as `/v1/models` tells it. Requests may name any.
    #[arg(long, default_value = "mock")]
    pub(crate) model: String,
    /// Settings: `key=value` joined by `&`. `/ctl?key=value` changes them later.
    #[arg(long, default_value = "", value_name = "SETTINGS")]
    pub(crate) ctl: String,
    /// Speaks TLS, with a certificate made at the start for `localhost` and `127.0.0.1`.
    #[arg(long)]
    pub(crate) tls: bool,
    /// Where the certificate is written, as PEM.
    #[arg(long, value_name = "FILE", requires = "tls")]
    pub(crate) tls_cert_out: Option<PathBuf>,
    /// Speaks HTTP/2 too: to clients that begin with it, and with `--tls` to clients that choose it.
    #[arg(long)]
    pub(crate) http2: bool,
    /// Ends when the standard input is closed.
    #[arg(long)]
    pub(crate) while_stdin: bool,
}

/// Returns the help on the settings.
fn keys() -> String {
    let mut help = "Settings, each with what it is if nothing is said:\n".to_owned();
    for (key, default, meaning) in KEYS {
        // Writing to a string can't fail.
        writeln!(help, "  {key}={default}  {}", meaning.trim()).ok();
    }
    help.push_str("  reset=1  Forgets all records and counts.");
    help
}
