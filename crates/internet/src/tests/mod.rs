//! The internet as its answers show it, to a small iterative resolver.

mod denial;
mod messages;
mod protocol;
mod records;
mod resolving;
mod shares;

use std::net::IpAddr;

use dnslab_wire::{Edns, Query, QueryOptions};
use domain::base::iana::{Rcode, Rtype};
use domain::base::{Message, Name as DomainName, ParsedName};
use domain::rdata::AllRecordData;

use crate::{Carrier, Internet, Scratch};

/// A record of an answer: names in lower case, without the final dot.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Record {
    section: &'static str,
    owner: String,
    rtype: Rtype,
    ttl: u32,
    data: String,
}

#[derive(Clone, Debug)]
struct Answer {
    octets: Vec<u8>,
    rcode: Rcode,
    is_authoritative: bool,
    is_truncated: bool,
    has_opt: bool,
    records: Vec<Record>,
}

impl Answer {
    fn read(octets: &[u8]) -> Self {
        let message = Message::from_octets(octets.to_vec()).unwrap();
        let header = message.header();
        assert!(header.qr() && !header.ra() && !header.ad(), "{octets:x?}");
        let sections = [
            ("answer", message.answer().unwrap()),
            ("authority", message.authority().unwrap()),
            ("additional", message.additional().unwrap()),
        ];
        let mut records = Vec::new();
        for (section, found) in sections {
            for record in found {
                let record = record.unwrap();
                if record.rtype() == Rtype::OPT {
                    continue;
                }
                let read = record.to_record::<AllRecordData<_, ParsedName<_>>>();
                let read = read.unwrap().expect("every type can be read");
                records.push(Record {
                    section,
                    owner: plain(&record.owner().to_string()),
                    rtype: record.rtype(),
                    ttl: record.ttl().as_secs(),
                    data: plain(&read.data().to_string()),
                });
            }
        }
        Self {
            octets: octets.to_vec(),
            rcode: header.rcode(),
            is_authoritative: header.aa(),
            is_truncated: header.tc(),
            has_opt: message.opt().is_some(),
            records,
        }
    }

    fn of(&self, section: &str, rtype: Rtype) -> Vec<&Record> {
        self.records
            .iter()
            .filter(|record| record.section == section && record.rtype == rtype)
            .collect()
    }

    /// Each with its section and type, for people.
    fn summary(&self) -> Vec<String> {
        let text =
            |record: &Record| format!("{} {} {}", record.section, record.owner, record.rtype);
        self.records.iter().map(text).collect()
    }
}

fn plain(text: &str) -> String {
    match text.trim_end_matches('.') {
        "" => ".".to_owned(),
        text => text.to_ascii_lowercase(),
    }
}

fn query(name: &str, rtype: Rtype, edns: Option<Edns>) -> Vec<u8> {
    let name: DomainName<Vec<u8>> = name.parse().unwrap();
    let options = QueryOptions { recursion_desired: false, edns };
    Query::new(&name, rtype, &options).unwrap().octets().to_vec()
}

fn dnssec_ok() -> Option<Edns> {
    Some(Edns { dnssec_ok: true, ..Edns::default() })
}

struct Asker<'i> {
    internet: &'i Internet,
    scratch: Scratch,
    out: Vec<u8>,
}

impl<'i> Asker<'i> {
    fn new(internet: &'i Internet) -> Self {
        Self { internet, scratch: Scratch::default(), out: vec![0; 65_535] }
    }

    fn send(&mut self, address: IpAddr, query: &[u8], carrier: Carrier) -> Option<Answer> {
        let (scratch, out) = (&mut self.scratch, &mut self.out);
        let length = self.internet.answer(address, query, carrier, scratch, out)?;
        Some(Answer::read(&self.out[..length]))
    }

    /// As resolvers do: EDNS first, without it after FORMERR, TCP after a truncated answer.
    fn ask(&mut self, address: IpAddr, name: &str, rtype: Rtype) -> Option<Answer> {
        let mut octets = query(name, rtype, dnssec_ok());
        let mut answer = self.send(address, &octets, Carrier::Datagram)?;
        if answer.rcode == Rcode::FORMERR {
            octets = query(name, rtype, None);
            answer = self.send(address, &octets, Carrier::Datagram)?;
        }
        assert!(answer.octets.len() <= 1232);
        if answer.is_truncated {
            answer = self.send(address, &octets, Carrier::Stream)?;
            assert!(!answer.is_truncated);
        }
        Some(answer)
    }
}

/// Every server of the zone that a name is in or at, with how it answers.
fn internet(text: &str) -> Internet {
    Internet::parse(text).unwrap_or_else(|error| panic!("{error}"))
}
