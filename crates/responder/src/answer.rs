//! The answer to one query: a pure function of zones and octets.

mod outcome;
mod reply;

use dnslab_wire::{
    CLASSIC_DATAGRAM, Full, HEADER, PREBUILT_HEADER, Request, ResponseHeader, Section, Transport,
    prebuilt_records, rcode, reject, rtype,
};

pub use self::outcome::MAX_DATAGRAM;
use self::outcome::{AD, RA, seen_by};
use self::reply::{Owner, Passed, Reply};
use crate::zone::{AncestorNode, Lookup, Node, Zone, Zones, suffixes};

/// Longest chain of CNAMEs and DNAMEs that is followed.
const MAX_CHAIN: usize = 16;

/// The answer to type ANY: `HINFO "RFC8482" ""` (RFC 8482, section 4.2), as a prebuilt record with a TTL of
/// an hour.
const MINIMAL_ANY: &[u8] = b"\xc0\x0c\0\x0d\0\x01\0\0\x0e\x10\0\x09\x07RFC8482\0";

/// Writes the answer to `query` into `out` and returns its length, without input, output, clock or
/// allocation.
///
/// `out` bounds the answer; over [`Transport::Udp`] the client does too. An RRset that does not fit is left
/// out, and TC is set if it had to be there (RFC 2181, section 9). Give it [`MAX_DATAGRAM`] octets for UDP
/// and 65,535 otherwise. `None` means that nothing must be sent: the message is shorter than a header or
/// itself a response, or `out` has less than 512 octets.
///
/// ```
/// use dnslab_responder::{Zone, Zones, answer};
/// use dnslab_wire::{Query, QueryOptions, Response, Transport};
/// use domain::base::{Name, iana::Rtype};
///
/// let text = "$ORIGIN example.\n@ 60 IN SOA ns host 1 60 60 60 5\nwww 60 A 192.0.2.1\n";
/// let zones = Zones::authoritative(Zone::parse(text.as_bytes(), None).unwrap());
/// let name: Name<Vec<u8>> = "www.example.".parse().unwrap();
/// let query = Query::new(&name, Rtype::A, &QueryOptions::default()).unwrap();
/// let mut out = [0; 512];
/// let length = answer(&zones, query.octets(), Transport::Udp, &mut out).unwrap();
/// let response = Response::parse(&out[..length]).unwrap();
/// assert_eq!((response.rcode, response.answers), (0, 1));
/// ```
#[must_use]
pub fn answer(zones: &Zones, query: &[u8], transport: Transport, out: &mut [u8]) -> Option<usize> {
    if out.len() < CLASSIC_DATAGRAM {
        return None;
    }
    let request = match Request::parse(query) {
        Ok(request) => request,
        Err(reason) => return reject(query, reason, out),
    };
    let reply = Reply::new(&request, transport, out);
    Some(match request.refusal() {
        None => Search::new(zones, &request, reply).fill(query),
        Some(rcode) => {
            reply.finish(query, seen_by(ResponseHeader::code(rcode), zones.role(), query))
        }
    })
}

struct Search<'z, 'q, 'o> {
    zones: &'z Zones,
    request: &'q Request<'q>,
    reply: Reply<'o>,
    /// The name asked for is at or below a zone cut, so the answer is not authoritative.
    is_referral: bool,
    /// All zones that the answer came from are signed.
    is_signed: bool,
    /// Names that the answer has gone through.
    passed: [Passed; MAX_CHAIN],
    /// Names whose DNAME records the answer has.
    redirected: [Passed; MAX_CHAIN],
}

impl<'z, 'q, 'o> Search<'z, 'q, 'o> {
    fn new(zones: &'z Zones, request: &'q Request<'q>, reply: Reply<'o>) -> Self {
        Self {
            zones,
            request,
            reply,
            is_referral: false,
            is_signed: true,
            passed: [Passed::default(); MAX_CHAIN],
            redirected: [Passed::default(); MAX_CHAIN],
        }
    }

    /// Writes as much as fits. Whole RRsets before the one that did not fit stay: without them the RCODE
    /// would not be that of the name asked for (NXDOMAIN after a CNAME).
    fn fill(mut self, query: &[u8]) -> usize {
        let mut rcode = rcode::NOERROR;
        let is_truncated = self.follow(&mut rcode).is_err();
        let is_authoritative = rcode != rcode::REFUSED && !self.is_referral;
        let header = ResponseHeader { rcode, is_authoritative, is_truncated, recursion_bits: 0 };
        let mut header = seen_by(header, self.zones.role(), query);
        let edns = self.request.edns;
        let asks = query[3] & AD != 0 || edns.is_some_and(|edns| edns.dnssec_ok);
        if header.recursion_bits & RA != 0 && self.is_signed && asks {
            header.recursion_bits |= AD;
        }
        self.reply.finish(query, header)
    }

    /// Writes what there is for the question and for the CNAMEs and DNAMEs that it leads to (RFC 1034,
    /// section 4.3.2; RFC 6672, section 3.2). A loop ends where it comes back to a name, with each record
    /// once, as from BIND and NSD. The code is then NOERROR as from NSD; BIND has SERVFAIL. `rcode` is right
    /// even if something does not fit.
    fn follow(&mut self, rcode: &mut u16) -> Result<(), Full> {
        let qtype = self.request.qtype;
        let mut owner = Owner::new(self.request.qname(), HEADER);
        for hop in 0..MAX_CHAIN {
            let at_parent = qtype == rtype::DS;
            let zone = self.zones.closest(owner.name(), at_parent);
            let (node, is_synthesized) = match zone.lookup(owner.name(), at_parent) {
                Lookup::Found(node) => (node, false),
                Lookup::Synthesized(node) => (node, true),
                Lookup::OutOfZone => {
                    // The resolver looks up the target of a CNAME in another zone.
                    *rcode = if hop == 0 { rcode::REFUSED } else { *rcode };
                    break;
                }
                Lookup::NameError => {
                    *rcode = rcode::NXDOMAIN;
                    return self.push_negative(zone, &owner, true);
                }
                Lookup::Delegated(cut) => {
                    self.is_referral = hop == 0;
                    return self.push_referral(zone, &owner, cut);
                }
                Lookup::Redirected(above) => {
                    self.is_signed &= zone.is_signed();
                    match self.push_redirection(hop, zone, &owner, above)? {
                        // The CNAME was asked for, and is there (as from BIND and NSD).
                        Some(_) if qtype == rtype::CNAME => break,
                        Some(target) if self.is_new(hop, &owner, &target) => owner = target,
                        Some(_) => break,
                        None => {
                            *rcode = rcode::YXDOMAIN;
                            break;
                        }
                    }
                    continue;
                }
            };
            self.is_signed &= zone.is_signed();
            let signatures_of = self.wants_proof(zone).then_some(node);
            if qtype == rtype::ANY && !node.is_empty() {
                return self.push_any(zone, node, &owner);
            }
            if let Some(set) = node.rrset(qtype) {
                self.reply.push_set(Section::Answer, set, signatures_of, owner.at)?;
                return self.push_synthesis(zone, &owner, is_synthesized);
            }
            let Some(alias) = node.rrset(rtype::CNAME) else {
                return self.push_negative(zone, &owner, is_synthesized);
            };
            let at = self.reply.push_set(Section::Answer, alias, signatures_of, owner.at)?;
            self.push_synthesis(zone, &owner, is_synthesized)?;
            let target = self.reply.target(at);
            if !self.is_new(hop, &owner, &target) {
                break;
            }
            owner = target;
        }
        Ok(())
    }

    /// Notes that the answer went through this name; false if it went through the next one before.
    fn is_new(&mut self, hop: usize, owner: &Owner, next: &Owner) -> bool {
        self.passed[hop] = owner.passed();
        !self.passed[..=hop].iter().any(|passed| self.reply.has_name(*passed, next))
    }

    /// Writes the DNAME record of a name above the owner, once, and the CNAME record that follows from it
    /// (RFC 6672, section 3.1). Returns the target; `None` if that would be too long. The CNAME record is not
    /// signed: validators make it themselves (section 5.3.1).
    fn push_redirection(
        &mut self,
        hop: usize,
        zone: &Zone,
        owner: &Owner,
        AncestorNode { node, length }: AncestorNode<'_>,
    ) -> Result<Option<Owner>, Full> {
        // The node was found because it has a DNAME.
        let Some(dname) = node.rrset(rtype::DNAME) else { return Ok(None) };
        let above = Owner::new(&owner.name()[owner.length - length..], owner.ancestor_at(length));
        if !self.redirected[..hop].iter().any(|passed| self.reply.has_name(*passed, &above)) {
            let signatures_of = self.wants_proof(zone).then_some(node);
            self.reply.push_set(Section::Answer, dname, signatures_of, above.at)?;
            self.redirected[hop] = above.passed();
        }
        self.reply.push_synthesized(owner, length, dname.records)
    }

    /// True if the client wants signatures and proofs, and this zone has them.
    fn wants_proof(&self, zone: &Zone) -> bool {
        zone.is_signed() && self.request.edns.is_some_and(|edns| edns.dnssec_ok)
    }

    /// One record or RRset for type ANY (RFC 8482): a made-up record, or in a signed zone, where that would
    /// be found out (section 4.2), the first RRset (section 4.1).
    fn push_any(&mut self, zone: &Zone, node: Node<'_>, owner: &Owner) -> Result<(), Full> {
        match node.rrsets().find(|set| set.rtype != rtype::RRSIG) {
            Some(first) if zone.is_signed() => {
                let signatures_of = self.wants_proof(zone).then_some(node);
                self.reply.push_set(Section::Answer, first, signatures_of, owner.at)?;
            }
            _ => self.reply.push_record(Section::Answer, MINIMAL_ANY, owner.at)?,
        }
        Ok(())
    }

    /// The proof that the name does not exist, so that the wildcard stands for it (RFC 4035, section
    /// 3.1.3.3).
    fn push_synthesis(
        &mut self,
        zone: &Zone,
        owner: &Owner,
        is_synthesized: bool,
    ) -> Result<(), Full> {
        match zone.covering(owner.name()) {
            Some(nsec) if is_synthesized && self.wants_proof(zone) => {
                let apex = zone.apex_octets();
                self.reply.push_nsec(nsec, apex, owner.ancestor_at(apex.len()))
            }
            _ => Ok(()),
        }
    }

    /// The SOA record that makes a negative answer cacheable (RFC 2308, section 3). In a signed zone also the
    /// proof that the name, or the type there, does not exist; and if the name does not, that no wildcard
    /// with the type stands for it (RFC 4035, sections 3.1.3.1, 3.1.3.2 and 3.1.3.4).
    fn push_negative(&mut self, zone: &Zone, owner: &Owner, is_absent: bool) -> Result<(), Full> {
        self.is_signed &= zone.is_signed();
        let apex = zone.apex_octets();
        let apex_at = owner.ancestor_at(apex.len());
        self.reply.push_record(Section::Authority, zone.negative_soa(), apex_at)?;
        if !self.wants_proof(zone) {
            return Ok(());
        }
        if let Some(node) = zone.node(apex) {
            self.reply.push_signatures(Section::Authority, node, rtype::SOA, apex_at)?;
        }
        let Some(nsec) = zone.covering(owner.name()) else { return Ok(()) };
        self.reply.push_nsec(nsec, apex, apex_at)?;
        let mut source = [0; 255];
        if is_absent
            && let Some(length) = zone.source_of_synthesis(owner.name(), &mut source)
            && let Some(wildcard) = zone.covering(&source[..length])
            && wildcard.name != nsec.name
        {
            self.reply.push_nsec(wildcard, apex, apex_at)?;
        }
        Ok(())
    }

    /// The NS records of a zone cut, in a signed zone whether the child is signed too (RFC 4035, section
    /// 3.1.4), and the addresses that this zone has for the servers (RFC 9471). Those of servers in the
    /// delegated domain come first, because nobody can find them otherwise (section 3.1); the others follow
    /// as far as they fit (section 3.2).
    fn push_referral(
        &mut self,
        zone: &Zone,
        owner: &Owner,
        AncestorNode { node: cut, length: cut_length }: AncestorNode<'_>,
    ) -> Result<(), Full> {
        let Some(servers) = cut.rrset(rtype::NS) else { return Ok(()) };
        let cut_at = owner.ancestor_at(cut_length);
        let first = self.reply.push(Section::Authority, servers, cut_at)?;
        let cut_name = &owner.name()[owner.length - cut_length..];
        if self.wants_proof(zone) {
            if let Some(ds) = cut.rrset(rtype::DS) {
                self.reply.push_set(Section::Authority, ds, Some(cut), cut_at)?;
            } else if let Some(nsec) = zone.covering(cut_name) {
                let apex = zone.apex_octets();
                self.reply.push_nsec(nsec, apex, owner.ancestor_at(apex.len()))?;
            }
        }
        for in_domain in [true, false] {
            let mut at = first;
            for record in prebuilt_records(servers.records) {
                let server = Owner::new(&record[PREBUILT_HEADER..], at + PREBUILT_HEADER);
                at += record.len();
                if suffixes(server.name()).any(|suffix| suffix == cut_name) != in_domain {
                    continue;
                }
                let Some(node) = zone.node(server.name()) else { continue };
                for set in [rtype::A, rtype::AAAA].into_iter().filter_map(|rtype| node.rrset(rtype))
                {
                    let pushed = self.reply.push(Section::Additional, set, server.at);
                    if in_domain {
                        pushed?;
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
