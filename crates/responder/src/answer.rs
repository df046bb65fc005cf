//! The answer to one query: a pure function of zone and octets.

use dnslab_wire::Transport;

use crate::request::{ClientEdns, HEADER, OPCODE, Request, Unanswerable};
use crate::zone::{Lookup, Node, RECORD_HEADER, Zone, suffixes};

/// The largest datagram that is sent and the payload size that is announced, octets: what passes
/// without fragments nearly everywhere (DNS Flag Day 2020, and BIND's and Knot's default).
pub const LARGEST_DATAGRAM: usize = 1232;

/// The largest datagram for a client without EDNS (RFC 1035, section 2.3.4).
const CLASSIC_DATAGRAM: usize = 512;

/// Longest chain of CNAMEs that is followed; a loop ends here too.
const LONGEST_CHAIN: usize = 16;

/// Padded answers are this long, or a multiple of it, octets (RFC 8467, section 4.1).
const PADDING_BLOCK: usize = 468;

/// Response codes that are given (RFC 1035, section 4.1.1; 16 is BADVERS, RFC 6891, section 9).
mod rcode {
    /// No error.
    pub(super) const NOERROR: u16 = 0;
    /// The query is broken.
    pub(super) const FORMERR: u16 = 1;
    /// The name does not exist.
    pub(super) const NXDOMAIN: u16 = 3;
    /// The opcode is not implemented.
    pub(super) const NOTIMP: u16 = 4;
    /// Not this server's zone, or not served to anybody.
    pub(super) const REFUSED: u16 = 5;
    /// The EDNS version is not known.
    pub(super) const BADVERS: u16 = 16;
}

/// Type numbers that are treated apart (IANA DNS parameters).
mod rtype {
    /// Host address.
    pub(super) const A: u16 = 1;
    /// Authoritative server.
    pub(super) const NS: u16 = 2;
    /// Alias.
    pub(super) const CNAME: u16 = 5;
    /// Host address, IPv6.
    pub(super) const AAAA: u16 = 28;
    /// Delegation signer: lives on the parent's side of a zone cut.
    pub(super) const DS: u16 = 43;
    /// First of the transfers and mail types that are refused: IXFR (251), AXFR, MAILB, MAILA.
    pub(super) const IXFR: u16 = 251;
    /// Last of them.
    pub(super) const MAILA: u16 = 254;
    /// All types.
    pub(super) const ANY: u16 = 255;
}

/// Class IN.
const CLASS_IN: u16 = 1;

/// What a query of type ANY gets instead of everything: `HINFO "RFC8482" ""` (RFC 8482,
/// section 4.2), as a prebuilt record with a TTL of an hour.
const MINIMAL_ANY: &[u8] = b"\xc0\x0c\0\x0d\0\x01\0\0\x0e\x10\0\x09\x07RFC8482\0";

/// Octets of the OPT record that an answer carries.
const OPT_LENGTH: usize = 11;

/// Writes the answer to `query` into `out` and returns its length, without input, output, clock or
/// allocation.
///
/// `out` bounds the answer, and so does the client on [`Transport::Udp`]: an RRset that does not fit
/// is left out, and TC set if it had to be there (RFC 2181, section 9). Give it [`LARGEST_DATAGRAM`]
/// octets for UDP and 65,535 otherwise. `None` means that nothing must be sent: the message is too
/// short for a header, or is itself a response; or `out` has less than 512 octets.
///
/// ```
/// use dnslab_responder::{Zone, answer};
/// use dnslab_wire::{Query, QueryOptions, Response, Transport};
/// use domain::base::{Name, iana::Rtype};
///
/// let text = "$ORIGIN example.\n@ 60 IN SOA ns host 1 60 60 60 5\nwww 60 A 192.0.2.1\n";
/// let zone = Zone::parse(text.as_bytes(), None).unwrap();
/// let name: Name<Vec<u8>> = "www.example.".parse().unwrap();
/// let query = Query::new(&name, Rtype::A, &QueryOptions::default()).unwrap();
/// let mut out = [0; 512];
/// let length = answer(&zone, query.octets(), Transport::Udp, &mut out).unwrap();
/// let response = Response::parse(&out[..length]).unwrap();
/// assert_eq!((response.rcode, response.answers), (0, 1));
/// ```
#[must_use]
pub fn answer(zone: &Zone, query: &[u8], transport: Transport, out: &mut [u8]) -> Option<usize> {
    if out.len() < CLASSIC_DATAGRAM {
        return None;
    }
    let request = match Request::parse(query) {
        Ok(request) => request,
        Err(Unanswerable::Silent) => return None,
        Err(Unanswerable::FormatError) => return Some(bare(query, rcode::FORMERR, out)),
        Err(Unanswerable::NotImplemented) => return Some(bare(query, rcode::NOTIMP, out)),
    };
    let mut reply = Reply::new(&request, transport, out);
    let outcome = match request.edns {
        Some(edns) if edns.version > 0 => Outcome::code(rcode::BADVERS),
        _ if request.opcode_bits != 0 => Outcome::code(rcode::NOTIMP),
        _ if request.qclass != CLASS_IN => Outcome::code(rcode::REFUSED),
        _ if (rtype::IXFR..=rtype::MAILA).contains(&request.qtype) => Outcome::code(rcode::REFUSED),
        _ => reply.fill(zone, &request),
    };
    Some(reply.finish(query, outcome, request.edns))
}

/// An answer of a header alone, for a query whose question cannot be given back.
fn bare(query: &[u8], rcode: u16, out: &mut [u8]) -> usize {
    out[..HEADER].fill(0);
    out[..2].copy_from_slice(&query[..2]);
    out[2] = 0x80 | query[2] & (OPCODE | 0x01);
    out[3] = rcode as u8;
    HEADER
}

/// What the header says in the end.
#[derive(Clone, Copy)]
struct Outcome {
    /// Response code, with the four bits of the header and the eight of the OPT record.
    rcode: u16,
    /// AA: the first owner's data are this zone's own (RFC 1035, section 4.1.1).
    authoritative: bool,
    /// TC: something that had to be there did not fit.
    truncated: bool,
}

impl Outcome {
    /// A code without any record.
    fn code(rcode: u16) -> Self {
        Self { rcode, authoritative: false, truncated: false }
    }
}

/// The answer has no room for a record that it must carry.
struct Full;

/// A section of the message, as an index of [`Reply::counts`].
#[derive(Clone, Copy)]
enum Section {
    /// Answer section.
    Answer,
    /// Authority section.
    Authority,
    /// Additional section, without the OPT record.
    Additional,
}

/// An answer being written.
struct Reply<'o> {
    /// Where to.
    out: &'o mut [u8],
    /// Octets written.
    at: usize,
    /// Octets that may be written, room for the OPT record already taken off.
    limit: usize,
    /// Records in the answer, authority and additional section.
    counts: [u16; 3],
    /// The name asked for lies at or below a zone cut, so the answer is not authoritative.
    is_referral: bool,
    /// On an encrypted transport padding hides something.
    is_encrypted: bool,
}

/// A name in the answer that records are being written for: QNAME, or the target of a CNAME.
struct Owner {
    /// Lower-cased wire form.
    name: [u8; 255],
    /// Its length.
    length: usize,
    /// Where the message has it, uncompressed.
    at: usize,
}

impl<'o> Reply<'o> {
    /// Begins with the question as it came, so in the client's case.
    fn new(request: &Request<'_>, transport: Transport, out: &'o mut [u8]) -> Self {
        let most = match (transport, request.edns) {
            (Transport::Udp, None) => CLASSIC_DATAGRAM,
            (Transport::Udp, Some(edns)) => {
                usize::from(edns.payload_size).clamp(CLASSIC_DATAGRAM, LARGEST_DATAGRAM)
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
            is_referral: false,
            is_encrypted: transport.is_encrypted(),
        }
    }

    /// Writes what the zone has for the question, as far as it fits. What was written before
    /// something did not fit stays: whole RRsets, without which the RCODE would not be that of the
    /// name asked for (NXDOMAIN after a CNAME).
    fn fill(&mut self, zone: &Zone, request: &Request<'_>) -> Outcome {
        let mut rcode = rcode::NOERROR;
        let truncated = self.follow(zone, request, &mut rcode).is_err();
        let authoritative = rcode != rcode::REFUSED && !self.is_referral;
        Outcome { rcode, authoritative, truncated }
    }

    /// Writes what the zone has for the question and the CNAMEs that it leads to (RFC 1034,
    /// section 4.3.2). `rcode` is right also when something does not fit.
    fn follow(&mut self, zone: &Zone, request: &Request<'_>, rcode: &mut u16) -> Result<(), Full> {
        let mut owner = Owner::new(request.qname(), HEADER);
        for hop in 0..LONGEST_CHAIN {
            let node = match zone.lookup(owner.name(), request.qtype == rtype::DS) {
                Lookup::Found(node) => node,
                Lookup::OutOfZone if hop == 0 => {
                    *rcode = rcode::REFUSED;
                    break;
                }
                // The target of a CNAME in another zone is for the resolver to look up.
                Lookup::OutOfZone => break,
                Lookup::NameError => {
                    *rcode = rcode::NXDOMAIN;
                    self.push_negative(zone, request)?;
                    break;
                }
                Lookup::Delegated { cut, cut_length } => {
                    self.is_referral = hop == 0;
                    self.push_referral(zone, &owner, cut, cut_length)?;
                    break;
                }
            };
            if request.qtype == rtype::ANY && !node.is_empty() {
                self.push(Section::Answer, MINIMAL_ANY, 1, owner.at)?;
                break;
            }
            if let Some(set) = node.rrset(request.qtype) {
                self.push(Section::Answer, set.records, set.count, owner.at)?;
                break;
            }
            let Some(alias) = node.rrset(rtype::CNAME) else {
                self.push_negative(zone, request)?;
                break;
            };
            let target_at = self.push(Section::Answer, alias.records, 1, owner.at)? + RECORD_HEADER;
            owner = Owner::new(&self.out[target_at..self.at], target_at);
        }
        Ok(())
    }

    /// The SOA record that makes a negative answer cacheable (RFC 2308, section 3).
    fn push_negative(&mut self, zone: &Zone, request: &Request<'_>) -> Result<(), Full> {
        let apex_at = HEADER + request.qname().len() - zone.apex_octets().len();
        self.push(Section::Authority, zone.negative_soa(), 1, apex_at)?;
        Ok(())
    }

    /// The NS records of a zone cut, and the addresses that this zone has for them (RFC 9471): first
    /// those of servers in the delegated domain, which nobody can find otherwise (section 3.1), then
    /// the others as far as they fit (section 3.2).
    fn push_referral(
        &mut self,
        zone: &Zone,
        owner: &Owner,
        cut: Node<'_>,
        cut_length: usize,
    ) -> Result<(), Full> {
        let Some(servers) = cut.rrset(rtype::NS) else { return Ok(()) };
        let cut_at = owner.at + owner.length - cut_length;
        let first = self.push(Section::Authority, servers.records, servers.count, cut_at)?;
        let cut_name = &owner.name()[owner.length - cut_length..];
        for in_domain in [true, false] {
            let mut at = first;
            for record in records(servers.records) {
                let server = Owner::new(&record[RECORD_HEADER..], at + RECORD_HEADER);
                at += record.len();
                if suffixes(server.name()).any(|suffix| suffix == cut_name) != in_domain {
                    continue;
                }
                let Some(node) = zone.node(server.name()) else { continue };
                for set in [rtype::A, rtype::AAAA].into_iter().filter_map(|it| node.rrset(it)) {
                    let pushed = self.push(Section::Additional, set.records, set.count, server.at);
                    if in_domain {
                        pushed?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Appends prebuilt records whose owner stands at `owner_at`; returns where they begin.
    fn push(
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

    /// Writes the OPT record and the header; returns the length of the message.
    fn finish(self, query: &[u8], outcome: Outcome, edns: Option<ClientEdns>) -> usize {
        let (out, mut at) = (self.out, self.at);
        let [answers, authorities, mut additionals] = self.counts;
        if let Some(edns) = edns {
            let [size_high, size_low] = (LARGEST_DATAGRAM as u16).to_be_bytes();
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
        out[3] = (outcome.rcode & 0x0f) as u8;
        for (place, count) in [1, answers, authorities, additionals].into_iter().enumerate() {
            out[4 + 2 * place..6 + 2 * place].copy_from_slice(&count.to_be_bytes());
        }
        at
    }
}

/// Adds the Padding option to the OPT record that ends at `end`; returns the new end. An answer
/// that cannot be made a whole number of blocks long stays as it is.
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
    /// The wire name at the start of `octets`, which stands at `at` in the message.
    fn new(octets: &[u8], at: usize) -> Self {
        let length = octets.len().min(255);
        let mut name = [0; 255];
        name[..length].copy_from_slice(&octets[..length]);
        // Lengths of labels are below 64, so below `A`.
        name[..length].make_ascii_lowercase();
        Self { name, length, at }
    }

    /// Lower-cased wire form.
    fn name(&self) -> &[u8] {
        &self.name[..self.length]
    }
}

/// Cuts prebuilt records apart.
fn records(mut prebuilt: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let length = prebuilt.get(RECORD_HEADER - 2..RECORD_HEADER)?;
        let length = RECORD_HEADER + usize::from(u16::from_be_bytes([length[0], length[1]]));
        let (record, rest) = prebuilt.split_at_checked(length)?;
        prebuilt = rest;
        Some(record)
    })
}

#[cfg(test)]
mod tests;
