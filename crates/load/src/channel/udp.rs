//! Plain UDP: a connected socket per client, datagrams in batches.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};

use socket2::{Domain, Protocol, Socket, Type};

use super::{Channel, ChannelEnd, Delivery, Opened, Received, Route, Scratch};
use crate::ReceiveTime;
use crate::clock::{Clock, Stamps};
use crate::sys::{self, Outbox};

/// Socket buffers asked for, octets. The kernel grants at most `net.core.rmem_max`, often 208 KiB;
/// a burst of answers that does not fit is counted as dropped.
const SOCKET_BUFFER: usize = 4 * 1024 * 1024;

pub(crate) struct UdpChannel {
    socket: Socket,
    opened: Option<Opened>,
    blocked: bool,
    /// So many datagrams form a group at most, which the kernel cuts for us: 1 for none.
    longest: usize,
}

impl UdpChannel {
    pub(crate) fn open(route: &Route<'_>) -> Result<Self, ChannelEnd> {
        let socket = connected_socket(route)?;
        let opened = Some(Opened { connect: None, round_trip: None, handshake: None });
        if route.receive_time == ReceiveTime::Kernel {
            // Where the kernel gives no stamps, our clock does.
            sys::enable_stamps(socket.as_fd());
        }
        Ok(Self { socket, opened, blocked: false, longest: LONGEST[0] })
    }
}

/// A socket that is connected to the server, with large buffers, for groups of datagrams.
///
/// # Errors
/// When none is to be had, or the server cannot be reached from here.
pub(super) fn connected_socket(route: &Route<'_>) -> Result<Socket, ChannelEnd> {
    let socket = (|| {
        let family = Domain::for_address(route.target);
        let socket = Socket::new(family, Type::DGRAM.nonblocking(), Some(Protocol::UDP))?;
        // Refusal is no error: the kernel grants what it allows, and drops are counted.
        socket.set_recv_buffer_size(SOCKET_BUFFER).ok();
        socket.set_send_buffer_size(SOCKET_BUFFER).ok();
        socket.bind(&route.source().into())?;
        socket.connect(&route.target.into())?;
        Ok(socket)
    })()
    .map_err(ChannelEnd::connect)?;
    // Where the kernel does not know groups, datagrams come one by one.
    sys::enable_receive_groups(socket.as_fd());
    Ok(socket)
}

impl UdpChannel {
    /// Falls back to smaller groups, and in the end to none.
    fn group_less(&mut self) {
        let smaller = LONGEST.into_iter().find(|longest| *longest < self.longest);
        self.longest = smaller.unwrap_or(1);
    }
}

/// An ICMP error about an earlier datagram, which the kernel reports at the next call. The query
/// it was about will time out; this call's datagrams are not concerned.
pub(super) fn is_about_an_earlier_datagram(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, HostUnreachable, NetworkUnreachable};
    matches!(error.kind(), ConnectionRefused | HostUnreachable | NetworkUnreachable)
}

/// There is no way to the server, says the host itself or a router.
fn is_unreachable(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable)
}

/// The device's queue is full: the socket stays good, and the query may go out later. Where a packet
/// filter or a full connection table forbids a datagram (`EPERM`), the socket would be writable all
/// the while; there the channel ends, and its client comes back after a pause.
pub(super) fn is_for_now(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENOBUFS)
}

/// How many datagrams are grouped: what Linux cuts since 6.9, what it cut before, none.
const LONGEST: [usize; 3] = [sys::BATCH, 64, 1];

/// A kernel before 4.18 does not know segments (`EINVAL`), a device without checksum offload cannot
/// make them (`EIO`), and a segment must fit the path (`EMSGSIZE`).
pub(super) fn refuses_segments(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EIO | libc::EMSGSIZE))
}

impl Channel for UdpChannel {
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn is_open(&self) -> bool {
        true
    }

    fn wants_to_write(&self) -> bool {
        self.blocked
    }

    fn batch_limit(&self) -> usize {
        sys::BATCH
    }

    fn send(&mut self, outbox: &Outbox, _: &mut Scratch) -> Result<usize, ChannelEnd> {
        self.blocked = false;
        let mut taken = 0;
        // A server that is not there has every datagram answered by an ICMP error, which the next
        // call reports in place of sending: one more call per message at the most.
        let mut calls_left = 2 * outbox.len();
        while taken < outbox.len() && calls_left > 0 {
            calls_left -= 1;
            match sys::send_batch(self.socket.as_fd(), outbox, taken, self.longest) {
                Ok(count) => taken += count,
                Err(error) if is_about_an_earlier_datagram(&error) => {
                    // One about this datagram, for want of a route, comes again at every call.
                    if calls_left == 0 && taken == 0 && is_unreachable(&error) {
                        return Err(ChannelEnd::Broken(error));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if is_for_now(&error) => break,
                Err(error) if self.longest > 1 && refuses_segments(&error) => self.group_less(),
                Err(error) if taken == 0 => return Err(ChannelEnd::Broken(error)),
                Err(_) => break,
            }
        }
        self.blocked = taken < outbox.len();
        Ok(taken)
    }

    fn advance(
        &mut self,
        clock: &Clock,
        scratch: &mut Scratch,
        deliver: &mut dyn FnMut(Delivery<'_>),
    ) -> Result<bool, ChannelEnd> {
        self.blocked = false;
        let (slots, more) = match sys::receive_batch(self.socket.as_fd(), &mut scratch.inbox) {
            Ok(received) => received,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(true),
            Err(error) if is_about_an_earlier_datagram(&error) => return Ok(true),
            Err(error) => return Err(ChannelEnd::Broken(error)),
        };
        let now = clock.now();
        let mut stamps = Stamps::default();
        for (octets, stamp) in scratch.inbox.stamped(slots) {
            let at = stamp.map_or(now, |stamp| stamps.on_timeline(clock, now, stamp));
            deliver(Delivery::Message(Received { octets, at }));
        }
        Ok(more)
    }

    fn take_opened(&mut self) -> Option<Opened> {
        self.opened.take()
    }

    fn send_path(&self) -> &'static str {
        if self.longest > 1 {
            "sendmmsg with UDP_SEGMENT, recvmmsg with UDP_GRO; a connected socket per client"
        } else {
            "sendmmsg and recvmmsg; a connected socket per client"
        }
    }

    fn drops(&self) -> u64 {
        sys::socket_drops(self.socket.as_fd())
    }
}
