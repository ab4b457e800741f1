//! The program `isobench-fake-engine`: an OpenAI-compatible server for tests that misbehaves as told.

mod answer;
mod args;
mod connection;
mod daemon;
mod engine;
mod http;
mod log;
mod mishap;

use std::net::TcpListener;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use clap::Parser as _;
use isobench_testkit::Fault;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::args::Args;
use crate::engine::Engine;
use crate::log::log;

fn main() -> ExitCode {
    let args = Args::parse();
    if args.daemonise {
        return daemon::start_the_rest();
    }
    if let Some(seconds) = args.sleep_for_s {
        thread::sleep(Duration::from_secs(seconds));
        return ExitCode::SUCCESS;
    }
    if args.just_listen {
        return daemon::just_listen(&args);
    }
    let (exit, asked_to_exit) = channel();
    let engine = match Engine::new(args, exit.clone()) {
        Ok(engine) => Arc::new(engine),
        Err(error) => {
            log(&error.to_string());
            return ExitCode::from(2);
        }
    };
    if let Err(error) = watch_signals(exit.clone(), engine.has(&Fault::IgnoreSigterm)) {
        log(&format!("cannot watch signals: {error}"));
        return ExitCode::from(2);
    }
    // The main thread only waits, so that a signal ends the program whatever the others do.
    thread::spawn(move || {
        if let Err(status) = run(&engine) {
            exit.send(status).ok();
        }
    });
    let status = asked_to_exit.recv().unwrap_or(1);
    if status == 0 {
        log("shutting down");
    }
    ExitCode::from(status)
}

/// Ends the program with status 0 at SIGTERM or SIGINT, or only says that it doesn't.
fn watch_signals(exit: Sender<u8>, ignored: bool) -> std::io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    thread::spawn(move || {
        for signal in signals.forever() {
            if ignored {
                log(&format!("signal {signal} is ignored"));
            } else {
                exit.send(0).ok();
            }
        }
    });
    Ok(())
}

/// Starts and serves; returns only with a status to end with.
fn run(engine: &Arc<Engine>) -> Result<(), u8> {
    log("INFO loading the model");
    for name in &engine.args.needs {
        let path = std::path::Path::new(&engine.args.model).join(name);
        let bytes = std::fs::read(&path).map_err(|error| {
            log(&format!("OSError: cannot read {}: {error}", path.display()));
            1
        })?;
        let is_offline = std::env::var("HF_HUB_OFFLINE").as_deref() == Ok("1");
        log(&format!("INFO read {name}, {} bytes, the hub is {}", bytes.len(), if is_offline { "off" } else { "on" }));
    }
    mishap::before_listening(engine)?;
    if engine.has(&Fault::WrongPort) || engine.has(&Fault::StealPort) {
        return Ok(());
    }
    let address = (engine.args.host.as_str(), engine.args.port);
    let listener = TcpListener::bind(address).map_err(|error| {
        log(&format!("OSError: cannot listen on {}:{}: {error}", engine.args.host, engine.args.port));
        1
    })?;
    log(&format!("INFO listening on {}:{}", engine.args.host, engine.args.port));
    mishap::while_serving(engine);
    for stream in listener.incoming() {
        let Ok(stream) = stream else { continue };
        let engine = Arc::clone(engine);
        // A connection that ends with an error is the client's concern.
        thread::spawn(move || connection::serve(&stream, &engine).ok());
    }
    Ok(())
}
