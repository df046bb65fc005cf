//! Writes an answer: sections, names and bounds, without knowing what belongs in it.

use dnslab_wire::{ClientEdns, HEADER, OPCODE, Request, Transport, rtype};

use super::outcome::{CLASSIC_DATAGRAM, MAX_DATAGRAM, OPT_LENGTH, Outcome, PADDING_BLOCK};
use crate::zone::{Node, RECORD_HEADER, RrSet};

/// The answer has no room for a record that it must carry.
pub(super) struct Full;

/// A section of the message, as an index of [`Reply::counts`].
#[derive(Clone, Copy)]
pub(super) enum Section {
    Answer,
    Authority,
    /// Without the OPT record.
    Additional,
}

pub(super) struct Reply<'o> {
    out: &'o mut [u8],
    /// Octets written.
    at: usize,
    /// Octets that may be written, without room for the OPT record.
    limit: usize,
    /// Records in the answer, authority and additional section.
    counts: [u16; 3],
    is_encrypted: bool,
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
        let most = match (transport, request.edns) {
            (Transport::Udp, None) => CLASSIC_DATAGRAM,
            (Transport::Udp, Some(edns)) => {
                usize::from(edns.payload_size).clamp(CLASSIC_DATAGRAM, MAX_DATAGRAM)
            }
            _ => usize::from(u16::MAX),
        };
        let opt = if request.edns.is_some() { OPT_LENGTH } else { 0 };
        let question_end = HEADER + request.question.len();
        let limit = most.min(out.len()) - opt;
        // At most 12 + 259 octets, and there are 512 at least.
        out[HEADER..question_end].copy_from_slice(request.question);
        Self {
            out,
            at: question_end,
            limit,
            counts: [0; 3],
            is_encrypted: transport.is_encrypted(),
        }
    }

    /// Appends prebuilt records whose owner is at `owner_at`; returns where they begin.
    pub(super) fn push(
        &mut self,
        section: Section,
        prebuilt: &[u8],
        count: u16,
        owner_at: usize,
    ) -> Result<usize, Full> {
        let (start, end) = (self.at, self.at + prebuilt.len());
        // A pointer reaches the first 16,384 octets (RFC 1035, section 4.1.4).
        if end > self.limit || owner_at >= 0x4000 {
            return Err(Full);
        }
        self.out[start..end].copy_from_slice(prebuilt);
        if owner_at != HEADER {
            let pointer = (0xc000 | owner_at as u16).to_be_bytes();
            let mut at = start;
            for record in records(prebuilt) {
                self.out[at..at + 2].copy_from_slice(&pointer);
                at += record.len();
            }
        }
        self.at = end;
        self.counts[section as usize] += count;
        Ok(start)
    }

    /// Appends an RRset whose owner is at `owner_at`, and its signatures from this node; returns where the
    /// RRset begins.
    pub(super) fn push_set(
        &mut self,
        section: Section,
        (rtype, set): (u16, RrSet<'_>),
        signatures_of: Option<Node<'_>>,
        owner_at: usize,
    ) -> Result<usize, Full> {
        let start = self.push(section, set.records, set.count, owner_at)?;
        if let Some(node) = signatures_of {
            self.push_signatures(section, node, rtype, owner_at)?;
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
        for signature in records(signatures.records) {
            // The type covered comes first (RFC 4034, section 3.1).
            if signature[RECORD_HEADER..].starts_with(&rtype.to_be_bytes()) {
                self.push(section, signature, 1, owner_at)?;
            }
        }
        Ok(())
    }

    /// Appends an NSEC record with its signatures. Its owner's name is written out up to the apex, which is
    /// at `apex_at`.
    pub(super) fn push_nsec(
        &mut self,
        (owner, node): (&[u8], Node<'_>),
        apex: &[u8],
        apex_at: usize,
    ) -> Result<(), Full> {
        let Some(nsec) = node.rrset(rtype::NSEC) else { return Ok(()) };
        let before_apex = &owner[..owner.len() - apex.len()];
        let start = self.at;
        let end = start + before_apex.len() + nsec.records.len();
        if end > self.limit || apex_at >= 0x4000 {
            return Err(Full);
        }
        let owner_at = if before_apex.is_empty() { apex_at } else { start };
        self.out[start..start + before_apex.len()].copy_from_slice(before_apex);
        let record = &mut self.out[start + before_apex.len()..end];
        record.copy_from_slice(nsec.records);
        record[..2].copy_from_slice(&(0xc000 | apex_at as u16).to_be_bytes());
        self.at = end;
        self.counts[Section::Authority as usize] += 1;
        self.push_signatures(Section::Authority, node, rtype::NSEC, owner_at)
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
        let (prefix, target) = (owner.length - length, &dname[RECORD_HEADER..]);
        let name_length = prefix + target.len();
        if name_length > 255 {
            return Ok(None);
        }
        let name_at = self.at + RECORD_HEADER;
        let end = name_at + name_length;
        if end > self.limit || owner.at >= 0x4000 {
            return Err(Full);
        }
        let record = &mut self.out[self.at..name_at];
        // Class and TTL are the DNAME's.
        record.copy_from_slice(&dname[..RECORD_HEADER]);
        record[..2].copy_from_slice(&(0xc000 | owner.at as u16).to_be_bytes());
        record[2..4].copy_from_slice(&rtype::CNAME.to_be_bytes());
        record[10..].copy_from_slice(&(name_length as u16).to_be_bytes());
        // As the client, or the zone, wrote it.
        self.out.copy_within(owner.at..owner.at + prefix, name_at);
        self.out[name_at + prefix..end].copy_from_slice(target);
        self.at = end;
        self.counts[Section::Answer as usize] += 1;
        Ok(Some(Owner::new(&self.out[name_at..end], name_at)))
    }

    pub(super) fn has_name(&self, passed: Passed, other: &Owner) -> bool {
        let at = usize::from(passed.at);
        self.out[at..at + usize::from(passed.length)].eq_ignore_ascii_case(other.name())
    }

    /// The name in the data of the last record, which begins at `record_at`.
    pub(super) fn target(&self, record_at: usize) -> Owner {
        let at = record_at + RECORD_HEADER;
        let length = u16::from_be_bytes([self.out[at - 2], self.out[at - 1]]);
        Owner::new(&self.out[at..at + usize::from(length)], at)
    }

    /// Writes the OPT record and the header; returns the length of the message.
    pub(super) fn finish(self, query: &[u8], outcome: Outcome, edns: Option<ClientEdns>) -> usize {
        let (out, mut at) = (self.out, self.at);
        let [answers, authorities, mut additionals] = self.counts;
        if let Some(edns) = edns {
            let [size_high, size_low] = (MAX_DATAGRAM as u16).to_be_bytes();
            let extended = (outcome.rcode >> 4) as u8;
            let flags = if edns.dnssec_ok { 0x80 } else { 0 };
            let opt = [0, 0, 41, size_high, size_low, extended, 0, flags, 0, 0, 0];
            out[at..at + OPT_LENGTH].copy_from_slice(&opt);
            at += OPT_LENGTH;
            if edns.is_padded && self.is_encrypted {
                at = pad(out, at);
            }
            additionals += 1;
        }
        out[..2].copy_from_slice(&query[..2]);
        // QR; opcode and RD as they came (RFC 1035, section 4.1.1).
        out[2] = 0x80 | query[2] & (OPCODE | 0x01);
        out[2] |= if outcome.authoritative { 0x04 } else { 0 };
        out[2] |= if outcome.truncated { 0x02 } else { 0 };
        out[3] = (outcome.rcode & 0x0f) as u8 | outcome.recursive_bits;
        for (place, count) in [1, answers, authorities, additionals].into_iter().enumerate() {
            out[4 + 2 * place..6 + 2 * place].copy_from_slice(&count.to_be_bytes());
        }
        at
    }
}

/// Adds the Padding option to the OPT record that ends at `end`; returns the new end. An answer without room
/// for a whole number of blocks stays as it is.
fn pad(out: &mut [u8], end: usize) -> usize {
    let padded = (end + 4).next_multiple_of(PADDING_BLOCK);
    if padded > out.len() {
        return end;
    }
    out[end..padded].fill(0);
    // Less than a block, so both lengths fit.
    let (option, padding) = ((padded - end) as u16, (padded - end - 4) as u16);
    out[end - 2..end].copy_from_slice(&option.to_be_bytes());
    out[end + 1] = 12;
    out[end + 2..end + 4].copy_from_slice(&padding.to_be_bytes());
    padded
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

pub(super) fn records(mut prebuilt: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let length = prebuilt.get(RECORD_HEADER - 2..RECORD_HEADER)?;
        let length = RECORD_HEADER + usize::from(u16::from_be_bytes([length[0], length[1]]));
        let (record, rest) = prebuilt.split_at_checked(length)?;
        prebuilt = rest;
        Some(record)
    })
}
