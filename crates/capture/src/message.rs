//! What a query is.

use dnslab_wire::{after_name, uncompressed_length};

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

/// The length of each query in a datagram that has several, one after another: so a sender hands datagrams of one
/// length to its kernel, which cuts them (`UDP_SEGMENT`), and so a capture on that host has them. The last may be
/// shorter. `None` if the datagram, which begins with a query, is anything else.
#[inline]
pub(crate) fn segment_length(datagram: &[u8]) -> Option<usize> {
    let length = message_end(datagram)?;
    let further = datagram.get(length..).filter(|further| !further.is_empty())?;
    let is_whole_query =
        |message: &[u8]| check(message).is_ok() && message_end(message) == Some(message.len());
    further.chunks(length).all(is_whole_query).then_some(length)
}

/// Where a message with one question ends, as its counts and lengths say; `None` if its records are not whole.
#[inline]
fn message_end(message: &[u8]) -> Option<usize> {
    let number = |at: usize| Some(u16::from_be_bytes([*message.get(at)?, *message.get(at + 1)?]));
    let mut at = HEADER + question_length(message.get(HEADER..)?)?;
    let records = u32::from(number(6)?) + u32::from(number(8)?) + u32::from(number(10)?);
    for _ in 0..records {
        let fixed = after_name(message, at)?;
        at = fixed + 10 + usize::from(number(fixed + 8)?);
    }
    (at <= message.len()).then_some(at)
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

    #[test]
    fn several_queries_of_one_length_are_told_from_one_with_octets_behind_it() {
        use crate::made::{long_query, query};
        let check = |parts: &[&[u8]], expected| {
            assert_eq!(segment_length(&parts.concat()), expected, "{parts:x?}");
        };
        let (one, two, long) = (query(11), query(12), query(123));
        check(&[&one], None);
        check(&[&one, &two], Some(one.len()));
        check(&[&long, &long, &two], Some(long.len()));
        let padded = long_query(1, 128);
        check(&[&padded, &padded, &long_query(2, 128)], Some(padded.len()));
        check(&[&padded], None);
        // The last may be shorter, no other.
        check(&[&two, &long], None);
        check(&[&long, &two, &long], None);
        check(&[&one, &[0; 200]], None);
        check(&[&one, &two, b"\0"], None);
        check(&[&one, &two[..20]], None);
        let mut response = two.clone();
        response[2] |= 0x80;
        check(&[&one, &response], None);
        // A record is announced, and the next query is in its place.
        let mut announced = one.clone();
        announced[11] = 1;
        check(&[&announced, &two], None);
    }
}
