//! What a profile takes from a message: the question, the RD bit, and the OPT record.

use dnslab_wire::{after_name, rtype, uncompressed_length};

/// Octets of a header (RFC 1035, section 4.1.1).
const HEADER: usize = 12;

/// The question of a message, and what its header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message<'a> {
    pub(super) id: u16,
    pub(super) is_response: bool,
    pub(super) recursion_desired: bool,
    /// Of the header: 0 to 15.
    pub(super) rcode: u8,
    /// QNAME, uncompressed.
    pub(super) name: &'a [u8],
    pub(super) rtype: u16,
    pub(super) edns: Option<Opt>,
}

/// What an OPT record says (RFC 6891, section 6.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Opt {
    pub(super) payload_size: u16,
    pub(super) dnssec_ok: bool,
}

impl<'a> Message<'a> {
    /// `None` if it is no standard query or response with one question, or of a zone transfer, which no stub
    /// resolver asks for. Records that cannot be read are taken as absent.
    pub(super) fn read(octets: &'a [u8]) -> Option<Self> {
        let number = |at: usize| Some(u16::from_be_bytes([*octets.get(at)?, *octets.get(at + 1)?]));
        let flags = number(2)?;
        let opcode = (flags >> 11) & 0xf;
        if opcode != 0 || number(4)? != 1 {
            return None;
        }
        let length = uncompressed_length(octets.get(HEADER..)?).filter(|length| *length <= 255)?;
        let name = &octets[HEADER..HEADER + length];
        let (qtype, _class) = (number(HEADER + length)?, number(HEADER + length + 2)?);
        if rtype::is_transfer(qtype) {
            return None;
        }
        let records = u32::from(number(6)?) + u32::from(number(8)?) + u32::from(number(10)?);
        Some(Self {
            id: number(0)?,
            is_response: flags & 0x8000 != 0,
            recursion_desired: flags & 0x0100 != 0,
            rcode: (flags & 0xf) as u8,
            name,
            rtype: qtype,
            edns: opt(octets, HEADER + length + 4, records),
        })
    }
}

/// The first OPT record among those that begin here.
fn opt(octets: &[u8], mut at: usize, records: u32) -> Option<Opt> {
    for _ in 0..records {
        let fixed = after_name(octets, at)?;
        let field =
            |from: usize| Some(u16::from_be_bytes([*octets.get(from)?, *octets.get(from + 1)?]));
        if field(fixed)? == rtype::OPT {
            return Some(Opt {
                payload_size: field(fixed + 2)?,
                dnssec_ok: field(fixed + 6)? & 0x8000 != 0,
            });
        }
        at = fixed + 10 + usize::from(field(fixed + 8)?);
    }
    None
}

#[cfg(test)]
mod tests {
    use dnslab_wire::{Additions, Cookie, Edns, Query, QueryOptions};
    use domain::base::Name;
    use domain::base::iana::Rtype;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn queries_are_read() {
        let name: Name<Vec<u8>> = "wWw.example.".parse().unwrap();
        let edns = Edns { payload_size: 4096, dnssec_ok: true, ..Edns::default() };
        for edns in [None, Some(edns)] {
            let options = QueryOptions { recursion_desired: true, edns };
            let query = Query::new(&name, Rtype::HTTPS, &options).unwrap();
            let mut octets = Vec::new();
            let cookie = Cookie::new(*b"a client");
            let additions = Additions {
                cookie: options.edns.as_ref().map(|_| &cookie),
                ..Additions::default()
            };
            query.append_to(0xbeef, &additions, &mut octets);
            let read = Message::read(&octets).unwrap();
            let expected = Message {
                id: 0xbeef,
                is_response: false,
                recursion_desired: true,
                rcode: 0,
                name: name.as_slice(),
                rtype: 65,
                edns: options.edns.map(|_| Opt { payload_size: 4096, dnssec_ok: true }),
            };
            assert_eq!(read, expected);
            // Responses, and what is neither.
            octets[2] |= 0x80;
            octets[3] |= 3;
            let response = Message::read(&octets).unwrap();
            assert_eq!((response.is_response, response.rcode), (true, 3));
            octets[2] |= 0x28;
            assert_eq!(Message::read(&octets), None);
        }
    }

    #[test]
    fn zone_transfers_are_no_lookups() {
        let name: Name<Vec<u8>> = "example.".parse().unwrap();
        for (rtype, is_read) in [(Rtype::SOA, true), (Rtype::AXFR, false), (Rtype::IXFR, false)] {
            let query = Query::new(&name, rtype, &QueryOptions::default()).unwrap();
            let mut octets = Vec::new();
            query.append_to(1, &Additions::default(), &mut octets);
            assert_eq!(Message::read(&octets).is_some(), is_read, "{rtype}");
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(octets in prop::collection::vec(any::<u8>(), 0..80), records: u16) {
            let mut message = vec![0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
            message[10..12].copy_from_slice(&records.to_be_bytes());
            message.extend(octets);
            for length in 0..=message.len() {
                if let Some(read) = Message::read(&message[..length]) {
                    prop_assert!(read.name.len() + 16 <= length);
                }
            }
        }
    }
}
