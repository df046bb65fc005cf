//! The client side of one connection.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Endpoint, EndpointConfig, Event,
    StreamEvent,
};

use super::tls::{ClientTls, HandshakeFacts};
use super::{ErrorCodes, QuicError, code, segments_of, settings};
use crate::doq::DoqClient;
use crate::http3::Http3Client;
use crate::{Exchange, Target};

/// What a protocol above QUIC does for a client.
pub(crate) trait ClientProtocol {
    /// Its error codes.
    fn codes(&self) -> &'static ErrorCodes;

    /// Streams can be opened: for the first time, or again after the server has refused what was
    /// sent as early data, which then has never been (RFC 9001, section 4.6.2).
    ///
    /// # Errors
    /// When the server does not allow the streams that the protocol cannot be without.
    fn begin(&mut self, connection: &mut Connection) -> Result<(), QuicError>;

    /// Sends a request on a stream of its own; false if the peer allows none now.
    fn send(&mut self, connection: &mut Connection, request: u16, message: &[u8]) -> bool;

    /// Does not wait for the answer to this request any longer.
    fn give_up(&mut self, connection: &mut Connection, request: u16);

    /// Takes note of what happened to a stream.
    ///
    /// # Errors
    /// When the server broke the protocol.
    fn stream_event(
        &mut self,
        connection: &mut Connection,
        event: StreamEvent,
        deliver: &mut dyn FnMut(Exchange<'_>),
    ) -> Result<(), QuicError>;

    /// The server takes no further requests.
    fn is_draining(&self) -> bool {
        false
    }
}

/// What all connections of a load have in common.
#[derive(Clone)]
pub struct QuicClientSettings {
    /// What an end point is.
    endpoint: Arc<EndpointConfig>,
    /// TLS and transport parameters.
    client: ClientConfig,
}

/// A client says nothing for so long before the connection is given up (RFC 9308, section 3.2);
/// when a connection is closed for being idle is decided by whoever simulates the client.
const IDLE: Duration = Duration::from_secs(30);

impl QuicClientSettings {
    /// Takes settings of TLS over; their ALPN names the protocol.
    ///
    /// # Errors
    /// When they cannot be used for QUIC.
    pub fn new(tls: Arc<rustls::ClientConfig>) -> Result<Self, QuicError> {
        let mut client = ClientConfig::new(Arc::new(ClientTls::new(tls)?));
        let transport = settings::transport(0, settings::UNIDIRECTIONAL, Some(IDLE));
        client.transport_config(Arc::new(transport));
        Ok(Self { endpoint: settings::endpoint(None), client })
    }

    /// The same with repeatable draws, for a simulation.
    #[must_use]
    pub fn with_seed(mut self, seed: [u8; 32]) -> Self {
        self.endpoint = settings::endpoint(Some(seed));
        self
    }
}

/// A handshake that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuicHandshake {
    /// A ticket of an earlier connection was used.
    pub resumed: bool,
    /// Requests went with the first packets, and the server accepted them (RFC 9001, section 4.6).
    pub early_data: bool,
    /// The cipher suite in the words of IANA.
    pub cipher_suite: String,
}

/// A connection to one server.
pub struct QuicClient {
    /// Knows which packets are the connection's.
    endpoint: Endpoint,
    /// The connection.
    connection: Connection,
    /// Its name towards the end point.
    handle: ConnectionHandle,
    /// The server.
    server: SocketAddr,
    /// What a stream means.
    protocol: Box<dyn ClientProtocol>,
    /// Streams can be opened.
    has_begun: bool,
    /// The handshake, once it is over.
    handshake: Option<QuicHandshake>,
    /// Requests sent as early data, until the server has accepted them.
    early: Vec<(u16, Box<[u8]>)>,
    /// Requests that the server refused as early data, until they have been sent again.
    again: VecDeque<(u16, Box<[u8]>)>,
    /// The connection has come to its end.
    is_over: bool,
}

impl QuicClient {
    /// Begins a connection for DNS over QUIC (RFC 9250).
    ///
    /// # Errors
    /// When the server's name or address cannot be used.
    pub fn doq(
        settings: &QuicClientSettings,
        server: SocketAddr,
        server_name: &str,
        now: Instant,
    ) -> Result<Self, QuicError> {
        Self::connect(settings, server, server_name, Box::new(DoqClient::default()), now)
    }

    /// Begins a connection for DNS over HTTPS with HTTP/3 (RFC 8484, RFC 9114).
    ///
    /// # Errors
    /// When the server's name or address cannot be used.
    pub fn http3(
        settings: &QuicClientSettings,
        server: SocketAddr,
        server_name: &str,
        target: Arc<Target>,
        now: Instant,
    ) -> Result<Self, QuicError> {
        Self::connect(settings, server, server_name, Box::new(Http3Client::new(&target)), now)
    }

    /// Begins a connection for this protocol.
    fn connect(
        settings: &QuicClientSettings,
        server: SocketAddr,
        server_name: &str,
        protocol: Box<dyn ClientProtocol>,
        now: Instant,
    ) -> Result<Self, QuicError> {
        let mut endpoint = Endpoint::new(Arc::clone(&settings.endpoint), None, true, None);
        let (handle, connection) =
            endpoint.connect(now, settings.client.clone(), server, server_name)?;
        let mut client = Self {
            endpoint,
            connection,
            handle,
            server,
            protocol,
            has_begun: false,
            handshake: None,
            early: Vec::new(),
            again: VecDeque::new(),
            is_over: false,
        };
        if client.connection.has_0rtt() {
            client.protocol.begin(&mut client.connection)?;
            client.has_begun = true;
        }
        Ok(client)
    }

    /// Requests may be sent: the handshake is over, or early data is possible.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.has_begun && !self.is_over && !self.protocol.is_draining()
    }

    /// The server has said that it takes no further requests.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.protocol.is_draining()
    }

    /// What the handshake came to, once it is over.
    #[must_use]
    pub fn handshake(&self) -> Option<&QuicHandshake> {
        self.handshake.as_ref()
    }

    /// Sends a request. The number is that of its answer; on the wire the message's id is 0. False
    /// if the server allows no further stream now.
    ///
    /// Requests are told apart by their streams, not by their numbers. Whoever uses a number again
    /// before its answer has come gets two answers with it, unless it gives the first one up.
    pub fn send(&mut self, request: u16, message: &[u8]) -> bool {
        if !self.is_open() || !self.again.is_empty() {
            return false;
        }
        let is_sent = self.protocol.send(&mut self.connection, request, message);
        if is_sent && self.handshake.is_none() {
            self.early.push((request, message.into()));
        }
        is_sent
    }

    /// Does not wait for the answer to this request any longer, and tells the server so.
    pub fn give_up(&mut self, request: u16) {
        self.protocol.give_up(&mut self.connection, request);
        self.again.retain(|(number, _)| *number != request);
        self.early.retain(|(number, _)| *number != request);
    }

    /// Takes datagrams that came from the server: `group` is cut into pieces of `segment` octets
    /// (`UDP_GRO`). [`QuicClient::poll`] says what came of them.
    pub fn receive(&mut self, now: Instant, group: &[u8], segment: usize) {
        let mut rest = BytesMut::from(group);
        let mut unused = Vec::new();
        while !rest.is_empty() {
            let datagram = rest.split_to(segment.clamp(1, rest.len()));
            let event = self.endpoint.handle(now, self.server, None, None, datagram, &mut unused);
            // A client's end point answers nothing by itself and accepts nobody.
            if let Some(DatagramEvent::ConnectionEvent(_, event)) = event {
                self.connection.handle_event(event);
            }
        }
        self.settle();
    }

    /// When [`QuicClient::handle_timeout`] is to be called next.
    #[must_use]
    pub fn next_timeout(&mut self) -> Option<Instant> {
        self.connection.poll_timeout()
    }

    /// Does what was to be done by now.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.connection.handle_timeout(now);
        self.settle();
    }

    /// Says what has come of requests.
    ///
    /// # Errors
    /// When the connection has come to its end; nothing comes after it. What
    /// [`QuicClient::transmit`] still gives tells the server.
    pub fn poll(
        &mut self,
        now: Instant,
        deliver: &mut dyn FnMut(Exchange<'_>),
    ) -> Result<(), QuicError> {
        while let Some(event) = self.connection.poll() {
            let outcome = match event {
                Event::Connected => self.connected(),
                Event::ConnectionLost { reason } => {
                    Err(QuicError::new(reason, self.protocol.codes()))
                }
                Event::Stream(event) => {
                    self.protocol.stream_event(&mut self.connection, event, deliver)
                }
                Event::HandshakeDataReady | Event::DatagramReceived | Event::DatagramsUnblocked => {
                    Ok(())
                }
            };
            if let Err(error) = outcome {
                self.is_over = true;
                if matches!(error, QuicError::Protocol(_)) {
                    let error_code = code(self.protocol.codes().protocol_error);
                    self.connection.close(now, error_code, Bytes::new());
                }
                return Err(error);
            }
        }
        self.send_again();
        Ok(())
    }

    /// Appends the next packets for the server to `out`: the length of all but the last of them, so
    /// that one system call can send them (`UDP_SEGMENT`). `None` when there is nothing to send.
    pub fn transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<usize> {
        let segments = segments_of(self.connection.current_mtu());
        let start = out.len();
        let transmit = self.connection.poll_transmit(now, segments, out)?;
        debug_assert_eq!(out.len() - start, transmit.size);
        Some(transmit.segment_size.unwrap_or(transmit.size))
    }

    /// Ends the connection in an orderly way; [`QuicClient::transmit`] gives the packet that says
    /// so.
    pub fn close(&mut self, now: Instant) {
        self.is_over = true;
        self.connection.close(now, code(self.protocol.codes().no_error), Bytes::new());
    }

    /// Takes note of the handshake's end.
    fn connected(&mut self) -> Result<(), QuicError> {
        let facts = self.connection.crypto_session().handshake_data();
        let facts = facts.and_then(|facts| facts.downcast::<HandshakeFacts>().ok());
        let facts = facts.expect("the session is this crate's, and gives facts of this type");
        let accepted = self.connection.accepted_0rtt();
        let early = std::mem::take(&mut self.early);
        self.handshake = Some(QuicHandshake {
            resumed: facts.resumed,
            early_data: accepted && !early.is_empty(),
            cipher_suite: facts.cipher_suite,
        });
        if !accepted {
            self.again = early.into();
            self.protocol.begin(&mut self.connection)?;
            self.has_begun = true;
        }
        Ok(())
    }

    /// Sends what the server refused as early data, as far as it allows streams.
    fn send_again(&mut self) {
        while let Some((request, message)) = self.again.front() {
            if !self.protocol.send(&mut self.connection, *request, message) {
                break;
            }
            self.again.pop_front();
        }
    }

    /// Lets end point and connection tell each other what they must.
    fn settle(&mut self) {
        while let Some(event) = self.connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(self.handle, event) {
                self.connection.handle_event(event);
            }
        }
    }
}
