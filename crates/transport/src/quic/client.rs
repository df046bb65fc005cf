//! The client side of one connection.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig,
    Event, StreamEvent, TransportConfig,
};
use rustls_pki_types::CertificateDer;

use super::client_protocol::ClientProtocol;
use super::credit::{NeverRaises, StreamCredit};
use super::error::{QuicError, code};
use super::segments::segments_of;
use super::settings;
use super::tls::{ClientTls, HandshakeFacts};
use super::tokens::{AddressTokens, ConnectionTokens};
use crate::doq::DoqClient;
use crate::http3::Http3Client;
use crate::{Exchange, Target};

/// What all connections of a load have in common.
#[derive(Clone)]
pub struct QuicClientSettings {
    endpoint: Arc<EndpointConfig>,
    client: ClientConfig,
    doq: Arc<TransportConfig>,
    http3: Arc<TransportConfig>,
    tokens: Option<Arc<dyn AddressTokens>>,
    /// What connections have shown of their server.
    never_raises: NeverRaises,
}

/// Shortest silence after which a server is taken for gone: some machines do nothing for some hundred
/// milliseconds now and then.
const SHORTEST_SILENCE: Duration = Duration::from_secs(1);

/// Round trips of silence after which a server is taken for gone. The first probe goes out after about one
/// round trip, or three where their times differ much. Each further one goes out after twice the time of the
/// one before (RFC 9002, section 6.2). By then, three to five probes have had no answer.
const SILENT_ROUND_TRIPS: u32 = 32;

/// Round trips in which a server allows further streams when some have ended. It learns of the end by an
/// acknowledgement, which it waits for, and may delay what it says.
const STREAM_ROUND_TRIPS: u32 = 4;

/// How long a peer may delay an acknowledgement (RFC 9000, section 18.2).
const ACK_DELAY: Duration = Duration::from_millis(25);

impl QuicClientSettings {
    /// Uses these settings of TLS; their ALPN names the protocol. The client itself closes no connection for
    /// being idle, and says so.
    ///
    /// # Errors
    /// When they cannot be used for QUIC.
    pub fn new(tls: Arc<rustls::ClientConfig>) -> Result<Self, QuicError> {
        let client = ClientConfig::new(Arc::new(ClientTls::new(tls)?));
        let (doq, http3) = transports(None);
        let (endpoint, never_raises) = (settings::endpoint(None), NeverRaises::default());
        Ok(Self { endpoint, client, doq, http3, tokens: None, never_raises })
    }

    /// Gives a connection up when nothing has come for so long, which the server is told (RFC 9000, section
    /// 10.1). `None` leaves that to the server.
    #[must_use]
    pub fn with_idle_timeout(mut self, idle_timeout: Option<Duration>) -> Self {
        (self.doq, self.http3) = transports(idle_timeout);
        self
    }

    /// Keeps in `tokens` what servers give for later connections (RFC 9000, section 8.1.3). Without it none
    /// is kept.
    #[must_use]
    pub fn with_tokens(self, tokens: Arc<dyn AddressTokens>) -> Self {
        Self { tokens: Some(tokens), ..self }
    }

    /// Makes the draws repeatable, for a simulation.
    #[must_use]
    pub fn with_seed(mut self, seed: [u8; 32]) -> Self {
        self.endpoint = settings::endpoint(Some(seed));
        self
    }
}

/// What a client says of itself in DNS over QUIC, and in HTTP/3. A server may open no stream in the first
/// (RFC 9250, section 4.3.3), and those of its own control in the second.
fn transports(idle_timeout: Option<Duration>) -> (Arc<TransportConfig>, Arc<TransportConfig>) {
    let allowing = |unidirectional| settings::transport(0, unidirectional, idle_timeout);
    (Arc::new(allowing(0)), Arc::new(allowing(settings::UNIDIRECTIONAL)))
}

/// The outcome of a handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuicHandshake {
    /// A ticket of an earlier connection was used.
    pub resumed: bool,
    /// Requests went with the first packets, and the server accepted them (RFC 9001, section 4.6).
    pub early_data: bool,
    /// The cipher suite in the words of IANA.
    pub cipher_suite: String,
    /// The key exchange group, as [`crate::TlsGroup::name`] has it.
    pub group: String,
    /// The server's certificate and then its issuers.
    pub certificates: Vec<CertificateDer<'static>>,
}

/// A connection to one server.
pub struct QuicClient {
    /// Knows which packets are the connection's.
    endpoint: Endpoint,
    connection: Connection,
    handle: ConnectionHandle,
    server: SocketAddr,
    /// What a stream means.
    protocol: Box<dyn ClientProtocol>,
    credit: StreamCredit,
    /// Where the token came from that it began with, until the handshake is over; `None` without one.
    token_from: Option<Arc<dyn AddressTokens>>,
    has_begun: bool,
    handshake: Option<QuicHandshake>,
    /// Requests sent as early data, until the server has accepted them.
    early: Vec<(u16, Box<[u8]>)>,
    /// Requests that the server refused as early data, until they have been sent again.
    again: VecDeque<(u16, Box<[u8]>)>,
    /// A request was handed to the connection, and nothing has come since.
    has_asked: bool,
    /// When the first such request went out, or the first after the handshake.
    asked_at: Option<Instant>,
    /// Nothing has come for so long after it that the server is taken for gone.
    is_silent: bool,
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
        let protocol = Box::new(DoqClient::default());
        Self::connect(settings, &settings.doq, server, server_name, protocol, now)
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
        let protocol = Box::new(Http3Client::new(&target));
        Self::connect(settings, &settings.http3, server, server_name, protocol, now)
    }

    fn connect(
        settings: &QuicClientSettings,
        transport: &Arc<TransportConfig>,
        server: SocketAddr,
        server_name: &str,
        protocol: Box<dyn ClientProtocol>,
        now: Instant,
    ) -> Result<Self, QuicError> {
        let mut endpoint = Endpoint::new(Arc::clone(&settings.endpoint), None, true, None);
        let mut config = settings.client.clone();
        config.transport_config(Arc::clone(transport));
        let tokens = ConnectionTokens::new(settings.tokens.as_ref());
        let token_from = settings.tokens.clone().filter(|_| tokens.has_one());
        config.token_store(Arc::new(tokens));
        let (handle, connection) = endpoint.connect(now, config, server, server_name)?;
        let mut client = Self {
            endpoint,
            connection,
            handle,
            server,
            protocol,
            credit: StreamCredit::new(&settings.never_raises),
            token_from,
            has_begun: false,
            handshake: None,
            early: Vec::new(),
            again: VecDeque::new(),
            has_asked: false,
            asked_at: None,
            is_silent: false,
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
        self.has_begun && !self.is_over && !self.is_draining()
    }

    /// The server takes no further requests, is taken for gone, or allows no further streams.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.protocol.is_draining() || self.is_silent || self.is_used_up()
    }

    /// The server has allowed so many streams and seems to allow no more: half of them ended some time ago.
    #[must_use]
    pub fn is_used_up(&self) -> bool {
        self.credit.is_used_up()
    }

    /// The server is taken for gone: after a request was sent, nothing has come for 32 round trips, and for a
    /// second at least. The connection then takes no further requests. What was asked may still be answered;
    /// if anything comes, requests are taken again.
    ///
    /// QUIC itself sends its probes until the idle time-out, if either side has one. A server that was
    /// restarted on the same address knows neither the connection nor, often, how to say so (RFC 9000,
    /// section 10.3).
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.is_silent
    }

    /// The outcome of the handshake, once it is over.
    #[must_use]
    pub fn handshake(&self) -> Option<&QuicHandshake> {
        self.handshake.as_ref()
    }

    /// Sends a request. The number is that of its answer; on the wire the message's id is 0. False if the
    /// server allows no further stream now.
    ///
    /// Streams tell requests apart, not numbers. A caller that uses a number again before its answer has come
    /// gets two answers with it, unless it gives the first request up.
    pub fn send(&mut self, request: u16, message: &[u8]) -> bool {
        if !self.is_open() || !self.again.is_empty() {
            return false;
        }
        let is_sent = self.open_and_send(request, message);
        self.has_asked |= is_sent;
        if is_sent && self.handshake.is_none() {
            self.early.push((request, message.into()));
        }
        is_sent
    }

    /// False if the server allows no stream now, or has not taken what was sent before.
    fn open_and_send(&mut self, request: u16, message: &[u8]) -> bool {
        if !self.protocol.may_send() {
            return false;
        }
        let id = self.connection.streams().open(Dir::Bi);
        self.credit.note_wanted(id.is_some());
        let Some(id) = id else { return false };
        self.protocol.send(&mut self.connection, id, request, message);
        true
    }

    /// Gives a request up, and tells the server so.
    pub fn give_up(&mut self, request: u16) {
        self.protocol.give_up(&mut self.connection, request);
        self.again.retain(|(number, _)| *number != request);
        self.early.retain(|(number, _)| *number != request);
    }

    /// Takes datagrams that came from the server: `group` is cut into pieces of `segment` octets (`UDP_GRO`).
    /// [`QuicClient::poll`] delivers what they bring.
    pub fn receive(&mut self, now: Instant, group: &[u8], segment: usize) {
        let mut rest = BytesMut::from(group);
        let mut unused = Vec::new();
        while !rest.is_empty() {
            // The last, often the only one, takes the memory itself.
            let datagram = match segment.max(1) {
                length if length < rest.len() => rest.split_to(length),
                _ => std::mem::take(&mut rest),
            };
            let event = self.endpoint.handle(now, self.server, None, None, datagram, &mut unused);
            // A client's end point answers nothing by itself and accepts nobody.
            if let Some(DatagramEvent::ConnectionEvent(_, event)) = event {
                self.connection.handle_event(event);
                (self.has_asked, self.asked_at, self.is_silent) = (false, None, false);
            }
        }
        self.settle();
    }

    /// When [`QuicClient::handle_timeout`] is to be called next.
    #[must_use]
    pub fn next_timeout(&mut self) -> Option<Instant> {
        let look = self.credit.next_look(self.patience_with_streams());
        [self.connection.poll_timeout(), look].into_iter().flatten().min()
    }

    /// Does what is due by now.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.connection.handle_timeout(now);
        self.settle();
        self.note_time(now);
    }

    /// Delivers what has come for requests.
    ///
    /// # Errors
    /// When the connection is over; nothing comes after that. What [`QuicClient::transmit`] still gives tells
    /// the server.
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
                Event::Stream(StreamEvent::Available { dir: Dir::Bi }) => {
                    self.credit.note_raise(self.protocol.in_flight());
                    Ok(())
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
                return Err(self.last_word(now, error));
            }
        }
        self.send_again();
        Ok(())
    }

    /// The error of a connection that this side ends. A server that has closed it meanwhile has the last
    /// word; otherwise it is told.
    fn last_word(&mut self, now: Instant, error: QuicError) -> QuicError {
        if !matches!(error, QuicError::Protocol(_)) {
            return error;
        }
        while let Some(event) = self.connection.poll() {
            if let Event::ConnectionLost { reason } = event {
                return QuicError::new(reason, self.protocol.codes());
            }
        }
        let error_code = code(self.protocol.codes().protocol_error);
        self.connection.close(now, error_code, Bytes::new());
        error
    }

    /// Appends the next packets for the server to `out`. Gives the length of all but the last of them, so
    /// that one system call can send them (`UDP_SEGMENT`). `None` when there is nothing to send.
    pub fn transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<usize> {
        self.note_time(now);
        let segments = segments_of(self.connection.current_mtu());
        let start = out.len();
        let transmit = self.connection.poll_transmit(now, segments, out)?;
        debug_assert_eq!(out.len() - start, transmit.size);
        Some(transmit.segment_size.unwrap_or(transmit.size))
    }

    /// Ends the connection in order; [`QuicClient::transmit`] gives the packet that says so.
    pub fn close(&mut self, now: Instant) {
        self.is_over = true;
        self.connection.close(now, code(self.protocol.codes().no_error), Bytes::new());
    }

    /// Takes note of how long nothing has come, and for how long no further stream was allowed.
    fn note_time(&mut self, now: Instant) {
        self.note_silence(now);
        let (in_flight, patience) = (self.protocol.in_flight(), self.patience_with_streams());
        self.credit.note_time(now, in_flight, patience);
    }

    /// How long a server may take to allow further streams when some have ended.
    fn patience_with_streams(&self) -> Duration {
        STREAM_ROUND_TRIPS * (self.connection.rtt() + ACK_DELAY)
    }

    /// Takes note of how long nothing has come. This is called when probes go out and when requests do, since
    /// each request delays the probes.
    fn note_silence(&mut self, now: Instant) {
        if !self.has_asked || self.handshake.is_none() {
            return;
        }
        let asked_at = *self.asked_at.get_or_insert(now);
        let silence = SILENT_ROUND_TRIPS * (self.connection.rtt() + ACK_DELAY);
        let silence = silence.max(SHORTEST_SILENCE);
        self.is_silent = now.saturating_duration_since(asked_at) > silence;
    }

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
            group: facts.group,
            certificates: facts.certificates,
        });
        if let Some(tokens) = self.token_from.take() {
            tokens.confirm();
        }
        if !accepted {
            self.credit.begin_again();
            self.again = early.into();
            self.protocol.begin(&mut self.connection)?;
            self.has_begun = true;
        }
        Ok(())
    }

    /// Sends what the server refused as early data, as far as it allows streams.
    fn send_again(&mut self) {
        while let Some((request, message)) = self.again.front() {
            let (request, message) = (*request, message.clone());
            if !self.open_and_send(request, &message) {
                break;
            }
            self.again.pop_front();
        }
    }

    /// Lets end point and connection exchange their events.
    fn settle(&mut self) {
        while let Some(event) = self.connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(self.handle, event) {
                self.connection.handle_event(event);
            }
        }
    }
}

impl Drop for QuicClient {
    fn drop(&mut self) {
        // A handshake that began with a token and failed may have failed for the token.
        if let Some(tokens) = &self.token_from {
            tokens.refuse();
        }
    }
}
