//! A QUIC server that says on its streams whatever a test wants.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use dnslab_transport::quic::{QuicClient, QuicError};
use quinn_proto::crypto::rustls::QuicServerConfig;
use quinn_proto::{
    Connection, ConnectionError, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig,
    Event, ServerConfig, StreamEvent, StreamId, TransportConfig, VarInt,
};

use crate::simulation::{CLIENT, Outcome, Protocol, client_tls, connect, query, server_tls};

/// What the server does on a stream that a client has opened, when all of the request is there.
pub(crate) type Script<'a> = &'a dyn Fn(&mut Connection, StreamId);

/// The server, with one connection.
struct RawServer {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    end: Option<ConnectionError>,
}

impl RawServer {
    /// A server that lets a client have so many octets of each stream on their way.
    fn new(protocol: Protocol, window: u32) -> Self {
        let tls = QuicServerConfig::try_from(server_tls(protocol, false)).unwrap();
        let mut config = ServerConfig::with_crypto(Arc::new(tls));
        let mut transport = TransportConfig::default();
        transport.stream_receive_window(VarInt::from_u32(window));
        config.transport_config(Arc::new(transport));
        let endpoint = EndpointConfig::default();
        let endpoint = Endpoint::new(Arc::new(endpoint), Some(Arc::new(config)), false, None);
        Self { endpoint, connection: None, end: None }
    }

    fn receive(&mut self, now: Instant, datagram: &[u8]) {
        let (client, mut out) = (CLIENT.parse().unwrap(), Vec::new());
        let datagram = BytesMut::from(datagram);
        match self.endpoint.handle(now, client, None, None, datagram, &mut out) {
            Some(DatagramEvent::NewConnection(incoming)) => {
                self.connection = self.endpoint.accept(incoming, now, &mut out, None).ok();
            }
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            _ => {}
        }
    }

    fn poll(&mut self, begin: Script<'_>, open: Script<'_>, answer: Script<'_>) {
        let Some((handle, connection)) = &mut self.connection else { return };
        let mut readable = Vec::new();
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected => {
                    if let Some(id) = connection.streams().open(Dir::Uni) {
                        begin(connection, id);
                    }
                }
                Event::Stream(StreamEvent::Opened { dir }) => {
                    while let Some(id) = connection.streams().accept(dir) {
                        open(connection, id);
                        readable.push(id);
                    }
                }
                Event::Stream(StreamEvent::Readable { id }) => readable.push(id),
                Event::ConnectionLost { reason } => self.end = Some(reason),
                _ => {}
            }
        }
        for id in readable {
            let is_whole = {
                let mut stream = connection.recv_stream(id);
                let Ok(mut chunks) = stream.read(true) else { continue };
                loop {
                    match chunks.next(usize::MAX) {
                        Ok(Some(_)) => {}
                        Ok(None) => break true,
                        Err(_) => break false,
                    }
                }
            };
            if is_whole && id.dir() == Dir::Bi {
                answer(connection, id);
            }
        }
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
    }
}

pub(crate) struct Talk {
    pub(crate) outcomes: Vec<Outcome>,
    pub(crate) client: QuicClient,
    /// The end of the connection as the client saw it, if there was one.
    pub(crate) end: Option<QuicError>,
    /// The end as the server saw it.
    pub(crate) servers_end: Option<ConnectionError>,
    /// Octets of the datagrams that came to the server.
    pub(crate) received: usize,
}

/// Sends so many requests to such a server, and lets both talk for a simulated second. `begin` writes
/// on a unidirectional stream of the server, `answer` on the streams of the requests.
pub(crate) fn converse(
    protocol: Protocol,
    requests: u16,
    begin: Script<'_>,
    answer: Script<'_>,
) -> Talk {
    let requests: Vec<_> = (0..requests).map(query).collect();
    converse_about(protocol, 1 << 20, &requests, begin, &|_, _| {}, answer)
}

/// A talk about these messages, of which the server allows so many octets on each stream. `open` is called for a
/// request's stream as soon as it is there: the whole request may not be.
pub(crate) fn converse_about(
    protocol: Protocol,
    window: u32,
    requests: &[Vec<u8>],
    begin: Script<'_>,
    open: Script<'_>,
    answer: Script<'_>,
) -> Talk {
    let mut now = Instant::now();
    let mut client = connect(protocol, client_tls(protocol), 1, now);
    let mut server = RawServer::new(protocol, window);
    let (mut outcomes, mut end, mut sent, mut received) = (Vec::new(), None, 0, 0);
    for _ in 0..200 {
        now += Duration::from_millis(5);
        while let Some(request) = requests.get(usize::from(sent))
            && client.send(sent, request)
        {
            sent += 1;
        }
        let mut out = Vec::new();
        while let Some(segment) = client.transmit(now, &mut out) {
            received += out.len();
            out.chunks(segment).for_each(|datagram| server.receive(now, datagram));
            out.clear();
        }
        server.poll(begin, open, answer);
        if let Some((_, connection)) = &mut server.connection {
            while let Some(transmit) = connection.poll_transmit(now, 10, &mut out) {
                client.receive(now, &out, transmit.segment_size.unwrap_or(transmit.size));
                out.clear();
            }
            if connection.poll_timeout().is_some_and(|due| due <= now) {
                connection.handle_timeout(now);
            }
        }
        if client.next_timeout().is_some_and(|due| due <= now) {
            client.handle_timeout(now);
        }
        if end.is_none() {
            let polled = client.poll(now, &mut |exchange| outcomes.push(Outcome::from(exchange)));
            end = polled.err();
        }
    }
    Talk { outcomes, client, end, servers_end: server.end, received }
}

pub(crate) fn write(connection: &mut Connection, id: StreamId, octets: &[u8]) {
    let _ = connection.send_stream(id).write(octets);
}

pub(crate) fn finish(connection: &mut Connection, id: StreamId, octets: &[u8]) {
    write(connection, id, octets);
    let _ = connection.send_stream(id).finish();
}

pub(crate) fn reset(connection: &mut Connection, id: StreamId, code: u32) {
    let _ = connection.send_stream(id).reset(VarInt::from_u32(code));
}
