//! How queries reach a server: one state machine for each transport, behind one interface that takes batches.
//! A connection knows no schedule, no time-out and no outcome.

mod doh2;
mod doh3;
mod doq;
mod dot;
mod quic;
mod stream;
mod tcp;
mod udp;

pub(crate) use udp::{is_about_an_earlier_datagram, is_for_now};

use std::io;

use dnslab_figures::Tls;
use dnslab_settings::{HttpSettings, ReceiveTime};
use dnslab_transport::Exchange;
use dnslab_wire::{MessageBatch, Transport};

use crate::runtime::{DatagramSocket, Inbox, Path, Runtime, Watched};
use crate::time::Nanos;
use crate::tls::ClientTls;

/// Why a connection came to its end.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionEnd {
    /// No connection came about.
    #[error("cannot connect: {0}")]
    Connect(#[source] io::Error),
    /// The process, or the machine, has no file descriptor left.
    #[error("cannot connect: no file descriptor is left; use fewer clients, or an idle time")]
    NoFiles,
    /// The client's address has no free port, or is not an address of the host.
    #[error(
        "cannot connect: the source address is not this host's, or has no port left (closed TCP \
         connections keep theirs for a minute); give more source addresses"
    )]
    NoPorts,
    /// The server closed the connection.
    #[error("the server closed the connection")]
    Closed,
    /// Nothing came for longer than one of the sides lets a connection be silent (RFC 9000, section 10.1).
    /// Without a query in flight that is an orderly end.
    #[error("the connection was silent for longer than its idle time-out")]
    Idle,
    /// The connection broke.
    #[error("connection broke: {0}")]
    Broken(#[source] io::Error),
    /// HTTP or QUIC failed, or the server closed the connection with an error of theirs.
    #[error("{0}")]
    Protocol(String),
    /// TLS failed.
    #[error("TLS: {0}")]
    Tls(#[from] rustls::Error),
}

impl ConnectionEnd {
    /// Whether the server, not this host or what the two agreed on, ended a connection of which it had answered
    /// nothing.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self, Self::Connect(_) | Self::Closed | Self::Broken(_))
    }

    /// A connection that did not come about, with the remedy where there is one.
    pub fn connect(error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::EMFILE | libc::ENFILE) => Self::NoFiles,
            Some(libc::EADDRNOTAVAIL | libc::EADDRINUSE) => Self::NoPorts,
            _ => Self::Connect(error),
        }
    }
}

/// Why a server, or this side, ended a handshake of TLS (RFC 8446, section 6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsRefusal {
    /// The server wants a certificate of the client.
    WantsCertificate,
    /// They have no version of TLS in common.
    NoVersion,
    /// They have no cipher suite, key exchange group or kind of signature in common.
    NoParameters,
    /// The server does not speak the protocol that is to lie above TLS (RFC 7301).
    NoProtocol,
    /// The server has no such name (RFC 6066, section 3).
    UnknownName,
}

impl ConnectionEnd {
    /// What ended the handshake; `None` if it was something else.
    #[must_use]
    pub fn tls_refusal(&self) -> Option<TlsRefusal> {
        use rustls::{AlertDescription as Alert, Error, PeerIncompatible as Peer};
        let Self::Tls(error) = self else { return None };
        Some(match error {
            Error::AlertReceived(alert) => match alert {
                // Before TLS 1.3 there was no alert of its own for it.
                Alert::CertificateRequired | Alert::BadCertificate | Alert::NoCertificate => {
                    TlsRefusal::WantsCertificate
                }
                Alert::ProtocolVersion => TlsRefusal::NoVersion,
                Alert::HandshakeFailure | Alert::InsufficientSecurity => TlsRefusal::NoParameters,
                Alert::NoApplicationProtocol => TlsRefusal::NoProtocol,
                Alert::UnrecognisedName => TlsRefusal::UnknownName,
                _ => return None,
            },
            Error::NoApplicationProtocol => TlsRefusal::NoProtocol,
            Error::PeerIncompatible(
                Peer::ServerTlsVersionIsDisabledByOurConfig | Peer::ServerDoesNotSupportTls12Or13,
            ) => TlsRefusal::NoVersion,
            Error::PeerIncompatible(_) => TlsRefusal::NoParameters,
            _ => return None,
        })
    }
}

/// A message from the server.
#[derive(Clone, Copy, Debug)]
pub struct Received<'a> {
    /// The message.
    pub octets: &'a [u8],
    /// When it was read from the kernel.
    pub at: Nanos,
}

/// What the server did with a query.
#[derive(Clone, Copy, Debug)]
pub enum Delivery<'a> {
    /// A message, to be matched by id and question.
    Message(Received<'a>),
    /// The server refused this query alone, without a DNS message: by an HTTP status other than 200, or by
    /// resetting its stream.
    Refused {
        /// The id that the query was sent with.
        id: u16,
        /// When it was read from the kernel.
        at: Nanos,
        /// The HTTP status. 200 if its content was no DNS message, 0 if there was none.
        status: u16,
    },
    /// The server said that it did not look at this query (GOAWAY). It may be asked again on the next
    /// connection and is no loss.
    NotProcessed {
        /// The id that the query was sent with.
        id: u16,
    },
    /// The server did not want to look at this query because it came as early data (status 425; RFC 8470,
    /// section 5.2). It is to be asked again after the handshake.
    TooEarly {
        /// The id that the query was sent with.
        id: u16,
    },
}

const TOO_EARLY: u16 = 425;

impl<'a> Delivery<'a> {
    /// The result of an HTTP request that came in at `at`.
    pub fn of(exchange: Exchange<'a>, at: Nanos) -> Self {
        match exchange {
            Exchange::Answer { message, .. } => Self::Message(Received { octets: message, at }),
            Exchange::Refused { request, status: TOO_EARLY } => Self::TooEarly { id: request },
            Exchange::Refused { request, status } => Self::Refused { id: request, at, status },
            Exchange::NotProcessed { request } => Self::NotProcessed { id: request },
        }
    }
}

/// Why nothing more may be sent on a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Draining {
    /// The server has announced its end, with an error if there was one.
    Announced(Option<String>),
    /// The server seems to be gone.
    Silent,
    /// The server allows no more queries on this connection. The client ends it and goes on with another.
    UsedUp,
}

impl Draining {
    /// How the server ended it, in words; `None` if the client ends it.
    pub fn by_server(self) -> Option<String> {
        const ANNOUNCED: &str = "the server announced the end of the connection";
        const SILENT: &str =
            "the server fell silent: it acknowledged nothing, however often it was asked";
        match self {
            Self::Announced(None) => Some(ANNOUNCED.to_owned()),
            Self::Announced(Some(error)) => Some(format!("{ANNOUNCED}: {error}")),
            Self::Silent => Some(SILENT.to_owned()),
            Self::UsedUp => None,
        }
    }
}

/// How a connection was opened.
#[derive(Clone, Debug)]
pub struct Opened {
    /// Time to connect the transport, nanoseconds.
    pub connect: Option<Nanos>,
    /// Round trip to the server as the kernel measured it over TCP, nanoseconds.
    pub round_trip: Option<Nanos>,
    /// The TLS handshake after that.
    pub handshake: Option<Handshake>,
}

/// A TLS handshake that is over.
#[derive(Clone, Debug)]
pub struct Handshake {
    /// From the connected transport (QUIC: from the first packet) to the end of the handshake.
    pub duration: Nanos,
    /// Whether a ticket of an earlier connection was used.
    pub kind: HandshakeKind,
    /// What TLS agreed on.
    pub agreed: Tls,
}

/// How much of a handshake was saved (RFC 8446, section 2.2 and 2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandshakeKind {
    /// Nothing: certificates went over the wire.
    Full,
    /// A ticket of an earlier connection was accepted.
    Resumed,
    /// A ticket was accepted, and so were the queries sent with the first packet.
    EarlyData,
}

/// Buffers that all connections of a worker use in turn, so that an idle connection holds none.
pub struct Scratch<R: Runtime> {
    /// Datagrams received.
    pub inbox: <R::Datagrams as DatagramSocket>::Inbox,
    /// Octets as read from a stream socket.
    pub read: Vec<u8>,
    /// Octets of a stream above the encryption.
    pub plain: Vec<u8>,
    /// Octets on their way to a stream socket.
    pub write: Vec<u8>,
}

impl<R: Runtime> Default for Scratch<R> {
    fn default() -> Self {
        Self { inbox: Inbox::new(), read: vec![], plain: vec![], write: vec![] }
    }
}

/// The way of one client to one server.
pub trait Connection<R: Runtime> {
    /// The socket, for readiness.
    fn socket(&self) -> Watched<'_, R>;

    /// Queries may be sent: the connection is there, or early data may go with its first packet. Neither side
    /// has begun to close it.
    fn is_open(&self) -> bool;

    /// Nothing more may be sent, but answers may still come. The server has announced its end (GOAWAY, an
    /// idle time of zero in RFC 7828), seems to be gone, or allows no further streams. The connection is
    /// closed when its last query has its outcome.
    fn is_draining(&self) -> bool {
        false
    }

    /// Why nothing more may be sent, while [`Connection::is_draining`].
    fn why_draining(&self) -> Draining {
        Draining::Announced(None)
    }

    /// Octets wait until the socket is writable.
    fn wants_to_write(&self) -> bool;

    /// Messages that one call of [`Connection::send`] takes at most.
    fn batch_limit(&self) -> usize;

    /// Hands over messages in order, and returns how many were taken. The others may be offered again when
    /// the socket is writable.
    ///
    /// # Errors
    /// When the connection is at its end.
    fn send(
        &mut self,
        runtime: &R,
        outbox: &MessageBatch,
        scratch: &mut Scratch<R>,
    ) -> Result<usize, ConnectionEnd>;

    /// Does what the socket is ready for: goes on with connecting, writes what waits, reads once and delivers
    /// each whole message. True if more may be there to read at once.
    ///
    /// # Errors
    /// When the connection is at its end.
    fn advance(
        &mut self,
        runtime: &R,
        scratch: &mut Scratch<R>,
        deliver: &mut dyn FnMut(Delivery<'_>),
    ) -> Result<bool, ConnectionEnd>;

    /// When [`Connection::advance`] must be called even if the socket stays silent (QUIC's timers). Looked at
    /// after each call of `send` and `advance`.
    fn next_timer(&self) -> Option<Nanos> {
        None
    }

    /// The query with this id has timed out. If it has a stream of its own, that stream is given up;
    /// otherwise it would stay in use for ever.
    fn forget(&mut self, _now: Nanos, _id: u16) {}

    /// Says good-bye as the transport does (close_notify, GOAWAY, CONNECTION_CLOSE), as far as the socket
    /// takes it at once. Then the connection is dropped.
    fn close(&mut self, _now: Nanos, _scratch: &mut Scratch<R>) {}

    /// How the connection was opened. Returned once, after it was opened.
    fn take_opened(&mut self) -> Option<Opened>;

    /// Which system calls carry the messages, for the record.
    fn send_path(&self) -> &'static str;

    /// Answers that the kernel dropped at this socket.
    fn drops(&self) -> u64 {
        0
    }
}

/// What a connection is opened with.
pub struct Route<'a> {
    /// From where to where.
    pub path: Path,
    /// How queries travel.
    pub transport: Transport,
    /// The client whose tickets and cookies are used: its place among those of the worker.
    pub client: u32,
    /// TLS of the worker's clients.
    pub tls: Option<&'a ClientTls>,
    /// Settings of HTTP.
    pub http: &'a HttpSettings,
    /// Whose clock says when a datagram came.
    pub receive_time: ReceiveTime,
    /// What came over TCP is acknowledged as soon as it was read.
    pub quickack: bool,
}

/// Begins to open a connection for one client.
///
/// # Errors
/// When no socket is to be had, or the address cannot be reached at all.
pub fn open<R: Runtime>(
    runtime: &mut R,
    route: &Route<'_>,
    now: Nanos,
) -> Result<Box<dyn Connection<R>>, ConnectionEnd> {
    let tls = || route.tls.expect("a client of an encrypted transport has TLS settings");
    Ok(match route.transport {
        Transport::Udp => Box::new(udp::UdpConnection::open(runtime, route)?),
        Transport::Tcp => {
            let layer = tcp::Framed::over(tcp::Nothing);
            Box::new(stream::Stream::connect(runtime, route, layer, now)?)
        }
        Transport::Dot => {
            let layer = dot::layer(tls(), route.client)?;
            Box::new(stream::Stream::connect(runtime, route, layer, now)?)
        }
        Transport::Doh2 => {
            let layer = doh2::layer(tls(), route)?;
            Box::new(stream::Stream::connect(runtime, route, layer, now)?)
        }
        Transport::Doq => Box::new(doq::open(tls(), runtime, route, now)?),
        Transport::Doh3 => Box::new(doh3::open(tls(), runtime, route, now)?),
    })
}
