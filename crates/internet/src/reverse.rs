//! The reverse tree: the zones of addresses below `in-addr.arpa` (RFC 1035, section 3.5) and `ip6.arpa` (RFC 3596,
//! section 2.5).
//!
//! As in the real tree, the first octet of IPv4, or the first three nibbles of IPv6, are the zone of a regional
//! registry. It delegates two or three octets, or eight nibbles, to operators.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use dnslab_wire::Labels;

use crate::draw::{About, below, mix};
use crate::lookup::{Located, Node};
use crate::model::{Internet, Zone};
use crate::name::{number, push_label_with, push_number};
use crate::prefix::Prefix;

/// Regional registries: the operators of the last ranks have their zones.
const REGISTRIES: u32 = 5;

/// The first twelve bits of what the registries have of IPv6 (IANA, "IPv6 Global Unicast Address Assignments").
const IPV6_BLOCKS: [u32; 6] = [0x200, 0x240, 0x260, 0x280, 0x2a0, 0x2c0];

/// Where nothing is delegated, because resolvers answer for it themselves (RFC 6303).
const DOCUMENTATION: [[u8; 3]; 3] = [[192, 0, 2], [198, 51, 100], [203, 0, 113]];
const DOCUMENTATION_IPV6: u32 = 0x2001_0db8;

/// Places of the nibbles of an IPv6 address from the first on, which end a zone or a part of the name.
mod nibble {
    pub(super) const BLOCK_END: usize = 2;
    pub(super) const NETWORK_END: usize = 7;
    pub(super) const LAST: usize = 31;
}

/// True if the first octet is that of a zone of a registry: not for private addresses, loopback and multicast.
fn is_octet_of_registry(octet: u8) -> bool {
    (1..=223).contains(&octet) && octet != 10 && octet != 127
}

/// True for the first two octets of private, shared and link-local addresses.
fn is_private(one: u8, two: u8) -> bool {
    matches!((one, two), (100, 64..=127) | (169, 254) | (172, 16..=31) | (192, 168))
}

impl Internet {
    /// The zones that `in-addr.arpa` or `ip6.arpa` delegates.
    pub(crate) fn registry_prefixes(&self, is_ipv6: bool) -> Vec<Prefix> {
        match is_ipv6 {
            false => {
                let octets = (0..=u8::MAX).filter(|octet| is_octet_of_registry(*octet));
                octets.map(|octet| Prefix::of(Ipv4Addr::new(octet, 0, 0, 0).into(), 8)).collect()
            }
            true => {
                let block = |bits: u32| Prefix { is_ipv6, bits: bits << 20, length: 12 };
                IPV6_BLOCKS.map(block).into()
            }
        }
    }

    /// The empty non-terminals of `ip6.arpa`, without its apex: the first nibble, and the first two.
    pub(crate) fn registry_nibbles() -> impl Iterator<Item = Vec<u8>> {
        let first = std::iter::once(vec![1, hex(IPV6_BLOCKS[0] >> 8)]);
        first.chain(IPV6_BLOCKS.map(|bits| vec![1, hex(bits >> 4), 1, hex(bits >> 8)]))
    }

    /// A word about a zone of the reverse tree.
    pub(crate) fn reverse_word(&self, prefix: Prefix) -> u64 {
        self.draws.word(About::Reverse, prefix.number())
    }

    /// The operator of a zone; `drawn` is the one that a draw chose. Regional registries have operators of their own,
    /// which serve none of the zones below: Knot Resolver 5.6 does not validate what a server says of a zone that is
    /// not signed and of one that is signed above it, if an empty non-terminal is between them.
    pub(crate) fn reverse_operator(&self, prefix: Prefix, drawn: u32) -> u32 {
        let operators = self.description.operators.count.0 as u32;
        let registries = REGISTRIES.min(operators - 1);
        match prefix.is_of_registry() {
            true => operators - 1 - drawn % registries,
            false => drawn % (operators - registries),
        }
    }

    /// Appends the apex of a zone.
    pub(crate) fn push_prefix(&self, prefix: Prefix, octets: &mut Vec<u8>) {
        let digits = if prefix.is_ipv6 { prefix.length / 4 } else { prefix.length / 8 };
        for place in (0..digits).rev() {
            push_label_with(octets, |octets| match prefix.is_ipv6 {
                false => push_number(octets, (prefix.bits >> (24 - 8 * place) & 0xff).into()),
                true => octets.push(hex(prefix.bits >> (28 - 4 * place))),
            });
        }
        let registry = self.reverse[usize::from(prefix.is_ipv6)] as usize;
        octets.extend_from_slice(self.registries[registry].apex.octets());
    }

    /// Finds a name below `in-addr.arpa`, which has `depth` labels.
    pub(crate) fn below_ipv4(
        &self,
        mut located: Located,
        labels: &Labels<'_>,
        depth: usize,
    ) -> Located {
        let mut octets = [0_u8; 4];
        let mut is_block = false;
        for place in 0..octets.len() {
            let octet = number(labels.under_root(depth + place));
            let Some(octet) = octet.and_then(|octet| u8::try_from(octet).ok()) else {
                return located.stop(depth + place);
            };
            octets[place] = octet;
            let address = IpAddr::from(octets);
            let [one, two, three, _] = octets;
            let prefix = Prefix::of(address, 8 * (place as u8 + 1));
            let (is_there, is_zone) = match place {
                0 => (is_octet_of_registry(one), true),
                1 => {
                    is_block = self.chances.block.includes(self.prefix_word(About::Block, prefix));
                    (!is_private(one, two), is_block)
                }
                2 if is_block => (true, false),
                2 => {
                    let is_documentation = DOCUMENTATION.contains(&[one, two, three]);
                    (!is_documentation && self.is_delegated(prefix, address), true)
                }
                _ => (self.has_pointer(address), false),
            };
            let node = match (place, is_zone) {
                (_, true) => Node::Apex,
                (3, false) => Node::Pointer(address),
                (_, false) => Node::Empty,
            };
            if !is_there {
                return located.stop(depth + place);
            }
            let labels_so_far = depth + place + 1;
            if is_zone {
                located.enter(Zone::Reverse(prefix), labels_so_far);
            }
            if labels.count() == labels_so_far {
                return located.end(node, labels_so_far, labels);
            }
        }
        located.stop(depth + octets.len())
    }

    /// Finds a name below `ip6.arpa`, which has `depth` labels.
    ///
    /// Networks of 32 bits have sites of 48, and 256 networks of 64 in each, whose hosts have the lowest 256
    /// addresses.
    pub(crate) fn below_ipv6(
        &self,
        mut located: Located,
        labels: &Labels<'_>,
        depth: usize,
    ) -> Located {
        let mut bits = 0_u128;
        for place in 0..=nibble::LAST {
            let digit = match labels.under_root(depth + place) {
                [digit @ b'0'..=b'9'] => digit - b'0',
                [digit @ b'a'..=b'f'] => digit - b'a' + 10,
                _ => return located.stop(depth + place),
            };
            bits |= u128::from(digit) << (4 * (nibble::LAST - place));
            let address = IpAddr::from(Ipv6Addr::from_bits(bits));
            let first = (bits >> 116) as u32;
            let prefix = Prefix::of(address, 4 * (place.min(nibble::NETWORK_END) as u8 + 1));
            let is_there = match place {
                0 => first >> 8 == IPV6_BLOCKS[0] >> 8,
                1 => IPV6_BLOCKS.iter().any(|block| block >> 4 == first >> 4),
                nibble::BLOCK_END => IPV6_BLOCKS.contains(&first),
                nibble::NETWORK_END => {
                    prefix.bits != DOCUMENTATION_IPV6 && self.is_delegated(prefix, address)
                }
                12 | 13 | 16..=29 => digit == 0,
                nibble::LAST => self.has_pointer(address),
                _ => true,
            };
            if !is_there {
                return located.stop(depth + place);
            }
            let labels_so_far = depth + place + 1;
            let node = match place {
                nibble::BLOCK_END | nibble::NETWORK_END => {
                    located.enter(Zone::Reverse(prefix), labels_so_far);
                    Node::Apex
                }
                nibble::LAST => Node::Pointer(address),
                _ => Node::Empty,
            };
            if labels.count() == labels_so_far {
                return located.end(node, labels_so_far, labels);
            }
        }
        located.stop(depth + nibble::LAST + 1)
    }

    fn prefix_word(&self, about: About, prefix: Prefix) -> u64 {
        self.draws.word(about, prefix.number())
    }

    /// True if a registry delegates these addresses. Those of the servers it does.
    fn is_delegated(&self, prefix: Prefix, first: IpAddr) -> bool {
        self.networks().any(|network| network.contains(first))
            || self.chances.delegated.includes(self.prefix_word(About::Delegated, prefix))
    }

    fn address_word(&self, about: About, address: IpAddr) -> u64 {
        let (subject, part) = match address {
            IpAddr::V4(address) => (0, u64::from(address.to_bits())),
            IpAddr::V6(address) => ((address.to_bits() >> 64) as u64, address.to_bits() as u64),
        };
        self.draws.of_part(about, subject, part)
    }

    fn has_pointer(&self, address: IpAddr) -> bool {
        self.server_at(address).is_some()
            || self.chances.pointer.includes(self.address_word(About::Pointer, address))
    }

    /// A word about an address that has a name.
    pub(crate) fn pointer_word(&self, address: IpAddr) -> u64 {
        mix(self.address_word(About::Pointer, address))
    }

    /// Appends the name of an address: that of a server, or of a host.
    pub(crate) fn push_pointer(&self, address: IpAddr, octets: &mut Vec<u8>) {
        match self.server_at(address) {
            Some(server) => self.push_server(server, octets),
            None => {
                let word = self.pointer_word(address);
                let domain = below(word, self.description.domains.0);
                let host = below(mix(word), self.description.names.per_domain.0);
                self.push_host(domain, host, octets);
            }
        }
    }

    /// The name of the address that clients ask for with this number: one that has a name, or one that has none.
    pub(crate) fn asked_address(&self, number: u64, exists: bool) -> Vec<u8> {
        let mut name = Vec::with_capacity(80);
        // Half of the attempts succeed, unless all addresses or none have names.
        for attempt in 0..64 {
            let word = self.draws.of_part(About::PointerAsked, number, attempt);
            name.clear();
            self.push_address(address_of(word), &mut name);
            if self.locate(&name).node.is_ok() == exists {
                return name;
            }
        }
        // The zone itself; addresses that nobody has.
        name.clear();
        if !exists {
            name.extend_from_slice(b"\x01\x30\x03250");
        }
        name.extend_from_slice(self.registries[self.reverse[0] as usize].apex.octets());
        name
    }

    fn push_address(&self, address: IpAddr, name: &mut Vec<u8>) {
        let registry = match address {
            IpAddr::V4(address) => {
                for octet in address.octets().into_iter().rev() {
                    push_label_with(name, |name| push_number(name, octet.into()));
                }
                self.reverse[0]
            }
            IpAddr::V6(address) => {
                for octet in address.octets().into_iter().rev() {
                    name.extend_from_slice(&[1, hex(octet.into()), 1, hex(u32::from(octet) >> 4)]);
                }
                self.reverse[1]
            }
        };
        name.extend_from_slice(self.registries[registry as usize].apex.octets());
    }
}

/// The address of a random word: one in eight is of IPv6.
fn address_of(word: u64) -> IpAddr {
    let bits = mix(word);
    if word >> 61 != 0 {
        return Ipv4Addr::from_bits(bits as u32).into();
    }
    let block = u128::from(IPV6_BLOCKS[below(word << 3, IPV6_BLOCKS.len() as u64) as usize]);
    // 20 bits of the network, 16 of the site, 8 of the network in it, 8 of the host.
    let [network, site, inner, host] =
        [bits >> 44, bits >> 28 & 0xffff, bits >> 20 & 0xff, bits & 0xff];
    let low = |value: u64, shift: u32| u128::from(value) << shift;
    Ipv6Addr::from_bits(
        block << 116 | low(network, 96) | low(site, 80) | low(inner, 64) | low(host, 0),
    )
    .into()
}

/// The last four bits as a digit.
fn hex(value: u32) -> u8 {
    b"0123456789abcdef"[value as usize & 15]
}
