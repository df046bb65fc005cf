//! Key exchange groups of TLS (RFC 8446, section 4.2.7), for clients and servers alike.

mod hybrid;

use std::fmt;
use std::str::FromStr;

use rustls::NamedGroup;
use rustls::crypto::ring::{default_provider, kx_group};
use rustls::crypto::{CryptoProvider, SupportedKxGroup};

/// A key exchange group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TlsGroup {
    /// X25519 (RFC 7748).
    X25519,
    /// The curve P-256.
    Secp256r1,
    /// The curve P-384.
    Secp384r1,
    /// ML-KEM-768 (FIPS 203) together with X25519 (draft-ietf-tls-ecdhe-mlkem). TLS 1.3 only.
    X25519MlKem768,
}

impl TlsGroup {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::X25519, Self::Secp256r1, Self::Secp384r1, Self::X25519MlKem768];

    /// What clients offer unless they are told otherwise, and every server of today has.
    pub const PRESET: [Self; 3] = [Self::X25519, Self::Secp256r1, Self::Secp384r1];

    /// The name in IANA's registry, in lower case.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::X25519 => "x25519",
            Self::Secp256r1 => "secp256r1",
            Self::Secp384r1 => "secp384r1",
            Self::X25519MlKem768 => "x25519mlkem768",
        }
    }

    /// The name of a group that was agreed on, in the same words; that of rustls for others.
    #[must_use]
    pub fn name_of(group: NamedGroup) -> String {
        let known = Self::ALL.into_iter().find(|known| known.exchange().name() == group);
        known.map_or_else(|| format!("{group:?}"), |known| known.name().to_owned())
    }

    /// A part of it is no elliptic curve, which needs TLS 1.3.
    #[must_use]
    pub fn is_hybrid(self) -> bool {
        self == Self::X25519MlKem768
    }

    /// Its key exchange.
    fn exchange(self) -> &'static dyn SupportedKxGroup {
        match self {
            Self::X25519 => kx_group::X25519,
            Self::Secp256r1 => kx_group::SECP256R1,
            Self::Secp384r1 => kx_group::SECP384R1,
            Self::X25519MlKem768 => &hybrid::X25519MlKem768,
        }
    }
}

/// The cryptography of rustls with these groups, the preferred one first: a client sends a key share of
/// that one alone (RFC 8446, section 4.2.8), and of X25519 too if both are offered and the hybrid is
/// first.
#[must_use]
pub fn provider(groups: &[TlsGroup]) -> CryptoProvider {
    let kx_groups = groups.iter().map(|group| group.exchange()).collect();
    CryptoProvider { kx_groups, ..default_provider() }
}

impl fmt::Display for TlsGroup {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// The text names no group.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown key exchange group `{0}`: it is one of x25519, secp256r1, secp384r1, x25519mlkem768"
)]
pub struct UnknownTlsGroup(
    /// The text.
    pub String,
);

impl FromStr for TlsGroup {
    type Err = UnknownTlsGroup;

    fn from_str(text: &str) -> Result<Self, UnknownTlsGroup> {
        let named = |group: &Self| group.name() == text;
        Self::ALL.into_iter().find(named).ok_or_else(|| UnknownTlsGroup(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for group in TlsGroup::ALL {
            assert_eq!(group.to_string().parse(), Ok(group));
            assert_eq!(TlsGroup::name_of(group.exchange().name()), group.name());
        }
        assert_eq!(TlsGroup::name_of(NamedGroup::secp521r1), "secp521r1");
        let error = "x448".parse::<TlsGroup>().unwrap_err().to_string();
        assert!(error.contains("`x448`"), "{error}");
    }
}
