//! What is wrong with TLS settings.

use std::path::PathBuf;

/// The TLS settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsSettingsError {
    /// The authority file cannot be read.
    #[error("cannot read the authority {}: {source}", path.display())]
    Authority {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: rustls_pki_types::pem::Error,
    },
    /// The authority file holds no certificate.
    #[error("the authority {} holds no certificate in PEM form", .0.display())]
    NoCertificate(PathBuf),
    /// Certificates are to be verified against nothing.
    #[error("certificates cannot be verified: no authority is given")]
    NoAuthority,
    /// A certificate in it is no authority.
    #[error("the authority {} holds a certificate that cannot be used: {source}", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: rustls::Error,
    },
    /// The name is neither a host name nor an address.
    #[error("`{0}` is neither a host name nor an address that a certificate can hold")]
    Name(String),
    /// TLS itself refused its settings.
    #[error("TLS cannot be set up: {0}")]
    Provider(#[from] rustls::Error),
}
