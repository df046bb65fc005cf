//! What lies below IP: the link types of <https://www.tcpdump.org/linktypes.html>, and the headers between them and IP.

use crate::order::Order;
use crate::reason::Reason;

/// The kind of header before a packet's IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkType {
    Ethernet,
    /// BSD loopback, with the protocol's number in the order of the host or of the network.
    Loopback,
    /// No header.
    Raw,
    /// PPP (RFC 1662), also as a serial line has it.
    Ppp,
    /// HDLC of Cisco: address and control, then an EtherType.
    CiscoHdlc,
    /// A PPPoE session without Ethernet before it.
    Pppoe,
    /// Linux cooked capture: what `tcpdump -i any` writes.
    Cooked,
    /// Its second version.
    Cooked2,
    /// What OpenBSD's packet filter writes. Its first octet is the length of the header.
    PacketFilter,
    /// What Linux' netfilter writes (NFLOG): attributes, whose numbers have the order of the host.
    Netfilter(Order),
    /// None that is read, by its number.
    Unknown(u32),
}

/// What stands somewhere in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inside {
    Ethernet,
    /// What an EtherType says.
    EtherType(u16),
    Ppp,
    Ip,
}

// EtherTypes.
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const BRIDGED: u16 = 0x6558;
const PPPOE_SESSION: u16 = 0x8864;
/// MPLS (RFC 3032, section 5; RFC 5332).
const LABELLED: [u16; 2] = [0x8847, 0x8848];
/// Tags of virtual networks: IEEE 802.1Q, 802.1ad (QinQ), and what was used for the latter before.
const TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];
/// Up to here the number is the length of a frame of IEEE 802.3, in which LLC follows.
const LONGEST_FRAME: u16 = 1_500;

/// LLC and SNAP before an EtherType (RFC 1042).
const SNAP: [u8; 6] = [0xaa, 0xaa, 3, 0, 0, 0];

/// Octets of the header of a PPPoE session (RFC 2516, section 4).
const PPPOE_HEADER: usize = 6;

/// The attribute of NFLOG that is the packet (`NFULA_PAYLOAD`).
const NETFILTER_PAYLOAD: u16 = 9;

impl LinkType {
    /// From the number in a file whose numbers have this order.
    pub(crate) fn from_number(number: u32, order: Order) -> Self {
        match number {
            1 => Self::Ethernet,
            0 | 108 => Self::Loopback,
            9 | 50 => Self::Ppp,
            // The first two are numbers of systems, which some programs write in place of 101.
            12 | 14 | 101 | 228 | 229 => Self::Raw,
            51 => Self::Pppoe,
            104 => Self::CiscoHdlc,
            113 => Self::Cooked,
            117 => Self::PacketFilter,
            239 => Self::Netfilter(order),
            276 => Self::Cooked2,
            number => Self::Unknown(number),
        }
    }

    /// Where the IP header begins. `missing` is the reason if octets are missing.
    #[inline]
    pub(crate) fn ip_start(self, octets: &[u8], missing: Reason) -> Result<usize, Reason> {
        let ether_type = |at| word(octets, at).map(Inside::EtherType).ok_or(missing);
        let (at, inside) = match self {
            Self::Ethernet => (0, Inside::Ethernet),
            Self::Raw => return Ok(0),
            Self::Cooked => (16, ether_type(14)?),
            // The protocol is its first field.
            Self::Cooked2 => (20, ether_type(0)?),
            Self::Loopback => match octets.first_chunk::<4>().ok_or(missing)? {
                // AF_INET, and AF_INET6 of the BSDs, macOS and Linux, in either order.
                [0, 0, 0, 2 | 10 | 24 | 28 | 30] | [2 | 10 | 24 | 28 | 30, 0, 0, 0] => {
                    return Ok(4);
                }
                _ => return Err(Reason::NotIp),
            },
            Self::Ppp => match octets.first_chunk::<2>().ok_or(missing)? {
                // A serial line may have HDLC of Cisco in place of PPP.
                [0x0f | 0x8f, 0] => (4, ether_type(2)?),
                _ => (0, Inside::Ppp),
            },
            Self::CiscoHdlc => (4, ether_type(2)?),
            Self::Pppoe => (PPPOE_HEADER, Inside::Ppp),
            Self::PacketFilter => {
                let length = usize::from(*octets.first().ok_or(missing)?);
                (length.next_multiple_of(4), Inside::Ip)
            }
            Self::Netfilter(order) => return netfilter_payload(octets, order, missing),
            Self::Unknown(_) => return Err(Reason::UnknownLinkType),
        };
        ip_start(octets, at, inside, missing)
    }
}

/// Where the IP header begins in what stands at `at`. Each header that is passed has octets, so this ends.
#[inline]
pub(crate) fn ip_start(
    octets: &[u8],
    mut at: usize,
    mut inside: Inside,
    missing: Reason,
) -> Result<usize, Reason> {
    loop {
        let ether_type = match inside {
            Inside::Ip => return Ok(at),
            Inside::EtherType(number) => number,
            Inside::Ethernet => {
                at += 14;
                word(octets, at - 2).ok_or(missing)?
            }
            Inside::Ppp => {
                let (number, length) = ppp_protocol(octets, at).ok_or(missing)?;
                at += length;
                match number {
                    0x0021 => IPV4,
                    0x0057 => IPV6,
                    0x0281 | 0x0283 => LABELLED[0],
                    _ => return Err(Reason::NotIp),
                }
            }
        };
        inside = match ether_type {
            IPV4 | IPV6 => return Ok(at),
            tag if TAGS.contains(&tag) => {
                at += 4;
                Inside::EtherType(word(octets, at - 2).ok_or(missing)?)
            }
            labelled if LABELLED.contains(&labelled) => {
                at = after_labels(octets, at).ok_or(missing)?;
                match octets.get(at).ok_or(missing)? >> 4 {
                    4 | 6 => return Ok(at),
                    // The control word of a pseudowire, which carries Ethernet (RFC 4448, section 4.6).
                    0 => {
                        at += 4;
                        Inside::Ethernet
                    }
                    _ => return Err(Reason::NotIp),
                }
            }
            PPPOE_SESSION => {
                at += PPPOE_HEADER;
                Inside::Ppp
            }
            BRIDGED => Inside::Ethernet,
            ..=LONGEST_FRAME => {
                let header = octets.get(at..at + SNAP.len()).ok_or(missing)?;
                if header != SNAP {
                    return Err(Reason::NotIp);
                }
                at += SNAP.len() + 2;
                Inside::EtherType(word(octets, at - 2).ok_or(missing)?)
            }
            _ => return Err(Reason::NotIp),
        };
    }
}

/// The protocol of PPP at `at`, and the octets up to what it carries. Address and control may be left out, and the
/// first octet of the protocol if it is 0 (RFC 1661, section 6.5).
fn ppp_protocol(octets: &[u8], at: usize) -> Option<(u16, usize)> {
    let skipped = if octets.get(at..at + 2)? == [0xff, 3] { 2 } else { 0 };
    let first = *octets.get(at + skipped)?;
    match first & 1 {
        1 => Some((first.into(), skipped + 1)),
        _ => Some((word(octets, at + skipped)?, skipped + 2)),
    }
}

/// The end of the label stack of MPLS that begins at `at` (RFC 3032, section 2.1).
fn after_labels(octets: &[u8], mut at: usize) -> Option<usize> {
    loop {
        let is_last = octets.get(at..at + 4)?[2] & 1 == 1;
        at += 4;
        if is_last {
            return Some(at);
        }
    }
}

/// The packet among the attributes of NFLOG.
fn netfilter_payload(octets: &[u8], order: Order, missing: Reason) -> Result<usize, Reason> {
    // The family, AF_INET or AF_INET6 of Linux.
    if !matches!(octets.first().ok_or(missing)?, 2 | 10) {
        return Err(Reason::NotIp);
    }
    let mut at = 4;
    loop {
        let header = octets.get(at..at + 4).ok_or(missing)?;
        let (length, kind) = (usize::from(order.u16(header, 0)), order.u16(header, 2));
        // The upper bits say in which order the value is.
        if kind & 0x3fff == NETFILTER_PAYLOAD {
            return Ok(at + 4);
        }
        if length < header.len() {
            return Err(Reason::MalformedPacket);
        }
        at += length.next_multiple_of(4);
    }
}

#[inline]
fn word(octets: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*octets.get(at)?, *octets.get(at + 1)?]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(number: u32, octets: &[u8], expected: Result<usize, Reason>) {
        let link_type = LinkType::from_number(number, Order::Little);
        let found = link_type.ip_start(octets, Reason::SnapLength);
        assert_eq!(found, expected, "{number} {octets:x?}");
        // A part of the headers is never enough, and never too much to look at.
        for end in 0..octets.len() {
            let _ = link_type.ip_start(&octets[..end], Reason::SnapLength);
        }
    }

    #[test]
    fn link_types() {
        let addresses = [0; 12];
        let ethernet = |rest: &[u8]| [&addresses, rest].concat();
        check(1, &ethernet(b"\x08\x00"), Ok(14));
        check(1, &ethernet(b"\x86\xdd"), Ok(14));
        check(1, &ethernet(b"\x81\x00\x00\x07\x08\x00"), Ok(18));
        check(1, &ethernet(b"\x88\xa8\x00\x07\x81\x00\x00\x08\x86\xdd"), Ok(22));
        check(1, &ethernet(b"\x08\x06"), Err(Reason::NotIp));
        check(1, &ethernet(b"\x00\x26\x42\x42\x03\0\0\0"), Err(Reason::NotIp));
        check(1, &ethernet(b"\x00\x26\xaa\xaa\x03\0\0\0\x08\0"), Ok(22));
        check(1, &ethernet(b"\x00\x26"), Err(Reason::SnapLength));
        check(1, &ethernet(b"\x81\x00\x00\x07\x08"), Err(Reason::SnapLength));
        check(1, b"short", Err(Reason::SnapLength));
        let cooked = |protocol: &[u8]| [&[0; 14], protocol].concat();
        check(113, &cooked(b"\x08\x00"), Ok(16));
        check(113, &cooked(b"\x81\x00\x00\x07\x86\xdd"), Ok(20));
        check(113, &cooked(b"\x00\x04"), Err(Reason::SnapLength));
        check(113, &cooked(b"\x08\x06"), Err(Reason::NotIp));
        let cooked2 = |protocol: &[u8], rest: &[u8]| [protocol, &[0; 18], rest].concat();
        check(276, &cooked2(b"\x86\xdd", b""), Ok(20));
        check(276, &cooked2(b"\x81\x00", b"\x00\x07\x08\x00"), Ok(24));
        check(276, &cooked2(b"\x08\x06", b""), Err(Reason::NotIp));
        for (number, family) in [(0, b"\x02\0\0\0"), (0, b"\0\0\0\x1e"), (108, b"\0\0\0\x18")] {
            check(number, family, Ok(4));
        }
        check(0, b"\x07\0\0\0", Err(Reason::NotIp));
        check(0, b"\x02\0\0", Err(Reason::SnapLength));
        for number in [12, 14, 101, 228, 229] {
            check(number, b"", Ok(0));
        }
        check(105, &[0; 64], Err(Reason::UnknownLinkType));
    }

    #[test]
    fn serial_lines_and_filters() {
        check(9, b"\xff\x03\x00\x21", Ok(4));
        check(9, b"\x21", Err(Reason::SnapLength));
        check(9, b"\x21\x45", Ok(1));
        check(50, b"\xff\x03\x57", Ok(3));
        check(50, b"\x0f\x00\x86\xdd", Ok(4));
        check(9, b"\xff\x03\xc0\x21", Err(Reason::NotIp));
        check(104, b"\x0f\x00\x08\x00", Ok(4));
        check(51, b"\x11\0\0\x01\0\x3a\0\x21", Ok(8));
        check(117, b"\x3d\x02", Ok(64));
        let prefix = b"\x05\0\x0a\0\0\0\0\0";
        check(239, &[b"\x02\0\0\0", &prefix[..], b"\x3c\0\x09\0"].concat(), Ok(16));
        check(239, &[b"\x0a\0\0\0", &b"\x3c\0\x09\0"[..]].concat(), Ok(8));
        check(239, b"\x02\0\0\0\x03\0\x01\0", Err(Reason::MalformedPacket));
        check(239, b"\x07\0\0\0\x3c\0\x09\0", Err(Reason::NotIp));
        check(239, b"\x02\0\0\0\x05\0\x0a", Err(Reason::SnapLength));
        let big = LinkType::from_number(239, Order::Big);
        assert_eq!(big.ip_start(b"\x02\0\0\0\0\x3c\0\x09", Reason::SnapLength), Ok(8));
    }

    #[test]
    fn labels_and_sessions() {
        let ethernet = |rest: &[u8]| [&[0; 12], rest].concat();
        check(1, &ethernet(b"\x88\x47\0\x06\x41\x40\x45"), Ok(18));
        check(1, &ethernet(b"\x88\x47\0\x06\x40\x40\0\x06\x41\x40\x60"), Ok(22));
        let carried = [b"\x88\x48\0\x06\x41\x40\0\0\0\0", &[0; 12][..], b"\x08\0"].concat();
        check(1, &ethernet(&carried), Ok(36));
        check(1, &ethernet(b"\x88\x47\0\x06\x41\x40\x10"), Err(Reason::NotIp));
        check(1, &ethernet(b"\x88\x47\0\x06\x40\x40"), Err(Reason::SnapLength));
        check(1, &ethernet(b"\x88\x64\x11\0\0\x01\0\x3a\0\x21"), Ok(22));
        check(1, &ethernet(b"\x81\0\0\x07\x88\x64\x11\0\0\x01\0\x3a\0\x57"), Ok(26));
        check(1, &ethernet(b"\x88\x63\x11\x09\0\0\0\0"), Err(Reason::NotIp));
    }
}
