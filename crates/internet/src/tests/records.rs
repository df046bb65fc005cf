//! What resolvers and their clients ask beside the addresses of hosts.

use dnslab_wire::rtype;
use domain::base::iana::{Rcode, Rtype};

use super::resolving::Resolver;
use super::{Asker, dnssec_ok, internet, query};
use crate::{Carrier, Internet};

/// Nothing is wrong, all is signed.
const SOUND: &str = "seed = 41\n[faults]\nlame = 0\ndead = 0\nslow = 0\nedns_formerr = 0\nedns_ignored = 0\n\
                     [names]\ndeep = 0.3\nservices = 0.5\ndmarc = 0.5\ncaa = 0.5\nhttps = 0.5\n\
                     [dnssec]\ntop_level = 1\ndomains = 0.5\nexpired = 0\n";

const ALL_TYPES: [Rtype; 17] = [
    Rtype::A,
    Rtype::NS,
    Rtype::CNAME,
    Rtype::SOA,
    Rtype::PTR,
    Rtype::MX,
    Rtype::TXT,
    Rtype::AAAA,
    Rtype::SRV,
    Rtype::DS,
    Rtype::DNSKEY,
    Rtype::NSEC3PARAM,
    Rtype::HTTPS,
    Rtype::SVCB,
    Rtype::CAA,
    Rtype::TLSA,
    Rtype::from_int(65_280),
];

fn text(name: &crate::Name) -> String {
    name.to_string().trim_end_matches('.').to_owned()
}

/// Names of all kinds that exist, each with all its ancestors.
fn names(internet: &Internet) -> Vec<String> {
    let mut names = vec![".".to_owned()];
    for rank in 0..40 {
        for rtype in [Rtype::A, Rtype::SRV, Rtype::PTR] {
            let name = text(&internet.existing_name(rank, rtype.to_int()));
            let ancestors = name.match_indices('.').map(|(at, _)| name[at + 1..].to_owned());
            names.extend(ancestors);
            names.push(name);
        }
    }
    names.sort();
    names.dedup();
    names
}

/// Every type is found or denied at every name, with the SOA record of a zone above.
#[test]
fn every_type_has_an_answer_at_every_name() {
    let internet = internet(SOUND);
    let mut resolver = Resolver::new(&internet);
    let mut found = std::collections::BTreeMap::new();
    for name in names(&internet) {
        for rtype in ALL_TYPES {
            let answer = resolver.answer(&name, rtype).unwrap();
            assert_eq!(answer.rcode, Rcode::NOERROR, "{name} {rtype}: {:?}", answer.summary());
            assert!(answer.is_authoritative, "{name} {rtype}");
            let has_it = !answer.of("answer", rtype).is_empty();
            let is_alias = !answer.of("answer", Rtype::CNAME).is_empty();
            let soa = answer.of("authority", Rtype::SOA);
            // What an alias leads to may be in another zone, or have no such type.
            let is_denied = soa.len() == 1;
            assert!(is_denied != has_it || is_alias && !has_it, "{name} {rtype}: {answer:?}");
            if let [soa] = soa[..] {
                let owner = &soa.owner;
                let is_above =
                    name == *owner || owner == "." || name.ends_with(&format!(".{owner}"));
                assert!(is_above, "{name} {rtype}: {owner}");
            }
            *found.entry(rtype).or_insert(0) += u32::from(has_it);
        }
    }
    for rtype in &ALL_TYPES[..13] {
        assert!(found[rtype] > 0, "no {rtype}: {found:?}");
    }
    for rtype in [Rtype::SVCB, Rtype::TLSA] {
        assert_eq!(found[&rtype], 0);
    }
}

/// The targets of MX, SRV, NS and PTR records exist, and have addresses.
#[test]
fn targets_exist() {
    let internet = internet(SOUND);
    let mut resolver = Resolver::new(&internet);
    let mut counts = [0; 4];
    for rank in 0..60 {
        for (place, rtype) in [Rtype::MX, Rtype::SRV, Rtype::NS, Rtype::PTR].iter().enumerate() {
            let name = text(&internet.existing_name(rank, rtype.to_int()));
            let answer = resolver.answer(&name, *rtype).unwrap();
            for record in answer.of("answer", *rtype) {
                counts[place] += 1;
                let target = record.data.rsplit(' ').next().unwrap().to_owned();
                let (last, rcode, found) = resolver.resolve(&target, Rtype::A).unwrap();
                assert!(rcode == Rcode::NOERROR && found, "{name} {rtype}: {target}, {last}");
            }
        }
    }
    assert!(counts.iter().all(|count| *count > 20), "{counts:?}");
}

#[test]
fn addresses_have_names_in_both_families() {
    let internet =
        internet("seed = 42\n[faults]\nlame = 0\ndead = 0\nwhole = 0\n[reverse]\npointers = 0.4\n");
    let mut resolver = Resolver::new(&internet);
    let mut zones = std::collections::BTreeMap::new();
    for rank in 0..200 {
        let name = text(&internet.existing_name(rank, rtype::PTR));
        let answer = resolver.answer(&name, Rtype::PTR).unwrap();
        assert_eq!(answer.of("answer", Rtype::PTR).len(), 1, "{name}: {:?}", answer.summary());
        let missing = text(&internet.missing_name(rank, rtype::PTR));
        let answer = resolver.answer(&missing, Rtype::PTR).unwrap();
        assert_eq!(answer.rcode, Rcode::NXDOMAIN, "{missing}: {:?}", answer.summary());
        let family = name.rsplit('.').nth(1).unwrap().to_owned();
        *zones.entry(family).or_insert(0) += 1;
    }
    assert!(zones["ip6"] > 5 && zones["in-addr"] > 100, "{zones:?}");
    // A server's own address.
    let answer = resolver.answer("1.0.18.198.in-addr.arpa", Rtype::PTR).unwrap();
    assert_eq!(answer.of("answer", Rtype::PTR)[0].data, "a.root-servers");
    let zeros = "0.".repeat(19);
    let of_ipv6 = format!("2.0.0.0.0.{zeros}2.0.0.0.1.0.0.2.ip6.arpa");
    let answer = resolver.answer(&of_ipv6, Rtype::PTR).unwrap();
    assert_eq!(answer.of("answer", Rtype::PTR)[0].data, "b.root-servers");
    for private in [
        "1.0.168.192.in-addr.arpa",
        "1.0.0.10.in-addr.arpa",
        "1.2.0.192.in-addr.arpa",
        "256.1.in-addr.arpa",
        "01.1.in-addr.arpa",
    ] {
        let answer = resolver.answer(private, Rtype::PTR).unwrap();
        assert_eq!(answer.rcode, Rcode::NXDOMAIN, "{private}");
    }
}

/// The reverse tree without any names, and with nothing but names.
#[test]
fn all_or_no_addresses_may_have_names() {
    for (share, rcode) in [("0", Rcode::NXDOMAIN), ("1", Rcode::NOERROR)] {
        let internet = internet(&format!(
            "seed = 43\n[faults]\nlame = 0\ndead = 0\n[reverse]\npointers = {share}\ndelegated = 1\n"
        ));
        let mut resolver = Resolver::new(&internet);
        let answer = resolver.answer("9.9.9.9.in-addr.arpa", Rtype::PTR).unwrap();
        assert_eq!(answer.rcode, rcode);
        for (number, expected) in [(7, Rcode::NXDOMAIN), (8, Rcode::NXDOMAIN)] {
            let name = text(&internet.missing_name(number, rtype::PTR));
            assert_eq!(resolver.answer(&name, Rtype::PTR).unwrap().rcode, expected, "{name}");
            let name = text(&internet.existing_name(number, rtype::PTR));
            assert_eq!(resolver.answer(&name, Rtype::PTR).unwrap().rcode, Rcode::NOERROR, "{name}");
        }
    }
}

/// No server has the zone of a regional registry and one below it.
#[test]
fn registries_of_addresses_have_servers_of_their_own() {
    for operators in [2, 3, 50, 2_000] {
        let internet = internet(&format!("seed = 46\n[operators]\ncount = {operators}\n"));
        for rank in 0..300 {
            let name = internet.existing_name(rank, rtype::PTR);
            let located = internet.locate(name.octets());
            let operators: Vec<u32> = located
                .zones()
                .iter()
                .filter_map(|placed| Some(internet.hosting_of(placed.zone)?.operator))
                .collect();
            if let [registry, below] = operators[..] {
                assert_ne!(registry, below, "{name}");
            }
        }
    }
}

/// The names that a population asks for exist or do not, whatever the type.
#[test]
fn names_of_populations_exist_or_do_not() {
    let internet = internet("seed = 44\n[faults]\nlame = 0\ndead = 0\n[names]\nabsent = 0.5\n");
    let mut resolver = Resolver::new(&internet);
    let mut random = std::collections::BTreeSet::new();
    for i in 0..150 {
        for rtype in [Rtype::A, Rtype::HTTPS, Rtype::TXT, Rtype::SRV, Rtype::PTR, Rtype::MX] {
            let existing = text(&internet.existing_name(i, rtype.to_int()));
            let missing = text(&internet.missing_name(i, rtype.to_int()));
            let (_, rcode, _) = resolver.resolve(&existing, rtype).unwrap();
            assert_eq!(rcode, Rcode::NOERROR, "{existing} {rtype}");
            let (_, rcode, _) = resolver.resolve(&missing, rtype).unwrap();
            assert_eq!(rcode, Rcode::NXDOMAIN, "{missing} {rtype}");
        }
        let name = text(&internet.random_name(i.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        let (_, rcode, _) = resolver.resolve(&name, Rtype::A).unwrap();
        assert_eq!(rcode, Rcode::NXDOMAIN, "{name}");
        random.insert(name);
    }
    assert_eq!(random.len(), 150);
    // The most popular is the first domain, however many of its names do not exist.
    assert_eq!(internet.existing_name(0, rtype::MX), internet.existing_name(0, 1));
}

/// Resolvers ask for the ancestors of a name with various types (RFC 9156): BIND for NS or for the addresses of `_`
/// below them, Knot Resolver for NS, Unbound and PowerDNS Recursor for A. No ancestor of a name that exists is denied.
#[test]
fn minimised_queries_of_all_types_find_every_ancestor() {
    let internet = internet(SOUND);
    let mut resolver = Resolver::new(&internet);
    for name in names(&internet) {
        for rtype in [Rtype::NS, Rtype::A, Rtype::AAAA] {
            let answer = resolver.answer(&name, rtype).unwrap();
            assert_eq!(answer.rcode, Rcode::NOERROR, "{name} {rtype}");
        }
        let prefixed = if name == "." { "_".to_owned() } else { format!("_.{name}") };
        let answer = resolver.answer(&prefixed, Rtype::A).unwrap();
        assert_eq!(answer.rcode, Rcode::NXDOMAIN, "{prefixed}");
    }
}

fn with_option(name: &str, option: &[u8]) -> Vec<u8> {
    let mut octets = query(name, Rtype::A, dnssec_ok());
    let at = octets.len() - 2;
    octets[at..].copy_from_slice(&(option.len() as u16).to_be_bytes());
    octets.extend_from_slice(option);
    octets
}

#[test]
fn cookies_are_answered_by_servers_that_know_them() {
    let cookie = |octets: &[u8]| {
        let at = octets.windows(4).rposition(|window| window == [0, 10, 0, 16])?;
        Some(octets[at + 4..at + 20].to_vec())
    };
    let client = b"\0\x0a\0\x08abcdefgh";
    let broken = b"\0\x0a\0\x07abcdefg";
    for (share, has_cookies) in [("0", false), ("1", true)] {
        let internet = internet(&format!("seed = 45\n[operators]\ncookies = {share}\n"));
        let mut asker = Asker::new(&internet);
        let root = internet.root_addresses();
        let mut ask = |server: usize, option: &[u8]| {
            let octets = with_option("com", option);
            asker.send(root[server], &octets, Carrier::Datagram).unwrap()
        };
        let first = ask(0, client);
        let own = cookie(&first.octets);
        assert_eq!(own.is_some(), has_cookies);
        assert_eq!(first.rcode, Rcode::NOERROR);
        if let Some(own) = own {
            assert_eq!(own[..8], *b"abcdefgh");
            // With the server's cookie it is the same; another server has another one.
            let both = [b"\0\x0a\0\x10", own.as_slice()].concat();
            assert_eq!(cookie(&ask(0, &both).octets).as_ref(), Some(&own));
            assert_ne!(cookie(&ask(1, client).octets).as_ref(), Some(&own));
        }
        let expected = if has_cookies { Rcode::FORMERR } else { Rcode::NOERROR };
        assert_eq!(ask(0, broken).rcode, expected);
        // An option that nobody knows, and a client without cookies.
        let unknown = ask(0, b"\xfd\xe9\0\x02ab");
        assert!(unknown.rcode == Rcode::NOERROR && unknown.has_opt);
        assert_eq!(cookie(&unknown.octets), None);
    }
}

/// As RFC 8482 has it: some records of one type, with their signature.
#[test]
fn any_is_one_type() {
    let internet = internet(SOUND);
    let mut resolver = Resolver::new(&internet);
    for name in names(&internet) {
        let answer = resolver.answer(&name, Rtype::ANY).unwrap();
        let types: Vec<Rtype> = answer
            .records
            .iter()
            .filter(|record| record.section == "answer" && record.rtype != Rtype::RRSIG)
            .map(|record| record.rtype)
            .collect();
        assert!(types.windows(2).all(|pair| pair[0] == pair[1]), "{name}: {types:?}");
        assert_eq!(types.is_empty(), !answer.of("authority", Rtype::SOA).is_empty(), "{name}");
    }
}
