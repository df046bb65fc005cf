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
    let all = sections.into_iter().flat_map(|section| section.unwrap().map(Result::unwrap));
    let shown = all.filter(|record| record.rtype() != Rtype::OPT).map(|record| {
        let owner = record.owner().to_string();
        format!("{} {}", if owner.is_empty() { "." } else { &owner }, record.rtype())
    });
    shown.collect()
}

#[track_caller]
fn check_answer(zones: &Zones, qname: &str, qtype: Rtype, rcode: Rcode, expected: &[&str]) {
    let message = ask(zones, qname, qtype, None, 0);
    let header = message.header();
    assert_eq!((header.rcode(), header.aa(), header.ra()), (rcode, false, true), "{qname}");
    assert!(!header.ad() && header.rd());
    assert_eq!(records(&message), expected, "{qname} {qtype}");
}

#[test]
fn a_recursive_resolver_has_every_answer() {
    let zones = zones(Signing::Unsigned);
    let (found, absent) = (Rcode::NOERROR, Rcode::NXDOMAIN);
    check_answer(&zones, "www.example.com.", Rtype::A, found, &["www.example.com A"]);
    check_answer(&zones, "WWW.example.com.", Rtype::AAAA, found, &["WWW.example.com AAAA"]);
    check_answer(&zones, "www.example.com.", Rtype::TXT, found, &["example.com SOA"]);
    check_answer(&zones, "no.example.com.", Rtype::A, absent, &["example.com SOA"]);
    check_answer(&zones, "below.www.example.com.", Rtype::A, absent, &["example.com SOA"]);
    // An empty non-terminal.
    check_answer(&zones, "deep.example.com.", Rtype::A, found, &["example.com SOA"]);
    check_answer(&zones, "example.com.", Rtype::A, found, &["example.com A"]);
    check_answer(&zones, "example.org.", Rtype::A, found, &["example.org A"]);
    check_answer(&zones, "example.org.", Rtype::MX, found, &["example.org SOA"]);
    check_answer(&zones, "other.com.", Rtype::A, absent, &["com SOA"]);
    check_answer(&zones, "other.", Rtype::A, absent, &[". SOA"]);
    check_answer(&zones, "local.", Rtype::A, found, &["local A"]);
    check_answer(&zones, ".", Rtype::A, found, &[". A"]);
    for apex in [".", "com.", "example.com.", "example.", "servers.example."] {
        let owner = if apex == "." { apex } else { apex.trim_end_matches('.') };
        check_answer(&zones, apex, Rtype::SOA, found, &[&format!("{owner} SOA")]);
        check_answer(
            &zones,
            apex,
            Rtype::NS,
            found,
            &[&format!("{owner} NS"), &format!("{owner} NS")],
        );
        check_answer(&zones, apex, Rtype::DNSKEY, found, &[&format!("{owner} SOA")]);
    }
    check_answer(&zones, "ns1.servers.example.", Rtype::A, found, &["ns1.servers.example A"]);
    // The parent says that there is no signed child.
    check_answer(&zones, "example.com.", Rtype::DS, found, &["com SOA"]);
    check_answer(&zones, ".", Rtype::DS, found, &[". SOA"]);
}

fn check_flags(signing: Signing, edns: Option<Edns>, bits: u8, expected: [bool; 3]) {
    let zones = zones(signing);
    for qname in ["www.example.com.", "no.example.com.", "other."] {
        let header = ask(&zones, qname, Rtype::A, edns.clone(), bits).header();
        assert_eq!([header.ra(), header.ad(), header.cd()], expected, "{qname} {bits:#x}");
    }
}

#[test]
fn flags_are_those_of_a_resolver() {
    let dnssec_ok = Some(Edns { dnssec_ok: true, ..Edns::default() });
    check_flags(Signing::Unsigned, dnssec_ok.clone(), 0x20, [true, false, false]);
    check_flags(Signing::At(instant()), None, 0, [true, false, false]);
    check_flags(Signing::At(instant()), None, 0x20, [true, true, false]);
    check_flags(Signing::At(instant()), dnssec_ok.clone(), 0, [true, true, false]);
    check_flags(Signing::At(instant()), dnssec_ok, 0x10, [true, true, true]);
    check_flags(Signing::Unsigned, None, 0x10, [true, false, true]);
}

fn check_signed(zones: &Zones, qname: &str, qtype: Rtype, expected: &[&str]) {
    let edns = Some(Edns { dnssec_ok: true, ..Edns::default() });
    let message = ask(zones, qname, qtype, edns, 0);
    assert_eq!(records(&message), expected, "{qname} {qtype}");
    // Without DO the proof is left out, unless it was asked for.
    let plain = records(&ask(zones, qname, qtype, Some(Edns::default()), 0));
    let asked = format!(" {qtype}");
    let is_proof = |record: &&&str| {
        !record.ends_with(&asked) && (record.contains("RRSIG") || record.contains("NSEC"))
    };
    let unproven: Vec<_> = expected.iter().filter(|record| !is_proof(record)).collect();
    assert_eq!(plain.iter().collect::<Vec<_>>(), unproven, "{qname} {qtype}");
}

fn check_negative(zones: &Zones, qname: &str, qtype: Rtype, owners: &[&str]) {
    let proofs = owners.iter().flat_map(|owner| ["NSEC", "RRSIG"].map(|rtype| (*owner, rtype)));
    let all = ["SOA", "RRSIG"].map(|rtype| ("example.com", rtype)).into_iter().chain(proofs);
    let expected: Vec<String> = all.map(|(owner, rtype)| format!("{owner} {rtype}")).collect();
    check_signed(zones, qname, qtype, &expected.iter().map(String::as_str).collect::<Vec<_>>());
}

#[test]
fn signed_zones_prove_what_they_say() {
    let zones = zones(Signing::At(instant()));
    check_signed(
        &zones,
        "www.example.com.",
        Rtype::A,
        &["www.example.com A", "www.example.com RRSIG"],
    );
    check_signed(&zones, "com.", Rtype::DNSKEY, &["com DNSKEY", "com RRSIG"]);
    check_signed(&zones, "example.com.", Rtype::DS, &["example.com DS", "example.com RRSIG"]);
    check_negative(&zones, "www.example.com.", Rtype::TXT, &["www.example.com"]);
    // The record before an empty non-terminal covers it.
    check_negative(&zones, "deep.example.com.", Rtype::A, &["example.com"]);
    check_negative(&zones, "zzz.example.com.", Rtype::A, &["www.example.com", "example.com"]);
    // One record covers the name and the wildcard.
    check_negative(&zones, "aaa.example.com.", Rtype::A, &["example.com"]);
    check_negative(&zones, "b.deep.example.com.", Rtype::A, &["a.deep.example.com", "example.com"]);
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
