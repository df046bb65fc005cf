//! Zones of the reverse tree.

use std::net::IpAddr;

/// Addresses that share their first bits, as a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prefix {
    pub(crate) is_ipv6: bool,
    /// The first bits, from the highest on; the others are 0.
    pub(crate) bits: u32,
    /// How many they are: 8, 16 or 24 of IPv4, 12 or 32 of IPv6.
    pub(crate) length: u8,
}

/// Bits of the zones of regional registries, of IPv4 and of IPv6.
const REGISTRY_BITS: [u8; 2] = [8, 12];

impl Prefix {
    pub(crate) fn of(address: IpAddr, length: u8) -> Self {
        let (is_ipv6, bits) = match address {
            IpAddr::V4(address) => (false, address.to_bits()),
            IpAddr::V6(address) => (true, (address.to_bits() >> 96) as u32),
        };
        Self { is_ipv6, bits: bits & !u32::MAX.checked_shr(length.into()).unwrap_or(0), length }
    }

    /// True for the zone of a regional registry.
    pub(crate) fn is_of_registry(&self) -> bool {
        self.length == REGISTRY_BITS[usize::from(self.is_ipv6)]
    }

    /// A number that no other prefix has.
    pub(crate) fn number(&self) -> u64 {
        u64::from(self.is_ipv6) << 40 | u64::from(self.length) << 32 | u64::from(self.bits)
    }
}
