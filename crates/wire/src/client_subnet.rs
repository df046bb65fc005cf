//! The network that a query is said to come from (RFC 7871).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use crate::edns::{CLIENT_SUBNET, OPTION_HEADER, push_option_header};

/// Octets of the option's data before the address: family and both prefix lengths.
const FIXED: usize = 4;
pub(crate) const MAX_LENGTH: usize = OPTION_HEADER + FIXED + 16;

/// A client subnet: the option of a query (RFC 7871, section 6). Its scope prefix length is 0, as it must be
/// in queries.
///
/// ```
/// let subnet: dnslab_wire::ClientSubnet = "192.0.2.0/24".parse()?;
/// assert_eq!((subnet.prefix(), subnet.to_string()), (24, "192.0.2.0/24".to_owned()));
/// # Ok::<(), dnslab_wire::ClientSubnetError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClientSubnet {
    /// Its bits behind the prefix are 0.
    address: IpAddr,
    /// In bits: at most 32 or 128.
    prefix: u8,
}

/// The text names no client subnet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientSubnetError {
    /// Not an address, or not an address and a number of bits.
    #[error("`{0}` is no subnet: write an address and its prefix length, such as 192.0.2.0/24")]
    NoSubnet(String),
    /// More bits than the address has.
    #[error(
        "the prefix length of `{text}` is above {most}: addresses of its family have {most} bits"
    )]
    PrefixTooLong {
        /// The text.
        text: String,
        /// 32 or 128.
        most: u8,
    },
    /// The address has bits behind its prefix.
    #[error("`{text}` has bits behind its prefix, which queries must not have: write {subnet}")]
    HostBits {
        /// The text.
        text: String,
        /// The subnet that the address lies in.
        subnet: ClientSubnet,
    },
}

impl ClientSubnet {
    /// The subnet of this prefix length, in bits, that the address lies in. The length is cut to that of the
    /// address.
    #[must_use]
    pub fn of(address: IpAddr, prefix: u8) -> Self {
        match address {
            IpAddr::V4(v4) => {
                let prefix = prefix.min(32);
                let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
                Self { address: Ipv4Addr::from_bits(v4.to_bits() & mask).into(), prefix }
            }
            IpAddr::V6(v6) => {
                let prefix = prefix.min(128);
                let mask = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
                Self { address: Ipv6Addr::from_bits(v6.to_bits() & mask).into(), prefix }
            }
        }
    }

    /// The first address of the subnet.
    #[must_use]
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// The source prefix length in bits.
    #[must_use]
    pub fn prefix(&self) -> u8 {
        self.prefix
    }

    #[inline]
    pub(crate) fn option_length(&self) -> usize {
        OPTION_HEADER + FIXED + usize::from(self.prefix.div_ceil(8))
    }

    /// The address is cut to the octets that its prefix touches (RFC 7871, section 6).
    #[inline]
    pub(crate) fn push_option(&self, out: &mut Vec<u8>) {
        let touched = self.prefix.div_ceil(8);
        push_option_header(out, CLIENT_SUBNET, FIXED as u16 + u16::from(touched));
        // Address families of IANA: 1 and 2.
        match self.address {
            IpAddr::V4(address) => {
                out.extend_from_slice(&[0, 1, self.prefix, 0]);
                out.extend_from_slice(&address.octets()[..usize::from(touched)]);
            }
            IpAddr::V6(address) => {
                out.extend_from_slice(&[0, 2, self.prefix, 0]);
                out.extend_from_slice(&address.octets()[..usize::from(touched)]);
            }
        }
    }
}

impl fmt::Display for ClientSubnet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.address, self.prefix)
    }
}

impl FromStr for ClientSubnet {
    type Err = ClientSubnetError;

    /// Reads `192.0.2.0/24` or `2001:db8::/56`; an address alone is the subnet of itself.
    fn from_str(text: &str) -> Result<Self, ClientSubnetError> {
        let no_subnet = || ClientSubnetError::NoSubnet(text.to_owned());
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| no_subnet())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            None => most,
            Some(digits) if !digits.is_empty() && digits.bytes().all(|c| c.is_ascii_digit()) => {
                digits.parse().ok().filter(|prefix| *prefix <= most).ok_or_else(|| {
                    ClientSubnetError::PrefixTooLong { text: text.to_owned(), most }
                })?
            }
            Some(_) => return Err(no_subnet()),
        };
        let subnet = Self::of(address, prefix);
        if subnet.address == address {
            Ok(subnet)
        } else {
            Err(ClientSubnetError::HostBits { text: text.to_owned(), subnet })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, printed: &str, data: &[u8]) {
        let subnet: ClientSubnet = text.parse().unwrap();
        assert_eq!(subnet.to_string(), printed);
        assert_eq!(printed.parse(), Ok(subnet));
        let mut option = Vec::new();
        subnet.push_option(&mut option);
        assert_eq!(option.len(), subnet.option_length());
        assert!(option.len() <= MAX_LENGTH);
        assert_eq!(option[..4], [0, 8, 0, data.len() as u8], "{text}");
        assert_eq!(&option[4..], data, "{text}");
    }

    #[test]
    fn subnets_are_read_and_encoded() {
        check("192.0.2.0/24", "192.0.2.0/24", &[0, 1, 24, 0, 192, 0, 2]);
        check("10.128.0.0/9", "10.128.0.0/9", &[0, 1, 9, 0, 10, 128]);
        check("192.0.2.1", "192.0.2.1/32", &[0, 1, 32, 0, 192, 0, 2, 1]);
        check("0.0.0.0/0", "0.0.0.0/0", &[0, 1, 0, 0]);
        check("::/0", "::/0", &[0, 2, 0, 0]);
        check("2001:db8::/33", "2001:db8::/33", &[0, 2, 33, 0, 0x20, 1, 0x0d, 0xb8, 0]);
        let mut whole = vec![0, 2, 128, 0];
        whole.extend([0; 15]);
        whole.push(1);
        check("::1", "::1/128", &whole);
    }

    #[test]
    fn errors_name_the_text_and_the_remedy() {
        for (text, part) in [
            ("host/24", "`host/24` is no subnet"),
            ("192.0.2.0/", "such as 192.0.2.0/24"),
            ("192.0.2.0/+8", "is no subnet"),
            ("192.0.2.0/33", "`192.0.2.0/33` is above 32"),
            ("::/999", "`::/999` is above 128"),
            ("192.0.2.1/24", "write 192.0.2.0/24"),
            ("2001:db8::1/32", "write 2001:db8::/32"),
        ] {
            let error = text.parse::<ClientSubnet>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
