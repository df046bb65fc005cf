//! DNS over QUIC and over HTTP/3: a QUIC end point on a UDP socket.
//!
//! Each worker has a socket of its own. The kernel spreads packets over them by a hash of addresses
//! and ports (`SO_REUSEPORT`, socket(7)), so all packets of a connection come to one worker for as
//! long as the client keeps its address and port. Connections therefore do not migrate (RFC 9000,
//! section 9), and the server says so in its transport parameters.

use std::io;
use std::net::UdpSocket;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use dnslab_socket::{
    MAX_GROUP, Peer, ReceiveBatch, receive_drops, refuses_segmentation, send_segments,
};
use dnslab_transport::quic::{Outgoing, QuicServer, QuicServerSettings, Reaction, RequestId};
use dnslab_wire::Transport;

use super::delayed::Destination;
use super::respond::{self, Responder};
use super::tls::TlsConfigs;
use super::{ResponderError, clock};
use crate::counters::Counters;

/// Groups of packets that one system call receives at most.
const SLOTS: usize = 16;

/// Reads of one socket before the others, and the delay queue, have their turn.
const ROUNDS: usize = 4;

/// A worker's sockets on which QUIC is spoken.
pub(super) struct QuicSockets {
    /// The sockets.
    sockets: Vec<QuicSocket>,
    /// Buffers that they receive into in turn.
    inbox: ReceiveBatch,
    /// Sockets with held answers that wait to be sent.
    touched: Vec<u32>,
    /// One instant, and the same in nanoseconds of the monotonic clock.
    origin: (Instant, u64),
}

impl QuicSockets {
    /// Takes bound sockets over, each with what is spoken on it.
    pub(super) fn new(sockets: Vec<(UdpSocket, Transport)>, settings: &QuicSettings) -> Self {
        let with_server = |(number, (socket, transport))| {
            QuicSocket::new(socket, number, transport, settings.of(transport))
        };
        Self {
            sockets: (0..).zip(sockets).map(with_server).collect(),
            inbox: ReceiveBatch::unconnected(SLOTS, MAX_GROUP),
            touched: Vec::new(),
            origin: (clock::now(), clock::now_ns()),
        }
    }

    /// The sockets, to be watched.
    pub(super) fn iter(&self) -> impl Iterator<Item = &QuicSocket> {
        self.sockets.iter()
    }

    /// When [`QuicSockets::on_timer`] is to be called next, in nanoseconds of the monotonic clock.
    pub(super) fn next_due_ns(&self) -> Option<u64> {
        let due = self.sockets.iter().filter_map(|socket| socket.server.next_timeout()).min()?;
        let since = due.saturating_duration_since(self.origin.0).as_nanos();
        Some(self.origin.1.saturating_add(u64::try_from(since).unwrap_or(u64::MAX)))
    }

    /// Does what was to be done by now.
    pub(super) fn on_timer(&mut self, responder: &mut Responder) {
        if self.sockets.iter().all(|socket| socket.server.next_timeout().is_none()) {
            return;
        }
        let now = clock::now();
        for socket in &mut self.sockets {
            if socket.server.next_timeout().is_some_and(|due| due <= now) {
                socket.server.handle_timeouts(now);
                socket.work(now, responder);
            }
        }
    }

    /// Reads what has queued up on the socket of this number, and answers it.
    pub(super) fn serve(&mut self, number: u32, responder: &mut Responder) {
        self.sockets[number as usize].serve(&mut self.inbox, responder);
    }

    /// Queues a held answer whose time has come; false if nobody wants it any more. Call
    /// [`QuicSockets::flush`] after the last.
    pub(super) fn push_held(&mut self, number: u32, request: RequestId, message: &[u8]) -> bool {
        if !self.touched.contains(&number) {
            self.touched.push(number);
        }
        self.sockets[number as usize].server.answer(request, message)
    }

    /// Sends the held answers that were queued.
    pub(super) fn flush(&mut self, responder: &mut Responder) {
        if self.touched.is_empty() {
            return;
        }
        let now = clock::now();
        for number in self.touched.drain(..) {
            self.sockets[number as usize].work(now, responder);
        }
    }

    /// Octets of memory that clients make all sockets hold.
    pub(super) fn memory(&self) -> usize {
        self.sockets.iter().map(|socket| socket.server.memory()).sum()
    }

    /// All connections by the numbers of their sockets and their places there, with the memory that
    /// each holds.
    pub(super) fn holders(&self) -> impl Iterator<Item = (usize, (u32, u32))> {
        self.sockets.iter().flat_map(|socket| {
            let number = socket.number;
            socket.server.holders().map(move |(memory, place)| (memory, (number, place)))
        })
    }

    /// Ends a connection for the memory that it holds.
    pub(super) fn cut(&mut self, (number, place): (u32, u32), counters: &mut Counters) {
        let (socket, now) = (&mut self.sockets[number as usize], clock::now());
        socket.server.cut(now, place);
        socket.count_ended(counters);
        socket.send(now);
    }

    /// Tells all clients that the server ends.
    pub(super) fn close(&mut self) {
        for socket in &mut self.sockets {
            socket.server.close(clock::now());
            socket.send(clock::now());
        }
    }

    /// Adds what happened to these counters.
    pub(super) fn count(&self, counters: &mut Counters) {
        for socket in &self.sockets {
            let facts = socket.server.facts();
            let connections = &mut counters.connections;
            connections.accepted += facts.accepted;
            connections.full_handshakes += facts.full_handshakes;
            connections.resumed_handshakes += facts.resumed_handshakes;
            connections.failed_handshakes += facts.failed_handshakes;
            connections.timed_out += facts.timed_out;
            connections.closed_by_quota += facts.closed_by_quota;
            connections.closed_by_client += facts.closed_by_client;
            connections.broken += facts.broken;
            for queries in socket.server.open() {
                connections.open += 1;
                connections.queries.record(queries);
            }
            counters.receive_drops += receive_drops(socket.as_fd());
        }
    }
}

/// What is alike on all workers, as far as the protocol is spoken.
pub(super) struct QuicSettings {
    /// Of DNS over QUIC.
    doq: Option<QuicServerSettings>,
    /// Of DNS over HTTP/3.
    doh3: Option<QuicServerSettings>,
}

/// What bounds a worker's connections.
#[derive(Clone, Copy)]
pub(super) struct QuicLimits {
    /// A connection on which nothing moves for so long is closed.
    pub(super) idle_timeout: Duration,
    /// Connections of one worker at one socket.
    pub(super) connections_per_worker: usize,
    /// A connection that has carried so many queries is closed.
    pub(super) queries_per_connection: Option<NonZeroU64>,
}

impl QuicSettings {
    /// Settings of what has TLS settings; `path` is where DNS over HTTPS is served.
    ///
    /// # Errors
    /// When the TLS settings cannot be used for QUIC.
    pub(super) fn new(
        tls: &TlsConfigs,
        path: &str,
        limits: QuicLimits,
    ) -> Result<Self, ResponderError> {
        let limited = |mut settings: QuicServerSettings| {
            settings.idle_timeout = limits.idle_timeout;
            settings.connections = limits.connections_per_worker;
            settings.queries_per_connection = limits.queries_per_connection;
            settings
        };
        let doq = tls.of(Transport::Doq).map(QuicServerSettings::doq).transpose()?;
        let doh3 = tls.of(Transport::Doh3).map(|tls| QuicServerSettings::http3(tls, path));
        Ok(Self { doq: doq.map(limited), doh3: doh3.transpose()?.map(limited) })
    }

    /// The settings of one of the two.
    fn of(&self, transport: Transport) -> &QuicServerSettings {
        let settings = if transport == Transport::Doq { &self.doq } else { &self.doh3 };
        settings.as_ref().expect("a socket is bound only with settings for what is spoken on it")
    }
}

/// A UDP socket on which QUIC is spoken.
pub(super) struct QuicSocket {
    /// The socket, non-blocking.
    socket: UdpSocket,
    /// Its number among the worker's.
    number: u32,
    /// DoQ or DoH3.
    transport: Transport,
    /// The connections.
    server: QuicServer,
    /// Packets on their way to the kernel.
    out: Vec<u8>,
    /// The kernel cuts groups into datagrams for us.
    segments: bool,
}

impl QuicSocket {
    /// Takes a bound socket over.
    fn new(
        socket: UdpSocket,
        number: u32,
        transport: Transport,
        settings: &QuicServerSettings,
    ) -> Self {
        let server = QuicServer::new(settings);
        Self { socket, number, transport, server, out: Vec::new(), segments: true }
    }

    /// Reads what has queued up, and answers it.
    fn serve(&mut self, inbox: &mut ReceiveBatch, responder: &mut Responder) {
        for _ in 0..ROUNDS {
            // Errors that an ICMP message left on the socket concern packets that already left
            // (udp(7)); whatever else it is, epoll calls again as long as something is there.
            let Ok(more) = inbox.receive(self.socket.as_fd()) else { break };
            let now = clock::now();
            for group in inbox.groups() {
                let (peer, local) = (group.peer.address(), group.peer.local());
                self.server.receive(now, peer, local, group.octets, group.segment);
            }
            self.work(now, responder);
            if !more {
                break;
            }
        }
    }

    /// Answers queries that are here, and sends.
    fn work(&mut self, now: Instant, responder: &mut Responder) {
        let (number, transport) = (self.number, self.transport);
        self.server.poll(now, &mut |request, query, out| {
            let destination = Destination::Quic { socket: number, request, transport };
            let mut is_answered = false;
            let put = |octets: &[u8]| {
                out.extend_from_slice(octets);
                is_answered = true;
            };
            match responder.message(query, transport, destination, put) {
                respond::Reaction::Done if is_answered => Reaction::Answered,
                respond::Reaction::Done => Reaction::Never,
                respond::Reaction::Held(_) => Reaction::Later,
                respond::Reaction::NoQuery => Reaction::NoQuery,
            }
        });
        self.count_ended(&mut responder.counters);
        self.send(now);
    }

    /// Counts the queries of connections that have ended.
    fn count_ended(&mut self, counters: &mut Counters) {
        for queries in self.server.take_ended() {
            counters.connections.queries.record(queries);
        }
    }

    /// Sends all packets that may be sent now. What the kernel does not take is lost, as it may be
    /// in any network, and QUIC sends it again.
    fn send(&mut self, now: Instant) {
        self.out.clear();
        while let Some(outgoing) = self.server.transmit(now, &mut self.out) {
            let outcome = self.offer(&outgoing);
            if self.segments && outcome.is_err_and(|error| refuses_segmentation(&error)) {
                self.segments = false;
                let _ = self.offer(&outgoing);
            }
            self.out.clear();
        }
    }

    /// Offers packets for one client to the kernel.
    fn offer(&self, outgoing: &Outgoing) -> io::Result<()> {
        let Outgoing { peer, source, segment } = *outgoing;
        let (socket, peer) = (self.socket.as_fd(), Peer::new(peer, source));
        let length = if self.segments { self.out.len() } else { segment };
        let mut groups = self.out.chunks(length);
        groups.try_for_each(|octets| send_segments(socket, octets, segment, Some(&peer)))
    }
}

impl AsFd for QuicSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
