//! What tests of several crates need: ports that are free and stay free.
//!
//! [`bind_both`] and [`free_addresses`] find ports that the kernel gives to no client
//! (`net.ipv4.ip_local_port_range`, ip(7)): tests have clients by the thousand, and one of them would take a port
//! between the test that found it free and the server that is to have it.
//!
//! - Invariant: nothing but tests depends on it.

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

use std::collections::HashSet;
use std::fs;
use std::hash::{BuildHasher as _, RandomState};
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};

/// Ports below this one are for services of the machine.
const LOWEST: u16 = 10_000;

/// Ports that are tried before there counts as none.
const ATTEMPTS: usize = 1_000;

/// Binds TCP and UDP at one free port of this address, for servers that are the test itself.
///
/// # Panics
/// When no port is free.
#[must_use]
pub fn bind_both(address: IpAddr) -> (TcpListener, UdpSocket) {
    let bound = drawn(address)
        .find_map(|at| Some((TcpListener::bind(at).ok()?, UdpSocket::bind(at).ok()?)));
    bound.unwrap_or_else(|| panic!("no port of {address} is free for both UDP and TCP"))
}

/// Addresses with ports of their own where nobody has a socket, for servers that are programs.
///
/// They are looked up and not bound. A program that another test starts has a copy of every socket until it is
/// executed, so a port that was bound and given back may stay taken for some milliseconds.
///
/// # Panics
/// When no port is free.
#[must_use]
pub fn free_addresses<const COUNT: usize>(address: IpAddr) -> [SocketAddr; COUNT] {
    let mut taken = taken_ports();
    [(); COUNT].map(|()| {
        let free = drawn(address).find(|at| taken.insert(at.port()));
        free.unwrap_or_else(|| panic!("no port of {address} is free"))
    })
}

/// One of [`free_addresses`].
///
/// # Panics
/// When no port is free.
#[must_use]
pub fn free_address(address: IpAddr) -> SocketAddr {
    let [free] = free_addresses(address);
    free
}

fn drawn(address: IpAddr) -> impl Iterator<Item = SocketAddr> {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let first = range.split_ascii_whitespace().next().and_then(|first| first.parse().ok());
    let above = first.filter(|first| *first > LOWEST + 1_000).unwrap_or(u16::MAX);
    // Each hasher of the standard library has other keys.
    let draw = move || RandomState::new().hash_one(LOWEST) % u64::from(above - LOWEST);
    let ports = std::iter::repeat_with(move || LOWEST + draw() as u16).take(ATTEMPTS);
    ports.map(move |port| SocketAddr::new(address, port))
}

/// Local ports of all sockets in the network namespace of this thread (proc_pid_net(5)).
fn taken_ports() -> HashSet<u16> {
    let tables = ["tcp", "tcp6", "udp", "udp6"];
    let lines = tables.map(|table| {
        // Without IPv6 there are two of them.
        fs::read_to_string(format!("/proc/thread-self/net/{table}")).unwrap_or_default()
    });
    let addresses = lines
        .iter()
        .flat_map(|table| table.lines())
        .filter_map(|line| line.split_whitespace().nth(1));
    addresses.filter_map(|at| u16::from_str_radix(at.rsplit_once(':')?.1, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn a_port_with_a_socket_is_taken() {
        let (tcp, udp) = bind_both(Ipv4Addr::LOCALHOST.into());
        let port = tcp.local_addr().unwrap().port();
        assert!(taken_ports().contains(&port));
        drop(tcp);
        assert!(taken_ports().contains(&udp.local_addr().unwrap().port()));
    }

    #[test]
    fn free_addresses_differ_and_can_be_bound() {
        let found: [SocketAddr; 50] = free_addresses(Ipv4Addr::LOCALHOST.into());
        assert_eq!(found.iter().collect::<HashSet<_>>().len(), found.len());
        let _sockets = found.map(|at| TcpListener::bind(at).unwrap());
    }
}
