//! Free ports for a server under test.

#![expect(clippy::disallowed_types, reason = "binds a port for a moment, to know that it is free")]

use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::ops::Range;

use dnslab_wire::Transport;

use crate::host::kernel_setting;
use crate::server::Ports;

const ATTEMPTS: u32 = 100;

const LOWEST: u16 = 10_000;

/// Ports of `address` for all transports, each different from the others, where both UDP and TCP can be bound
/// now.
///
/// They are released before this returns, so another process may take one first: readiness checks who owns
/// them in the end. Ports that the kernel gives to clients (`net.ipv4.ip_local_port_range`, ip(7)) are
/// avoided if there is room below them.
///
/// # Errors
/// When the address is not one of this machine, or no port is free.
pub fn free(address: IpAddr) -> io::Result<Ports> {
    // Held until the last one is found, so that they differ.
    let mut held = Vec::new();
    let mut next = || {
        let (port, sockets) = bind_both(address)?;
        held.push(sockets);
        io::Result::Ok(port)
    };
    Ok(Ports {
        plain: next()?,
        dot: next()?,
        doh2: next()?,
        doq: next()?,
        doh3: next()?,
        control: control(address)?,
    })
}

/// A port of `address` that is free at [`Ipv4Addr::LOCALHOST`] too: every server publishes its counters
/// there.
fn control(address: IpAddr) -> io::Result<u16> {
    let mut held = Vec::new();
    for _ in 0..ATTEMPTS {
        let (port, sockets) = bind_both(address)?;
        held.push(sockets);
        let is_same = address == IpAddr::V4(Ipv4Addr::LOCALHOST);
        if is_same || TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    Err(io::ErrorKind::AddrInUse.into())
}

/// Whether a server could bind `address` for `transport` now: proven by binding it for a moment.
///
/// # Errors
/// What the system says; `AddrInUse` when another process has it.
pub fn check(transport: Transport, address: SocketAddr) -> io::Result<()> {
    if transport.runs_over_tcp() {
        TcpListener::bind(address).map(drop)
    } else {
        UdpSocket::bind(address).map(drop)
    }
}

/// True if this machine, or the network namespace of the calling thread, has the address. Proven by binding
/// it for a moment: under `net.ipv4.ip_nonlocal_bind` every address can be bound.
#[must_use]
pub fn is_local(address: IpAddr) -> bool {
    UdpSocket::bind(SocketAddr::new(address, 0)).is_ok()
}

/// Binds TCP below the ports of clients, or at a port of the kernel's choice, then UDP at the same port.
fn bind_both(address: IpAddr) -> io::Result<(u16, (TcpListener, UdpSocket))> {
    let range = below_those_of_clients();
    let mut last = None;
    for _ in 0..ATTEMPTS {
        let port = range.as_ref().map_or(0, drawn_from);
        let both = TcpListener::bind(SocketAddr::new(address, port)).and_then(|tcp| {
            let port = tcp.local_addr()?.port();
            Ok((port, (tcp, UdpSocket::bind(SocketAddr::new(address, port))?)))
        });
        match both {
            Ok(both) => return Ok(both),
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| io::ErrorKind::AddrInUse.into()))
}

/// The ports from [`LOWEST`] on that the kernel gives to no client; `None` where they are too few.
fn below_those_of_clients() -> Option<Range<u16>> {
    let range = kernel_setting("net/ipv4/ip_local_port_range")?;
    let first: u16 = range.split_ascii_whitespace().next()?.parse().ok()?;
    (first >= LOWEST + 1_000).then_some(LOWEST..first)
}

/// A random port of a range, so that two processes that look at once seldom find the same.
fn drawn_from(range: &Range<u16>) -> u16 {
    // Each hasher of the standard library has other keys.
    let drawn = RandomState::new().hash_one(LOWEST) % u64::from(range.end - range.start);
    range.start + drawn as u16
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn free_ports_can_be_bound() {
        for address in ["127.0.0.1", "::1"] {
            let address: IpAddr = address.parse().unwrap();
            let ports = free(address).unwrap();
            let different: BTreeSet<u16> =
                Transport::ALL.map(|transport| ports.of(transport)).into();
            // UDP and TCP share one.
            assert_eq!(different.len(), Transport::ALL.len() - 1);
            let range = below_those_of_clients();
            for port in different {
                assert!(range.as_ref().is_none_or(|range| range.contains(&port)), "{port}");
                UdpSocket::bind((address, port)).unwrap();
                TcpListener::bind((address, port)).unwrap();
            }
        }
    }

    #[test]
    fn a_foreign_address_is_an_error() {
        // 192.0.2.0/24 is for documentation only (RFC 5737): no machine has it.
        assert!(free("192.0.2.1".parse().unwrap()).is_err());
    }
}
