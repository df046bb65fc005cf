//! Answers read back by `domain`, for a zone with one of everything.

use std::fmt::Write;
use std::sync::OnceLock;
use std::time::{Duration, UNIX_EPOCH};

use dnslab_wire::{Edns, Query, QueryOptions, check_answer};
use domain::base::iana::Rtype;
use domain::base::{Message, Name};
use domain::rdata::AllRecordData;
use proptest::prelude::*;

use super::*;
use crate::zone::{NameList, Signing};

fn zone() -> Zones {
    let mut text = "\
$ORIGIN example.
$TTL 300
@ 3600 IN SOA ns Host 1 2 3 4 60
@ NS ns
@ NS ns.other.
ns A 192.0.2.53
WWW A 192.0.2.1
www A 192.0.2.2
www AAAA 2001:db8::1
alias CNAME alias2
alias2 CNAME WwW
dead CNAME nothing
away CNAME www.other.
loop CNAME loop
deep.ent.here TXT deep
*.wild A 192.0.2.9
*.wild TXT wild
there.wild TXT there
down CNAME host.sub
sub NS ns.sub
sub NS ns.other.
sub DS 1 13 2 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff
many NS ns.many
near NS ns.many
near NS ns.sub
near NS ns.near
ns.near A 192.0.2.78
ns.sub A 192.0.2.77
ns.sub AAAA 2001:db8::77
"
    .to_owned();
    for number in 0..60 {
        writeln!(text, "ns.many A 192.0.2.{number}").unwrap();
        writeln!(text, "big TXT \"record number {number} of a large set\"").unwrap();
    }
    Zone::parse(text.as_bytes(), None).unwrap().into()
}

fn ask(
    zone: &Zones,
    qname: &str,
    qtype: Rtype,
    edns: Option<Edns>,
    transport: Transport,
) -> (String, Vec<u8>) {
    let name: Name<Vec<u8>> = qname.parse().unwrap();
    let options = QueryOptions { recursion_desired: true, edns };
    let query = Query::new(&name, qtype, &options).unwrap();
    let mut out = vec![0xff; usize::from(u16::MAX)];
    let length = answer(zone, query.octets(), transport, &mut out).unwrap();
    out.truncate(length);
    (render(&out), out)
}

/// Code, flags, then the records of the sections; panics if `domain` cannot read all of it.
fn render(octets: &[u8]) -> String {
    let message = Message::from_octets(octets).unwrap();
    let header = message.header();
    let mut text = header.rcode().to_string();
    for (set, flag) in [(header.aa(), " aa"), (header.tc(), " tc"), (header.ra(), " ra")] {
        text.push_str(if set { flag } else { "" });
    }
    assert!(header.qr());
    let sections = [message.answer(), message.authority(), message.additional()];
    for (section, mark) in sections.into_iter().zip(["", " / ", " + "]) {
        for record in section.unwrap().limit_to::<AllRecordData<_, _>>() {
            let record = record.unwrap();
            if record.rtype() != Rtype::OPT {
                let (owner, ttl) = (record.owner(), record.ttl().as_secs());
                write!(text, "{mark}; {owner} {ttl} {} {}", record.rtype(), record.data()).unwrap();
            }
        }
    }
    text
}

#[test]
fn the_zone_is_answered_by_the_book() {
    let zone = zone();
    let check = |qname: &str, qtype, expected: &str| {
        let (text, _) = ask(&zone, qname, qtype, None, Transport::Udp);
        assert_eq!(text, expected, "{qname} {qtype}");
    };
    let soa = " / ; example 60 SOA ns.example. Host.example. 1 2 3 4 60";
    check(
        "www.example.",
        Rtype::A,
        "NOERROR aa; www.example 300 A 192.0.2.1; www.example 300 A 192.0.2.2",
    );
    check("www.EXAMPLE.", Rtype::AAAA, "NOERROR aa; www.EXAMPLE 300 AAAA 2001:db8::1");
    check("www.example.", Rtype::TXT, &format!("NOERROR aa{soa}"));
    check("nothing.example.", Rtype::A, &format!("NXDOMAIN aa{soa}"));
    check("below.www.example.", Rtype::A, &format!("NXDOMAIN aa{soa}"));
    check("ent.here.example.", Rtype::A, &format!("NOERROR aa{soa}"));
    check("here.example.", Rtype::A, &format!("NOERROR aa{soa}"));
    check("other.", Rtype::A, "REFUSED");
    check(".", Rtype::NS, "REFUSED");
    check("notexample.", Rtype::A, "REFUSED");
    check("www.example.", Rtype::AXFR, "REFUSED");
    check("www.example.", Rtype::ANY, "NOERROR aa; www.example 3600 HINFO \"RFC8482\" \"\"");
    check("alias.example.", Rtype::ANY, "NOERROR aa; alias.example 3600 HINFO \"RFC8482\" \"\"");
    // RFC 8482 is for names with data: an empty non-terminal has none.
    check("here.example.", Rtype::ANY, &format!("NOERROR aa{soa}"));
    check("nothing.example.", Rtype::ANY, &format!("NXDOMAIN aa{soa}"));
    check(
        "alias.example.",
        Rtype::AAAA,
        "NOERROR aa; alias.example 300 CNAME alias2.example.; alias2.example 300 CNAME \
         WwW.example.; WwW.example 300 AAAA 2001:db8::1",
    );
    check("alias.example.", Rtype::CNAME, "NOERROR aa; alias.example 300 CNAME alias2.example.");
    check(
        "dead.example.",
        Rtype::A,
        &format!("NXDOMAIN aa; dead.example 300 CNAME nothing.example.{soa}"),
    );
    check("away.example.", Rtype::A, "NOERROR aa; away.example 300 CNAME www.other.");
    check("a.b.wild.example.", Rtype::A, "NOERROR aa; a.b.wild.example 300 A 192.0.2.9");
    check("there.wild.example.", Rtype::A, &format!("NOERROR aa{soa}"));
    check("a.wild.example.", Rtype::AAAA, &format!("NOERROR aa{soa}"));
    check("a.there.wild.example.", Rtype::TXT, &format!("NXDOMAIN aa{soa}"));
    let referral = " / ; sub.example 300 NS ns.sub.example. / ; sub.example 300 NS ns.other. \
                    + ; ns.sub.example 300 A 192.0.2.77 + ; ns.sub.example 300 AAAA 2001:db8::77";
    check("host.sub.example.", Rtype::A, &format!("NOERROR{referral}"));
    check("sub.example.", Rtype::NS, &format!("NOERROR{referral}"));
    check("ns.sub.example.", Rtype::A, &format!("NOERROR{referral}"));
    check(
        "down.example.",
        Rtype::A,
        &format!("NOERROR aa; down.example 300 CNAME host.sub.example.{referral}"),
    );
    let (text, _) = ask(&zone, "sub.example.", Rtype::DS, None, Transport::Udp);
    assert!(text.starts_with("NOERROR aa; sub.example 300 DS 1 "), "{text}");
    let (text, _) = ask(&zone, "loop.example.", Rtype::A, None, Transport::Udp);
    assert!(text.starts_with("NOERROR aa; loop.example 300 CNAME loop.example."), "{text}");
}

#[track_caller]
fn check_size(
    zones: &Zones,
    payload_size: Option<u16>,
    transport: Transport,
    expect_whole: bool,
    largest: usize,
) {
    let edns = payload_size.map(|payload_size| Edns { payload_size, ..Edns::default() });
    let (text, octets) = ask(zones, "big.example.", Rtype::TXT, edns, transport);
    assert_eq!(text == "NOERROR aa tc", !expect_whole, "{text}");
    assert_eq!(text.matches(" TXT ").count(), if expect_whole { 60 } else { 0 });
    assert!(octets.len() <= largest, "{} octets", octets.len());
}

#[test]
fn what_does_not_fit_is_asked_for_again() {
    let zone = zone();
    check_size(&zone, None, Transport::Udp, false, 512);
    check_size(&zone, Some(0), Transport::Udp, false, 512);
    check_size(&zone, Some(65_535), Transport::Udp, false, MAX_DATAGRAM);
    check_size(&zone, None, Transport::Tcp, true, 65_535);
    check_size(&zone, Some(512), Transport::Dot, true, 65_535);
}

/// RFC 9471: a referral without the addresses of servers inside the delegated domain is useless. The client
/// can ask for those of others.
#[test]
fn only_missing_glue_of_the_delegated_domain_truncates() {
    let zone = zone();
    let check = |qname: &str, transport, start: &str, in_additional: usize| {
        let (text, _) = ask(&zone, qname, Rtype::A, None, transport);
        assert!(text.starts_with(start), "{text}");
        assert_eq!(text.matches(" + ").count(), in_additional, "{text}");
    };
    let many = " / ; many.example 300 NS ns.many.example.";
    check("www.many.example.", Transport::Udp, &format!("NOERROR tc{many}"), 0);
    check("www.many.example.", Transport::Tcp, &format!("NOERROR{many}"), 60);
    // The addresses of the last server, which is in the domain, come before those of all others.
    let near = " / ; near.example 300 NS ns.many.example. / ; near.example 300 NS ns.sub.example. \
                / ; near.example 300 NS ns.near.example. + ; ns.near.example 300 A 192.0.2.78";
    // The A and AAAA records of ns.sub still fit, the 60 of ns.many do not.
    check("www.near.example.", Transport::Udp, &format!("NOERROR{near}"), 3);
    check("www.near.example.", Transport::Tcp, &format!("NOERROR{near}"), 63);
}

#[test]
fn a_negative_answer_that_does_not_fit_keeps_its_code() {
    // Three labels of 63 octets in both names of the SOA record: 2 x 200 octets of them.
    let long = ["a", "b", "c"].map(|letter| letter.repeat(63)).join(".");
    let text = format!(
        "$ORIGIN example.\n@ 60 IN SOA {long} {long} 1 2 3 4 60\nalias 60 CNAME nothing\n\
         {long} 60 A 192.0.2.1\n"
    );
    let zone = Zone::parse(text.as_bytes(), None).unwrap().into();
    let check = |qname: &str, qtype, transport, expected: &str| {
        let (text, _) = ask(&zone, qname, qtype, None, transport);
        assert!(text.starts_with(expected), "{qname} {qtype}: {text}");
        assert_eq!(text.contains("SOA"), !text.contains(" tc"), "{text}");
    };
    let below = format!("x.{long}.example.");
    check(&below, Rtype::A, Transport::Udp, "NXDOMAIN aa tc");
    check(&below, Rtype::A, Transport::Tcp, "NXDOMAIN aa / ; example 60 SOA ");
    check(&below[2..], Rtype::AAAA, Transport::Udp, "NOERROR aa tc");
    check("nothing.example.", Rtype::A, Transport::Udp, "NXDOMAIN aa / ; example 60 SOA ");
    let alias = "; alias.example 60 CNAME nothing.example.";
    check("alias.example.", Rtype::A, Transport::Udp, &format!("NXDOMAIN aa{alias}"));
    check("alias.example.", Rtype::A, Transport::Tcp, &format!("NXDOMAIN aa{alias}"));
}

#[test]
fn edns_is_given_back() {
    let zone = zone();
    for dnssec_ok in [false, true] {
        let edns = Some(Edns { payload_size: 4096, dnssec_ok, ..Edns::default() });
        let (_, octets) = ask(&zone, "www.example.", Rtype::A, edns, Transport::Udp);
        let message = Message::from_octets(octets.as_slice()).unwrap();
        let opt = message.opt().unwrap();
        assert_eq!((opt.dnssec_ok(), opt.udp_payload_size(), opt.version()), (dnssec_ok, 1232, 0));
    }
    let name: Name<Vec<u8>> = "www.example.".parse().unwrap();
    let options = QueryOptions {
        recursion_desired: false,
        edns: Some(Edns { dnssec_ok: true, ..Edns::default() }),
    };
    let mut query = Query::new(&name, Rtype::A, &options).unwrap().octets().to_vec();
    let version = query.len() - 5;
    query[version] = 1;
    let mut out = [0; 512];
    let length = answer(&zone, &query, Transport::Udp, &mut out).unwrap();
    let message = Message::from_octets(&out[..length]).unwrap();
    let opt = message.opt().unwrap();
    assert_eq!((opt.rcode(message.header()).to_int(), opt.version()), (16, 0));
    assert_eq!(message.header_counts().ancount(), 0);
}

/// Padded queries get padded answers where somebody could look (RFC 7830, section 6).
#[test]
fn answers_to_padded_queries_are_padded() {
    let zone = zone();
    let name: Name<Vec<u8>> = "www.example.".parse().unwrap();
    let edns = Some(Edns::default());
    let options = QueryOptions { recursion_desired: false, edns };
    let mut query = Query::new(&name, Rtype::A, &options).unwrap().octets().to_vec();
    let length_at = query.len() - 1;
    query[length_at] = 6;
    query.extend_from_slice(&[0, 12, 0, 2, 0, 0]);
    let lengths = [(Transport::Dot, 468), (Transport::Tcp, 72), (Transport::Udp, 72)];
    for (transport, expected) in lengths {
        let mut out = vec![0xff; 1232];
        let length = answer(&zone, &query, transport, &mut out).unwrap();
        assert_eq!(length, expected, "{transport}");
        assert!(render(&out[..length]).contains("A 192.0.2.1"));
    }
}

#[test]
fn other_opcodes_and_broken_queries() {
    let zone = zone();
    let check = |query: &[u8], expected: Option<&[u8]>| {
        let mut out = [0xff; 512];
        let length = answer(&zone, query, Transport::Udp, &mut out);
        assert_eq!(length.map(|length| &out[..length]), expected, "{query:?}");
    };
    check(b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x01", Some(b"\x12\x34\x81\x01\0\0\0\0\0\0\0\0"));
    check(
        b"\x12\x34\x29\0\0\x01\0\0\0\0\0\0\0\0\x06\0\x01",
        Some(b"\x12\x34\xa9\x04\0\x01\0\0\0\0\0\0\0\0\x06\0\x01"),
    );
    check(b"\x12\x34\x29\0\0\0\0\0\0\0\0\0", Some(b"\x12\x34\xa9\x04\0\0\0\0\0\0\0\0"));
    check(b"\x12\x34\x81\0\0\x01\0\0\0\0\0\0\0\0\x01\0\x01", None);
    check(b"\x12\x34\x01", None);
}

fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let names = [
        "www.example.",
        "alias.example.",
        "x.wild.example.",
        "host.sub.example.",
        "big.example.",
        "nothing.example.",
        "loop.example.",
        "example.",
        "other.",
    ];
    let types = prop::sample::select(vec![1u16, 2, 5, 6, 16, 28, 43, 255]);
    let edns = prop::option::of((any::<u16>(), any::<bool>()));
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6);
    let tail = prop::collection::vec(any::<u8>(), 0..20);
    (prop::sample::select(names.to_vec()), types, edns, changes, any::<prop::sample::Index>(), tail)
        .prop_map(|(name, rtype, edns, changes, cut, tail)| {
            let name: Name<Vec<u8>> = name.parse().unwrap();
            let edns = edns.map(|(payload_size, dnssec_ok)| Edns {
                payload_size,
                dnssec_ok,
                ..Edns::default()
            });
            let options = QueryOptions { recursion_desired: true, edns };
            let query = Query::new(&name, Rtype::from_int(rtype), &options).unwrap();
            let mut octets = query.octets().to_vec();
            for (index, octet) in changes {
                let at = index.index(octets.len());
                octets[at] = octet;
            }
            if tail.len() > 15 {
                octets.truncate(cut.index(octets.len()));
            }
            octets.extend_from_slice(&tail);
            octets
        })
}

fn check_any(zone: &Zones, query: &[u8], transport: Transport) -> Result<(), TestCaseError> {
    let mut out = vec![0xff; usize::from(u16::MAX)];
    let Some(length) = answer(zone, query, transport, &mut out) else {
        prop_assert!(query.len() < 12 || query[2] & 0x80 != 0);
        return Ok(());
    };
    let octets = &out[..length];
    render(octets);
    prop_assert_eq!(&octets[..2], &query[..2]);
    prop_assert!(transport.is_connection() || length <= MAX_DATAGRAM);
    // A query of another kind is refused in a response of that kind (RFC 1035, section 4.1.1), which is whole
    // too.
    const OPCODE: u8 = 0b0111_1000;
    prop_assert_eq!(octets[2] & OPCODE, query[2] & OPCODE);
    let mut as_query = octets.to_vec();
    as_query[2] &= !OPCODE;
    prop_assert_eq!(check_answer(&as_query), Ok(()));
    // The answer is as long as its records say: nothing is left over.
    let message = Message::from_octets(octets).unwrap();
    let read: Result<Vec<_>, _> = message.additional().unwrap().collect();
    prop_assert_eq!(read.unwrap().len(), usize::from(message.header_counts().arcount()));
    if message.header_counts().qdcount() == 1 {
        let question = message.sole_question().unwrap();
        let asked = Message::from_octets(query).unwrap().first_question().unwrap();
        prop_assert_eq!(question, asked);
    }
    Ok(())
}

fn signed() -> &'static Zones {
    static MADE: OnceLock<Zones> = OnceLock::new();
    MADE.get_or_init(|| {
        let names = "www.example\nalias.example\n*.wild.example\nhost.sub.example\n.\n";
        let instant = UNIX_EPOCH + Duration::from_secs(1_750_000_000);
        Zones::below_root(&NameList::parse(names).unwrap(), Signing::At(instant))
    })
}

proptest! {
    #[test]
    fn random_octets(query in prop::collection::vec(any::<u8>(), 0..300), stream in any::<bool>()) {
        let transport = if stream { Transport::Tcp } else { Transport::Udp };
        check_any(&zone(), &query, transport)?;
    }

    #[test]
    fn mutated_queries(query in mutated(), stream in any::<bool>()) {
        let transport = if stream { Transport::Tcp } else { Transport::Udp };
        check_any(&zone(), &query, transport)?;
        check_any(signed(), &query, transport)?;
    }
}
