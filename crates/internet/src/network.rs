//! The addresses of the servers.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A network of one family, whose addresses are servers in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    prefix: u8,
}

/// Why a text is no network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// It is not an address, a slash and a number.
    #[error("a network is an address and a prefix length, as in `198.18.0.0/15`")]
    Form,
    /// The prefix is longer than an address.
    #[error("the prefix length is longer than the address")]
    Prefix,
    /// Bits after the prefix are set.
    #[error("the address has bits after its prefix")]
    HostBits,
}

impl Network {
    /// Its first address.
    #[must_use]
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Bits that all its addresses share.
    #[must_use]
    pub fn prefix(&self) -> u8 {
        self.prefix
    }

    /// True for an address of this network.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        self.place(address).is_some()
    }

    /// The address at a place: 0 is the network itself. Places beyond the network begin again.
    #[must_use]
    pub fn at(&self, place: u64) -> IpAddr {
        match self.address {
            IpAddr::V4(address) => {
                let hosts = u32::MAX.checked_shr(self.prefix.into()).unwrap_or(0);
                Ipv4Addr::from_bits(address.to_bits() | place as u32 & hosts).into()
            }
            IpAddr::V6(address) => {
                let hosts = u128::MAX.checked_shr(self.prefix.into()).unwrap_or(0);
                Ipv6Addr::from_bits(address.to_bits() | u128::from(place) & hosts).into()
            }
        }
    }

    /// The place of an address; `None` if it is not of this network, or beyond place 2^64.
    #[inline]
    pub(crate) fn place(&self, address: IpAddr) -> Option<u64> {
        let (bits, own, length) = match (address, self.address) {
            (IpAddr::V4(address), IpAddr::V4(own)) => {
                (u128::from(address.to_bits()), u128::from(own.to_bits()), 32)
            }
            (IpAddr::V6(address), IpAddr::V6(own)) => (address.to_bits(), own.to_bits(), 128),
            _ => return None,
        };
        let place = bits ^ own;
        let hosts = length - u32::from(self.prefix);
        if place.checked_shr(hosts).unwrap_or(0) != 0 {
            return None;
        }
        u64::try_from(place).ok()
    }

    /// How many servers can have an address: neither the network itself nor, with IPv4, its broadcast address.
    #[must_use]
    pub fn servers(&self) -> u64 {
        let length = if self.address.is_ipv4() { 32 } else { 128 };
        let hosts = length - u32::from(self.prefix);
        1_u64.checked_shl(hosts).map_or(u64::MAX, |addresses| addresses.saturating_sub(2))
    }
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let (address, prefix) = text.split_once('/').ok_or(NetworkError::Form)?;
        let address: IpAddr = address.parse().map_err(|_| NetworkError::Form)?;
        let prefix: u8 = prefix.parse().map_err(|_| NetworkError::Form)?;
        if prefix > if address.is_ipv4() { 32 } else { 128 } {
            return Err(NetworkError::Prefix);
        }
        let network = Self { address, prefix };
        // Place 0 sets no bits; another address of the same prefix has a place.
        let hosts = match address {
            IpAddr::V4(address) => {
                u128::from(address.to_bits() & u32::MAX.checked_shr(prefix.into()).unwrap_or(0))
            }
            IpAddr::V6(address) => {
                address.to_bits() & u128::MAX.checked_shr(prefix.into()).unwrap_or(0)
            }
        };
        if hosts != 0 { Err(NetworkError::HostBits) } else { Ok(network) }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.address, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(network: &str, place: u64, address: &str, servers: u64) {
        let network: Network = network.parse().unwrap();
        let address: IpAddr = address.parse().unwrap();
        assert_eq!(network.at(place), address);
        assert_eq!(network.place(address), Some(place));
        assert_eq!(network.servers(), servers);
    }

    #[test]
    fn places_are_addresses() {
        check("198.18.0.0/15", 0x1_0203, "198.19.2.3", (1 << 17) - 2);
        check("2001:2::/48", 0x1_0203, "2001:2::1:203", u64::MAX);
        check("127.0.0.0/8", 1, "127.0.0.1", (1 << 24) - 2);
        check("0.0.0.0/0", 1, "0.0.0.1", (1 << 32) - 2);
        check("192.0.2.7/32", 0, "192.0.2.7", 0);
        let network: Network = "198.18.0.0/15".parse().unwrap();
        for other in ["198.20.0.0", "198.17.255.255", "::1"] {
            assert_eq!(network.place(other.parse().unwrap()), None, "{other}");
        }
        let network: Network = "2001:2::/48".parse().unwrap();
        assert_eq!(network.place("2001:2::1:0:0:0:1".parse().unwrap()), None);
    }

    #[test]
    fn wrong_networks_are_refused() {
        let check = |text: &str, error| assert_eq!(text.parse::<Network>(), Err(error), "{text}");
        check("198.18.0.0", NetworkError::Form);
        check("198.18.0/15", NetworkError::Form);
        check("198.18.0.0/x", NetworkError::Form);
        check("198.18.0.0/33", NetworkError::Prefix);
        check("2001:2::/129", NetworkError::Prefix);
        check("198.18.0.1/15", NetworkError::HostBits);
    }
}
