//! A server of files and pages over HTTP, for tests of what fetches them: each answer can be wrong in its own way.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long a client is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is answered at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileAnswer {
    /// The status.
    pub status: u16,
    /// Headers beside the length.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// How many bytes of it are sent before the connection is closed; all if absent.
    pub cut_after: Option<usize>,
}

impl FileAnswer {
    /// Returns an answer with this body.
    pub fn of(body: impl Into<Vec<u8>>) -> Self {
        Self { status: 200, headers: Vec::new(), body: body.into(), cut_after: None }
    }

    /// Returns a page of this type.
    pub fn page(kind: &str, body: impl Into<Vec<u8>>) -> Self {
        Self { headers: vec![("content-type".to_owned(), kind.to_owned())], ..Self::of(body) }
    }

    /// Returns an answer that leads to this address.
    pub fn leading_to(address: &str) -> Self {
        Self { status: 302, headers: vec![("location".to_owned(), address.to_owned())], ..Self::of("") }
    }

    /// Returns an answer of this status, without a body.
    pub fn status(status: u16) -> Self {
        Self { status, ..Self::of("") }
    }
}

/// What the server's threads share.
#[derive(Debug, Default)]
struct Shared {
    answers: Mutex<BTreeMap<String, FileAnswer>>,
    asked: Mutex<Vec<String>>,
    ends: AtomicBool,
}

/// A server on the loopback interface. Dropping it ends it.
#[derive(Debug)]
pub struct FilesServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl FilesServer {
    /// Starts a server that has nothing.
    ///
    /// # Errors
    /// Returns an error if there is no port to be had.
    pub fn start() -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if of_thread.ends.load(Ordering::Relaxed) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                let shared = Arc::clone(&of_thread);
                // A client that has given up is no fault of the server.
                std::thread::spawn(move || drop(answer(stream, &shared)));
            }
        });
        Ok(Self { address, shared, thread: Some(thread) })
    }

    /// Returns the address of a path.
    pub fn address(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Puts an answer at a path.
    pub fn put(&self, path: &str, answer: FileAnswer) {
        self.shared.answers.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned(), answer);
    }

    /// Returns the paths that were asked for, in this order.
    pub fn asked(&self) -> Vec<String> {
        self.shared.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for FilesServer {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::Relaxed);
        // It waits for a connection; this is one.
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

fn answer(mut stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && head.len() < 65_536 {
        stream.read_exact(&mut byte)?;
        head.extend(byte);
    }
    let head = String::from_utf8_lossy(&head);
    let path = head.split_whitespace().nth(1).unwrap_or("/").to_owned();
    shared.asked.lock().unwrap_or_else(PoisonError::into_inner).push(path.clone());
    let found = shared.answers.lock().unwrap_or_else(PoisonError::into_inner).get(&path).cloned();
    let found = found.unwrap_or_else(|| FileAnswer::status(404));
    let mut text =
        format!("HTTP/1.1 {} x\r\nconnection: close\r\ncontent-length: {}\r\n", found.status, found.body.len());
    text.extend(found.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")));
    stream.write_all((text + "\r\n").as_bytes())?;
    if head.starts_with("HEAD ") {
        return stream.shutdown(Shutdown::Write);
    }
    let sent = found.cut_after.unwrap_or(found.body.len());
    stream.write_all(found.body.get(..sent).unwrap_or(&found.body))?;
    stream.shutdown(Shutdown::Write)
}
