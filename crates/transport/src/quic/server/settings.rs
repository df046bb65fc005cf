//! What a server is told before it begins.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use super::protocol::ServerProtocol;
use crate::doq::DoqServer;
use crate::http3::Http3Server;
use crate::quic::error::QuicError;
use crate::quic::settings::UNIDIRECTIONAL;
use crate::quic::tls::ServerTls;

/// What a server is.
#[derive(Clone)]
pub struct QuicServerSettings {
    pub(super) tls: Arc<ServerTls>,
    pub(super) protocol: Spoken,
    /// Streams that a client may have open at once.
    pub streams: u32,
    /// A connection on which nothing moves for so long is closed.
    pub idle_timeout: Duration,
    /// Connections at once; further ones are refused.
    pub connections: usize,
    /// A connection that has taken so many queries is closed once their answers have arrived. HTTP/3 tells
    /// its client at once (GOAWAY), and still answers what the client had sent before. DNS over QUIC cannot
    /// say so: further queries end with the connection.
    pub queries_per_connection: Option<NonZeroU64>,
    /// Makes the draws repeatable, for a simulation.
    pub seed: Option<[u8; 32]>,
}

#[derive(Clone)]
pub(super) enum Spoken {
    Doq,
    /// HTTP/3, with DNS at this path.
    Http3(Arc<str>),
}

/// Streams that a client may have open at once by default. quinn-proto keeps some tens of octets for each of
/// them from the beginning; the largest useful windows of one connection are of this size.
const STREAMS: u32 = 1024;

impl QuicServerSettings {
    /// A server of DNS over QUIC (RFC 9250): 1,024 streams for each of 10,000 connections, which
    /// may be idle for 30 s.
    ///
    /// # Errors
    /// When the TLS settings cannot be used for QUIC.
    pub fn doq(tls: Arc<rustls::ServerConfig>) -> Result<Self, QuicError> {
        Self::new(tls, Spoken::Doq)
    }

    /// A server of DNS over HTTPS with HTTP/3 (RFC 8484, RFC 9114) at this path, otherwise the same.
    ///
    /// # Errors
    /// When the TLS settings cannot be used for QUIC.
    pub fn http3(tls: Arc<rustls::ServerConfig>, path: &str) -> Result<Self, QuicError> {
        Self::new(tls, Spoken::Http3(path.into()))
    }

    fn new(tls: Arc<rustls::ServerConfig>, protocol: Spoken) -> Result<Self, QuicError> {
        Ok(Self {
            tls: Arc::new(ServerTls::new(tls)?),
            protocol,
            streams: STREAMS,
            idle_timeout: Duration::from_secs(30),
            connections: 10_000,
            queries_per_connection: None,
            seed: None,
        })
    }
}

impl Spoken {
    pub(super) fn begin(&self) -> Box<dyn ServerProtocol> {
        match self {
            Self::Doq => Box::new(DoqServer::default()),
            Self::Http3(path) => Box::new(Http3Server::new(Arc::clone(path))),
        }
    }

    /// Unidirectional streams that a client may open.
    pub(super) fn unidirectional(&self) -> u32 {
        match self {
            Self::Doq => 0,
            Self::Http3(_) => UNIDIRECTIONAL,
        }
    }
}
