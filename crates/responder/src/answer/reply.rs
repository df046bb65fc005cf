//! Writes the records of an answer, without knowing what belongs in it.

use dnslab_wire::{
    Full, PREBUILT_HEADER, Request, ResponseHeader, ResponseOpt, ResponseWriter, Section,
    Transport, prebuilt_records, rtype,
};

use super::outcome::{MAX_DATAGRAM, PADDING_BLOCK};
use crate::zone::{NamedNode, Node, RrSet};

pub(super) struct Reply<'o> {
    writer: ResponseWriter<'o>,
}

/// A name in the answer that records are being written for: QNAME, or the target of a CNAME.
pub(super) struct Owner {
    /// Lower-cased wire form.
    name: [u8; 255],
    pub(super) length: usize,
    /// Where the message has it, uncompressed.
    pub(super) at: usize,
}

/// Where the answer has a name, uncompressed. The default is no name.
#[derive(Clone, Copy, Default)]
pub(super) struct Passed {
    at: u16,
    length: u8,
}

impl<'o> Reply<'o> {
    /// Begins with the question as it came, in the client's case.
    pub(super) fn new(request: &Request<'_>, transport: Transport, out: &'o mut [u8]) -> Self {
        let limit = match transport {
            Transport::Udp => request.datagram_limit(MAX_DATAGRAM as u16),
            _ => usize::from(u16::MAX),
        };
        let opt = request.edns.map(|edns| ResponseOpt {
            payload_size: MAX_DATAGRAM as u16,
            dnssec_ok: edns.dnssec_ok,
            cookies: None,
            padding_block: match edns.is_padded && transport.is_encrypted() {
                true => PADDING_BLOCK,
                false => 0,
            },
        });
        Self { writer: ResponseWriter::new(request, limit, opt, out) }
    }

    /// Appends an RRset whose owner is at `owner_at`; returns where it begins.
    pub(super) fn push(
        &mut self,
        section: Section,
        set: RrSet<'_>,
        owner_at: usize,
    ) -> Result<usize, Full> {
        self.writer.push_prebuilt(section, set.records, set.count, owner_at)
    }

    /// Appends one prebuilt record whose owner is at `owner_at`.
    pub(super) fn push_record(
        &mut self,
        section: Section,
        record: &[u8],
        owner_at: usize,
    ) -> Result<(), Full> {
        self.writer.push_prebuilt(section, record, 1, owner_at).map(drop)
    }

    /// Appends an RRset whose owner is at `owner_at`, and its signatures from this node; returns where the
    /// RRset begins.
    pub(super) fn push_set(
        &mut self,
        section: Section,
        set: RrSet<'_>,
        signatures_of: Option<Node<'_>>,
        owner_at: usize,
    ) -> Result<usize, Full> {
        let start = self.push(section, set, owner_at)?;
        if let Some(node) = signatures_of {
            self.push_signatures(section, node, set.rtype, owner_at)?;
        }
        Ok(start)
    }

    pub(super) fn push_signatures(
        &mut self,
        section: Section,
        node: Node<'_>,
        rtype: u16,
        owner_at: usize,
    ) -> Result<(), Full> {
        let Some(signatures) = node.rrset(rtype::RRSIG) else { return Ok(()) };
        for signature in prebuilt_records(signatures.records) {
            // The type covered comes first (RFC 4034, section 3.1).
            if signature[PREBUILT_HEADER..].starts_with(&rtype.to_be_bytes()) {
                self.writer.push_prebuilt(section, signature, 1, owner_at)?;
            }
        }
        Ok(())
    }

    /// Appends an NSEC record with its signatures. Its owner's name is written out up to the apex, which is
    /// at `apex_at`.
    pub(super) fn push_nsec(
        &mut self,
        nsec: NamedNode<'_>,
        apex: &[u8],
        apex_at: usize,
    ) -> Result<(), Full> {
        let Some(set) = nsec.node.rrset(rtype::NSEC) else { return Ok(()) };
        let before_apex = &nsec.name[..nsec.name.len() - apex.len()];
        let (start, pointer) = (self.writer.end(), self.writer.pointer_to(apex_at)?);
        let octets = self.writer.next_octets(before_apex.len() + set.records.len())?;
        let (owner, record) = octets.split_at_mut(before_apex.len());
        owner.copy_from_slice(before_apex);
        record.copy_from_slice(set.records);
        record[..2].copy_from_slice(&pointer);
        self.writer.count(Section::Authority, 1);
        let owner_at = if before_apex.is_empty() { apex_at } else { start };
        self.push_signatures(Section::Authority, nsec.node, rtype::NSEC, owner_at)
    }

    /// Appends the CNAME record that a DNAME, a prebuilt record, makes for a name: the part of the name
    /// before the DNAME's owner, which is `length` octets long, and then the DNAME's target (RFC 6672,
    /// sections 2.2 and 3.1). Returns the new name; `None` if it is longer than 255 octets.
    pub(super) fn push_synthesized(
        &mut self,
        owner: &Owner,
        length: usize,
        dname: &[u8],
    ) -> Result<Option<Owner>, Full> {
        let (prefix, target) = (owner.length - length, &dname[PREBUILT_HEADER..]);
        let name_length = prefix + target.len();
        if name_length > 255 {
            return Ok(None);
        }
        let pointer = self.writer.pointer_to(owner.at)?;
        let name_at = self.writer.end() + PREBUILT_HEADER;
        let octets = self.writer.next_octets(PREBUILT_HEADER + name_length)?;
        // Class and TTL are the DNAME's.
        octets[..PREBUILT_HEADER].copy_from_slice(&dname[..PREBUILT_HEADER]);
        octets[..2].copy_from_slice(&pointer);
        octets[2..4].copy_from_slice(&rtype::CNAME.to_be_bytes());
        octets[10..12].copy_from_slice(&(name_length as u16).to_be_bytes());
        octets[PREBUILT_HEADER + prefix..].copy_from_slice(target);
        // As the client, or the zone, wrote it.
        self.writer.repeat(owner.at..owner.at + prefix, name_at);
        self.writer.count(Section::Answer, 1);
        Ok(Some(Owner::new(&self.writer.octets()[name_at..name_at + name_length], name_at)))
    }

    pub(super) fn has_name(&self, passed: Passed, other: &Owner) -> bool {
        let at = usize::from(passed.at);
        self.writer.octets()[at..at + usize::from(passed.length)].eq_ignore_ascii_case(other.name())
    }

    /// The name in the data of the last record, which begins at `record_at`.
    pub(super) fn target(&self, record_at: usize) -> Owner {
        let (octets, at) = (self.writer.octets(), record_at + PREBUILT_HEADER);
        let length = u16::from_be_bytes([octets[at - 2], octets[at - 1]]);
        Owner::new(&octets[at..at + usize::from(length)], at)
    }

    /// Writes the OPT record and the header; returns the length of the message.
    pub(super) fn finish(self, query: &[u8], header: ResponseHeader) -> usize {
        self.writer.finish(query, header)
    }
}

impl Owner {
    /// The wire name `octets`, which is at `at` in the message.
    pub(super) fn new(octets: &[u8], at: usize) -> Self {
        let length = octets.len().min(255);
        let mut name = [0; 255];
        name[..length].copy_from_slice(&octets[..length]);
        // Lengths of labels are below 64, so below `A`.
        name[..length].make_ascii_lowercase();
        Self { name, length, at }
    }

    /// A message has at most 65,535 octets, and a name 255.
    pub(super) fn passed(&self) -> Passed {
        Passed { at: self.at as u16, length: self.length as u8 }
    }

    pub(super) fn name(&self) -> &[u8] {
        &self.name[..self.length]
    }

    /// Where the message has the ancestor of this length: it is the end of the name.
    pub(super) fn ancestor_at(&self, length: usize) -> usize {
        self.at + self.length - length
    }
}
