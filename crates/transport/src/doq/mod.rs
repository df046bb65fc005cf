//! DNS over dedicated QUIC connections (RFC 9250): a bidirectional stream for each query, in which
//! a message follows its length, and message id 0.

mod client;
mod server;

pub(crate) use client::DoqClient;
pub(crate) use server::DoqServer;

use crate::quic::ErrorCodes;

/// The name of the protocol in ALPN (RFC 9250, section 4.1).
pub const ALPN_DOQ: &[u8] = b"doq";

/// The error codes (RFC 9250, section 4.3).
pub(crate) static CODES: ErrorCodes =
    ErrorCodes { no_error: 0, cancelled: 3, protocol_error: 2, excessive_load: 4, name };

/// The name of an error code (RFC 9250, section 8.4).
fn name(code: u64) -> &'static str {
    match code {
        0x0 => "DOQ_NO_ERROR",
        0x1 => "DOQ_INTERNAL_ERROR",
        0x2 => "DOQ_PROTOCOL_ERROR",
        0x3 => "DOQ_REQUEST_CANCELLED",
        0x4 => "DOQ_EXCESSIVE_LOAD",
        0x5 => "DOQ_UNSPECIFIED_ERROR",
        0xd098_ea5e => "DOQ_ERROR_RESERVED",
        _ => "an unknown error",
    }
}

/// Octets of the length before a message (RFC 9250, section 4.2).
const PREFIX: usize = 2;

/// The message in the octets of a stream, if it is there and has the length that stands before it.
fn whole_message(octets: &[u8]) -> Option<&[u8]> {
    let (length, message) = octets.split_first_chunk::<PREFIX>()?;
    (message.len() == usize::from(u16::from_be_bytes(*length))).then_some(message)
}

/// True if the octets of a stream are more than their message can have.
fn is_too_long(octets: &[u8]) -> bool {
    octets
        .split_first_chunk::<PREFIX>()
        .is_some_and(|(length, message)| message.len() > usize::from(u16::from_be_bytes(*length)))
}
