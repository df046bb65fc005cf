//! Why a server's certificate was not accepted, so that whoever asked can say what to do about it.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dnslab_wire::units::duration;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring;
use rustls::{CertificateError, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use super::certificate;

/// What is wrong with a server's certificate (RFC 5280, section 6; RFC 9525 for names).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertificateFault {
    /// It signed itself and is not one of the authorities.
    SelfSigned {
        /// True if it would be accepted as its own authority. The certificate of an authority is not
        /// (`openssl req -x509` makes one), nor is the one that BIND makes for itself (X.509 v1).
        would_do_as_authority: bool,
    },
    /// None of the authorities signed it.
    UnknownAuthority {
        /// The signer's common name or organisation; empty if it has neither.
        issuer: String,
    },
    /// It expired so long ago.
    Expired(Duration),
    /// It becomes valid after this time.
    NotYetValid(Duration),
    /// It is for other names.
    WrongName {
        /// The name that was asked for.
        asked: String,
        /// The names that it is for; empty if it has none.
        names: Vec<String>,
    },
    /// Another fault, in the words of the TLS library.
    Other(String),
}

impl CertificateFault {
    fn of(
        error: &CertificateError,
        (own, others): (&CertificateDer<'_>, &[CertificateDer<'_>]),
        (name, now): (&ServerName<'_>, UnixTime),
    ) -> Self {
        use CertificateError as E;
        let between = |from: UnixTime, to: UnixTime| {
            Duration::from_secs(to.as_secs().saturating_sub(from.as_secs()))
        };
        match error {
            E::ExpiredContext { time, not_after } => Self::Expired(between(*not_after, *time)),
            E::NotValidYetContext { time, not_before } => {
                Self::NotYetValid(between(*time, *not_before))
            }
            E::NotValidForNameContext { expected, presented } => {
                let names = presented.iter().map(|name| plain_name(name)).collect();
                Self::WrongName { asked: expected.to_str().into_owned(), names }
            }
            _ if certificate::is_self_issued(own) => Self::SelfSigned {
                would_do_as_authority: is_accepted_by_itself((own, others), (name, now)),
            },
            // With a wrong signature there is an authority of this name, but it is another one.
            E::UnknownIssuer | E::BadSignature => {
                Self::UnknownAuthority { issuer: certificate::issuer_name(own).unwrap_or_default() }
            }
            other => Self::Other(other.to_string()),
        }
    }
}

/// A name without what rustls writes around it: `DnsName("ns.example")`.
fn plain_name(name: &str) -> String {
    let inside = name.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
    inside.unwrap_or(name).trim_matches('"').to_owned()
}

/// True if a certificate is accepted as its own authority, apart from its names.
fn is_accepted_by_itself(
    (own, others): (&CertificateDer<'_>, &[CertificateDer<'_>]),
    (name, now): (&ServerName<'_>, UnixTime),
) -> bool {
    let mut roots = RootCertStore::empty();
    if roots.add(own.clone().into_owned()).is_err() {
        return false;
    }
    let provider = Arc::new(ring::default_provider());
    let Ok(verifier) =
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build()
    else {
        return false;
    };
    match verifier.verify_server_cert(own, others, name, &[], now) {
        Ok(_) => true,
        Err(rustls::Error::InvalidCertificate(error)) => matches!(
            error,
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }
        ),
        Err(_) => false,
    }
}

impl fmt::Display for CertificateFault {
    /// The end of a sentence that begins with the server.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SelfSigned { .. } => formatter.write_str("has a self-signed certificate"),
            Self::UnknownAuthority { issuer } if issuer.is_empty() => {
                formatter.write_str("has a certificate of an authority that is not trusted")
            }
            Self::UnknownAuthority { issuer } => {
                write!(
                    formatter,
                    "has a certificate of the authority `{issuer}`, which is not trusted"
                )
            }
            Self::Expired(since) => {
                write!(
                    formatter,
                    "has a certificate that expired {} ago",
                    duration::in_words(*since)
                )
            }
            Self::NotYetValid(until) => {
                write!(
                    formatter,
                    "has a certificate that is not valid before {} from now",
                    duration::in_words(*until)
                )
            }
            Self::WrongName { asked, names } => {
                let names = match names.as_slice() {
                    [] => "no name".to_owned(),
                    names => names.join(", "),
                };
                write!(formatter, "has a certificate for {names}, not for {asked}")
            }
            Self::Other(reason) => {
                write!(formatter, "has a certificate that was not accepted: {reason}")
            }
        }
    }
}

/// A verifier that keeps the fault: a handshake over QUIC leaves only an alert.
#[derive(Debug)]
pub struct FaultWatch {
    inner: Arc<dyn ServerCertVerifier>,
    fault: Mutex<Option<CertificateFault>>,
}

impl FaultWatch {
    pub(super) fn new(inner: Arc<dyn ServerCertVerifier>) -> Self {
        Self { inner, fault: Mutex::new(None) }
    }

    /// The fault of the last certificate that was not accepted.
    pub fn fault(&self) -> Option<CertificateFault> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ServerCertVerifier for FaultWatch {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let result = self.inner.verify_server_cert(own, others, name, ocsp, now);
        if let Err(error) = &result {
            let fault = match error {
                rustls::Error::InvalidCertificate(error) => {
                    CertificateFault::of(error, (own, others), (name, now))
                }
                other => CertificateFault::Other(other.to_string()),
            };
            *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(fault);
        }
        result
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
    use rustls_pki_types::pem::PemObject as _;

    use super::super::verification::{Verification, verifier};
    use super::*;

    /// Settings of a certificate for `ns.example`, with `change`.
    fn params(change: impl FnOnce(&mut CertificateParams)) -> CertificateParams {
        let mut params = CertificateParams::new(vec!["ns.example".to_owned()]).unwrap();
        change(&mut params);
        params
    }

    /// The fault of a server's certificate in words, for a client that trusts an authority.
    fn words(change: impl FnOnce(&mut CertificateParams), is_signed: bool, name: &str) -> String {
        let key = KeyPair::generate().unwrap();
        let authority = params(|params| {
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            params.distinguished_name.push(DnType::CommonName, "Test Authority");
        });
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("authority.pem");
        std::fs::write(&path, authority.self_signed(&key).unwrap().pem()).unwrap();
        let own_key = KeyPair::generate().unwrap();
        let own = match is_signed {
            true => params(change).signed_by(&own_key, &Issuer::new(authority, &key)).unwrap(),
            false => params(change).self_signed(&own_key).unwrap(),
        };
        let inner = verifier(&Verification::Authority(path), &Arc::new(ring::default_provider()));
        let watch = FaultWatch::new(inner.unwrap());
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let now = UnixTime::now();
        let own = CertificateDer::from_pem_slice(own.pem().as_bytes()).unwrap();
        watch.verify_server_cert(&own, &[], &name, &[], now).ok();
        watch.fault().map_or_else(|| "accepted".to_owned(), |fault| format!("{fault} ({fault:?})"))
    }

    #[test]
    fn faults_are_told_apart() {
        let check = |found: String, expected: &[&str]| {
            for part in expected {
                assert!(found.contains(part), "`{part}` is not in: {found}");
            }
        };
        check(words(|_| {}, true, "ns.example"), &["accepted"]);
        check(
            words(|_| {}, true, "other.example"),
            &["has a certificate for ns.example, not for other.example"],
        );
        check(
            words(|params| params.not_after = rcgen::date_time_ymd(2020, 1, 1), true, "ns.example"),
            &["expired ", " days ago"],
        );
        check(
            words(
                |params| params.not_before = rcgen::date_time_ymd(3000, 1, 1),
                true,
                "ns.example",
            ),
            &["not valid before ", " days from now"],
        );
        check(
            words(|_| {}, false, "ns.example"),
            &["has a self-signed certificate", "would_do_as_authority: true"],
        );
        // As `openssl req -x509` makes it.
        let authority = |params: &mut CertificateParams| {
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        };
        check(
            words(authority, false, "ns.example"),
            &["has a self-signed certificate", "would_do_as_authority: false"],
        );
    }

    #[test]
    fn an_unknown_authority_has_its_name() {
        let key = KeyPair::generate().unwrap();
        let authority = params(|params| {
            params.distinguished_name.push(DnType::CommonName, "Somebody");
        });
        let own = params(|params| params.distinguished_name.push(DnType::CommonName, "own"));
        let own_key = KeyPair::generate().unwrap();
        let own = own.signed_by(&own_key, &Issuer::new(authority, &key)).unwrap();
        let error = CertificateError::UnknownIssuer;
        let name = ServerName::try_from("ns.example").unwrap();
        let fault = CertificateFault::of(&error, (own.der(), &[]), (&name, UnixTime::now()));
        assert_eq!(
            fault.to_string(),
            "has a certificate of the authority `Somebody`, which is not trusted"
        );
    }
}
