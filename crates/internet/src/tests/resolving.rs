//! Every name resolves from the root, or fails where the internet is out of order.

use std::collections::HashMap;
use std::net::IpAddr;

use domain::base::iana::{Rcode, Rtype};

use super::{Answer, Asker, internet};
use crate::Internet;
use crate::model::{Server, Zone};
use crate::name::Name;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// No server of this zone answers for it.
    Zone(String),
    /// It never ends.
    TooDeep,
}

/// It keeps what it learns of zones; it needs neither time nor addresses of IPv6.
pub(super) struct Resolver<'i> {
    asker: Asker<'i>,
    /// Servers by zone.
    zones: HashMap<String, Vec<(String, Option<IpAddr>)>>,
    queries: u32,
}

/// Name, code and whether there are records of the type.
pub(super) type Outcome = Result<(String, Rcode, bool), Failure>;

impl<'i> Resolver<'i> {
    pub(super) fn new(internet: &'i Internet) -> Self {
        let roots = internet.root_addresses().into_iter().filter(IpAddr::is_ipv4);
        let roots = roots.map(|address| (String::new(), Some(address))).collect();
        let zones = HashMap::from([(".".to_owned(), roots)]);
        Self { asker: Asker::new(internet), zones, queries: 0 }
    }

    pub(super) fn resolve(&mut self, name: &str, rtype: Rtype) -> Outcome {
        self.resolve_at_depth(name, rtype, 0)
    }

    /// The answer of the zone that a name is in, or of the one above with DS.
    pub(super) fn answer(&mut self, name: &str, rtype: Rtype) -> Result<Answer, Failure> {
        self.ask_from_root(name, rtype, 0)
    }

    fn resolve_at_depth(&mut self, name: &str, rtype: Rtype, depth: u32) -> Outcome {
        let mut name = name.to_owned();
        for _ in 0..20 {
            let answer = self.ask_from_root(&name, rtype, depth)?;
            if !answer.of("answer", rtype).is_empty() || answer.rcode == Rcode::NXDOMAIN {
                let found = !answer.of("answer", rtype).is_empty();
                return Ok((name, answer.rcode, found));
            }
            // The last alias leads on.
            match answer.of("answer", Rtype::CNAME).last() {
                Some(alias) => name.clone_from(&alias.data),
                None => return Ok((name, answer.rcode, false)),
            }
        }
        Err(Failure::TooDeep)
    }

    fn ask_from_root(&mut self, name: &str, rtype: Rtype, depth: u32) -> Result<Answer, Failure> {
        if depth > 6 {
            return Err(Failure::TooDeep);
        }
        let mut zone = self.closest(name);
        loop {
            let mut found = None;
            for (server, address) in self.zones[&zone].clone() {
                let address = match address {
                    Some(address) => address,
                    None => {
                        let Some(address) = self.address_of(&server, depth + 1)? else { continue };
                        address
                    }
                };
                self.queries += 1;
                let Some(answer) = self.asker.ask(address, name, rtype) else { continue };
                if [Rcode::REFUSED, Rcode::SERVFAIL].contains(&answer.rcode) {
                    continue;
                }
                assert!([Rcode::NOERROR, Rcode::NXDOMAIN].contains(&answer.rcode), "{answer:?}");
                found = Some(answer);
                break;
            }
            let Some(answer) = found else { return Err(Failure::Zone(zone)) };
            if answer.is_authoritative {
                return Ok(answer);
            }
            let servers = answer.of("authority", Rtype::NS);
            let cut = servers.first().unwrap_or_else(|| panic!("{name}: {answer:?}")).owner.clone();
            assert!(is_below(&cut, &zone) && cut != zone, "{cut} is not below {zone}");
            assert!(is_below(name, &cut), "{cut} does not lead to {name}");
            let glue = answer.of("additional", Rtype::A);
            let address = |server: &str| {
                let glue = glue.iter().find(|record| record.owner == server)?;
                glue.data.parse().ok()
            };
            let of_zone =
                servers.iter().map(|record| (record.data.clone(), address(&record.data))).collect();
            self.zones.insert(cut.clone(), of_zone);
            zone = cut;
        }
    }

    fn address_of(&mut self, server: &str, depth: u32) -> Result<Option<IpAddr>, Failure> {
        let answer = self.ask_from_root(server, Rtype::A, depth)?;
        let found = answer.of("answer", Rtype::A);
        Ok(found.first().and_then(|record| record.data.parse().ok()))
    }

    fn closest(&self, name: &str) -> String {
        let mut rest = name;
        loop {
            if self.zones.contains_key(rest) {
                return rest.to_owned();
            }
            match rest.split_once('.') {
                Some((_, after)) if !after.is_empty() => rest = after,
                _ => return ".".to_owned(),
            }
        }
    }
}

fn is_below(name: &str, apex: &str) -> bool {
    apex == "." || name == apex || name.ends_with(&format!(".{apex}"))
}

/// The zones on the way to a name that no server answers for.
fn out_of_order(internet: &Internet, name: &str) -> bool {
    let wire = wire(name);
    let located = internet.locate(&wire);
    located.zones().iter().any(|placed| match placed.zone {
        Zone::Hosted { domain, region } => internet.is_out_of_order(domain, region),
        _ => false,
    })
}

fn wire(name: &str) -> Vec<u8> {
    let labels = name.split('.').filter(|label| !label.is_empty()).rev();
    labels.fold(Name::root(), |name, label| name.child(label.as_bytes())).octets().to_vec()
}

#[test]
fn every_name_resolves_or_fails_for_a_reason() {
    for (seed, settings) in [
        (1, ""),
        (
            2,
            "[faults]\nlame = 0.3\ndead = 0.3\nslow = 0\nedns_formerr = 0.2\nedns_ignored = 0.2\nwhole = 0.5\n",
        ),
        (3, "[operators]\ncount = 2\nservers = 2\nown_names = 0.5\n"),
        (
            4,
            "[names]\nper_domain = 30\ndeep = 0.6\ncut = 0.6\nalias = 0.8\nalias_length = [[12, 1]]\n",
        ),
        (5, "domains = 1\n[top_level]\ncount = 1\nknown = [[\"com\", 1]]\n"),
        (6, "[dnssec]\ntop_level = 1\ndomains = 1\n"),
        (7, "[network]\nipv6 = \"none\"\n[dnssec]\nroot = false\n"),
    ] {
        let internet = internet(&format!("seed = {seed}\n{settings}"));
        let mut resolver = Resolver::new(&internet);
        let (mut failed, mut absent) = (0, 0);
        for i in 0..1_000 {
            let name = internet.name(i * 7).to_string();
            let name = name.trim_end_matches('.');
            let context =
                |outcome: &dyn std::fmt::Debug| format!("seed {seed}, {name}: {outcome:?}");
            match resolver.resolve(name, Rtype::A) {
                Ok((last, rcode, found)) => {
                    let exists = internet.exists(i * 7);
                    absent += u32::from(!exists);
                    let expected = if exists { Rcode::NOERROR } else { Rcode::NXDOMAIN };
                    assert_eq!((rcode, found), (expected, exists), "{}", context(&last));
                    assert!(!out_of_order(&internet, name), "{}", context(&last));
                }
                Err(Failure::Zone(zone)) => {
                    failed += 1;
                    assert!(out_of_order(&internet, &zone), "{}", context(&zone));
                }
                Err(Failure::TooDeep) => panic!("{}", context(&"it never ends")),
            }
        }
        assert!(absent > 0, "seed {seed}");
        assert!(failed < 900, "seed {seed}: {failed} names failed");
        // Two queries for each name would be a resolver that never goes to the root.
        assert!(resolver.queries > 1_000, "seed {seed}: {}", resolver.queries);
    }
}

#[test]
fn each_minimised_name_is_there() {
    let internet = internet(
        "seed = 11\n[names]\nper_domain = 20\ndeep = 0.5\nabsent = 0\n[faults]\nwhole = 0\n",
    );
    let mut resolver = Resolver::new(&internet);
    for i in 0..300 {
        let name = internet.name(i).to_string();
        let name = name.trim_end_matches('.');
        // RFC 9156: one label more each time, and no NXDOMAIN on the way.
        for (at, _) in name.match_indices('.') {
            let suffix = &name[at + 1..];
            match resolver.resolve(suffix, Rtype::A) {
                Ok((_, rcode, _)) => assert_eq!(rcode, Rcode::NOERROR, "{suffix} of {name}"),
                // A zone with one server, which is dead or lame.
                Err(failure) => assert!(out_of_order(&internet, suffix), "{suffix}: {failure:?}"),
            }
        }
    }
}

#[test]
fn a_server_answers_for_its_zones_only() {
    let internet =
        internet("seed = 12\n[faults]\nlame = 0\ndead = 0\n[names]\nabsent = 0\ntruncated = 0\n");
    let mut asker = Asker::new(&internet);
    for i in 0..200 {
        let name = internet.name(i).to_string();
        let located = internet.locate(&wire(&name));
        let Zone::Hosted { domain, region } = located.zone() else { panic!("{name} is a host") };
        let hosting = internet.hosting(domain, region);
        let servers: Vec<Server> =
            (0..hosting.count).map(|slot| internet.slot(&hosting, slot)).collect();
        for operator in 0..20 {
            for number in 0..4 {
                let server = internet.numbered_server(operator, number).unwrap();
                let (address, _) = internet.addresses(server);
                let answer = asker.ask(address, &name, Rtype::A).unwrap();
                let is_own = servers.contains(&server);
                let expected = if is_own { Rcode::NOERROR } else { Rcode::REFUSED };
                // An operator may also have the zone above.
                let above = Zone::Hosted { domain, region: None };
                let has_above = region.is_some() && internet.serves(server, above);
                assert!(answer.rcode == expected || has_above, "{name} at {address}: {answer:?}");
            }
        }
    }
}
