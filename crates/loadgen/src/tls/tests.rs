//! Sessions with a server in memory, and certificates that are good and bad.

use std::sync::atomic::{AtomicU32, Ordering};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection};

use super::*;

/// A server's side, and the file of the authority that issued its certificate.
struct Server {
    connection: ServerConnection,
    ca: tempfile::NamedTempFile,
}

fn server(name: &str, expired: Option<i32>, protocols: &[Protocol]) -> Server {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = format!("authority {}", NEXT.fetch_add(1, Ordering::Relaxed));
    params.distinguished_name.push(DnType::CommonName, authority);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    if let Some(year) = expired {
        params.not_before = rcgen::date_time_ymd(year - 1, 1, 1);
        params.not_after = rcgen::date_time_ymd(year, 1, 1);
    }
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], PrivateKeyDer::try_from(key.serialize_der()).unwrap())
        .unwrap();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.name().to_vec()).collect();
    let ca = tempfile::NamedTempFile::new().unwrap();
    fs::write(ca.path(), issuer.pem()).unwrap();
    let mut connection = ServerConnection::new(Arc::new(config)).unwrap();
    connection.set_buffer_limit(None);
    Server { connection, ca }
}

impl Server {
    fn config(&self, protocols: &[Protocol]) -> Config {
        Config::new(Trust::SystemAnd(self.ca.path().to_owned()), protocols).unwrap()
    }

    /// Takes what the client says; returns what it says in plain, and the answer in ciphertext.
    fn take(&mut self, mut ciphertext: &[u8]) -> (Vec<u8>, Vec<u8>) {
        let (mut plain, mut out) = (Vec::new(), Vec::new());
        while !ciphertext.is_empty() {
            self.connection.read_tls(&mut ciphertext).unwrap();
            if let Ok(state) = self.connection.process_new_packets() {
                let from = plain.len();
                plain.resize(from + state.plaintext_bytes_to_read(), 0);
                self.connection.reader().read_exact(&mut plain[from..]).unwrap();
            }
        }
        while self.connection.wants_write() {
            self.connection.write_tls(&mut out).unwrap();
        }
        (plain, out)
    }
}

/// Runs the handshake with the client's ciphertext in pieces of `size`; returns what the server was told.
fn shake_hands(session: &mut Session, server: &mut Server, first: &[u8], size: usize) -> Result<Vec<u8>, TlsError> {
    let (mut heard, mut said) = (Vec::new(), Vec::new());
    let mut out = Vec::new();
    session.seal(first, &mut out);
    for _ in 0..6 {
        let (plain, answer) = server.take(&out);
        heard.extend(plain);
        out.clear();
        let fed = answer.chunks(size).try_for_each(|piece| session.feed(piece, &mut said));
        session.seal(&[], &mut out);
        fed?;
    }
    assert!(said.is_empty());
    Ok(heard)
}

#[test]
fn bytes_come_through_both_ways_however_they_are_split() {
    let long = vec![7; 300_000];
    for size in [1, 5, 100, 1 << 20] {
        let mut server = server("localhost", None, &[]);
        let mut session = Session::new(&server.config(&[]), "localhost").unwrap();
        assert!(session.is_handshaking() && session.has_output());
        assert_eq!(shake_hands(&mut session, &mut server, &long, size).unwrap(), long);
        assert!(!session.is_handshaking() && !session.has_output());
        assert_eq!(session.protocol(), None);
        server.connection.writer().write_all(&long).unwrap();
        let (_, answer) = server.take(&[]);
        let mut plain = b"before".to_vec();
        answer.chunks(size).for_each(|piece| session.feed(piece, &mut plain).unwrap());
        assert_eq!((&plain[..6], plain[6..] == long), (b"before".as_slice(), true));
        assert_eq!(session.end(), Err(TlsError::Cut { host: "localhost".to_owned() }));
        server.connection.send_close_notify();
        let (_, answer) = server.take(&[]);
        session.feed(&answer, &mut plain).unwrap();
        assert!(session.is_closed() && session.end().is_ok());
    }
}

#[test]
fn the_server_chooses_among_the_protocols_offered() {
    use Protocol::{Http1, Http2};
    for (spoken, offered, chosen) in [
        (&[Http2, Http1][..], &[Http2, Http1][..], Some(Http2)),
        (&[Http1], &[Http2, Http1], Some(Http1)),
        (&[], &[Http2, Http1], None),
    ] {
        let mut server = server("localhost", None, spoken);
        let mut session = Session::new(&server.config(offered), "localhost").unwrap();
        shake_hands(&mut session, &mut server, b"", 1000).unwrap();
        assert_eq!(session.protocol(), chosen);
    }
}

fn refused(server: &mut Server, config: &Config, host: &str) -> String {
    let mut session = Session::new(config, host).unwrap();
    shake_hands(&mut session, server, b"", 1000).unwrap_err().to_string()
}

#[test]
fn a_certificate_that_is_not_to_be_trusted_is_refused_with_the_way_out() {
    let mut one = server("localhost", None, &[]);
    let other = server("localhost", None, &[]);
    assert_eq!(
        refused(&mut one, &other.config(&[]), "localhost"),
        "the certificate of `localhost` is refused: its issuer is unknown; name a CA file with the issuer's certificate, or \
         turn verification off"
    );
    let mut named = server("elsewhere", None, &[]);
    let config = named.config(&[]);
    let said = refused(&mut named, &config, "localhost");
    assert!(said.starts_with("the certificate of `localhost` is refused: it is for another name ("), "{said}");
    let mut old = server("localhost", Some(2001), &[]);
    let config = old.config(&[]);
    let said = refused(&mut old, &config, "localhost");
    assert!(said.contains("it has expired (") && said.ends_with("look at this machine's clock"), "{said}");
}

#[test]
fn anyone_is_trusted_where_that_is_asked_for() {
    let config = Config::new(Trust::Anyone, &[]).unwrap();
    assert_eq!(config.trust(), &Trust::Anyone);
    let mut server = server("elsewhere", Some(2001), &[]);
    let mut session = Session::new(&config, "[::1]").unwrap();
    assert_eq!(shake_hands(&mut session, &mut server, b"hello", 1000).unwrap(), b"hello");
}

#[test]
fn a_server_without_tls_is_recognised() {
    let server = server("localhost", None, &[]);
    let mut session = Session::new(&server.config(&[]), "localhost").unwrap();
    let error = session.feed(b"HTTP/1.1 400 Bad Request\r\n\r\n", &mut Vec::new()).unwrap_err();
    assert!(error.to_string().ends_with("does the server speak plain http there?"), "{error}");
}

#[test]
fn a_file_without_certificates_and_a_host_without_a_name_are_refused() {
    let error = |trust| Config::new(trust, &[]).unwrap_err().to_string();
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_owned();
    let expected =
        format!("`{}` holds no usable certificate: it must be a PEM file with `BEGIN CERTIFICATE`", path.display());
    assert_eq!(error(Trust::SystemAnd(path)), expected);
    assert_eq!(error(Trust::SystemAnd("/nowhere/ca.pem".into())), "can't read the certificates in `/nowhere/ca.pem`");
    let config = Config::new(Trust::Anyone, &[]).unwrap();
    assert!(matches!(Session::new(&config, "a b"), Err(SetUpTlsError::ServerName { .. })));
}
