//! The records at a name.

use std::net::IpAddr;

use dnslab_wire::{RrSet, rtype};

use crate::draw::About;
use crate::lookup::Node;
use crate::model::{Internet, Server, Zone};
use crate::name::{push_label_with, push_number};
use crate::service::SERVICES;

/// The types of a name, in ascending order.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Types {
    types: [u16; 14],
    count: usize,
}

impl Types {
    pub(crate) fn of(types: &[u16]) -> Self {
        let mut own = Self::default();
        types.iter().for_each(|rtype| own.push(*rtype));
        own
    }

    pub(crate) fn push(&mut self, rtype: u16) {
        let place = self.types[..self.count].partition_point(|before| *before < rtype);
        self.types.copy_within(place..self.count, place + 1);
        self.types[place] = rtype;
        self.count += 1;
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        self.types[..self.count].iter().copied()
    }

    pub(crate) fn has(&self, rtype: u16) -> bool {
        self.iter().any(|own| own == rtype)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// A name in the chain of aliases of a host.
struct Step {
    domain: u64,
    host: u64,
    step: u64,
}

/// The serial number of every zone: nothing ever changes.
const SERIAL: u32 = 1;

/// TTL of DNSKEY records below the registries.
const KEY_TTL: u32 = 3600;

impl Internet {
    /// The types at a name of a zone, without what signing adds.
    pub(crate) fn types(&self, zone: Zone, node: Node) -> Types {
        let mut types = Types::default();
        match node {
            Node::Empty => {}
            Node::Apex => {
                let hosted = match zone {
                    Zone::Hosted { domain, region: None } => Some(domain),
                    _ => None,
                };
                let word = self.node_word(zone, node);
                if hosted.is_some() {
                    types.push(rtype::A);
                }
                types.push(rtype::NS);
                types.push(rtype::SOA);
                if hosted.is_some_and(|domain| self.has_mail(domain)) {
                    types.push(rtype::MX);
                }
                if hosted.is_some() && self.text_length(word) > 0 {
                    types.push(rtype::TXT);
                }
                if hosted.is_some() && self.has_ipv6(word) {
                    types.push(rtype::AAAA);
                }
                if self.is_signed(zone) {
                    types.push(rtype::DNSKEY);
                    if self.has_nsec3(zone) {
                        types.push(rtype::NSEC3PARAM);
                    }
                }
                if hosted.is_some() && self.has_https(word) {
                    types.push(rtype::HTTPS);
                }
                if hosted.is_some_and(|domain| self.has_caa(domain)) {
                    types.push(rtype::CAA);
                }
            }
            Node::Server(server) => {
                types.push(rtype::A);
                if self.addresses(server).1.is_some() {
                    types.push(rtype::AAAA);
                }
            }
            Node::Host { .. } | Node::Step { .. } => {
                if self.next_step(node).is_some() {
                    types.push(rtype::CNAME);
                } else {
                    let word = self.node_word(zone, node);
                    types.push(rtype::A);
                    if self.has_ipv6(word) {
                        types.push(rtype::AAAA);
                    }
                    if self.has_https(word) {
                        types.push(rtype::HTTPS);
                    }
                }
            }
            Node::Mail(_) => types.push(rtype::A),
            Node::Dmarc(_) => types.push(rtype::TXT),
            Node::Service { .. } => types.push(rtype::SRV),
            Node::Pointer(_) => types.push(rtype::PTR),
        }
        types
    }

    /// The step that an alias leads to.
    fn next_step(&self, node: Node) -> Option<Step> {
        let (domain, host, step) = match node {
            Node::Host { domain, host } => (domain, host, 0),
            Node::Step { domain, host, step } => (domain, host, step),
            _ => return None,
        };
        (step < self.alias_length(domain, host)).then_some(Step { domain, host, step: step + 1 })
    }

    /// A word about a name.
    pub(crate) fn node_word(&self, zone: Zone, node: Node) -> u64 {
        let part = |domain: u64, part: u64| self.draws.of_part(About::Node, domain, part);
        match node {
            Node::Host { domain, host } => part(domain, host << 8),
            Node::Step { domain, host, step } => part(domain, host << 8 | step),
            Node::Mail(operator) => part(self.domain_of(operator), 1 << 32),
            Node::Dmarc(domain) => part(domain, 2 << 32),
            Node::Service { domain, service } => part(domain, 3 << 32 | u64::from(service)),
            Node::Pointer(address) => self.pointer_word(address),
            Node::Apex | Node::Empty | Node::Server(_) => self.zone_word(zone),
        }
    }

    /// Fills a set with the records of a type; it stays empty if there are none. Keys are not made here.
    pub(crate) fn fill(&self, zone: Zone, node: Node, rtype: u16, set: &mut RrSet) {
        set.begin(rtype, 0);
        match (node, rtype) {
            (Node::Empty, _) => {}
            (Node::Apex, rtype::NS) => self.fill_name_servers(zone, zone, set),
            (Node::Apex, rtype::SOA) => self.fill_soa(zone, set),
            (Node::Server(server), rtype::A | rtype::AAAA) => {
                self.fill_server(server, self.server_ttl(zone), rtype, set);
            }
            _ if !self.types(zone, node).has(rtype) => {}
            (_, rtype::CNAME) => {
                let Some(Step { domain, host, step }) = self.next_step(node) else { return };
                set.ttl = self.ttl(zone, node);
                set.push(|octets| self.push_step(domain, host, step, octets));
            }
            (_, rtype::A | rtype::AAAA) => {
                set.ttl = self.ttl(zone, node);
                self.fill_addresses(self.node_word(zone, node), rtype, set);
            }
            (_, rtype::MX) => {
                set.ttl = self.ttl(zone, node);
                set.push(|octets| {
                    octets.extend_from_slice(&[0, 10]);
                    self.push_mail_server(zone, octets);
                });
            }
            (Node::Dmarc(_), rtype::TXT) => {
                set.ttl = self.ttl(zone, node);
                set.push(|octets| {
                    push_label_with(octets, |octets| octets.extend_from_slice(b"v=DMARC1; p=none"));
                });
            }
            (_, rtype::TXT) => {
                set.ttl = self.ttl(zone, node);
                self.fill_text(self.node_word(zone, node), set);
            }
            (Node::Service { service, .. }, rtype::SRV) => {
                set.ttl = self.ttl(zone, node);
                let (_, port) = SERVICES[usize::from(service)];
                set.push(|octets| {
                    // Priority and weight.
                    octets.extend_from_slice(&[0; 4]);
                    octets.extend_from_slice(&port.to_be_bytes());
                    self.push_mail_server(zone, octets);
                });
            }
            (Node::Pointer(address), rtype::PTR) => {
                set.ttl = self.ttl(zone, node);
                set.push(|octets| self.push_pointer(address, octets));
            }
            (_, rtype::HTTPS) => {
                set.ttl = self.ttl(zone, node);
                let types = self.types(zone, node);
                self.fill_https(self.node_word(zone, node), types.has(rtype::AAAA), set);
            }
            (_, rtype::CAA) => {
                set.ttl = self.ttl(zone, node);
                // Flags, and the length of the tag (RFC 8659, section 4.1).
                set.push(|octets| octets.extend_from_slice(b"\0\x05issueca.example"));
            }
            (_, rtype::NSEC3PARAM) => {
                // SHA-1, no flags, no further iterations, no salt (RFC 5155, section 4).
                set.push(|octets| octets.extend_from_slice(&[1, 0, 0, 0, 0]));
            }
            _ => {}
        }
    }

    /// Appends the name of the mail server of a zone, which is its operator's.
    fn push_mail_server(&self, zone: Zone, octets: &mut Vec<u8>) {
        let Some(hosting) = self.hosting_of(zone) else { return };
        octets.extend_from_slice(b"\x02mx");
        self.push_domain(self.domain_of(hosting.operator), octets);
    }

    /// The record that most have (RFC 9460): the name itself, HTTP/3 and HTTP/2, and the addresses.
    fn fill_https(&self, word: u64, has_ipv6: bool, set: &mut RrSet) {
        set.push(|octets| {
            octets.extend_from_slice(b"\0\x01\0");
            octets.extend_from_slice(b"\0\x01\0\x06\x02h3\x02h2");
            for (key, rtype) in [(4, rtype::A), (6, rtype::AAAA)] {
                if rtype == rtype::AAAA && !has_ipv6 {
                    continue;
                }
                octets.extend_from_slice(&[0, key, 0, 0]);
                let start = octets.len();
                self.each_address(word, rtype, |address| octets.extend_from_slice(address));
                let length = ((octets.len() - start) as u16).to_be_bytes();
                octets[start - 2..start].copy_from_slice(&length);
            }
        });
    }

    fn ttl(&self, zone: Zone, node: Node) -> u32 {
        let word = self.node_word(zone, node);
        self.tables.ttl.pick(self.draws.word(About::Ttl, word)) as u32
    }

    /// TTL of a zone's own NS records, and of the addresses of its servers.
    fn server_ttl(&self, zone: Zone) -> u32 {
        match zone {
            Zone::Root | Zone::Registry(_) => self.description.top_level.ttl.0,
            Zone::Hosted { .. } | Zone::Reverse(_) => {
                let word = self.zone_word(zone);
                self.tables.server_ttl.pick(self.draws.word(About::NameServerTtl, word)) as u32
            }
        }
    }

    /// TTL of a zone's negative answers, and of its SOA record.
    pub(crate) fn negative_ttl(&self, zone: Zone) -> u32 {
        match zone {
            // As in the real root zone.
            Zone::Root => 86_400,
            Zone::Registry(_) => self.description.top_level.negative_ttl.0,
            Zone::Hosted { .. } | Zone::Reverse(_) => {
                let word = self.zone_word(zone);
                self.tables.negative_ttl.pick(self.draws.word(About::NegativeTtl, word)) as u32
            }
        }
    }

    pub(crate) fn key_ttl(&self, zone: Zone) -> u32 {
        match zone {
            Zone::Root | Zone::Registry(_) => self.description.top_level.ttl.0,
            Zone::Hosted { .. } | Zone::Reverse(_) => KEY_TTL,
        }
    }

    /// The NS records of a zone, with the TTL that they have in `seen_from`: itself or its parent.
    pub(crate) fn fill_name_servers(&self, zone: Zone, seen_from: Zone, set: &mut RrSet) {
        set.begin(rtype::NS, self.server_ttl(seen_from));
        let servers = self.name_servers(zone);
        for slot in 0..servers.count {
            set.push(|octets| {
                self.push_name_server(&servers, slot, octets);
            });
        }
    }

    pub(crate) fn fill_soa(&self, zone: Zone, set: &mut RrSet) {
        let ttl = self.negative_ttl(zone);
        set.begin(rtype::SOA, ttl);
        set.push(|octets| {
            self.push_name_server(&self.name_servers(zone), 0, octets);
            octets.extend_from_slice(b"\x0ahostmaster");
            self.push_apex(zone, octets);
            // Serial number, refresh, retry, expire, and the TTL of negative answers (RFC 2308, section 4).
            for number in [SERIAL, 7200, 3600, 1_209_600, ttl] {
                octets.extend_from_slice(&number.to_be_bytes());
            }
        });
    }

    /// The address of a server, with the TTL that it has in a zone.
    pub(crate) fn fill_glue(&self, server: Server, seen_from: Zone, rtype: u16, set: &mut RrSet) {
        self.fill_server(server, self.server_ttl(seen_from), rtype, set);
    }

    fn fill_server(&self, server: Server, ttl: u32, rtype: u16, set: &mut RrSet) {
        set.begin(rtype, ttl);
        let (ipv4, ipv6) = self.addresses(server);
        let address = if rtype == rtype::A { Some(ipv4) } else { ipv6 };
        if let Some(address) = address {
            set.push(|octets| match address {
                IpAddr::V4(address) => octets.extend_from_slice(&address.octets()),
                IpAddr::V6(address) => octets.extend_from_slice(&address.octets()),
            });
        }
    }

    fn fill_addresses(&self, word: u64, rtype: u16, set: &mut RrSet) {
        self.each_address(word, rtype, |address| {
            set.push(|octets| octets.extend_from_slice(address));
        });
    }

    /// Addresses for documentation (RFC 5737, RFC 3849): nothing is there.
    fn each_address(&self, word: u64, rtype: u16, mut push: impl FnMut(&[u8])) {
        const RANGES: [[u8; 3]; 3] = [[192, 0, 2], [198, 51, 100], [203, 0, 113]];
        let count = self.tables.addresses.pick(self.draws.word(About::Addresses, word));
        let first = self.draws.word(About::Address, word);
        for number in 0..count {
            if rtype == rtype::A {
                let [a, b, c] = RANGES[(first % 3) as usize];
                // Neither the network nor its broadcast address.
                let host = 1 + ((first / 3 + number) % 254) as u8;
                push(&[a, b, c, host]);
            } else {
                let address = 0x2001_0db8_u128 << 96 | u128::from(first.wrapping_add(number));
                push(&address.to_be_bytes());
            }
        }
    }

    fn text_length(&self, word: u64) -> u64 {
        self.tables.text.pick(self.draws.word(About::Text, word))
    }

    /// One record, in strings of at most 255 octets.
    fn fill_text(&self, word: u64, set: &mut RrSet) {
        let mut left = self.text_length(word) as usize;
        set.push(|octets| {
            octets.reserve(left + left / 255 + 1);
            let mut state = word;
            while left > 0 {
                let length = left.min(255);
                octets.push(length as u8);
                for _ in 0..length {
                    state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                    octets.push(b'a' + (state >> 40) as u8 % 26);
                }
                left -= length;
            }
        });
    }

    /// Appends the name of a step of a host's chain.
    pub(crate) fn push_step(&self, domain: u64, host: u64, step: u64, octets: &mut Vec<u8>) {
        let place = self.domain_of_step(domain, host, step);
        push_label_with(octets, |octets| {
            if place == domain {
                octets.push(b'e');
            } else {
                self.labels.write(domain, octets);
                octets.push(b'-');
            }
            push_number(octets, host);
            octets.push(b'-');
            push_number(octets, step);
        });
        self.push_domain(place, octets);
    }

    /// Appends the name of a host.
    pub(crate) fn push_host(&self, domain: u64, host: u64, octets: &mut Vec<u8>) {
        if host > 0 {
            let label = self.host_label(domain, host).as_bytes();
            push_label_with(octets, |octets| octets.extend_from_slice(label));
            if let Some(region) = self.region_of(domain, host) {
                self.push_apex(Zone::Hosted { domain, region: Some(region) }, octets);
                return;
            }
        }
        self.push_domain(domain, octets);
    }
}
