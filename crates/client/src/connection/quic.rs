//! A QUIC connection on a connected UDP socket, for DNS over QUIC and HTTP/3.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use dnslab_figures::Tls as Agreed;
use dnslab_transport::quic::{QuicClient, QuicClientSettings, QuicError};
use dnslab_wire::MessageBatch;

use super::udp::{is_about_an_earlier_datagram, is_for_now, refuses_segments};
use super::{
    Connection, ConnectionEnd, Delivery, Draining, Handshake, HandshakeKind, Opened, Route, Scratch,
};
use crate::runtime::{DatagramOptions, DatagramSocket, Inbox as _, Runtime, Watched};
use crate::time::{Nanos, Timeline};
use crate::tls::{ClientTls, TicketStore, certificate_facts};

/// Messages in one batch at most.
const BATCH: usize = 512;

/// How long an acknowledgement may wait for queries to travel with, after answers have come. The protocol
/// allows 25 ms (RFC 9000, section 18.2), but a server may wait for it before it sends on.
const PATIENCE: Nanos = 1_000_000;

/// A handshake that takes longer has failed. With early data nobody else watches how long it takes.
const HANDSHAKE: Nanos = 10_000_000_000;

/// Makes the connection of one protocol on an open socket.
pub(super) type Connect<'a> =
    &'a dyn Fn(&QuicClientSettings, SocketAddr, &str, Instant) -> Result<QuicClient, QuicError>;

/// That the socket was read.
struct Reception {
    at: Nanos,
    /// More datagrams may be there.
    more: bool,
}

pub(crate) struct QuicConnection<D> {
    socket: D,
    quic: QuicClient,
    timeline: Timeline,
    /// The client whose tickets in the store are used.
    client: u32,
    tickets: Arc<TicketStore>,
    verified: bool,
    /// When the first packet was made.
    began: Nanos,
    is_reported: bool,
    opened: Option<Opened>,
    /// When the connection wants to be looked after.
    timer: Option<Nanos>,
    /// Packets that the kernel did not take, and the length of all but the last of them.
    unsent: Vec<u8>,
    segment: usize,
    /// The kernel, or the path, takes groups and cuts them into datagrams.
    segments: bool,
}

impl<D: DatagramSocket> QuicConnection<D> {
    /// Begins to connect, and sends the first packets.
    ///
    /// # Errors
    /// When no socket is to be had, or QUIC cannot be spoken with these settings.
    pub(super) fn open<R: Runtime<Datagrams = D>>(
        tls: &ClientTls,
        runtime: &mut R,
        route: &Route<'_>,
        now: Nanos,
        connect: Connect<'_>,
    ) -> Result<Self, ConnectionEnd> {
        let options = DatagramOptions { stamps: false, probes_mtu: true };
        let socket = runtime.bind(route.path, options).map_err(ConnectionEnd::connect)?;
        tls.enter(route.client);
        let (timeline, name) = (runtime.timeline(), tls.server_name().to_str());
        let settings = tls.quic_settings().map_err(end)?;
        let quic =
            connect(settings, route.path.target, &name, timeline.instant(now)).map_err(end)?;
        let mut connection = Self {
            socket,
            quic,
            timeline,
            client: route.client,
            tickets: Arc::clone(tls.tickets()),
            verified: tls.is_verified(),
            began: now,
            is_reported: false,
            opened: None,
            // If early data is possible, the first packets are made after the client has had its turn.
            timer: Some(now),
            unsent: Vec::new(),
            segment: 0,
            segments: true,
        };
        if !connection.quic.is_open() {
            connection.flush(timeline.instant(now), &mut Vec::new())?;
        }
        Ok(connection)
    }

    fn flush(&mut self, now: Instant, out: &mut Vec<u8>) -> Result<(), ConnectionEnd> {
        while self.unsent.is_empty() {
            out.clear();
            let Some(segment) = self.quic.transmit(now, out) else { break };
            self.offer(out, segment)?;
        }
        self.timer = self.quic.next_timeout().map(|at| self.timeline.nanos_at(at));
        Ok(())
    }

    /// Offers packets to the kernel. Those that it does not take now wait. Those that it will never take are
    /// lost, as on any network, and QUIC sends their data again.
    fn offer(&mut self, octets: &[u8], segment: usize) -> Result<(), ConnectionEnd> {
        let mut rest = octets;
        // An ICMP error about earlier packets takes the place of sending once.
        let mut is_reported = false;
        while !rest.is_empty() {
            let length = if self.segments { rest.len() } else { segment.min(rest.len()) };
            match self.socket.send_segments(&rest[..length], segment) {
                Ok(()) => rest = &rest[length..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.unsent.extend_from_slice(rest);
                    self.segment = segment;
                    return Ok(());
                }
                Err(error) if is_about_earlier_packets(&error) && !is_reported => {
                    is_reported = true;
                }
                Err(error) if is_about_an_earlier_datagram(&error) || is_for_now(&error) => {
                    return Ok(());
                }
                // The path may not take a probe for a larger path MTU.
                Err(error) if error.raw_os_error() == Some(libc::EMSGSIZE) && length <= segment => {
                    return Ok(());
                }
                Err(error) if self.segments && refuses_segments(&error) => self.segments = false,
                Err(error) => return Err(ConnectionEnd::Broken(error)),
            }
        }
        Ok(())
    }

    fn flush_unsent(&mut self) -> Result<(), ConnectionEnd> {
        let unsent = std::mem::take(&mut self.unsent);
        self.offer(&unsent, self.segment)
    }

    /// Takes the datagrams that have come.
    fn receive<R: Runtime<Datagrams = D>>(
        &mut self,
        runtime: &R,
        scratch: &mut Scratch<R>,
    ) -> Result<Reception, ConnectionEnd> {
        let received = self.socket.receive(&mut scratch.inbox);
        // Not earlier: what came last must not seem to have come earlier than it did.
        let at = runtime.now();
        let more = match received {
            Ok(more) => more,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Ok(Reception { at, more: false });
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                return Ok(Reception { at, more: true });
            }
            // Nobody listens there. If it stays so, the handshake's time-out will say so.
            Err(error) if is_about_earlier_packets(&error) => {
                return Ok(Reception { at, more: true });
            }
            Err(error) => return Err(ConnectionEnd::Broken(error)),
        };
        self.tickets.enter(self.client);
        let now = self.timeline.instant(at);
        for group in scratch.inbox.groups() {
            self.quic.receive(now, group.octets, group.segment);
        }
        Ok(Reception { at, more })
    }

    fn note_handshake(&mut self, now: Nanos) {
        let Some(handshake) = self.quic.handshake() else { return };
        self.is_reported = true;
        let kind = match (handshake.resumed, handshake.early_data) {
            (_, true) => HandshakeKind::EarlyData,
            (true, false) => HandshakeKind::Resumed,
            (false, false) => HandshakeKind::Full,
        };
        let agreed = Agreed {
            version: "TLSv1.3".to_owned(),
            cipher_suite: handshake.cipher_suite.clone(),
            verified: self.verified,
            group: handshake.group.clone(),
            certificate: certificate_facts(&handshake.certificates),
        };
        let duration = now.saturating_sub(self.began);
        let handshake = Some(Handshake { duration, kind, agreed });
        self.opened = Some(Opened { connect: None, round_trip: None, handshake });
    }
}

/// Also one that says that packets were too large: QUIC finds that out itself when they are not acknowledged.
fn is_about_earlier_packets(error: &io::Error) -> bool {
    is_about_an_earlier_datagram(error) || error.raw_os_error() == Some(libc::EMSGSIZE)
}

fn end(error: QuicError) -> ConnectionEnd {
    if let Some(alert) = error.alert() {
        return rustls::Error::AlertReceived(alert.into()).into();
    }
    match error {
        QuicError::Closed => ConnectionEnd::Closed,
        QuicError::Silent => ConnectionEnd::Idle,
        other => ConnectionEnd::Protocol(other.to_string()),
    }
}

impl<R: Runtime> Connection<R> for QuicConnection<R::Datagrams> {
    fn socket(&self) -> Watched<'_, R> {
        Watched::Datagrams(&self.socket)
    }

    fn is_open(&self) -> bool {
        self.quic.is_open()
    }

    fn is_draining(&self) -> bool {
        self.quic.is_draining()
    }

    fn why_draining(&self) -> Draining {
        match (self.quic.is_silent(), self.quic.is_used_up()) {
            (true, _) => Draining::Silent,
            (false, true) => Draining::UsedUp,
            (false, false) => Draining::Announced(None),
        }
    }

    fn wants_to_write(&self) -> bool {
        !self.unsent.is_empty()
    }

    fn batch_limit(&self) -> usize {
        BATCH
    }

    fn send(
        &mut self,
        runtime: &R,
        outbox: &MessageBatch,
        scratch: &mut Scratch<R>,
    ) -> Result<usize, ConnectionEnd> {
        // What the kernel does not take waits with the client, where it can time out.
        if !self.unsent.is_empty() {
            return Ok(0);
        }
        let mut taken = 0;
        for message in outbox.messages() {
            let id = u16::from_be_bytes([message[0], message[1]]);
            if !self.quic.send(id, message) {
                break;
            }
            taken += 1;
        }
        let now = self.timeline.instant(runtime.now());
        self.flush(now, &mut scratch.write)?;
        Ok(taken)
    }

    fn advance(
        &mut self,
        runtime: &R,
        scratch: &mut Scratch<R>,
        deliver: &mut dyn FnMut(Delivery<'_>),
    ) -> Result<bool, ConnectionEnd> {
        self.flush_unsent()?;
        let Reception { at, more } = self.receive(runtime, scratch)?;
        let now = self.timeline.instant(at);
        if self.quic.next_timeout().is_some_and(|due| due <= now) {
            self.quic.handle_timeout(now);
        }
        let mut has_delivered = false;
        let polled = self.quic.poll(now, &mut |exchange| {
            has_delivered = true;
            deliver(Delivery::of(exchange, at));
        });
        let was_established = self.is_reported;
        if !was_established {
            self.note_handshake(at);
            if !self.is_reported && at.saturating_sub(self.began) > HANDSHAKE {
                return Err(ConnectionEnd::Connect(io::ErrorKind::TimedOut.into()));
            }
        }
        if polled.is_ok() && has_delivered && was_established {
            // Queries usually follow answers, and acknowledgements go with them.
            let due = self.quic.next_timeout().map(|due| self.timeline.nanos_at(due));
            self.timer = Some(due.unwrap_or(Nanos::MAX).min(at + PATIENCE));
        } else {
            // Also after the end, so that the server learns of it.
            self.flush(now, &mut scratch.write)?;
        }
        polled.map_err(end)?;
        Ok(more)
    }

    fn next_timer(&self) -> Option<Nanos> {
        self.timer
    }

    fn forget(&mut self, now: Nanos, id: u16) {
        self.quic.give_up(id);
        let soon = now + PATIENCE;
        self.timer = Some(self.timer.map_or(soon, |timer| timer.min(soon)));
    }

    fn close(&mut self, now: Nanos, scratch: &mut Scratch<R>) {
        let now = self.timeline.instant(now);
        self.quic.close(now);
        // The connection is dropped afterwards, whatever the kernel takes.
        self.flush(now, &mut scratch.write).ok();
    }

    fn take_opened(&mut self) -> Option<Opened> {
        self.opened.take()
    }

    fn send_path(&self) -> &'static str {
        if self.segments {
            "QUIC packets with UDP_SEGMENT and UDP_GRO; a connection per client"
        } else {
            "QUIC packets, one per system call; a connection per client"
        }
    }

    fn drops(&self) -> u64 {
        self.socket.drops()
    }
}
