//! TLS settings of a load: whom to trust, which name to ask for.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

/// Whether and against what the server's certificate is verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verification {
    /// Against the authorities in this PEM file.
    Authority(PathBuf),
    /// Not at all; every record then carries a caveat.
    Off,
}

/// How queries are put into TLS records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Records {
    /// All queries of a batch in one record, as large as records get.
    #[default]
    PerBatch,
    /// A record of its own for each query, for servers that read only the first query of a record
    /// until more data comes (NSD 4.6).
    PerQuery,
}

/// TLS as a load uses it.
#[derive(Clone, Debug)]
pub struct TlsSettings {
    pub(crate) records: Records,
    pub(crate) config: ClientConfig,
    pub(crate) server_name: ServerName<'static>,
    pub(crate) verified: bool,
}

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

impl TlsSettings {
    /// Settings for DNS over TLS (RFC 7858): TLS 1.2 and 1.3, ALPN `dot` (RFC 7858 as registered
    /// by IANA), `server_name` sent as SNI if it is a host name, and verified against.
    ///
    /// # Errors
    /// When the authority cannot be read or the name cannot be in a certificate.
    pub fn new(server_name: &str, verification: &Verification) -> Result<Self, TlsSettingsError> {
        let name = ServerName::try_from(server_name.to_owned())
            .map_err(|_| TlsSettingsError::Name(server_name.to_owned()))?;
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()?;
        let mut config = match verification {
            Verification::Authority(path) => {
                builder.with_root_certificates(authorities(path)?).with_no_client_auth()
            }
            Verification::Off => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(AcceptAny { provider }))
                .with_no_client_auth(),
        };
        config.alpn_protocols = vec![b"dot".to_vec()];
        let verified = matches!(verification, Verification::Authority(_));
        Ok(Self { records: Records::default(), config, server_name: name, verified })
    }

    /// The same with queries put into records in this way.
    #[must_use]
    pub fn with_records(mut self, records: Records) -> Self {
        self.records = records;
        self
    }
}

fn authorities(path: &Path) -> Result<RootCertStore, TlsSettingsError> {
    let error = |source| TlsSettingsError::Authority { path: path.to_owned(), source };
    let mut store = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(error)? {
        store
            .add(certificate.map_err(error)?)
            .map_err(|source| TlsSettingsError::Unusable { path: path.to_owned(), source })?;
    }
    if store.is_empty() {
        return Err(TlsSettingsError::NoCertificate(path.to_owned()));
    }
    Ok(store)
}

/// Accepts every certificate, but still checks that the server holds its key: the handshake costs
/// what it costs with verification, less the chain.
#[derive(Debug)]
struct AcceptAny {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AcceptAny {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
