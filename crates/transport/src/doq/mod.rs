//! DNS over dedicated QUIC connections (RFC 9250): a bidirectional stream for each query, in which
//! a message follows its length, and message id 0.

mod client;
mod codes;
mod framing;
mod server;

pub(crate) use client::DoqClient;
pub(crate) use server::DoqServer;

/// The name of the protocol in ALPN (RFC 9250, section 4.1).
pub const ALPN_DOQ: &[u8] = b"doq";
