//! Who is who: top-level domains, operators, servers and their addresses, zones and what is wrong with them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use dnslab_wire::ZoneAlgorithm;

use crate::draw::{About, Chance, Draws, Weighted, below, mix, unit};
use crate::file::{Description, DescriptionError, Share, Table, algorithm, top_label};
use crate::label::{Labels, syllables};
use crate::name::{Name, push_label_with, push_number};
use crate::network::Network;
use crate::nsec3::nsec3_hash;
use crate::prefix::Prefix;

/// A whole DNS hierarchy. Everything in it follows from its [`Description`].
///
/// Its memory is that of its servers and top-level domains, some octets for each: names are computed.
#[derive(Debug)]
pub struct Internet {
    pub(crate) description: Description,
    pub(crate) draws: Draws,
    pub(crate) labels: Labels,
    /// In the order of their labels, with the registries below them after all top-level domains.
    pub(crate) registries: Vec<Registry>,
    /// How many of them are top-level domains.
    pub(crate) top_level_count: usize,
    pub(crate) registered: Weighted<u32>,
    /// The registries of addresses: `in-addr.arpa` and `ip6.arpa`.
    pub(crate) reverse: [u32; 2],
    pub(crate) chances: Chances,
    pub(crate) tables: Tables,
    /// For each server in the order of addresses, in microseconds.
    round_trips: Vec<u32>,
    /// Of each server of a top-level domain: which one.
    registry_of_server: Vec<u32>,
}

/// A zone below which domains are registered.
#[derive(Debug)]
pub(crate) struct Registry {
    pub(crate) apex: Name,
    /// The label below its parent.
    pub(crate) label: Box<[u8]>,
    /// For a registry below a top-level domain, that one.
    pub(crate) parent: Option<u32>,
    /// The registries below a top-level domain.
    pub(crate) below: Vec<u32>,
    /// The place of its first server among all servers of top-level domains.
    first_server: u32,
    pub(crate) servers: u8,
    pub(crate) is_signed: bool,
    pub(crate) denial: Denial,
    /// Hashes of the names that it has itself, and of the registries below it, in ascending order: no NSEC3 record
    /// covers them.
    pub(crate) fixed: Vec<[u8; 20]>,
}

/// How a signed zone proves that something is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Denial {
    /// By the NSEC records of all its names.
    Nsec,
    /// By the NSEC3 records of all its names (RFC 5155).
    Nsec3 { opt_out: bool },
    /// By NSEC records that cover one name each (RFC 4470), because its names cannot be listed.
    MinimalNsec,
    /// By NSEC3 records that cover one hash each.
    MinimalNsec3,
    /// By NSEC3 records with Opt-Out that cover the hashes of many delegations that are not signed.
    Ranges,
}

#[derive(Debug)]
pub(crate) struct Chances {
    own_names: Chance,
    operator_ipv6: Chance,
    cookies: Chance,
    fault: Weighted<Fault>,
    whole: Chance,
    deep: Chance,
    cut: Chance,
    alias: Chance,
    alias_inside: Chance,
    ipv6: Chance,
    mail: Chance,
    truncated: Chance,
    sub_zone_signed: Chance,
    expired: Chance,
    nsec3: Chance,
    opt_out: Chance,
    absent: Chance,
    https: Chance,
    services: Chance,
    dmarc: Chance,
    caa: Chance,
    reverse_signed: Chance,
    pub(crate) pointer: Chance,
    pub(crate) block: Chance,
    pub(crate) delegated: Chance,
}

#[derive(Debug)]
pub(crate) struct Tables {
    pub(crate) servers_per_zone: Weighted<u64>,
    pub(crate) payload: Weighted<u64>,
    pub(crate) alias_length: Weighted<u64>,
    pub(crate) addresses: Weighted<u64>,
    pub(crate) ttl: Weighted<u64>,
    pub(crate) server_ttl: Weighted<u64>,
    pub(crate) negative_ttl: Weighted<u64>,
    pub(crate) text: Weighted<u64>,
    top_level_algorithms: Weighted<u64>,
    algorithms: Weighted<u64>,
}

/// What is wrong with a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// A server does not serve it.
    Lame,
    /// A server never answers.
    Dead,
    /// A server is slow.
    Slow,
    /// The servers answer FORMERR to a query with an OPT record.
    EdnsFormErr,
    /// The servers ignore OPT records.
    EdnsIgnored,
}

/// The kinds of servers that each operator has, in the order of their addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Sound,
    Slow,
    Dead,
    EdnsFormErr,
    EdnsIgnored,
}

const KINDS: [Kind; 5] =
    [Kind::Sound, Kind::Slow, Kind::Dead, Kind::EdnsFormErr, Kind::EdnsIgnored];

/// A server, which is one address of each family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Server {
    Root(u32),
    /// Of a top-level domain and the registries below it.
    TopLevel {
        registry: u32,
        slot: u32,
    },
    Operator {
        operator: u32,
        kind: Kind,
        slot: u32,
    },
}

/// A zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Zone {
    Root,
    Registry(u32),
    /// Of a domain, by its number, or of a region of it. Operators have the numbers after the last domain.
    Hosted {
        domain: u64,
        region: Option<u8>,
    },
    /// Of addresses.
    Reverse(Prefix),
}

/// The name servers of a zone, by slots from 0 on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NameServers {
    zone: Zone,
    pub(crate) count: u32,
    /// Of a zone below the registries.
    hosting: Option<Hosting>,
}

/// Who serves a zone below the registries, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hosting {
    pub(crate) operator: u32,
    /// Of the operator's servers of a kind, the first that serves it.
    first: u32,
    /// Name servers.
    pub(crate) count: u32,
    pub(crate) fault: Fault,
    is_whole: bool,
    faulty: u32,
    /// The name servers have names in the zone.
    pub(crate) own_names: bool,
}

/// How a server treats queries, whatever they ask.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Conduct {
    /// It never answers.
    pub is_silent: bool,
    /// The shortest time from query to answer.
    pub round_trip: Duration,
    /// Mean of what each answer takes longer; exponential.
    pub jitter: Duration,
    /// Share of queries that are lost.
    pub loss: f64,
}

/// Labels below a domain that stand for a part of the world. They are zones of their own or empty
/// non-terminals.
pub(crate) const REGIONS: [&str; 4] = ["eu", "us", "ap", "sa"];

/// Labels of hosts. The first host of a domain is the domain itself, the second `www`.
pub(crate) const HOSTS: [&str; 63] = [
    "api", "cdn", "static", "img", "mail", "login", "app", "m", "shop", "blog", "news", "media",
    "assets", "video", "images", "auth", "accounts", "data", "events", "metrics", "stats", "ads",
    "track", "pixel", "search", "maps", "docs", "help", "support", "status", "download", "updates",
    "files", "storage", "cloud", "push", "chat", "voice", "play", "games", "music", "tv", "live",
    "stream", "edge", "cache", "proxy", "gw", "vpn", "remote", "portal", "intranet", "forum",
    "wiki", "git", "ci", "test", "dev", "beta", "stage", "imap", "smtp", "time",
];

impl Internet {
    /// Makes the internet of a description.
    ///
    /// # Errors
    /// When its servers do not fit into its networks.
    pub fn new(description: Description) -> Result<Self, DescriptionError> {
        let draws = Draws::new(description.seed.0);
        let (operators, domains) = (description.operators.count.0, description.domains.0);
        let labels = Labels::new(draws, domains + operators);
        let Registries { registries, top_level_count, registered, reverse } =
            Registries::new(&description, draws);
        let registry_of_server: Vec<u32> = (0..)
            .zip(&registries[..top_level_count])
            .flat_map(|(number, registry)| {
                std::iter::repeat_n(number, usize::from(registry.servers))
            })
            .collect();
        let mut own = Self {
            chances: Chances::new(&description),
            tables: Tables::new(&description),
            draws,
            labels,
            registries,
            top_level_count,
            registered,
            reverse,
            round_trips: Vec::new(),
            registry_of_server,
            description,
        };
        let servers = own.server_count();
        for network in own.networks() {
            if servers > network.servers() {
                return Err(DescriptionError::Together {
                    keys: "network, operators.count, operators.servers",
                    reason: format!("{network} has no room for {servers} servers"),
                });
            }
        }
        own.round_trips = (0..servers).map(|place| own.draw_round_trip(place)).collect();
        Ok(own)
    }

    /// Reads the text of a file and makes its internet.
    ///
    /// # Errors
    /// As [`Description::parse`] and [`Internet::new`].
    pub fn parse(text: &str) -> Result<Self, DescriptionError> {
        Self::new(Description::parse(text)?)
    }

    /// What it was made from.
    #[must_use]
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// The networks that its servers are in: IPv4, and IPv6 if it has that.
    pub fn networks(&self) -> impl Iterator<Item = Network> + use<> {
        let networks = &self.description.network;
        [Some(networks.ipv4.0), networks.ipv6.0].into_iter().flatten()
    }

    /// How many servers there are. They have the first addresses of each network, after the first.
    #[must_use]
    pub fn server_count(&self) -> u64 {
        let operators = &self.description.operators;
        self.first_operator_place() + operators.count.0 * KINDS.len() as u64 * operators.servers.0
    }

    fn first_operator_place(&self) -> u64 {
        self.description.root.servers.0 + self.registry_of_server.len() as u64
    }

    /// How the server at this address treats queries; `None` if there is none.
    #[must_use]
    pub fn conduct(&self, address: IpAddr) -> Option<Conduct> {
        let place = self.place_of(address)?;
        let round_trip = self.round_trips[place as usize];
        let is_silent = matches!(self.server(place), Server::Operator { kind: Kind::Dead, .. });
        let jitter = f64::from(round_trip) * self.description.path.jitter.0;
        Some(Conduct {
            is_silent,
            round_trip: Duration::from_micros(round_trip.into()),
            jitter: Duration::from_micros(jitter as u64),
            loss: self.description.path.loss.0,
        })
    }

    fn draw_round_trip(&self, place: u64) -> u32 {
        let path = &self.description.path;
        let median = match self.server(place) {
            Server::Root(_) | Server::TopLevel { .. } => path.anycast_median,
            Server::Operator { kind: Kind::Slow, .. } => path.slow_median,
            Server::Operator { .. } => path.median,
        };
        // Box and Muller's transform of two draws.
        let [one, other] = [0, 1].map(|part| unit(self.draws.of_part(About::Delay, place, part)));
        let deviations = (-2.0 * (1.0 - one).ln()).sqrt() * (std::f64::consts::TAU * other).cos();
        let micros = median.0.as_micros() as f64 * (path.sigma.0 * deviations).exp();
        // Nobody waits for a minute.
        micros.min(60e6) as u32
    }

    /// The place of the server at an address.
    #[inline]
    fn place_of(&self, address: IpAddr) -> Option<u64> {
        let networks = &self.description.network;
        let network = match address {
            IpAddr::V4(_) => networks.ipv4.0,
            IpAddr::V6(_) => networks.ipv6.0?,
        };
        let place = network.place(address)?.checked_sub(1)?;
        (place < self.round_trips.len() as u64).then_some(place)
    }

    /// The server at an address.
    #[inline]
    pub(crate) fn server_at(&self, address: IpAddr) -> Option<Server> {
        self.place_of(address).map(|place| self.server(place))
    }

    /// `place` is below [`Internet::server_count`].
    fn server(&self, place: u64) -> Server {
        let roots = self.description.root.servers.0;
        if place < roots {
            return Server::Root(place as u32);
        }
        let first_operator = self.first_operator_place();
        if place < first_operator {
            let registry = self.registry_of_server[(place - roots) as usize];
            let first = self.registries[registry as usize].first_server;
            return Server::TopLevel { registry, slot: (place - roots) as u32 - first };
        }
        let place = place - first_operator;
        let each = self.description.operators.servers.0;
        let of_operator = place % (KINDS.len() as u64 * each);
        Server::Operator {
            operator: (place / (KINDS.len() as u64 * each)) as u32,
            kind: KINDS[(of_operator / each) as usize],
            slot: (of_operator % each) as u32,
        }
    }

    fn place(&self, server: Server) -> u64 {
        let roots = self.description.root.servers.0;
        match server {
            Server::Root(number) => number.into(),
            Server::TopLevel { registry, slot } => {
                let first = self.registries[registry as usize].first_server;
                roots + u64::from(first + slot)
            }
            Server::Operator { operator, kind, slot } => {
                let each = self.description.operators.servers.0;
                let before = u64::from(operator) * KINDS.len() as u64 + kind as u64;
                self.first_operator_place() + before * each + u64::from(slot)
            }
        }
    }

    /// The addresses of a server: of IPv4, and of IPv6 if it has one.
    pub(crate) fn addresses(&self, server: Server) -> (IpAddr, Option<IpAddr>) {
        let place = self.place(server) + 1;
        let networks = &self.description.network;
        let has_ipv6 = match server {
            Server::Root(_) | Server::TopLevel { .. } => true,
            Server::Operator { operator, .. } => {
                let word = self.draws.word(About::OperatorIpv6, operator.into());
                self.chances.operator_ipv6.includes(word)
            }
        };
        let ipv6 = networks.ipv6.0.filter(|_| has_ipv6).map(|network| network.at(place));
        (networks.ipv4.0.at(place), ipv6)
    }

    /// The largest datagram that a server sends, octets.
    pub(crate) fn payload(&self, server: Server) -> usize {
        match server {
            Server::Root(_) | Server::TopLevel { .. } => 1232,
            Server::Operator { operator, .. } => {
                let word = self.draws.word(About::OperatorPayload, operator.into());
                self.tables.payload.pick(word) as usize
            }
        }
    }

    /// True if a server knows DNS cookies (RFC 7873). All servers of an operator or a top-level domain do, or none.
    pub(crate) fn has_cookies(&self, server: Server) -> bool {
        let whose = match server {
            Server::Root(_) => 0,
            Server::TopLevel { registry, .. } => 1 << 32 | u64::from(registry),
            Server::Operator { operator, .. } => 2 << 32 | u64::from(operator),
        };
        self.chances.cookies.includes(self.draws.word(About::Cookies, whose))
    }

    /// What a server adds to a client's cookie. It has no clock and does not see the client's address, so it
    /// follows from the client's cookie alone; no resolver looks into it.
    pub(crate) fn server_cookie(&self, server: Server, client: [u8; 8]) -> [u8; 8] {
        let part = u64::from_be_bytes(client);
        self.draws.of_part(About::Cookie, self.place(server), part).to_be_bytes()
    }

    /// How many numbers have a domain: those of clients, then those of operators.
    pub(crate) fn domain_count(&self) -> u64 {
        self.description.domains.0 + self.description.operators.count.0
    }

    /// The operator with this domain.
    #[inline]
    pub(crate) fn operator_of(&self, domain: u64) -> Option<u32> {
        domain.checked_sub(self.description.domains.0).map(|operator| operator as u32)
    }

    /// The number of an operator's own domain.
    pub(crate) fn domain_of(&self, operator: u32) -> u64 {
        self.description.domains.0 + u64::from(operator)
    }

    /// Where a domain is registered.
    #[inline]
    pub(crate) fn registry_of(&self, domain: u64) -> u32 {
        self.registered.pick(self.draws.word(About::Registry, domain))
    }

    /// The place in the root zone of the top-level domain with this label.
    pub(crate) fn top_level(&self, label: &[u8]) -> Option<u32> {
        let all = &self.registries[..self.top_level_count];
        all.binary_search_by(|registry| (*registry.label).cmp(label)).ok().map(|place| place as u32)
    }

    /// An operator by rank: the share of the first `r` of `n` is `ln(r) / ln(n)`, as by Zipf's law.
    #[inline]
    pub(crate) fn draw_operator(&self, word: u64) -> u32 {
        let count = self.description.operators.count.0;
        let rank = ((count + 1) as f64).powf(unit(word)) as u64 - 1;
        rank.min(count - 1) as u32
    }

    /// A word about a zone below the registries.
    pub(crate) fn hosted_word(&self, domain: u64, region: Option<u8>) -> u64 {
        let part = region.map_or(0, |region| 1 + u64::from(region));
        self.draws.of_part(About::Zone, domain, part)
    }

    /// A word about a zone.
    pub(crate) fn zone_word(&self, zone: Zone) -> u64 {
        match zone {
            Zone::Root => mix(1),
            Zone::Registry(number) => mix(2 + u64::from(number)),
            Zone::Hosted { domain, region } => self.hosted_word(domain, region),
            Zone::Reverse(prefix) => self.reverse_word(prefix),
        }
    }

    pub(crate) fn hosting(&self, domain: u64, region: Option<u8>) -> Hosting {
        let word = self.hosted_word(domain, region);
        match self.operator_of(domain) {
            Some(operator) => {
                Hosting { own_names: true, ..self.hosting_by_operator(operator, word) }
            }
            None => self.draw_hosting(word, || self.is_hosted_signed(domain, region)),
        }
    }

    fn reverse_hosting(&self, prefix: Prefix) -> Hosting {
        let word = self.reverse_word(prefix);
        if prefix.is_of_registry() {
            let operator = self.reverse_operator(prefix, mix(word) as u32);
            return self.hosting_by_operator(operator, word);
        }
        let hosting = self.draw_hosting(word, || self.is_signed(Zone::Reverse(prefix)));
        let operator = self.reverse_operator(prefix, hosting.operator);
        // No server has its name below `arpa`.
        Hosting { operator, own_names: false, ..hosting }
    }

    fn server_count_of(&self, zone: u64) -> u32 {
        let servers = self.description.operators.servers.0 as u32;
        let count = self.tables.servers_per_zone.pick(self.draws.word(About::ServersOfZone, zone));
        (count as u32).min(servers)
    }

    /// With the first servers of an operator, which are sound.
    fn hosting_by_operator(&self, operator: u32, word: u64) -> Hosting {
        Hosting {
            operator,
            first: 0,
            count: self.server_count_of(word).max(2),
            fault: Fault::None,
            is_whole: false,
            faulty: 0,
            own_names: false,
        }
    }

    fn draw_hosting(&self, word: u64, is_signed: impl FnOnce() -> bool) -> Hosting {
        let servers = self.description.operators.servers.0;
        let count = self.server_count_of(word);
        let draw = |about| self.draws.word(about, word);
        let mut fault = self.chances.fault.pick(draw(About::Fault));
        if matches!(fault, Fault::EdnsFormErr | Fault::EdnsIgnored) && is_signed() {
            // Nobody could validate it.
            fault = Fault::None;
        }
        Hosting {
            operator: self.draw_operator(draw(About::Operator)),
            first: below(draw(About::FirstServer), servers) as u32,
            count,
            fault,
            is_whole: self.chances.whole.includes(draw(About::FaultIsWhole)),
            faulty: below(draw(About::FaultySlot), count.into()) as u32,
            own_names: self.chances.own_names.includes(draw(About::OwnNames)),
        }
    }

    /// Who serves a zone below the registries.
    #[inline]
    pub(crate) fn hosting_of(&self, zone: Zone) -> Option<Hosting> {
        match zone {
            Zone::Root | Zone::Registry(_) => None,
            Zone::Hosted { domain, region } => Some(self.hosting(domain, region)),
            Zone::Reverse(prefix) => Some(self.reverse_hosting(prefix)),
        }
    }

    /// True if no server of the zone answers for it.
    #[cfg(test)]
    pub(crate) fn is_out_of_order(&self, domain: u64, region: Option<u8>) -> bool {
        let hosting = self.hosting(domain, region);
        let is_bad = matches!(hosting.fault, Fault::Lame | Fault::Dead);
        is_bad && (hosting.is_whole || hosting.count == 1)
    }

    /// What is wrong with the zone of a domain.
    #[cfg(test)]
    pub(crate) fn fault(&self, domain: u64) -> Fault {
        self.hosting(domain, None).fault
    }

    /// The server behind a name server of a zone. It need not serve the zone.
    pub(crate) fn slot(&self, hosting: &Hosting, slot: u32) -> Server {
        let operators = self.description.operators.count.0 as u32;
        let NamedServer { kind, is_foreign } = hosting.named_server(slot);
        let servers = self.description.operators.servers.0 as u32;
        Server::Operator {
            operator: (hosting.operator + u32::from(is_foreign)) % operators,
            kind,
            slot: (hosting.first + slot) % servers,
        }
    }

    /// True if a server has the data of a zone.
    pub(crate) fn serves(&self, server: Server, zone: Zone) -> bool {
        match (server, zone) {
            (Server::Root(_), Zone::Root) => true,
            (Server::TopLevel { registry, .. }, Zone::Registry(number)) => {
                registry == number || self.registries[number as usize].parent == Some(registry)
            }
            (Server::Operator { operator, kind, slot }, zone) => {
                let Some(hosting) = self.hosting_of(zone) else { return false };
                if hosting.operator != operator {
                    return false;
                }
                let servers = self.description.operators.servers.0 as u32;
                let at = (slot + servers - hosting.first) % servers;
                at < hosting.count
                    && hosting.named_server(at) == NamedServer { kind, is_foreign: false }
            }
            _ => false,
        }
    }

    /// Whether a zone has keys.
    pub(crate) fn is_signed(&self, zone: Zone) -> bool {
        match zone {
            Zone::Root => self.description.dnssec.root,
            Zone::Registry(number) => self.registries[number as usize].is_signed,
            Zone::Hosted { domain, region } => self.is_hosted_signed(domain, region),
            Zone::Reverse(prefix) => {
                let is_signed = || self.chances.reverse_signed.includes(self.reverse_word(prefix));
                self.registries[self.reverse[0] as usize].is_signed
                    && (prefix.is_of_registry() || is_signed())
            }
        }
    }

    /// The algorithm of a signed zone's key.
    pub(crate) fn algorithm(&self, zone: Zone) -> ZoneAlgorithm {
        let word = || self.draws.word(About::Algorithm, self.zone_word(zone));
        let number = match zone {
            Zone::Root => self.description.dnssec.root_algorithm.0,
            Zone::Registry(_) => self.tables.top_level_algorithms.pick(word()),
            Zone::Hosted { .. } | Zone::Reverse(_) => self.tables.algorithms.pick(word()),
        };
        algorithm(number).expect("a description has no others")
    }

    /// How a signed zone proves that something is not there.
    pub(crate) fn denial(&self, zone: Zone) -> Denial {
        let is_listed = match zone {
            Zone::Root => return Denial::Nsec,
            Zone::Registry(number) => return self.registries[number as usize].denial,
            // Names of operators stand for parts of all domains.
            Zone::Hosted { domain, .. } => self.operator_of(domain).is_none(),
            Zone::Reverse(_) => false,
        };
        let draw = |about| self.draws.word(about, self.zone_word(zone));
        match (is_listed, self.chances.nsec3.includes(draw(About::Nsec3))) {
            (true, false) => Denial::Nsec,
            (true, true) => {
                Denial::Nsec3 { opt_out: self.chances.opt_out.includes(draw(About::OptOut)) }
            }
            (false, false) => Denial::MinimalNsec,
            (false, true) => Denial::MinimalNsec3,
        }
    }

    /// True if a signed zone has NSEC3 records.
    pub(crate) fn has_nsec3(&self, zone: Zone) -> bool {
        !matches!(self.denial(zone), Denial::Nsec | Denial::MinimalNsec)
    }

    fn is_hosted_signed(&self, domain: u64, region: Option<u8>) -> bool {
        let registry = self.registry_of(domain);
        if !self.registries[registry as usize].is_signed {
            return false;
        }
        let mut name = Vec::with_capacity(64);
        self.push_domain(domain, &mut name);
        let is_signed = self.is_in_signed_range(&nsec3_hash(&name));
        match region {
            None => is_signed,
            Some(region) => {
                let part = self.draws.of_part(About::SubZoneSigned, domain, region.into());
                is_signed && self.chances.sub_zone_signed.includes(part)
            }
        }
    }

    /// In a registry, delegations are signed whose hash is in the last part of one of 2^12 equal ranges of
    /// hashes. So a few NSEC3 records prove that the others are not signed, as they do where a registry can
    /// enumerate its delegations.
    pub(crate) fn is_in_signed_range(&self, hash: &[u8; 20]) -> bool {
        offset_in_range(hash) >= self.first_signed_offset()
    }

    /// In 2^32ths of a range.
    pub(crate) fn first_signed_offset(&self) -> u64 {
        ((1.0 - self.description.dnssec.domains.0) * 2_f64.powi(32)) as u64
    }

    pub(crate) fn is_expired(&self, zone: Zone) -> bool {
        let may_expire = match zone {
            Zone::Root | Zone::Registry(_) => false,
            Zone::Hosted { domain, .. } => self.operator_of(domain).is_none(),
            Zone::Reverse(prefix) => !prefix.is_of_registry(),
        };
        may_expire && {
            let word = self.draws.word(About::Expired, self.zone_word(zone));
            self.chances.expired.includes(word)
        }
    }

    /// Appends the name of a domain in wire form.
    pub(crate) fn push_domain(&self, domain: u64, octets: &mut Vec<u8>) {
        push_label_with(octets, |octets| self.labels.write(domain, octets));
        let registry = self.registry_of(domain) as usize;
        octets.extend_from_slice(self.registries[registry].apex.octets());
    }

    /// Appends the apex of a zone.
    pub(crate) fn push_apex(&self, zone: Zone, octets: &mut Vec<u8>) {
        match zone {
            Zone::Root => octets.push(0),
            Zone::Registry(number) => {
                octets.extend_from_slice(self.registries[number as usize].apex.octets());
            }
            Zone::Hosted { domain, region } => {
                if let Some(region) = region {
                    let label = REGIONS[usize::from(region)].as_bytes();
                    push_label_with(octets, |octets| octets.extend_from_slice(label));
                }
                self.push_domain(domain, octets);
            }
            Zone::Reverse(prefix) => self.push_prefix(prefix, octets),
        }
    }

    /// The name servers of a zone.
    pub(crate) fn name_servers(&self, zone: Zone) -> NameServers {
        let (count, hosting) = match zone {
            Zone::Root => (self.description.root.servers.0 as u32, None),
            Zone::Registry(number) => (self.registries[number as usize].servers.into(), None),
            Zone::Hosted { .. } | Zone::Reverse(_) => {
                let hosting = self.hosting_of(zone);
                (hosting.map_or(0, |hosting| hosting.count), hosting)
            }
        };
        NameServers { zone, count, hosting }
    }

    /// Appends the name of a name server of a zone, and returns the server behind it.
    pub(crate) fn push_name_server(
        &self,
        servers: &NameServers,
        slot: u32,
        octets: &mut Vec<u8>,
    ) -> Server {
        match (servers.zone, &servers.hosting) {
            (Zone::Registry(number), _) => {
                let top = self.registries[number as usize].parent.unwrap_or(number);
                let server = Server::TopLevel { registry: top, slot };
                self.push_server(server, octets);
                server
            }
            (zone, Some(hosting)) => {
                let server = self.slot(hosting, slot);
                if hosting.own_names {
                    push_server_label(octets, slot);
                    self.push_apex(zone, octets);
                } else {
                    self.push_server(server, octets);
                }
                server
            }
            (_, None) => {
                let server = Server::Root(slot);
                self.push_server(server, octets);
                server
            }
        }
    }

    /// Appends the name that a server has for whoever it belongs to.
    #[inline]
    pub(crate) fn push_server(&self, server: Server, octets: &mut Vec<u8>) {
        match server {
            Server::Root(slot) => {
                push_letter(octets, slot);
                octets.extend_from_slice(b"\x0croot-servers\0");
            }
            Server::TopLevel { registry, slot } => {
                push_letter(octets, slot);
                octets.extend_from_slice(b"\x03nic");
                octets.extend_from_slice(self.registries[registry as usize].apex.octets());
            }
            Server::Operator { operator, kind, slot } => {
                let each = self.description.operators.servers.0 as u32;
                push_server_label(octets, kind as u32 * each + slot);
                self.push_domain(self.domain_of(operator), octets);
            }
        }
    }

    /// The server of an operator with this number in its name; `None` if it has not so many.
    pub(crate) fn numbered_server(&self, operator: u32, number: u64) -> Option<Server> {
        let servers = self.description.operators.servers.0;
        let kind = *KINDS.get((number / servers) as usize)?;
        Some(Server::Operator { operator, kind, slot: (number % servers) as u32 })
    }

    /// Hosts of a domain beside itself.
    pub(crate) fn host_count(&self) -> u64 {
        self.description.names.per_domain.0 - 1
    }

    /// The label of a host, from 1 on.
    pub(crate) fn host_label(&self, domain: u64, host: u64) -> &'static str {
        match host {
            0 | 1 => "www",
            _ => HOSTS[((self.first_host(domain) + host - 2) % HOSTS.len() as u64) as usize],
        }
    }

    /// The host with this label.
    pub(crate) fn host_with_label(&self, domain: u64, label: &[u8]) -> Option<u64> {
        let count = HOSTS.len() as u64;
        let host = match label {
            b"www" => 1,
            _ => {
                let place = HOSTS.iter().position(|host| host.as_bytes() == label)? as u64;
                2 + (place + count - self.first_host(domain)) % count
            }
        };
        (host <= self.host_count()).then_some(host)
    }

    fn first_host(&self, domain: u64) -> u64 {
        self.draws.below(About::Hosts, domain, HOSTS.len() as u64)
    }

    /// The region that a host is in, if it is one label deeper.
    pub(crate) fn region_of(&self, domain: u64, host: u64) -> Option<u8> {
        let is_deep = self.chances.deep.includes(self.draws.of_part(About::Deep, domain, host));
        let word = self.draws.of_part(About::Region, domain, host);
        is_deep.then(|| below(word, REGIONS.len() as u64) as u8)
    }

    /// True if a domain has hosts in a region.
    pub(crate) fn has_region(&self, domain: u64, region: u8) -> bool {
        (1..=self.host_count()).any(|host| self.region_of(domain, host) == Some(region))
    }

    /// True if a region that a domain has is a zone.
    pub(crate) fn is_cut(&self, domain: u64, region: u8) -> bool {
        self.chances.cut.includes(self.draws.of_part(About::Cut, domain, region.into()))
    }

    /// CNAME records that a host leads through; 0 if it is no alias.
    pub(crate) fn alias_length(&self, domain: u64, host: u64) -> u64 {
        let word = self.draws.of_part(About::Chain, domain, host);
        if host == 0 || !self.chances.alias.includes(word) {
            return 0;
        }
        self.tables.alias_length.pick(self.draws.word(About::Chain, word))
    }

    /// The zone of a step of a host's chain, from 1 on: that of the domain, or that of an operator.
    pub(crate) fn domain_of_step(&self, domain: u64, host: u64, step: u64) -> u64 {
        let word = self.draws.of_part(About::ChainInside, domain, host << 8 | step);
        if self.chances.alias_inside.includes(word) {
            return domain;
        }
        self.domain_of(self.draw_operator(self.draws.word(About::ChainInside, word)))
    }

    pub(crate) fn has_ipv6(&self, node: u64) -> bool {
        self.chances.ipv6.includes(self.draws.word(About::Ipv6, node))
    }

    pub(crate) fn has_mail(&self, domain: u64) -> bool {
        self.chances.mail.includes(self.draws.word(About::Mail, domain))
    }

    pub(crate) fn has_https(&self, node: u64) -> bool {
        self.chances.https.includes(self.draws.word(About::Https, node))
    }

    pub(crate) fn has_services(&self, domain: u64) -> bool {
        self.chances.services.includes(self.draws.word(About::Services, domain))
    }

    pub(crate) fn has_dmarc(&self, domain: u64) -> bool {
        self.chances.dmarc.includes(self.draws.word(About::Dmarc, domain))
    }

    pub(crate) fn has_caa(&self, domain: u64) -> bool {
        self.chances.caa.includes(self.draws.word(About::Caa, domain))
    }

    pub(crate) fn is_truncated(&self, node: u64) -> bool {
        self.chances.truncated.includes(self.draws.word(About::Truncated, node))
    }

    pub(crate) fn is_absent(&self, number: u64) -> bool {
        self.chances.absent.includes(self.draws.word(About::Absent, number))
    }
}

/// The server that a name server of a zone leads to.
#[derive(PartialEq, Eq)]
struct NamedServer {
    kind: Kind,
    /// It is another operator's, which does not serve the zone.
    is_foreign: bool,
}

impl Hosting {
    fn named_server(&self, slot: u32) -> NamedServer {
        let is_faulty = self.is_whole || slot == self.faulty;
        let kind = match self.fault {
            Fault::Dead if is_faulty => Kind::Dead,
            Fault::Slow if slot == self.faulty => Kind::Slow,
            Fault::EdnsFormErr => Kind::EdnsFormErr,
            Fault::EdnsIgnored => Kind::EdnsIgnored,
            _ => Kind::Sound,
        };
        NamedServer { kind, is_foreign: self.fault == Fault::Lame && is_faulty }
    }
}

impl Chances {
    fn new(description: &Description) -> Self {
        let Description { operators, faults, names, dnssec, reverse, .. } = description;
        let chance = |share: Share| Chance::new(share.0);
        let sound = 1.0
            - faults.lame.0
            - faults.dead.0
            - faults.slow.0
            - faults.edns_formerr.0
            - faults.edns_ignored.0;
        Self {
            own_names: chance(operators.own_names),
            operator_ipv6: chance(operators.ipv6),
            cookies: chance(operators.cookies),
            fault: Weighted::new([
                (Fault::Lame, faults.lame.0),
                (Fault::Dead, faults.dead.0),
                (Fault::Slow, faults.slow.0),
                (Fault::EdnsFormErr, faults.edns_formerr.0),
                (Fault::EdnsIgnored, faults.edns_ignored.0),
                (Fault::None, sound.max(0.0)),
            ]),
            whole: chance(faults.whole),
            deep: chance(names.deep),
            cut: chance(names.cut),
            alias: chance(names.alias),
            alias_inside: chance(names.alias_inside),
            ipv6: chance(names.ipv6),
            mail: chance(names.mail),
            truncated: chance(names.truncated),
            // Of a signed domain, so the share is not that of all.
            sub_zone_signed: Chance::new(0.5),
            expired: chance(dnssec.expired),
            nsec3: chance(dnssec.nsec3),
            opt_out: chance(dnssec.opt_out),
            absent: chance(names.absent),
            https: chance(names.https),
            services: chance(names.services),
            dmarc: chance(names.dmarc),
            caa: chance(names.caa),
            reverse_signed: chance(dnssec.domains),
            pointer: chance(reverse.pointers),
            block: chance(reverse.blocks),
            delegated: chance(reverse.delegated),
        }
    }
}

impl Tables {
    fn new(description: &Description) -> Self {
        let Description { operators, names, dnssec, .. } = description;
        Self {
            servers_per_zone: weighted(&operators.servers_per_zone),
            payload: weighted(&operators.payload),
            alias_length: weighted(&names.alias_length),
            addresses: weighted(&names.addresses),
            ttl: weighted(&names.ttl),
            server_ttl: weighted(&names.server_ttl),
            negative_ttl: weighted(&names.negative_ttl),
            text: weighted(&names.text),
            top_level_algorithms: weighted(&dnssec.top_level_algorithms),
            algorithms: weighted(&dnssec.algorithms),
        }
    }
}

fn weighted<const LEAST: u64, const MOST: u64>(table: &Table<LEAST, MOST>) -> Weighted<u64> {
    Weighted::new(table.0.iter().copied())
}

/// `ns1` for slot 0.
fn push_server_label(octets: &mut Vec<u8>, slot: u32) {
    push_label_with(octets, |octets| {
        octets.extend_from_slice(b"ns");
        push_number(octets, u64::from(slot) + 1);
    });
}

/// `a` for slot 0.
fn push_letter(octets: &mut Vec<u8>, slot: u32) {
    octets.extend_from_slice(&[1, b'a' + slot as u8]);
}

/// All registries.
struct Registries {
    /// Top-level domains by label, then those below them.
    registries: Vec<Registry>,
    top_level_count: usize,
    /// How domains are spread over them.
    registered: Weighted<u32>,
    reverse: [u32; 2],
}

/// The top-level domain of addresses, and what is registered below it.
const REVERSE: [&str; 2] = ["in-addr.arpa", "ip6.arpa"];

/// Servers of `in-addr.arpa` and of `ip6.arpa`, as there are in the real tree.
const REVERSE_SERVERS: u8 = 6;

impl Registries {
    fn new(description: &Description, draws: Draws) -> Self {
        let top_level = &description.top_level;
        // By label: the share of what is registered right below.
        let mut tops: BTreeMap<Vec<u8>, f64> = BTreeMap::new();
        for (suffix, share) in &top_level.known {
            let own = tops.entry(top_label(&suffix.0).as_bytes().to_vec()).or_default();
            *own += if suffix.0.contains('.') { 0.0 } else { share.0 };
        }
        let (known, mut number) = (tops.len(), 0_u64);
        let rest = (1.0 - top_level.known.iter().map(|(_, share)| share.0).sum::<f64>()).max(0.0);
        let made = (top_level.count.0 as usize).saturating_sub(known);
        let harmonic: f64 = (1..=made).map(|rank| 1.0 / rank as f64).sum();
        let mut rank = 1;
        while tops.len() < top_level.count.0 as usize {
            // Labels of two syllables and a consonant; of three once most of those are taken.
            let count = if number < 8_000 { 2 } else { 3 };
            let word = draws.word(About::TopLevelLabel, number);
            number += 1;
            let mut label = Vec::new();
            syllables(word, count, &mut label);
            label.push(b"nrstlmx"[(word >> 32) as usize % 7]);
            if let std::collections::btree_map::Entry::Vacant(vacant) = tops.entry(label) {
                vacant.insert(rest / harmonic / rank as f64);
                rank += 1;
            }
        }
        // Beside the others: nobody registers anything below it.
        tops.insert(top_label(REVERSE[0]).as_bytes().to_vec(), 0.0);
        let (mut registries, mut shares, mut first_server) = (Vec::new(), Vec::new(), 0);
        for (label, share) in tops {
            let registry = Registry::top_level(description, draws, &label, first_server);
            first_server += u32::from(registry.servers);
            registries.push(registry);
            shares.push(share);
        }
        let top_level_count = registries.len();
        let known = top_level.known.iter().map(|(suffix, share)| (suffix.0.as_str(), share.0));
        for (suffix, share) in known.chain(REVERSE.map(|suffix| (suffix, 0.0))) {
            let Some((label, top)) = suffix.split_once('.') else { continue };
            let place = registries[..top_level_count]
                .iter()
                .position(|registry| *registry.label == *top.as_bytes());
            let place = place.expect("every suffix has its top-level domain");
            let number = registries.len() as u32;
            let above = &mut registries[place];
            above.below.push(number);
            let registry = above.child(place as u32, label.as_bytes());
            registries.push(registry);
            shares.push(share);
        }
        for number in 0..registries.len() {
            registries[number].fixed = fixed_hashes(&registries, number);
        }
        let last = registries.len() as u32;
        Self {
            registries,
            top_level_count,
            registered: Weighted::new((0..).zip(shares)),
            reverse: [last - 2, last - 1],
        }
    }
}

impl Registry {
    fn top_level(description: &Description, draws: Draws, label: &[u8], first_server: u32) -> Self {
        let top_level = &description.top_level;
        let subject =
            label.iter().fold(0, |sum: u64, octet| sum.wrapping_mul(257) + u64::from(*octet));
        let draw = |about| draws.word(about, subject);
        let is_reverse = label == top_label(REVERSE[0]).as_bytes();
        let is_known = is_reverse
            || top_level.known.iter().any(|(suffix, _)| top_label(&suffix.0).as_bytes() == label);
        // What the file names is as most are, unless it says that there is none.
        let has =
            |share: f64, about| Chance::new(share).includes(draw(about)) || share > 0.0 && is_known;
        let nsec = top_level.nsec.0;
        let has_nsec = Chance::new(nsec).includes(draw(About::TopLevelDenial));
        let denial = if is_reverse {
            Denial::Nsec
        } else if has_nsec && (!is_known || nsec >= 1.0) {
            Denial::MinimalNsec
        } else if has(top_level.opt_out.0, About::OptOut) {
            Denial::Ranges
        } else {
            Denial::MinimalNsec3
        };
        let servers = match label {
            b"com" | b"net" => 13,
            _ if is_reverse => REVERSE_SERVERS,
            _ => weighted(&top_level.servers).pick(draw(About::TopLevelServers)) as u8,
        };
        Self {
            apex: Name::root().child(label),
            label: label.into(),
            parent: None,
            below: Vec::new(),
            first_server,
            servers,
            is_signed: has(top_level.signed_share(description), About::TopLevelSigned),
            denial,
            fixed: Vec::new(),
        }
    }

    /// A registry below this one, which has this number.
    fn child(&self, number: u32, label: &[u8]) -> Self {
        Self {
            apex: self.apex.child(label),
            label: label.into(),
            parent: Some(number),
            below: Vec::new(),
            first_server: self.first_server,
            servers: self.servers,
            is_signed: self.is_signed,
            denial: self.denial,
            fixed: Vec::new(),
        }
    }
}

/// The hashes of the names that a registry has beside the domains.
fn fixed_hashes(registries: &[Registry], number: usize) -> Vec<[u8; 20]> {
    let registry = &registries[number];
    if registry.denial != Denial::Ranges {
        return Vec::new();
    }
    let mut names = vec![registry.apex.clone()];
    names.extend(registry.below.iter().map(|below| registries[*below as usize].apex.clone()));
    if registry.parent.is_none() {
        let parent = registry.apex.child(b"nic");
        names.extend((0..registry.servers).map(|slot| parent.child(&[b'a' + slot])));
        names.push(parent);
    }
    let mut hashes: Vec<[u8; 20]> = names.iter().map(|name| nsec3_hash(name.octets())).collect();
    hashes.sort_unstable();
    hashes
}

impl crate::file::TopLevel {
    fn signed_share(&self, description: &Description) -> f64 {
        if description.dnssec.root { description.dnssec.top_level.0 } else { 0.0 }
    }
}

/// Bits of a hash that name its range.
pub(crate) const RANGE_BITS: u32 = 12;

/// Where a hash is in its range, in 2^32ths.
fn offset_in_range(hash: &[u8; 20]) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = *hash;
    u64::from_be_bytes([a, b, c, d, e, f, g, h]) << RANGE_BITS >> 32
}
