//! The OPT record of a response, read without allocation.

use std::time::Duration;

use crate::edns::{COOKIE, EXTENDED_ERROR, KEEPALIVE, OPTION_HEADER};
use crate::header::HEADER;
use crate::name::after_name;
use crate::rtype::OPT;

/// What the OPT record of a response says (RFC 6891), borrowed from the message. Of an option that is there
/// twice, the first counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponseOptions<'a> {
    /// The whole response code: 8 bits of the OPT record above the 4 of the header (RFC 6891, section 6.1.3).
    pub rcode: u16,
    /// Version of EDNS that the server speaks.
    pub version: u8,
    /// Largest UDP message that the server takes, octets.
    pub payload_size: u16,
    /// The DO bit (RFC 3225).
    pub dnssec_ok: bool,
    /// The data of the COOKIE option, of any length: [`crate::Cookie::learn`] judges it.
    pub cookie: Option<&'a [u8]>,
    /// How long the server keeps an idle connection open (RFC 7828, section 3.1); an option without a
    /// time-out says nothing.
    pub keepalive: Option<Duration>,
    /// The INFO-CODE of an extended DNS error (RFC 8914).
    pub extended_error: Option<u16>,
}

impl<'a> ResponseOptions<'a> {
    /// Finds the OPT record of a message.
    ///
    /// `None` if there is none, or if the message is malformed before it. The work is bounded by the length
    /// of the message: no pointer of a compressed name is followed. Options after a malformed one are not
    /// read.
    #[must_use]
    #[inline]
    pub fn read(message: &'a [u8]) -> Option<Self> {
        let word = |at: usize| Some(u16::from_be_bytes([*message.get(at)?, *message.get(at + 1)?]));
        // An OPT record can only be in the additional section (RFC 6891, section 6.1.1), and a response
        // mostly has no other record there.
        let additional = word(10)?;
        if additional == 0 {
            return None;
        }
        let mut at = HEADER;
        for _ in 0..word(4)? {
            at = after_name(message, at)? + 4;
        }
        let before = u32::from(word(6)?) + u32::from(word(8)?);
        for number in 0..before + u32::from(additional) {
            let fixed = after_name(message, at)?;
            let data = fixed + 10;
            let end = data + usize::from(word(fixed + 8)?);
            if number >= before && word(fixed)? == OPT && fixed == at + 1 {
                let fixed: &[u8; 8] = message.get(fixed..fixed + 8)?.try_into().ok()?;
                return Some(Self::of(message[3] & 0x0f, fixed, message.get(data..end)?));
            }
            at = end;
        }
        None
    }

    fn of(header_rcode: u8, fixed: &[u8; 8], options: &'a [u8]) -> Self {
        let [_, _, size_high, size_low, extended, version, flags, _] = *fixed;
        let mut read = Self {
            rcode: u16::from(extended) << 4 | u16::from(header_rcode),
            version,
            payload_size: u16::from_be_bytes([size_high, size_low]),
            dnssec_ok: flags & 0x80 != 0,
            ..Self::default()
        };
        let mut rest = options;
        while let Some((header, behind)) = rest.split_first_chunk::<OPTION_HEADER>() {
            let code = u16::from_be_bytes([header[0], header[1]]);
            let length = u16::from_be_bytes([header[2], header[3]]);
            let Some((data, behind)) = behind.split_at_checked(length.into()) else { break };
            match (code, data) {
                (COOKIE, _) => read.cookie = read.cookie.or(Some(data)),
                (KEEPALIVE, [high, low]) => {
                    let tenths = u16::from_be_bytes([*high, *low]);
                    let timeout = Duration::from_millis(100) * u32::from(tenths);
                    read.keepalive = read.keepalive.or(Some(timeout));
                }
                (EXTENDED_ERROR, [high, low, ..]) => {
                    let info_code = u16::from_be_bytes([*high, *low]);
                    read.extended_error = read.extended_error.or(Some(info_code));
                }
                _ => {}
            }
            rest = behind;
        }
        read
    }
}

#[cfg(test)]
mod tests;
