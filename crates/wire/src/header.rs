//! The header of a message.

/// Octets of the header of a message (RFC 1035, section 4.1.1).
pub const HEADER: usize = 12;
