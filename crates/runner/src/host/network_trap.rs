//! A proxy that answers nothing: engines are pointed at it, so that whoever asks the network is seen and refused.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use std::{io, thread};

use isobench_schema::failure::EvidenceLine;

/// The most requests that are kept as evidence.
const MOST_KEPT: usize = 50;
/// How long a client may take to say what it wants.
const PATIENCE: Duration = Duration::from_millis(500);

/// A listening trap. It ends when it is dropped.
#[derive(Debug)]
pub struct NetworkTrap {
    address: SocketAddr,
    /// The socket once more, to wake the thread by: the thread that drops the trap may be in another network.
    listening: TcpListener,
    asked: Arc<Mutex<Vec<String>>>,
    closing: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl NetworkTrap {
    /// Opens a trap on a loopback port, in the network that the calling thread is in; on a free one if `port` is 0.
    ///
    /// # Errors
    /// Returns the operating system's error if the port can't be had.
    pub fn open(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", port))?;
        let address = listener.local_addr()?;
        let listening = listener.try_clone()?;
        let asked = Arc::new(Mutex::new(Vec::new()));
        let closing = Arc::new(AtomicBool::new(false));
        let thread = thread::Builder::new().name("network-trap".to_owned()).spawn({
            let (asked, closing) = (Arc::clone(&asked), Arc::clone(&closing));
            move || serve(&listener, &asked, &closing)
        })?;
        Ok(Self { address, listening, asked, closing, thread: Some(thread) })
    }

    /// Returns the port that it listens on.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns the variables that lead a process to a trap on that port.
    pub fn variables(port: u16) -> BTreeMap<String, String> {
        let proxy = format!("http://127.0.0.1:{port}");
        let mut variables = BTreeMap::new();
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
            variables.insert(name.to_owned(), proxy.clone());
            variables.insert(name.to_lowercase(), proxy.clone());
        }
        for name in ["NO_PROXY", "no_proxy"] {
            variables.insert(name.to_owned(), "127.0.0.1,localhost,::1".to_owned());
        }
        variables
    }

    /// Returns what was asked so far, one line a request.
    pub fn asked(&self) -> Vec<EvidenceLine> {
        let asked = self.asked.lock().map(|asked| asked.clone()).unwrap_or_default();
        (1..).zip(asked).map(|(line, text)| EvidenceLine::new("network-trap", Some(line), &text)).collect()
    }
}

impl Drop for NetworkTrap {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::Relaxed);
        // Wakes the thread; if that fails it has ended already.
        let _ = rustix::net::shutdown(&self.listening, rustix::net::Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(listener: &TcpListener, asked: &Mutex<Vec<String>>, closing: &AtomicBool) {
    for stream in listener.incoming() {
        if closing.load(Ordering::Relaxed) {
            return;
        }
        let Ok(mut stream) = stream else { continue };
        let line = first_line(&mut stream);
        if let Ok(mut asked) = asked.lock()
            && asked.len() < MOST_KEPT
        {
            asked.push(line);
        }
        let _ = stream.write_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    }
}

/// Returns the first line that a client sends, up to 300 bytes.
fn first_line(stream: &mut std::net::TcpStream) -> String {
    let _ = stream.set_read_timeout(Some(PATIENCE));
    let mut bytes = [0_u8; 300];
    let read = stream.read(&mut bytes).unwrap_or(0);
    let text = String::from_utf8_lossy(bytes.get(..read).unwrap_or_default()).into_owned();
    let line = text.lines().next().unwrap_or_default().trim();
    if line.is_empty() { "a connection that said nothing".to_owned() } else { line.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_asks_is_seen_and_refused() {
        let trap = NetworkTrap::open(0).unwrap();
        let address = NetworkTrap::variables(trap.port())["https_proxy"].replace("http://", "");
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        stream.write_all(b"CONNECT hub.example:443 HTTP/1.1\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 403"));
        assert_eq!(trap.asked()[0].text, "CONNECT hub.example:443 HTTP/1.1");
    }
}
