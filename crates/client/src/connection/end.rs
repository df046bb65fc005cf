//! Why a connection takes no more queries, or is no more.

use std::io;

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
