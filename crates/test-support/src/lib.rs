//! What tests of several crates need: ports that are free and stay free.
//!
//! [`bind_both`] and [`free_address`] find a port that the kernel gives to no client.
//!
//! - Invariant: nothing but tests depends on it.

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

use std::fs;
use std::hash::{BuildHasher as _, RandomState};
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};

/// Ports below this one are for services of the machine.
const LOWEST: u16 = 10_000;

/// Binds TCP and UDP at one free port of this address. The kernel gives that port to no client
/// (`net.ipv4.ip_local_port_range`, ip(7)): tests have clients by the thousand, and one of them would take it between
/// the test that found it free and the server that is to have it.
///
/// # Panics
/// When no port is free.
#[must_use]
pub fn bind_both(address: IpAddr) -> (TcpListener, UdpSocket) {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let first = range.split_ascii_whitespace().next().and_then(|first| first.parse().ok());
    let above = first.filter(|first| *first > LOWEST + 1_000).unwrap_or(u16::MAX);
    for _ in 0..1_000 {
        // Each hasher of the standard library has other keys.
        let drawn = RandomState::new().hash_one(LOWEST) % u64::from(above - LOWEST);
        let at = SocketAddr::new(address, LOWEST + drawn as u16);
        if let (Ok(tcp), Ok(udp)) = (TcpListener::bind(at), UdpSocket::bind(at)) {
            return (tcp, udp);
        }
    }
    panic!("no port of {address} is free for both UDP and TCP");
}

/// The address with a port where nobody listens now, and that the kernel gives to no client.
///
/// # Panics
/// When no port is free.
#[must_use]
pub fn free_address(address: IpAddr) -> SocketAddr {
    let (tcp, _) = bind_both(address);
    tcp.local_addr().expect("it is bound")
}
