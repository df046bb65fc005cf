//! Why a server's certificate was not accepted, so that whoever asked can say what to do about it.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dnslab_wire::units::duration;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring;
use rustls::{CertificateError, DigitallySignedStruct, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use super::certificate;
use super::verification::Trusting;

/// What is wrong with a server's certificate (RFC 5280, section 6; RFC 9525 for names).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertificateFault {
    /// It signed itself and is not one of the authorities.
    SelfSigned {
        /// True if it would be accepted as its own authority. The one that BIND makes for itself (X.509 v1) is
        /// not.
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
        /// The name or address that was asked for.
        asked: String,
        /// It is an address.
        is_address: bool,
        /// The names and addresses that it is for; empty if it has none (subjectAltName; the common name is not
        /// looked at: RFC 9525, section 2).
        names: Vec<String>,
        /// It has the address that was asked for, but written as a DNS name.
        has_address_as_name: bool,
        /// A name with which it is accepted, if there is one that can be given.
        would_do: Option<String>,
    },
    /// Another fault, in the words of the TLS library.
    Other(String),
}

/// What a server presents, to whoever asks for a name.
#[derive(Clone, Copy)]
struct Presented<'a> {
    own: &'a CertificateDer<'a>,
    others: &'a [CertificateDer<'a>],
    name: &'a ServerName<'a>,
    now: UnixTime,
}

impl Presented<'_> {
    fn verify(&self, verifier: &dyn ServerCertVerifier) -> Result<(), rustls::Error> {
        let Self { own, others, name, now } = *self;
        verifier.verify_server_cert(own, others, name, &[], now).map(drop)
    }

    /// True if the certificate is accepted as its own authority, apart from its names.
    fn is_accepted_by_itself(&self) -> bool {
        let provider = Arc::new(ring::default_provider());
        let Ok(verifier) = Trusting::new(vec![self.own.clone().into_owned()], provider) else {
            return false;
        };
        match self.verify(&verifier) {
            Ok(()) => true,
            Err(rustls::Error::InvalidCertificate(error)) => matches!(
                error,
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }
            ),
            Err(_) => false,
        }
    }
}

fn between(from: UnixTime, to: UnixTime) -> Duration {
    Duration::from_secs(to.as_secs().saturating_sub(from.as_secs()))
}

impl CertificateFault {
    fn of(error: &CertificateError, presented: Presented<'_>) -> Self {
        use CertificateError as E;
        let own = presented.own;
        match error {
            E::ExpiredContext { time, not_after } => Self::Expired(between(*not_after, *time)),
            E::NotValidYetContext { time, not_before } => {
                Self::NotYetValid(between(*time, *not_before))
            }
            E::NotValidForNameContext { expected, presented } => {
                let asked = expected.to_str().into_owned();
                let is_address = matches!(expected, ServerName::IpAddress(_));
                let as_name = format!("DnsName(\"{asked}\")");
                Self::WrongName {
                    is_address,
                    has_address_as_name: is_address && presented.contains(&as_name),
                    names: presented.iter().map(|name| plain_name(name)).collect(),
                    would_do: None,
                    asked,
                }
            }
            _ if certificate::is_self_issued(own) => {
                Self::SelfSigned { would_do_as_authority: presented.is_accepted_by_itself() }
            }
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

/// A name to give in the place of one in a certificate. `*.example.test` stands for all names one label longer. Addresses
/// of IPv6 cannot be given as a name.
fn name_to_give(name: &str) -> Option<String> {
    let name = match name.strip_prefix("*.") {
        Some(rest) => format!("any.{rest}"),
        None => name.to_owned(),
    };
    (!name.contains([':', '*', '(', ')', '"'])).then_some(name)
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
            Self::WrongName { names, .. } if names.is_empty() => formatter.write_str(
                "has a certificate without a subjectAltName; its common name is not looked at",
            ),
            Self::WrongName { asked, has_address_as_name: true, .. } => write!(
                formatter,
                "has a certificate for the DNS name {asked}, not for the address {asked}"
            ),
            Self::WrongName { asked, names, .. } => {
                write!(formatter, "has a certificate for {}, not for {asked}", names.join(", "))
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

    fn accepts(&self, presented: Presented<'_>) -> bool {
        presented.verify(&*self.inner).is_ok()
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
            let mut fault = match error {
                rustls::Error::InvalidCertificate(error) => {
                    CertificateFault::of(error, Presented { own, others, name, now })
                }
                other => CertificateFault::Other(other.to_string()),
            };
            if let CertificateFault::WrongName { names, would_do, .. } = &mut fault {
                let mut given = names.iter().filter_map(|name| name_to_give(name));
                *would_do = given.find(|given| {
                    let name = ServerName::try_from(given.as_str());
                    name.is_ok_and(|name| self.accepts(Presented { own, others, name: &name, now }))
                });
            }
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
    use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, SanType};
    use rustls_pki_types::pem::PemObject as _;

    use super::super::verification::{Verification, trusted, verifier};
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
        let given = trusted(&Verification::Authority(path)).unwrap();
        let inner = verifier(given.as_deref(), Arc::new(ring::default_provider()));
        let watch = FaultWatch::new(inner.unwrap());
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let now = UnixTime::now();
        let own = CertificateDer::from_pem_slice(own.pem().as_bytes()).unwrap();
        watch.verify_server_cert(&own, &[], &name, &[], now).ok();
        watch.fault().map_or_else(|| "accepted".to_owned(), |fault| format!("{fault} ({fault:?})"))
    }

    #[track_caller]
    fn check(found: String, expected: &[&str]) {
        for part in expected {
            assert!(found.contains(part), "`{part}` is not in: {found}");
        }
    }

    fn named(names: &'static [&str]) -> impl FnOnce(&mut CertificateParams) {
        let names = names.iter().map(|name| SanType::DnsName((*name).try_into().unwrap()));
        move |params| params.subject_alt_names = names.collect()
    }

    #[test]
    fn faults_are_told_apart() {
        check(words(|_| {}, true, "ns.example"), &["accepted"]);
        check(
            words(|_| {}, true, "other.example"),
            &[
                "has a certificate for ns.example, not for other.example",
                "would_do: Some(\"ns.example\")",
            ],
        );
        check(
            words(named(&["192.0.2.7"]), true, "192.0.2.7"),
            &["for the DNS name 192.0.2.7, not for the address 192.0.2.7", "would_do: None"],
        );
        check(
            words(named(&["*.example", "*.a.example"]), true, "192.0.2.7"),
            // No certificate is for all names below a top-level domain.
            &["for *.example, *.a.example, not", "would_do: Some(\"any.a.example\")"],
        );
        check(
            words(named(&[]), true, "ns.example"),
            &["without a subjectAltName; its common name is not looked at", "would_do: None"],
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
            &["has a self-signed certificate", "would_do_as_authority: true"],
        );
    }

    /// A certificate of an authority.
    fn made(key: &KeyPair, change: fn(&mut CertificateParams)) -> CertificateDer<'static> {
        let made = params(|params| {
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            params.distinguished_name.push(DnType::CommonName, "x");
            change(params);
        });
        made.self_signed(key).unwrap().der().clone()
    }

    /// The fault of what a server sent, in words, for a client that was given one certificate; empty without one.
    fn fault(given: &CertificateDer<'static>, sent: &CertificateDer<'_>, name: &str) -> String {
        let provider = Arc::new(ring::default_provider());
        let trusting = Trusting::new(vec![given.clone()], provider).unwrap();
        let watch = FaultWatch::new(Arc::new(trusting));
        let name = ServerName::try_from(name).unwrap();
        let verified = watch.verify_server_cert(sent, &[], &name, &[], UnixTime::now());
        verified.err().map(|_| watch.fault().unwrap().to_string()).unwrap_or_default()
    }

    /// Whoever gives exactly the server's certificate as the authority means that server, also where the certificate
    /// is one of an authority. Its time and its names still count.
    #[test]
    fn a_certificate_of_an_authority_is_taken_if_it_is_given() {
        let key = KeyPair::generate().unwrap();
        let own = made(&key, |_| {});
        assert_eq!(fault(&own, &own, "ns.example"), "");
        let wrong = fault(&own, &own, "other.example");
        assert!(wrong.contains("for ns.example, not for other.example"), "{wrong}");
        let expired = made(&key, |params| params.not_after = rcgen::date_time_ymd(2020, 1, 1));
        let found = fault(&expired, &expired, "ns.example");
        assert!(found.contains("expired"), "{found}");
        // Another one of the same name and key is not the one that was given.
        let other = made(&key, |params| params.serial_number = Some(7.into()));
        let found = fault(&own, &other, "ns.example");
        assert_eq!(found, "has a self-signed certificate");
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
        let presented =
            Presented { own: own.der(), others: &[], name: &name, now: UnixTime::now() };
        let fault = CertificateFault::of(&error, presented);
        assert_eq!(
            fault.to_string(),
            "has a certificate of the authority `Somebody`, which is not trusted"
        );
    }
}
