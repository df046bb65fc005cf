//! Whom to trust, which name to ask for, what is offered, what of earlier connections is used again.

use std::sync::Arc;

use dnslab_settings::{Load, Records, TlsVersions};
use dnslab_transport::provider;
use dnslab_wire::TlsGroup;
use rustls::client::Resumption;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::ring;
use rustls::{ClientConfig, SupportedProtocolVersion, version};
use rustls_pki_types::{CertificateDer, ServerName};

use super::alpn;
use super::error::TlsSettingsError;
use super::fault::FaultWatch;
use super::verification::{self, Verification};

/// TLS as a load uses it.
#[derive(Clone, Debug)]
pub struct TlsSettings {
    records: Records,
    pub(crate) server_name: ServerName<'static>,
    /// `None` if certificates are not verified.
    trusted: Option<Vec<CertificateDer<'static>>>,
    verifier: Arc<dyn ServerCertVerifier>,
    versions: TlsVersions,
    resumption: bool,
    early_data: bool,
    groups: Vec<TlsGroup>,
}

impl TlsSettings {
    /// Sends `server_name` as SNI if it is a host name, and verifies the certificate against it. The rest is that of
    /// [`Load::default`].
    ///
    /// # Errors
    /// When the authority cannot be read or the name cannot be in a certificate.
    pub fn new(server_name: &str, verification: &Verification) -> Result<Self, TlsSettingsError> {
        let name = ServerName::try_from(server_name.to_owned())
            .map_err(|_| TlsSettingsError::Name(server_name.to_owned()))?;
        let trusted = verification::trusted(verification)?;
        let verifier =
            verification::verifier(trusted.as_deref(), Arc::new(ring::default_provider()));
        let verifier = verifier.map_err(|source| match verification {
            Verification::Authority(path) => {
                TlsSettingsError::Unusable { path: path.clone(), source }
            }
            Verification::Certificates(_) | Verification::Off => source.into(),
        })?;
        let Load { tls_versions, resumption, early_data, tls_records, tls_groups, .. } =
            Load::default();
        Ok(Self {
            records: tls_records,
            server_name: name,
            trusted,
            verifier,
            versions: tls_versions,
            resumption,
            early_data,
            groups: tls_groups,
        })
    }

    /// TLS as this load wants it: versions (QUIC always has TLS 1.3, RFC 9001, section 4.2), groups, tickets of earlier
    /// connections, each client its own (RFC 5077; RFC 8446, section 2.2), early data where a ticket allows it (RFC 8446,
    /// section 2.3), and queries for each record.
    #[must_use]
    pub fn of_load(self, load: &Load) -> Self {
        Self {
            versions: load.tls_versions,
            resumption: load.resumption,
            early_data: load.early_data,
            records: load.tls_records,
            groups: load.tls_groups.clone(),
            ..self
        }
    }

    /// Settings that record why a certificate was not accepted, and where they do so.
    #[must_use]
    pub fn watched(&self) -> (Self, Arc<FaultWatch>) {
        let watch = Arc::new(FaultWatch::new(Arc::clone(&self.verifier)));
        (Self { verifier: Arc::clone(&watch) as _, ..self.clone() }, watch)
    }

    /// The name that certificates must have, and that is sent as SNI if it is a host name.
    #[must_use]
    pub fn server_name(&self) -> String {
        self.server_name.to_str().into_owned()
    }

    /// What certificates are verified against; `None` if they are not verified.
    #[must_use]
    pub fn trusted(&self) -> Option<&[CertificateDer<'static>]> {
        self.trusted.as_deref()
    }

    /// The key exchange groups offered.
    #[must_use]
    pub fn groups(&self) -> &[TlsGroup] {
        &self.groups
    }

    /// How queries over TLS are put into its records.
    #[must_use]
    pub fn records(&self) -> Records {
        self.records
    }

    /// The versions offered.
    #[must_use]
    pub fn versions(&self) -> TlsVersions {
        self.versions
    }

    /// True if tickets are used.
    #[must_use]
    pub fn resumption(&self) -> bool {
        self.resumption
    }

    /// True if early data is sent where a ticket allows it.
    #[must_use]
    pub fn early_data(&self) -> bool {
        self.early_data
    }

    /// For connections that speak `protocol`.
    pub(crate) fn config(&self, protocol: &[u8], tickets: Resumption) -> ClientConfig {
        let mut config = ClientConfig::builder_with_provider(Arc::new(provider(&self.groups)))
            .with_protocol_versions(offered(self.versions, protocol))
            .expect("each version has cipher suites in the provider")
            .dangerous()
            .with_custom_certificate_verifier(Arc::clone(&self.verifier))
            .with_no_client_auth();
        config.alpn_protocols = vec![protocol.to_vec()];
        config.resumption = if self.resumption { tickets } else { Resumption::disabled() };
        config.enable_early_data = self.early_data && self.resumption;
        config
    }
}

/// The names of versions that `Tls::version` has in a record.
pub fn offered_names(versions: TlsVersions) -> impl Iterator<Item = &'static str> {
    let (v12, v13) = match versions {
        TlsVersions::V12 => (true, false),
        TlsVersions::V13 => (false, true),
        TlsVersions::Both => (true, true),
    };
    v12.then_some("TLSv1.2").into_iter().chain(v13.then_some("TLSv1.3"))
}

/// The versions to offer a server that is to speak `protocol`.
fn offered(versions: TlsVersions, protocol: &[u8]) -> &'static [&'static SupportedProtocolVersion] {
    static V12: [&SupportedProtocolVersion; 1] = [&version::TLS12];
    static V13: [&SupportedProtocolVersion; 1] = [&version::TLS13];
    match versions {
        _ if [alpn::DOQ, alpn::DOH3].contains(&protocol) => &V13,
        TlsVersions::V12 => &V12,
        TlsVersions::V13 => &V13,
        TlsVersions::Both => rustls::DEFAULT_VERSIONS,
    }
}
