//! DNS over QUIC and HTTP/3, asked by a client on `quinn-proto` that keeps to QUIC and to nothing else.

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use domain::base::iana::Rtype;
use quinn_proto::crypto::rustls::QuicClientConfig;
use quinn_proto::{
    ClientConfig, Connection, ConnectionError, ConnectionHandle, DatagramEvent, Dir, Endpoint,
    EndpointConfig, Event, StreamId, TransportConfig, VarInt,
};

use crate::running::{PATIENCE, Running};
use crate::{alone, check, frames, start};

pub(crate) struct RawClient {
    socket: UdpSocket,
    endpoint: Endpoint,
    handle: ConnectionHandle,
    connection: Connection,
    is_connected: bool,
    end: Option<ConnectionError>,
}

impl RawClient {
    /// The server may send `window` octets on each stream.
    pub(crate) fn connect(server: &Running, address: SocketAddr, alpn: &[u8], window: u32) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(address).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        let tls = QuicClientConfig::try_from(server.tls_config(alpn)).unwrap();
        let mut config = ClientConfig::new(Arc::new(tls));
        let mut transport = TransportConfig::default();
        transport
            .stream_receive_window(VarInt::from_u32(window))
            .max_concurrent_uni_streams(8_u8.into());
        config.transport_config(Arc::new(transport));
        let mut endpoint = Endpoint::new(Arc::new(EndpointConfig::default()), None, false, None);
        let (handle, connection) =
            endpoint.connect(Instant::now(), config, address, "localhost").unwrap();
        let mut own = Self { socket, endpoint, handle, connection, is_connected: false, end: None };
        let until = Instant::now() + PATIENCE;
        while !own.is_connected {
            assert!(Instant::now() < until && own.end.is_none(), "no connection: {:?}", own.end);
            own.turn();
        }
        own
    }

    fn turn(&mut self) {
        let mut out = Vec::new();
        while let Some(transmit) = self.connection.poll_transmit(Instant::now(), 1, &mut out) {
            // What the kernel does not take is lost, as in any network.
            let _ = self.socket.send(&out[..transmit.size]);
            out.clear();
        }
        let mut buffer = [0; 2048];
        for _ in 0..64 {
            let count = match self.socket.recv(&mut buffer) {
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            };
            let (now, datagram) = (Instant::now(), BytesMut::from(&buffer[..count]));
            let peer = self.socket.peer_addr().unwrap();
            let event = self.endpoint.handle(now, peer, None, None, datagram, &mut out);
            if let Some(DatagramEvent::ConnectionEvent(_, event)) = event {
                self.connection.handle_event(event);
            }
        }
        let now = Instant::now();
        if self.connection.poll_timeout().is_some_and(|due| due <= now) {
            self.connection.handle_timeout(now);
        }
        while let Some(event) = self.connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(self.handle, event) {
                self.connection.handle_event(event);
            }
        }
        while let Some(event) = self.connection.poll() {
            match event {
                Event::Connected => self.is_connected = true,
                Event::ConnectionLost { reason } => self.end = Some(reason),
                _ => {}
            }
        }
    }

    pub(crate) fn wait(&mut self, time: Duration) {
        let until = Instant::now() + time;
        while Instant::now() < until && self.end.is_none() {
            self.turn();
        }
    }

    /// Writes on a new stream what flow control allows within a second, and its end if wanted.
    pub(crate) fn write(&mut self, octets: &[u8], is_whole: bool) -> Option<StreamId> {
        let until = Instant::now() + Duration::from_secs(1);
        let id = loop {
            match self.connection.streams().open(Dir::Bi) {
                Some(id) => break id,
                None if Instant::now() < until && self.end.is_none() => self.turn(),
                None => return None,
            }
        };
        let mut rest = octets;
        while !rest.is_empty() && Instant::now() < until && self.end.is_none() {
            match self.connection.send_stream(id).write(rest) {
                Ok(count) => rest = &rest[count..],
                Err(_) => self.turn(),
            }
        }
        if is_whole {
            let _ = self.connection.send_stream(id).finish();
        }
        Some(id)
    }
}

#[test]
fn requests_without_an_end() {
    /// DOQ_EXCESSIVE_LOAD (RFC 9250, section 4.3) and H3_EXCESSIVE_LOAD (RFC 9114, section 8.1).
    const CODES: [u32; 2] = [0x4, 0x107];
    let _alone = alone();
    let server = start(|_| {});
    let protocols = [(server.doq_address, b"doq".as_slice()), (server.doh3_address, b"h3")];
    for ((address, alpn), code) in protocols.into_iter().zip(CODES) {
        check(&server, 16 << 20, || {
            let mut client = RawClient::connect(&server, address, alpn, 65_535);
            let mut octets = vec![0; 60_000];
            // A message of 65,535 octets; a frame of an unknown type and 65,535 octets.
            octets[..5].copy_from_slice(if alpn == b"doq" {
                b"\xff\xff\0\0\0"
            } else {
                b"\x21\x80\0\xff\xff"
            });
            let until = Instant::now() + PATIENCE;
            while client.end.is_none() && Instant::now() < until {
                client.write(&octets, false);
            }
            match &client.end {
                Some(ConnectionError::ApplicationClosed(close)) => {
                    assert_eq!(close.error_code, VarInt::from_u32(code));
                }
                other => panic!("{other:?}"),
            }
        });
    }
    let connections = server.stop().connections;
    assert_eq!((connections.broken, connections.failed_handshakes), (2, 0));
}

/// Some hundred answers of 60 KB for a client that allows ten octets a stream, or nearly all: the whole
/// answer stays in memory for the rest.
#[test]
fn answers_that_flow_control_keeps_back() {
    let _alone = alone();
    for window in [10, 59_900] {
        let server = start(|_| {});
        let framed = frames(1, "big.example.", Rtype::TXT);
        check(&server, 16 << 20, || {
            let mut client = RawClient::connect(&server, server.doq_address, b"doq", window);
            for _ in 0..1000 {
                client.write(&framed, true);
            }
            client.wait(Duration::from_millis(500));
            assert!(client.end.is_none(), "{:?}", client.end);
        });
        let messages = server.stop().doq;
        // A megabyte of answers, and no more.
        assert!((10..100).contains(&messages.received), "{window}: {messages:?}");
    }
}
