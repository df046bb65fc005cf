//! One zone in memory: found by lower-cased wire name, answered from prebuilt records.
//!
//! All names and records are in one arena. An open-addressing table of eight-octet slots leads to them. So a
//! lookup touches two places in memory, and a record costs little more than its own octets.

use std::fmt;

use domain::base::Name;

/// A zone, loaded once and only read from then on.
///
/// ```
/// use dnslab_responder::Zone;
///
/// let text = "$ORIGIN example.\n@ 60 IN SOA ns host 1 60 60 60 5\n@ 60 NS ns\nns 60 A 192.0.2.1";
/// let zone = Zone::parse(text.as_bytes(), None).unwrap();
/// assert_eq!((zone.apex().as_str(), zone.record_count()), ("example.", 3));
/// ```
pub struct Zone {
    /// Lower-cased, in wire form.
    pub(super) apex: Box<[u8]>,
    /// All nodes, end to end; see [`Node`] for the form of one.
    pub(super) arena: Box<[u8]>,
    /// Its length is a power of two and at least twice the number of nodes.
    pub(super) slots: Box<[Slot]>,
    /// Where the nodes with NSEC records begin in the arena, in canonical order of their names (RFC 4034,
    /// section 6.1). Empty if the zone is not signed.
    pub(super) chain: Box<[u32]>,
    /// The SOA record as a negative answer carries it (RFC 2308, section 3): a prebuilt record.
    pub(super) negative_soa: Box<[u8]>,
    // False if there is none; then nobody looks for one.
    pub(super) has_wildcards: bool,
    pub(super) has_cuts: bool,
    pub(super) has_dnames: bool,
    /// Without duplicates.
    pub(super) record_count: usize,
}

#[derive(Clone, Copy)]
pub(super) struct Slot {
    /// Upper half of the name's hash, which avoids most comparisons of names.
    pub(super) tag: u32,
    /// Where the node begins in the arena, or [`EMPTY`].
    pub(super) at: u32,
}

pub(super) const EMPTY: u32 = u32::MAX;

/// On the node of a zone cut: NS records below the apex (RFC 9499, section 7).
pub(super) const FLAG_CUT: u8 = 1;

/// On a node with a DNAME record (RFC 6672).
pub(super) const FLAG_DNAME: u8 = 2;

/// One owner name's RRsets, borrowed from the arena.
///
/// In the arena: length of the name (1 octet), name, flags (1), number of RRsets (2). Then for each RRset:
/// type (2), number of records (2), octets of all records (4), and the records. Their owner is a compression
/// pointer to the question (RFC 1035, section 4.1.4).
#[derive(Clone, Copy)]
pub(crate) struct Node<'z> {
    /// [`FLAG_CUT`], [`FLAG_DNAME`] or nothing.
    pub(super) flags: u8,
    /// Number of RRsets; 0 for an empty non-terminal (RFC 9499).
    count: u16,
    body: &'z [u8],
}

/// A node and its name.
#[derive(Clone, Copy)]
pub(crate) struct NamedNode<'z> {
    /// Lower-cased, in wire form.
    pub(crate) name: &'z [u8],
    pub(crate) node: Node<'z>,
}

/// A node at a name that was asked for, or above it.
#[derive(Clone, Copy)]
pub(crate) struct AncestorNode<'z> {
    pub(crate) node: Node<'z>,
    /// Length of the node's name, which is the end of the name asked for.
    pub(crate) length: usize,
}

/// One RRset, ready to be copied into an answer whose question is its owner.
#[derive(Clone, Copy)]
pub(crate) struct RrSet<'z> {
    pub(crate) rtype: u16,
    /// Number of records.
    pub(crate) count: u16,
    /// The records, each in the form of [`dnslab_wire::push_prebuilt`].
    pub(crate) records: &'z [u8],
}

pub(crate) enum Lookup<'z> {
    Found(Node<'z>),
    /// The name does not exist, and this wildcard stands for it (RFC 4592).
    Synthesized(Node<'z>),
    /// The name is at or below this zone cut.
    Delegated(AncestorNode<'z>),
    /// The name is below this node, which has a DNAME record (RFC 6672).
    Redirected(AncestorNode<'z>),
    NameError,
    OutOfZone,
}

impl Zone {
    /// The apex as text, with the final dot.
    #[must_use]
    pub fn apex(&self) -> String {
        presentation(&self.apex)
    }

    pub(crate) fn apex_octets(&self) -> &[u8] {
        &self.apex
    }

    /// Number of records, duplicates not counted.
    #[must_use]
    pub fn record_count(&self) -> usize {
        self.record_count
    }

    /// Octets of memory that the zone holds.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.arena.len() + size_of_val(&*self.slots) + size_of_val(&*self.chain)
    }

    pub(crate) fn negative_soa(&self) -> &[u8] {
        &self.negative_soa
    }

    /// The node of exactly this lower-cased wire name.
    pub(crate) fn node(&self, name: &[u8]) -> Option<Node<'_>> {
        let hash = hash(name);
        let (tag, mask) = ((hash >> 32) as u32, self.slots.len() - 1);
        let mut place = hash as usize & mask;
        loop {
            let slot = self.slots[place];
            if slot.at == EMPTY {
                return None;
            }
            if slot.tag == tag {
                let at = slot.at as usize;
                let length = usize::from(self.arena[at]);
                if self.arena[at + 1..at + 1 + length] == *name {
                    return Some(self.node_at(at).node);
                }
            }
            place = (place + 1) & mask;
        }
    }

    pub(super) fn node_at(&self, at: usize) -> NamedNode<'_> {
        let body = at + 1 + usize::from(self.arena[at]);
        let node = Node {
            flags: self.arena[body],
            count: word(&self.arena, body + 1),
            body: &self.arena[body + 3..],
        };
        NamedNode { name: &self.arena[at + 1..body], node }
    }

    /// What the zone has for a lower-cased wire name. `at_parent`: the type belongs to the parent's side of a
    /// zone cut (DS, RFC 4035, section 3.1.4.1).
    pub(crate) fn lookup(&self, name: &[u8], at_parent: bool) -> Lookup<'_> {
        let exact = self.node(name);
        let has_stops = self.has_cuts || self.has_dnames;
        if let (Some(node), false) = (exact, has_stops) {
            return Lookup::Found(node);
        }
        if !self.holds(name) {
            return Lookup::OutOfZone;
        }
        if has_stops && let Some(stop) = self.highest_stop(name) {
            if stop.node.flags & FLAG_CUT == 0 {
                return Lookup::Redirected(stop);
            }
            if !(at_parent && stop.length == name.len()) {
                return Lookup::Delegated(stop);
            }
        }
        match exact {
            Some(node) => Lookup::Found(node),
            None if self.has_wildcards => self.wildcard(name),
            None => Lookup::NameError,
        }
    }

    /// True if the name is the apex or below it.
    pub(crate) fn holds(&self, name: &[u8]) -> bool {
        suffixes(name).any(|suffix| *suffix == *self.apex)
    }

    /// Where the way down from the apex to the name first ends: at a zone cut at or above the name, or at a
    /// DNAME above it (RFC 6672, section 3.2).
    fn highest_stop(&self, name: &[u8]) -> Option<AncestorNode<'_>> {
        suffixes(name)
            .take_while(|suffix| suffix.len() >= self.apex.len())
            .filter_map(|suffix| {
                Some(AncestorNode { node: self.node(suffix)?, length: suffix.len() })
            })
            .filter(|AncestorNode { node, length }| {
                let is_above = *length < name.len();
                node.flags & FLAG_CUT != 0 || node.flags & FLAG_DNAME != 0 && is_above
            })
            .last()
    }

    /// The wildcard below the closest encloser (RFC 4592, section 3.3.1).
    fn wildcard(&self, name: &[u8]) -> Lookup<'_> {
        let mut source = [0; 255];
        self.source_of_synthesis(name, &mut source)
            .and_then(|length| self.node(&source[..length]))
            .map_or(Lookup::NameError, Lookup::Synthesized)
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Zone")
            .field("apex", &self.apex())
            .field("record_count", &self.record_count)
            .finish_non_exhaustive()
    }
}

impl<'z> Node<'z> {
    /// An empty non-terminal (RFC 9499, section 7): the name exists, and has no records.
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn rrset(&self, rtype: u16) -> Option<RrSet<'z>> {
        self.rrsets().find(|set| set.rtype == rtype)
    }

    /// In the order of their types.
    pub(crate) fn rrsets(&self) -> impl Iterator<Item = RrSet<'z>> + use<'z> {
        let (body, mut at, mut left) = (self.body, 0, self.count);
        std::iter::from_fn(move || {
            left = left.checked_sub(1)?;
            let length = long(body, at + 4) as usize;
            let records = &body[at + 8..at + 8 + length];
            let set = RrSet { rtype: word(body, at), count: word(body, at + 2), records };
            at += 8 + length;
            Some(set)
        })
    }
}

/// The name and each of its ancestors up to the root, as ends of the wire form. The name must be well formed;
/// [`crate::answer`] checks that first.
pub(crate) fn suffixes(name: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(name);
    std::iter::from_fn(move || {
        let current = rest?;
        rest = match usize::from(*current.first()?) {
            0 => None,
            label => current.get(1 + label..),
        };
        Some(current)
    })
}

fn word(octets: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([octets[at], octets[at + 1]])
}

fn long(octets: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([octets[at], octets[at + 1], octets[at + 2], octets[at + 3]])
}

/// Hashes a name, eight octets at a time. It need not withstand an attacker: queries are never inserted, and
/// whoever writes the zone owns the server.
pub(super) fn hash(name: &[u8]) -> u64 {
    /// An odd number with well spread bits (2^64 divided by the golden ratio).
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut state = name.len() as u64;
    let mut chunks = name.chunks_exact(8);
    for chunk in &mut chunks {
        let octets = chunk.try_into().expect("a chunk of eight has eight octets");
        state = (state.rotate_left(25) ^ u64::from_le_bytes(octets)).wrapping_mul(SPREAD);
    }
    let mut last = [0; 8];
    last[..chunks.remainder().len()].copy_from_slice(chunks.remainder());
    state = (state.rotate_left(25) ^ u64::from_le_bytes(last)).wrapping_mul(SPREAD);
    // A product carries upwards only: fold the upper half back, twice, for the table's low bits.
    state = (state ^ (state >> 32)).wrapping_mul(SPREAD);
    state ^ (state >> 29)
}

/// A wire name as text, with the final dot.
pub(super) fn presentation(name: &[u8]) -> String {
    match Name::from_octets(name) {
        Ok(name) if name.is_root() => ".".to_owned(),
        Ok(name) => format!("{name}."),
        Err(_) => "?".to_owned(),
    }
}
