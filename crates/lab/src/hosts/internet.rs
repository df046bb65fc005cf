//! The addresses of a private Internet on the last host of a line.

use std::fs;

use super::devices::{address, configure};
use super::ip::ip;
use super::line::Hosts;
use super::sources::BIND_ANY_IPV6;
use crate::error::LabError;
use crate::network::Visit;

/// The networks for benchmarks (RFC 2544, RFC 5180), which no server takes for private ones: usual ones for
/// [`Hosts::add_internet`].
pub const INTERNET: [&str; 2] = ["198.18.0.0/15", "2001:2::/48"];

impl Hosts {
    /// Gives the last host every address of these networks (`198.18.0.0/15`), and lets its neighbour send
    /// there, over IPv4 and IPv6 whatever the addresses of their link. A process there may answer from each
    /// of these addresses. To be called once.
    ///
    /// # Errors
    /// When the system refuses, e.g. because a network is none, or the kernel has no IPv6.
    pub fn add_internet(&self, networks: &[impl AsRef<str>]) -> Result<(), LabError> {
        let ([.., server, internet], Some(link)) = (self.hosts.as_slice(), self.links.last())
        else {
            return Ok(());
        };
        let number = self.links.len() - 1;
        let (of_ipv6, of_ipv4): (Vec<&str>, Vec<&str>) =
            networks.iter().map(AsRef::as_ref).partition(|network| network.contains(':'));
        let has_ipv6 = link.addresses[0].is_ipv6();
        let others = if has_ipv6 { &of_ipv4 } else { &of_ipv6 };
        if !others.is_empty() {
            let addresses = [1, 2].map(|end| address(number, end, !has_ipv6));
            configure([server, internet], [internet.name, server.name], addresses)?;
        }
        for network in of_ipv4.iter().chain(&of_ipv6) {
            let is_ipv6 = network.contains(':');
            let family = Some(if is_ipv6 { "-6" } else { "-4" });
            let via = address(number, 2, is_ipv6);
            ip(&internet.network, &[format!("route add local {network} dev lo")], family)?;
            ip(&server.network, &[format!("route add {network} via {via}")], family)?;
        }
        if of_ipv6.is_empty() {
            return Ok(());
        }
        let written = Visit::to(&internet.network).and_then(|_visit| fs::write(BIND_ANY_IPV6, "1"));
        written.map_err(|error| LabError::Hosts {
            what: format!("let host {} answer from any address", internet.name),
            reason: error.to_string(),
        })
    }
}
