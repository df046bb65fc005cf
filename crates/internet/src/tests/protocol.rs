//! What the RFCs ask of authoritative servers.

use std::net::IpAddr;

use dnslab_wire::Edns;
use domain::base::iana::{Rcode, Rtype};

use super::{Asker, dnssec_ok, internet, query};
use crate::model::{Fault, Internet, Zone};
use crate::{Carrier, Description, Scratch};

/// Nothing is wrong, everything is signed, and hosts are plain.
const SOUND: &str = "seed = 31\n[faults]\nlame = 0\ndead = 0\nslow = 0\nedns_formerr = 0\nedns_ignored = 0\n\
                     [names]\nabsent = 0\nalias = 0\ntruncated = 0\ndeep = 0\nipv6 = 0\n\
                     text = [[100, 1]]\nmail = 1\n";

fn root(internet: &Internet) -> IpAddr {
    internet.root_addresses()[0]
}

/// A domain below `com` and its first server.
fn domain(internet: &Internet, is_wanted: impl Fn(u64) -> bool) -> (String, IpAddr) {
    let com = internet.top_level(b"com").unwrap();
    let is_it = |domain: &u64| internet.registry_of(*domain) == com && is_wanted(*domain);
    let domain = (0..100_000).find(is_it).expect("there is one");
    let name = internet.name(domain * internet.description().names.per_domain.0);
    let hosting = internet.hosting(domain, None);
    let (address, _) = internet.addresses(internet.slot(&hosting, 0));
    (name.to_string().trim_end_matches('.').to_owned(), address)
}

fn com(internet: &Internet) -> IpAddr {
    let mut octets = Vec::new();
    let zone = Zone::Registry(internet.top_level(b"com").unwrap());
    let server = internet.push_name_server(&internet.name_servers(zone), 0, &mut octets);
    internet.addresses(server).0
}

#[test]
fn the_root_is_primed() {
    let internet = internet(SOUND);
    let mut asker = Asker::new(&internet);
    let answer = asker.ask(root(&internet), ".", Rtype::NS).unwrap();
    assert!(answer.is_authoritative && answer.has_opt);
    assert_eq!(answer.of("answer", Rtype::NS).len(), 13);
    assert_eq!(answer.of("answer", Rtype::RRSIG).len(), 1);
    assert_eq!(answer.of("additional", Rtype::A).len(), 13);
    assert_eq!(answer.of("additional", Rtype::AAAA).len(), 13);
    // Without EDNS as much as there is room for, and it is not truncated (RFC 8109, section 4).
    let octets = query(".", Rtype::NS, None);
    let small = asker.send(root(&internet), &octets, Carrier::Datagram).unwrap();
    assert!(!small.is_truncated && small.octets.len() <= 512);
    assert_eq!(small.of("answer", Rtype::NS).len(), 13);
    // Each is found by its own name too.
    let answer = asker.ask(root(&internet), "c.root-servers", Rtype::AAAA).unwrap();
    assert_eq!(answer.of("answer", Rtype::AAAA)[0].data, "2001:2::3");
}

#[test]
fn referrals_have_glue_and_no_authority() {
    let internet = internet(SOUND);
    let mut asker = Asker::new(&internet);
    let (name, own) = domain(&internet, |domain| internet.hosting(domain, None).own_names);
    let answer = asker.ask(root(&internet), &name, Rtype::A).unwrap();
    assert!(!answer.is_authoritative && answer.rcode == Rcode::NOERROR);
    assert!(answer.of("answer", Rtype::A).is_empty());
    assert_eq!(answer.of("authority", Rtype::NS)[0].owner, "com");
    assert_eq!(answer.of("authority", Rtype::DS).len(), 1);
    let referral = asker.ask(com(&internet), &format!("www.{name}"), Rtype::A).unwrap();
    let servers = referral.of("authority", Rtype::NS);
    assert_eq!(servers[0].owner, name);
    assert_eq!(servers[0].data, format!("ns1.{name}"));
    assert_eq!(servers.len(), referral.of("additional", Rtype::A).len());
    assert_eq!(referral.of("additional", Rtype::A)[0].data, own.to_string());
    // Servers of operators below other top-level domains have no glue here.
    let (name, _) = domain(&internet, |domain| {
        let hosting = internet.hosting(domain, None);
        let other = internet.registry_of(internet.domain_of(hosting.operator));
        !hosting.own_names && internet.registry_of(domain) != other
    });
    let referral = asker.ask(com(&internet), &name, Rtype::A).unwrap();
    assert!(referral.of("additional", Rtype::A).is_empty(), "{:?}", referral.summary());
    assert!(!referral.of("authority", Rtype::NS).is_empty());
}

#[test]
fn both_sides_of_a_cut_know_what_is_theirs() {
    let internet = internet(SOUND);
    let mut asker = Asker::new(&internet);
    for is_signed in [true, false] {
        let (name, own) = domain(&internet, |domain| {
            internet.is_signed(Zone::Hosted { domain, region: None }) == is_signed
        });
        let ds = asker.ask(com(&internet), &name, Rtype::DS).unwrap();
        assert!(ds.is_authoritative);
        assert_eq!(ds.of("answer", Rtype::DS).len(), usize::from(is_signed));
        assert_eq!(ds.of("authority", Rtype::SOA).len(), usize::from(!is_signed));
        // The child says that it has none.
        let of_child = asker.ask(own, &name, Rtype::DS).unwrap();
        assert!(of_child.is_authoritative && of_child.of("answer", Rtype::DS).is_empty());
        assert_eq!(of_child.of("authority", Rtype::SOA)[0].owner, name);
        for rtype in [Rtype::NS, Rtype::SOA] {
            let of_parent = asker.ask(com(&internet), &name, rtype).unwrap();
            assert!(!of_parent.is_authoritative && of_parent.of("answer", rtype).is_empty());
            let of_child = asker.ask(own, &name, rtype).unwrap();
            assert!(of_child.is_authoritative);
            assert_eq!(of_child.of("answer", rtype)[0].owner, name);
        }
        let key = asker.ask(own, &name, Rtype::DNSKEY).unwrap();
        assert_eq!(key.of("answer", Rtype::DNSKEY).len(), usize::from(is_signed));
    }
    let ds = asker.ask(root(&internet), "com", Rtype::DS).unwrap();
    assert!(ds.is_authoritative && ds.of("answer", Rtype::DS).len() == 1);
    let ds = asker.ask(root(&internet), ".", Rtype::DS).unwrap();
    assert!(ds.is_authoritative && ds.of("authority", Rtype::SOA).len() == 1);
}

#[track_caller]
fn check_negative(
    asker: &mut Asker<'_>,
    address: IpAddr,
    name: &str,
    rtype: Rtype,
    rcode: Rcode,
    apex: &str,
) {
    let answer = asker.ask(address, name, rtype).unwrap();
    assert!(answer.is_authoritative && answer.rcode == rcode, "{name}: {answer:?}");
    let soa = answer.of("authority", Rtype::SOA)[0];
    assert_eq!(soa.owner, apex, "{name}");
    // RFC 2308, section 5: both say the same.
    assert_eq!(soa.data.rsplit(' ').next().unwrap(), soa.ttl.to_string(), "{soa:?}");
}

#[test]
fn negative_answers_have_their_ttl() {
    let internet = internet(SOUND);
    let mut asker = Asker::new(&internet);
    let (name, own) = domain(&internet, |_| true);
    let (found, absent) = (Rcode::NOERROR, Rcode::NXDOMAIN);
    check_negative(&mut asker, own, &format!("www.{name}"), Rtype::AAAA, found, &name);
    check_negative(&mut asker, own, &format!("nothing.{name}"), Rtype::A, absent, &name);
    check_negative(&mut asker, own, &format!("a.b.www.{name}"), Rtype::A, absent, &name);
    check_negative(&mut asker, com(&internet), "nothing-there.com", Rtype::A, absent, "com");
    check_negative(&mut asker, com(&internet), "nic.com", Rtype::A, found, "com");
    check_negative(&mut asker, com(&internet), "com", Rtype::A, found, "com");
    check_negative(&mut asker, root(&internet), "nothing-there", Rtype::A, absent, ".");
    check_negative(&mut asker, root(&internet), "root-servers", Rtype::A, found, ".");
    check_negative(&mut asker, root(&internet), ".", Rtype::A, found, ".");
}

#[test]
fn the_question_keeps_its_case() {
    let internet = internet(SOUND);
    let mut asker = Asker::new(&internet);
    let (name, own) = domain(&internet, |_| true);
    let mixed = format!("wWw.{}", name.to_ascii_uppercase());
    let octets = query(&mixed, Rtype::A, None);
    let answer = asker.send(own, &octets, Carrier::Datagram).unwrap();
    assert_eq!(answer.octets[12..octets.len()], octets[12..]);
    assert_eq!(answer.of("answer", Rtype::A)[0].owner, format!("www.{name}"));
}

fn ask_broken(
    asker: &mut Asker<'_>,
    fault: Fault,
    edns: Option<Edns>,
    version: u8,
) -> Option<super::Answer> {
    let internet = asker.internet;
    let (name, own) = domain(internet, |domain| internet.fault(domain) == fault);
    let mut octets = query(&name, Rtype::A, edns);
    let at = octets.len() - 5;
    if version > 0 {
        octets[at] = version;
    }
    asker.send(own, &octets, Carrier::Datagram)
}

#[test]
fn edns_is_what_the_server_has() {
    let internet = internet(
        "seed = 32\n[faults]\nlame = 0\ndead = 0.1\nedns_formerr = 0.2\nedns_ignored = 0.2\nwhole = 1\n\
         [names]\nabsent = 0\ntruncated = 0\nalias = 0\n[operators]\npayload = [[1000, 1]]\n",
    );
    let mut asker = Asker::new(&internet);
    let plain = ask_broken(&mut asker, Fault::None, dnssec_ok(), 0).unwrap();
    assert!(plain.has_opt && plain.rcode == Rcode::NOERROR);
    assert_eq!(plain.octets[plain.octets.len() - 8..][..2], 1000_u16.to_be_bytes());
    let future = ask_broken(&mut asker, Fault::None, dnssec_ok(), 1).unwrap();
    // BADVERS is 16: the header has its lower four bits, the OPT record the others.
    assert!(future.has_opt && future.octets[3] & 0xf == 0);
    assert_eq!(future.octets[future.octets.len() - 6], 1);
    assert!(!ask_broken(&mut asker, Fault::None, None, 0).unwrap().has_opt);
    let old = ask_broken(&mut asker, Fault::EdnsFormErr, dnssec_ok(), 0).unwrap();
    assert!(!old.has_opt && old.rcode == Rcode::FORMERR);
    assert_eq!(ask_broken(&mut asker, Fault::EdnsFormErr, None, 0).unwrap().rcode, Rcode::NOERROR);
    let deaf = ask_broken(&mut asker, Fault::EdnsIgnored, dnssec_ok(), 0).unwrap();
    assert!(!deaf.has_opt && deaf.rcode == Rcode::NOERROR);
    assert!(ask_broken(&mut asker, Fault::Dead, dnssec_ok(), 0).is_none());
}

#[test]
fn large_answers_are_truncated_at_the_smaller_buffer() {
    let internet = internet(
        "seed = 33\n[names]\ntext = [[3000, 1]]\ntruncated = 0\n[faults]\nlame = 0\ndead = 0\n\
         edns_formerr = 0\nedns_ignored = 0\n[operators]\npayload = [[4096, 1]]\n",
    );
    let (name, own) = domain(&internet, |_| true);
    let mut asker = Asker::new(&internet);
    for (payload, is_truncated) in [(1232, true), (4096, false), (65_535, false)] {
        let edns = Some(Edns { payload_size: payload, ..Edns::default() });
        let octets = query(&name, Rtype::TXT, edns);
        let answer = asker.send(own, &octets, Carrier::Datagram).unwrap();
        assert_eq!(answer.is_truncated, is_truncated, "{payload}");
        assert!(answer.octets.len() <= usize::from(payload));
        let answer = asker.send(own, &octets, Carrier::Stream).unwrap();
        assert!(!answer.is_truncated && answer.of("answer", Rtype::TXT).len() == 1);
    }
}

#[test]
fn other_questions_are_refused() {
    let internet = internet(SOUND);
    let mut asker = Asker::new(&internet);
    let root = root(&internet);
    let answer = asker.ask(root, ".", Rtype::AXFR).unwrap();
    assert_eq!(answer.rcode, Rcode::REFUSED);
    let mut octets = query("com", Rtype::A, None);
    let class = octets.len() - 1;
    octets[class] = 3;
    assert_eq!(asker.send(root, &octets, Carrier::Datagram).unwrap().rcode, Rcode::REFUSED);
    let mut octets = query("com", Rtype::A, None);
    octets[2] |= 4 << 3;
    assert_eq!(asker.send(root, &octets, Carrier::Datagram).unwrap().rcode, Rcode::NOTIMP);
    let any = asker.ask(root, ".", Rtype::ANY).unwrap();
    assert_eq!(any.of("answer", Rtype::NS).len(), 13);
}

fn answers_of(internet: &Internet) -> Vec<u8> {
    let (mut scratch, mut out) = (Scratch::default(), vec![0; 65_535]);
    let mut all = Vec::new();
    for i in 0..200 {
        let name = internet.name(i).to_string();
        for place in [1, 14, 40, 8_000] {
            let address = internet.networks().next().unwrap().at(place);
            let octets = query(&name, Rtype::A, dnssec_ok());
            let length =
                internet.answer(address, &octets, Carrier::Datagram, &mut scratch, &mut out);
            all.extend_from_slice(&out[..length.unwrap_or(0)]);
        }
    }
    all
}

#[test]
fn one_seed_is_one_internet() {
    const SIGNED: &str = "domains = 0.5\nroot_algorithm = 15\n\
        top_level_algorithms = [[8, 1], [15, 1]]\nalgorithms = [[8, 1], [15, 1]]\n";
    // Signatures of ECDSA have a random part, and the key of a root with RSA is in the source.
    let [one, other, different] =
        [34, 34, 35].map(|seed| internet(&format!("seed = {seed}\n[dnssec]\n{SIGNED}")));
    assert_eq!(one.root_zone(), other.root_zone());
    assert_eq!(one.trust_anchor(), other.trust_anchor());
    assert_ne!(one.trust_anchor(), different.trust_anchor());
    assert_eq!(answers_of(&one), answers_of(&other));
    assert_ne!(answers_of(&one), answers_of(&different));
}

fn check_error(text: &str, parts: &[&str]) {
    let error = Internet::parse(text).expect_err(text).to_string();
    for part in parts {
        assert!(error.contains(part), "`{text}` has no `{part}`: {error}");
    }
}

#[test]
fn files_are_refused_with_a_line_and_a_reason() {
    check_error("seed = 1\nsed = 2", &["line 2", "unknown field `sed`"]);
    check_error("[names]\n\nipv6 = 1.5", &["line 3", "1.5 is no share"]);
    check_error("[names]\nipv6 = \"150%\"", &["line 2", "`150%` is no share"]);
    check_error("[root]\nservers = 0", &["line 2", "0 is not between 1 and 26"]);
    check_error("[path]\nmedian = \"5\"", &["line 2", "`5` is no duration"]);
    check_error("[top_level]\nttl = \"1y\"", &["line 2", "`1y` is no TTL"]);
    check_error("[names]\nttl = [[1, 0]]", &["line 2", "needs a weight above 0"]);
    check_error("[names]\nttl = []", &["line 2", "needs a weight above 0"]);
    check_error("[network]\nipv4 = \"198.18.0.1/15\"", &["line 2", "bits after its prefix"]);
    check_error("[network]\nipv4 = \"2001:2::/48\"", &["line 2", "no network of IPv4"]);
    check_error("[network]\nipv4 = \"198.18.0.0/24\"", &["has no room for", "198.18.0.0/24"]);
    check_error("[dnssec]\nroot_algorithm = 10", &["`dnssec.root_algorithm`", "10 is not among 8"]);
    check_error("[dnssec]\nalgorithms = [[14, 1]]", &["`dnssec.algorithms`", "14 is not among"]);
    check_error("[dnssec]\nalgorithms = [[5, 1]]", &["line 2", "5 is not between 8 and 15"]);
    check_error("[faults]\nlame = 0.6\ndead = 0.6", &["`faults`", "add up to"]);
    check_error("[top_level]\nknown = [[\"a.b.c\", 1]]", &["line 2", "one or two labels"]);
    check_error("[top_level]\nknown = [[\"com\", 1], [\"com\", 0]]", &["twice"]);
    check_error("[top_level]\ncount = 1\nknown = [[\"com\", 1], [\"net\", 0]]", &["more than 1"]);
}

#[test]
fn the_example_has_all_keys_with_their_defaults() {
    let text = include_str!("../../../../docs/internet.toml");
    assert_eq!(Description::parse(text).unwrap(), Description::default());
    // A key that the file does not have is one that nobody finds.
    let written: usize = text.lines().filter(|line| line.contains(" = ")).count();
    assert_eq!(written, 65, "keys were added or taken away: write them into the example");
}
