//! Whom to trust.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::{DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use super::TlsSettingsError;

/// Whether and against what the server's certificate is verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verification {
    /// Against the authorities in this PEM file.
    Authority(PathBuf),
    /// Not at all; every record then carries a caveat.
    Off,
}

/// # Errors
/// When the authorities cannot be read or used.
pub(super) fn verifier(
    verification: &Verification,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, TlsSettingsError> {
    let provider = Arc::clone(provider);
    let path = match verification {
        Verification::Off => return Ok(Arc::new(AcceptAny { provider })),
        Verification::Authority(path) => path,
    };
    let roots = Arc::new(authorities(path)?);
    match WebPkiServerVerifier::builder_with_provider(roots, provider).build() {
        Ok(verifier) => Ok(verifier),
        Err(error) => {
            let source = rustls::Error::General(error.to_string());
            Err(TlsSettingsError::Unusable { path: path.clone(), source })
        }
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

/// Accepts every certificate, but still checks that the server holds its key. So the handshake costs what it
/// costs with verification, less the chain.
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
