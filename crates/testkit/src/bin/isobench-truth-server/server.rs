//! The one thread that serves: it takes turns between due steps and sockets.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::ReceiveTimestampns;
use rustix::net::sockopt::{set_socket_linger, set_tcp_nodelay};
use rustix::net::{SocketFlags, accept_with};
use rustls::{ServerConfig, ServerConnection};

use crate::clock;
use crate::config::{Config, InvalidSettingError, pairs};
use crate::connection::{Connection, Connections, Ending, Got, Key, Sent};
use crate::event::Words;
use crate::poll::{Happened, Poller};
use crate::prompt::PrefixCache;
use crate::relay::Gateway;
use crate::request::{self, Read};
use crate::truth::{Outcome, Truth};

/// The bit of a token that tells listeners from connections.
const LISTENER: u64 = 1 << 63;
/// The token of the standard input.
const STDIN: u64 = u64::MAX;
/// The token of the gateway's bell.
const BELL: u64 = u64::MAX - 1;
/// The most steps between two looks at the sockets.
const STEPS: usize = 256;
/// The time before a step that is spent looking at the clock, in nanoseconds: a sleeping processor wakes up late.
const SPIN: u64 = 60_000;
/// The shortest time that is worth sleeping, in nanoseconds.
const NAP: u64 = 20_000;
/// The longest wait, in nanoseconds.
const LONGEST_WAIT: u64 = 1_000_000_000;
/// The most bytes of one read.
const READ: usize = 1 << 20;

/// A socket that new connections come from.
struct Listener {
    socket: OwnedFd,
    tls: Option<Arc<ServerConfig>>,
}

/// The server.
pub(crate) struct Server {
    pub(crate) config: Config,
    pub(crate) words: Words,
    pub(crate) model: String,
    pub(crate) truth: Truth,
    pub(crate) prefixes: PrefixCache,
    pub(crate) connections: Connections,
    /// Streams in service.
    pub(crate) active: u64,
    /// Streams that wait for a slot, in order; some may be gone.
    pub(crate) queue: VecDeque<Key>,
    /// How many of them aren't.
    pub(crate) waiting: u64,
    /// Tokens of prompts and answers of the streams in service.
    pub(crate) held_tokens: u64,
    pub(crate) requests: u64,
    pub(crate) generated: u64,
    pub(crate) event: Vec<u8>,
    pub(crate) wire: Vec<u8>,
    pub(crate) gateway: Option<Gateway>,
    poller: Poller,
    listeners: Vec<Listener>,
    timers: BinaryHeap<Reverse<(u64, Key)>>,
    ready: VecDeque<Key>,
    accepted: u64,
}

impl Server {
    /// Makes one that listens on nothing yet.
    pub(crate) fn new(model: &str, words: Words) -> io::Result<Self> {
        let model = serde_json::Value::from(model).to_string();
        Ok(Self {
            config: Config::new(),
            words,
            model: model.trim_matches('"').to_owned(),
            truth: Truth::default(),
            prefixes: PrefixCache::default(),
            connections: Connections::default(),
            active: 0,
            queue: VecDeque::new(),
            waiting: 0,
            held_tokens: 0,
            requests: 0,
            generated: 0,
            event: Vec::new(),
            wire: Vec::new(),
            gateway: None,
            poller: Poller::new()?,
            listeners: Vec::new(),
            timers: BinaryHeap::new(),
            ready: VecDeque::new(),
            accepted: 0,
        })
    }

    /// Sets what `text` says; all of it or nothing.
    pub(crate) fn set(&mut self, text: &str) -> Result<(), InvalidSettingError> {
        let (mut config, mut reset) = (self.config.clone(), false);
        for (key, value) in pairs(text) {
            if key == "reset" {
                reset = true;
            } else {
                config.set(&key, &value)?;
            }
        }
        self.config = config;
        if reset {
            self.truth = Truth::default();
        }
        Ok(())
    }

    /// Accepts connections of a listening socket, which doesn't block, from now on.
    pub(crate) fn listen(&mut self, socket: OwnedFd, tls: Option<Arc<ServerConfig>>) -> io::Result<()> {
        let number = u64::try_from(self.listeners.len()).unwrap_or(0);
        self.poller.add(&socket, LISTENER | number)?;
        self.listeners.push(Listener { socket, tls });
        Ok(())
    }

    /// Speaks HTTP/2 too, from now on.
    pub(crate) fn speak_http2(&mut self) -> io::Result<()> {
        let gateway = Gateway::start()?;
        self.poller.add(&gateway.bell, BELL)?;
        self.gateway = Some(gateway);
        Ok(())
    }

    /// Ends when the standard input is closed.
    pub(crate) fn watch_stdin(&self) -> io::Result<()> {
        Ok(self.poller.add(io::stdin(), STDIN)?)
    }

    /// Serves until the standard input is closed, if that is watched.
    pub(crate) fn serve(mut self) -> io::Result<()> {
        let (mut happened, mut buffer) = (Vec::new(), vec![0; READ]);
        loop {
            self.turn();
            self.poller.wait(self.time_to_wait(), &mut happened)?;
            for event in happened.drain(..) {
                if event.token == STDIN {
                    if io::stdin().read(&mut buffer)? == 0 {
                        return Ok(());
                    }
                } else if event.token == BELL {
                    self.take_requests()?;
                } else if event.token & LISTENER != 0 {
                    self.accept(event.token & !LISTENER)?;
                } else {
                    self.serve_socket(event, &mut buffer);
                }
            }
        }
    }

    /// Does steps that are due.
    fn turn(&mut self) {
        for _ in 0..STEPS / 2 {
            let Some(key) = self.ready.pop_front() else { break };
            self.step(key, false);
        }
        for _ in 0..STEPS {
            let now = clock::now();
            let Some(Reverse((due, key))) = self.timers.peek().copied() else { break };
            if due > now {
                break;
            }
            self.timers.pop();
            self.step(key, true);
        }
    }

    fn time_to_wait(&self) -> u64 {
        if !self.ready.is_empty() {
            return 0;
        }
        let Some(Reverse((due, _))) = self.timers.peek() else { return LONGEST_WAIT };
        let wait = due.saturating_sub(clock::now()).saturating_sub(SPIN);
        if wait < NAP { 0 } else { wait.min(LONGEST_WAIT) }
    }

    /// Schedules a connection's next step: at once if streams take turns, else at `due` nanoseconds.
    pub(crate) fn schedule(&mut self, key: Key, due: Option<u64>) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        connection.due = due.unwrap_or(0);
        match due {
            Some(due) => self.timers.push(Reverse((due, key))),
            None => self.ready.push_back(key),
        }
    }

    fn accept(&mut self, listener: u64) -> io::Result<()> {
        let listener = usize::try_from(listener).ok().and_then(|number| self.listeners.get(number));
        let Some(listener) = listener else { return Ok(()) };
        let mut sockets = Vec::new();
        let tls = listener.tls.clone();
        while let Ok(socket) = accept_with(&listener.socket, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
            sockets.push((socket, clock::now()));
        }
        for (socket, accepted) in sockets {
            // Unix sockets have nothing of the kind.
            set_tcp_nodelay(&socket, true).ok();
            setsockopt(&socket, ReceiveTimestampns, &true).ok();
            let tls = tls.clone().map(ServerConnection::new).transpose().map_err(io::Error::other)?;
            let tls = tls.map(|mut tls| {
                tls.set_buffer_limit(None);
                Box::new(tls)
            });
            self.accepted += 1;
            self.truth.accepts += 1;
            self.take_in(Connection::new(socket, tls, self.accepted, accepted))?;
        }
        Ok(())
    }

    /// Serves a connection from now on.
    pub(crate) fn take_in(&mut self, connection: Connection) -> io::Result<Key> {
        let key = self.connections.insert(connection);
        if let Some(connection) = self.connections.get_mut(key) {
            self.poller.add(&connection.socket, key.token())?;
        }
        Ok(key)
    }

    fn serve_socket(&mut self, event: Happened, buffer: &mut [u8]) {
        let key = Key::of_token(event.token);
        if event.writable {
            self.flush(key);
        }
        let Some(connection) = self.connections.get_mut(key).filter(|_| event.readable) else { return };
        match connection.receive(buffer) {
            Ok(Got::Bytes { arrived }) => {
                if connection.has_tls_to_send() {
                    self.transmit(key, b"");
                }
                self.answer_all(key, arrived);
            }
            Ok(Got::Nothing) => {}
            Ok(Got::End) | Err(_) => self.close(key),
        }
    }

    /// Answers the requests in a connection's inbox up to one that takes time. The last byte arrived at `arrived`.
    pub(crate) fn answer_all(&mut self, key: Key, arrived: u64) {
        if self.relays(key) {
            return;
        }
        while let Some(connection) = self.connections.get_mut(key) {
            if connection.inbox.is_empty() || connection.stream.is_some() || connection.hung {
                return;
            }
            if connection.ending.is_some() {
                return;
            }
            match request::read(&connection.inbox) {
                Read::Whole(request, taken) => {
                    connection.inbox.drain(..taken);
                    connection.continued = false;
                    connection.idle_close = false;
                    self.answer(key, &request, arrived);
                }
                Read::Part { waits } => {
                    if waits && !connection.continued {
                        connection.continued = true;
                        self.transmit(key, b"HTTP/1.1 100 Continue\r\n\r\n");
                    }
                    return;
                }
                Read::Wrong => self.close(key),
            }
        }
    }

    /// Sends bytes on a connection.
    pub(crate) fn transmit(&mut self, key: Key, bytes: &[u8]) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let was_blocked = connection.blocked;
        let sent = connection.send(bytes, &mut self.truth.writes);
        self.sent(key, was_blocked, &sent);
    }

    /// Sends bytes of a stream, in as many writes as the settings say.
    pub(crate) fn transmit_parts(&mut self, key: Key, bytes: &[u8]) {
        match usize::try_from(self.config.split_bytes) {
            Ok(size) if size > 0 => bytes.chunks(size).for_each(|part| self.transmit(key, part)),
            _ => self.transmit(key, bytes),
        }
    }

    fn flush(&mut self, key: Key) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let was_blocked = connection.blocked;
        let sent = connection.flush(&mut self.truth.writes);
        let overdue = sent.as_ref().is_ok_and(|sent| *sent == Sent::All) && std::mem::take(&mut connection.overdue);
        self.sent(key, was_blocked, &sent);
        if overdue {
            self.step(key, false);
        }
    }

    fn sent(&mut self, key: Key, was_blocked: bool, sent: &io::Result<Sent>) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let Ok(sent) = sent else {
            self.truth.resets += 1;
            return self.close(key);
        };
        let blocked = *sent == Sent::Blocked;
        if blocked != was_blocked && self.poller.want_write(&connection.socket, key.token(), blocked).is_err() {
            return self.close(key);
        }
        if !blocked && connection.ending.is_some() {
            self.close(key);
        }
    }

    /// Ends a connection once all is sent.
    pub(crate) fn end(&mut self, key: Key, ending: Ending) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        connection.ending = Some(ending);
        if !connection.blocked {
            self.close(key);
        }
    }

    /// Closes a connection now.
    pub(crate) fn close(&mut self, key: Key) {
        let Some(mut connection) = self.connections.remove(key) else { return };
        if let Some(stream) = connection.stream.take() {
            self.truth.record(stream.record(&connection, Outcome::Dropped));
            self.release(&stream);
        }
        if let Some(other) = connection.relay {
            self.end(other, Ending::Close);
        }
        match connection.ending {
            // A close after an error is of no use to anybody.
            Some(Ending::Reset) => drop(set_socket_linger(&connection.socket, Some(Duration::ZERO))),
            Some(Ending::Abort) => {}
            Some(Ending::Close) | None => connection.say_goodbye(&mut self.truth.writes),
        }
    }
}
