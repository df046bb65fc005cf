//! Proofs that something is not there.
//!
//! The root has the whole chain of NSEC records that its zone file would have, and so have zones whose names can be
//! listed, of NSEC or NSEC3 records. Of the others nobody can list what exists, because it is computed from the name
//! that is asked for. Most top-level domains have NSEC3 records with Opt-Out, a few thousand for each (RFC 5155). All
//! other zones have records that cover one name or one hash each (RFC 4470; RFC 7129, appendix B).

use std::cmp::Ordering;

use dnslab_wire::{RrSet, canonical_cmp};

use crate::chain::{Chain, fill_nsec, fill_nsec3};
use crate::data::Types;
use crate::model::{Denial, Internet, RANGE_BITS, Zone};
use crate::name::push_label;
use crate::nsec3::{nsec3_hash, push_hash};

/// Where the record of a proof is written: its owner, and the NSEC or NSEC3 record.
pub(crate) struct Proof<'a> {
    pub(crate) owner: &'a mut Vec<u8>,
    pub(crate) set: &'a mut RrSet,
}

/// The hashes of an NSEC3 record, which covers what is between them (RFC 5155, section 3.1.7).
struct Span {
    first: [u8; 20],
    next: [u8; 20],
}

impl Internet {
    /// Appends the owner of the NSEC or NSEC3 record at a name that exists, and fills the record. Types are those of
    /// the name in this zone, without what signing adds. In a zone with NSEC records of all its names an empty
    /// non-terminal has none: that is the record that covers it.
    pub(crate) fn fill_matching(
        &self,
        zone: Zone,
        name: &[u8],
        types: Types,
        chain: &mut Chain,
        proof: Proof<'_>,
    ) {
        let Proof { owner, set } = proof;
        owner.clear();
        let ttl = self.negative_ttl(zone);
        match self.denial(zone) {
            _ if zone == Zone::Root => {
                let place = self.root_chain_place(name);
                self.fill_root_chain(place, owner, set);
            }
            Denial::Nsec | Denial::Nsec3 { .. } => chain.fill(self, zone, name, owner, set),
            Denial::MinimalNsec => {
                owner.extend_from_slice(name);
                // The next name in canonical order (RFC 4471, section 3.1.2). Names that exist are far shorter
                // than the longest.
                let next = [&[1, 0], name].concat();
                fill_nsec(&next, types, ttl, set);
            }
            denial @ (Denial::MinimalNsec3 | Denial::Ranges) => {
                let hash = nsec3_hash(name);
                let next = Span::around(&hash).next;
                push_hash(&hash, owner);
                self.push_apex(zone, owner);
                fill_nsec3(&next, denial == Denial::Ranges, types, ttl, set);
            }
        }
    }

    /// Appends the owner of the NSEC or NSEC3 record that covers a name that does not exist, or a delegation that
    /// is not signed, and fills the record. The name is a child of one that exists.
    pub(crate) fn fill_covering(
        &self,
        zone: Zone,
        name: &[u8],
        chain: &mut Chain,
        proof: Proof<'_>,
    ) {
        let Proof { owner, set } = proof;
        owner.clear();
        let ttl = self.negative_ttl(zone);
        match (zone, self.denial(zone)) {
            (Zone::Root, _) => {
                let place = self.root_chain_place(name);
                self.fill_root_chain(place, owner, set);
            }
            (_, Denial::Nsec | Denial::Nsec3 { .. }) => chain.fill(self, zone, name, owner, set),
            (_, Denial::MinimalNsec) => {
                push_before(name, owner);
                let mut next = Vec::with_capacity(name.len() + 1);
                push_after(name, &mut next);
                fill_nsec(&next, Types::default(), ttl, set);
            }
            (_, denial) => {
                let hash = nsec3_hash(name);
                let Span { first, next } = match zone {
                    Zone::Registry(number) if denial == Denial::Ranges => {
                        self.opt_out_span(number, &hash)
                    }
                    _ => Span::around(&hash),
                };
                push_hash(&first, owner);
                self.push_apex(zone, owner);
                fill_nsec3(&next, denial == Denial::Ranges, Types::default(), ttl, set);
            }
        }
    }

    /// The hashes between which this one is, and no delegation that is signed.
    fn opt_out_span(&self, registry: u32, hash: &[u8; 20]) -> Span {
        if self.is_in_signed_range(hash) {
            return Span::around(hash);
        }
        let range = u32::from_be_bytes([0, 0, hash[0], hash[1]]) >> (16 - RANGE_BITS);
        let mut first = hash_in_range(range, 0);
        let mut next = hash_in_range(range, self.first_signed_offset());
        // What the registry has itself is not covered, wherever its hash is.
        let fixed = &self.registries[registry as usize].fixed;
        let place = fixed.partition_point(|other| other < hash);
        let is_last_span = next < first;
        if let Some(after) = fixed.get(place).filter(|after| is_last_span || **after < next) {
            next = *after;
        }
        if let Some(before) = fixed[..place].last().filter(|before| first <= **before) {
            first = Span::around(before).next;
        }
        Span { first, next }
    }

    /// The names of the root zone that have records, in canonical order.
    pub(crate) fn root_names(&self) -> impl Iterator<Item = Vec<u8>> + '_ {
        let servers = self.description.root.servers.0;
        let split = self.root_split();
        let top = |registry: &crate::model::Registry| registry.apex.octets().to_vec();
        let all = &self.registries[..self.top_level_count];
        let server = |slot: u64| {
            let mut name = vec![1, b'a' + slot as u8];
            name.extend_from_slice(b"\x0croot-servers\0");
            name
        };
        let before = all[..split].iter().map(top);
        let after = all[split..].iter().map(top);
        std::iter::once(vec![0]).chain(before).chain((0..servers).map(server)).chain(after)
    }

    /// Top-level domains before the root servers.
    fn root_split(&self) -> usize {
        let all = &self.registries[..self.top_level_count];
        all.partition_point(|registry| registry.label[..] < b"root-servers"[..])
    }

    fn root_name(&self, place: usize) -> Vec<u8> {
        // The chain is short; a place is found by its parts, not by walking.
        let (servers, split) = (self.description.root.servers.0 as usize, self.root_split());
        let top = |number: usize| self.registries[number].apex.octets().to_vec();
        let all = 1 + self.top_level_count + servers;
        match place % all {
            0 => vec![0],
            place if place <= split => top(place - 1),
            place if place <= split + servers => {
                let mut name = vec![1, b'a' + (place - split - 1) as u8];
                name.extend_from_slice(b"\x0croot-servers\0");
                name
            }
            place => top(place - 1 - servers),
        }
    }

    /// The place in the chain of a name, or of the last one before it.
    fn root_chain_place(&self, name: &[u8]) -> usize {
        let all = 1 + self.top_level_count + self.description.root.servers.0 as usize;
        let (mut least, mut most) = (0, all);
        while most - least > 1 {
            let middle = least.midpoint(most);
            match canonical_cmp(&self.root_name(middle), name) {
                Ordering::Greater => most = middle,
                _ => least = middle,
            }
        }
        least
    }

    fn fill_root_chain(&self, place: usize, owner: &mut Vec<u8>, set: &mut RrSet) {
        let name = self.root_name(place);
        let types = self.root_types(&name);
        fill_nsec(&self.root_name(place + 1), types, self.negative_ttl(Zone::Root), set);
        owner.extend_from_slice(&name);
    }

    /// The types that a name of the root zone has there.
    fn root_types(&self, name: &[u8]) -> Types {
        let located = self.locate(name);
        match located.zones() {
            [_, child, ..] => self.delegation_types(child.zone),
            _ => {
                let node = located.node.expect("a name of the chain exists");
                self.types(Zone::Root, node)
            }
        }
    }
}

/// The hash at an offset of a range: 12 bits of the range, 32 of the offset.
fn hash_in_range(range: u32, offset: u64) -> [u8; 20] {
    let bits = (u64::from(range) << 32).wrapping_add(offset) << (64 - 32 - RANGE_BITS);
    let mut hash = [0; 20];
    hash[..8].copy_from_slice(&bits.to_be_bytes());
    hash
}

impl Span {
    /// The hashes right before and right after this one.
    fn around(hash: &[u8; 20]) -> Self {
        let [mut first, mut next] = [*hash; 2];
        for octet in first.iter_mut().rev() {
            *octet = octet.wrapping_sub(1);
            if *octet != 0xff {
                break;
            }
        }
        for octet in next.iter_mut().rev() {
            *octet = octet.wrapping_add(1);
            if *octet != 0 {
                break;
            }
        }
        Self { first, next }
    }
}

/// Appends a name before this one in canonical order, with none between them that exists: labels of names that
/// exist are of `a` to `z`, `0` to `9` and `-`.
fn push_before(name: &[u8], out: &mut Vec<u8>) {
    let length = usize::from(name[0]);
    let (label, parent) = (&name[1..=length], &name[1 + length..]);
    let (last, first) = (label[length - 1], &label[..length - 1]);
    if last == 0 {
        if !first.is_empty() {
            push_label(out, first);
        }
        out.extend_from_slice(parent);
        return;
    }
    let at = out.len();
    push_label(out, label);
    // Upper case is ordered as lower case, so it is left out.
    let before = if last == b'[' { b'@' } else { last - 1 };
    out[at + length] = before;
    // All longer labels with that beginning come before it too, but for those with octets above `~`.
    if length < 63 && name.len() < 255 {
        out[at] += 1;
        out.push(b'~');
    }
    out.extend_from_slice(parent);
}

/// Appends a name after this one and after all names below it, with none between them that exists.
fn push_after(name: &[u8], out: &mut Vec<u8>) {
    let length = usize::from(name[0]);
    let (label, parent) = (&name[1..=length], &name[1 + length..]);
    let at = out.len();
    push_label(out, label);
    if length < 63 && name.len() < 255 {
        out[at] += 1;
        out.push(0);
    } else {
        // The longest label: the next one of its length. If all octets are the last, the zone ends here.
        let kept = label.iter().rposition(|octet| *octet != 0xff);
        match kept {
            Some(place) => {
                out.truncate(at + 1 + place);
                let next = label[place] + 1;
                out.push(if next.is_ascii_uppercase() { b'[' } else { next });
                out[at] = place as u8 + 1;
            }
            None => out.truncate(at),
        }
    }
    out.extend_from_slice(parent);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn neighbours_go_around() {
        assert_eq!(Span::around(&[0; 20]).first, [0xff; 20]);
        assert_eq!(Span::around(&[0xff; 20]).next, [0; 20]);
    }

    fn wire(label: &[u8], parents: usize) -> Vec<u8> {
        let mut name = Vec::new();
        push_label(&mut name, label);
        (0..parents).for_each(|_| push_label(&mut name, b"abcdefg"));
        name.push(0);
        name
    }

    proptest! {
        #[test]
        fn neighbours_are_around_a_name(
            label in prop::collection::vec(any::<u8>(), 1..=63),
            parents in 1_usize..=23,
            other in "[a-z0-9-]{1,63}",
        ) {
            let label = label.to_ascii_lowercase();
            let name = wire(&label, parents);
            let (mut before, mut after) = (Vec::new(), Vec::new());
            push_before(&name, &mut before);
            push_after(&name, &mut after);
            prop_assert!(before.len() <= 255 && after.len() <= 255);
            prop_assert_eq!(canonical_cmp(&before, &name), Ordering::Less);
            // At the end of a zone the next name is the apex.
            let is_last = after.len() < name.len() - label.len();
            prop_assert!(is_last || canonical_cmp(&name, &after) == Ordering::Less);
            prop_assert_eq!(before.to_ascii_lowercase(), before.clone());
            prop_assert_eq!(after.to_ascii_lowercase(), after.clone());
            // Nothing that may exist is covered.
            let other = wire(other.as_bytes(), parents);
            let is_covered = canonical_cmp(&before, &other) == Ordering::Less
                && (is_last || canonical_cmp(&other, &after) == Ordering::Less);
            let fits = other.len() <= 255;
            prop_assert!(!fits || !is_covered || other == name || name.len() >= 255 || label.len() == 63);
            // What is below the name is covered too.
            if !is_last && name.len() < 253 {
                let mut below = vec![1, b'x'];
                below.extend_from_slice(&name);
                prop_assert_eq!(canonical_cmp(&below, &after), Ordering::Less);
            }
        }
    }
}
