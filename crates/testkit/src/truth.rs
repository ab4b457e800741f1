//! A running `isobench-truth-server`, for tests of clients: it knows when each of its tokens left.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::truth_server_path;

/// Longer than the server needs for any answer about itself.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running truth server, which ends when this is dropped or its process ends.
#[derive(Debug)]
pub struct TruthServer {
    process: Child,
    url: String,
    folder: TempDir,
}

/// What the server knows of one request. Times are nanoseconds of `CLOCK_MONOTONIC`; 0 is never.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TruthRecord {
    /// The connection's number.
    pub connection: u64,
    /// When the connection was accepted.
    pub accepted_ns: u64,
    /// When the last byte of the request arrived at this machine, by the kernel's stamp.
    pub arrived_ns: u64,
    /// When the first token's event was handed to the kernel, or the last part of it.
    pub first_ns: u64,
    /// The same of the last token.
    pub last_ns: u64,
    /// The tokens that left.
    pub tokens: u64,
    /// How it ended: `done`, `error`, `abort`, `reset`, `stall`, `dropped` or `refused`.
    pub outcome: String,
    /// The tokens that were asked for.
    pub asked: u64,
    /// When it got one of the server's slots.
    pub served_ns: u64,
}

impl TruthServer {
    /// Starts a server on a free port with settings like `ttft_us=50000&itl_us=10000`; the program's `--help` has them
    /// all.
    ///
    /// # Panics
    /// Panics if the program isn't built, or doesn't start.
    pub fn start(ctl: &str) -> Self {
        Self::start_with(ctl, &[])
    }

    /// Starts a server with more options, like `--http2`. With `--tls`, [`certificate`](Self::certificate) is what
    /// clients must trust.
    ///
    /// # Panics
    /// Panics if the program isn't built, or doesn't start.
    pub fn start_with(ctl: &str, options: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("there is a folder for temporary files");
        let mut command = Command::new(truth_server_path());
        command.args(["--port", "0", "--while-stdin", "--ctl", ctl, "--unix"]).arg(folder.path().join("socket"));
        if options.contains(&"--tls") {
            command.arg("--tls-cert-out").arg(folder.path().join("certificate.pem"));
        }
        command.args(options).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("the truth server can be started");
        let mut lines = BufReader::new(process.stdout.take().expect("its output is a pipe")).lines();
        let mut address = || {
            let line = lines.next().and_then(Result::ok).unwrap_or_default();
            line.strip_prefix("listening on ").expect("the truth server says that it listens").to_owned()
        };
        let url = address();
        address();
        Self { process, url, folder }
    }

    /// Returns where it listens, like `http://127.0.0.1:40000`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the host and port where it listens, like `127.0.0.1:40000`.
    pub fn address(&self) -> &str {
        self.url.rsplit('/').next().unwrap_or_default()
    }

    /// Returns the path of the Unix socket where it listens too, without TLS.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    /// Returns the path of its certificate, as PEM, which is there with `--tls`.
    pub fn certificate(&self) -> PathBuf {
        self.folder.path().join("certificate.pem")
    }

    /// Returns a folder that is removed with the server.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Changes settings, like `abort=3`; `reset=1` forgets all records.
    ///
    /// # Panics
    /// Panics if there is no such setting.
    pub fn ctl(&self, settings: &str) {
        self.get(&format!("/ctl?{settings}")).expect("the truth server takes its settings");
    }

    /// Returns its numbers, as `/stats` has them.
    ///
    /// # Panics
    /// Panics if the server is gone.
    pub fn stats(&self) -> Value {
        let text = self.get("/stats").expect("the truth server tells its numbers");
        serde_json::from_str(&text).expect("the numbers are JSON")
    }

    /// Returns what it knows of each request, in the order in which they ended.
    ///
    /// # Panics
    /// Panics if the server is gone.
    pub fn log(&self) -> Vec<TruthRecord> {
        let text = self.get("/log").expect("the truth server tells its log");
        text.lines().map(|line| TruthRecord::read(line).expect("each line of the log is a record")).collect()
    }

    fn get(&self, path: &str) -> io::Result<String> {
        // Over the Unix socket, so that it works with TLS too.
        let mut stream = UnixStream::connect(self.socket())?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(format!("GET {path} HTTP/1.1\r\nconnection: close\r\n\r\n").as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let body = answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default();
        if answer.starts_with("HTTP/1.1 200 ") { Ok(body) } else { Err(io::Error::other(answer)) }
    }
}

impl Drop for TruthServer {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

impl TruthRecord {
    fn read(line: &str) -> Option<Self> {
        let mut fields = line.split(',');
        let mut field = || fields.next();
        let mut number = || field()?.parse().ok();
        Some(Self {
            connection: number()?,
            accepted_ns: number()?,
            arrived_ns: number()?,
            first_ns: number()?,
            last_ns: number()?,
            tokens: number()?,
            outcome: field()?.to_owned(),
            asked: field()?.parse().ok()?,
            served_ns: field()?.parse().ok()?,
        })
    }
}
