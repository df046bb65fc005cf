//! How queries reach a server: one state machine per transport, behind one interface that takes
//! batches. A channel knows no schedule, no time-out and no outcome.

mod dot;
mod stream;
mod tcp;
mod udp;

use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

use dnslab_measure::Tls;
use dnslab_wire::Transport;

pub(crate) use dot::ClientTls;

use crate::clock::{Clock, Nanos};
use crate::sys::{Inbox, Outbox};

/// Why a channel came to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChannelEnd {
    /// No connection came about.
    #[error("cannot connect: {0}")]
    Connect(#[source] io::Error),
    /// The server closed the connection.
    #[error("the server closed the connection")]
    Closed,
    /// The connection broke.
    #[error("connection broke: {0}")]
    Broken(#[source] io::Error),
    /// TLS failed.
    #[error("TLS: {0}")]
    Tls(#[from] rustls::Error),
}

/// A message from the server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received<'a> {
    /// The message.
    pub(crate) octets: &'a [u8],
    /// When it was read from the kernel.
    pub(crate) at: Nanos,
}

/// How a channel was opened.
#[derive(Clone, Debug)]
pub(crate) struct Opened {
    /// Time to connect the transport, nanoseconds.
    pub(crate) connect: Option<Nanos>,
    /// The TLS handshake after it.
    pub(crate) handshake: Option<Handshake>,
}

/// A TLS handshake that is over.
#[derive(Clone, Debug)]
pub(crate) struct Handshake {
    /// From the connected transport to the first moment at which queries may be sent.
    pub(crate) duration: Nanos,
    /// A ticket of an earlier connection was accepted.
    pub(crate) resumed: bool,
    /// What was agreed on.
    pub(crate) agreed: Tls,
}

/// Buffers of a worker that all its channels use in turn, so that an idle channel holds none.
#[derive(Default)]
pub(crate) struct Scratch {
    /// Datagrams received.
    pub(crate) inbox: Inbox,
    /// Octets as read from a stream socket.
    pub(crate) read: Vec<u8>,
    /// Octets of a stream above the encryption.
    pub(crate) plain: Vec<u8>,
    /// Octets on their way to a stream socket.
    pub(crate) write: Vec<u8>,
}

/// A way to one server for one client.
pub(crate) trait Channel {
    /// The socket, for readiness.
    fn descriptor(&self) -> BorrowedFd<'_>;

    /// Queries may be sent.
    fn is_open(&self) -> bool;

    /// Octets wait until the socket is writable.
    fn wants_to_write(&self) -> bool;

    /// Messages that one call of [`Channel::send`] takes at most.
    fn batch_limit(&self) -> usize;

    /// Hands over messages in order; how many were taken. Those not taken may be offered again
    /// when the socket is writable.
    ///
    /// # Errors
    /// When the channel is at its end.
    fn send(&mut self, outbox: &Outbox, scratch: &mut Scratch) -> Result<usize, ChannelEnd>;

    /// Does what the socket is ready for: goes on with connecting, writes what waits, reads once
    /// and delivers each whole message. True if more may be there to read at once.
    ///
    /// # Errors
    /// When the channel is at its end.
    fn advance(
        &mut self,
        clock: &Clock,
        scratch: &mut Scratch,
        deliver: &mut dyn FnMut(Received<'_>),
    ) -> Result<bool, ChannelEnd>;

    /// How the channel was opened; once, when it has been.
    fn take_opened(&mut self) -> Option<Opened>;

    /// Which system calls carry the messages, for the record.
    fn send_path(&self) -> &'static str;

    /// Answers that the kernel dropped at this socket.
    fn drops(&self) -> u64 {
        0
    }
}

/// Begins to open a channel for one client.
///
/// # Errors
/// When no socket is to be had, or the address cannot be reached at all.
pub(crate) fn open(
    transport: Transport,
    target: SocketAddr,
    tls: Option<&ClientTls>,
    now: Nanos,
) -> Result<Box<dyn Channel>, ChannelEnd> {
    Ok(match transport {
        Transport::Udp => Box::new(udp::UdpChannel::open(target)?),
        Transport::Tcp => Box::new(stream::Stream::connect(target, tcp::Plain, now)?),
        Transport::Dot => {
            let tls = tls.expect("a client of an encrypted transport has TLS settings");
            Box::new(stream::Stream::connect(target, tls.layer()?, now)?)
        }
    })
}
