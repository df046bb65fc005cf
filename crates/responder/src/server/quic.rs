//! DNS over QUIC and over HTTP/3: a QUIC end point on a UDP socket.
//!
//! Each worker has its own socket. The kernel spreads packets over them by a hash of addresses and ports
//! (`SO_REUSEPORT`, socket(7)). So all packets of a connection come to one worker as long as the client keeps
//! its address and port. Connections therefore do not migrate (RFC 9000, section 9), and the server says so
//! in its transport parameters.

use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use dnslab_socket::{
    MAX_GROUP, Peer, ReceiveBatch, receive_drops, refuses_segmentation, send_segments,
};
use dnslab_transport::quic::{
    Holder, Outgoing, QuicServer, QuicServerSettings, Reaction, RequestId,
};
use dnslab_wire::Transport;

use super::clock;
use super::config::Config;
use super::delayed::Destination;
use super::error::ResponderError;
use super::respond::{self, Arrival, Responder};
use super::tls::TlsConfigs;
use crate::counters::Counters;

/// The most groups of packets that one system call receives.
const SLOTS: usize = 16;

/// Reads of one socket before it is the turn of the others and the delay queue.
const ROUNDS: usize = 4;

/// A connection of one of a worker's sockets.
#[derive(Clone, Copy, Debug)]
pub(super) struct QuicConnection {
    /// The number of the socket.
    socket: u32,
    /// The place of the connection there.
    place: u32,
}

pub(super) struct QuicSockets {
    sockets: Vec<QuicSocket>,
    /// The sockets receive into it in turn.
    inbox: ReceiveBatch,
    /// Sockets with held answers to send.
    touched: Vec<u32>,
    /// One instant, and the same in nanoseconds of the monotonic clock.
    origin: (Instant, u64),
}

impl QuicSockets {
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

    pub(super) fn iter(&self) -> impl Iterator<Item = &QuicSocket> {
        self.sockets.iter()
    }

    /// When to call [`QuicSockets::on_timer`] next, in nanoseconds of the monotonic clock.
    pub(super) fn next_due_ns(&self) -> Option<u64> {
        let due = self.sockets.iter().filter_map(|socket| socket.server.next_timeout()).min()?;
        let since = due.saturating_duration_since(self.origin.0).as_nanos();
        Some(self.origin.1.saturating_add(u64::try_from(since).unwrap_or(u64::MAX)))
    }

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

    pub(super) fn serve(&mut self, number: u32, responder: &mut Responder) {
        self.sockets[number as usize].serve(&mut self.inbox, responder);
    }

    /// Queues a held answer that is due; false if nobody wants it any more. Call [`QuicSockets::flush`] after
    /// the last.
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

    /// Octets that clients make all sockets hold.
    pub(super) fn memory(&self) -> usize {
        self.sockets.iter().map(|socket| socket.server.memory()).sum()
    }

    /// The connections of all sockets, with the memory that each holds.
    pub(super) fn holders(&self) -> impl Iterator<Item = Holder<QuicConnection>> {
        self.sockets.iter().flat_map(|socket| {
            let number = socket.number;
            let named = move |place| QuicConnection { socket: number, place };
            socket.server.holders().map(move |holder| holder.map(named))
        })
    }

    /// Ends a connection for the memory that it holds.
    pub(super) fn cut(&mut self, connection: QuicConnection, counters: &mut Counters) {
        let (socket, now) = (&mut self.sockets[connection.socket as usize], clock::now());
        socket.server.cut(now, connection.place);
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

/// What all workers have in common.
pub(super) struct QuicSettings {
    doq: Option<QuicServerSettings>,
    doh3: Option<QuicServerSettings>,
}

impl QuicSettings {
    /// One socket has so many connections.
    pub(super) fn new(
        tls: &TlsConfigs,
        config: &Config,
        connections: usize,
    ) -> Result<Self, ResponderError> {
        let doq = tls.of(Transport::Doq).map(QuicServerSettings::doq).transpose()?;
        let doh3 =
            tls.of(Transport::Doh3).map(|tls| QuicServerSettings::http3(tls, &config.http_path));
        let mut all = Self { doq, doh3: doh3.transpose()? };
        for settings in [&mut all.doq, &mut all.doh3].into_iter().flatten() {
            settings.idle_timeout = config.idle_timeout;
            settings.connections = connections;
            settings.queries_per_connection = config.queries_per_connection;
        }
        Ok(all)
    }

    fn of(&self, transport: Transport) -> &QuicServerSettings {
        let settings = if transport == Transport::Doq { &self.doq } else { &self.doh3 };
        settings.as_ref().expect("a socket is bound only with settings for what is spoken on it")
    }
}

pub(super) struct QuicSocket {
    /// Non-blocking.
    socket: UdpSocket,
    /// Among the worker's sockets.
    number: u32,
    /// DoQ or DoH3.
    transport: Transport,
    server: QuicServer,
    /// Packets on their way to the kernel.
    out: Vec<u8>,
    /// The kernel cuts groups into datagrams.
    segments: bool,
}

impl QuicSocket {
    fn new(
        socket: UdpSocket,
        number: u32,
        transport: Transport,
        settings: &QuicServerSettings,
    ) -> Self {
        let server = QuicServer::new(settings);
        Self { socket, number, transport, server, out: Vec::new(), segments: true }
    }

    fn serve(&mut self, inbox: &mut ReceiveBatch, responder: &mut Responder) {
        for _ in 0..ROUNDS {
            // An error that an ICMP message left on the socket is about packets that already left (udp(7)).
            // After any other, epoll calls again as long as something is there.
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

    fn work(&mut self, now: Instant, responder: &mut Responder) {
        let (number, transport) = (self.number, self.transport);
        let arrival = Arrival { transport, local: None };
        self.server.poll(now, &mut |request, query, out| {
            let destination = Destination::Quic { socket: number, request, transport };
            let mut is_answered = false;
            let put = |octets: &[u8]| {
                out.extend_from_slice(octets);
                is_answered = true;
            };
            match responder.message(query, arrival, destination, put) {
                respond::Reaction::Done if is_answered => Reaction::Answered,
                respond::Reaction::Done => Reaction::Never,
                respond::Reaction::Held(_) => Reaction::Later,
                respond::Reaction::NoQuery => Reaction::NoQuery,
            }
        });
        self.count_ended(&mut responder.counters);
        self.send(now);
    }

    fn count_ended(&mut self, counters: &mut Counters) {
        for queries in self.server.take_ended() {
            counters.connections.queries.record(queries);
        }
    }

    /// Sends all packets that may be sent now. What the kernel does not take is lost, as in any network, and
    /// QUIC sends it again.
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
