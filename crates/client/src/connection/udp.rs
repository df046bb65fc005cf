//! Plain UDP: a connected socket per client, datagrams in batches.

use std::io;

use dnslab_wire::{MAX_BATCH, MessageBatch, datagrams};

use super::{Connection, ConnectionEnd, Delivery, Opened, Received, Route, Scratch};
use crate::runtime::{DatagramOptions, DatagramSocket, Inbox as _, Runtime, Stamps, Watched};
use crate::time::Nanos;
use dnslab_settings::ReceiveTime;

pub(crate) struct UdpConnection<D> {
    socket: D,
    opened: Option<Opened>,
    blocked: bool,
    /// Datagrams in one group at most, which the kernel cuts for us; 1 for no groups.
    max_segments: usize,
}

impl<D: DatagramSocket> UdpConnection<D> {
    pub(crate) fn open<R: Runtime<Datagrams = D>>(
        runtime: &mut R,
        route: &Route<'_>,
    ) -> Result<Self, ConnectionEnd> {
        let stamps = route.receive_time == ReceiveTime::Kernel;
        let options = DatagramOptions { stamps, probes_mtu: false };
        let socket = runtime.bind(route.path, options).map_err(ConnectionEnd::connect)?;
        let opened = Some(Opened { connect: None, round_trip: None, handshake: None });
        Ok(Self { socket, opened, blocked: false, max_segments: MAX_SEGMENTS[0] })
    }

    /// Falls back to smaller groups, and in the end to none.
    fn group_less(&mut self) {
        let smaller =
            MAX_SEGMENTS.into_iter().find(|max_segments| *max_segments < self.max_segments);
        self.max_segments = smaller.unwrap_or(1);
    }
}

/// An ICMP error about an earlier datagram, which the kernel reports at the next call. Its query will time
/// out. The datagrams of this call are not concerned.
pub(crate) fn is_about_an_earlier_datagram(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, HostUnreachable, NetworkUnreachable};
    matches!(error.kind(), ConnectionRefused | HostUnreachable | NetworkUnreachable)
}

/// The host itself or a router says that there is no way to the server.
fn is_unreachable(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable)
}

/// The device's queue is full: the socket stays good, and the query may go out later. If a packet filter or a
/// full connection table forbids a datagram (`EPERM`), the socket would stay writable all the time. Then the
/// connection ends, and its client comes back after a pause.
pub(crate) fn is_for_now(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENOBUFS)
}

/// Datagrams in a group: what Linux cuts since 6.9, what it cut before, none.
const MAX_SEGMENTS: [usize; 3] = [MAX_BATCH, 64, 1];

/// The kernel makes no groups (`EINVAL`), or the device does not (`EIO`, without checksum offload), or a
/// segment does not fit the path (`EMSGSIZE`).
pub(super) fn refuses_segments(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EIO | libc::EMSGSIZE))
}

impl<R: Runtime> Connection<R> for UdpConnection<R::Datagrams> {
    fn socket(&self) -> Watched<'_, R> {
        Watched::Datagrams(&self.socket)
    }

    fn is_open(&self) -> bool {
        true
    }

    fn wants_to_write(&self) -> bool {
        self.blocked
    }

    fn batch_limit(&self) -> usize {
        MAX_BATCH
    }

    fn send(
        &mut self,
        _: &R,
        outbox: &MessageBatch,
        _: &mut Scratch<R>,
    ) -> Result<usize, ConnectionEnd> {
        self.blocked = false;
        let mut taken = 0;
        // If no server is there, every datagram is answered by an ICMP error, which the next call reports
        // instead of sending. So there is at most one more call per message.
        let mut calls_left = 2 * outbox.len();
        while taken < outbox.len() && calls_left > 0 {
            calls_left -= 1;
            match self.socket.send_batch(outbox, taken, self.max_segments) {
                Ok(count) => taken += count,
                Err(error) if is_about_an_earlier_datagram(&error) => {
                    // An error about this datagram, for want of a route, comes again at every call.
                    if calls_left == 0 && taken == 0 && is_unreachable(&error) {
                        return Err(ConnectionEnd::Broken(error));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if is_for_now(&error) => break,
                Err(error) if self.max_segments > 1 && refuses_segments(&error) => {
                    self.group_less()
                }
                Err(error) if taken == 0 => return Err(ConnectionEnd::Broken(error)),
                Err(_) => break,
            }
        }
        self.blocked = taken < outbox.len();
        Ok(taken)
    }

    fn advance(
        &mut self,
        runtime: &R,
        scratch: &mut Scratch<R>,
        deliver: &mut dyn FnMut(Delivery<'_>),
    ) -> Result<bool, ConnectionEnd> {
        self.blocked = false;
        let more = match self.socket.receive(&mut scratch.inbox) {
            Ok(more) => more,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(true),
            Err(error) if is_about_an_earlier_datagram(&error) => return Ok(true),
            Err(error) => return Err(ConnectionEnd::Broken(error)),
        };
        let now: Nanos = runtime.now();
        let mut stamps = Stamps::default();
        for group in scratch.inbox.groups() {
            let at = group.timestamp.map_or(now, |stamp| stamps.on_timeline(runtime, now, stamp));
            for octets in datagrams(group.octets, group.segment) {
                deliver(Delivery::Message(Received { octets, at }));
            }
        }
        Ok(more)
    }

    fn take_opened(&mut self) -> Option<Opened> {
        self.opened.take()
    }

    fn send_path(&self) -> &'static str {
        if self.max_segments > 1 {
            "sendmmsg with UDP_SEGMENT, recvmmsg with UDP_GRO; a connected socket per client"
        } else {
            "sendmmsg and recvmmsg; a connected socket per client"
        }
    }

    fn drops(&self) -> u64 {
        self.socket.drops()
    }
}
