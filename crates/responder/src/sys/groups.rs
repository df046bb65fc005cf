//! Groups of datagrams of one length, each received or sent by one system call: `UDP_GRO` and
//! `UDP_SEGMENT` (udp(7)). QUIC fills them, with packets as long as the path takes.

use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use socket2::{SockAddr, SockAddrStorage};

/// Groups received in one call at most.
pub(crate) const SLOTS: usize = 16;

/// Room for one group, octets: the largest that there is. Only pages that are written to cost
/// memory.
const SLOT: usize = 64 * 1024;

/// Room for the control messages `IP_PKTINFO` or `IPV6_PKTINFO` (16 + 20 octets at most, padded)
/// and `UDP_GRO` or `UDP_SEGMENT` (16 + 4, padded).
const CONTROL_SPACE: usize = 64;

/// Control messages, aligned as their headers want.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control([u8; CONTROL_SPACE]);

/// Buffers to receive into; one per worker, for each of its sockets in turn.
pub(crate) struct GroupInbox {
    /// The slots end to end.
    octets: Box<[u8]>,
    /// What is in the filled slots.
    filled: Vec<Filled>,
}

/// What is in a slot.
#[derive(Clone, Copy)]
struct Filled {
    /// Octets.
    length: usize,
    /// Octets of each datagram in it.
    segment: usize,
    /// Whom it came from.
    peer: SocketAddr,
    /// The local address that it came to, if the socket reports it.
    local: Option<IpAddr>,
}

/// A received group.
#[derive(Clone, Copy)]
pub(crate) struct Group<'a> {
    /// The datagrams end to end.
    pub(crate) octets: &'a [u8],
    /// Octets of each but the last, which may be shorter.
    pub(crate) segment: usize,
    /// Whom it came from.
    pub(crate) peer: SocketAddr,
    /// The local address that it came to, if the socket reports it.
    pub(crate) local: Option<IpAddr>,
}

impl GroupInbox {
    /// Makes the buffers, 1 MiB of address space.
    pub(crate) fn new() -> Self {
        Self { octets: vec![0; SLOTS * SLOT].into_boxed_slice(), filled: Vec::new() }
    }

    /// The groups that the last call of [`GroupInbox::receive`] brought.
    pub(crate) fn groups(&self) -> impl Iterator<Item = Group<'_>> {
        self.octets.chunks(SLOT).zip(&self.filled).map(|(octets, filled)| Group {
            octets: &octets[..filled.length],
            segment: filled.segment,
            peer: filled.peer,
            local: filled.local,
        })
    }

    /// Receives up to [`SLOTS`] groups without waiting and returns how many came.
    ///
    /// # Errors
    /// Of the kind `WouldBlock` when there is none; otherwise a fault of the socket.
    pub(crate) fn receive(&mut self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        self.filled.clear();
        let mut controls = [Control([0; CONTROL_SPACE]); SLOTS];
        let mut peers: [SockAddrStorage; SLOTS] =
            std::array::from_fn(|_| SockAddrStorage::zeroed());
        let mut slots = self.octets.chunks_mut(SLOT);
        let mut vectors: [libc::iovec; SLOTS] = std::array::from_fn(|_| {
            let slot = slots.next().expect("there are as many slots as vectors");
            libc::iovec { iov_base: slot.as_mut_ptr().cast(), iov_len: slot.len() }
        });
        let (vectors, controls) = (vectors.as_mut_ptr(), controls.as_mut_ptr());
        let mut headers: [libc::mmsghdr; SLOTS] = std::array::from_fn(|slot| libc::mmsghdr {
            msg_hdr: libc::msghdr {
                msg_name: (&raw mut peers[slot]).cast(),
                msg_namelen: size_of::<SockAddrStorage>() as libc::socklen_t,
                // In bounds: all arrays have as many places.
                msg_iov: vectors.wrapping_add(slot),
                msg_iovlen: 1,
                msg_control: controls.wrapping_add(slot).cast(),
                msg_controllen: CONTROL_SPACE,
                msg_flags: 0,
            },
            msg_len: 0,
        });
        // SAFETY: every header points to buffers that live in `self` or on this stack until after
        // the call, each with its own length, and no two share octets.
        let count = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                headers.as_mut_ptr(),
                SLOTS as libc::c_uint,
                libc::MSG_DONTWAIT as _,
                ptr::null_mut(),
            )
        };
        let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
        for (header, peer) in headers[..count].iter().zip(peers) {
            let length = (header.msg_len as usize).min(SLOT);
            // SAFETY: the kernel wrote an address of this length, of the socket's own family.
            let peer = unsafe { SockAddr::new(peer, header.msg_hdr.msg_namelen) };
            let peer = peer.as_socket().unwrap_or((Ipv4Addr::UNSPECIFIED, 0).into());
            let (segment, local) = read_control(&header.msg_hdr);
            self.filled.push(Filled { length, segment: segment.unwrap_or(length), peer, local });
        }
        Ok(count)
    }
}

/// The length of the datagrams in a group, and the local address, as far as the kernel says.
fn read_control(header: &libc::msghdr) -> (Option<usize>, Option<IpAddr>) {
    let (mut segment, mut local) = (None, None);
    // SAFETY: the kernel has filled the control buffer that the header points to; the macros stay
    // inside of it, and the data of each message has the type that goes with its kind.
    unsafe {
        let mut message = libc::CMSG_FIRSTHDR(header);
        while !message.is_null() {
            let data = libc::CMSG_DATA(message);
            match ((*message).cmsg_level, (*message).cmsg_type) {
                (libc::SOL_UDP, libc::UDP_GRO) => {
                    let value = data.cast::<libc::c_int>().read_unaligned();
                    segment = usize::try_from(value).ok();
                }
                (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                    let info = data.cast::<libc::in_pktinfo>().read_unaligned();
                    local = Some(Ipv4Addr::from(u32::from_be(info.ipi_spec_dst.s_addr)).into());
                }
                (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                    let info = data.cast::<libc::in6_pktinfo>().read_unaligned();
                    local = Some(Ipv6Addr::from(info.ipi6_addr.s6_addr).into());
                }
                _ => {}
            }
            message = libc::CMSG_NXTHDR(header, message);
        }
    }
    (segment, local)
}

/// Asks the kernel to hand over groups of datagrams. Where it does not know them (before Linux
/// 5.0), datagrams come one by one.
pub(crate) fn enable_receive_groups(socket: BorrowedFd<'_>) {
    let (on, length) = (1 as libc::c_int, size_of::<libc::c_int>() as libc::socklen_t);
    let on: *const libc::c_int = &on;
    // SAFETY: the pointer and length describe a live `int`.
    let _ = unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_UDP, libc::UDP_GRO, on.cast(), length)
    };
}

/// Sends octets to `peer`, cut into datagrams of `segment` octets, from the local address `source`
/// if it is stated.
///
/// # Errors
/// As sendmsg(2). `EIO` and `EINVAL` say that the device or the kernel cannot cut: then send the
/// datagrams singly.
pub(crate) fn send_group(
    socket: BorrowedFd<'_>,
    octets: &[u8],
    segment: usize,
    peer: SocketAddr,
    source: Option<IpAddr>,
) -> io::Result<()> {
    let peer = SockAddr::from(peer);
    let mut vector =
        libc::iovec { iov_base: octets.as_ptr().cast_mut().cast(), iov_len: octets.len() };
    let mut control = Control([0; CONTROL_SPACE]);
    // SAFETY: `msghdr` is a C structure of integers and pointers, for which zero is a value.
    let mut header: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    header.msg_name = peer.as_ptr().cast_mut().cast();
    header.msg_namelen = peer.len();
    header.msg_iov = &raw mut vector;
    header.msg_iovlen = 1;
    header.msg_control = (&raw mut control).cast();
    header.msg_controllen = CONTROL_SPACE;
    let mut used = 0;
    if octets.len() > segment {
        used += push_control(&header, used, libc::SOL_UDP, libc::UDP_SEGMENT, segment as u16);
    }
    match source {
        Some(IpAddr::V4(source)) => {
            let address = libc::in_addr { s_addr: u32::from(source).to_be() };
            let any = libc::in_addr { s_addr: 0 };
            let info = libc::in_pktinfo { ipi_ifindex: 0, ipi_spec_dst: address, ipi_addr: any };
            used += push_control(&header, used, libc::IPPROTO_IP, libc::IP_PKTINFO, info);
        }
        Some(IpAddr::V6(source)) => {
            let address = libc::in6_addr { s6_addr: source.octets() };
            let info = libc::in6_pktinfo { ipi6_addr: address, ipi6_ifindex: 0 };
            used += push_control(&header, used, libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, info);
        }
        None => {}
    }
    header.msg_controllen = used;
    if used == 0 {
        header.msg_control = ptr::null_mut();
    }
    // SAFETY: the header points to the peer's address, the octets and the control messages, which
    // outlive the call; the kernel only reads them.
    let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const header, libc::MSG_DONTWAIT) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Writes one control message at `used` octets from the start of the header's control buffer, which
/// has room for two; returns its length with padding.
fn push_control<T>(
    header: &libc::msghdr,
    used: usize,
    level: libc::c_int,
    kind: libc::c_int,
    value: T,
) -> usize {
    let size = size_of::<T>() as libc::c_uint;
    // SAFETY: the buffer has `CONTROL_SPACE` octets, is aligned, and `used` is 0 or the length of
    // one message with its padding; two messages of the sizes used here fit.
    unsafe {
        let message: *mut libc::cmsghdr = header.msg_control.byte_add(used).cast();
        (*message).cmsg_level = level;
        (*message).cmsg_type = kind;
        (*message).cmsg_len = libc::CMSG_LEN(size) as usize;
        libc::CMSG_DATA(message).cast::<T>().write_unaligned(value);
        libc::CMSG_SPACE(size) as usize
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd;

    use super::*;

    /// What is sent as one group arrives, cut and put together as it may be, with both addresses.
    #[track_caller]
    fn check(server: &str, length: usize, segment: usize) {
        let server = UdpSocket::bind(server).unwrap();
        let client = UdpSocket::bind((server.local_addr().unwrap().ip(), 0)).unwrap();
        enable_receive_groups(server.as_fd());
        let address = server.local_addr().unwrap();
        super::super::report_local_address(server.as_fd(), address.is_ipv6()).unwrap();
        let octets: Vec<u8> = (0..length).map(|number| (number / segment) as u8).collect();
        send_group(client.as_fd(), &octets, segment, address, Some(address.ip())).unwrap();
        let (mut inbox, mut seen) = (GroupInbox::new(), Vec::new());
        while seen.len() < length.div_ceil(segment) {
            inbox.receive(server.as_fd()).unwrap();
            for group in inbox.groups() {
                assert_eq!(group.peer, client.local_addr().unwrap());
                assert_eq!(group.local, Some(address.ip()));
                seen.extend(group.octets.chunks(group.segment).map(<[u8]>::to_vec));
            }
        }
        assert_eq!(seen, octets.chunks(segment).map(<[u8]>::to_vec).collect::<Vec<_>>());
        assert_eq!(inbox.receive(server.as_fd()).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn groups_arrive_whole() {
        for server in ["127.0.0.1:0", "[::1]:0"] {
            check(server, 30, 30);
            check(server, 1200 * 20, 1200);
            check(server, 1452 * 40 + 17, 1452);
        }
    }
}
