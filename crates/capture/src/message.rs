//! What a query is.

use dnslab_wire::uncompressed_length;

use crate::Reason;

/// Octets of a header (RFC 1035, section 4.1.1).
pub(crate) const HEADER: usize = 12;

/// The longest name, octets (RFC 1035, section 2.3.4).
const MAX_NAME: usize = 255;

/// Nothing if the message is a query: QR is 0, the opcode QUERY, and there is one question, which is whole. The
/// records behind it are not looked at: a server gets them as they are, too.
#[inline]
pub(crate) fn check(message: &[u8]) -> Result<(), Reason> {
    let Some((header, rest)) = message.split_first_chunk::<HEADER>() else {
        return Err(Reason::MalformedMessage);
    };
    if header[2] & 0x80 != 0 {
        Err(Reason::Response)
    } else if header[2] & 0x78 != 0 {
        Err(Reason::OtherOpcode)
    } else if [header[4], header[5]] != [0, 1] {
        Err(Reason::QuestionCount)
    } else {
        match question_length(rest) {
            Some(_) => Ok(()),
            None => Err(Reason::MalformedMessage),
        }
    }
}

/// Octets of the question at the start of what follows the header.
#[inline]
pub(crate) fn question_length(rest: &[u8]) -> Option<usize> {
    let name = uncompressed_length(rest)?;
    (name <= MAX_NAME && name + 4 <= rest.len()).then_some(name + 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases() {
        let check = |message: &[u8], expected| assert_eq!(check(message), expected, "{message:x?}");
        let good = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x01a\0\0\x01\0\x01";
        check(good, Ok(()));
        check(&[good, b"and whatever follows".as_slice()].concat(), Ok(()));
        check(b"\x12\x34\0\0\0\x01\0\0\0\0\0\0\0\0\x02\0\x01", Ok(()));
        check(&good[..11], Err(Reason::MalformedMessage));
        check(&good[..good.len() - 1], Err(Reason::MalformedMessage));
        check(b"\x12\x34\x81\0\0\x01\0\0\0\0\0\0\x01a\0\0\x01\0\x01", Err(Reason::Response));
        check(b"\x12\x34\x28\0\0\x01\0\0\0\0\0\0\x01a\0\0\x06\0\x01", Err(Reason::OtherOpcode));
        check(b"\x12\x34\x01\0\0\0\0\0\0\0\0\0", Err(Reason::QuestionCount));
        check(b"\x12\x34\x01\0\x01\x01\0\0\0\0\0\0\x01a\0\0\x01\0\x01", Err(Reason::QuestionCount));
        check(
            b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\xc0\x0c\0\x01\0\x01",
            Err(Reason::MalformedMessage),
        );
        let long = [&good[..12], &b"\x3f".repeat(64 * 4), b"\0\0\x01\0\x01"].concat();
        check(&long, Err(Reason::MalformedMessage));
    }
}
