//! The server side: an end point and its connections.

mod connection;
mod facts;
mod protocol;
mod queries;
mod settings;

pub use facts::ServerFacts;
pub use protocol::Reaction;
pub(crate) use protocol::{Answer, ServerProtocol};
pub use queries::RequestId;
pub use settings::QuicServerSettings;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use quinn_proto::{
    ConnectionHandle, DatagramEvent, Endpoint, EndpointEvent, Incoming, ServerConfig, Transmit,
};

use self::connection::{Arrivals, ServerConnection};
use self::queries::Queries;
use self::settings::Spoken;
use super::error::code;
use super::segments::segments_of;

/// Packets to be sent to one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The client.
    pub peer: SocketAddr,
    /// The local address to send from, where it was known when the client's packets came.
    pub source: Option<IpAddr>,
    /// Length of all packets but the last, octets (`UDP_SEGMENT`).
    pub segment: usize,
}

/// A connection, by what its owner calls it, and what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder<Connection> {
    /// Which connection.
    pub connection: Connection,
    /// Octets.
    pub memory: usize,
}

impl<Connection> Holder<Connection> {
    /// The holder by another name of its connection.
    pub fn map<Other>(self, name: impl FnOnce(Connection) -> Other) -> Holder<Other> {
        Holder { connection: name(self.connection), memory: self.memory }
    }
}

/// A server's end point on one socket, with its connections.
pub struct QuicServer {
    /// Knows which packets belong to which connection.
    endpoint: Endpoint,
    protocol: Spoken,
    /// Connections at once.
    most: usize,
    /// Queries of one connection.
    quota: Option<NonZeroU64>,
    /// Connections by their number at the end point.
    connections: Vec<Option<Box<ServerConnection>>>,
    /// Connections in the table.
    count: usize,
    /// Octets of memory that all of them hold.
    memory: usize,
    /// Connections with something to do, each once.
    touched: Vec<usize>,
    /// When to look after which connection, by serial number; entries may be stale.
    timers: BinaryHeap<Reverse<(Instant, usize, u64)>>,
    /// Packets of the end point itself.
    responses: Vec<(Outgoing, Vec<u8>)>,
    facts: ServerFacts,
    /// How many queries each connection took that has ended since this was last asked for.
    ended: Vec<u64>,
}

impl QuicServer {
    /// A server without connections.
    #[must_use]
    pub fn new(settings: &QuicServerSettings) -> Self {
        let mut config = ServerConfig::with_crypto(Arc::clone(&settings.tls) as _);
        let unidirectional = settings.protocol.unidirectional();
        let transport = super::settings::server_transport(
            settings.streams,
            unidirectional,
            settings.idle_timeout,
        );
        // A client that moves would reach another worker's socket, which does not know it.
        config.transport_config(Arc::new(transport)).migration(false);
        let endpoint = super::settings::endpoint(settings.seed);
        Self {
            endpoint: Endpoint::new(endpoint, Some(Arc::new(config)), true, None),
            protocol: settings.protocol.clone(),
            most: settings.connections,
            quota: settings.queries_per_connection,
            connections: Vec::new(),
            count: 0,
            memory: 0,
            touched: Vec::new(),
            timers: BinaryHeap::new(),
            responses: Vec::new(),
            facts: ServerFacts::default(),
            ended: Vec::new(),
        }
    }

    /// What happened so far.
    #[must_use]
    pub fn facts(&self) -> ServerFacts {
        self.facts
    }

    /// Connections that have not ended.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.count
    }

    /// Octets of memory that clients make the server hold: queries that have not come whole, and answers that
    /// have not arrived. What idle connections need is not counted.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.memory
    }

    /// The connections by their places, with the memory that each holds.
    pub fn holders(&self) -> impl Iterator<Item = Holder<u32>> {
        (0..).zip(&self.connections).filter_map(|(connection, entry)| {
            Some(Holder { connection, memory: entry.as_ref()?.noted_memory })
        })
    }

    /// Ends the connection at this place and frees its memory at once. A packet that [`QuicServer::transmit`]
    /// gives tells the client that it was too much (DOQ_EXCESSIVE_LOAD, H3_EXCESSIVE_LOAD).
    pub fn cut(&mut self, now: Instant, place: u32) {
        let place = place as usize;
        let Some(mut connection) = self.connections.get_mut(place).and_then(Option::take) else {
            return;
        };
        self.memory -= connection.noted_memory;
        self.count -= 1;
        if !connection.has_ended {
            *if connection.is_established {
                &mut self.facts.broken
            } else {
                &mut self.facts.failed_handshakes
            } += 1;
            self.ended.push(connection.queries.taken());
        }
        let ServerConnection { connection, protocol, .. } = &mut *connection;
        connection.close(now, code(protocol.codes().excessive_load), Bytes::new());
        let mut response = Vec::new();
        if let Some(transmit) = connection.poll_transmit(now, 1, &mut response) {
            self.respond(&transmit, response);
        }
        // It does not wait for stray packets as others do: that would keep its memory.
        self.endpoint.handle_event(ConnectionHandle(place), EndpointEvent::drained());
    }

    /// How many queries each open connection has taken.
    pub fn open(&self) -> impl Iterator<Item = u64> {
        let connections = self.connections.iter().flatten();
        connections
            .filter(|connection| !connection.has_ended)
            .map(|connection| connection.queries.taken())
    }

    /// How many queries each connection took that has ended since this was last called.
    pub fn take_ended(&mut self) -> impl Iterator<Item = u64> {
        self.ended.drain(..)
    }

    /// Takes datagrams that came from `peer` to `local`: `group` is cut into pieces of `segment` octets
    /// (`UDP_GRO`). [`QuicServer::poll`] handles what they bring.
    pub fn receive(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        local: Option<IpAddr>,
        group: &[u8],
        segment: usize,
    ) {
        for datagram in group.chunks(segment.max(1)) {
            // Each has memory of its own: QUIC keeps a datagram for a single octet of it, and counts that
            // against the client.
            let (length, datagram) = (datagram.len(), BytesMut::from(datagram));
            let mut response = Vec::new();
            let event = self.endpoint.handle(now, peer, local, None, datagram, &mut response);
            match event {
                None => {}
                Some(DatagramEvent::Response(transmit)) => self.respond(&transmit, response),
                Some(DatagramEvent::NewConnection(incoming)) => self.accept(now, incoming),
                Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                    if let Some(connection) = self.connections[handle.0].as_mut() {
                        connection.arrivals.add(length);
                        connection.connection.handle_event(event);
                        self.touch(handle.0);
                    }
                }
            }
        }
    }

    /// When [`QuicServer::handle_timeouts`] is to be called next.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Instant> {
        self.timers.peek().map(|Reverse((at, ..))| *at)
    }

    /// Does what is due by now; then [`QuicServer::poll`] and [`QuicServer::transmit`] may have something.
    pub fn handle_timeouts(&mut self, now: Instant) {
        while let Some(Reverse((at, place, serial))) = self.timers.peek().copied()
            && at <= now
        {
            self.timers.pop();
            let Some(connection) = self.connections[place].as_mut() else { continue };
            if connection.serial != serial || connection.timer != Some(at) {
                continue;
            }
            connection.timer = None;
            if connection.connection.poll_timeout().is_some_and(|due| due <= now) {
                connection.connection.handle_timeout(now);
            }
            // Those whose time has moved away too: they are entered again.
            self.touch(place);
        }
    }

    /// Asks for the answers to all whole queries, and forgets connections that have ended.
    pub fn poll(&mut self, now: Instant, answer: Answer<'_, RequestId>) {
        let mut number = 0;
        while let Some(place) = self.touched.get(number).copied() {
            number += 1;
            let Some(connection) = self.connections[place].as_mut() else { continue };
            if connection.poll(place, now, &mut self.facts, answer) {
                self.ended.push(connection.queries.taken());
            }
            self.settle(place);
        }
    }

    /// Sends an answer that was held back; false if its connection has ended, or its client does not want it.
    pub fn answer(&mut self, request: RequestId, message: &[u8]) -> bool {
        let place = request.place as usize;
        let Some(Some(connection)) = self.connections.get_mut(place) else { return false };
        let ServerConnection { serial, connection, protocol, queries, .. } = &mut **connection;
        if *serial != request.serial || connection.is_closed() {
            return false;
        }
        let written = protocol.answer(connection, request.stream, message);
        if !written {
            queries.end(request.stream);
        }
        self.touch(place);
        written
    }

    /// Appends the next packets for one client to `out`. `None` when there is nothing to send.
    pub fn transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Outgoing> {
        if let Some((outgoing, octets)) = self.responses.pop() {
            out.extend_from_slice(&octets);
            return Some(outgoing);
        }
        while let Some(place) = self.touched.last().copied() {
            let Some(connection) = self.connections[place].as_mut() else {
                self.touched.pop();
                continue;
            };
            let segments = segments_of(connection.connection.current_mtu());
            if let Some(transmit) = connection.connection.poll_transmit(now, segments, out) {
                return Some(outgoing(&transmit));
            }
            connection.is_touched = false;
            self.touched.pop();
            self.settle(place);
        }
        None
    }

    /// Tells all clients to send no further requests, where the protocol can (HTTP/3's GOAWAY). Those that
    /// have come are answered.
    pub fn go_away(&mut self) {
        for place in 0..self.connections.len() {
            if let Some(connection) = self.connections[place].as_mut() {
                let ServerConnection { connection, protocol, .. } = &mut **connection;
                protocol.go_away(connection);
                self.touch(place);
            }
        }
    }

    /// Ends all connections in order; [`QuicServer::transmit`] gives the packets that say so.
    pub fn close(&mut self, now: Instant) {
        for place in 0..self.connections.len() {
            if let Some(connection) = self.connections[place].as_mut() {
                let error_code = code(connection.protocol.codes().no_error);
                connection.connection.close(now, error_code, Bytes::new());
                self.touch(place);
            }
        }
    }

    /// Begins a connection, or refuses it.
    fn accept(&mut self, now: Instant, incoming: Incoming) {
        let mut response = Vec::new();
        if self.count >= self.most {
            self.facts.refused += 1;
            let transmit = self.endpoint.refuse(incoming, &mut response);
            return self.respond(&transmit, response);
        }
        match self.endpoint.accept(incoming, now, &mut response, None) {
            Ok((ConnectionHandle(place), connection)) => {
                self.facts.accepted += 1;
                self.count += 1;
                let protocol = self.protocol.begin();
                if self.connections.len() <= place {
                    self.connections.resize_with(place + 1, || None);
                }
                self.connections[place] = Some(Box::new(ServerConnection {
                    serial: self.facts.accepted,
                    connection,
                    protocol,
                    is_touched: false,
                    timer: None,
                    is_established: false,
                    queries: Queries::new(self.quota),
                    has_ended: false,
                    arrivals: Arrivals::default(),
                    noted_memory: 0,
                }));
                self.touch(place);
            }
            Err(error) => {
                self.facts.accepted += 1;
                self.facts.failed_handshakes += 1;
                self.ended.push(0);
                if let Some(transmit) = error.response {
                    self.respond(&transmit, response);
                }
            }
        }
    }

    /// Lets end point and connection exchange their events. Forgets the connection if it is over, otherwise
    /// sets its timer.
    fn settle(&mut self, place: usize) {
        let Some(connection) = self.connections[place].as_mut() else { return };
        while let Some(event) = connection.connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(ConnectionHandle(place), event) {
                connection.connection.handle_event(event);
            }
        }
        if connection.connection.is_drained() {
            self.memory -= connection.noted_memory;
            self.connections[place] = None;
            self.count -= 1;
            return;
        }
        let memory = connection.memory();
        self.memory = self.memory - connection.noted_memory + memory;
        connection.noted_memory = memory;
        let due = connection.connection.poll_timeout();
        if let Some(due) = due
            && connection.timer.is_none_or(|entered| due < entered)
        {
            connection.timer = Some(due);
            self.timers.push(Reverse((due, place, connection.serial)));
            self.drop_stale_timers();
        }
    }

    /// Keeps the heap of timers in proportion to the connections: a time-out that moves to an earlier instant
    /// leaves its old entry behind.
    fn drop_stale_timers(&mut self) {
        if self.timers.len() <= 4 * self.count + 64 {
            return;
        }
        let connections = &self.connections;
        self.timers.retain(|Reverse((at, place, serial))| {
            connections[*place].as_ref().is_some_and(|connection| {
                connection.serial == *serial && connection.timer == Some(*at)
            })
        });
    }

    /// Notes that a connection may have something to do.
    fn touch(&mut self, place: usize) {
        if let Some(connection) = self.connections[place].as_mut()
            && !connection.is_touched
        {
            connection.is_touched = true;
            self.touched.push(place);
        }
    }

    /// Keeps a packet of the end point itself.
    fn respond(&mut self, transmit: &Transmit, mut octets: Vec<u8>) {
        octets.truncate(transmit.size);
        self.responses.push((outgoing(transmit), octets));
    }
}

fn outgoing(transmit: &Transmit) -> Outgoing {
    Outgoing {
        peer: transmit.destination,
        source: transmit.src_ip,
        segment: transmit.segment_size.unwrap_or(transmit.size),
    }
}
