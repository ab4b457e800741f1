//! Which certificates blocking HTTPS connections trust, and what they encrypt with: the same for registries and hubs.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};

/// Returns how connections are encrypted, with the certificates that this machine trusts and those that are given, and how many
/// these are.
pub(crate) fn tls(also: &[CertificateDer<'static>]) -> (TlsConfig, usize) {
    let mut found = rustls_native_certs::load_native_certs().certs;
    found.extend(also.iter().cloned());
    let certificates = found.iter().map(|certificate| Certificate::from_der(certificate).to_owned()).collect();
    let tls = TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .root_certs(RootCerts::Specific(Arc::new(certificates)))
        .build();
    (tls, found.len())
}
