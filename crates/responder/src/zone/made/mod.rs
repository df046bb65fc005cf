//! A whole little DNS around a list of names: the root, its top-level domains, and one zone for each
//! registered domain. So every name can be looked up, and validated, from the root down.
//!
//! A registered domain is the last two labels of a name; no list of public suffixes is used.
//! `www.example.co.uk` is in a zone `co.uk` here, which is as deep as nearly all names of the Internet are.

mod names;
mod sign;

pub use names::{NameLineError, NameList, NameListError};
pub use sign::Signing;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::num::NonZeroUsize;

use bytes::Bytes;
use dnslab_wire::{RrSet, push_nsec, rtype};
use domain::base::Name;

use self::sign::Signer;
use super::data::{Zone, hash};
use super::draft::Draft;
use super::zones::{Role, Zones};

/// TTL of all records and of negative answers, seconds: five minutes, as many names behind load balancers have it.
const TTL: u32 = 300;

/// The name servers of all zones. Their own zone is made too.
const SERVERS: [&str; 2] = ["ns1.servers.example", "ns2.servers.example"];

/// Labels of a registered domain, without the root's.
const REGISTERED: usize = 2;

/// A zone before it has records.
#[derive(Default)]
struct Plan {
    /// They get addresses.
    names: BTreeSet<Name<Bytes>>,
    /// Apexes of the zones below it.
    cuts: BTreeSet<Name<Bytes>>,
}

impl Zones {
    /// Makes a DNS for a recursive resolver that has these names, each with one A and one AAAA record. Their
    /// addresses are from the ranges for documentation (RFC 5737, RFC 3849), and follow from the name alone.
    ///
    /// Signing takes some 20 us for each RRset, on all CPUs.
    ///
    /// # Panics
    /// When a thread does, which is a fault of this crate.
    #[must_use]
    pub fn below_root(names: &NameList, signing: Signing) -> Self {
        let plans: Vec<_> = plans(names).into_iter().collect();
        let signer = match signing {
            Signing::Unsigned => None,
            Signing::At(now) => Some(Signer::new(now)),
        };
        let make = |part: &[(Name<Bytes>, Plan)]| -> Vec<Zone> {
            part.iter().map(|(apex, plan)| plan.make(apex, signer.as_ref())).collect()
        };
        let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let zones = std::thread::scope(|scope| {
            let parts = plans.chunks(plans.len().div_ceil(threads));
            let begin = |part| {
                let thread = std::thread::Builder::new().spawn_scoped(scope, move || make(part));
                // Without a thread of its own, this one makes it.
                thread.map_err(|_| make(part))
            };
            let parts: Vec<_> = parts.map(begin).collect();
            let made = parts.into_iter().map(|part| match part {
                Ok(thread) => thread.join().expect("no zone is out of order"),
                Err(made) => made,
            });
            made.flatten().collect()
        });
        Self::new(Role::Recursive, zones)
    }
}

/// By apex. The root comes first, as in canonical order.
fn plans(names: &NameList) -> BTreeMap<Name<Bytes>, Plan> {
    let servers = SERVERS.map(server);
    let mut plans = BTreeMap::<_, Plan>::new();
    for name in names.0.iter().chain(&servers) {
        let labels = name.label_count() - 1;
        let mut below = None;
        for apex in name.iter_suffixes().skip(labels.saturating_sub(REGISTERED)) {
            let plan = plans.entry(apex.clone()).or_default();
            match below.replace(apex) {
                None => plan.names.insert(name.clone()),
                Some(cut) => plan.cuts.insert(cut),
            };
        }
    }
    plans
}

impl Plan {
    fn make(&self, apex: &Name<Bytes>, signer: Option<&Signer>) -> Zone {
        /// Names and data of zones made here are short, and there is one SOA record.
        const SOUND: &str = "a zone that was made here can be served";
        let mut draft = Draft::default();
        let (mut set, mut rrsig) = <(RrSet, RrSet)>::default();
        // In canonical order, as names are compared.
        let owners: BTreeSet<&Name<Bytes>> =
            std::iter::once(apex).chain(&self.cuts).chain(&self.names).collect();
        for (owner, next) in owners.iter().zip(owners.iter().cycle().skip(1)) {
            let types = self.types(apex, owner, signer.is_some());
            for rtype in &types {
                match (*rtype, signer) {
                    // The last one leads to the first one (RFC 4034, section 4.1.1).
                    (rtype::NSEC, _) => {
                        set.begin(rtype::NSEC, TTL);
                        set.push(|octets| {
                            push_nsec(next.as_slice(), types.iter().copied(), octets);
                        });
                    }
                    (rtype::RRSIG, _) => continue,
                    (rtype, signer) => fill(owner, rtype, signer, &mut set),
                }
                draft.push_set(owner.as_slice(), &set).expect(SOUND);
                // The NS records of a zone cut are the child's (RFC 4035, section 2.2).
                let is_own = *rtype != rtype::NS || *owner == apex;
                if let Some(signer) = signer.filter(|_| is_own) {
                    signer.sign(apex.as_slice(), owner.as_slice(), &set, &mut rrsig);
                    draft.push_set(owner.as_slice(), &rrsig).expect(SOUND);
                }
            }
        }
        draft.sort();
        draft.build(apex.as_slice().into()).expect(SOUND)
    }

    /// The types at a name of the zone, in ascending order.
    fn types(&self, apex: &Name<Bytes>, owner: &Name<Bytes>, is_signed: bool) -> Vec<u16> {
        let (is_apex, is_cut) = (owner == apex, self.cuts.contains(owner));
        let has_addresses = self.names.contains(owner);
        let all = [
            (rtype::A, has_addresses),
            (rtype::NS, is_apex || is_cut),
            (rtype::SOA, is_apex),
            (rtype::AAAA, has_addresses),
            (rtype::DS, is_cut && is_signed),
            (rtype::RRSIG, is_signed),
            (rtype::NSEC, is_signed),
            (rtype::DNSKEY, is_apex && is_signed),
        ];
        all.into_iter().filter(|(_, is_there)| *is_there).map(|(rtype, _)| rtype).collect()
    }
}

/// Fills a set with the records of a type at a name that has it. Only zones with a signer have keys.
fn fill(owner: &Name<Bytes>, rtype: u16, signer: Option<&Signer>, set: &mut RrSet) {
    set.begin(rtype, TTL);
    let (ipv4, ipv6) = addresses(owner);
    match (rtype, signer) {
        (rtype::A, _) => set.push(|octets| octets.extend_from_slice(&ipv4.octets())),
        (rtype::AAAA, _) => set.push(|octets| octets.extend_from_slice(&ipv6.octets())),
        (rtype::NS, _) => {
            for text in SERVERS {
                set.push(|octets| octets.extend_from_slice(server(text).as_slice()));
            }
        }
        (rtype::SOA, _) => set.push(|octets| {
            for text in [SERVERS[0], "hostmaster.servers.example"] {
                octets.extend_from_slice(server(text).as_slice());
            }
            // Serial number, refresh, retry, expire, and the TTL of negative answers (RFC 2308, section 4).
            for number in [1, 7200, 3600, 1_209_600, TTL] {
                octets.extend_from_slice(&number.to_be_bytes());
            }
        }),
        (rtype::DS, Some(signer)) => {
            set.push(|octets| signer.key.push_ds(owner.as_slice(), octets));
        }
        (rtype::DNSKEY, Some(signer)) => {
            set.push(|octets| octets.extend_from_slice(signer.key.dnskey()));
        }
        _ => {}
    }
}

fn server(text: &str) -> Name<Bytes> {
    text.parse().expect("it was written as a domain name")
}

/// They follow from the octets of the name.
fn addresses(name: &Name<Bytes>) -> (Ipv4Addr, Ipv6Addr) {
    const RANGES: [[u8; 3]; 3] = [[192, 0, 2], [198, 51, 100], [203, 0, 113]];
    let drawn = hash(name.as_slice());
    let [a, b, c] = RANGES[(drawn % 3) as usize];
    // Neither the network nor its broadcast address: 1 to 254.
    let host = 1 + (drawn / 3 % 254) as u8;
    let ipv6 = (0x2001_0db8_u128 << 96) | u128::from(drawn);
    (Ipv4Addr::new(a, b, c, host), Ipv6Addr::from_bits(ipv6))
}

#[cfg(test)]
mod tests;
