//! The error codes of DNS over QUIC.

use crate::quic::ErrorCodes;

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
