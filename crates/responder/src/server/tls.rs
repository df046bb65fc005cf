//! The certificate and the TLS settings of the encrypted transports (RFC 7858, RFC 8310).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use dnslab_transport::{TlsGroup, provider};
use dnslab_wire::Transport;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::server::{NoServerSessionStorage, ServerSessionMemoryCache};
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

/// What clients may use again of earlier connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Resumption {
    pub(super) tickets: bool,
    pub(super) early_data: bool,
}

struct Identity {
    /// The server's certificate and then its issuers.
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    /// For messages.
    files: CertificateFiles,
}

/// Octets that a client may send before its handshake ends; some hundred queries.
const MAX_EARLY_DATA: u32 = 16 * 1024;

/// Sessions remembered for early data; older ones are forgotten.
const SESSIONS: usize = 1 << 17;

/// Key exchange groups, in the order of OpenSSL 3.5.
const GROUPS: [TlsGroup; 4] =
    [TlsGroup::X25519MlKem768, TlsGroup::X25519, TlsGroup::Secp256r1, TlsGroup::Secp384r1];

/// The name of a transport in ALPN: RFC 7858 as registered by IANA; RFC 9113, section 3.2; RFC 9250, section
/// 4.1; RFC 9114, section 3.1. RFC 7858 itself has none, so its clients may leave it out.
fn alpn(transport: Transport) -> &'static [u8] {
    match transport {
        Transport::Udp | Transport::Tcp => b"",
        Transport::Dot => b"dot",
        Transport::Doh2 => b"h2",
        Transport::Doq => b"doq",
        Transport::Doh3 => b"h3",
    }
}

#[derive(Default)]
pub(super) struct TlsConfigs(Vec<(Transport, Arc<ServerConfig>)>);

impl TlsConfigs {
    pub(super) fn new(
        files: &CertificateFiles,
        transports: impl Iterator<Item = Transport>,
        resumption: Resumption,
    ) -> Result<Self, TlsError> {
        let identity = Identity::read(files)?;
        let config = |transport| Ok((transport, identity.config(transport, resumption)?));
        transports.map(config).collect::<Result<_, _>>().map(Self)
    }

    /// `None` if the transport is not encrypted, or not served.
    pub(super) fn of(&self, transport: Transport) -> Option<Arc<ServerConfig>> {
        let found = self.0.iter().find(|(its, _)| *its == transport);
        found.map(|(_, config)| Arc::clone(config))
    }
}

impl Identity {
    fn read(files: &CertificateFiles) -> Result<Self, TlsError> {
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
        let key =
            PrivateKeyDer::from_pem_file(&files.key).map_err(pem("private key", &files.key))?;
        Ok(Self { chain, key, files: files.clone() })
    }

    /// The settings that all connections of a transport share: TLS 1.2 and 1.3, or 1.3 alone for QUIC (RFC
    /// 9001, section 4.2), and resumption (RFC 5077; RFC 8446, section 2.2).
    fn config(
        &self,
        transport: Transport,
        resumption: Resumption,
    ) -> Result<Arc<ServerConfig>, TlsError> {
        let unusable = |source| TlsError::Unusable {
            chain: self.files.chain.clone(),
            key: self.files.key.clone(),
            source,
        };
        let versions =
            if transport.is_quic() { &[&rustls::version::TLS13] } else { rustls::ALL_VERSIONS };
        let mut config = ServerConfig::builder_with_provider(Arc::new(provider(&GROUPS)))
            .with_protocol_versions(versions)
            .map_err(unusable)?
            .with_no_client_auth()
            .with_single_cert(self.chain.clone(), self.key.clone_key())
            .map_err(unusable)?;
        config.alpn_protocols = vec![alpn(transport).to_vec()];
        match resumption {
            Resumption { tickets: false, .. } => {
                config.session_storage = Arc::new(NoServerSessionStorage {});
                config.send_tls13_tickets = 0;
            }
            Resumption { early_data: false, .. } => {
                config.ticketer = ring::Ticketer::new().map_err(unusable)?;
            }
            // `rustls` takes early data only of sessions that it remembers itself, because it can use only
            // those once (RFC 8446, section 8.1).
            Resumption { early_data: true, .. } => {
                config.session_storage = ServerSessionMemoryCache::new(SESSIONS);
                // QUIC has no limit of its own here (RFC 9001, section 4.6.1).
                let is_quic = transport.is_quic();
                config.max_early_data_size = if is_quic { u32::MAX } else { MAX_EARLY_DATA };
                // Answers to early data need not wait for the end of the handshake.
                config.send_half_rtt_data = true;
            }
        }
        Ok(Arc::new(config))
    }
}
