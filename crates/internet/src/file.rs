//! The file that describes an internet.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;
use std::time::Duration;

use dnslab_wire::ZoneAlgorithm;
use dnslab_wire::units::{duration, share};
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, de::Error as _};

use crate::network::{Network, NetworkError};

/// An internet as its file describes it. What a file leaves out has the value of [`Description::default`],
/// which `docs/internet.toml` shows with the reason for each.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Description {
    /// Everything that is not stated follows from it.
    pub seed: Whole<0, { i64::MAX as u64 }>,
    /// Domains that are registered below the top-level domains.
    pub domains: Whole<1, { 1 << 48 }>,
    /// Where the servers are.
    pub network: Networks,
    /// The root.
    pub root: Root,
    /// The top-level domains.
    pub top_level: TopLevel,
    /// Who has the servers of all other zones.
    pub operators: Operators,
    /// What is wrong with some zones.
    pub faults: Faults,
    /// How long servers take, and what they lose.
    pub path: Path,
    /// What clients ask for, and what it is.
    pub names: Names,
    /// Keys and signatures.
    pub dnssec: Dnssec,
    /// Names of addresses.
    pub reverse: Reverse,
}

/// Where the servers are.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Networks {
    /// Each server has an address of this network.
    pub ipv4: Ipv4Network,
    /// Servers with IPv6 have one of this network too; `none` for no IPv6.
    pub ipv6: Ipv6Network,
}

/// A network of IPv4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4Network(pub Network);

/// A network of IPv6, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6Network(pub Option<Network>);

/// The root.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Root {
    /// Root servers, `a.root-servers.` and so on.
    pub servers: Whole<1, 26>,
}

/// The top-level domains.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TopLevel {
    /// How many there are. Those that `known` does not name are made up.
    pub count: Whole<1, 20_000>,
    /// Names under which domains are registered, with their share of all domains; `co.uk` is a zone below
    /// `uk`. What the shares leave is spread over the domains that are made up.
    pub known: Vec<(Suffix, Share)>,
    /// Servers of a top-level domain, with weights.
    pub servers: Table<1, 13>,
    /// TTL of delegations and glue, of the root and of top-level domains.
    pub ttl: Seconds,
    /// TTL of their DS records.
    pub ds_ttl: Seconds,
    /// TTL of their negative answers.
    pub negative_ttl: Seconds,
    /// Share of top-level domains that deny by NSEC records; all others have NSEC3 records. Those that the file
    /// names have NSEC records only where this is 1.
    pub nsec: Share,
    /// Of those with NSEC3 records, the share with Opt-Out (RFC 5155, section 6). Those that the file names have
    /// it, unless this is 0.
    pub opt_out: Share,
}

/// Who has the servers of all other zones.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Operators {
    /// How many there are. Zones choose them by rank: half of the zones are with the first `sqrt(count)`.
    pub count: Whole<2, 1_000_000>,
    /// Servers of each kind that an operator has: sound, slow, dead, and two kinds without EDNS.
    pub servers: Whole<2, 13>,
    /// Servers of a zone, with weights; at most as many as its operator has.
    pub servers_per_zone: Table<1, 13>,
    /// Share of zones whose servers have names in the zone itself, so that referrals have glue.
    pub own_names: Share,
    /// Share of operators with IPv6.
    pub ipv6: Share,
    /// Share of operators, and of top-level domains, whose servers know DNS cookies (RFC 7873).
    pub cookies: Share,
    /// Largest datagram that the servers of an operator send, octets, with weights.
    pub payload: Table<512, 4096>,
}

/// What is wrong with some zones below the top-level domains. A zone has at most one fault.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Faults {
    /// Share of zones with a server that does not serve them: it answers REFUSED.
    pub lame: Share,
    /// Share of zones with a server that never answers.
    pub dead: Share,
    /// Share of zones with a slow server.
    pub slow: Share,
    /// Share of zones with servers that answer FORMERR to a query with an OPT record.
    pub edns_formerr: Share,
    /// Share of zones with servers that ignore OPT records.
    pub edns_ignored: Share,
    /// Of the zones that are lame or have dead servers: the share where all servers are.
    pub whole: Share,
}

/// How long servers take, and what they lose.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Path {
    /// Median over the servers of the round trip to them.
    pub median: Time,
    /// Standard deviation of its natural logarithm over the servers; 0 for one round trip for all.
    pub sigma: Decimal<10>,
    /// The median for servers of the root and of top-level domains.
    pub anycast_median: Time,
    /// The median for slow servers.
    pub slow_median: Time,
    /// Mean of what each answer takes longer, as a multiple of the server's round trip; exponential.
    pub jitter: Decimal<100>,
    /// Share of queries that are lost, at every server.
    pub loss: Share,
}

/// What clients ask for, and what it is.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Names {
    /// Names of a domain that clients ask for, itself included.
    pub per_domain: Whole<1, 64>,
    /// Share of the names that clients ask for that do not exist.
    pub absent: Share,
    /// Of these, the share below a domain that exists.
    pub absent_hosts: Share,
    /// Of these, the share below no top-level domain. The rest would be domains.
    pub absent_top_level: Share,
    /// Share of hosts that are one label deeper: `www.eu.example.com`.
    pub deep: Share,
    /// Share of such labels that are a zone of their own.
    pub cut: Share,
    /// Share of hosts that are an alias.
    pub alias: Share,
    /// CNAME records that an alias leads through, with weights.
    pub alias_length: Table<1, 12>,
    /// Share of these CNAME records whose target is in the same domain.
    pub alias_inside: Share,
    /// A records of a host, with weights.
    pub addresses: Table<1, 200>,
    /// Share of hosts with AAAA records; the others have NODATA.
    pub ipv6: Share,
    /// TTL of hosts and aliases, seconds, with weights.
    pub ttl: Table<0, 604_800>,
    /// TTL of name servers and their addresses in their own zone, seconds, with weights.
    pub server_ttl: Table<0, 604_800>,
    /// TTL of negative answers, seconds, with weights.
    pub negative_ttl: Table<0, 86_400>,
    /// Octets of text that a domain has as TXT record, with weights; 0 for none.
    pub text: Table<0, 16_000>,
    /// Share of domains with MX records.
    pub mail: Share,
    /// Share of hosts with an HTTPS record (RFC 9460).
    pub https: Share,
    /// Share of domains with SRV records of mail and calendars.
    pub services: Share,
    /// Share of domains with a DMARC record, a TXT record at `_dmarc`.
    pub dmarc: Share,
    /// Share of domains with a CAA record (RFC 8659).
    pub caa: Share,
    /// Share of names whose answers are always truncated over UDP, whatever their size.
    pub truncated: Share,
}

/// Keys and signatures.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Dnssec {
    /// Whether the root is signed; without it nothing is.
    pub root: bool,
    /// The algorithm of the root's key, by its number.
    pub root_algorithm: Whole<8, 15>,
    /// Those of the keys of top-level domains that are signed, with weights.
    pub top_level_algorithms: Table<8, 15>,
    /// Those of the keys of zones below them that are signed, with weights.
    pub algorithms: Table<8, 15>,
    /// Share of top-level domains that are signed. Those that the file names always are, unless this is 0.
    pub top_level: Share,
    /// Share of domains below them that are signed, where the top-level domain is.
    pub domains: Share,
    /// Of these, the share whose signatures have expired.
    pub expired: Share,
    /// Of the zones below the top-level domains that are signed: the share with NSEC3 records.
    pub nsec3: Share,
    /// Of these, the share with Opt-Out.
    pub opt_out: Share,
}

/// Names of addresses: the reverse tree.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Reverse {
    /// Share of addresses that have a name, in networks that are delegated.
    pub pointers: Share,
    /// Share of the networks of IPv4 with 16 bits that are one zone; the others are delegated by 24 bits.
    pub blocks: Share,
    /// Share of networks that are delegated at all.
    pub delegated: Share,
}

impl Default for Description {
    fn default() -> Self {
        Self {
            seed: Whole(1),
            domains: Whole(350_000_000),
            network: Networks::default(),
            root: Root::default(),
            top_level: TopLevel::default(),
            operators: Operators::default(),
            faults: Faults::default(),
            path: Path::default(),
            names: Names::default(),
            dnssec: Dnssec::default(),
            reverse: Reverse::default(),
        }
    }
}

impl Default for Networks {
    fn default() -> Self {
        let read = |text: &str| text.parse().expect("it was written as a network");
        Self {
            ipv4: Ipv4Network(read("198.18.0.0/15")),
            ipv6: Ipv6Network(Some(read("2001:2::/48"))),
        }
    }
}

impl Default for Root {
    fn default() -> Self {
        Self { servers: Whole(13) }
    }
}

impl Default for TopLevel {
    fn default() -> Self {
        let known = [
            ("com", 0.41),
            ("cn", 0.06),
            ("de", 0.046),
            ("net", 0.036),
            ("co.uk", 0.03),
            ("org", 0.029),
            ("nl", 0.017),
            ("ru", 0.015),
            ("com.br", 0.013),
            ("info", 0.011),
            ("fr", 0.011),
            ("eu", 0.01),
            ("it", 0.01),
            ("xyz", 0.01),
            ("io", 0.003),
        ];
        let suffix = |name: &str| Suffix(name.to_owned());
        Self {
            count: Whole(1440),
            known: known.map(|(name, share)| (suffix(name), Share(share))).into(),
            servers: Table(vec![(2, 0.1), (4, 0.5), (6, 0.3), (8, 0.1)]),
            ttl: Seconds(172_800),
            ds_ttl: Seconds(86_400),
            negative_ttl: Seconds(900),
            nsec: Share(0.04),
            opt_out: Share(0.8),
        }
    }
}

impl Default for Operators {
    fn default() -> Self {
        Self {
            count: Whole(2_000),
            servers: Whole(4),
            servers_per_zone: Table(vec![(1, 0.01), (2, 0.68), (3, 0.14), (4, 0.17)]),
            own_names: Share(0.1),
            ipv6: Share(0.5),
            cookies: Share(0.3),
            payload: Table(vec![(1232, 0.7), (1400, 0.1), (4096, 0.2)]),
        }
    }
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            lame: Share(0.05),
            dead: Share(0.05),
            slow: Share(0.02),
            edns_formerr: Share(0.002),
            edns_ignored: Share(0.005),
            whole: Share(0.1),
        }
    }
}

impl Default for Path {
    fn default() -> Self {
        Self {
            median: Time(Duration::from_millis(30)),
            sigma: Decimal(0.9),
            anycast_median: Time(Duration::from_millis(12)),
            slow_median: Time(Duration::from_millis(400)),
            jitter: Decimal(0.05),
            loss: Share(0.002),
        }
    }
}

impl Default for Names {
    fn default() -> Self {
        Self {
            per_domain: Whole(4),
            absent: Share(0.09),
            absent_hosts: Share(0.6),
            absent_top_level: Share(0.2),
            deep: Share(0.05),
            cut: Share(0.3),
            alias: Share(0.3),
            alias_length: Table(vec![(1, 0.75), (2, 0.18), (3, 0.05), (4, 0.02)]),
            alias_inside: Share(0.25),
            addresses: Table(vec![(1, 0.7), (2, 0.17), (4, 0.1), (8, 0.03)]),
            ipv6: Share(0.35),
            ttl: Table(vec![
                (30, 0.05),
                (60, 0.15),
                (300, 0.3),
                (600, 0.1),
                (3600, 0.3),
                (86_400, 0.1),
            ]),
            server_ttl: Table(vec![
                (300, 0.05),
                (3600, 0.4),
                (21_600, 0.15),
                (86_400, 0.3),
                (172_800, 0.1),
            ]),
            negative_ttl: Table(vec![(60, 0.1), (300, 0.2), (900, 0.1), (1800, 0.2), (3600, 0.4)]),
            text: Table(vec![(0, 0.3), (100, 0.5), (400, 0.17), (1_500, 0.03)]),
            mail: Share(0.7),
            https: Share(0.2),
            services: Share(0.15),
            dmarc: Share(0.12),
            caa: Share(0.05),
            truncated: Share(0.002),
        }
    }
}

impl Default for Dnssec {
    fn default() -> Self {
        Self {
            root: true,
            root_algorithm: Whole(8),
            top_level_algorithms: Table(vec![(13, 1.0)]),
            algorithms: Table(vec![(8, 0.3), (13, 0.65), (15, 0.05)]),
            top_level: Share(0.93),
            domains: Share(0.05),
            expired: Share(0.002),
            nsec3: Share(0.5),
            opt_out: Share(0.1),
        }
    }
}

impl Default for Reverse {
    fn default() -> Self {
        Self { pointers: Share(0.5), blocks: Share(0.3), delegated: Share(0.8) }
    }
}

/// The file cannot be used. The message has the line, if there is one.
#[derive(Debug, thiserror::Error)]
pub enum DescriptionError {
    /// It is not TOML, a key is not known, or a value is not possible.
    #[error("{0}")]
    File(#[from] toml::de::Error),
    /// Values do not fit together.
    #[error("`{keys}`: {reason}")]
    Together {
        /// The keys.
        keys: &'static str,
        /// What is wrong.
        reason: String,
    },
}

impl Description {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// When it is not TOML, names a key that does not exist, or has a value that is not possible.
    pub fn parse(text: &str) -> Result<Self, DescriptionError> {
        let own: Self = toml::from_str(text)?;
        own.check()?;
        Ok(own)
    }

    fn check(&self) -> Result<(), DescriptionError> {
        let fault = |keys, reason: String| Err(DescriptionError::Together { keys, reason });
        let sum = |shares: &[&Share]| shares.iter().map(|share| share.0).sum::<f64>();
        let Faults { lame, dead, slow, edns_formerr, edns_ignored, .. } = &self.faults;
        let faulty = sum(&[lame, dead, slow, edns_formerr, edns_ignored]);
        if faulty > 1.0 {
            return fault("faults", format!("the shares add up to {}", share::write(faulty)));
        }
        let Dnssec { root_algorithm, top_level_algorithms, algorithms, .. } = &self.dnssec;
        for (keys, numbers) in [
            ("dnssec.root_algorithm", vec![root_algorithm.0]),
            ("dnssec.top_level_algorithms", top_level_algorithms.values()),
            ("dnssec.algorithms", algorithms.values()),
        ] {
            if let Some(number) = numbers.into_iter().find(|number| algorithm(*number).is_none()) {
                let reason = format!("{number} is not among 8 (RSA), 13 (ECDSA) and 15 (Ed25519)");
                return fault(keys, reason);
            }
        }
        let absent = sum(&[&self.names.absent_hosts, &self.names.absent_top_level]);
        if absent > 1.0 {
            let reason = format!("both add up to {}", share::write(absent));
            return fault("names.absent_hosts, names.absent_top_level", reason);
        }
        let known = self.top_level.known.iter().map(|(_, share)| share.0).sum::<f64>();
        if known > 1.0 + 1e-9 {
            let reason = format!("the shares add up to {}", share::write(known));
            return fault("top_level.known", reason);
        }
        let mut names: Vec<&str> =
            self.top_level.known.iter().map(|(suffix, _)| suffix.0.as_str()).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return fault("top_level.known", format!("`{}` is there twice", twice[0]));
        }
        let mut tops: Vec<&str> = names.iter().map(|name| top_label(name)).collect();
        tops.sort_unstable();
        tops.dedup();
        if tops.len() as u64 > self.top_level.count.0 {
            let reason =
                format!("more than {} top-level domains are named", self.top_level.count.0);
            return fault("top_level.known, top_level.count", reason);
        }
        if known <= 0.0 && tops.len() as u64 == self.top_level.count.0 {
            let reason = "no domain can be registered anywhere".to_owned();
            return fault("top_level.known, top_level.count", reason);
        }
        Ok(())
    }
}

/// The algorithm with this number, if zones can have it.
pub(crate) fn algorithm(number: u64) -> Option<ZoneAlgorithm> {
    u8::try_from(number).ok().and_then(ZoneAlgorithm::of_number)
}

/// The last label of a name.
pub(crate) fn top_label(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// A whole number with bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whole<const LEAST: u64, const MOST: u64>(pub u64);

/// A number from 0 to a bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decimal<const MOST: u64>(pub f64);

/// A share in [0, 1]: `0.05` or `"5%"`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share(pub f64);

/// A TTL: `"48h"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seconds(pub u32);

/// A duration of at most a minute: `"30ms"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time(pub Duration);

/// Whole numbers with bounds, each with its weight.
#[derive(Clone, Debug, PartialEq)]
pub struct Table<const LEAST: u64, const MOST: u64>(pub Vec<(u64, f64)>);

impl<const LEAST: u64, const MOST: u64> Table<LEAST, MOST> {
    fn values(&self) -> Vec<u64> {
        self.0.iter().map(|(value, _)| *value).collect()
    }
}

/// A name under which domains are registered: one label, or two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suffix(pub String);

/// Reads what a text says; numbers too if they may stand for it.
struct Reader<T> {
    expected: &'static str,
    read: fn(&str) -> Result<T, WrongValue>,
    number: Option<fn(f64) -> Result<T, WrongValue>>,
    value: PhantomData<T>,
}

/// The end of a sentence that begins with the value.
#[derive(Debug, thiserror::Error)]
enum WrongValue {
    #[error(" is {0}")]
    Kind(&'static str),
    #[error(": {0}")]
    Network(#[from] NetworkError),
}

impl<T> Visitor<'_> for Reader<T> {
    type Value = T;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.expected)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        (self.read)(text).map_err(|wrong| E::custom(format_args!("`{text}`{wrong}")))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<T, E> {
        match self.number {
            Some(read) => read(value).map_err(|wrong| E::custom(format_args!("{value}{wrong}"))),
            None => Err(E::invalid_type(de::Unexpected::Float(value), &self)),
        }
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<T, E> {
        match self.number {
            Some(_) => self.visit_f64(value as f64),
            None => Err(E::invalid_type(de::Unexpected::Signed(value), &self)),
        }
    }
}

fn whole<E: de::Error>(value: i64, least: u64, most: u64) -> Result<u64, E> {
    let own = u64::try_from(value).ok().filter(|number| (least..=most).contains(number));
    own.ok_or_else(|| E::custom(format!("{value} is not between {least} and {most}")))
}

impl<'de, const LEAST: u64, const MOST: u64> Deserialize<'de> for Whole<LEAST, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        whole(i64::deserialize(deserializer)?, LEAST, MOST).map(Self)
    }
}

impl<'de, const MOST: u64> Deserialize<'de> for Decimal<MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = f64::deserialize(deserializer)?;
        match (0.0..=MOST as f64).contains(&value) {
            true => Ok(Self(value)),
            false => Err(D::Error::custom(format!("{value} is not between 0 and {MOST}"))),
        }
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader {
            expected: "a share, as in `0.05` or \"5%\"",
            read: |text| {
                let wrong = "no share between 0 and 1, as in `0.05` or \"5%\"";
                share::read(text).map(Self).ok_or(WrongValue::Kind(wrong))
            },
            number: Some(|value| match (0.0..=1.0).contains(&value) {
                true => Ok(Self(value)),
                false => Err(WrongValue::Kind("no share between 0 and 1")),
            }),
            value: PhantomData,
        })
    }
}

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Reader {
            expected: "a TTL, as in \"48h\"",
            read: |text| {
                // RFC 2181, section 8: at most 2^31 - 1; a week is more than anybody needs.
                let read =
                    duration::read(text).ok().filter(|duration| duration.as_secs() <= 604_800);
                let wrong = WrongValue::Kind("no TTL of at most 168h, as in \"48h\"");
                read.map(|duration| Self(duration.as_secs() as u32)).ok_or(wrong)
            },
            number: None,
            value: PhantomData,
        })
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Reader {
            expected: "a duration, as in \"30ms\"",
            read: |text| {
                let read = duration::read(text).ok().filter(|duration| duration.as_secs() <= 60);
                let wrong = "no duration of at most 60s, as in \"30ms\"";
                read.map(Self).ok_or(WrongValue::Kind(wrong))
            },
            number: None,
            value: PhantomData,
        })
    }
}

impl<'de, const LEAST: u64, const MOST: u64> Deserialize<'de> for Table<LEAST, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let rows = Vec::<(Whole<LEAST, MOST>, Decimal<1_000_000>)>::deserialize(deserializer)?;
        if rows.len() > 1_000 {
            return Err(D::Error::custom("a table has at most 1,000 rows"));
        }
        let rows: Vec<(u64, f64)> =
            rows.into_iter().map(|(value, weight)| (value.0, weight.0)).collect();
        match rows.iter().any(|(_, weight)| *weight > 0.0) {
            true => Ok(Self(rows)),
            false => Err(D::Error::custom("at least one value needs a weight above 0")),
        }
    }
}

impl<'de> Deserialize<'de> for Suffix {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Reader {
            expected: "a name of one or two labels",
            read: |text| {
                let is_letter = |octet: u8| matches!(octet, b'a'..=b'z' | b'0'..=b'9' | b'-');
                let is_label =
                    |label: &str| (1..=63).contains(&label.len()) && label.bytes().all(is_letter);
                let labels: Vec<&str> = text.split('.').collect();
                let is_taken =
                    ["root-servers", "arpa"].contains(&top_label(text)) || labels[0] == "nic";
                match labels.len() <= 2 && labels.iter().all(|label| is_label(label)) && !is_taken {
                    true => Ok(Self(text.to_owned())),
                    false => Err(WrongValue::Kind(
                        "not one or two labels of a-z, 0-9 and -, as in `com` or `co.uk`",
                    )),
                }
            },
            number: None,
            value: PhantomData,
        })
    }
}

impl<'de> Deserialize<'de> for Ipv4Network {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Reader {
            expected: "a network of IPv4, as in \"198.18.0.0/15\"",
            read: |text| match Network::from_str(text)? {
                network if network.address().is_ipv4() => Ok(Self(network)),
                _ => Err(WrongValue::Kind("no network of IPv4")),
            },
            number: None,
            value: PhantomData,
        })
    }
}

impl<'de> Deserialize<'de> for Ipv6Network {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Reader {
            expected: "a network of IPv6, as in \"2001:2::/48\", or \"none\"",
            read: |text| match Network::from_str(text) {
                _ if text == "none" => Ok(Self(None)),
                Ok(network) if network.address().is_ipv6() => Ok(Self(Some(network))),
                Ok(_) => Err(WrongValue::Kind("no network of IPv6")),
                Err(error) => Err(error.into()),
            },
            number: None,
            value: PhantomData,
        })
    }
}
