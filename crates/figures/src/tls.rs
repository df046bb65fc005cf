//! What TLS agreed on.

use serde::{Deserialize, Serialize};

/// What TLS agreed on (RFC 8446; RFC 7858 for DNS).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tls {
    /// `TLSv1.2` or `TLSv1.3`.
    pub version: String,
    /// Cipher suite.
    pub cipher_suite: String,
    /// Whether the certificate was verified.
    pub verified: bool,
    /// Key exchange group, in the words of IANA; empty in records that do not have it.
    #[serde(default)]
    pub group: String,
    /// What the server showed; `None` in records that do not have it, and where it could not be read.
    #[serde(default)]
    pub certificate: Option<CertificateFacts>,
}

/// The certificate that a server showed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CertificateFacts {
    /// Kind of its key: `ECDSA P-256`, `RSA`, `Ed25519`; else the number of the algorithm.
    pub key: String,
    /// Length of its key, bits; 0 when unknown.
    pub key_bits: u32,
    /// How its issuer signed it: `ECDSA with SHA-256`, `RSA with SHA-256`; else the number of the
    /// algorithm.
    pub signature: String,
    /// Certificates that the server sent, its own among them.
    pub sent: u32,
    /// Octets of all of them.
    pub octets: u64,
}
