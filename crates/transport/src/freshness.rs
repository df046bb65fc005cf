//! How long an HTTP cache may keep a DNS answer (RFC 8484, section 5.1).

use dnslab_wire::after_name;
use dnslab_wire::rtype::SOA;

/// Octets of a message header (RFC 1035, section 4.1.1).
const HEADER: usize = 12;

/// Seconds for which an HTTP cache may keep a response with this message: the smallest TTL of its answer
/// section. For a negative answer also the TTL of the SOA record in its authority section or that record's
/// MINIMUM, whichever is less (RFC 2308, section 5). 0 where neither is there, and for what is no whole
/// message: a referral or an error is not to be kept.
pub(crate) fn freshness(message: &[u8]) -> u32 {
    smallest_ttl(message).flatten().unwrap_or(0)
}

/// The smallest of these TTLs, if there is one; `None` if the message is broken.
fn smallest_ttl(message: &[u8]) -> Option<Option<u32>> {
    let count = |at: usize| Some(u16::from_be_bytes([*message.get(at)?, *message.get(at + 1)?]));
    let (questions, answers, authorities) = (count(4)?, count(6)?, count(8)?);
    let mut at = HEADER;
    for _ in 0..questions {
        at = after_name(message, at)? + 4;
    }
    let mut smallest = None;
    let mut note = |seconds: u32| {
        smallest = Some(smallest.map_or(seconds, |before: u32| before.min(seconds)));
    };
    for number in 0..u32::from(answers) + u32::from(authorities) {
        let fixed = after_name(message, at)?;
        let head: &[u8; 10] = message.get(fixed..)?.first_chunk()?;
        let ttl = u32::from_be_bytes([head[4], head[5], head[6], head[7]]);
        at = fixed + 10 + usize::from(u16::from_be_bytes([head[8], head[9]]));
        let data = message.get(fixed + 10..at)?;
        if number < u32::from(answers) {
            note(ttl);
        } else if u16::from_be_bytes([head[0], head[1]]) == SOA {
            note(ttl.min(u32::from_be_bytes(*data.last_chunk()?)));
        }
    }
    Some(smallest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message(answers: u8, authorities: u8, records: &[&[u8]]) -> Vec<u8> {
        let mut message = vec![0, 0, 0x84, 0, 0, 1, 0, answers, 0, authorities, 0, 0];
        message.extend_from_slice(b"\x01a\0\0\x01\0\x01");
        records.iter().for_each(|record| message.extend_from_slice(record));
        message
    }

    #[test]
    fn the_smallest_ttl_decides() {
        const HOUR: &[u8] = b"\xc0\x0c\0\x01\0\x01\0\0\x0e\x10\0\x04\xc0\0\x02\x01";
        const MINUTE: &[u8] = b"\x01b\0\0\x01\0\x01\0\0\0\x3c\0\x04\xc0\0\x02\x01";
        const NS: &[u8] = b"\0\0\x02\0\x01\0\0\0\x05\0\x01\0";
        // TTL 3600, MINIMUM 300.
        const SOA: &[u8] =
            b"\0\0\x06\0\x01\0\0\x0e\x10\0\x16\0\0\0\0\0\x01\0\0\0\x02\0\0\0\x03\0\0\0\x04\0\0\x01\x2c";
        let check =
            |octets: Vec<u8>, seconds| assert_eq!(freshness(&octets), seconds, "{octets:x?}");
        check(message(1, 0, &[HOUR]), 3600);
        check(message(2, 0, &[HOUR, MINUTE]), 60);
        // A referral, and what has no records at all.
        check(message(0, 1, &[NS]), 0);
        check(message(0, 0, &[]), 0);
        // The NS records beside an answer say nothing.
        check(message(1, 1, &[HOUR, NS]), 3600);
        check(message(0, 1, &[SOA]), 300);
        // NXDOMAIN at the end of a CNAME.
        check(message(1, 1, &[HOUR, SOA]), 300);
        check(message(1, 1, &[MINUTE, SOA]), 60);
        // Cut, and no message.
        check(message(2, 0, &[HOUR]), 0);
        check(vec![0; 11], 0);
    }

    proptest! {
        #[test]
        fn no_octets_panic(octets in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = freshness(&octets);
        }
    }
}
