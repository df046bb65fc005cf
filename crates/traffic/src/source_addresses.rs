//! The addresses that simulated clients send from.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use dnslab_wire::{ClientSubnet, ClientSubnetError};

/// The addresses that clients send from, in turn: all of one family, and at least one.
///
/// ```
/// let sources: dnslab_traffic::SourceAddresses = "127.0.1.0/24".parse()?;
/// assert_eq!(sources.len(), 254);
/// assert_eq!(sources.get(0).to_string(), "127.0.1.1");
/// assert_eq!(sources.get(255).to_string(), "127.0.1.2");
/// # Ok::<(), dnslab_traffic::SourceAddressesError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceAddresses {
    ranges: Vec<Range>,
    count: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Range {
    first: IpAddr,
    /// At least 1 and at most 2^32: clients have numbers below that.
    count: u64,
    /// As it was written.
    text: String,
}

/// The text names no addresses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceAddressesError {
    /// A part of it is neither an address nor a range.
    #[error(
        "`{0}` is no source address: write addresses (10.0.0.1,10.0.0.2), a range \
         (127.0.0.1-127.0.0.9) or a network (127.0.1.0/24)"
    )]
    NoAddress(String),
    /// The network cannot be.
    #[error("source addresses: {0}")]
    Network(#[from] ClientSubnetError),
    /// A range whose ends are of two families, or that ends before it begins.
    #[error("the range of source addresses `{0}` is empty: write the lower address first")]
    EmptyRange(String),
    /// IPv4 and IPv6 together.
    #[error(
        "source addresses of both families in `{0}`: a target has one, so write addresses of its \
         family only"
    )]
    BothFamilies(String),
}

/// The most addresses of one range that are of use.
const MAX_COUNT: u64 = 1 << 32;

impl SourceAddresses {
    /// The address of this client, counted from 0: after the last comes the first again.
    #[must_use]
    pub fn get(&self, client: u32) -> IpAddr {
        let mut at = u64::from(client) % self.count;
        for range in &self.ranges {
            if at < range.count {
                return plus(range.first, at);
            }
            at -= range.count;
        }
        unreachable!("the count is the sum of the ranges, and one of them is there")
    }

    /// The first client that has this address; `None` if no client has it.
    #[must_use]
    pub fn client_of(&self, address: IpAddr) -> Option<u64> {
        let mut before = 0;
        for range in &self.ranges {
            if let Some(at) = distance(range.first, address).filter(|at| *at < range.count) {
                return Some(before + at);
            }
            before += range.count;
        }
        None
    }

    /// How many addresses there are. Of a range with more than 2^32, only so many are counted and used.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "there is at least one address")]
    pub fn len(&self) -> u64 {
        self.count
    }

    /// True for IPv4, false for IPv6.
    #[must_use]
    pub fn is_ipv4(&self) -> bool {
        self.ranges.iter().all(|range| range.first.is_ipv4())
    }
}

impl FromStr for SourceAddresses {
    type Err = SourceAddressesError;

    /// Reads addresses, ranges and networks with commas between them. Left out are the first and the last
    /// address of an IPv4 network (its own, and that for broadcasts), and the first of an IPv6 network, which
    /// all its routers have (RFC 4291, section 2.6.1). A network whose prefix leaves only one bit (RFC 3021,
    /// RFC 6164) or none is used whole.
    fn from_str(text: &str) -> Result<Self, SourceAddressesError> {
        let ranges = text.split(',').map(range).collect::<Result<Vec<Range>, _>>()?;
        let ipv4 = ranges.iter().filter(|range| range.first.is_ipv4()).count();
        if ipv4 != 0 && ipv4 != ranges.len() {
            return Err(SourceAddressesError::BothFamilies(text.to_owned()));
        }
        let count = ranges.iter().map(|range| range.count).sum();
        Ok(Self { ranges, count })
    }
}

impl fmt::Display for SourceAddresses {
    /// As it is read.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ranges: Vec<&str> = self.ranges.iter().map(|range| range.text.as_str()).collect();
        formatter.write_str(&ranges.join(","))
    }
}

fn range(text: &str) -> Result<Range, SourceAddressesError> {
    let text = text.trim();
    let no_address = || SourceAddressesError::NoAddress(text.to_owned());
    let address = |address: &str| address.trim().parse::<IpAddr>().map_err(|_| no_address());
    let (first, count) = if text.contains('/') {
        hosts(text.parse::<ClientSubnet>()?)
    } else if let Some((first, last)) = text.split_once('-') {
        let (first, last) = (address(first)?, address(last)?);
        let count = distance(first, last)
            .ok_or_else(|| SourceAddressesError::EmptyRange(text.to_owned()))?;
        (first, count.saturating_add(1))
    } else {
        (address(text)?, 1)
    };
    Ok(Range { first, count: count.min(MAX_COUNT), text: text.to_owned() })
}

/// The first address of a network that a host can have, and how many there are.
fn hosts(network: ClientSubnet) -> (IpAddr, u64) {
    let bits = free_bits(network);
    let all = 1u64.checked_shl(bits).unwrap_or(u64::MAX);
    match (network.address(), bits) {
        (first, 0 | 1) => (first, all),
        (first @ IpAddr::V4(_), _) => (plus(first, 1), all - 2),
        (first @ IpAddr::V6(_), _) => (plus(first, 1), all - 1),
    }
}

fn free_bits(network: ClientSubnet) -> u32 {
    let all = if network.address().is_ipv4() { 32 } else { 128 };
    all - u32::from(network.prefix())
}

/// The address `count` further on. Within a range it does not leave its family.
fn plus(address: IpAddr, count: u64) -> IpAddr {
    match address {
        IpAddr::V4(v4) => Ipv4Addr::from_bits(v4.to_bits().wrapping_add(count as u32)).into(),
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits().wrapping_add(count.into())).into(),
    }
}

/// Steps from one address to another; `None` if that is lower, or of another family.
fn distance(first: IpAddr, last: IpAddr) -> Option<u64> {
    match (first, last) {
        (IpAddr::V4(first), IpAddr::V4(last)) => {
            last.to_bits().checked_sub(first.to_bits()).map(u64::from)
        }
        (IpAddr::V6(first), IpAddr::V6(last)) => {
            let distance = last.to_bits().checked_sub(first.to_bits())?;
            Some(u64::try_from(distance).unwrap_or(u64::MAX))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn clients_are_found_by_their_address() {
        for text in ["127.0.0.0/30,127.0.1.1-127.0.1.3", "2001:db8::/64", "10.0.0.9"] {
            let sources: super::SourceAddresses = text.parse().unwrap();
            for client in 0..sources.len().min(1_000) as u32 {
                assert_eq!(sources.client_of(sources.get(client)), Some(client.into()), "{text}");
            }
            for other in ["127.0.0.0", "10.0.0.8", "2001:db7::", "::1"] {
                assert_eq!(sources.client_of(other.parse().unwrap()), None, "{text}: {other}");
            }
        }
    }

    use super::*;

    fn check_dealt(text: &str, count: u64, some: &[(u32, &str)]) {
        let sources: SourceAddresses = text.parse().unwrap();
        assert_eq!(sources.len(), count, "{text}");
        assert_eq!(sources.to_string().parse(), Ok(sources.clone()));
        for (client, address) in some {
            assert_eq!(sources.get(*client).to_string(), *address, "{client} of {text}");
        }
    }

    #[test]
    fn addresses_are_dealt_in_turn() {
        check_dealt("10.0.0.1", 1, &[(0, "10.0.0.1"), (u32::MAX, "10.0.0.1")]);
        check_dealt("10.0.0.1, 10.0.0.7", 2, &[(1, "10.0.0.7"), (2, "10.0.0.1")]);
        check_dealt("127.0.0.1-127.0.0.9", 9, &[(8, "127.0.0.9"), (9, "127.0.0.1")]);
        check_dealt("127.0.1.0/24", 254, &[(0, "127.0.1.1"), (253, "127.0.1.254")]);
        check_dealt("127.0.1.0/31", 2, &[(0, "127.0.1.0"), (1, "127.0.1.1")]);
        check_dealt("127.0.1.5/32", 1, &[(3, "127.0.1.5")]);
        check_dealt("10.0.0.255-10.0.1.0,10.9.0.0/30", 4, &[(1, "10.0.1.0"), (3, "10.9.0.2")]);
        check_dealt("0.0.0.0/0", MAX_COUNT - 2, &[(u32::MAX, "0.0.0.2")]);
        check_dealt(
            "2001:db8::/64",
            MAX_COUNT,
            &[(0, "2001:db8::1"), (u32::MAX, "2001:db8::1:0:0")],
        );
        check_dealt("::1-::3", 3, &[(2, "::3")]);
        check_dealt("::/0", MAX_COUNT, &[(1, "::2")]);
        check_dealt("::-ffff::", MAX_COUNT, &[(1, "::1")]);
    }

    #[test]
    fn errors_name_the_culprit_and_the_remedy() {
        for (text, part) in [
            ("", "`` is no source address"),
            ("eth0", "`eth0` is no source address: write addresses (10.0.0.1,10.0.0.2)"),
            ("10.0.0.1,,10.0.0.2", "`` is no source address"),
            ("10.0.0.1-host", "`10.0.0.1-host` is no source address"),
            ("10.0.0.9-10.0.0.1", "`10.0.0.9-10.0.0.1` is empty: write the lower address first"),
            ("10.0.0.9-::1", "is empty"),
            ("10.0.0.1,::1", "both families in `10.0.0.1,::1`"),
            ("10.0.0.1/24", "write 10.0.0.0/24"),
            ("10.0.0.0/33", "above 32"),
        ] {
            let error = text.parse::<SourceAddresses>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
