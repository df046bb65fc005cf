//! Messages on streams (RFC 9250, section 4.2).

/// Octets of the length before a message (RFC 9250, section 4.2).
pub(super) const PREFIX: usize = 2;

/// The message in the octets of a stream, if it is there and has the length that stands before it.
pub(super) fn whole_message(octets: &[u8]) -> Option<&[u8]> {
    let (length, message) = octets.split_first_chunk::<PREFIX>()?;
    (message.len() == usize::from(u16::from_be_bytes(*length))).then_some(message)
}

/// True if the octets of a stream are more than their message can have.
pub(super) fn is_too_long(octets: &[u8]) -> bool {
    octets
        .split_first_chunk::<PREFIX>()
        .is_some_and(|(length, message)| message.len() > usize::from(u16::from_be_bytes(*length)))
}
