//! A certificate of our own.

use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// Why TLS couldn't be set up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SetUpTlsError {
    #[error("cannot make a certificate")]
    Make(#[from] rcgen::Error),
    #[error("cannot use the certificate")]
    Use(#[from] rustls::Error),
    #[error("cannot write the certificate to `{path}`")]
    Write {
        path: String,
        #[source]
        source: std::io::Error,
    },
}

/// Makes a certificate for this machine, writes it to `cert_out` as PEM, and returns what speaks TLS with it.
pub(crate) fn set_up(cert_out: Option<&Path>, http2: bool) -> Result<Arc<ServerConfig>, SetUpTlsError> {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()])?;
    if let Some(path) = cert_out {
        std::fs::write(path, certified.cert.pem())
            .map_err(|source| SetUpTlsError::Write { path: path.display().to_string(), source })?;
    }
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der()));
    let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    if http2 {
        config.alpn_protocols.insert(0, b"h2".to_vec());
    }
    Ok(Arc::new(config))
}
