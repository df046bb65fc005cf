//! The answer of one server to one query: a function of the internet, the server's address and the octets.

use std::net::IpAddr;

use dnslab_wire::{
    CLASSIC_DATAGRAM, ClientCookie, CompressingWriter, Full, Request, ResponseHeader, ResponseOpt,
    ResponseWriter, RrSet, Section, labels, rcode, reject, rtype,
};

use crate::chain::Chain;
use crate::data::Types;
use crate::denial::Proof;
use crate::lookup::{Located, Node};
use crate::model::{Denial, Internet, Kind, Server, Zone};
use crate::sign::Signer;

/// How a query came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// In a datagram: the answer is bounded by what both sides take.
    Datagram,
    /// Over a stream: the answer may have 65,535 octets.
    Stream,
}

/// What one thread needs to answer: buffers, and keys and signatures that it made before. Answers do not
/// depend on it.
#[derive(Debug, Default)]
pub struct Scratch {
    signer: Signer,
    set: RrSet,
    signature: RrSet,
    owner: Vec<u8>,
    target: Vec<u8>,
    chain: Chain,
    /// Owners of the proofs that the answer has.
    proofs: [Vec<u8>; MAX_PROOFS],
}

/// NSEC3 records of one answer: for the closest encloser, the next closer name, and the wildcard (RFC 5155,
/// section 7.2.2).
const MAX_PROOFS: usize = 3;

/// The most octets of an answer over a stream.
const STREAM: usize = 65_535;

/// CNAME records that one answer follows.
const MAX_ALIASES: usize = 16;

impl Internet {
    /// Writes what the server at `address` answers to `query` into `out`, and returns its length. `None` if it
    /// sends nothing: no server has this address, or it is dead, or this is no query.
    ///
    /// `out` has at least 512 octets, and bounds the answer too; give it 65,535.
    ///
    /// ```
    /// use dnslab_internet::{Carrier, Internet, Scratch};
    ///
    /// let internet = Internet::parse("seed = 7")?;
    /// let root = "198.18.0.1".parse().unwrap();
    /// let query = b"\x12\x34\0\0\0\x01\0\0\0\0\0\0\x03com\0\0\x02\0\x01";
    /// let mut out = [0; 65_535];
    /// let mut scratch = Scratch::default();
    /// let length = internet.answer(root, query, Carrier::Stream, &mut scratch, &mut out).unwrap();
    /// // A referral: 13 name servers with the addresses of both families.
    /// assert_eq!(out[6..12], [0, 0, 0, 13, 0, 26]);
    /// # let _ = length;
    /// # Ok::<(), dnslab_internet::DescriptionError>(())
    /// ```
    #[must_use]
    pub fn answer(
        &self,
        address: IpAddr,
        query: &[u8],
        carrier: Carrier,
        scratch: &mut Scratch,
        out: &mut [u8],
    ) -> Option<usize> {
        let server = self.server_at(address)?;
        let kind = match server {
            Server::Operator { kind, .. } => kind,
            Server::Root(_) | Server::TopLevel { .. } => Kind::Sound,
        };
        if kind == Kind::Dead || out.len() < CLASSIC_DATAGRAM {
            return None;
        }
        let mut request = match Request::parse(query) {
            Ok(request) => request,
            Err(reason) => return reject(query, reason, out),
        };
        let refuses_edns = kind == Kind::EdnsFormErr && request.edns.is_some();
        if matches!(kind, Kind::EdnsFormErr | Kind::EdnsIgnored) {
            request.edns = None;
        }
        let payload_size = self.payload(server) as u16;
        let limit = match carrier {
            Carrier::Stream => STREAM,
            Carrier::Datagram => request.datagram_limit(payload_size),
        };
        let cookie = request.edns.and_then(|edns| edns.cookie).filter(|_| self.has_cookies(server));
        let opt = request.edns.map(|edns| ResponseOpt {
            payload_size,
            dnssec_ok: edns.dnssec_ok,
            cookies: self.cookies(server, cookie),
            padding_block: 0,
        });
        let writer = ResponseWriter::new(&request, limit, opt, out);
        let mut reply = Reply {
            internet: self,
            server,
            carrier,
            wants_proof: request.edns.is_some_and(|edns| edns.dnssec_ok),
            qtype: request.qtype,
            writer: CompressingWriter::new(&request, writer),
            scratch,
            proof_count: 0,
        };
        let refusal = match request.refusal() {
            _ if refuses_edns => Some(rcode::FORMERR),
            Some(rcode::BADVERS) => Some(rcode::BADVERS),
            // RFC 7873, section 5.2.2.
            _ if cookie == Some(ClientCookie::Malformed) => Some(rcode::FORMERR),
            refusal => refusal,
        };
        let header = match refusal {
            Some(rcode) => ResponseHeader::code(rcode),
            None => reply.fill(request.qname()),
        };
        Some(reply.writer.finish(query, header))
    }

    /// The cookie of a client and that of the server for it, if the client's can be answered.
    fn cookies(&self, server: Server, cookie: Option<ClientCookie>) -> Option<[u8; 16]> {
        let Some(ClientCookie::Valid(client)) = cookie else { return None };
        let mut cookies = [0; 16];
        cookies[..8].copy_from_slice(&client);
        cookies[8..].copy_from_slice(&self.server_cookie(server, client));
        Some(cookies)
    }
}

struct Reply<'i, 's, 'o> {
    internet: &'i Internet,
    server: Server,
    carrier: Carrier,
    /// The client set DO.
    wants_proof: bool,
    qtype: u16,
    writer: CompressingWriter<'o>,
    scratch: &'s mut Scratch,
    /// How many proofs it has.
    proof_count: usize,
}

impl Reply<'_, '_, '_> {
    fn fill(&mut self, qname: &[u8]) -> ResponseHeader {
        let mut name = [0; 255];
        let name = &mut name[..qname.len()];
        name.copy_from_slice(qname);
        // Lengths of labels are below 64, so below `A`.
        name.make_ascii_lowercase();
        let located = self.internet.locate(name);
        let zones = located.zones();
        let last = zones.len() - 1;
        let served = |place: &usize| self.internet.serves(self.server, zones[*place].zone);
        let Some(mut depth) = (0..=last).rev().find(served) else {
            return ResponseHeader::code(rcode::REFUSED);
        };
        // DS records are the parent's (RFC 4035, section 3.1.4.1).
        let is_at_cut = last > 0 && located.node == Ok(Node::Apex);
        let asks_parent = is_at_cut && self.qtype == rtype::DS;
        if asks_parent && depth == last && served(&(last - 1)) {
            depth = last - 1;
        }
        let mut header = ResponseHeader { is_authoritative: true, ..ResponseHeader::default() };
        let written = if depth == last {
            match self.carrier == Carrier::Datagram && self.is_always_truncated(&located) {
                true => Err(Full),
                false => self.answer_from(located, name, &mut header.rcode),
            }
        } else {
            let (zone, below) = (zones[depth].zone, zones[depth + 1]);
            let start = labels(name).start_of(below.labels);
            if asks_parent && depth + 1 == last {
                self.answer_ds(zone, below.zone, name)
            } else {
                header.is_authoritative = false;
                self.refer(zone, below.zone, &name[start..])
            }
        };
        header.is_truncated = written.is_err();
        header
    }

    /// True if the file says so of this name. Names of the registries are never truncated without need.
    fn is_always_truncated(&self, located: &Located) -> bool {
        let (zone @ Zone::Hosted { .. }, Ok(node)) = (located.zone(), located.node) else {
            return false;
        };
        self.internet.is_truncated(self.internet.node_word(zone, node))
    }

    /// True if the client wants proofs, and this zone has them.
    fn proves(&self, zone: Zone) -> bool {
        self.wants_proof && self.internet.is_signed(zone)
    }

    /// Writes what the zone that the name is in has to say.
    fn answer_from(
        &mut self,
        mut located: Located,
        name: &[u8],
        rcode: &mut u16,
    ) -> Result<(), Full> {
        let zone = located.zone();
        let mut owner = name.to_vec();
        for _ in 0..MAX_ALIASES {
            let node = match located.node {
                Ok(node) => node,
                Err(encloser) => {
                    *rcode = rcode::NXDOMAIN;
                    return self.deny_name(zone, &owner, encloser);
                }
            };
            if self.answer_node(zone, node, &owner)? {
                return Ok(());
            }
            self.internet.fill(zone, node, rtype::CNAME, &mut self.scratch.set);
            if self.scratch.set.is_empty() {
                let types = self.internet.types(zone, node);
                return self.deny_types(zone, &owner, types);
            }
            self.push_signed(Section::Answer, zone, &owner)?;
            let target = self.scratch.set.data().next().unwrap_or_default();
            owner.clear();
            owner.extend_from_slice(target);
            located = self.internet.locate(&owner);
            if located.zone() != zone {
                // The client goes on from there.
                return Ok(());
            }
        }
        Ok(())
    }

    /// Writes the records that were asked for; false if the node has none of the type.
    fn answer_node(&mut self, zone: Zone, node: Node, owner: &[u8]) -> Result<bool, Full> {
        let internet = self.internet;
        let types = internet.types(zone, node);
        let is_signed = internet.is_signed(zone);
        // One type stands for all of them (RFC 8482, section 4.1), and one signature for all signatures.
        let first = || types.iter().next();
        let qtype = match self.qtype {
            rtype::ANY => first(),
            rtype::RRSIG if is_signed => first(),
            rtype::NSEC if is_signed && !internet.has_nsec3(zone) && node != Node::Empty => {
                let Scratch { chain, owner: own, set, .. } = &mut *self.scratch;
                internet.fill_matching(zone, owner, types, chain, Proof { owner: own, set });
                self.push_signed(Section::Answer, zone, owner)?;
                return Ok(true);
            }
            qtype => Some(qtype),
        };
        let Some(qtype) = qtype else { return Ok(false) };
        if qtype == rtype::DNSKEY && node == Node::Apex && is_signed {
            let Scratch { signer, set, .. } = &mut *self.scratch;
            internet.fill_dnskey(zone, signer, set);
        } else {
            internet.fill(zone, node, qtype, &mut self.scratch.set);
        }
        if self.scratch.set.is_empty() {
            return Ok(false);
        }
        if self.qtype == rtype::RRSIG {
            let Scratch { signer, set, signature, .. } = &mut *self.scratch;
            signer.sign(internet, zone, owner, set, signature);
            self.writer.push_set(Section::Answer, owner, signature)?;
            return Ok(true);
        }
        self.push_signed(Section::Answer, zone, owner)?;
        if node == Node::Apex && qtype == rtype::NS {
            self.push_glue(zone, zone)?;
        }
        Ok(true)
    }

    /// Writes the set with its signature, if that is wanted.
    fn push_signed(&mut self, section: Section, zone: Zone, owner: &[u8]) -> Result<(), Full> {
        self.writer.push_set(section, owner, &self.scratch.set)?;
        if self.proves(zone) {
            let Scratch { signer, set, signature, .. } = &mut *self.scratch;
            signer.sign(self.internet, zone, owner, set, signature);
            self.writer.push_set(section, owner, signature)?;
        }
        Ok(())
    }

    /// Writes the SOA record of a zone for a negative answer (RFC 2308, section 3).
    fn push_soa(&mut self, zone: Zone) -> Result<(), Full> {
        self.internet.fill_soa(zone, &mut self.scratch.set);
        let mut apex = std::mem::take(&mut self.scratch.target);
        apex.clear();
        self.internet.push_apex(zone, &mut apex);
        let written = self.push_signed(Section::Authority, zone, &apex);
        self.scratch.target = apex;
        written
    }

    /// The name exists and has not the type (NODATA).
    fn deny_types(&mut self, zone: Zone, name: &[u8], types: Types) -> Result<(), Full> {
        self.push_soa(zone)?;
        if self.proves(zone) { self.push_matching(zone, name, types) } else { Ok(()) }
    }

    /// The name does not exist; `encloser` is the number of labels of its longest ancestor that does.
    fn deny_name(&mut self, zone: Zone, name: &[u8], encloser: usize) -> Result<(), Full> {
        self.push_soa(zone)?;
        if !self.proves(zone) {
            return Ok(());
        }
        let labels = labels(name);
        let next_closer = &name[labels.start_of(encloser + 1)..];
        let ancestor = &name[labels.start_of(encloser)..];
        if self.internet.has_nsec3(zone) {
            // The encloser itself, which ends the search for it (RFC 5155, section 7.2.1).
            let types = match self.internet.locate(ancestor).node {
                Ok(node) => self.internet.types(zone, node),
                Err(_) => Types::default(),
            };
            self.push_matching(zone, ancestor, types)?;
        }
        self.push_covering(zone, next_closer)?;
        let mut wildcard = Vec::with_capacity(2 + ancestor.len());
        wildcard.extend_from_slice(b"\x01*");
        wildcard.extend_from_slice(ancestor);
        if *next_closer != *wildcard {
            self.push_covering(zone, &wildcard)?;
        }
        Ok(())
    }

    fn push_covering(&mut self, zone: Zone, name: &[u8]) -> Result<(), Full> {
        let Scratch { chain, set, owner, .. } = &mut *self.scratch;
        self.internet.fill_covering(zone, name, chain, Proof { owner, set });
        self.push_proof(zone)
    }

    fn push_matching(&mut self, zone: Zone, name: &[u8], types: Types) -> Result<(), Full> {
        let Scratch { chain, set, owner, .. } = &mut *self.scratch;
        self.internet.fill_matching(zone, name, types, chain, Proof { owner, set });
        self.push_proof(zone)
    }

    /// Writes the NSEC or NSEC3 record that was filled, with its signature. One record may be several proofs.
    fn push_proof(&mut self, zone: Zone) -> Result<(), Full> {
        let Scratch { proofs, owner, .. } = &mut *self.scratch;
        if proofs[..self.proof_count].contains(owner) {
            return Ok(());
        }
        proofs[self.proof_count].clone_from(owner);
        self.proof_count += 1;
        let owner = std::mem::take(&mut self.scratch.owner);
        let written = self.push_signed(Section::Authority, zone, &owner);
        self.scratch.owner = owner;
        written
    }

    /// The parent's answer about the keys of a child.
    fn answer_ds(&mut self, zone: Zone, child: Zone, name: &[u8]) -> Result<(), Full> {
        if self.internet.is_signed(child) {
            let Scratch { signer, set, .. } = &mut *self.scratch;
            self.internet.fill_ds(child, signer, set);
            return self.push_signed(Section::Answer, zone, name);
        }
        self.push_soa(zone)?;
        self.prove_unsigned(zone, name)
    }

    /// Proves that a child has no DS record.
    fn prove_unsigned(&mut self, zone: Zone, name: &[u8]) -> Result<(), Full> {
        if !self.proves(zone) {
            return Ok(());
        }
        if self.internet.denial(zone) == Denial::Ranges {
            // By Opt-Out: the closest encloser, and that the next name is in a span that may have unsigned
            // delegations (RFC 5155, section 7.2.4).
            let parent = &name[1 + usize::from(name[0])..];
            let types = self.internet.types(zone, Node::Apex);
            self.push_matching(zone, parent, types)?;
            return self.push_covering(zone, name);
        }
        self.push_matching(zone, name, Types::of(&[rtype::NS]))
    }

    /// Writes a referral to the zone below a cut.
    fn refer(&mut self, zone: Zone, child: Zone, cut: &[u8]) -> Result<(), Full> {
        self.internet.fill_name_servers(child, zone, &mut self.scratch.set);
        self.writer.push_set(Section::Authority, cut, &self.scratch.set)?;
        if self.internet.is_signed(child) {
            if self.proves(zone) {
                let Scratch { signer, set, .. } = &mut *self.scratch;
                self.internet.fill_ds(child, signer, set);
                self.push_signed(Section::Authority, zone, cut)?;
            }
        } else {
            self.prove_unsigned(zone, cut)?;
        }
        self.push_glue(zone, child)
    }

    /// Writes the addresses of the name servers of the zone `served` that are below the apex of `zone`. Those that are below
    /// a cut, where nobody else has them, must be there (RFC 9471, section 3.1); others are left out if they do
    /// not fit.
    fn push_glue(&mut self, zone: Zone, served: Zone) -> Result<(), Full> {
        let internet = self.internet;
        let (mut apex, mut cut) = (Vec::with_capacity(64), Vec::with_capacity(64));
        internet.push_apex(zone, &mut apex);
        internet.push_apex(served, &mut cut);
        let servers = internet.name_servers(served);
        for rtype in [rtype::A, rtype::AAAA] {
            for slot in 0..servers.count {
                self.scratch.owner.clear();
                let server = internet.push_name_server(&servers, slot, &mut self.scratch.owner);
                if !is_below(&self.scratch.owner, &apex) {
                    continue;
                }
                let Scratch { set, owner, .. } = &mut *self.scratch;
                internet.fill_glue(server, zone, rtype, set);
                if set.is_empty() {
                    continue;
                }
                let written = self.writer.push_set(Section::Additional, owner, set);
                let is_needed = zone != served && is_below(owner, &cut);
                match written {
                    Err(Full) if is_needed => return Err(Full),
                    Err(Full) => return Ok(()),
                    Ok(()) => {}
                }
            }
        }
        Ok(())
    }
}

/// True for an apex and for all names below it.
fn is_below(name: &[u8], apex: &[u8]) -> bool {
    let mut at = 0;
    while name.len() - at > apex.len() {
        at += 1 + usize::from(name[at]);
    }
    name[at..] == *apex
}
