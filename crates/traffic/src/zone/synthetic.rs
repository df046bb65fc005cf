//! What is in the zone: names, addresses and the records at its apex.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr as _;
use std::time::Duration;

use domain::base::{Name, RelativeName, Serial, ToName as _, Ttl};
use domain::rdata::Soa;

/// The address of the zone's name server: from TEST-NET-1 (RFC 5737), where nobody is ever asked.
pub(super) const SERVER_ADDRESS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 53);

/// Fewest digits of a host name: names in all but the largest zones have one length, and datagrams of one
/// length can share a system call.
const FEWEST_DIGITS: usize = 6;

/// The most records that a zone can have: the addresses of 10.0.0.0/8 but its first and last.
const MAX_RECORDS: u32 = (1 << 24) - 2;

/// The longest TTL (RFC 2181, section 8).
const MAX_TTL_S: u64 = (1 << 31) - 1;

/// A zone of numbered hosts with one A record each: `host-000001`, `host-000002`, ... with addresses from
/// 10.0.0.1 on. It also has a SOA record, one NS record, and the A record of that name server, `ns`.
///
/// Everything is computed from the number of the host, so a zone of any size takes no memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntheticZone {
    pub(super) origin: Name<Vec<u8>>,
    pub(super) records: u32,
    pub(super) ttl: Ttl,
    /// Digits in a host name.
    digits: usize,
}

/// Why there is no such zone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ZoneError {
    /// The text is no domain name.
    #[error("`{name}` is no zone name: {reason}")]
    Name {
        /// The text.
        name: String,
        /// What the parser says.
        reason: String,
    },
    /// More hosts than addresses.
    #[error("a zone of {records} records is too large: 10.0.0.0/8 has addresses for {MAX_RECORDS}")]
    TooManyRecords {
        /// Records asked for.
        records: u32,
    },
    /// The host names would be longer than 255 octets (RFC 1035, section 3.1).
    #[error("the zone name {origin} is too long: its hosts would have names of over 255 octets")]
    OriginTooLong {
        /// The zone name.
        origin: String,
    },
    /// The TTL is not a whole number of seconds below 2^31.
    #[error("a TTL of {ttl:?} is not possible: it is a whole number of seconds below 2^31")]
    Ttl {
        /// The TTL asked for.
        ttl: Duration,
    },
}

impl SyntheticZone {
    /// A zone with this number of hosts, all with this TTL.
    ///
    /// # Errors
    /// When it cannot be written as a zone: too many hosts, too long a name, an impossible TTL.
    pub fn new(origin: Name<Vec<u8>>, records: u32, ttl: Duration) -> Result<Self, ZoneError> {
        if records > MAX_RECORDS {
            return Err(ZoneError::TooManyRecords { records });
        }
        if ttl.subsec_nanos() != 0 || ttl.as_secs() > MAX_TTL_S {
            return Err(ZoneError::Ttl { ttl });
        }
        let digits = records.to_string().len().max(FEWEST_DIGITS);
        let zone = Self { origin, records, ttl: Ttl::from_duration_lossy(ttl), digits };
        // No label is longer: not that of a host outside the zone, nor `hostmaster`.
        match host_label(u32::MAX, digits).chain(&zone.origin) {
            Ok(_) => Ok(zone),
            Err(_) => Err(ZoneError::OriginTooLong { origin: zone.origin.to_string() }),
        }
    }

    /// Like [`SyntheticZone::new`], from a zone name as people write it, with or without the final dot.
    ///
    /// # Errors
    /// As [`SyntheticZone::new`], and when the text is no domain name.
    pub fn named(name: &str, records: u32, ttl: Duration) -> Result<Self, ZoneError> {
        let origin = Name::from_str(name).map_err(|error: domain::base::name::FromStrError| {
            ZoneError::Name { name: name.to_owned(), reason: error.to_string() }
        })?;
        Self::new(origin, records, ttl)
    }

    /// The name of the zone.
    #[must_use]
    pub fn origin(&self) -> &Name<Vec<u8>> {
        &self.origin
    }

    /// How many hosts it has.
    #[must_use]
    pub fn records(&self) -> u32 {
        self.records
    }

    /// The TTL of every record.
    #[must_use]
    pub fn ttl(&self) -> Duration {
        self.ttl.into_duration()
    }

    /// The name of host `index`, from 0. From [`SyntheticZone::records`] on, the zone has no such name.
    #[must_use]
    pub fn name(&self, index: u32) -> Name<Vec<u8>> {
        self.below(host_label(index, self.digits))
    }

    /// The address of host `index`, from 0: 10.0.0.1 and on.
    #[must_use]
    pub fn address(&self, index: u32) -> Ipv4Addr {
        Ipv4Addr::from_bits(
            Ipv4Addr::new(10, 0, 0, 0).to_bits() | (index.wrapping_add(1) & 0xff_ffff),
        )
    }

    /// The SOA record's data: serial 1, and the TTL for negative answers too (RFC 2308, section 4).
    #[must_use]
    pub fn soa(&self) -> Soa<Name<Vec<u8>>> {
        let (hour, day) = (Ttl::from_hours(1), Ttl::from_days(1));
        let (server, mailbox) = (self.name_server(), self.below(label("hostmaster")));
        Soa::new(server, mailbox, Serial(1), hour, hour, day, self.ttl)
    }

    /// The name of the zone's one name server.
    #[must_use]
    pub fn name_server(&self) -> Name<Vec<u8>> {
        self.below(label("ns"))
    }

    pub(super) fn hosts(&self) -> impl Iterator<Item = (HostLabel, Ipv4Addr)> {
        let digits = self.digits;
        (0..self.records).map(move |index| (HostLabel { index, digits }, self.address(index)))
    }

    fn below(&self, label: RelativeName<Vec<u8>>) -> Name<Vec<u8>> {
        let chain = label.chain(&self.origin).expect("the longest host name was tried in `new`");
        chain.to_vec()
    }
}

/// The label of a host, as text; people count from 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct HostLabel {
    /// Number of the host, from 0.
    index: u32,
    /// Digits that it has at least.
    digits: usize,
}

impl fmt::Display for HostLabel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { index, digits } = *self;
        write!(formatter, "host-{:0digits$}", u64::from(index) + 1)
    }
}

fn host_label(index: u32, digits: usize) -> RelativeName<Vec<u8>> {
    label(&HostLabel { index, digits }.to_string())
}

/// A name of one label without special characters.
fn label(text: &str) -> RelativeName<Vec<u8>> {
    let octets = [&[text.len() as u8], text.as_bytes()].concat();
    RelativeName::from_octets(octets).expect("the labels of this file are short and not empty")
}

#[cfg(test)]
mod tests {
    use std::str::FromStr as _;

    use domain::base::iana::Rtype;
    use domain::rdata::ZoneRecordData;
    use domain::zonefile::inplace::{Entry, Zonefile};

    use super::*;

    fn zone(origin: &str, records: u32) -> SyntheticZone {
        let origin = Name::from_str(origin).unwrap();
        SyntheticZone::new(origin, records, Duration::from_secs(5)).unwrap()
    }

    fn text(zone: &SyntheticZone) -> String {
        let mut octets = Vec::new();
        zone.write_to(&mut octets).unwrap();
        String::from_utf8(octets).unwrap()
    }

    #[test]
    fn the_file() {
        let expected = "\
            $ORIGIN example.test.\n\
            $TTL 5\n\
            @ IN SOA ns.example.test. hostmaster.example.test. 1 3600 3600 86400 5\n\
            @ IN NS ns.example.test.\n\
            ns IN A 192.0.2.53\n\
            host-000001 IN A 10.0.0.1\n\
            host-000002 IN A 10.0.0.2\n";
        assert_eq!(text(&zone("example.test", 2)), expected);
    }

    #[test]
    fn a_parser_reads_the_same_zone() {
        for (origin, records) in [("example.test", 700), (".", 3), (r"a\.b.x\032y.\007", 2)] {
            let zone = zone(origin, records);
            let mut file = Zonefile::load(&mut text(&zone).as_bytes()).unwrap();
            file.set_default_class(domain::base::iana::Class::IN);
            let mut hosts = 0;
            let mut types = Vec::new();
            while let Some(Entry::Record(record)) = file.next_entry().unwrap() {
                assert_eq!(record.ttl().into_duration(), zone.ttl());
                types.push(record.rtype());
                let owner = record.owner().to_vec();
                match record.data() {
                    ZoneRecordData::A(a) if owner == zone.name(hosts) => {
                        assert_eq!(a.addr(), zone.address(hosts));
                        hosts += 1;
                    }
                    ZoneRecordData::A(a) => {
                        assert_eq!(owner, zone.name_server());
                        assert_eq!(a.addr(), SERVER_ADDRESS);
                    }
                    ZoneRecordData::Soa(soa) => {
                        assert_eq!(owner, *zone.origin());
                        assert!(*soa == zone.soa(), "{soa:?}");
                    }
                    ZoneRecordData::Ns(ns) => {
                        assert_eq!(ns.nsdname().to_vec(), zone.name_server());
                    }
                    other => panic!("{other:?}"),
                }
            }
            assert_eq!(hosts, records, "{origin}");
            assert_eq!(types[..3], [Rtype::SOA, Rtype::NS, Rtype::A], "{origin}");
        }
    }

    #[test]
    fn names_are_of_one_length() {
        let check = |records, index, name: &str| {
            assert_eq!(zone("x.", records).name(index).to_string(), name);
        };
        check(10, 0, "host-000001.x");
        check(999_999, 999_998, "host-999999.x");
        check(1_000_000, 0, "host-0000001.x");
        check(1_000_000, 999_999, "host-1000000.x");
        // A name that is not in the zone is a name all the same.
        check(1, u32::MAX, "host-4294967296.x");
    }

    #[test]
    fn addresses_are_distinct() {
        let zone = zone("x.", MAX_RECORDS);
        for (index, address) in
            [(0, [10, 0, 0, 1]), (255, [10, 0, 1, 0]), (MAX_RECORDS - 1, [10, 255, 255, 254])]
        {
            assert_eq!(zone.address(index), Ipv4Addr::from(address));
        }
    }

    #[test]
    fn impossible_zones_are_refused() {
        // Labels of one letter, and where that does not give the length, of two at its beginning.
        let origin = |length: usize| -> Name<Vec<u8>> {
            ["a".repeat(1 - length % 2), "a.".repeat((length - 1) / 2)].concat().parse().unwrap()
        };
        let second = Duration::from_secs(1);
        // The longest label takes 16 octets.
        let longest = SyntheticZone::new(origin(255 - 16), 1, second).unwrap();
        assert_eq!(longest.name(u32::MAX).len(), 255);
        for (origin, records, ttl, part) in [
            (origin(255 - 15), 1, second, "too long"),
            (origin(4), MAX_RECORDS + 1, second, "16777215 records is too large"),
            (origin(4), 1, Duration::from_millis(1_500), "1.5s is not possible"),
            (origin(4), 1, Duration::from_secs(1 << 31), "below 2^31"),
        ] {
            let error = SyntheticZone::new(origin, records, ttl).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        for name in ["", "a..b", ".a", "ä.example"] {
            let error = SyntheticZone::named(name, 1, second).unwrap_err().to_string();
            assert!(error.starts_with(&format!("`{name}` is no zone name: ")), "{error}");
        }
    }
}
