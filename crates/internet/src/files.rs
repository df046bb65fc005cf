//! What a resolver needs to know of an internet, as text.

use std::fmt::Write as _;
use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dnslab_wire::{RrSet, canonical_cmp, rtype};

use crate::chain::Chain;
use crate::data::Types;
use crate::denial::Proof;
use crate::lookup::PlacedZone;
use crate::model::{Internet, Zone};
use crate::name::Name;
use crate::sign::Signer;

/// The key of the root, in the two forms that resolvers take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustAnchor {
    /// A DNSKEY record, as a line of a zone file.
    pub dnskey: String,
    /// A DS record, as a line of a zone file.
    pub ds: String,
}

impl Internet {
    /// The addresses of the root servers, those of IPv4 first.
    #[must_use]
    pub fn root_addresses(&self) -> Vec<IpAddr> {
        let count = self.name_servers(Zone::Root).count;
        let servers = || (0..count).map(crate::model::Server::Root);
        let ipv4 = servers().map(|server| self.addresses(server).0);
        ipv4.chain(servers().filter_map(|server| self.addresses(server).1)).collect()
    }

    /// The root hints as a zone file (RFC 9609): the names and addresses of the root servers.
    #[must_use]
    pub fn root_hints(&self) -> String {
        let mut text = String::new();
        let mut set = RrSet::default();
        self.fill_name_servers(Zone::Root, Zone::Root, &mut set);
        push_records(b"\0", &set, &mut text);
        let mut owner = Vec::new();
        let servers = self.name_servers(Zone::Root);
        for slot in 0..servers.count {
            owner.clear();
            let server = self.push_name_server(&servers, slot, &mut owner);
            for rtype in [rtype::A, rtype::AAAA] {
                self.fill_glue(server, Zone::Root, rtype, &mut set);
                push_records(&owner, &set, &mut text);
            }
        }
        text
    }

    /// The trust anchor of the root; `None` if nothing is signed.
    #[must_use]
    pub fn trust_anchor(&self) -> Option<TrustAnchor> {
        if !self.is_signed(Zone::Root) {
            return None;
        }
        let (mut signer, mut set) = (Signer::default(), RrSet::default());
        let line = |set: &RrSet| {
            let mut text = String::new();
            push_records(b"\0", set, &mut text);
            text.trim_end().to_owned()
        };
        self.fill_dnskey(Zone::Root, &mut signer, &mut set);
        let dnskey = line(&set);
        self.fill_ds(Zone::Root, &mut signer, &mut set);
        Some(TrustAnchor { dnskey, ds: line(&set) })
    }

    /// The root zone as a zone file, with its signatures if it has them. No other zone can be written: what
    /// exists there is computed from the name that is asked for.
    #[must_use]
    pub fn root_zone(&self) -> String {
        let (mut file, mut set) = <(ZoneFile, RrSet)>::default();
        let mut owner = Vec::new();
        let mut previous: Option<Vec<u8>> = None;
        for name in self.root_names() {
            debug_assert!(
                previous.is_none_or(|previous| canonical_cmp(&previous, &name).is_lt()),
                "the chain is in order"
            );
            let located = self.locate(&name);
            if let [_, PlacedZone { zone, .. }, ..] = located.zones() {
                self.fill_name_servers(*zone, Zone::Root, &mut set);
                push_records(&name, &set, &mut file.text);
                if self.is_signed(*zone) {
                    self.fill_ds(*zone, &mut file.signer, &mut set);
                    file.push_own(self, &name, &set);
                }
            } else if let Ok(node) = located.node {
                for rtype in self.types(Zone::Root, node).iter() {
                    match rtype {
                        rtype::DNSKEY => self.fill_dnskey(Zone::Root, &mut file.signer, &mut set),
                        _ => self.fill(Zone::Root, node, rtype, &mut set),
                    }
                    file.push_own(self, &name, &set);
                }
            }
            if self.is_signed(Zone::Root) {
                let mut chain = Chain::default();
                let proof = Proof { owner: &mut owner, set: &mut set };
                self.fill_matching(Zone::Root, &name, Types::default(), &mut chain, proof);
                file.push_own(self, &name, &set);
            }
            if let [_, PlacedZone { zone, .. }, ..] = located.zones() {
                let servers = self.name_servers(*zone);
                for slot in 0..servers.count {
                    owner.clear();
                    let server = self.push_name_server(&servers, slot, &mut owner);
                    for rtype in [rtype::A, rtype::AAAA] {
                        self.fill_glue(server, Zone::Root, rtype, &mut set);
                        push_records(&owner, &set, &mut file.text);
                    }
                }
            }
            previous = Some(name);
        }
        file.text
    }
}

/// The root zone while it is written.
#[derive(Default)]
struct ZoneFile {
    text: String,
    signer: Signer,
    signature: RrSet,
}

impl ZoneFile {
    /// Appends a set for which the root is authoritative, with its signature if it has one.
    fn push_own(&mut self, internet: &Internet, owner: &[u8], set: &RrSet) {
        push_records(owner, set, &mut self.text);
        if !set.is_empty() && internet.is_signed(Zone::Root) {
            self.signer.sign(internet, Zone::Root, owner, set, &mut self.signature);
            push_records(owner, &self.signature, &mut self.text);
        }
    }
}

/// Appends the records of a set as lines of a zone file.
fn push_records(owner: &[u8], set: &RrSet, text: &mut String) {
    for data in set.data() {
        let owner = Name::from_wire(owner);
        // Writing to a string does not fail.
        let _ = write!(text, "{owner} {} IN ", set.ttl);
        push_data(set.rtype, data, text);
        text.push('\n');
    }
}

fn push_data(rtype: u16, data: &[u8], text: &mut String) {
    let hex = |data: &[u8]| data.iter().map(|octet| format!("{octet:02X}")).collect::<String>();
    let word = |at: usize| u16::from_be_bytes([data[at], data[at + 1]]);
    let long = |at: usize| u32::from_be_bytes([data[at], data[at + 1], data[at + 2], data[at + 3]]);
    let name_end = |at: usize| {
        at + dnslab_wire::uncompressed_length(&data[at..]).expect("names made here are whole")
    };
    let name = |at: usize| Name::from_wire(&data[at..name_end(at)]);
    let _ = match rtype {
        rtype::A => {
            let octets: [u8; 4] = data.try_into().expect("an address has 4 octets");
            write!(text, "A {}", IpAddr::from(octets))
        }
        rtype::AAAA => {
            let octets: [u8; 16] = data.try_into().expect("an address has 16 octets");
            write!(text, "AAAA {}", IpAddr::from(octets))
        }
        rtype::NS => write!(text, "NS {}", name(0)),
        rtype::SOA => {
            let (second, numbers) = (name_end(0), data.len() - 20);
            let [a, b, c, d, e] = [0, 1, 2, 3, 4].map(|place| long(numbers + 4 * place));
            write!(text, "SOA {} {} {a} {b} {c} {d} {e}", name(0), name(second))
        }
        rtype::DS => write!(text, "DS {} {} {} {}", word(0), data[2], data[3], hex(&data[4..])),
        rtype::DNSKEY => {
            let key = STANDARD.encode(&data[4..]);
            write!(text, "DNSKEY {} {} {} {key}", word(0), data[2], data[3])
        }
        rtype::NSEC => {
            let end = name_end(0);
            let types = types_of(&data[end..]);
            write!(text, "NSEC {}{types}", name(0))
        }
        rtype::RRSIG => {
            let signer = name_end(18);
            let covered = type_name(word(0));
            let signature = STANDARD.encode(&data[signer..]);
            write!(
                text,
                "RRSIG {covered} {} {} {} {} {} {} {} {signature}",
                data[2],
                data[3],
                long(4),
                long(8),
                long(12),
                word(16),
                name(18)
            )
        }
        // RFC 3597, section 5.
        _ => write!(text, "TYPE{rtype} \\# {} {}", data.len(), hex(data)),
    };
}

fn types_of(bitmap: &[u8]) -> String {
    let (mut text, mut rest) = (String::new(), bitmap);
    while let [window, length, bits @ ..] = rest {
        let (bits, after) = bits.split_at(usize::from(*length));
        for (place, octet) in bits.iter().enumerate() {
            for bit in (0..8).filter(|bit| octet & (0x80 >> bit) != 0) {
                let rtype = u16::from(*window) << 8 | (place * 8 + bit) as u16;
                text.push(' ');
                text.push_str(&type_name(rtype));
            }
        }
        rest = after;
    }
    text
}

fn type_name(rtype: u16) -> String {
    match rtype {
        rtype::A => "A".to_owned(),
        rtype::NS => "NS".to_owned(),
        rtype::SOA => "SOA".to_owned(),
        rtype::AAAA => "AAAA".to_owned(),
        rtype::DS => "DS".to_owned(),
        rtype::RRSIG => "RRSIG".to_owned(),
        rtype::NSEC => "NSEC".to_owned(),
        rtype::DNSKEY => "DNSKEY".to_owned(),
        _ => format!("TYPE{rtype}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_and_anchors_are_zone_files() {
        let internet = Internet::parse("[root]\nservers = 2").unwrap();
        let hints = internet.root_hints();
        assert!(hints.starts_with(". 172800 IN NS a.root-servers.\n"), "{hints}");
        assert!(hints.contains("b.root-servers. 172800 IN AAAA 2001:2::2\n"), "{hints}");
        assert_eq!(hints.lines().count(), 6);
        let anchor = internet.trust_anchor().unwrap();
        assert!(anchor.dnskey.starts_with(". 172800 IN DNSKEY 257 3 8 "), "{anchor:?}");
        assert!(anchor.ds.contains(" IN DS ") && anchor.ds.contains(" 8 2 "), "{anchor:?}");
        let roots: Vec<IpAddr> = internet.root_addresses();
        assert_eq!(roots[1].to_string(), "198.18.0.2");
        assert_eq!(roots[2].to_string(), "2001:2::1");
        let unsigned = Internet::parse("[dnssec]\nroot = false").unwrap();
        assert_eq!(unsigned.trust_anchor(), None);
        assert!(!unsigned.root_zone().contains("RRSIG"));
    }
}
