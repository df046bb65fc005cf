//! What a query asks, as a server reads it: without allocation and without trust.

use crate::edns::COOKIE;
use crate::header::HEADER;
use crate::name::{after_name, uncompressed_length};
use crate::{rcode, rtype};

/// The largest datagram for a client without EDNS (RFC 1035, section 2.3.4), and the smallest that EDNS can announce (RFC
/// 6891, section 6.2.3), octets.
pub const CLASSIC_DATAGRAM: usize = 512;

/// Class IN (RFC 1035, section 3.2.4).
const CLASS_IN: u16 = 1;

/// The longest name in octets (RFC 1035, section 2.3.4).
const NAME: usize = 255;

/// The bits of the opcode in the third octet of the header.
pub(crate) const OPCODE: u8 = 0x78;

/// A query that can be answered.
#[derive(Clone, Copy, Debug)]
pub struct Request<'q> {
    /// The opcode, where the header has it; 0 is QUERY.
    pub opcode_bits: u8,
    /// The question section: QNAME, QTYPE, QCLASS.
    pub question: &'q [u8],
    /// The type that is asked for.
    pub qtype: u16,
    /// The class that is asked for.
    pub qclass: u16,
    /// What the OPT record says, if there is one.
    pub edns: Option<ClientEdns>,
}

/// What a server needs of an OPT record (RFC 6891, section 6.1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientEdns {
    /// Largest datagram that the client takes, octets.
    pub payload_size: u16,
    /// The version of EDNS; there is only 0.
    pub version: u8,
    /// The DO bit (RFC 3225).
    pub dnssec_ok: bool,
    /// The query is padded, so the answer has to be (RFC 7830, section 4).
    pub is_padded: bool,
    /// What the COOKIE option has for a server that knows DNS cookies (RFC 7873), if there is one.
    pub cookie: Option<ClientCookie>,
}

/// The cookies of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientCookie {
    /// The client's cookie, with or without one that the server gave before.
    Valid([u8; 8]),
    /// The length is not possible (RFC 7873, section 5.2.2).
    Malformed,
}

/// Why a message is no query that can be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswerable {
    /// Shorter than a header, or a response: answering could start a loop, so nothing is sent.
    Silent,
    /// The format is broken (RCODE 1).
    FormatError,
    /// The opcode is not QUERY, so the format may be one that is not known here (RCODE 4).
    NotImplemented,
}

impl<'q> Request<'q> {
    /// Reads a message. Octets after its last record are ignored.
    ///
    /// # Errors
    /// When it is no query, or a broken one.
    pub fn parse(message: &'q [u8]) -> Result<Self, Unanswerable> {
        if message.len() < HEADER || message[2] & 0x80 != 0 {
            return Err(Unanswerable::Silent);
        }
        let opcode_bits = message[2] & OPCODE;
        Self::parse_as_query(message, opcode_bits).ok_or(match opcode_bits {
            0 => Unanswerable::FormatError,
            _ => Unanswerable::NotImplemented,
        })
    }

    /// The message is long enough for a header.
    fn parse_as_query(message: &'q [u8], opcode_bits: u8) -> Option<Self> {
        let word = |at: usize| u16::from_be_bytes([message[at], message[at + 1]]);
        if word(4) != 1 {
            return None;
        }
        let name = uncompressed_length(&message[HEADER..]).filter(|length| *length <= NAME)?;
        let end = HEADER + name + 4;
        let question = message.get(HEADER..end)?;
        let edns = match [word(6), word(8), word(10)] {
            [0, 0, 0] => None,
            counts => read_edns(message, end, counts)?,
        };
        Some(Self { opcode_bits, question, qtype: word(end - 4), qclass: word(end - 2), edns })
    }

    /// The response code for what no server here answers: another version of EDNS than 0 (RFC 6891, section 6.1.3),
    /// another opcode than QUERY, another class than IN, transfers, and types of mail agents that nobody has. `None` for
    /// a question that can be looked up.
    #[inline]
    #[must_use]
    pub fn refusal(&self) -> Option<u16> {
        match self.edns {
            Some(edns) if edns.version > 0 => Some(rcode::BADVERS),
            _ if self.opcode_bits != 0 => Some(rcode::NOTIMP),
            _ if self.qclass != CLASS_IN => Some(rcode::REFUSED),
            _ if (rtype::IXFR..=rtype::MAILA).contains(&self.qtype) => Some(rcode::REFUSED),
            _ => None,
        }
    }

    /// The largest datagram for this client from a server that takes `payload_size` octets (RFC 6891, section 6.2.5).
    #[inline]
    #[must_use]
    pub fn datagram_limit(&self, payload_size: u16) -> usize {
        let most = usize::from(payload_size).max(CLASSIC_DATAGRAM);
        self.edns.map_or(CLASSIC_DATAGRAM, |edns| {
            usize::from(edns.payload_size).clamp(CLASSIC_DATAGRAM, most)
        })
    }

    /// QNAME in wire form, in the client's case.
    #[must_use]
    pub fn qname(&self) -> &'q [u8] {
        &self.question[..self.question.len() - 4]
    }
}

/// Walks the records after the question. `None` if they are broken, if an OPT record is outside of the
/// additional section or not at the root, or if there are several (RFC 6891, section 6.1.1).
fn read_edns(message: &[u8], start: usize, counts: [u16; 3]) -> Option<Option<ClientEdns>> {
    let (mut at, mut edns) = (start, None);
    for (section, count) in counts.into_iter().enumerate() {
        for _ in 0..count {
            let at_root = *message.get(at)? == 0;
            at = after_name(message, at)?;
            let fixed: &[u8; 10] = message.get(at..)?.first_chunk()?;
            let options_at = at + 10;
            at = options_at + usize::from(u16::from_be_bytes([fixed[8], fixed[9]]));
            let options = message.get(options_at..at)?;
            if u16::from_be_bytes([fixed[0], fixed[1]]) == rtype::OPT {
                if section != 2 || !at_root || edns.is_some() {
                    return None;
                }
                let mut read = ClientEdns {
                    payload_size: u16::from_be_bytes([fixed[2], fixed[3]]),
                    version: fixed[5],
                    dnssec_ok: fixed[6] & 0x80 != 0,
                    is_padded: false,
                    cookie: None,
                };
                read_options(options, &mut read)?;
                edns = Some(read);
            }
        }
    }
    Some(edns)
}

/// `None` if the options of the OPT record are broken. Those that nobody here knows are passed over (RFC 6891,
/// section 6.1.2).
fn read_options(mut options: &[u8], edns: &mut ClientEdns) -> Option<()> {
    /// Option code of Padding (RFC 7830, section 3).
    const PADDING: u16 = 12;
    while !options.is_empty() {
        let (head, rest) = options.split_first_chunk::<4>()?;
        let length = usize::from(u16::from_be_bytes([head[2], head[3]]));
        let (data, rest) = rest.split_at_checked(length)?;
        match u16::from_be_bytes([head[0], head[1]]) {
            PADDING => edns.is_padded = true,
            // Of several the first counts (RFC 7873, section 5.2).
            COOKIE if edns.cookie.is_none() => {
                let has_length = matches!(length, 8 | 16..=40);
                let client = data.first_chunk().filter(|_| has_length);
                edns.cookie = Some(
                    client.map_or(ClientCookie::Malformed, |client| ClientCookie::Valid(*client)),
                );
            }
            _ => {}
        }
        options = rest;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUESTION: &[u8] = b"\0\0\x01\0\x01";

    fn message(flags: u8, counts: [u8; 4], rest: &[u8]) -> Vec<u8> {
        let [questions, answers, authorities, additionals] = counts;
        let mut message = vec![1, 2, flags, 0, 0, questions, 0, answers, 0, authorities, 0];
        message.push(additionals);
        message.extend_from_slice(rest);
        message
    }

    fn with_long_name(labels: usize) -> Vec<u8> {
        let mut rest =
            b"\x3faaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa".repeat(labels);
        // 3 x 64 octets and one label more make 255 with a label of 61.
        rest.push(61);
        rest.extend_from_slice(&[b'a'; 61]);
        rest.extend_from_slice(b"\0\0\x01\0\x01");
        message(0, [1, 0, 0, 0], &rest)
    }

    #[test]
    fn broken_queries_are_told_apart() {
        let check = |message: Vec<u8>, expected| {
            assert_eq!(Request::parse(&message).err(), expected, "{message:?}");
        };
        use Unanswerable::{FormatError, NotImplemented, Silent};
        check(vec![0; 11], Some(Silent));
        check(message(0x80, [1, 0, 0, 0], b"\0\0\x01\0\x01"), Some(Silent));
        check(message(0x28, [0, 0, 0, 0], b""), Some(NotImplemented));
        check(message(0x28, [1, 0, 0, 0], b"\0\0\x01\0\x01"), None);
        check(message(0, [0, 0, 0, 0], b""), Some(FormatError));
        check(message(0, [2, 0, 0, 0], b"\0\0\x01\0\x01\0\0\x01\0\x01"), Some(FormatError));
        check(message(0, [1, 0, 0, 0], b"\0\0\x01\0"), Some(FormatError));
        check(message(0, [1, 0, 0, 0], b"\xc0\x0c\0\x01\0\x01"), Some(FormatError));
        check(message(0, [1, 0, 0, 1], b"\0\0\x01\0\x01"), Some(FormatError));
        check(message(0, [1, 0, 0, 0], b"\0\0\x01\0\x01"), None);
        check(with_long_name(3), None);
        check(with_long_name(4), Some(FormatError));
    }

    fn cookie(length: u8) -> Option<ClientCookie> {
        let mut opt = b"\0\0\x29\x04\xd0\0\0\0\0\0".to_vec();
        opt.extend_from_slice(&[length + 4, 0, 10, 0, length]);
        opt.extend((0..length).map(|place| b'a' + place));
        let message = message(0, [1, 0, 0, 1], &[QUESTION, &opt].concat());
        Request::parse(&message).unwrap().edns.unwrap().cookie
    }

    #[test]
    fn the_opt_record_is_found_among_others() {
        const OPT: &[u8] = b"\0\0\x29\x04\xd0\0\0\x80\0\0\0";
        const TXT: &[u8] = b"\xc0\x0c\0\x10\0\x01\0\0\0\0\0\x02\x01a";
        let check = |counts, parts: &[&[u8]], expected: Option<bool>| {
            let message = message(0, counts, &parts.concat());
            let read = Request::parse(&message).ok().map(|request| request.edns.is_some());
            assert_eq!(read, expected, "{message:?}");
        };
        check([1, 0, 0, 1], &[QUESTION, OPT], Some(true));
        check([1, 0, 0, 2], &[QUESTION, TXT, OPT], Some(true));
        check([1, 0, 1, 0], &[QUESTION, TXT], Some(false));
        check([1, 0, 0, 2], &[QUESTION, OPT, OPT], None);
        check([1, 1, 0, 0], &[QUESTION, OPT], None);
        check([1, 0, 0, 1], &[QUESTION, b"\x01a", OPT], None);
        let plain = message(0, [1, 0, 0, 1], &[QUESTION, OPT].concat());
        let edns = Request::parse(&plain).unwrap().edns.unwrap();
        assert_eq!(
            edns,
            ClientEdns {
                payload_size: 1232,
                version: 0,
                dnssec_ok: true,
                is_padded: false,
                cookie: None,
            }
        );
        const PADDED: &[u8] = b"\0\0\x29\x04\xd0\0\0\x80\0\0\x0b\0\x0a\0\x01c\0\x0c\0\x02\0\0";
        let options = |length: u8| {
            let parts = [QUESTION, &PADDED[..10], &[length], &PADDED[11..]].concat();
            let message = message(0, [1, 0, 0, 1], &parts);
            Request::parse(&message).ok().map(|request| request.edns.unwrap().is_padded)
        };
        assert_eq!(options(11), Some(true));
        assert_eq!(options(5), Some(false));
        assert_eq!([options(10), options(12), options(2)], [None; 3]);
        let valid = Some(ClientCookie::Valid(*b"abcdefgh"));
        assert_eq!([cookie(8), cookie(16), cookie(40)], [valid; 3]);
        let lengths = [0, 7, 9, 15, 41];
        assert_eq!(lengths.map(cookie), [Some(ClientCookie::Malformed); 5]);
    }
}
