//! What lies below IP (the link types of <https://www.tcpdump.org/linktypes.html>).

use crate::Reason;

/// The kind of header before a packet's IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkType {
    Ethernet,
    /// BSD loopback, with the protocol's number in the order of the host or of the network.
    Loopback,
    /// No header.
    Raw,
    /// Linux cooked capture: what `tcpdump -i any` writes.
    Cooked,
    /// Its second version.
    Cooked2,
    Unknown,
}

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

/// Tags of virtual networks: IEEE 802.1Q, 802.1ad (QinQ), and what was used for the latter before.
const TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];

impl LinkType {
    /// From the number in a file.
    pub(crate) fn of(number: u32) -> Self {
        match number {
            1 => Self::Ethernet,
            0 | 108 => Self::Loopback,
            // The first two are numbers of systems, which some programs write in place of 101.
            12 | 14 | 101 | 228 | 229 => Self::Raw,
            113 => Self::Cooked,
            276 => Self::Cooked2,
            _ => Self::Unknown,
        }
    }

    /// Where the IP header begins. `missing` is the reason if octets are missing.
    #[inline]
    pub(crate) fn ip_start(self, octets: &[u8], missing: Reason) -> Result<usize, Reason> {
        match self {
            Self::Ethernet => after_tags(octets, 12, missing),
            Self::Cooked => after_tags(octets, 14, missing),
            Self::Cooked2 => {
                // The protocol is its first field.
                let protocol = ether_type(octets, 0).ok_or(missing)?;
                let is_ip = [IPV4, IPV6].contains(&protocol);
                if is_ip {
                    Ok(20)
                } else if TAGS.contains(&protocol) {
                    // The tag is the start of what follows the header.
                    after_tags(octets, 22, missing)
                } else {
                    Err(Reason::NotIp)
                }
            }
            Self::Loopback => match octets.first_chunk::<4>().ok_or(missing)? {
                // AF_INET, and AF_INET6 of the BSDs, macOS and Linux, in either order.
                [0, 0, 0, 2 | 10 | 24 | 28 | 30] | [2 | 10 | 24 | 28 | 30, 0, 0, 0] => Ok(4),
                _ => Err(Reason::NotIp),
            },
            Self::Raw => Ok(0),
            Self::Unknown => Err(Reason::UnknownLinkType),
        }
    }
}

/// The end of a chain of tags that begins with the EtherType at `at`.
#[inline]
fn after_tags(octets: &[u8], mut at: usize, missing: Reason) -> Result<usize, Reason> {
    loop {
        match ether_type(octets, at).ok_or(missing)? {
            IPV4 | IPV6 => return Ok(at + 2),
            tag if TAGS.contains(&tag) => at += 4,
            _ => return Err(Reason::NotIp),
        }
    }
}

#[inline]
fn ether_type(octets: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*octets.get(at)?, *octets.get(at + 1)?]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases() {
        let check = |number, octets: &[u8], expected| {
            let found = LinkType::of(number).ip_start(octets, Reason::SnapLength);
            assert_eq!(found, expected, "{number} {octets:x?}");
        };
        let addresses = [0; 12];
        let ethernet = |rest: &[u8]| [&addresses, rest].concat();
        check(1, &ethernet(b"\x08\x00"), Ok(14));
        check(1, &ethernet(b"\x86\xdd"), Ok(14));
        check(1, &ethernet(b"\x81\x00\x00\x07\x08\x00"), Ok(18));
        check(1, &ethernet(b"\x88\xa8\x00\x07\x81\x00\x00\x08\x86\xdd"), Ok(22));
        check(1, &ethernet(b"\x08\x06"), Err(Reason::NotIp));
        check(1, &ethernet(b"\x00\x26"), Err(Reason::NotIp));
        check(1, &ethernet(b"\x81\x00\x00\x07\x08"), Err(Reason::SnapLength));
        check(1, b"short", Err(Reason::SnapLength));
        let cooked = |protocol: &[u8]| [&[0; 14], protocol].concat();
        check(113, &cooked(b"\x08\x00"), Ok(16));
        check(113, &cooked(b"\x81\x00\x00\x07\x86\xdd"), Ok(20));
        check(113, &cooked(b"\x00\x04"), Err(Reason::NotIp));
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
}
