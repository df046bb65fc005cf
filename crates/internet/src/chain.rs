//! The NSEC or NSEC3 records of a zone whose names can be listed: those of a domain or a part of it, and of the
//! registries of addresses.

use dnslab_wire::{RrSet, canonical_cmp, push_nsec, push_type_bitmap, rtype};

use crate::data::Types;
use crate::lookup::Node;
use crate::model::{Denial, Internet, REGIONS, Zone};
use crate::name::push_label;
use crate::nsec3::{nsec3_hash, push_hash};
use crate::service::SERVICES;

/// A name of a zone, with its types without what signing adds. An empty non-terminal has no types.
#[derive(Debug)]
pub(crate) struct ListedName {
    pub(crate) name: Vec<u8>,
    pub(crate) types: Types,
}

/// A name of a zone in the order of its records.
#[derive(Debug)]
struct Link {
    /// Of the name, for NSEC3 records.
    hash: [u8; 20],
    listed: ListedName,
}

/// The names of the zone that was asked for last, in the order of their NSEC or NSEC3 records: one answer needs
/// up to three of them.
#[derive(Debug, Default)]
pub(crate) struct Chain {
    zone: Option<Zone>,
    links: Vec<Link>,
}

impl Chain {
    fn load(&mut self, internet: &Internet, zone: Zone) {
        if self.zone == Some(zone) {
            return;
        }
        let has_hashes = internet.has_nsec3(zone);
        // Empty non-terminals have NSEC3 records, but no NSEC records (RFC 5155, section 7.1; RFC 4035,
        // section 2.3).
        let names = internet.listed_names(zone).into_iter();
        let names = names.filter(|listed| has_hashes || !listed.types.is_empty());
        self.links = names
            .map(|listed| Link {
                hash: if has_hashes { nsec3_hash(&listed.name) } else { [0; 20] },
                listed,
            })
            .collect();
        match has_hashes {
            true => self.links.sort_unstable_by_key(|link| link.hash),
            false => self
                .links
                .sort_unstable_by(|one, other| canonical_cmp(&one.listed.name, &other.listed.name)),
        }
        self.zone = Some(zone);
    }

    /// Fills the record that matches or covers a name of the zone.
    pub(crate) fn fill(
        &mut self,
        internet: &Internet,
        zone: Zone,
        name: &[u8],
        owner: &mut Vec<u8>,
        set: &mut RrSet,
    ) {
        self.load(internet, zone);
        let ttl = internet.negative_ttl(zone);
        let links = &self.links;
        // The last one that is not after the name; before the first one, the last of the zone.
        let place_of = |count: usize| (count + links.len() - 1) % links.len();
        match internet.denial(zone) {
            Denial::Nsec3 { opt_out } => {
                let hash = nsec3_hash(name);
                let place = place_of(links.partition_point(|link| link.hash <= hash));
                let (own, next) = (&links[place], &links[(place + 1) % links.len()]);
                push_hash(&own.hash, owner);
                internet.push_apex(zone, owner);
                fill_nsec3(&next.hash, opt_out, own.listed.types, ttl, set);
            }
            _ => {
                let place = place_of(
                    links.partition_point(|link| canonical_cmp(&link.listed.name, name).is_le()),
                );
                let (own, next) = (&links[place], &links[(place + 1) % links.len()]);
                owner.extend_from_slice(&own.listed.name);
                fill_nsec(&next.listed.name, own.listed.types, ttl, set);
            }
        }
    }
}

/// Fills an NSEC record, whose own type and whose signature are added to the types.
pub(crate) fn fill_nsec(next: &[u8], mut types: Types, ttl: u32, set: &mut RrSet) {
    types.push(rtype::RRSIG);
    types.push(rtype::NSEC);
    set.begin(rtype::NSEC, ttl);
    set.push(|octets| push_nsec(next, types.iter(), octets));
}

/// Fills an NSEC3 record. Types are signed, unless they are a delegation that is not.
pub(crate) fn fill_nsec3(
    next: &[u8; 20],
    opt_out: bool,
    mut types: Types,
    ttl: u32,
    set: &mut RrSet,
) {
    if types.iter().any(|rtype| rtype != rtype::NS) {
        types.push(rtype::RRSIG);
    }
    set.begin(rtype::NSEC3, ttl);
    set.push(|octets| {
        // SHA-1, no further iterations, no salt (RFC 5155, section 3.2; RFC 9276).
        octets.extend_from_slice(&[1, u8::from(opt_out), 0, 0, 0, 20]);
        octets.extend_from_slice(next);
        push_type_bitmap(types.iter(), octets);
    });
}

impl Internet {
    /// The types at a delegation, in the zone above it.
    pub(crate) fn delegation_types(&self, child: Zone) -> Types {
        match self.is_signed(child) {
            true => Types::of(&[rtype::NS, rtype::DS]),
            false => Types::of(&[rtype::NS]),
        }
    }

    /// All names of a zone with [`Denial::Nsec`] or [`Denial::Nsec3`] that is not the root.
    pub(crate) fn listed_names(&self, zone: Zone) -> Vec<ListedName> {
        let mut apex = Vec::new();
        self.push_apex(zone, &mut apex);
        let types = self.types(zone, Node::Apex);
        let mut names = vec![ListedName { name: apex.clone(), types }];
        match zone {
            Zone::Root | Zone::Reverse(_) => {}
            Zone::Registry(number) => {
                let registry = &self.registries[number as usize];
                for child in &registry.below {
                    let name = self.registries[*child as usize].apex.octets().to_vec();
                    names.push(ListedName {
                        name,
                        types: self.delegation_types(Zone::Registry(*child)),
                    });
                }
                if registry.parent.is_none() {
                    names.push(ListedName { name: below(&apex, b"nic"), types: Types::default() });
                    let servers = self.name_servers(zone);
                    for slot in 0..servers.count {
                        let mut name = Vec::new();
                        let server = self.push_name_server(&servers, slot, &mut name);
                        names.push(ListedName {
                            name,
                            types: self.types(zone, Node::Server(server)),
                        });
                    }
                }
                if let Some(family) = self.reverse.iter().position(|registry| *registry == number) {
                    for prefix in self.registry_prefixes(family == 1) {
                        let mut name = Vec::new();
                        self.push_prefix(prefix, &mut name);
                        names.push(ListedName {
                            name,
                            types: self.delegation_types(Zone::Reverse(prefix)),
                        });
                    }
                    let nibbles = Self::registry_nibbles().filter(|_| family == 1);
                    names.extend(nibbles.map(|nibbles| ListedName {
                        name: [nibbles.as_slice(), &apex].concat(),
                        types: Types::default(),
                    }));
                }
            }
            Zone::Hosted { domain, region } => {
                for host in 1..=self.host_count() {
                    if self.zone_region(domain, host) == region {
                        let mut name = Vec::new();
                        self.push_host(domain, host, &mut name);
                        names.push(ListedName {
                            name,
                            types: self.types(zone, Node::Host { domain, host }),
                        });
                    }
                }
                let hosting = self.hosting(domain, region);
                for slot in (0..hosting.count).filter(|_| hosting.own_names) {
                    let node = Node::Server(self.slot(&hosting, slot));
                    names.push(ListedName {
                        name: below(&apex, format!("ns{}", slot + 1).as_bytes()),
                        types: self.types(zone, node),
                    });
                }
                if region.is_none() {
                    self.list_beside_hosts(domain, &apex, &mut names);
                }
            }
        }
        names
    }

    /// The region that is the zone of a host; `None` for that of the domain.
    fn zone_region(&self, domain: u64, host: u64) -> Option<u8> {
        self.region_of(domain, host).filter(|region| self.is_cut(domain, *region))
    }

    /// What a domain has beside its hosts and servers.
    fn list_beside_hosts(&self, domain: u64, apex: &[u8], names: &mut Vec<ListedName>) {
        let zone = Zone::Hosted { domain, region: None };
        for (region, label) in (0..).zip(REGIONS) {
            if self.has_region(domain, region) {
                let types = match self.is_cut(domain, region) {
                    true => self.delegation_types(Zone::Hosted { domain, region: Some(region) }),
                    false => Types::default(),
                };
                names.push(ListedName { name: below(apex, label.as_bytes()), types });
            }
        }
        for host in 1..=self.host_count() {
            for step in 1..=self.alias_length(domain, host) {
                if self.domain_of_step(domain, host, step) == domain {
                    let mut name = Vec::new();
                    self.push_step(domain, host, step, &mut name);
                    names.push(ListedName {
                        name,
                        types: self.types(zone, Node::Step { domain, host, step }),
                    });
                }
            }
        }
        if self.has_dmarc(domain) {
            names.push(ListedName {
                name: below(apex, b"_dmarc"),
                types: self.types(zone, Node::Dmarc(domain)),
            });
        }
        if self.has_services(domain) {
            let parent = below(apex, b"_tcp");
            for (service, (label, _)) in (0..).zip(SERVICES) {
                let mut name = Vec::new();
                push_label(&mut name, label.as_bytes());
                name.extend_from_slice(&parent);
                names.push(ListedName {
                    name,
                    types: self.types(zone, Node::Service { domain, service }),
                });
            }
            names.push(ListedName { name: parent, types: Types::default() });
        }
    }
}

/// The name with this label before `apex`.
fn below(apex: &[u8], label: &[u8]) -> Vec<u8> {
    let mut name = Vec::with_capacity(1 + label.len() + apex.len());
    push_label(&mut name, label);
    name.extend_from_slice(apex);
    name
}
