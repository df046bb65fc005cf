//! What the header of an answer says of recursion, and how large an answer may be.

use dnslab_wire::ResponseHeader;

use crate::zone::Role;

/// The largest datagram that is sent and the payload size that is announced, octets. It passes without
/// fragments nearly everywhere (DNS Flag Day 2020; the default of BIND and Knot).
pub const MAX_DATAGRAM: usize = 1232;

/// Padded answers are as long as a multiple of this, octets (RFC 8467, section 4.1).
pub(super) const PADDING_BLOCK: u16 = 468;

/// RA in the fourth octet of the header: recursion is available.
pub(super) const RA: u8 = 0x80;

/// AD there: all data in the answer are authentic. In a query: the client asks for the bit (RFC 6840, section
/// 5.7).
pub(super) const AD: u8 = 0x20;

/// CD there: the client validates by itself.
const CD: u8 = 0x10;

/// Adds what every answer of a recursive resolver has: RA, and CD as it came (RFC 4035, section 3.2.2).
pub(super) fn seen_by(mut header: ResponseHeader, role: Role, query: &[u8]) -> ResponseHeader {
    if role == Role::Recursive {
        header.recursion_bits |= RA | query[3] & CD;
        header.is_authoritative = false;
    }
    header
}
