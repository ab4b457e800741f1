//! A hub for tests: models and datasets over HTTP on loopback, a second host that large files are sent from, and the ways in
//! which both go wrong.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use sha1::{Digest as _, Sha1};
use sha2::Sha256;

/// A way in which the hub goes wrong for a file, or for a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HubFault {
    /// Access must be granted: without this token it is refused with status 403, with none with 401.
    Gated {
        /// The token that gives access.
        token: String,
    },
    /// So many answers of a file end after so many bytes each, in the middle of the body.
    Dies {
        /// Bytes of a body before it breaks off.
        after: usize,
        /// How often.
        times: u32,
    },
    /// The file ends early, and its head says that this is all of it.
    Truncated {
        /// The bytes that are sent.
        at: usize,
    },
    /// Other bytes of the same length are sent, so many times.
    WrongBytes {
        /// How often.
        times: u32,
    },
    /// The body comes so many bytes at a time, with a pause of so many milliseconds before each.
    Slow {
        /// Bytes at a time.
        bytes: usize,
        /// The pause in milliseconds.
        pause_ms: u64,
    },
    /// So many requests are refused with status 429 and this `Retry-After`.
    TooMany {
        /// How often.
        times: u32,
        /// Seconds.
        retry_after_s: u64,
    },
    /// So many requests are refused with this status.
    Status {
        /// The status.
        status: u16,
        /// How often.
        times: u32,
    },
    /// The parts of a file that are asked for are ignored: all of it is always sent.
    NoRanges,
    /// The list of files says neither sizes nor hashes.
    BareList,
}

/// A request that came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubRequest {
    /// Whether it came to the second host, which large files are sent from.
    pub to_second_host: bool,
    /// Its method.
    pub method: String,
    /// Its path with what follows it.
    pub path: String,
    /// Whether it held a token.
    pub has_token: bool,
    /// From which byte on it asked.
    pub from: Option<u64>,
}

/// How a file is kept on the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HubFile {
    /// In git: it is known by the id of its blob, and sent by the hub itself.
    Small,
    /// Beside git: it is known by its SHA-256, and sent by the second host.
    Large,
}

#[derive(Debug, Clone)]
struct Stored {
    bytes: Vec<u8>,
    form: HubFile,
}

#[derive(Debug, Clone, Default)]
struct Repository {
    commit: String,
    files: BTreeMap<String, Stored>,
}

#[derive(Debug, Default)]
struct State {
    /// By kind and name, such as `models/org/name`.
    repositories: BTreeMap<String, Repository>,
    /// By kind and name, or with a file's path after it.
    faults: BTreeMap<String, Vec<HubFault>>,
    requests: Vec<HubRequest>,
}

/// A hub on loopback, which ends when it is dropped.
#[derive(Debug)]
pub struct FakeHub {
    state: Arc<Mutex<State>>,
    first: SocketAddr,
    second: SocketAddr,
    closing: Arc<AtomicBool>,
}

impl FakeHub {
    /// Starts a hub without repositories.
    ///
    /// # Errors
    /// Returns an error if it can't listen.
    pub fn start() -> io::Result<Self> {
        let (first, second) = (TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?);
        let (state, closing) = (Arc::new(Mutex::new(State::default())), Arc::new(AtomicBool::new(false)));
        let addresses = (first.local_addr()?, second.local_addr()?);
        for (listener, is_second) in [(first, false), (second, true)] {
            let (state, closing) = (Arc::clone(&state), Arc::clone(&closing));
            thread::spawn(move || {
                for stream in listener.incoming() {
                    if closing.load(Ordering::Relaxed) {
                        return;
                    }
                    let (Ok(stream), state) = (stream, Arc::clone(&state)) else { continue };
                    // A client that goes away is its own concern.
                    thread::spawn(move || serve(&stream, &state, (is_second, addresses.1)).ok());
                }
            });
        }
        Ok(Self { state, first: addresses.0, second: addresses.1, closing })
    }

    /// Returns its address, for `HF_ENDPOINT`.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.first)
    }

    /// Adds a model with these files, and returns its commit.
    pub fn add_model(&self, name: &str, files: &[(&str, &[u8], HubFile)]) -> String {
        self.add("models", name, files)
    }

    /// Adds a dataset with these files, and returns its commit.
    pub fn add_dataset(&self, name: &str, files: &[(&str, &[u8], HubFile)]) -> String {
        self.add("datasets", name, files)
    }

    fn add(&self, kinds: &str, name: &str, files: &[(&str, &[u8], HubFile)]) -> String {
        let stored = |(path, bytes, form): &(&str, &[u8], HubFile)| {
            ((*path).to_owned(), Stored { bytes: bytes.to_vec(), form: *form })
        };
        let files: BTreeMap<String, Stored> = files.iter().map(stored).collect();
        let mut hasher = Sha1::new();
        for (path, file) in &files {
            hasher.update(path);
            hasher.update(&file.bytes);
        }
        let commit = hex(&hasher.finalize());
        let repository = Repository { commit: commit.clone(), files };
        lock(&self.state).repositories.insert(format!("{kinds}/{name}"), repository);
        commit
    }

    /// Lets a model or one of its files go wrong: `org/name`, or `org/name` and a file.
    pub fn break_model(&self, name: &str, file: Option<&str>, fault: HubFault) {
        let key = file.map_or_else(|| format!("models/{name}"), |file| format!("models/{name}/{file}"));
        lock(&self.state).faults.entry(key).or_default().push(fault);
    }

    /// Takes every fault away.
    pub fn mend(&self) {
        lock(&self.state).faults.clear();
    }

    /// Returns the requests that came so far.
    pub fn requests(&self) -> Vec<HubRequest> {
        lock(&self.state).requests.clone()
    }
}

impl Drop for FakeHub {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::Relaxed);
        for address in [self.first, self.second] {
            // Wakes the listener, which then ends.
            drop(TcpStream::connect_timeout(&address, Duration::from_secs(1)));
        }
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

impl Stored {
    /// Returns what the file is known by.
    fn tag(&self) -> String {
        match self.form {
            HubFile::Small => {
                let head = format!("blob {}\0", self.bytes.len());
                hex(&Sha1::new_with_prefix(head).chain_update(&self.bytes).finalize())
            }
            HubFile::Large => hex(&Sha256::digest(&self.bytes)),
        }
    }
}

/// A request as it was read.
struct Asked {
    method: String,
    path: String,
    token: Option<String>,
    from: Option<u64>,
}

fn read(stream: &TcpStream) -> io::Result<Option<Asked>> {
    let mut reader = BufReader::new(stream.take(1 << 16));
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace().map(str::to_owned);
    let (Some(method), Some(path)) = (words.next(), words.next()) else { return Ok(None) };
    let mut asked = Asked { method, path, token: None, from: None };
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            return Ok(Some(asked));
        }
        let Some((name, value)) = line.split_once(':') else { continue };
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "authorization" => asked.token = value.strip_prefix("Bearer ").map(str::to_owned),
            "range" => {
                asked.from = value.strip_prefix("bytes=").and_then(|from| from.trim_end_matches('-').parse().ok());
            }
            _ => {}
        }
    }
}

fn serve(stream: &TcpStream, state: &Mutex<State>, (is_second, second): (bool, SocketAddr)) -> io::Result<()> {
    let Some(asked) = read(stream)? else { return Ok(()) };
    lock(state).requests.push(HubRequest {
        to_second_host: is_second,
        method: asked.method.clone(),
        path: asked.path.clone(),
        has_token: asked.token.is_some(),
        from: asked.from,
    });
    let path = asked.path.split('?').next().unwrap_or_default().replace("%20", " ");
    if let Some(rest) = path.strip_prefix("/api/") {
        return describe(stream, state, &asked, rest);
    }
    let (key, file) = match path.split_once("/resolve/") {
        Some((name, rest)) => {
            let name = name.trim_start_matches('/');
            let key = if name.starts_with("datasets/") { name.to_owned() } else { format!("models/{name}") };
            (key, rest.split_once('/').map_or(rest, |(_commit, file)| file).to_owned())
        }
        None => return refuse(stream, 404, "EntryNotFound", ""),
    };
    // Who comes to the second host was let in by the first.
    if let Some(answer) = Some(&key).filter(|_| !is_second).and_then(|key| fault(state, key, &asked)) {
        return answer_fault(stream, &answer, &asked);
    }
    if let Some(answer) = fault(state, &format!("{key}/{file}"), &asked) {
        return answer_fault(stream, &answer, &asked);
    }
    let stored = lock(state).repositories.get(&key).and_then(|found| found.files.get(&file)).cloned();
    let Some(stored) = stored else { return refuse(stream, 404, "EntryNotFound", "") };
    if stored.form == HubFile::Large && !is_second {
        let heads = format!(
            "Location: http://{second}{}\r\nX-Linked-ETag: \"{}\"\r\nX-Linked-Size: {}\r\nContent-Length: 0\r\n",
            asked.path,
            stored.tag(),
            stored.bytes.len()
        );
        return head(stream, "302 Found", &heads);
    }
    send(stream, state, &asked, (&format!("{key}/{file}"), &stored))
}

/// Returns the fault that answers a request in the place of a file, if one does.
fn fault(state: &Mutex<State>, key: &str, asked: &Asked) -> Option<HubFault> {
    let mut state = lock(state);
    for fault in state.faults.get_mut(key)? {
        match fault {
            HubFault::Gated { token } if asked.token.as_ref() != Some(token) => return Some(fault.clone()),
            HubFault::TooMany { times, .. } | HubFault::Status { times, .. } if *times > 0 => {
                *times -= 1;
                return Some(fault.clone());
            }
            HubFault::Gated { .. }
            | HubFault::Dies { .. }
            | HubFault::Truncated { .. }
            | HubFault::WrongBytes { .. }
            | HubFault::Slow { .. }
            | HubFault::TooMany { .. }
            | HubFault::Status { .. }
            | HubFault::NoRanges
            | HubFault::BareList => {}
        }
    }
    None
}

fn answer_fault(stream: &TcpStream, fault: &HubFault, asked: &Asked) -> io::Result<()> {
    match fault {
        // It repeats what it was told in confidence, as no hub should.
        HubFault::Gated { .. } => {
            let token = asked.token.as_deref().unwrap_or("none");
            refuse(stream, 403, "GatedRepo", &format!("X-Error-Message: no access with {token}\r\n"))
        }
        HubFault::TooMany { retry_after_s, .. } => {
            refuse(stream, 429, "", &format!("Retry-After: {retry_after_s}\r\n"))
        }
        HubFault::Status { status, .. } => refuse(stream, *status, "", ""),
        HubFault::Dies { .. }
        | HubFault::Truncated { .. }
        | HubFault::WrongBytes { .. }
        | HubFault::Slow { .. }
        | HubFault::NoRanges
        | HubFault::BareList => Ok(()),
    }
}

/// Answers what the hub's interface says of a repository.
fn describe(stream: &TcpStream, state: &Mutex<State>, asked: &Asked, rest: &str) -> io::Result<()> {
    let (key, revision) = rest.split_once("/revision/").unwrap_or((rest, "main"));
    if let Some(answer) = fault(state, key, asked) {
        return answer_fault(stream, &answer, asked);
    }
    let (found, is_bare) = {
        let state = lock(state);
        let is_bare = state.faults.get(key).is_some_and(|faults| faults.contains(&HubFault::BareList));
        (state.repositories.get(key).cloned(), is_bare)
    };
    let Some(found) = found else { return refuse(stream, 401, "RepoNotFound", "") };
    if revision != "main" && revision != found.commit {
        return refuse(stream, 404, "RevisionNotFound", "");
    }
    let sibling = |(path, file): (&String, &Stored)| {
        let (tag, size) = (file.tag(), file.bytes.len());
        match file.form {
            _ if is_bare => serde_json::json!({ "rfilename": path }),
            HubFile::Small => serde_json::json!({ "rfilename": path, "size": size, "blobId": tag }),
            HubFile::Large => serde_json::json!({
                "rfilename": path, "size": size, "blobId": "0".repeat(40),
                "lfs": { "sha256": tag, "size": size, "pointerSize": 135 },
            }),
        }
    };
    let siblings: Vec<_> = found.files.iter().map(sibling).collect();
    let text = serde_json::json!({ "id": key, "sha": found.commit, "siblings": siblings }).to_string();
    head(stream, "200 OK", &format!("Content-Type: application/json\r\nContent-Length: {}\r\n", text.len()))?;
    let mut stream = stream;
    stream.write_all(text.as_bytes())
}

fn refuse(stream: &TcpStream, status: u16, code: &str, more: &str) -> io::Result<()> {
    let code = if code.is_empty() { String::new() } else { format!("X-Error-Code: {code}\r\n") };
    head(stream, &format!("{status} Refused"), &format!("{code}{more}Content-Length: 0\r\n"))
}

fn head(stream: &TcpStream, status: &str, heads: &str) -> io::Result<()> {
    let mut stream = stream;
    stream.write_all(format!("HTTP/1.1 {status}\r\nConnection: close\r\n{heads}\r\n").as_bytes())
}

/// Sends a file, or what its faults make of it.
fn send(stream: &TcpStream, state: &Mutex<State>, asked: &Asked, (key, stored): (&str, &Stored)) -> io::Result<()> {
    let mut body = stored.bytes.clone();
    let (mut dies, mut slow, mut has_ranges) = (None, None, true);
    if asked.method != "HEAD" {
        let mut state = lock(state);
        for fault in state.faults.get_mut(key).into_iter().flatten() {
            match fault {
                HubFault::Dies { after, times } if *times > 0 => {
                    *times -= 1;
                    dies = Some(*after);
                }
                HubFault::WrongBytes { times } if *times > 0 => {
                    *times -= 1;
                    for byte in &mut body {
                        *byte ^= 0x20;
                    }
                }
                HubFault::Truncated { at } => body.truncate(*at),
                HubFault::Slow { bytes, pause_ms } => slow = Some((*bytes, Duration::from_millis(*pause_ms))),
                HubFault::NoRanges => has_ranges = false,
                HubFault::Gated { .. }
                | HubFault::Dies { .. }
                | HubFault::WrongBytes { .. }
                | HubFault::TooMany { .. }
                | HubFault::Status { .. }
                | HubFault::BareList => {}
            }
        }
    }
    let all = body.len();
    let from = asked.from.and_then(|from| usize::try_from(from).ok()).filter(|_| has_ranges);
    if from.is_some_and(|from| from >= all) {
        return refuse(stream, 416, "", "");
    }
    let body = body.get(from.unwrap_or(0)..).unwrap_or_default();
    let range = from.map_or_else(String::new, |from| format!("Content-Range: bytes {from}-{}/{all}\r\n", all - 1));
    let status = if from.is_some() { "206 Partial Content" } else { "200 OK" };
    let tag = stored.tag();
    head(stream, status, &format!("ETag: \"{tag}\"\r\n{range}Content-Length: {}\r\n", body.len()))?;
    if asked.method == "HEAD" {
        return Ok(());
    }
    let body = body.get(..dies.unwrap_or(body.len()).min(body.len())).unwrap_or_default();
    let (at_a_time, pause) = slow.unwrap_or((body.len().max(1), Duration::ZERO));
    let mut stream = stream;
    for part in body.chunks(at_a_time.max(1)) {
        thread::sleep(pause);
        stream.write_all(part)?;
    }
    stream.flush()
}
