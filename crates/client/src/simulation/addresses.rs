//! Who is where in the simulated network.

use std::net::SocketAddr;

pub(super) fn target() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 53))
}

/// An address at which no server is.
pub(super) fn nobody() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 99], 53))
}

/// Different for each socket, as a server over QUIC needs it.
pub(super) fn address_of(number: usize) -> SocketAddr {
    let [a, b, c] = [number >> 16, number >> 8, number].map(|part| part as u8);
    SocketAddr::from(([10, a, b, c], 4_000))
}

pub(super) fn socket_of(address: SocketAddr) -> usize {
    match address {
        SocketAddr::V4(address) => {
            let [_, a, b, c] = address.ip().octets().map(usize::from);
            a << 16 | b << 8 | c
        }
        SocketAddr::V6(_) => unreachable!("all clients have IPv4 addresses"),
    }
}
