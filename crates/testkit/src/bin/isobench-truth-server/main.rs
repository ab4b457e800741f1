//! The program `isobench-truth-server`: an OpenAI-compatible server that knows when each of its tokens left.
//!
//! One thread serves all connections. A stream's tokens leave at absolute times: the moment at which the request had
//! been read, the time to the first token, and a multiple of the time between tokens; the last microseconds before each
//! are spent looking at the clock. `/stats` and `/log` tell what really happened, `/ctl` changes settings, and each
//! setting that isn't a speed is a fault. `/log` has a line for each request, with nanoseconds of `CLOCK_MONOTONIC`:
//! `connection,accepted,arrived,first,last,tokens,outcome,asked,served`.

mod args;
mod clock;
mod config;
mod connection;
mod dechunk;
mod event;
mod gateway;
mod gzip;
mod metrics;
mod poll;
mod prompt;
mod relay;
mod request;
mod routes;
mod server;
mod stream;
mod tls;
mod truth;

use std::error::Error;
use std::fs;
use std::io::Write as _;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixListener;
use std::process::ExitCode;

use clap::Parser as _;

use crate::args::Args;
use crate::event::Words;
use crate::server::Server;

fn main() -> ExitCode {
    let Err(error) = run(&Args::parse()) else { return ExitCode::SUCCESS };
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    // Nothing is to be done about a reader that is gone.
    std::io::stderr().write_all(format!("{text}\n").as_bytes()).ok();
    ExitCode::from(2)
}

/// Serves until it is to end.
fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    // Timers are to be exact, not frugal.
    rustix::thread::set_current_timer_slack(std::num::NonZero::new(1))?;
    let words = match &args.words {
        Some(path) => fs::read_to_string(path).map_err(|error| format!("cannot read `{}`: {error}", path.display()))?,
        None => String::new(),
    };
    let tls = args.tls.then(|| tls::set_up(args.tls_cert_out.as_deref(), args.http2)).transpose()?;
    let mut server = Server::new(&args.model, Words::new(&words))?;
    server.set(&args.ctl)?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, args.port))
        .map_err(|error| format!("cannot listen on 127.0.0.1:{}: {error}", args.port))?;
    listener.set_nonblocking(true)?;
    let scheme = if args.tls { "https" } else { "http" };
    let mut said = format!("listening on {scheme}://{}\n", listener.local_addr()?);
    server.listen(listener.into(), tls)?;
    if let Some(path) = &args.unix {
        // A server that was killed leaves its socket behind.
        if fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket()) {
            fs::remove_file(path)?;
        }
        let listener =
            UnixListener::bind(path).map_err(|error| format!("cannot listen on `{}`: {error}", path.display()))?;
        listener.set_nonblocking(true)?;
        server.listen(listener.into(), None)?;
        said = format!("{said}listening on unix:{}\n", path.display());
    }
    std::io::stdout().write_all(said.as_bytes())?;
    std::io::stdout().flush()?;
    if args.http2 {
        server.speak_http2()?;
    }
    if args.while_stdin {
        server.watch_stdin()?;
    }
    Ok(server.serve()?)
}
