//! A whole little DNS around a list of names: the root, its top-level domains, and one zone for each
//! registered domain. So every name can be looked up, and validated, from the root down.
//!
//! A registered domain is the last two labels of a name; no list of public suffixes is used.
//! `www.example.co.uk` is in a zone `co.uk` here, which is as deep as nearly all names of the Internet are.

mod names;
mod sign;

pub use names::{NameList, NameListError};
pub use sign::Signing;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::num::NonZeroUsize;

use bytes::Bytes;
use domain::base::iana::Class;
use domain::base::{Name, Record, Serial, Ttl};
use domain::rdata::{A, Aaaa, Ns, Soa, ZoneRecordData};

use self::sign::{MadeRecord, Signer};
use super::data::{Zone, hash};
use super::draft::Draft;
use super::zones::{Role, Zones};

/// TTL of all records and of negative answers: five minutes, as many names behind load balancers have it.
const TTL: Ttl = Ttl::from_secs(300);

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
        let mut records = self.records(apex, signer);
        if let Some(signer) = signer {
            records = signer.sign(apex, records);
        }
        let mut draft = Draft::default();
        for (number, record) in (1..).zip(&records) {
            draft.push(record, number).expect("records made here are of class IN, and short");
        }
        draft.sort();
        draft.build(apex.as_slice().into()).expect("a zone made here has one SOA record")
    }

    /// Before the zone is signed.
    fn records(&self, apex: &Name<Bytes>, signer: Option<&Signer>) -> Vec<MadeRecord> {
        let servers = SERVERS.map(server);
        let mut records = Vec::new();
        let mut push = |owner: &Name<Bytes>, data: ZoneRecordData<_, _>| {
            records.push(Record::new(owner.clone(), Class::IN, TTL, data));
        };
        let [refresh, retry, expire] = [7200, 3600, 1_209_600].map(Ttl::from_secs);
        let [primary, _] = servers.clone();
        let hostmaster = server("hostmaster.servers.example");
        let soa = Soa::new(primary, hostmaster, Serial(1), refresh, retry, expire, TTL);
        push(apex, soa.into());
        for owner in std::iter::once(apex).chain(&self.cuts) {
            for server in &servers {
                push(owner, Ns::new(server.clone()).into());
            }
        }
        if let Some(signer) = signer {
            push(apex, signer.dnskey().into());
            for cut in &self.cuts {
                push(cut, signer.ds(cut).into());
            }
        }
        for name in &self.names {
            let (ipv4, ipv6) = addresses(name);
            push(name, A::new(ipv4).into());
            push(name, Aaaa::new(ipv6).into());
        }
        records
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
