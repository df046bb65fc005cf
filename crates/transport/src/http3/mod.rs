//! DNS over HTTPS (RFC 8484) on HTTP/3 (RFC 9114): as much of HTTP/3 as requests and responses
//! without trailers, push and priorities need, and of QPACK (RFC 9204) what needs no dynamic table.
//!
//! This is not the crate `h3` (0.0.8). That crate does not hand out the number in a GOAWAY frame: nobody can
//! then tell the requests that the server never looked at from those that are lost. It also wants a future, a
//! header map and several buffers for each request, where here a request is some ready octets.

mod client;
mod codes;
mod control;
mod frames;
mod message;
mod qpack;
mod server;
mod varint;

pub(crate) use client::Http3Client;
pub(crate) use server::Http3Server;

/// Reads a whole HTTP/3 request to a server of `path`, as [`crate::quic::QuicServer`] does; gives the DNS
/// message.
///
/// # Errors
/// The status to refuse it with; `None` if it ends the connection.
pub fn read_http3_request(octets: &[u8], path: &str) -> Result<Vec<u8>, Option<u16>> {
    let mut message = octets.to_vec();
    match message::read_request(&mut message, path) {
        Ok(_) => Ok(message),
        Err(message::Unanswered::Refused(status)) => Err(Some(status)),
        Err(message::Unanswered::Broken(_)) => Err(None),
    }
}

/// The name of the protocol in ALPN (RFC 9114, section 3.1).
pub const ALPN_H3: &[u8] = b"h3";
