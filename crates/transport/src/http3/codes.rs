//! The error codes of HTTP/3.

use crate::quic::ErrorCodes;

/// The error codes that are told apart (RFC 9114, section 8.1).
pub(crate) static CODES: ErrorCodes = ErrorCodes {
    no_error: 0x100,
    cancelled: 0x10c,
    protocol_error: 0x101,
    excessive_load: 0x107,
    name,
};

/// The server did not look at the request, and it may be sent again.
pub(super) const REQUEST_REJECTED: u32 = 0x10b;

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
