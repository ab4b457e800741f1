//! Whether an engine serves on another port than the one that it was given.

use std::time::{Duration, Instant};

use isobench_loadgen::get::get;
use isobench_loadgen::target::Target;
use isobench_schema::failure::{EvidenceLine, Failure, FailureClass, FailureStage};

use crate::host::process_table::{self, Listener, ProcessInfo};

/// How long an engine that serves elsewhere may take to listen on its own port, too.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long one question may take.
const ANSWER: Duration = Duration::from_millis(500);
/// What only an OpenAI-compatible server answers with 200. An engine also listens on ports of helpers, such as a rendezvous
/// or metrics, often long before its own.
const MODELS: &str = "/v1/models";

/// Where an engine that doesn't listen on its own port was seen to serve.
#[derive(Debug, Default)]
pub(crate) struct Elsewhere(Option<(Instant, Listener)>);

impl Elsewhere {
    /// Looks at the engine's other sockets while nothing listens on its own port. Returns the failure of an engine that has
    /// been ready on another one for a while. Its sockets are those of the network of the process `network`.
    pub(crate) async fn look(
        &mut self,
        (network, processes): (u32, &[ProcessInfo]),
        own: u16,
        health: &str,
    ) -> Option<Failure> {
        let mut serving = None;
        for listener in process_table::listened_by(network, processes) {
            if serves(&listener, health).await {
                serving = Some(listener);
                break;
            }
        }
        let since = self.0.as_ref().map_or_else(Instant::now, |(since, _)| *since);
        self.0 = serving.map(|listener| (since, listener));
        let (since, listener) = self.0.as_ref().filter(|(since, _)| since.elapsed() >= PATIENCE)?;
        let (other, waited) = (listener.address.port(), since.elapsed().as_secs());
        let message = format!(
            "the engine serves on port {other}, and for {waited} s not on {own}, which it was given: let `server.command` \
             pass `{{port}}` on to it"
        );
        let line = format!("{} is listened on by the engine and answers `{health}` and `{MODELS}`", listener.address);
        let failure = Failure::new(FailureStage::Ready, FailureClass::NeverReady, message);
        Some(failure.with_evidence([EvidenceLine::new("/proc/net/tcp", None, &line)]))
    }
}

/// Returns whether a ready OpenAI-compatible server answers there.
async fn serves(listener: &Listener, health: &str) -> bool {
    let ip = listener.address.ip();
    let host = if ip.is_unspecified() { "127.0.0.1".to_owned() } else { ip.to_string() };
    let host = if host.contains(':') { format!("[{host}]") } else { host };
    let Ok(target) = Target::parse(&format!("http://{host}:{}", listener.address.port()), "") else { return false };
    for path in [health, MODELS] {
        let answer = get(target.endpoint(), path, ANSWER).await;
        if !answer.is_ok_and(|reply| reply.status == 200) {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    /// Answers every request with this status, and returns the port.
    fn serve(status: &'static str) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let _ = stream.read(&mut [0; 4096]);
                let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{{}}");
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        port
    }

    fn address(port: u16) -> Listener {
        let found = process_table::listeners(std::process::id(), port);
        found.into_iter().next().unwrap()
    }

    #[tokio::test]
    async fn only_a_server_that_is_ready_is_taken_for_the_engine() {
        assert!(serves(&address(serve("200 OK")), "/health").await);
        assert!(!serves(&address(serve("404 Not Found")), "/health").await);
        let mute = TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(!serves(&address(mute.local_addr().unwrap().port()), "/health").await);
    }

    #[tokio::test]
    async fn an_engine_that_serves_on_another_port_is_told_so_after_a_while() {
        let port = serve("200 OK");
        let this = std::process::id();
        let mut own = process_table::processes();
        own.retain(|process| process.pid == this);
        let listener = address(port);
        // The other sockets of this process are those of other tests; the one seen first decides.
        let mut elsewhere = Elsewhere::default();
        assert_eq!(elsewhere.look((this, &own), 1, "/health").await, None);
        elsewhere.0 = Some((Instant::now().checked_sub(PATIENCE).unwrap(), listener));
        let failure = elsewhere.look((this, &own), 1, "/health").await.unwrap();
        assert_eq!((failure.stage, failure.class), (FailureStage::Ready, FailureClass::NeverReady));
        assert!(failure.message.contains("not on 1, which it was given"), "{}", failure.message);
        assert!(failure.message.contains("`{port}`"), "{}", failure.message);
    }
}
