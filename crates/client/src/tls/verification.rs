//! Whom to trust.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use super::error::TlsSettingsError;

/// Whether and against what the server's certificate is verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verification {
    /// Against the authorities in this PEM file.
    Authority(PathBuf),
    /// Against these authorities.
    Certificates(Vec<CertificateDer<'static>>),
    /// Not at all; every record then carries a caveat.
    Off,
}

/// What certificates are verified against; `None` if they are not verified.
///
/// # Errors
/// When the authorities cannot be read, or there are none.
pub(super) fn trusted(
    verification: &Verification,
) -> Result<Option<Vec<CertificateDer<'static>>>, TlsSettingsError> {
    match verification {
        Verification::Off => Ok(None),
        Verification::Authority(path) => certificates(path).map(Some),
        Verification::Certificates(none) if none.is_empty() => Err(TlsSettingsError::NoAuthority),
        Verification::Certificates(certificates) => Ok(Some(certificates.clone())),
    }
}

/// Verifies against these authorities, or accepts every certificate.
///
/// # Errors
/// When one of the authorities cannot be used.
pub(super) fn verifier(
    trusted: Option<&[CertificateDer<'static>]>,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, rustls::Error> {
    match trusted {
        None => Ok(Arc::new(AcceptAny { provider })),
        Some(trusted) => Ok(Arc::new(Trusting::new(trusted.to_vec(), provider)?)),
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsSettingsError> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let certificates =
        read.map_err(|source| TlsSettingsError::Authority { path: path.to_owned(), source })?;
    if certificates.is_empty() {
        return Err(TlsSettingsError::NoCertificate(path.to_owned()));
    }
    Ok(certificates)
}

/// Accepts what one of these certificates has signed, and these themselves. A certificate that `openssl req -x509`
/// makes is one of an authority, which no server may have (RFC 5280, section 4.2.1.9). But whoever gives exactly that
/// one means this server, as OpenSSL and `dig +tls-ca` take it too.
#[derive(Debug)]
pub(super) struct Trusting {
    authorities: Arc<WebPkiServerVerifier>,
    trusted: Vec<CertificateDer<'static>>,
}

impl Trusting {
    /// # Errors
    /// When one of the certificates cannot be read.
    pub(super) fn new(
        trusted: Vec<CertificateDer<'static>>,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, rustls::Error> {
        let mut roots = RootCertStore::empty();
        for certificate in &trusted {
            roots.add(certificate.clone())?;
        }
        let built = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
        let authorities = built.map_err(|error| rustls::Error::General(error.to_string()))?;
        Ok(Self { authorities, trusted })
    }
}

impl ServerCertVerifier for Trusting {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verified = self.authorities.verify_server_cert(own, others, name, ocsp, now);
        match &verified {
            // Its time is right: that is looked at before this.
            Err(rustls::Error::InvalidCertificate(error))
                if is_authority(error) && self.trusted.iter().any(|trusted| trusted == own) =>
            {
                verify_server_name(&ParsedCertificate::try_from(own)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            _ => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.authorities.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.authorities.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities.supported_verify_schemes()
    }
}

/// True if the fault is that the certificate is one of an authority. rustls passes on the name that webpki has for it.
fn is_authority(error: &CertificateError) -> bool {
    matches!(error, CertificateError::Other(other) if other.0.to_string() == "CaUsedAsEndEntity")
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
