//! A zone between file and memory: its records as read, checked, sorted and laid out.

use std::collections::BTreeSet;

use dnslab_traffic::ZoneFileError;
use dnslab_wire::{PREBUILT_HEADER, RrSet, canonical_cmp, push_prebuilt};
use domain::base::iana::{Class, Rtype};
use domain::base::rdata::{ComposeRecordData, RecordData};
use domain::base::{Record, ToName};

use super::data::{EMPTY, FLAG_CUT, FLAG_DNAME, Slot, Zone, hash, presentation, suffixes};

/// One record, its octets in [`Draft::pool`].
struct DraftRecord {
    /// Where the lower-cased owner begins; the RDATA follows it.
    owner_at: u32,
    owner_length: u8,
    rdata_length: u16,
    rtype: Rtype,
    /// In seconds.
    ttl: u32,
    /// Line on which the record ends.
    line: u32,
}

#[derive(Default)]
pub(super) struct Draft {
    /// Owner and RDATA of each record.
    pool: Vec<u8>,
    /// In canonical groups after [`Draft::sort`].
    records: Vec<DraftRecord>,
}

/// A message without its header, the longest name (RFC 1035, section 2.3.4), the rest of the question and the
/// OPT record.
const MAX_RRSET: usize = 65_535 - 12 - 255 - 4 - 11;

impl Draft {
    /// Adds a record that is on this line.
    pub(super) fn push<N: ToName, D: RecordData + ComposeRecordData>(
        &mut self,
        record: &Record<N, D>,
        line: usize,
    ) -> Result<(), ZoneFileError> {
        let owner = record.owner().to_vec();
        let (rtype, ttl) = (record.rtype(), record.ttl().as_secs());
        let compose = |pool: &mut Vec<u8>| {
            record.data().compose_rdata(pool).map_err(|_| "the record data are too long")
        };
        let added = match record.class() {
            Class::IN => self.add(owner.as_slice(), rtype, ttl, line, compose),
            _ => Err("only class IN is served"),
        };
        added.map_err(|reason| ZoneFileError::Record {
            line,
            owner: presentation(owner.as_slice()),
            rtype: record.rtype().to_string(),
            reason,
        })
    }

    /// Adds the records of an RRset that is in no file.
    pub(super) fn push_set(&mut self, owner: &[u8], set: &RrSet) -> Result<(), ZoneFileError> {
        let rtype = Rtype::from_int(set.rtype);
        for data in set.data() {
            let compose = |pool: &mut Vec<u8>| {
                pool.extend_from_slice(data);
                Ok(())
            };
            self.add(owner, rtype, set.ttl, 0, compose).map_err(ZoneFileError::Zone)?;
        }
        Ok(())
    }

    /// `compose` appends the data. The error says what is wrong.
    fn add(
        &mut self,
        owner: &[u8],
        rtype: Rtype,
        ttl: u32,
        line: usize,
        compose: impl FnOnce(&mut Vec<u8>) -> Result<(), &'static str>,
    ) -> Result<(), &'static str> {
        let owner_at = u32::try_from(self.pool.len()).map_err(|_| "the zone exceeds 4 GiB")?;
        self.pool.extend(owner.iter().map(u8::to_ascii_lowercase));
        let rdata_at = self.pool.len();
        compose(&mut self.pool)?;
        let rdata_length = u16::try_from(self.pool.len() - rdata_at)
            .map_err(|_| "the record data are longer than 65,535 octets")?;
        self.records.push(DraftRecord {
            owner_at,
            owner_length: u8::try_from(owner.len())
                .map_err(|_| "the owner is longer than 255 octets")?,
            rdata_length,
            rtype,
            ttl,
            line: u32::try_from(line).unwrap_or(u32::MAX),
        });
        Ok(())
    }

    /// The owner of the one SOA record.
    pub(super) fn apex(&self) -> Result<Box<[u8]>, ZoneFileError> {
        let mut soas = self.records.iter().filter(|record| record.rtype == Rtype::SOA);
        let first = soas.next().ok_or(ZoneFileError::NO_SOA)?;
        match soas.find(|soa| self.owner(soa) != self.owner(first)) {
            Some(second) => {
                Err(self.culprit(second, "a second SOA record: one file holds one zone"))
            }
            None => Ok(self.owner(first).into()),
        }
    }

    pub(super) fn check_owners(&self, apex: &[u8]) -> Result<(), ZoneFileError> {
        let outside = |record: &&DraftRecord| !suffixes(self.owner(record)).any(|end| end == apex);
        match self.records.iter().find(outside) {
            Some(record) => Err(self.culprit(
                record,
                "the owner is outside the zone: is a final dot missing, or one too many?",
            )),
            None => Ok(()),
        }
    }

    /// Refuses a zone that is signed with NSEC3 (RFC 5155): its answers would lack their proofs. Call it
    /// before [`Draft::sort`], so that the error names the first such record of the file.
    pub(super) fn check_denial(&self) -> Result<(), ZoneFileError> {
        let is_of_nsec3 =
            |record: &&DraftRecord| matches!(record.rtype, Rtype::NSEC3 | Rtype::NSEC3PARAM);
        match self.records.iter().find(is_of_nsec3) {
            Some(record) => Err(self.culprit(
                record,
                "a zone signed with NSEC3 is not served: sign it with NSEC (dnssec-signzone without \
                 -3, or ldns-signzone without -n)",
            )),
            None => Ok(()),
        }
    }

    /// Brings the records of one RRset and the RRsets of one owner together, and drops duplicates.
    pub(super) fn sort(&mut self) {
        let pool = std::mem::take(&mut self.pool);
        let key = |record: &DraftRecord| (owner(&pool, record), record.rtype);
        // Stable: the records of an RRset stay in the order of the file.
        self.records.sort_by(|left, right| key(left).cmp(&key(right)));
        let mut kept: Vec<DraftRecord> = Vec::with_capacity(self.records.len());
        let mut first = 0;
        for record in self.records.drain(..) {
            if kept.get(first).is_none_or(|other| key(other) != key(&record)) {
                first = kept.len();
            }
            if !kept[first..].iter().any(|other| rdata(&pool, other) == rdata(&pool, &record)) {
                kept.push(record);
            }
        }
        (self.pool, self.records) = (pool, kept);
    }

    /// Checks that no CNAME has neighbours (RFC 1034, section 3.6.2) other than RRSIG and NSEC (RFC 4035,
    /// section 2.5), and that a DNAME is alone of its type and at no zone cut (RFC 6672, sections 2.3 and
    /// 2.4).
    pub(super) fn check_aliases(&self, apex: &[u8]) -> Result<(), ZoneFileError> {
        let is_data = |record: &DraftRecord| !matches!(record.rtype, Rtype::RRSIG | Rtype::NSEC);
        for node in self.nodes() {
            let cname = node.iter().find(|record| record.rtype == Rtype::CNAME);
            if let Some(cname) = cname
                && node.iter().filter(|record| is_data(record)).count() > 1
            {
                let reason = "a CNAME with other data at its name: remove one of them";
                return Err(self.culprit(cname, reason));
            }
            let mut dnames = node.iter().filter(|record| record.rtype == Rtype::DNAME);
            let Some(dname) = dnames.next() else { continue };
            if let Some(second) = dnames.next() {
                return Err(self.culprit(second, "a second DNAME at its name: remove one of them"));
            }
            if self.is_cut(node, apex) {
                let reason = "a DNAME where the zone is cut by NS records: remove one of them";
                return Err(self.culprit(dname, reason));
            }
        }
        Ok(())
    }

    /// The records must be sorted.
    pub(super) fn build(self, apex: Box<[u8]>) -> Result<Zone, ZoneFileError> {
        let soa = self
            .records
            .iter()
            .find(|record| record.rtype == Rtype::SOA)
            .ok_or(ZoneFileError::NO_SOA)?;
        let minimum = self.rdata(soa).last_chunk().map_or(0, |octets| u32::from_be_bytes(*octets));
        let mut negative_soa = Vec::new();
        push_prebuilt(&mut negative_soa, soa.rtype.to_int(), soa.ttl.min(minimum), self.rdata(soa));

        let (mut arena, mut starts) = (Vec::new(), Vec::new());
        let (mut has_cuts, mut has_dnames, mut has_wildcards) = (false, false, false);
        let mut chain = Vec::new();
        for node in self.nodes() {
            let name = self.owner(&node[0]);
            let is_cut = self.is_cut(node, &apex);
            let has_dname = node.iter().any(|record| record.rtype == Rtype::DNAME);
            has_cuts |= is_cut;
            has_dnames |= has_dname;
            has_wildcards |= name.starts_with(b"\x01*");
            starts.push(arena.len());
            if node.iter().any(|record| record.rtype == Rtype::NSEC) {
                chain.push((name, arena.len()));
            }
            let flags = (u8::from(is_cut) * FLAG_CUT) | (u8::from(has_dname) * FLAG_DNAME);
            self.push_node(&mut arena, name, flags, node)?;
        }
        for name in self.empty_non_terminals(&apex) {
            starts.push(arena.len());
            self.push_node(&mut arena, name, 0, &[])?;
        }
        if u32::try_from(arena.len()).is_err() {
            return Err(ZoneFileError::Zone("the zone needs more than 4 GiB: split it"));
        }
        chain.sort_by(|(left, _), (right, _)| canonical_cmp(left, right));
        Ok(Zone {
            // They fit, because the arena does.
            chain: chain.into_iter().map(|(_, start)| start as u32).collect(),
            slots: table(&arena, &starts),
            apex,
            arena: arena.into_boxed_slice(),
            negative_soa: negative_soa.into_boxed_slice(),
            has_wildcards,
            has_cuts,
            has_dnames,
            record_count: self.records.len(),
        })
    }

    /// See [`super::data::Node`] for the form.
    fn push_node(
        &self,
        arena: &mut Vec<u8>,
        name: &[u8],
        flags: u8,
        node: &[DraftRecord],
    ) -> Result<(), ZoneFileError> {
        arena.push(u8::try_from(name.len()).expect("a name has at most 255 octets"));
        arena.extend_from_slice(name);
        let sets = || node.chunk_by(|left, right| left.rtype == right.rtype);
        let count = u16::try_from(sets().count()).expect("there are 65,536 types, SOA is one");
        arena.push(flags);
        arena.extend_from_slice(&count.to_be_bytes());
        for set in sets() {
            let octets: usize =
                set.iter().map(|record| PREBUILT_HEADER + usize::from(record.rdata_length)).sum();
            if octets > MAX_RRSET {
                return Err(self.culprit(&set[0], "the RRset does not fit in a message"));
            }
            // Both fit: the octets were just bounded, and each record has twelve or more.
            arena.extend_from_slice(&set[0].rtype.to_int().to_be_bytes());
            arena.extend_from_slice(&(set.len() as u16).to_be_bytes());
            arena.extend_from_slice(&(octets as u32).to_be_bytes());
            let ttl = set.iter().map(|record| record.ttl).min().unwrap_or(0);
            for record in set {
                push_prebuilt(arena, record.rtype.to_int(), ttl, self.rdata(record));
            }
        }
        Ok(())
    }

    /// Names between the apex and an owner that own nothing: they exist too (RFC 4592, section 2.2.2).
    fn empty_non_terminals(&self, apex: &[u8]) -> BTreeSet<&[u8]> {
        let mut empty = BTreeSet::new();
        for node in self.nodes() {
            for ancestor in suffixes(self.owner(&node[0])).skip(1) {
                let is_owner =
                    || self.records.binary_search_by(|one| self.owner(one).cmp(ancestor)).is_ok();
                if ancestor.len() <= apex.len() || empty.contains(ancestor) || is_owner() {
                    break;
                }
                empty.insert(ancestor);
            }
        }
        empty
    }

    /// The sorted records, owner by owner.
    fn nodes(&self) -> impl Iterator<Item = &[DraftRecord]> {
        self.records.chunk_by(|left, right| self.owner(left) == self.owner(right))
    }

    /// True at a zone cut: NS records below the apex (RFC 9499, section 7).
    fn is_cut(&self, node: &[DraftRecord], apex: &[u8]) -> bool {
        self.owner(&node[0]) != apex && node.iter().any(|record| record.rtype == Rtype::NS)
    }

    fn owner(&self, record: &DraftRecord) -> &[u8] {
        owner(&self.pool, record)
    }

    fn rdata(&self, record: &DraftRecord) -> &[u8] {
        rdata(&self.pool, record)
    }

    fn culprit(&self, record: &DraftRecord, reason: &'static str) -> ZoneFileError {
        ZoneFileError::Record {
            line: record.line as usize,
            owner: presentation(self.owner(record)),
            rtype: record.rtype.to_string(),
            reason,
        }
    }
}

fn owner<'p>(pool: &'p [u8], record: &DraftRecord) -> &'p [u8] {
    let at = record.owner_at as usize;
    &pool[at..at + usize::from(record.owner_length)]
}

fn rdata<'p>(pool: &'p [u8], record: &DraftRecord) -> &'p [u8] {
    let at = record.owner_at as usize + usize::from(record.owner_length);
    &pool[at..at + usize::from(record.rdata_length)]
}

fn table(arena: &[u8], starts: &[usize]) -> Box<[Slot]> {
    let size = (starts.len() * 2).next_power_of_two().max(2);
    let mut slots = vec![Slot { tag: 0, at: EMPTY }; size].into_boxed_slice();
    for &start in starts {
        let name = &arena[start + 1..start + 1 + usize::from(arena[start])];
        let hash = hash(name);
        let mut place = hash as usize & (size - 1);
        while slots[place].at != EMPTY {
            place = (place + 1) & (size - 1);
        }
        slots[place] = Slot { tag: (hash >> 32) as u32, at: start as u32 };
    }
    slots
}
