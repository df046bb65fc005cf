//! What a worker asks of a connection, over every transport.

use dnslab_settings::{HttpSettings, ReceiveTime};
use dnslab_wire::{MessageBatch, Transport};

use super::{ConnectionEnd, Delivery, Draining, Opened};
use crate::runtime::{DatagramSocket, Inbox, Path, Runtime, Watched};
use crate::time::Nanos;
use crate::tls::ClientTls;

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

impl Route<'_> {
    /// TLS of the worker's clients.
    ///
    /// # Panics
    /// Where the transport has none.
    pub(super) fn client_tls(&self) -> &ClientTls {
        self.tls.expect("a client of an encrypted transport has TLS settings")
    }
}
