//! A certificate for this machine, of an authority that nobody knows, and speaking TLS with it.

use std::fs;
use std::io::{self, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::answer::{PATIENCE, Stream};

/// A certificate for `127.0.0.1` and `localhost`, with its key and its authority.
#[derive(Debug, Clone)]
pub struct TestCertificate {
    authority: String,
    certificate: String,
    key: String,
    config: Arc<ServerConfig>,
}

impl TestCertificate {
    /// Makes one.
    ///
    /// # Panics
    /// Panics if this machine has no random numbers.
    pub fn make() -> Self {
        Self::try_make().expect("the names are names, and keys can be made")
    }

    fn try_make() -> Result<Self, Box<dyn std::error::Error>> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "authority of a test");
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        let key = KeyPair::generate()?;
        let params = CertificateParams::new(vec!["127.0.0.1".to_owned(), "localhost".to_owned()])?;
        let certificate = params.signed_by(&key, &issuer)?;
        let private = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], private)?;
        let (authority, certificate, key) = (issuer.pem(), certificate.pem(), key.serialize_pem());
        Ok(Self { authority, certificate, key, config: Arc::new(config) })
    }

    /// Returns the authority's own certificate, as PEM.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// Writes certificate and key into a folder, and returns where.
    pub(super) fn write(&self, folder: &Path) -> io::Result<[PathBuf; 2]> {
        let places = ["certificate.pem", "key.pem"].map(|name| folder.join(name));
        for (place, text) in places.iter().zip([&self.certificate, &self.key]) {
            fs::write(place, text)?;
        }
        Ok(places)
    }

    /// Speaks TLS with whoever connected, and serves what is said then.
    pub(super) fn serve(
        &self,
        stream: TcpStream,
        serve: impl FnOnce(&mut dyn Stream) -> io::Result<()>,
    ) -> io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let connection = ServerConnection::new(Arc::clone(&self.config)).map_err(io::Error::other)?;
        let mut stream = StreamOwned::new(connection, stream);
        serve(&mut stream)?;
        stream.conn.send_close_notify();
        stream.flush()
    }
}
