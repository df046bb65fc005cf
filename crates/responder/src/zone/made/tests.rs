//! Zones that were made, as their answers show them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use dnslab_wire::{Edns, Query, QueryOptions, TRUST_ANCHOR_DNSKEY, TRUST_ANCHOR_DS, Transport};
use domain::base::iana::{Rcode, Rtype};
use domain::base::{Message, Name};
use domain::rdata::AllRecordData;

use super::*;
use crate::answer;

fn instant() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_750_000_000)
}

fn zones(signing: Signing) -> Zones {
    let names = "www.example.com\nexample.com\na.deep.example.com\nexample.org MX\nlocal\n.\n";
    Zones::below_root(&NameList::parse(names).unwrap(), signing)
}

/// `bits` are set in the last octet of the header's flags.
fn ask(zones: &Zones, qname: &str, qtype: Rtype, edns: Option<Edns>, bits: u8) -> Message<Vec<u8>> {
    let name: Name<Vec<u8>> = qname.parse().unwrap();
    let query = Query::new(&name, qtype, &QueryOptions { recursion_desired: true, edns }).unwrap();
    let mut octets = query.octets().to_vec();
    octets[3] |= bits;
    let mut out = vec![0; 65_535];
    let length = answer(zones, &octets, Transport::Tcp, &mut out).unwrap();
    out.truncate(length);
    Message::from_octets(out).unwrap()
}

fn records(message: &Message<Vec<u8>>) -> Vec<String> {
    let sections = [message.answer(), message.authority(), message.additional()];
    let read = |record: Result<domain::base::ParsedRecord<'_, Vec<u8>>, _>| {
        let record = record.unwrap();
        let owner = Some(record.owner().to_string()).filter(|owner| !owner.is_empty());
        let owner = owner.unwrap_or_else(|| ".".to_owned());
        (record.rtype() != Rtype::OPT).then(|| format!("{owner} {}", record.rtype()))
    };
    sections.into_iter().flat_map(|section| section.unwrap().filter_map(read)).collect()
}

#[test]
fn a_recursive_resolver_has_every_answer() {
    let zones = zones(Signing::Unsigned);
    let check = |qname: &str, qtype, rcode, expected: &[&str]| {
        let message = ask(&zones, qname, qtype, None, 0);
        let header = message.header();
        assert_eq!((header.rcode(), header.aa(), header.ra()), (rcode, false, true), "{qname}");
        assert!(!header.ad() && header.rd());
        assert_eq!(records(&message), expected, "{qname} {qtype}");
    };
    let (found, absent) = (Rcode::NOERROR, Rcode::NXDOMAIN);
    check("www.example.com.", Rtype::A, found, &["www.example.com A"]);
    check("WWW.example.com.", Rtype::AAAA, found, &["WWW.example.com AAAA"]);
    check("www.example.com.", Rtype::TXT, found, &["example.com SOA"]);
    check("no.example.com.", Rtype::A, absent, &["example.com SOA"]);
    check("below.www.example.com.", Rtype::A, absent, &["example.com SOA"]);
    // An empty non-terminal.
    check("deep.example.com.", Rtype::A, found, &["example.com SOA"]);
    check("example.com.", Rtype::A, found, &["example.com A"]);
    check("example.org.", Rtype::A, found, &["example.org A"]);
    check("example.org.", Rtype::MX, found, &["example.org SOA"]);
    check("other.com.", Rtype::A, absent, &["com SOA"]);
    check("other.", Rtype::A, absent, &[". SOA"]);
    check("local.", Rtype::A, found, &["local A"]);
    check(".", Rtype::A, found, &[". A"]);
    for apex in [".", "com.", "example.com.", "example.", "servers.example."] {
        let owner = if apex == "." { apex } else { apex.trim_end_matches('.') };
        check(apex, Rtype::SOA, found, &[&format!("{owner} SOA")]);
        check(apex, Rtype::NS, found, &[&format!("{owner} NS"), &format!("{owner} NS")]);
        check(apex, Rtype::DNSKEY, found, &[&format!("{owner} SOA")]);
    }
    check("ns1.servers.example.", Rtype::A, found, &["ns1.servers.example A"]);
    // The parent says that there is no signed child.
    check("example.com.", Rtype::DS, found, &["com SOA"]);
    check(".", Rtype::DS, found, &[". SOA"]);
}

#[test]
fn flags_are_those_of_a_resolver() {
    let dnssec_ok = Some(Edns { dnssec_ok: true, ..Edns::default() });
    let check = |signing, edns: Option<Edns>, bits, expected: [bool; 3]| {
        let zones = zones(signing);
        for qname in ["www.example.com.", "no.example.com.", "other."] {
            let header = ask(&zones, qname, Rtype::A, edns.clone(), bits).header();
            assert_eq!([header.ra(), header.ad(), header.cd()], expected, "{qname} {bits:#x}");
        }
    };
    check(Signing::Unsigned, dnssec_ok.clone(), 0x20, [true, false, false]);
    check(Signing::At(instant()), None, 0, [true, false, false]);
    check(Signing::At(instant()), None, 0x20, [true, true, false]);
    check(Signing::At(instant()), dnssec_ok.clone(), 0, [true, true, false]);
    check(Signing::At(instant()), dnssec_ok, 0x10, [true, true, true]);
    check(Signing::Unsigned, None, 0x10, [true, false, true]);
}

#[test]
fn signed_zones_prove_what_they_say() {
    let zones = zones(Signing::At(instant()));
    let check = |qname: &str, qtype, expected: &[&str]| {
        let edns = Some(Edns { dnssec_ok: true, ..Edns::default() });
        let message = ask(&zones, qname, qtype, edns, 0);
        assert_eq!(records(&message), expected, "{qname} {qtype}");
        // Without DO the proof is left out, unless it was asked for.
        let plain = records(&ask(&zones, qname, qtype, Some(Edns::default()), 0));
        let asked = format!(" {qtype}");
        let is_proof = |record: &&&str| {
            !record.ends_with(&asked) && (record.contains("RRSIG") || record.contains("NSEC"))
        };
        let unproven: Vec<_> = expected.iter().filter(|record| !is_proof(record)).collect();
        assert_eq!(plain.iter().collect::<Vec<_>>(), unproven, "{qname} {qtype}");
    };
    check("www.example.com.", Rtype::A, &["www.example.com A", "www.example.com RRSIG"]);
    check("com.", Rtype::DNSKEY, &["com DNSKEY", "com RRSIG"]);
    check("example.com.", Rtype::DS, &["example.com DS", "example.com RRSIG"]);
    let soa = ["example.com SOA", "example.com RRSIG"];
    let nodata = |owner: &str| {
        let proof = [format!("{owner} NSEC"), format!("{owner} RRSIG")];
        soa.map(str::to_owned).into_iter().chain(proof).collect::<Vec<_>>()
    };
    let check_negative = |qname: &str, qtype, owners: &[&str]| {
        let mut expected = nodata(owners[0]);
        expected.extend(
            owners[1..]
                .iter()
                .flat_map(|owner| [format!("{owner} NSEC"), format!("{owner} RRSIG")]),
        );
        check(qname, qtype, &expected.iter().map(String::as_str).collect::<Vec<_>>());
    };
    check_negative("www.example.com.", Rtype::TXT, &["www.example.com"]);
    // The record before an empty non-terminal covers it.
    check_negative("deep.example.com.", Rtype::A, &["example.com"]);
    check_negative("zzz.example.com.", Rtype::A, &["www.example.com", "example.com"]);
    // One record covers the name and the wildcard.
    check_negative("aaa.example.com.", Rtype::A, &["example.com"]);
    check_negative("b.deep.example.com.", Rtype::A, &["a.deep.example.com", "example.com"]);
}

#[test]
fn the_root_is_signed_with_the_trust_anchor() {
    let zones = zones(Signing::At(instant()));
    let edns = Some(Edns { dnssec_ok: true, ..Edns::default() });
    let message = ask(&zones, ".", Rtype::DNSKEY, edns, 0);
    let mut records = message.answer().unwrap().limit_to::<AllRecordData<_, _>>();
    let mut next = || records.next().map(|record| record.unwrap().into_data());
    let Some(AllRecordData::Dnskey(key)) = next() else { panic!("no key first") };
    let Some(AllRecordData::Rrsig(signature)) = next() else { panic!("no signature next") };
    assert!(next().is_none());
    assert_eq!(format!(". 3600 IN DNSKEY {key}"), TRUST_ANCHOR_DNSKEY);
    assert_eq!((signature.type_covered(), signature.key_tag()), (Rtype::DNSKEY, key.key_tag()));
    let validity = [signature.inception(), signature.expiration()].map(|time| time.into_int());
    assert_eq!(validity, [1_750_000_000 - 3600, 1_750_000_000 - 3600 + 30 * 86_400]);
    let mut ds = Vec::new();
    Signer::new(instant()).key.push_ds(b"\0", &mut ds);
    let digest: String = ds[4..].iter().map(|octet| format!("{octet:02X}")).collect();
    let tag = u16::from_be_bytes([ds[0], ds[1]]);
    let text = format!(". 3600 IN DS {tag} {} {} {digest}", ds[2], ds[3]);
    assert_eq!(text, TRUST_ANCHOR_DS);
}

#[test]
fn addresses_follow_from_the_name_alone() {
    let check = |name: &str, ipv4: &str, ipv6: &str| {
        let (a, aaaa) = addresses(&name.parse().unwrap());
        assert_eq!((a.to_string().as_str(), aaaa.to_string().as_str()), (ipv4, ipv6), "{name}");
    };
    check("www.example.com", "203.0.113.35", "2001:db8::eb15:79da:8d3c:8b3c");
    check("www.example.org", "203.0.113.177", "2001:db8::b843:3eb1:e9f8:e676");
}
