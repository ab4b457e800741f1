//! TLS without sockets: ciphertext goes in and plain bytes come out, and the other way round.
//!
//! Whose certificates are trusted is a choice that is kept with the session's [`Config`], so that a record can say it.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme};

/// Whose certificates are trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    /// Those of the authorities that the system knows.
    System,
    /// Those of the system's authorities, and of the ones in this PEM file.
    SystemAnd(PathBuf),
    /// Any: the server may be anybody.
    Anyone,
}

/// What the client speaks inside of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2.
    Http2,
}

impl Protocol {
    /// Returns the name that the handshake has for it (RFC 7301).
    fn name(self) -> &'static [u8] {
        match self {
            Self::Http1 => b"http/1.1",
            Self::Http2 => b"h2",
        }
    }
}

/// Why TLS can't be set up.
#[derive(Debug, thiserror::Error)]
pub enum SetUpTlsError {
    /// The file of authorities can't be read.
    #[error("can't read the certificates in `{path}`")]
    CaFile {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The file of authorities holds none.
    #[error("`{path}` holds no usable certificate: it must be a PEM file with `BEGIN CERTIFICATE`")]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// The system knows no authority.
    #[error("the system has no certificates of authorities: name a CA file with the server's issuer")]
    NoRoots,
    /// The library refuses what it is asked for.
    #[error("TLS can't be set up")]
    Refused {
        /// The cause.
        #[from]
        source: rustls::Error,
    },
    /// The server's name can't stand in a certificate.
    #[error("`{host}` is no name or address that a certificate can hold")]
    ServerName {
        /// The name.
        host: String,
    },
}

/// What may be the matter where a server doesn't understand TLS.
const PLAIN: &str = ": does the server speak plain http there?";

/// What all sessions with a server share.
#[derive(Debug, Clone)]
pub struct Config {
    client: Arc<ClientConfig>,
    trust: Trust,
}

impl Config {
    /// Returns a configuration that trusts as told and offers `protocols`, the preferred one first.
    ///
    /// # Errors
    /// Returns an error if there are no authorities to trust.
    pub fn new(trust: Trust, protocols: &[Protocol]) -> Result<Self, SetUpTlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier: Arc<dyn ServerCertVerifier> = match &trust {
            Trust::System => authorities(system_roots(), &provider)?,
            Trust::SystemAnd(path) => authorities(roots_and(path)?, &provider)?,
            Trust::Anyone => Arc::new(Unverified(provider.signature_verification_algorithms)),
        };
        let mut client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        client.alpn_protocols = protocols.iter().map(|protocol| protocol.name().to_vec()).collect();
        Ok(Self { client: Arc::new(client), trust })
    }

    /// Returns whose certificates are trusted.
    pub fn trust(&self) -> &Trust {
        &self.trust
    }
}

fn authorities(
    roots: RootCertStore,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, SetUpTlsError> {
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider)).build();
    // The only things that can be wrong are revocation lists, of which there are none, and a lack of roots.
    verifier.map(|verifier| -> Arc<dyn ServerCertVerifier> { verifier }).map_err(|_no_roots| SetUpTlsError::NoRoots)
}

/// Returns the system's authorities, as far as they can be read.
fn system_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

fn roots_and(path: &Path) -> Result<RootCertStore, SetUpTlsError> {
    let none = || SetUpTlsError::NoCertificate { path: path.to_owned() };
    let pem = fs::read(path).map_err(|source| SetUpTlsError::CaFile { path: path.to_owned(), source })?;
    let certificates: Vec<CertificateDer<'static>> =
        CertificateDer::pem_slice_iter(&pem).collect::<Result<_, _>>().map_err(|_malformed| none())?;
    let mut roots = system_roots();
    let (added, _) = roots.add_parsable_certificates(certificates);
    if added == 0 { Err(none()) } else { Ok(roots) }
}

/// Takes every certificate. The handshake's signatures are checked all the same, as the protocol wants it.
#[derive(Debug)]
struct Unverified(WebPkiSupportedAlgorithms);

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

/// A session that can't go on, as a lower-case fragment that says what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    /// The server's certificate is refused.
    #[error("the certificate of `{host}` is refused: {reason}")]
    Certificate {
        /// The server.
        host: String,
        /// Why, and the way out.
        reason: String,
    },
    /// The two sides don't understand each other.
    #[error("TLS with `{host}` failed: {reason}")]
    Failed {
        /// The server.
        host: String,
        /// What the library says.
        reason: String,
    },
    /// The connection ended without TLS's own end, so that anybody may have cut it.
    #[error("the connection to `{host}` was cut within TLS")]
    Cut {
        /// The server.
        host: String,
    },
}

/// One session, as a client.
#[derive(Debug)]
pub struct Session {
    host: String,
    connection: ClientConnection,
    is_closed: bool,
}

impl Session {
    /// Returns a session with `host`, a name or an address without its port. Its first message waits in [`Self::seal`].
    ///
    /// # Errors
    /// Returns an error if `host` can't stand in a certificate.
    pub fn new(config: &Config, host: &str) -> Result<Self, SetUpTlsError> {
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let name = ServerName::try_from(bare.to_owned());
        let name = name.map_err(|_invalid| SetUpTlsError::ServerName { host: host.to_owned() })?;
        let mut connection = ClientConnection::new(Arc::clone(&config.client), name)?;
        // What is sealed before the handshake's end is kept, however long it is.
        connection.set_buffer_limit(None);
        Ok(Self { host: host.to_owned(), connection, is_closed: false })
    }

    /// Takes ciphertext and puts what it says behind `plain`. There may be an answer to it for the server: see
    /// [`Self::seal`].
    ///
    /// # Errors
    /// Returns an error if the session can't go on. What [`Self::seal`] gives then tells the server why.
    pub fn feed(&mut self, mut ciphertext: &[u8], plain: &mut Vec<u8>) -> Result<(), TlsError> {
        while !ciphertext.is_empty() && !self.is_closed {
            // Reading from memory fails only if plain bytes are left, and all are taken below.
            self.connection.read_tls(&mut ciphertext).map_err(|error| self.failed(error.to_string()))?;
            let state = self.connection.process_new_packets().map_err(|error| self.refusal(&error))?;
            self.is_closed = state.peer_has_closed();
            let from = plain.len();
            plain.resize(from + state.plaintext_bytes_to_read(), 0);
            let room = plain.get_mut(from..).unwrap_or_default();
            self.connection.reader().read_exact(room).map_err(|error| self.failed(error.to_string()))?;
        }
        Ok(())
    }

    /// Puts `plaintext`, encrypted, behind `out`, and before it whatever else the server must be told. Before the end of the
    /// handshake, `plaintext` is kept until a later call.
    pub fn seal(&mut self, plaintext: &[u8], out: &mut Vec<u8>) {
        // Neither can fail: both sides are memory without a limit.
        let _ = self.connection.writer().write_all(plaintext);
        while self.connection.wants_write() {
            let _ = self.connection.write_tls(out);
        }
    }

    /// Returns whether there is something for the server in [`Self::seal`].
    pub fn has_output(&self) -> bool {
        self.connection.wants_write()
    }

    /// Returns whether the two sides are still agreeing on keys.
    pub fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// Returns what the server chose to speak; `None` while the handshake goes on, or if it chose nothing, which means
    /// HTTP/1.1.
    pub fn protocol(&self) -> Option<Protocol> {
        let chosen = self.connection.alpn_protocol()?;
        [Protocol::Http1, Protocol::Http2].into_iter().find(|protocol| protocol.name() == chosen)
    }

    /// Returns whether the server has ended the session in order.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Takes the end of the connection.
    ///
    /// # Errors
    /// Returns an error if the server hasn't ended the session before.
    pub fn end(&self) -> Result<(), TlsError> {
        if self.is_closed {
            Ok(())
        } else if self.is_handshaking() {
            Err(self.failed(format!("the server closed the connection before TLS began{PLAIN}")))
        } else {
            Err(TlsError::Cut { host: self.host.clone() })
        }
    }

    /// Ends the session: the last thing that [`Self::seal`] gives tells the server so.
    pub fn close(&mut self) {
        self.connection.send_close_notify();
    }

    fn failed(&self, reason: String) -> TlsError {
        TlsError::Failed { host: self.host.clone(), reason }
    }

    fn refusal(&self, error: &rustls::Error) -> TlsError {
        let host = self.host.clone();
        if let rustls::Error::InvalidCertificate(why) = error {
            return TlsError::Certificate { reason: refusal(why), host };
        }
        let is_strange = matches!(error, rustls::Error::InvalidMessage(_)) && self.is_handshaking();
        let hint = if is_strange { PLAIN } else { "" };
        TlsError::Failed { host, reason: format!("{error}{hint}") }
    }
}

/// Returns why a certificate is refused, and the way out where there is one.
#[expect(clippy::wildcard_enum_match_arm, reason = "the library may add causes, and those without a way out are alike")]
fn refusal(why: &CertificateError) -> String {
    match why {
        CertificateError::UnknownIssuer => {
            "its issuer is unknown; name a CA file with the issuer's certificate, or turn verification off".to_owned()
        }
        CertificateError::BadSignature => {
            "it isn't signed by the authority of its issuer's name; name the CA file that belongs to the server"
                .to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!("it is for another name ({why}); use the name that it holds")
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            format!("it has expired ({why}); renew it, or look at this machine's clock")
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            format!("it isn't valid yet ({why}); look at this machine's clock")
        }
        other => format!("{other}; renew it, or turn verification off"),
    }
}

#[cfg(test)]
mod tests;
