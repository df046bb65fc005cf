//! How a connection was opened.

use dnslab_figures::Tls;

use crate::time::Nanos;

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
