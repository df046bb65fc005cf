//! Control messages, which travel with a datagram (cmsg(3)). They are read and written as octets: a wrong
//! length only ends the reading.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use libc::c_int;

/// Octets before the data of a message: its length as a `size_t`, its level and its type.
const HEADER: usize = size_of::<libc::cmsghdr>();

/// The most that the kernel says about a datagram: `IPV6_PKTINFO` (40 octets), `SCM_TIMESTAMPNS` (32) and
/// `UDP_GRO` (24). What is sent is less.
const SPACE: usize = 96;

/// Aligned as the kernel wants it.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub(crate) struct Control {
    pub(crate) octets: [u8; SPACE],
    /// Octets that are to be sent.
    pub(crate) used: usize,
}

/// The address of this host that a datagram came to, or leaves from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Local {
    /// `struct in_pktinfo` (ip(7)): the interface, `ipi_spec_dst`, `ipi_addr`. Sent back unchanged, it sets
    /// the source of the answer and its interface.
    V4([u8; 12]),
    /// `struct in6_pktinfo` (RFC 3542, section 6.2): the address, the interface.
    V6([u8; 20]),
}

/// What the kernel says about a received datagram, as far as it was asked.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ancillary {
    /// Octets of each datagram of a group but the last (`UDP_GRO`).
    pub(crate) segment: Option<usize>,
    /// Nanoseconds since 1970 (`SCM_TIMESTAMPNS`).
    pub(crate) timestamp: Option<u64>,
    pub(crate) local: Option<Local>,
}

impl Control {
    pub(crate) const EMPTY: Self = Self { octets: [0; SPACE], used: 0 };

    /// Asks for datagrams of this many octets (`UDP_SEGMENT`, udp(7)).
    pub(crate) fn push_segment(&mut self, octets: usize) {
        self.push(libc::SOL_UDP, libc::UDP_SEGMENT, (octets as u16).to_ne_bytes());
    }

    pub(crate) fn push_local(&mut self, local: &Local) {
        match *local {
            Local::V4(info) => self.push(libc::IPPROTO_IP, libc::IP_PKTINFO, info),
            Local::V6(info) => self.push(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, info),
        }
    }

    fn push<const N: usize>(&mut self, level: c_int, kind: c_int, data: [u8; N]) {
        let length = HEADER + N;
        let (size, rest) = self.octets[self.used..].split_at_mut(size_of::<usize>());
        size.copy_from_slice(&length.to_ne_bytes());
        rest[..4].copy_from_slice(&level.to_ne_bytes());
        rest[4..8].copy_from_slice(&kind.to_ne_bytes());
        rest[8..][..N].copy_from_slice(&data);
        self.used += length.next_multiple_of(align_of::<usize>());
    }
}

impl Ancillary {
    #[inline]
    pub(crate) fn read(control: &[u8]) -> Self {
        let mut ancillary = Self::default();
        for (level, kind, data) in messages(control) {
            match (level, kind) {
                (libc::SOL_UDP, libc::UDP_GRO) => {
                    let octets = data.first_chunk().map(|octets| c_int::from_ne_bytes(*octets));
                    ancillary.segment = octets.and_then(|octets| usize::try_from(octets).ok());
                }
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => ancillary.timestamp = nanos(data),
                (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                    ancillary.local = data.first_chunk().copied().map(Local::V4);
                }
                (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                    ancillary.local = data.first_chunk().copied().map(Local::V6);
                }
                _ => {}
            }
        }
        ancillary
    }
}

/// Level, type and data of each message.
fn messages(mut rest: &[u8]) -> impl Iterator<Item = (c_int, c_int, &[u8])> {
    std::iter::from_fn(move || {
        let (length, after) = rest.split_first_chunk()?;
        let (level, after) = after.split_first_chunk()?;
        let length = usize::from_ne_bytes(*length);
        let data = rest.get(HEADER..length)?;
        rest = rest.get(length.next_multiple_of(align_of::<usize>())..).unwrap_or_default();
        Some((c_int::from_ne_bytes(*level), c_int::from_ne_bytes(*after.first_chunk()?), data))
    })
}

/// A `struct timespec` as nanoseconds.
fn nanos(timespec: &[u8]) -> Option<u64> {
    let (seconds, rest) = timespec.split_first_chunk()?;
    let seconds = libc::time_t::from_ne_bytes(*seconds) as u64;
    Some(seconds * 1_000_000_000 + libc::c_long::from_ne_bytes(*rest.first_chunk()?) as u64)
}

impl Local {
    pub(crate) fn address(&self) -> IpAddr {
        match self {
            Self::V4([_, _, _, _, a, b, c, d, ..]) => Ipv4Addr::new(*a, *b, *c, *d).into(),
            Self::V6([address @ .., _, _, _, _]) => Ipv6Addr::from(*address).into(),
        }
    }
}

impl From<IpAddr> for Local {
    /// The kernel chooses the interface.
    fn from(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => {
                let mut info = [0; 12];
                info[4..8].copy_from_slice(&address.octets());
                Self::V4(info)
            }
            IpAddr::V6(address) => {
                let mut info = [0; 20];
                info[..16].copy_from_slice(&address.octets());
                Self::V6(info)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for address in ["192.0.2.1", "2001:db8::1"] {
            let address: IpAddr = address.parse().unwrap();
            let mut control = Control::EMPTY;
            control.push_segment(1452);
            control.push_local(&address.into());
            let written = &control.octets[..control.used];
            // A segment is asked for in two octets; the kernel reports it in four, under another type.
            let kinds: Vec<_> =
                messages(written).map(|(_, kind, data)| (kind, data.len())).collect();
            let info =
                if address.is_ipv4() { (libc::IP_PKTINFO, 12) } else { (libc::IPV6_PKTINFO, 20) };
            assert_eq!(kinds, [(libc::UDP_SEGMENT, 2), info]);
            let read = Ancillary::read(written);
            assert_eq!(read.local.map(|local| local.address()), Some(address));
        }
    }

    #[test]
    fn all_that_the_kernel_says_is_read_in_any_order() {
        let mut control = Control::EMPTY;
        let mut time = [0; 16];
        time[..8].copy_from_slice(&7_u64.to_ne_bytes());
        time[8..].copy_from_slice(&9_u64.to_ne_bytes());
        control.push(libc::SOL_UDP, libc::UDP_GRO, 1200_i32.to_ne_bytes());
        control.push(libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS, time);
        control.push_local(&IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]).into());
        assert_eq!(control.used, SPACE);
        let Ancillary { segment, timestamp, local } = Ancillary::read(&control.octets);
        assert_eq!((segment, timestamp), (Some(1200), Some(7_000_000_009)));
        assert_eq!(local.map(|local| local.address().is_loopback()), Some(true));
        assert!(Ancillary::read(&[]).segment.is_none());
    }

    proptest! {
        #[test]
        fn any_octets_are_read(octets in prop::collection::vec(any::<u8>(), ..SPACE), length in ..64_usize) {
            Ancillary::read(&octets);
            // Lengths that are nearly right.
            let mut control = Control::EMPTY;
            control.push_segment(1);
            control.octets[..size_of::<usize>()].copy_from_slice(&length.to_ne_bytes());
            control.octets[24..24 + octets.len().min(72)].copy_from_slice(&octets[..octets.len().min(72)]);
            Ancillary::read(&control.octets);
        }
    }
}
