//! The other end of a datagram.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use crate::cmsg::Local;

/// Whom a datagram came from or goes to, with the address of this host for it. It has the kernel's form, so
/// an answer goes to the peer of its datagram without a conversion.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// The address of either family. That of IPv4 is shorter, with its octets where IPv6 has the flow (ip(7),
    /// ipv6(7)).
    pub(crate) name: libc::sockaddr_in6,
    pub(crate) local: Option<Local>,
}

pub(crate) const UNNAMED: libc::sockaddr_in6 = libc::sockaddr_in6 {
    sin6_family: libc::AF_UNSPEC as libc::sa_family_t,
    sin6_port: 0,
    sin6_flowinfo: 0,
    sin6_addr: libc::in6_addr { s6_addr: [0; 16] },
    sin6_scope_id: 0,
};

impl Peer {
    /// A peer to send to, from the address `local` of this host; `None` lets the kernel choose.
    #[must_use]
    pub fn new(address: SocketAddr, local: Option<IpAddr>) -> Self {
        let mut name = UNNAMED;
        name.sin6_port = address.port().to_be();
        match address {
            SocketAddr::V4(address) => {
                name.sin6_family = libc::AF_INET as libc::sa_family_t;
                name.sin6_flowinfo = u32::from(*address.ip()).to_be();
            }
            SocketAddr::V6(address) => {
                name.sin6_family = libc::AF_INET6 as libc::sa_family_t;
                name.sin6_flowinfo = address.flowinfo();
                name.sin6_addr.s6_addr = address.ip().octets();
                name.sin6_scope_id = address.scope_id();
            }
        }
        Self { name, local: local.map(Local::from) }
    }

    /// The peer's address; unspecified if the socket is connected.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        let name = &self.name;
        let port = u16::from_be(name.sin6_port);
        if libc::c_int::from(name.sin6_family) == libc::AF_INET6 {
            let address = Ipv6Addr::from(name.sin6_addr.s6_addr);
            SocketAddrV6::new(address, port, name.sin6_flowinfo, name.sin6_scope_id).into()
        } else {
            let address = Ipv4Addr::from_bits(u32::from_be(name.sin6_flowinfo));
            SocketAddrV4::new(address, port).into()
        }
    }

    /// The address of this host, if the socket reports it: see [`enable_pktinfo`](crate::enable_pktinfo).
    #[must_use]
    pub fn local(&self) -> Option<IpAddr> {
        self.local.map(|local| local.address())
    }

    pub(crate) fn name_length(&self) -> libc::socklen_t {
        let length = if libc::c_int::from(self.name.sin6_family) == libc::AF_INET {
            size_of::<libc::sockaddr_in>()
        } else {
            size_of::<libc::sockaddr_in6>()
        };
        length as libc::socklen_t
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_both_families_survive() {
        for address in ["192.0.2.7:53", "[2001:db8::7]:853", "[fe80::1%3]:53"] {
            let address: SocketAddr = address.parse().unwrap();
            for local in [None, Some(address.ip())] {
                let peer = Peer::new(address, local);
                assert_eq!((peer.address(), peer.local()), (address, local));
            }
        }
        assert_eq!(Peer { name: UNNAMED, local: None }.address(), ([0; 4], 0).into());
    }
}
