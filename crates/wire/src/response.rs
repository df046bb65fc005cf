//! What a response says, read without allocation.

use crate::header::HEADER;
use crate::name::uncompressed_length;

/// The parts of a response that an engine counts, borrowed from the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response<'a> {
    /// Message id.
    pub id: u16,
    /// Response code of the header, 0 to 15 (RFC 1035, section 4.1.1).
    pub rcode: u8,
    /// The TC bit.
    pub truncated: bool,
    /// Records in the answer section, as the header says.
    pub answers: u16,
    /// The question section; empty if the server left it out, as it may in an error.
    pub question: &'a [u8],
}

/// The octets are no readable DNS response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Shorter than a header.
    #[error("message of {0} octets is shorter than a header")]
    Short(usize),
    /// The QR bit is not set.
    #[error("message is a query, not a response")]
    NotAResponse,
    /// The question section ends outside the message, or holds more than one question.
    #[error("question section is broken")]
    Question,
}

impl<'a> Response<'a> {
    /// Reads the header and the bounds of the question; the records are not walked.
    ///
    /// # Errors
    /// When the octets are no readable DNS response.
    #[inline]
    pub fn parse(message: &'a [u8]) -> Result<Self, Malformed> {
        if message.len() < HEADER {
            return Err(Malformed::Short(message.len()));
        }
        let word = |at: usize| u16::from_be_bytes([message[at], message[at + 1]]);
        if message[2] & 0x80 == 0 {
            return Err(Malformed::NotAResponse);
        }
        let question = match word(4) {
            0 => &message[HEADER..HEADER],
            1 => question(&message[HEADER..]).ok_or(Malformed::Question)?,
            _ => return Err(Malformed::Question),
        };
        Ok(Self {
            id: word(0),
            rcode: message[3] & 0x0f,
            truncated: message[2] & 0x02 != 0,
            answers: word(6),
            question,
        })
    }

    /// The message id alone, if the message is long enough to have one.
    #[must_use]
    pub fn id_of(message: &[u8]) -> Option<u16> {
        Some(u16::from_be_bytes([*message.first()?, *message.get(1)?]))
    }
}

/// An uncompressed name, type and class.
fn question(rest: &[u8]) -> Option<&[u8]> {
    rest.get(..uncompressed_length(rest)? + 4)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn cases() {
        let good = b"\x12\x34\x84\x03\0\x01\0\x02\0\0\0\0\x01a\0\0\x01\0\x01";
        let response = Response::parse(good).unwrap();
        assert_eq!((response.id, response.rcode, response.answers), (0x1234, 3, 2));
        assert_eq!(response.question, b"\x01a\0\0\x01\0\x01");
        let check = |message: &[u8], expected| assert_eq!(Response::parse(message), Err(expected));
        check(b"\x12", Malformed::Short(1));
        check(b"\x12\x34\x04\x03\0\x01\0\x02\0\0\0\0", Malformed::NotAResponse);
        check(b"\x12\x34\x84\x03\0\x01\0\x02\0\0\0\0", Malformed::Question);
        check(b"\x12\x34\x84\x03\0\x02\0\x02\0\0\0\0\x01a\0\0\x01\0\x01", Malformed::Question);
        check(b"\x12\x34\x84\x03\0\x01\0\x02\0\0\0\0\xc0\x0c\0\0\x01\0\x01", Malformed::Question);
        assert!(Response::parse(b"\x12\x34\x86\x05\0\0\0\0\0\0\0\0").unwrap().truncated);
    }

    proptest! {
        #[test]
        fn any_octets_are_read_or_refused(message in prop::collection::vec(any::<u8>(), 0..600)) {
            if let Ok(response) = Response::parse(&message) {
                prop_assert!(response.question.len() <= message.len() - HEADER);
            }
        }
    }
}
