//! The certificate and the TLS settings of DNS over TLS (RFC 7858, RFC 8310).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

/// Where the server's certificate is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// PEM file with the server's certificate and then its issuers.
    pub chain: PathBuf,
    /// PEM file with the private key: PKCS #8, PKCS #1 or SEC 1.
    pub key: PathBuf,
}

/// TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A PEM file cannot be read.
    #[error("cannot read {what} `{}`: {source}", path.display())]
    Pem {
        /// Certificate chain or private key.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: rustls_pki_types::pem::Error,
    },
    /// The chain file holds no certificate.
    #[error("`{}` holds no certificate: it must be PEM, with `BEGIN CERTIFICATE`", path.display())]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// Chain and key cannot be used together.
    #[error(
        "certificate `{}` and key `{}` cannot be used: {source}", chain.display(), key.display()
    )]
    Unusable {
        /// The chain's file.
        chain: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// Why.
        source: rustls::Error,
    },
}

/// The protocol name of DNS over TLS in ALPN (IANA; RFC 7858 has none, so clients may leave it
/// out).
const ALPN_DOT: &[u8] = b"dot";

/// Reads the certificate and makes the settings that all connections share: TLS 1.2 and 1.3,
/// session tickets (RFC 5077; RFC 8446, section 2.2), ALPN `dot`.
///
/// # Errors
/// When a file cannot be read, or certificate and key do not belong together.
pub(super) fn server_config(files: &CertificateFiles) -> Result<Arc<ServerConfig>, TlsError> {
    let pem = |what, path: &Path| {
        let path = path.to_owned();
        move |source| TlsError::Pem { what, path, source }
    };
    let chain: Vec<_> = CertificateDer::pem_file_iter(&files.chain)
        .and_then(Iterator::collect)
        .map_err(pem("certificate chain", &files.chain))?;
    if chain.is_empty() {
        return Err(TlsError::NoCertificate { path: files.chain.clone() });
    }
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(pem("private key", &files.key))?;
    let unusable =
        |source| TlsError::Unusable { chain: files.chain.clone(), key: files.key.clone(), source };
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(unusable)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(unusable)?;
    config.alpn_protocols = vec![ALPN_DOT.to_vec()];
    config.ticketer = ring::Ticketer::new().map_err(unusable)?;
    Ok(Arc::new(config))
}
