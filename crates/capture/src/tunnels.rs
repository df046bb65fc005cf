//! Packets in packets: tunnels, and the mirrors of switches. Their headers are a few fixed fields.

use crate::link::Inside;
use crate::reason::Reason;

dnslab_wire::words! {
    /// What carries a packet inside of another one.
    pub enum Tunnel as "kind of tunnel" {
        /// IPv4 or IPv6 behind a header of IP (RFC 2003, RFC 4213, RFC 2473).
        IpInIp = "ip-in-ip",
        /// Generic Routing Encapsulation (RFC 2784, RFC 2890).
        Gre = "gre",
        /// What switches mirror through GRE (ERSPAN I to III).
        Erspan = "erspan",
        /// Virtual eXtensible LAN (RFC 7348).
        Vxlan = "vxlan",
        /// Generic Network Virtualization Encapsulation (RFC 8926).
        Geneve = "geneve",
    }
}

/// The most tunnels that a packet may be in. More are nobody's network.
pub(crate) const MAX_TUNNELS: usize = 8;

/// A packet that was found in another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Inner {
    pub(crate) tunnel: Tunnel,
    /// Where it begins in the octets that carry it.
    pub(crate) at: usize,
    pub(crate) inside: Inside,
}

// Protocols of IP.
const IPV4: u8 = 4;
const IPV6: u8 = 41;
const GRE: u8 = 47;

// Ports of UDP.
const VXLAN: u16 = 4789;
/// That of VXLAN in Linux, where nobody says which.
const VXLAN_OF_LINUX: u16 = 8472;
const GENEVE: u16 = 6081;

// What GRE carries.
const ERSPAN: u16 = 0x88be;
const ERSPAN_III: u16 = 0x22eb;

/// The packet that a payload of this protocol carries; `None` if the protocol is no tunnel.
#[inline]
pub(crate) fn in_protocol(
    protocol: u8,
    payload: &[u8],
    missing: Reason,
) -> Option<Result<Inner, Reason>> {
    match protocol {
        IPV4 | IPV6 => Some(Ok(Inner { tunnel: Tunnel::IpInIp, at: 0, inside: Inside::Ip })),
        GRE => Some(gre(payload, missing)),
        _ => None,
    }
}

/// The packet in the data of a datagram to this port; `None` if it is the port of no tunnel.
#[inline]
pub(crate) fn in_datagram(
    port: u16,
    data: &[u8],
    missing: Reason,
) -> Option<Result<Inner, Reason>> {
    match port {
        VXLAN | VXLAN_OF_LINUX => Some(vxlan(data, missing)),
        GENEVE => Some(geneve(data, missing)),
        _ => None,
    }
}

fn gre(payload: &[u8], missing: Reason) -> Result<Inner, Reason> {
    const CHECKSUM: u8 = 0x80;
    const ROUTING: u8 = 0x40;
    const KEY: u8 = 0x20;
    const SEQUENCE: u8 = 0x10;
    let [flags, version, high, low] = *payload.first_chunk::<4>().ok_or(missing)?;
    // Routes were given up (RFC 2784), and version 1 (RFC 2637) carries PPP that is usually encrypted.
    if flags & ROUTING != 0 || version & 7 != 0 {
        return Err(Reason::NotIp);
    }
    let fields = [CHECKSUM, KEY, SEQUENCE].iter().filter(|field| flags & **field != 0).count();
    let at = 4 + 4 * fields;
    let inner = |tunnel, at, inside| Ok(Inner { tunnel, at, inside });
    match u16::from_be_bytes([high, low]) {
        // Type I has no header, and no sequence number.
        ERSPAN if flags & SEQUENCE == 0 => inner(Tunnel::Erspan, at, Inside::Ethernet),
        ERSPAN => inner(Tunnel::Erspan, at + 8, Inside::Ethernet),
        ERSPAN_III => {
            let has_more = payload.get(at + 11).ok_or(missing)? & 1 == 1;
            inner(Tunnel::Erspan, at + if has_more { 20 } else { 12 }, Inside::Ethernet)
        }
        ether_type => inner(Tunnel::Gre, at, Inside::EtherType(ether_type)),
    }
}

fn vxlan(data: &[u8], missing: Reason) -> Result<Inner, Reason> {
    /// There is the number of a network.
    const HAS_NETWORK: u8 = 0x08;
    match data.first().ok_or(missing)? & HAS_NETWORK {
        0 => Err(Reason::OtherPort),
        _ => Ok(Inner { tunnel: Tunnel::Vxlan, at: 8, inside: Inside::Ethernet }),
    }
}

fn geneve(data: &[u8], missing: Reason) -> Result<Inner, Reason> {
    let [first, _, high, low] = *data.first_chunk::<4>().ok_or(missing)?;
    // Version 0, and the length of the options in words.
    if first >> 6 != 0 {
        return Err(Reason::OtherPort);
    }
    let inside = Inside::EtherType(u16::from_be_bytes([high, low]));
    Ok(Inner { tunnel: Tunnel::Geneve, at: 8 + 4 * usize::from(first & 0x3f), inside })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers() {
        const MISSING: Reason = Reason::SnapLength;
        let check = |found: Option<Result<Inner, Reason>>, tunnel, at, inside| {
            assert_eq!(found, Some(Ok(Inner { tunnel, at, inside })));
        };
        let gre = |header: &[u8]| in_protocol(47, header, MISSING);
        let ethernet = Inside::Ethernet;
        check(in_protocol(4, b"", MISSING), Tunnel::IpInIp, 0, Inside::Ip);
        check(in_protocol(41, b"", MISSING), Tunnel::IpInIp, 0, Inside::Ip);
        assert_eq!(in_protocol(50, b"", MISSING), None);
        check(gre(b"\0\0\x08\0"), Tunnel::Gre, 4, Inside::EtherType(0x0800));
        check(gre(b"\xb0\0\x65\x58"), Tunnel::Gre, 16, Inside::EtherType(0x6558));
        check(gre(b"\0\0\x88\xbe"), Tunnel::Erspan, 4, ethernet);
        check(gre(b"\x10\0\x88\xbe"), Tunnel::Erspan, 16, ethernet);
        let third = |last: u8| [b"\x10\0\x22\xeb\0\0\0\0", &[0; 11][..], &[last]].concat();
        check(gre(&third(0)), Tunnel::Erspan, 20, ethernet);
        check(gre(&third(1)), Tunnel::Erspan, 28, ethernet);
        assert_eq!(gre(b"\x10\0\x22\xeb"), Some(Err(MISSING)));
        assert_eq!(gre(b"\x30\x01\x88\x0b"), Some(Err(Reason::NotIp)));
        assert_eq!(gre(b"\x40\0\x08\0"), Some(Err(Reason::NotIp)));
        assert_eq!(gre(b"\0\0\x08"), Some(Err(MISSING)));
        for port in [4789, 8472] {
            check(in_datagram(port, b"\x08", MISSING), Tunnel::Vxlan, 8, ethernet);
            assert_eq!(in_datagram(port, b"\x01", MISSING), Some(Err(Reason::OtherPort)));
            assert_eq!(in_datagram(port, b"", MISSING), Some(Err(MISSING)));
        }
        let ip = Inside::EtherType(0x86dd);
        check(in_datagram(6081, b"\x02\0\x86\xdd", MISSING), Tunnel::Geneve, 16, ip);
        assert_eq!(in_datagram(6081, b"\x40\0\x08\0", MISSING), Some(Err(Reason::OtherPort)));
        assert_eq!(in_datagram(53, b"\x08\0\x08\0", MISSING), None);
    }
}
