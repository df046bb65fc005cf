//! Key exchange groups of TLS (RFC 8446, section 4.2.7), for clients and servers alike.

mod hybrid;

use dnslab_wire::TlsGroup;
use rustls::NamedGroup;
use rustls::crypto::ring::{default_provider, kx_group};
use rustls::crypto::{CryptoProvider, SupportedKxGroup};

/// The name of an agreed group, in the words of [`TlsGroup`]; that of rustls for other groups.
#[must_use]
pub fn group_name(group: NamedGroup) -> String {
    let known = TlsGroup::ALL.into_iter().find(|known| exchange(*known).name() == group);
    known.map_or_else(|| format!("{group:?}"), |known| known.name().to_owned())
}

fn exchange(group: TlsGroup) -> &'static dyn SupportedKxGroup {
    match group {
        TlsGroup::X25519 => kx_group::X25519,
        TlsGroup::Secp256r1 => kx_group::SECP256R1,
        TlsGroup::Secp384r1 => kx_group::SECP384R1,
        TlsGroup::X25519MlKem768 => &hybrid::X25519MlKem768,
    }
}

/// The cryptography of rustls with these groups, the preferred one first. A client sends a key share of that
/// one alone (RFC 8446, section 4.2.8), and of X25519 too if both are offered and the hybrid is first.
#[must_use]
pub fn provider(groups: &[TlsGroup]) -> CryptoProvider {
    let kx_groups = groups.iter().map(|group| exchange(*group)).collect();
    CryptoProvider { kx_groups, ..default_provider() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for group in TlsGroup::ALL {
            assert_eq!(group.to_string().parse(), Ok(group));
            assert_eq!(group_name(exchange(group).name()), group.name());
        }
        assert_eq!(group_name(NamedGroup::secp521r1), "secp521r1");
        let error = "x448".parse::<TlsGroup>().unwrap_err().to_string();
        assert!(error.contains("`x448`"), "{error}");
    }
}
