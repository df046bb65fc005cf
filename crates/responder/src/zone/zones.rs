//! What a server has to answer from: one zone, or all of them from the root down.

use std::sync::Arc;

use super::data::{Zone, hash, suffixes};

/// How a server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// An authoritative server: AA for its own data, referrals at its zone cuts, REFUSED beyond.
    Authoritative,
    /// A recursive resolver that has every answer in its cache: RA, never AA, never a referral. It sets AD
    /// where it would have validated (RFC 6840, section 5.8).
    Recursive,
}

/// The zones of a server, loaded once and only read from then on.
///
/// ```
/// use dnslab_responder::{NameList, Role, Signing, Zones};
///
/// let names = NameList::parse("www.example.com\nexample.org MX\n").unwrap();
/// let zones = Zones::below_root(&names, Signing::Unsigned);
/// assert_eq!(zones.role(), Role::Recursive);
/// // The root, com, org, example, example.com, example.org, and servers.example for the NS records.
/// assert_eq!(zones.len(), 7);
/// ```
#[derive(Debug)]
pub struct Zones {
    role: Role,
    /// At least one; the first one of a recursive server is the root.
    zones: Box<[Zone]>,
    /// Open-addressing table of places in `zones`, by the hash of the apex; [`VACANT`] where none is. Its
    /// length is a power of two, and at least twice the number of zones.
    slots: Box<[u32]>,
}

const VACANT: u32 = u32::MAX;

impl Zones {
    /// The one zone of an authoritative server.
    #[must_use]
    pub fn authoritative(zone: Zone) -> Self {
        Self::new(Role::Authoritative, vec![zone])
    }

    /// The zones must have different apexes.
    pub(super) fn new(role: Role, zones: Vec<Zone>) -> Self {
        let size = (zones.len() * 2).next_power_of_two();
        let mut slots = vec![VACANT; size].into_boxed_slice();
        for (number, zone) in (0..).zip(&zones) {
            let mut place = hash(zone.apex_octets()) as usize & (size - 1);
            while slots[place] != VACANT {
                place = (place + 1) & (size - 1);
            }
            slots[place] = number;
        }
        Self { role, zones: zones.into_boxed_slice(), slots }
    }

    /// How the server answers.
    #[must_use]
    pub fn role(&self) -> Role {
        self.role
    }

    /// Number of zones, 1 at least.
    #[expect(clippy::len_without_is_empty, reason = "there is always a zone")]
    #[must_use]
    pub fn len(&self) -> usize {
        self.zones.len()
    }

    /// Number of records in all zones.
    #[must_use]
    pub fn record_count(&self) -> usize {
        self.zones.iter().map(Zone::record_count).sum()
    }

    /// The zone with the longest apex that a lower-cased wire name ends in. `at_parent`: the type belongs to
    /// the parent's side of a zone cut (DS, RFC 4035, section 3.1.4.1). A single zone is returned for any
    /// name: it knows itself which names are its own.
    pub(crate) fn closest(&self, name: &[u8], at_parent: bool) -> &Zone {
        if let [zone] = &*self.zones {
            return zone;
        }
        suffixes(name)
            .skip(usize::from(at_parent && name.len() > 1))
            .find_map(|suffix| self.zone(suffix))
            .unwrap_or(&self.zones[0])
    }

    fn zone(&self, apex: &[u8]) -> Option<&Zone> {
        let mask = self.slots.len() - 1;
        let mut place = hash(apex) as usize & mask;
        loop {
            let zone = match self.slots[place] {
                VACANT => return None,
                number => &self.zones[number as usize],
            };
            if zone.apex_octets() == apex {
                return Some(zone);
            }
            place = (place + 1) & mask;
        }
    }
}

impl From<Zone> for Zones {
    fn from(zone: Zone) -> Self {
        Self::authoritative(zone)
    }
}

impl From<Zone> for Arc<Zones> {
    fn from(zone: Zone) -> Self {
        Arc::new(zone.into())
    }
}
