//! IPv4 (RFC 791) and IPv6 (RFC 8200) down to what they carry. Checksums are not compared: a host that leaves
//! them to its network card captures its own packets with wrong ones.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use crate::Reason;

pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;

// Headers of IPv6 that another one may follow (RFC 8200, section 4; RFC 4302; RFC 6275; RFC 7401; RFC 5533).
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION_OPTIONS: u8 = 60;
const MOBILITY: u8 = 135;
const HOST_IDENTITY: u8 = 139;
const SHIM6: u8 = 140;

/// A packet of IP, or a fragment of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IpPacket {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    /// The identification of IPv4; 0 with IPv6.
    pub(crate) id: u32,
    /// What the payload is; of a fragment of IPv6, what the whole payload begins with.
    pub(crate) protocol: u8,
    /// Where the payload is, as far as it is there.
    pub(crate) payload: Range<usize>,
    /// The reason if the payload is longer than what is there.
    pub(crate) missing: Option<Reason>,
    pub(crate) fragment: Option<Fragment>,
}

/// Which part of a payload this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fragment {
    pub(crate) id: u32,
    /// Octets of the payload before it.
    pub(crate) offset: u32,
    /// True if it is not the last one.
    pub(crate) has_more: bool,
}

/// Reads the packet that begins at `start`. `missing` is the reason if octets are missing.
#[inline]
pub(crate) fn read(octets: &[u8], start: usize, missing: Reason) -> Result<IpPacket, Reason> {
    let packet = octets.get(start..).unwrap_or_default();
    match packet.first().ok_or(missing)? >> 4 {
        4 => read_v4(packet, start, missing),
        6 => read_v6(packet, start, missing),
        _ => Err(Reason::MalformedPacket),
    }
}

#[inline]
fn read_v4(packet: &[u8], start: usize, missing: Reason) -> Result<IpPacket, Reason> {
    let header: &[u8; 20] = packet.first_chunk().ok_or(missing)?;
    let header_length = usize::from(header[0] & 0x0f) * 4;
    let length = match usize::from(u16::from_be_bytes([header[2], header[3]])) {
        // A host that leaves cutting into segments to its network card, too.
        0 => packet.len(),
        length => length,
    };
    if header_length < header.len() || length < header_length {
        return Err(Reason::MalformedPacket);
    }
    if packet.len() < header_length {
        return Err(missing);
    }
    let part = u16::from_be_bytes([header[6], header[7]]);
    let (has_more, offset) = (part & 0x2000 != 0, u32::from(part & 0x1fff) * 8);
    let id = u16::from_be_bytes([header[4], header[5]]).into();
    let address =
        |at: usize| Ipv4Addr::from([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    Ok(IpPacket {
        source: address(12).into(),
        destination: address(16).into(),
        id,
        protocol: header[9],
        payload: start + header_length..start + length.min(packet.len()),
        missing: (length > packet.len()).then_some(missing),
        fragment: (has_more || offset > 0).then_some(Fragment { id, offset, has_more }),
    })
}

#[inline]
fn read_v6(packet: &[u8], start: usize, missing: Reason) -> Result<IpPacket, Reason> {
    let header: &[u8; 40] = packet.first_chunk().ok_or(missing)?;
    let length = match usize::from(u16::from_be_bytes([header[4], header[5]])) {
        // A jumbogram (RFC 2675), or what a network card will cut.
        0 => packet.len(),
        length => header.len() + length,
    };
    let there = &packet[..length.min(packet.len())];
    let address = |octets: &[u8]| {
        Ipv6Addr::from(*octets.first_chunk::<16>().expect("both addresses are in the header"))
    };
    let missing = (length > packet.len()).then_some(missing);
    let mut read = IpPacket {
        source: address(&header[8..]).into(),
        destination: address(&header[24..]).into(),
        id: 0,
        protocol: header[6],
        payload: header.len()..there.len(),
        missing,
        fragment: None,
    };
    if !matches!(read.protocol, UDP | TCP) {
        let upper =
            upper(there, header.len(), read.protocol, missing.unwrap_or(Reason::MalformedPacket))?;
        (read.protocol, read.payload.start, read.fragment) = upper;
    }
    read.payload = start + read.payload.start..start + read.payload.end;
    Ok(read)
}

/// What follows the extension headers, of which the first is at `at`: protocol, place, and which part it is.
pub(crate) fn upper(
    octets: &[u8],
    mut at: usize,
    mut protocol: u8,
    missing: Reason,
) -> Result<(u8, usize, Option<Fragment>), Reason> {
    loop {
        let header = octets.get(at..).unwrap_or_default();
        let length = match protocol {
            HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS | MOBILITY | HOST_IDENTITY | SHIM6 => {
                (usize::from(*header.get(1).ok_or(missing)?) + 1) * 8
            }
            AUTHENTICATION => (usize::from(*header.get(1).ok_or(missing)?) + 2) * 4,
            FRAGMENT => 8,
            _ => return Ok((protocol, at, None)),
        };
        let header = header.get(..length).ok_or(missing)?;
        at += length;
        if protocol == FRAGMENT {
            let part = u16::from_be_bytes([header[2], header[3]]);
            let id = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
            let part = Fragment { id, offset: (part & 0xfff8).into(), has_more: part & 1 != 0 };
            // Otherwise the packet is whole (RFC 6946).
            if part.has_more || part.offset > 0 {
                return Ok((header[0], at, Some(part)));
            }
        }
        protocol = header[0];
    }
}
