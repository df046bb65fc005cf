//! What an answer says in its header, and how large it may be.

use crate::zone::Role;

/// The largest datagram that is sent and the payload size that is announced, octets. It passes without
/// fragments nearly everywhere (DNS Flag Day 2020; the default of BIND and Knot).
pub const MAX_DATAGRAM: usize = 1232;

/// The largest datagram for a client without EDNS (RFC 1035, section 2.3.4).
pub(super) const CLASSIC_DATAGRAM: usize = 512;

/// Padded answers are as long as a multiple of this, octets (RFC 8467, section 4.1).
pub(super) const PADDING_BLOCK: usize = 468;

/// Octets of an OPT record without options (RFC 6891, section 6.1.2).
pub(super) const OPT_LENGTH: usize = 11;

/// What the header says in the end.
#[derive(Clone, Copy)]
pub(super) struct Outcome {
    /// Response code, with the four bits of the header and the eight of the OPT record.
    pub(super) rcode: u16,
    /// AA: the first owner's data are this zone's own (RFC 1035, section 4.1.1).
    pub(super) authoritative: bool,
    /// TC: something that had to be there did not fit.
    pub(super) truncated: bool,
    /// RA, AD and CD, at their places in the header; 0 from an authoritative server (RFC 4035, section
    /// 3.1.6).
    pub(super) recursive_bits: u8,
}

/// RA in the fourth octet of the header: recursion is available.
pub(super) const RA: u8 = 0x80;

/// AD there: all data in the answer are authentic. In a query: the client asks for the bit (RFC 6840, section
/// 5.7).
pub(super) const AD: u8 = 0x20;

/// CD there: the client validates by itself.
pub(super) const CD: u8 = 0x10;

impl Outcome {
    pub(super) fn code(rcode: u16) -> Self {
        Self { rcode, authoritative: false, truncated: false, recursive_bits: 0 }
    }

    /// Adds what every answer of a recursive resolver has: RA, and CD as it came (RFC 4035, section 3.2.2).
    pub(super) fn seen_by(mut self, role: Role, query: &[u8]) -> Self {
        if role == Role::Recursive {
            self.recursive_bits |= RA | query[3] & CD;
            self.authoritative = false;
        }
        self
    }
}
