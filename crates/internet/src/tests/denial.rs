//! Proofs of what is not there, as validators and their caches of negative answers read them (RFC 4035, RFC 5155,
//! RFC 8198).

use std::cmp::Ordering;

use dnslab_wire::{canonical_cmp, labels, rtype};
use domain::base::iana::Rtype;
use domain::base::{Message, Name as DomainName, ParsedName};
use domain::rdata::{AllRecordData, Nsec, Nsec3};
use proptest::prelude::*;

use super::{dnssec_ok, internet, query};
use crate::chain::ListedName;
use crate::lookup::Node;
use crate::model::{Denial, Server, Zone};
use crate::nsec3::nsec3_hash;
use crate::{Carrier, Internet, Scratch};

/// Nothing is wrong, and of everything that can be signed most is.
const SIGNED: &str = "seed = 51\n[faults]\nlame = 0\ndead = 0\nslow = 0\nedns_formerr = 0\nedns_ignored = 0\n\
                      [names]\nper_domain = 12\ndeep = 0.4\ncut = 0.5\nalias_inside = 0.8\nservices = 0.5\n\
                      dmarc = 0.5\n[operators]\nown_names = 0.5\n\
                      [top_level]\ncount = 60\nnsec = 0.4\nopt_out = 0.5\n\
                      [dnssec]\ntop_level = 1\ndomains = 0.6\nexpired = 0\nnsec3 = 0.5\nopt_out = 0.3\n";

/// A proof of an answer: what its owner and the next owner are, and the types at the owner.
#[derive(Clone, Debug, PartialEq)]
enum Proof {
    Nsec { owner: Vec<u8>, next: Vec<u8>, types: Vec<Rtype> },
    Nsec3 { owner: Vec<u8>, next: Vec<u8>, types: Vec<Rtype>, opt_out: bool },
}

impl Proof {
    /// True if it says that a name is not there.
    fn covers(&self, name: &[u8]) -> bool {
        match self {
            Self::Nsec { owner, next, .. } => {
                is_between(owner, name, next, canonical_cmp)
                    && !(is_below(name, owner) && self.is_delegation())
            }
            Self::Nsec3 { owner, next, .. } => {
                is_between(owner, &nsec3_hash(name), next, |one, other| one.cmp(other))
            }
        }
    }

    fn matches(&self, name: &[u8]) -> bool {
        match self {
            Self::Nsec { owner, .. } => owner == name,
            Self::Nsec3 { owner, .. } => *owner == nsec3_hash(name),
        }
    }

    fn types(&self) -> &[Rtype] {
        let (Self::Nsec { types, .. } | Self::Nsec3 { types, .. }) = self;
        types
    }

    fn is_delegation(&self) -> bool {
        self.types().contains(&Rtype::NS) && !self.types().contains(&Rtype::SOA)
    }

    fn is_opt_out(&self) -> bool {
        matches!(self, Self::Nsec3 { opt_out: true, .. })
    }
}

/// The last record of a zone leads to the first, and a single one to itself.
fn is_between(
    owner: &[u8],
    name: &[u8],
    next: &[u8],
    order: impl Fn(&[u8], &[u8]) -> Ordering,
) -> bool {
    let (after, before) = (order(owner, name).is_lt(), order(name, next).is_lt());
    match order(owner, next) {
        Ordering::Less => after && before,
        _ => (after || before) && order(owner, name).is_ne(),
    }
}

fn is_below(name: &[u8], apex: &[u8]) -> bool {
    name.len() > apex.len() && name.ends_with(apex)
}

fn text(name: &[u8]) -> String {
    crate::name::Name::from_wire(name).to_string()
}

/// A server of a zone, which has it.
fn server_of(internet: &Internet, zone: Zone) -> Server {
    let servers = internet.name_servers(zone);
    internet.push_name_server(&servers, 0, &mut Vec::new())
}

/// What a server says of a name.
struct Said {
    rcode: u8,
    proofs: Vec<Proof>,
    /// The zone that says it.
    zone: Zone,
    /// The name that it is about: where aliases lead to.
    name: Vec<u8>,
}

fn ask(internet: &Internet, zone: Zone, name: &[u8], rtype: Rtype) -> Said {
    let server = server_of(internet, zone);
    let (address, _) = internet.addresses(server);
    let octets = query(&text(name), rtype, dnssec_ok());
    let mut out = vec![0; 65_535];
    let mut scratch = Scratch::default();
    let length = internet.answer(address, &octets, Carrier::Stream, &mut scratch, &mut out);
    let message = Message::from_octets(&out[..length.unwrap()]).unwrap();
    let (mut proofs, mut last) = (Vec::new(), name.to_vec());
    for record in message.answer().unwrap().limit_to::<domain::rdata::Cname<ParsedName<_>>>() {
        last = wire(record.unwrap().data().cname());
    }
    for record in message.authority().unwrap() {
        let record = record.unwrap();
        let owner = wire(&record.owner());
        let read = record.to_record::<AllRecordData<_, ParsedName<_>>>().unwrap().unwrap();
        let proof = match read.data() {
            AllRecordData::Nsec(nsec) => of_nsec(owner, nsec),
            AllRecordData::Nsec3(nsec3) => of_nsec3(&owner, nsec3),
            _ => continue,
        };
        assert!(!proofs.contains(&proof), "{} {rtype}: twice {proof:?}", text(name));
        proofs.push(proof);
    }
    let located = internet.locate(&last);
    let zones: Vec<Zone> = located.zones().iter().map(|placed| placed.zone).collect();
    // An alias may lead to where the server knows nothing.
    let served = zones.iter().rposition(|zone| internet.serves(server, *zone));
    let mut depth = served.unwrap_or(0);
    let is_apex = depth > 0 && depth + 1 == zones.len() && located.node == Ok(Node::Apex);
    if is_apex && rtype == Rtype::DS && internet.serves(server, zones[depth - 1]) {
        depth -= 1;
    }
    Said { rcode: message.header().rcode().to_int(), proofs, zone: zones[depth], name: last }
}

fn wire(name: &impl domain::base::name::ToName) -> Vec<u8> {
    let name: DomainName<Vec<u8>> = name.to_name();
    name.as_slice().to_ascii_lowercase()
}

fn of_nsec<O: AsRef<[u8]>>(owner: Vec<u8>, nsec: &Nsec<O, ParsedName<&[u8]>>) -> Proof {
    Proof::Nsec { owner, next: wire(nsec.next_name()), types: nsec.types().iter().collect() }
}

fn of_nsec3<O: AsRef<[u8]>>(owner: &[u8], nsec3: &Nsec3<O>) -> Proof {
    assert_eq!((nsec3.iterations(), nsec3.salt().as_slice().len()), (0, 0));
    let label = std::str::from_utf8(&owner[1..=usize::from(owner[0])]).unwrap();
    let hash: Vec<u8> = domain::utils::base32::decode_hex(label).unwrap();
    Proof::Nsec3 {
        owner: hash,
        next: nsec3.next_owner().as_slice().to_vec(),
        types: nsec3.types().iter().collect(),
        opt_out: nsec3.opt_out(),
    }
}

fn ancestor(name: &[u8], count: usize) -> &[u8] {
    &name[labels(name).start_of(count)..]
}

/// What a validator wants of an answer without records (RFC 4035, section 5.4; RFC 5155, section 8).
fn check_proof(internet: &Internet, said: &Said, rtype: Rtype) {
    let Said { rcode, proofs, zone, name } = said;
    let (zone, rcode) = (*zone, *rcode);
    let context = || format!("{} {rtype}, {:?}: {proofs:?}", text(name), internet.denial(zone));
    let mut apex = Vec::new();
    internet.push_apex(zone, &mut apex);
    let matching = |name: &[u8]| proofs.iter().find(|proof| proof.matches(name));
    let covering = |name: &[u8]| proofs.iter().find(|proof| proof.covers(name));
    let depth = labels(&apex).count();
    if rcode == 0 {
        if let Some(proof) = matching(name) {
            assert!(!proof.types().contains(&rtype), "{}", context());
            assert!(!proof.types().contains(&Rtype::CNAME), "{}", context());
            return;
        }
        // An empty non-terminal: the next name is below it (RFC 4035, section 3.1.3.2).
        let is_above_next = |proof: &Proof| {
            matches!(proof, Proof::Nsec { next, .. } if is_below(next, name)) && proof.covers(name)
        };
        if proofs.iter().any(is_above_next) {
            return;
        }
        // A delegation that is not signed, in a span with Opt-Out (RFC 5155, section 8.6).
        assert_eq!(rtype, Rtype::DS, "{}", context());
        let parent = ancestor(name, labels(name).count() - 1);
        assert!(matching(parent).is_some(), "{}", context());
        assert!(covering(name).is_some_and(Proof::is_opt_out), "{}", context());
        return;
    }
    assert_eq!(rcode, 3, "{}", context());
    if !internet.has_nsec3(zone) {
        assert!(covering(name).is_some(), "{}", context());
        // The wildcard at the closest encloser that the covering record shows (RFC 4035, section 5.4).
        let is_denied = (depth..labels(name).count()).any(|count| {
            let wildcard = [b"\x01*", ancestor(name, count)].concat();
            covering(&wildcard).is_some()
        });
        assert!(is_denied || name[..2] == *b"\x01*", "{}", context());
        return;
    }
    let encloser = (depth..labels(name).count())
        .rev()
        .find(|count| matching(ancestor(name, *count)).is_some());
    let encloser = encloser.unwrap_or_else(|| panic!("no closest encloser: {}", context()));
    assert!(covering(ancestor(name, encloser + 1)).is_some(), "{}", context());
    let wildcard = [b"\x01*", ancestor(name, encloser)].concat();
    assert!(covering(&wildcard).is_some(), "{}", context());
    assert!(!matching(ancestor(name, encloser)).unwrap().is_delegation(), "{}", context());
}

/// No record says of a name that exists that it does not.
fn check_spans(internet: &Internet, zone: Zone, proofs: &[Proof], existing: &[Vec<u8>]) {
    for proof in proofs {
        for name in existing {
            if !proof.covers(name) {
                continue;
            }
            let located = internet.locate(name);
            let zones: Vec<Zone> = located.zones().iter().map(|placed| placed.zone).collect();
            let place = zones.iter().position(|other| *other == zone).unwrap();
            // With Opt-Out it may be a delegation that is not signed.
            let child = zones.get(place + 1);
            let is_unsigned = child.is_some_and(|child| !internet.is_signed(*child));
            // An empty non-terminal has no NSEC record of its own.
            let is_empty = located.node == Ok(Node::Empty)
                && matches!(proof, Proof::Nsec { next, .. } if is_below(next, name));
            assert!(
                is_empty || proof.is_opt_out() && is_unsigned,
                "{} is denied by {:?}: {proof:?}",
                text(name),
                internet.denial(zone)
            );
        }
    }
}

/// Names that a zone has, and the cuts below it.
fn existing(internet: &Internet, zone: Zone) -> Vec<Vec<u8>> {
    let mut names: Vec<Vec<u8>> = match internet.denial(zone) {
        Denial::Nsec | Denial::Nsec3 { .. } if zone != Zone::Root => {
            internet.listed_names(zone).into_iter().map(|listed| listed.name).collect()
        }
        _ => Vec::new(),
    };
    let mut add = |name: &[u8]| {
        // Each ancestor exists too.
        (0..=labels(name).count()).for_each(|count| names.push(ancestor(name, count).to_vec()));
    };
    for rank in 0..400 {
        for rtype in [Rtype::A, Rtype::SRV, Rtype::PTR] {
            add(internet.existing_name(rank, rtype.to_int()).octets());
        }
    }
    let servers = internet.registries.len() as u32;
    for number in 0..servers {
        let mut name = Vec::new();
        let registry = Zone::Registry(number);
        internet.push_name_server(&internet.name_servers(registry), 0, &mut name);
        add(&name);
        name.clear();
        internet.push_name_server(&internet.name_servers(Zone::Root), number % 13, &mut name);
        add(&name);
    }
    for operator in 0..200 {
        let mut name = Vec::new();
        internet.push_server(internet.numbered_server(operator, 0).unwrap(), &mut name);
        add(&name);
    }
    let mut apex = Vec::new();
    internet.push_apex(zone, &mut apex);
    names.retain(|name| {
        let located = internet.locate(name);
        let zones = located.zones();
        let is_here = |place: usize| zones.get(place).is_some_and(|placed| placed.zone == zone);
        let last = zones.len() - 1;
        let is_cut = last > 0 && is_here(last - 1) && located.node == Ok(Node::Apex);
        (is_here(last) || is_cut) && located.node.is_ok()
    });
    names.sort();
    names.dedup();
    names
}

/// A zone, and names that it has.
type ZoneNames = (Zone, Vec<Vec<u8>>);

/// A zone of each kind that is signed, with each kind of denial that it may have.
fn zones(internet: &Internet) -> Vec<Zone> {
    let mut zones = vec![Zone::Root];
    let mut seen = std::collections::BTreeSet::new();
    let reverse: Vec<Zone> = (0..200)
        .flat_map(|rank| {
            let name = internet.existing_name(rank, rtype::PTR);
            internet
                .locate(name.octets())
                .zones()
                .iter()
                .map(|placed| placed.zone)
                .collect::<Vec<_>>()
        })
        .collect();
    let registries = (0..internet.registries.len() as u32).map(Zone::Registry);
    let hosted = (0..300).flat_map(|domain| {
        let region = (0..4).map(move |region| Zone::Hosted { domain, region: Some(region) });
        std::iter::once(Zone::Hosted { domain, region: None }).chain(region)
    });
    let operators = (0..100).map(|operator| internet.domain_of(operator));
    let operators = operators.map(|domain| Zone::Hosted { domain, region: None });
    for zone in registries.chain(hosted).chain(operators).chain(reverse) {
        let kind = match zone {
            Zone::Root => "root".to_owned(),
            Zone::Registry(number) if internet.reverse.contains(&number) => {
                format!("reverse {number}")
            }
            Zone::Registry(number) => {
                let registry = &internet.registries[number as usize];
                format!("registry {} {}", registry.below.len(), registry.parent.is_some())
            }
            Zone::Hosted { domain, region } => {
                let is_there = region.is_none_or(|region| {
                    internet.has_region(domain, region) && internet.is_cut(domain, region)
                });
                if !is_there {
                    continue;
                }
                let is_operator = internet.operator_of(domain).is_some();
                format!("hosted {is_operator} {}", region.is_some())
            }
            Zone::Reverse(prefix) => format!("addresses {}", prefix.is_of_registry()),
        };
        if internet.is_signed(zone) && seen.insert(format!("{kind} {:?}", internet.denial(zone))) {
            zones.push(zone);
        }
    }
    zones
}

const TYPES: [Rtype; 7] =
    [Rtype::A, Rtype::AAAA, Rtype::DS, Rtype::TXT, Rtype::NSEC3PARAM, Rtype::TLSA, Rtype::CAA];

/// Every name that exists has what it has or a proof that it has not, and no proof denies another one that exists.
#[test]
fn what_exists_is_never_denied() {
    let internet = internet(SIGNED);
    let zones = zones(&internet);
    let kinds: std::collections::BTreeSet<String> =
        zones.iter().map(|zone| format!("{:?}", internet.denial(*zone))).collect();
    assert_eq!(kinds.len(), 6, "{kinds:?}");
    let mut proved = 0;
    for zone in zones {
        let existing = existing(&internet, zone);
        assert!(existing.len() > 1, "{zone:?}");
        for name in existing.iter().take(60) {
            for rtype in TYPES {
                let said = ask(&internet, zone, name, rtype);
                assert_eq!(said.rcode, 0, "{} {rtype}", text(name));
                if said.proofs.is_empty() || said.zone != zone {
                    continue;
                }
                proved += 1;
                check_spans(&internet, zone, &said.proofs, &existing);
                // A referral proves that there is no DS record.
                let is_own = internet.locate(&said.name).zone() == zone;
                let asked = if is_own { rtype } else { Rtype::DS };
                check_proof(&internet, &said, asked);
            }
        }
    }
    assert!(proved > 500, "{proved}");
}

fn label() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        "[a-z0-9_*-]{1,20}".prop_map(String::into_bytes),
        prop::collection::vec(any::<u8>().prop_map(|letter| letter.to_ascii_lowercase()), 1..12),
        prop::sample::select(vec![
            "www", "eu", "ns1", "nic", "a", "_tcp", "_", "*", "mx", "1", "2", "e1-1"
        ])
        .prop_map(|label| label.as_bytes().to_vec()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Whatever is asked for, the proof is whole, and covers nothing that exists.
    #[test]
    fn no_proof_covers_what_exists(
        which in any::<prop::sample::Index>(),
        below in any::<prop::sample::Index>(),
        prefix in prop::collection::vec(label(), 1..3),
        rtype in prop::sample::select(TYPES.to_vec()),
    ) {
        thread_local! {
            static ZONES: (Internet, Vec<ZoneNames>) = {
                let internet = internet(SIGNED);
                let zones = zones(&internet);
                let all = zones.iter().map(|zone| (*zone, existing(&internet, *zone))).collect();
                (internet, all)
            };
        }
        ZONES.with(|(internet, zones)| {
            let (zone, existing) = &zones[which.index(zones.len())];
            let mut name = Vec::new();
            prefix.iter().for_each(|label| crate::name::push_label(&mut name, label));
            name.extend_from_slice(&existing[below.index(existing.len())]);
            if name.len() > 255 {
                return;
            }
            let said = ask(internet, *zone, &name, rtype);
            if said.zone != *zone {
                return;
            }
            check_spans(internet, *zone, &said.proofs, existing);
            let located = internet.locate(&said.name);
            if located.zone() == *zone && located.node.is_err() {
                check_proof(internet, &said, rtype);
            }
        });
    }
}

/// The names of a zone that are listed are those that it answers for.
#[test]
fn listed_names_are_those_that_are_found() {
    let internet = internet(SIGNED);
    let mut count = 0;
    for domain in 0..200 {
        for region in [None, Some(0), Some(1), Some(2), Some(3)] {
            let zone = Zone::Hosted { domain, region };
            if region.is_some_and(|region| {
                !internet.has_region(domain, region) || !internet.is_cut(domain, region)
            }) {
                continue;
            }
            let listed = internet.listed_names(zone);
            for ListedName { name, types } in &listed {
                count += 1;
                let located = internet.locate(name);
                let node = located.node.unwrap_or_else(|_| panic!("{} is not there", text(name)));
                let found = match located.zone() == zone {
                    true => internet.types(zone, node),
                    false => internet.delegation_types(located.zone()),
                };
                let same = found.iter().eq(types.iter());
                assert!(same, "{}: {found:?}, not {types:?}", text(name));
            }
            let mut names: Vec<&[u8]> =
                listed.iter().map(|listed| listed.name.as_slice()).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), listed.len(), "{names:?}");
            for name in existing(&internet, zone) {
                assert!(names.contains(&name.as_slice()), "{} is not listed", text(&name));
            }
        }
    }
    assert!(count > 2_000, "{count}");
}
