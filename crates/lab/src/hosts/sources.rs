//! Many addresses for the clients of one host.

use std::fs;
use std::net::IpAddr;

use super::ip::ip;
use super::line::Hosts;
use crate::error::LabError;
use crate::network::Visit;

/// Whether a program may bind to an address that no interface has. A route alone makes an IPv4 address one's
/// own, but not an IPv6 address (ip-sysctl in the kernel's documentation).
pub(super) const BIND_ANY_IPV6: &str = "/proc/sys/net/ipv6/ip_nonlocal_bind";

impl Hosts {
    /// Lets the first host send from all these addresses, and its neighbour answer to them. `sources` has
    /// networks (`10.99.0.0/24`), ranges (`10.99.0.1-10.99.0.9`) and single addresses of one family, with
    /// commas between them.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn add_sources(&self, sources: &str) -> Result<(), LabError> {
        let ([client, server, ..], Some(link)) = (self.hosts.as_slice(), self.links.first()) else {
            return Ok(());
        };
        let is_ipv6 = sources.contains(':');
        let family = Some(if is_ipv6 { "-6" } else { "-4" });
        let networks: Vec<String> = sources.split(',').flat_map(networks).collect();
        let lines = |how: &dyn Fn(&String) -> String| networks.iter().map(how).collect::<Vec<_>>();
        let own = lines(&|network| format!("route add local {network} dev lo"));
        ip(&client.network, &own, family)?;
        if is_ipv6 {
            let written =
                Visit::to(&client.network).and_then(|_visit| fs::write(BIND_ANY_IPV6, "1"));
            written.map_err(|error| LabError::Hosts {
                what: format!("let host {} send from {sources}", client.name),
                reason: error.to_string(),
            })?;
        }
        let back = lines(&|network| format!("route add {network} via {}", link.addresses[0]));
        ip(&server.network, &back, family)
    }
}

/// The networks of one part of a list of sources. What is no range stays as it is.
fn networks(part: &str) -> Vec<String> {
    let ends = part.split_once('-');
    let ends = ends.and_then(|(first, last)| Some((first.parse().ok()?, last.parse().ok()?)));
    match ends {
        Some((first, last)) => networks_of_range(first, last),
        None => vec![part.to_owned()],
    }
}

/// The fewest networks that have the addresses from the first to the last, and no others.
fn networks_of_range(first: IpAddr, last: IpAddr) -> Vec<String> {
    let number = |address: IpAddr| match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    };
    let width = if first.is_ipv4() { 32 } else { 128 };
    let address = |number: u128| match u32::try_from(number) {
        Ok(number) if width == 32 => IpAddr::V4(number.into()),
        _ => IpAddr::V6(number.into()),
    };
    let last = number(last);
    let (mut networks, mut next) = (Vec::new(), Some(number(first)));
    while let Some(from) = next.filter(|from| *from <= last) {
        // The largest network that begins here and does not end after the range.
        let rest = |bits: u32| u128::MAX.checked_shr(128 - bits).unwrap_or(0);
        let largest = from.trailing_zeros().min(width);
        let bits = (0..=largest).rev().find(|bits| last - from >= rest(*bits)).unwrap_or(0);
        networks.push(format!("{}/{}", address(from), width - bits));
        next = (from + rest(bits)).checked_add(1);
    }
    networks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_made_of_networks() {
        let check = |part: &str, expected: &[&str]| assert_eq!(networks(part), expected, "{part}");
        check("10.99.0.0/24", &["10.99.0.0/24"]);
        check("10.99.0.7", &["10.99.0.7"]);
        check("10.0.0.1-10.0.0.4", &["10.0.0.1/32", "10.0.0.2/31", "10.0.0.4/32"]);
        check("10.0.0.0-10.0.0.255", &["10.0.0.0/24"]);
        check("10.0.0.5-10.0.0.5", &["10.0.0.5/32"]);
        check("255.255.255.254-255.255.255.255", &["255.255.255.254/31"]);
        check("0.0.0.0-255.255.255.255", &["0.0.0.0/0"]);
        check("fd99::1-fd99::3", &["fd99::1/128", "fd99::2/127"]);
        check("::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", &["::/0"]);
    }
}
