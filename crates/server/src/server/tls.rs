//! TLS by certificate files.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use super::ServeError;
use crate::client::fingerprint;

/// A certificate and its key, as PEM.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The certificate, followed by its issuers.
    pub certificate: PathBuf,
    /// Private key of the certificate.
    pub key: PathBuf,
}

pub(super) struct Tls {
    pub(super) acceptor: TlsAcceptor,
    pub(super) fingerprint: String,
}

impl TlsFiles {
    pub(super) fn read(&self) -> Result<Tls, ServeError> {
        let certificates = CertificateDer::pem_file_iter(&self.certificate)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| problem(&self.certificate, error))?;
        let Some(first) = certificates.first() else {
            return Err(problem(&self.certificate, "no certificate found"));
        };
        let fingerprint = fingerprint(first);
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(|error| problem(&self.key, error))?;
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|config| config.with_no_client_auth().with_single_cert(certificates, key))
            .map_err(|error| problem(&self.key, error))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Tls { acceptor: TlsAcceptor::from(Arc::new(config)), fingerprint })
    }
}

fn problem(file: &Path, problem: impl Display) -> ServeError {
    ServeError::Tls { file: file.to_owned(), problem: problem.to_string() }
}
