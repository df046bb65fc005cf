//! DNS over HTTPS (RFC 8484) on HTTP/3 (RFC 9114): as much of HTTP/3 as requests and responses
//! without trailers, push and priorities need, and of QPACK (RFC 9204) what needs no dynamic table.
//!
//! This is not the crate `h3` (0.0.8). That crate does not hand out the number in a GOAWAY frame: nobody can
//! then tell the requests that the server never looked at from those that are lost. It also wants a future, a
//! header map and several buffers for each request, where here a request is some ready octets.

mod client;
mod control;
mod frames;
mod message;
mod qpack;
mod server;
mod varint;

pub(crate) use client::Http3Client;
pub(crate) use server::Http3Server;

use crate::quic::ErrorCodes;

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

/// The error codes that are told apart (RFC 9114, section 8.1).
pub(crate) static CODES: ErrorCodes = ErrorCodes {
    no_error: 0x100,
    cancelled: 0x10c,
    protocol_error: 0x101,
    excessive_load: 0x107,
    name,
};

/// The server did not look at the request, and it may be sent again.
const REQUEST_REJECTED: u32 = 0x10b;

/// The name of an error code (RFC 9114, section 8.1; RFC 9204, section 6).
fn name(code: u64) -> &'static str {
    const NAMES: [&str; 17] = [
        "H3_NO_ERROR",
        "H3_GENERAL_PROTOCOL_ERROR",
        "H3_INTERNAL_ERROR",
        "H3_STREAM_CREATION_ERROR",
        "H3_CLOSED_CRITICAL_STREAM",
        "H3_FRAME_UNEXPECTED",
        "H3_FRAME_ERROR",
        "H3_EXCESSIVE_LOAD",
        "H3_ID_ERROR",
        "H3_SETTINGS_ERROR",
        "H3_MISSING_SETTINGS",
        "H3_REQUEST_REJECTED",
        "H3_REQUEST_CANCELLED",
        "H3_REQUEST_INCOMPLETE",
        "H3_MESSAGE_ERROR",
        "H3_CONNECT_ERROR",
        "H3_VERSION_FALLBACK",
    ];
    match code {
        0x100..=0x110 => NAMES[(code - 0x100) as usize],
        0x200 => "QPACK_DECOMPRESSION_FAILED",
        0x201 => "QPACK_ENCODER_STREAM_ERROR",
        0x202 => "QPACK_DECODER_STREAM_ERROR",
        _ => "an unknown error",
    }
}
