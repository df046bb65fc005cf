//! From the messages of a capture to the population that they come from.

use std::collections::hash_map::{DefaultHasher, Entry};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::time::Duration;

use dnslab_wire::Transport;
use dnslab_wire::units::{duration, number, share};
use domain::base::iana::Rtype;

use super::distribution::Weibull;
use super::fit::{self, LogSums, Others};
use super::message::{Message, Opt};
use super::play::Pace;
use super::{
    Activity, ActivityDistribution, Bursts, LookupKind, Lookups, MAX_LOOKUPS, MAX_TYPES,
    PopularNames, Population, Stubs, Zipf,
};

/// A query belongs to the lookup of the same client and name before it if it comes within this time of its last
/// query, nanoseconds.
const TOGETHER_NS: u64 = 100_000_000;

/// A query with the same id, question and client is a retransmission within this time, nanoseconds: as long as
/// the stub resolver of glibc goes on by default with two servers, twice 5 s for each, and then some.
const RETRANSMITTED_NS: u64 = 25_000_000_000;

/// A client is light as long as its bursts, each with the shortest silence, take at most this part of the time.
/// Those of a busier one run into each other.
const LIGHT: f64 = 0.3;

/// Bursts of a client from which that can be told.
const FEW_BURSTS: u32 = 4;

/// Silences of a client from which something is learnt of their distribution.
const ENOUGH_SILENCES: u32 = 8;

/// What a [`Profiler`] may hold in memory, and the one choice that is made before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProfilerLimits {
    /// Clients that are watched, at least 1. Where there are more, every second one is, then every fourth, and
    /// so on, chosen by their hash; what is said of clients is then said of that sample. Each takes some 500
    /// octets.
    pub clients: usize,
    /// Names that are watched, in the same way. Each takes some 60 octets.
    pub names: usize,
    /// Queries that are remembered to recognise retransmissions, and lookups to which a query may still belong.
    /// Where there are more, the oldest are forgotten: a retransmission then counts as a query, and a pair as
    /// two lookups. Each takes some 100 octets.
    pub recent: usize,
    /// A client that is silent for longer has ended its burst: 10 ms to a minute. A quarter of it or a sixteenth
    /// takes its place if most clients are too busy to be silent for so long.
    pub silence: Duration,
}

impl Default for ProfilerLimits {
    /// At most some 350 MB.
    fn default() -> Self {
        Self { clients: 1 << 18, names: 1 << 20, recent: 1 << 19, silence: Duration::from_secs(2) }
    }
}

/// Watches the messages of a capture, one after another, and finds the population behind them.
///
/// Memory is bounded ([`ProfilerLimits`]), and the same messages give the same population.
///
/// ```
/// use std::net::Ipv4Addr;
/// use std::time::Duration;
///
/// use dnslab_traffic::SyntheticZone;
/// use dnslab_traffic::population::{
///     Population, PopulationLoad, Profiler, ProfilerLimits, ZoneNames,
/// };
/// use dnslab_wire::{Additions, Transport};
///
/// let population = Population { clients: 200, rate_qps: 100.0, ..Population::typical() };
/// let zone = SyntheticZone::named("example.", 1_000_000, Duration::from_secs(1))?;
/// let load = PopulationLoad::of(&population, Duration::from_secs(60), 1);
/// let mut profiler = Profiler::new(ProfilerLimits::default());
/// for (id, sent) in (0..).zip(population.queries(&load, ZoneNames::new(&zone)?)) {
///     let mut message = Vec::new();
///     sent.query.append_to(id as u16, &Additions::default(), &mut message);
///     profiler.observe(sent.due_ns, Ipv4Addr::from(sent.client), &message, Transport::Udp);
/// }
/// let profile = profiler.finish()?;
/// assert!((80.0..120.0).contains(&profile.population.rate_qps));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Profiler {
    first_ns: Option<u64>,
    last_ns: u64,
    queries: u64,
    retransmissions: u64,
    unread: u64,
    responses: u64,
    lookups: u64,
    clients: Sample<Client>,
    names: Sample<Named>,
    /// By client, question and id, when it was sent.
    recent: Recent<u64>,
    /// By client and name.
    open: Recent<Lookup>,
    kinds: BTreeMap<([u16; MAX_TYPES], usize), u64>,
    /// From one query of a lookup to the next: their number, and their sum in nanoseconds.
    together: (u64, u64),
    /// By the silence between them, the longest first.
    bursts: [BurstsSeen; SILENCES],
    distances: Distances,
}

/// How many silences are tried. Each is a quarter of the one before.
const SILENCES: usize = 3;

/// Bursts of all clients that are light.
#[derive(Clone, Debug)]
struct BurstsSeen {
    /// The silence between them that is tried.
    silence_ns: u64,
    /// How many bursts have so many lookups.
    lookups: Vec<f64>,
    /// From one lookup of a burst to the next, seconds.
    gaps: LogSums,
}

/// A client as it was seen.
#[derive(Clone, Debug, Default)]
struct Client {
    queries: u32,
    lookups: u32,
    first_ns: u64,
    /// Of its last lookup.
    last_ns: u64,
    /// By the silence between bursts, the longest first.
    tracks: [Track; SILENCES],
    edns: u32,
    dnssec_ok: u32,
    recursion_desired: u32,
    payload_size: u16,
    transports: [u32; Transport::ALL.len()],
}

/// The bursts of a client, if this is the silence between them.
#[derive(Clone, Copy, Debug, Default)]
struct Track {
    /// With the one that goes on.
    bursts: u32,
    /// Of the first lookup of the burst.
    burst_ns: u64,
    burst_lookups: u32,
    burst_gaps: LogSums,
    /// From the first to the last lookup of its bursts that have ended.
    busy_ns: u64,
    /// Above the shortest, seconds.
    silences: LogSums,
}

/// A name as it was seen.
#[derive(Clone, Copy, Debug)]
struct Named {
    /// Number of the last lookup.
    last: u64,
    lookups: u32,
    parent: u64,
    /// A response said that it does not exist.
    is_missing: bool,
}

/// A lookup to which more queries may belong.
#[derive(Clone, Copy, Debug)]
struct Lookup {
    last_ns: u64,
    types: [u16; MAX_TYPES],
    count: usize,
}

impl Profiler {
    /// One that has seen nothing yet.
    #[must_use]
    pub fn new(limits: ProfilerLimits) -> Self {
        /// Of a population.
        const SHORTEST_NS: u64 = 10_000_000;
        let longest_ns = nanoseconds(limits.silence).clamp(SHORTEST_NS, 60_000_000_000);
        let silence_ns = |at: usize| (longest_ns >> (2 * at)).max(SHORTEST_NS);
        let recent = limits.recent.max(1);
        Self {
            first_ns: None,
            last_ns: 0,
            queries: 0,
            retransmissions: 0,
            unread: 0,
            responses: 0,
            lookups: 0,
            clients: Sample::new(limits.clients.max(1)),
            names: Sample::new(limits.names.max(1)),
            recent: Recent::new(recent, RETRANSMITTED_NS),
            open: Recent::new(recent, TOGETHER_NS * MAX_TYPES as u64),
            kinds: BTreeMap::new(),
            together: (0, 0),
            bursts: std::array::from_fn(|at| BurstsSeen::new(silence_ns(at))),
            distances: Distances::new(),
        }
    }

    /// Takes a message that a client sent. `client` is whatever tells clients apart, such as an address.
    ///
    /// Times are nanoseconds from any start, in order; an earlier one counts as the last. What is no query with
    /// one question is counted and left out.
    pub fn observe(&mut self, at_ns: u64, client: impl Hash, message: &[u8], transport: Transport) {
        let Some(message) = Message::read(message).filter(|message| !message.is_response) else {
            self.unread += 1;
            return;
        };
        let at_ns = at_ns.max(self.last_ns);
        self.last_ns = at_ns;
        self.first_ns.get_or_insert(at_ns);
        self.end_lookups(at_ns);
        let client = key((b'c', client));
        let name = name_key(message.name);
        if transport == Transport::Udp && self.is_retransmission(at_ns, client, name, &message) {
            self.retransmissions += 1;
            return;
        }
        self.queries += 1;
        let begins = self.begins_lookup(at_ns, key((client, name)), message.rtype);
        if begins {
            self.lookups += 1;
            self.name_asked(name, message.name);
        }
        self.client_asks(at_ns, client, begins, &message, transport);
    }

    /// Takes a response. From its code it learns which names do not exist. Its time and its client do not
    /// matter.
    pub fn observe_response(&mut self, message: &[u8]) {
        /// NXDOMAIN
        const NXDOMAIN: u8 = dnslab_wire::rcode::NXDOMAIN as u8;
        let Some(message) = Message::read(message).filter(|message| message.is_response) else {
            self.unread += 1;
            return;
        };
        self.responses += 1;
        if message.rcode == NXDOMAIN
            && let Some(name) = self.names.get(name_key(message.name))
        {
            name.is_missing = true;
        }
    }

    fn is_retransmission(
        &mut self,
        at_ns: u64,
        client: u64,
        name: u64,
        message: &Message<'_>,
    ) -> bool {
        self.recent.forget(at_ns, |_| ());
        let key = key((client, name, message.rtype, message.id));
        if self.recent.get(key).is_some() {
            return true;
        }
        self.recent.insert(at_ns, key, at_ns, |_| ());
        false
    }

    /// Counts the lookups to which no more queries belong.
    fn end_lookups(&mut self, at_ns: u64) {
        let (open, kinds) = (&mut self.open, &mut self.kinds);
        open.forget(at_ns, |lookup| count_kind(kinds, &lookup));
    }

    /// True if the query does not belong to a lookup before it.
    fn begins_lookup(&mut self, at_ns: u64, key: u64, rtype: u16) -> bool {
        if let Some(lookup) = self.open.get(key) {
            let is_there = lookup.types[..lookup.count].contains(&rtype);
            let is_soon = at_ns - lookup.last_ns <= TOGETHER_NS;
            if is_soon && !is_there && lookup.count < MAX_TYPES {
                lookup.types[lookup.count] = rtype;
                lookup.count += 1;
                self.together.0 += 1;
                self.together.1 += at_ns - lookup.last_ns;
                lookup.last_ns = at_ns;
                return false;
            }
        }
        let mut lookup = Lookup { last_ns: at_ns, types: [0; MAX_TYPES], count: 1 };
        lookup.types[0] = rtype;
        let (open, kinds) = (&mut self.open, &mut self.kinds);
        open.insert(at_ns, key, lookup, |lookup| count_kind(kinds, &lookup));
        true
    }

    fn name_asked(&mut self, key: u64, name: &[u8]) {
        let number = self.lookups;
        let parent = || match name.first() {
            Some(label) if *label > 0 => name_key(&name[1 + usize::from(*label)..]),
            _ => key,
        };
        let new = || Named { last: number, lookups: 0, parent: parent(), is_missing: false };
        let Some((named, weight)) = self.names.entry(key, new) else { return };
        let distance = (named.lookups > 0).then(|| number - named.last);
        named.last = number;
        named.lookups = named.lookups.saturating_add(1);
        self.distances.add(distance, number, weight);
    }

    fn client_asks(
        &mut self,
        at_ns: u64,
        key: u64,
        begins: bool,
        message: &Message<'_>,
        transport: Transport,
    ) {
        let Some((client, weight)) = self.clients.entry(key, Client::default) else { return };
        client.queries = client.queries.saturating_add(1);
        client.transports[transport as usize] += 1;
        client.recursion_desired += u32::from(message.recursion_desired);
        if let Some(Opt { payload_size, dnssec_ok }) = message.edns {
            client.edns += 1;
            client.dnssec_ok += u32::from(dnssec_ok);
            client.payload_size = payload_size;
        }
        if !begins {
            return;
        }
        if client.lookups == 0 {
            client.first_ns = at_ns;
        }
        client.lookups = client.lookups.saturating_add(1);
        let (first_ns, last_ns) = (client.first_ns, client.last_ns);
        let begin_ns = self.first_ns.unwrap_or(0);
        for (track, seen) in client.tracks.iter_mut().zip(&mut self.bursts) {
            let (since_ns, silence_ns) = (at_ns - last_ns, seen.silence_ns);
            if track.bursts == 0 {
                track.begin_burst(at_ns);
            } else if since_ns > silence_ns {
                // The beginning of one may be before that of the capture.
                let is_whole = track.burst_ns > begin_ns + silence_ns;
                let ended = track.end_burst(first_ns, last_ns, at_ns, silence_ns);
                if let Some(ended) = ended.filter(|_| is_whole) {
                    seen.add(&ended, weight);
                }
                track.silences.add((since_ns - silence_ns) as f64 / 1e9);
                track.begin_burst(at_ns);
            } else {
                track.burst_lookups = track.burst_lookups.saturating_add(1);
                // Two at once are a microsecond apart: a capture often knows no shorter times.
                track.burst_gaps.add(since_ns.max(1_000) as f64 / 1e9);
            }
        }
        client.last_ns = at_ns;
    }

    /// The population behind the messages.
    ///
    /// # Errors
    /// When there are too few.
    pub fn finish(mut self) -> Result<Profile, ProfileError> {
        let length_ns = self.last_ns - self.first_ns.unwrap_or(self.last_ns);
        let length = Duration::from_nanos(length_ns);
        if self.queries < ProfileError::FEWEST_QUERIES || length < ProfileError::SHORTEST {
            return Err(ProfileError { queries: self.queries, length, unread: self.unread });
        }
        let (open, kinds) = (&mut self.open, &mut self.kinds);
        open.forget(u64::MAX, |lookup| count_kind(kinds, &lookup));
        for client in self.clients.held.values_mut() {
            let (first_ns, last_ns) = (client.first_ns, client.last_ns);
            for (track, seen) in client.tracks.iter_mut().zip(&mut self.bursts) {
                let silence_ns = seen.silence_ns;
                let has_ended = last_ns + silence_ns < self.last_ns;
                let ended = track.end_burst(first_ns, last_ns, self.last_ns, silence_ns);
                if let Some(ended) = ended.filter(|_| has_ended) {
                    seen.add(&ended, 1.0);
                }
            }
        }
        let busiest = self.find_busiest();
        let (silence, silence_ns) = self.choose_silence(&busiest);
        let typical = Population::typical();
        let mut notes = Vec::new();
        let bursts = self.find_bursts(&typical.bursts, silence, silence_ns, &mut notes);
        let lookups = self.find_lookups(&mut notes);
        let names = self.find_names(&typical.names, &mut notes);
        let stubs = self.find_stubs(&typical.stubs);
        let (clients, activity) = self.find_activity(&bursts, silence, busiest, length, &mut notes);
        if self.clients.level > 0 {
            notes.push(ProfileNote::ClientsSampled { one_in: 1 << self.clients.level });
        }
        if self.names.level > 0 {
            notes.push(ProfileNote::NamesSampled { one_in: 1 << self.names.level });
        }
        if self.unread > 0 {
            notes.push(ProfileNote::Unread { messages: self.unread });
        }
        let sent = self.queries + self.retransmissions;
        let population = Population {
            clients,
            rate_qps: rounded(self.queries as f64 / length.as_secs_f64(), 6),
            activity,
            bursts,
            lookups,
            names,
            stubs,
        };
        Ok(Profile {
            population,
            queries: self.queries,
            length,
            retransmitted_share: self.retransmissions as f64 / sent as f64,
            clients_seen: (self.clients.held.len() as u64) << self.clients.level,
            notes,
        })
    }

    /// Clients that make so much of all queries that they are stated by themselves, with their shares.
    fn find_busiest(&self) -> HashMap<u64, f64, Keys> {
        /// The part of the queries.
        const BUSIEST: f64 = 0.05;
        /// And so many times the mean, beyond what a distribution of activity has.
        const TIMES_MEAN: f64 = 50.0;
        /// The most of them; fewer cannot have a greater part each.
        const MOST: usize = 19;
        if self.clients.level > 0 {
            return HashMap::default();
        }
        let least = BUSIEST.max(TIMES_MEAN / self.clients.held.len() as f64);
        let share = |client: &Client| f64::from(client.queries) / self.queries as f64;
        let shares = self.clients.held.iter().map(|(key, client)| (*key, share(client)));
        shares.filter(|(_, share)| *share > least).take(MOST).collect()
    }

    /// The longest silence at which the clients with most of the lookups are light, and its place.
    fn choose_silence(&self, busiest: &HashMap<u64, f64, Keys>) -> (usize, u64) {
        /// The part of the lookups that is most.
        const MOST: f64 = 0.5;
        let chosen = (0..SILENCES).find(|at| self.part_of_light(*at, busiest) >= MOST);
        let chosen = chosen.unwrap_or(SILENCES - 1);
        (chosen, self.bursts[chosen].silence_ns)
    }

    /// The part of the lookups that is by light clients, beside the busiest.
    fn part_of_light(&self, silence: usize, busiest: &HashMap<u64, f64, Keys>) -> f64 {
        let silence_ns = self.bursts[silence].silence_ns;
        let (mut light, mut all) = (0.0, 0.0);
        for (_, client) in self.clients.held.iter().filter(|(key, _)| !busiest.contains_key(key)) {
            let lookups = f64::from(client.lookups);
            all += lookups;
            if client.is_light(silence, self.last_ns, silence_ns) {
                light += lookups;
            }
        }
        light / f64::max(all, 1.0)
    }

    fn find_bursts(
        &self,
        typical: &Bursts,
        silence: usize,
        silence_ns: u64,
        notes: &mut Vec<ProfileNote>,
    ) -> Bursts {
        /// Fewer say nothing of a distribution.
        const ENOUGH: f64 = 100.0;
        let seen = &self.bursts[silence];
        let mut bursts = Bursts { silence: Duration::from_nanos(silence_ns), ..typical.clone() };
        // The typical one may be too long for this silence.
        bursts.gap_median = bursts.gap_median.min(bursts.silence / 2);
        if seen.lookups.iter().sum::<f64>() >= ENOUGH {
            let (median, spread) = fit::lookups(&seen.lookups);
            (bursts.lookups_median, bursts.lookups_spread) =
                (rounded(median, 4).clamp(0.1, 500.0), rounded(spread, 4));
        } else {
            notes.push(ProfileNote::Kept(Kept::BurstLookups));
        }
        if seen.gaps.count >= ENOUGH {
            let gap = fit::gap(&seen.gaps, bursts.silence.as_secs_f64());
            let median = Duration::from_nanos((rounded(gap.mean.exp() * 1e9, 4)) as u64);
            bursts.gap_median = median.clamp(Duration::from_nanos(1), bursts.silence / 2);
            bursts.gap_spread = rounded(gap.deviation, 4);
        } else {
            notes.push(ProfileNote::Kept(Kept::BurstGaps));
        }
        let (mut freedom, mut scatter) = (0.0, 0.0);
        for client in self.clients.held.values() {
            let silences = &client.tracks[silence].silences;
            let is_enough = silences.count >= f64::from(ENOUGH_SILENCES);
            if is_enough && client.is_light(silence, self.last_ns, silence_ns) {
                freedom += silences.count - 1.0;
                scatter += silences.scatter();
            }
        }
        if freedom >= ENOUGH {
            let deviation = (scatter / freedom).sqrt();
            let shape = Weibull::log_deviation(1.0) / deviation;
            bursts.silence_shape = rounded(shape.clamp(0.2, 2.0), 3);
        } else {
            notes.push(ProfileNote::Kept(Kept::SilenceShape));
        }
        bursts
    }

    fn find_lookups(&self, notes: &mut Vec<ProfileNote>) -> Lookups {
        /// Rarer kinds are left out: many are two lookups that happened to come together.
        const MAX_KINDS: usize = 32;
        const LEAST_SHARE: f64 = 0.000_5;
        let mut kinds: Vec<(&([u16; MAX_TYPES], usize), u64)> =
            self.kinds.iter().map(|(kind, count)| (kind, *count)).collect();
        kinds.sort_by_key(|(kind, count)| (std::cmp::Reverse(*count), **kind));
        let total: u64 = kinds.iter().map(|(_, count)| count).sum();
        let is_frequent = |count: u64| count as f64 >= LEAST_SHARE * total as f64;
        let kept =
            kinds.iter().take(MAX_KINDS).filter(|(_, count)| is_frequent(*count)).count().max(1);
        let left_out: u64 = kinds.iter().skip(kept).map(|(_, count)| count).sum();
        if left_out > 0 {
            let share = left_out as f64 / total as f64;
            notes.push(ProfileNote::KindsLeftOut { kinds: kinds.len() - kept, share });
        }
        let kinds = kinds.into_iter().take(kept).map(|((types, length), count)| LookupKind {
            types: types[..*length].iter().map(|rtype| Rtype::from_int(*rtype)).collect(),
            weight: rounded(count as f64 / total as f64 * 100.0, 4),
        });
        let gap_ns = self.together.1.checked_div(self.together.0).unwrap_or(1_000_000);
        Lookups { gap: Duration::from_nanos(gap_ns.min(50_000_000)), kinds: kinds.collect() }
    }

    fn find_names(&self, typical: &PopularNames, notes: &mut Vec<ProfileNote>) -> PopularNames {
        /// Fewer say nothing of a distribution.
        const ENOUGH: f64 = 1_000.0;
        let random = RandomParents::find(&self.names);
        let weight = self.names.weight();
        let of_all = |lookups: f64| (weight * lookups / self.lookups as f64).clamp(0.0, 1.0);
        let (mut of_random, mut of_missing) = (0.0, 0.0);
        let (mut different, mut once) = (0.0, 0.0);
        for name in self.names.held.values() {
            if random.has(name) {
                of_random += 1.0;
            } else if name.is_missing {
                of_missing += f64::from(name.lookups);
                different += 1.0;
                once += f64::from(u8::from(name.lookups == 1));
            }
        }
        let random_share = rounded(of_all(of_random), 4);
        let (missing_share, missing) = if self.responses == 0 {
            notes.push(ProfileNote::Kept(Kept::Missing));
            (typical.missing_share.min(1.0 - random_share), typical.missing)
        } else if of_missing == 0.0 {
            (0.0, typical.missing)
        } else {
            let missing = fit::missing(weight * of_missing, weight * different, weight * once);
            (rounded(of_all(of_missing).min(1.0 - random_share), 4), missing)
        };
        let popular = if (self.lookups as f64) < ENOUGH {
            notes.push(ProfileNote::Kept(Kept::Popular));
            typical.popular
        } else {
            let others = Others { missing_share, missing, random_share };
            fit::popular(&self.distances.misses(self.lookups), &others)
        };
        let exponent = |zipf: Zipf| Zipf { exponent: rounded(zipf.exponent, 4), ..zipf };
        PopularNames {
            popular: exponent(popular),
            missing_share,
            missing: exponent(missing),
            random_share,
        }
    }

    fn find_stubs(&self, typical: &Stubs) -> Stubs {
        let held = &self.clients.held;
        if held.is_empty() {
            // A table of few entries may lose its last in a sample.
            return typical.clone();
        }
        let share = |holds: &dyn Fn(&Client) -> bool, among: &dyn Fn(&Client) -> bool| {
            let all = held.values().filter(|client| among(client)).count();
            let those = held.values().filter(|client| among(client) && holds(client)).count();
            rounded(those as f64 / all.max(1) as f64, 4)
        };
        let mostly = |count: u32, client: &Client| 2 * u64::from(count) > u64::from(client.queries);
        let has_edns = |client: &Client| mostly(client.edns, client);
        let mut sizes: BTreeMap<u16, u32> = BTreeMap::new();
        let mut transports = [0_u32; Transport::ALL.len()];
        for client in held.values() {
            if has_edns(client) {
                *sizes.entry(client.payload_size).or_default() += 1;
            }
            let most =
                client.transports.iter().copied().enumerate().max_by_key(|(_, count)| *count);
            transports[most.map_or(0, |(at, _)| at)] += 1;
        }
        let mut sizes: Vec<(u16, f64)> =
            sizes.into_iter().map(|(size, count)| (size, f64::from(count))).collect();
        sizes.sort_by(|a, b| b.1.total_cmp(&a.1));
        sizes.truncate(16);
        if sizes.is_empty() {
            sizes.clone_from(&typical.payload_sizes);
        }
        let transports = Transport::ALL.into_iter().zip(transports.map(f64::from));
        Stubs {
            recursion_desired: share(&|client| mostly(client.recursion_desired, client), &|_| true),
            edns: share(&has_edns, &|_| true),
            dnssec_ok: share(&|client| 2 * client.dnssec_ok > client.edns, &has_edns),
            payload_sizes: sizes,
            transports: transports.filter(|(_, count)| *count > 0.0).collect(),
        }
    }

    /// How many clients there are, and how active.
    fn find_activity(
        &self,
        bursts: &Bursts,
        silence: usize,
        busiest: HashMap<u64, f64, Keys>,
        length: Duration,
        notes: &mut Vec<ProfileNote>,
    ) -> (u32, Activity) {
        /// The most clients that are assumed for each one that was seen.
        const MAX_UNSEEN: f64 = 20.0;
        /// The greatest part of the queries that is stated client by client.
        const MAX_BUSY: f64 = 0.99;
        let (silence_ns, mean_lookups) = (nanoseconds(bursts.silence), bursts.mean_lookups());
        let others = self.clients.held.iter().filter(|(key, _)| !busiest.contains_key(key));
        let counts = others.map(|(_, client)| {
            let is_light = client.is_light(silence, self.last_ns, silence_ns);
            let least = if is_light { 0.0 } else { f64::from(client.lookups) / mean_lookups };
            client.tracks[silence].bursts.max(least as u32)
        });
        let mut counts: Vec<u32> = counts.collect();
        let mut busiest: Vec<f64> = busiest.into_values().map(|share| rounded(share, 4)).collect();
        busiest.sort_by(|a, b| b.total_cmp(a));
        // The others need a part, however small.
        let sum: f64 = busiest.iter().sum();
        if sum > MAX_BUSY {
            busiest.iter_mut().for_each(|share| *share *= MAX_BUSY / sum);
        }
        // Which clients come first does not matter to a sum of their logarithms, but to its last digits.
        counts.sort_unstable();
        let active = fit::activity(&counts, &Pace::new(bursts), length.as_secs_f64());
        if active.for_each_seen > 2.0 && !counts.is_empty() {
            notes.push(ProfileNote::ManyUnseen {
                for_each_seen: active.for_each_seen.min(MAX_UNSEEN),
            });
        }
        let others =
            counts.len() as f64 * self.clients.weight() * active.for_each_seen.min(MAX_UNSEEN);
        let clients =
            (others.round() + busiest.len() as f64).clamp(1.0, f64::from(u32::MAX)) as u32;
        // A population of busy clients alone would have nobody else.
        busiest.truncate(clients.saturating_sub(1) as usize);
        let distribution = match active.distribution {
            ActivityDistribution::LogNormal { spread } => {
                ActivityDistribution::LogNormal { spread: rounded(spread, 4) }
            }
            ActivityDistribution::Pareto { shape } => {
                ActivityDistribution::Pareto { shape: rounded(shape, 4) }
            }
        };
        (clients, Activity { distribution, busiest })
    }
}

impl Client {
    fn is_light(&self, silence: usize, now_ns: u64, silence_ns: u64) -> bool {
        self.tracks[silence].is_light(self.first_ns, now_ns, silence_ns)
    }
}

impl Track {
    fn begin_burst(&mut self, at_ns: u64) {
        self.bursts += 1;
        self.burst_ns = at_ns;
        self.burst_lookups = 1;
        self.burst_gaps = LogSums::default();
    }

    /// The number of lookups of the burst, and its gaps; `None` if those of this client run into each other.
    fn end_burst(
        &mut self,
        first_ns: u64,
        last_ns: u64,
        now_ns: u64,
        silence_ns: u64,
    ) -> Option<(usize, LogSums)> {
        self.busy_ns += last_ns.saturating_sub(self.burst_ns);
        let is_single = self.is_light(first_ns, now_ns, silence_ns);
        let is_short = self.burst_lookups <= u32::from(MAX_LOOKUPS);
        (is_single && is_short).then_some((self.burst_lookups as usize, self.burst_gaps))
    }

    fn is_light(&self, first_ns: u64, now_ns: u64, silence_ns: u64) -> bool {
        let busy_ns = self.busy_ns as f64 + f64::from(self.bursts) * silence_ns as f64;
        let time_ns = now_ns.saturating_sub(first_ns) as f64 + silence_ns as f64;
        let is_too_soon = self.bursts < FEW_BURSTS && self.burst_lookups <= u32::from(MAX_LOOKUPS);
        busy_ns <= LIGHT * time_ns || is_too_soon
    }
}

impl BurstsSeen {
    fn new(silence_ns: u64) -> Self {
        let lookups = vec![0.0; usize::from(MAX_LOOKUPS) + 1];
        Self { silence_ns, lookups, gaps: LogSums::default() }
    }
}

impl BurstsSeen {
    fn add(&mut self, (lookups, gaps): &(usize, LogSums), weight: f64) {
        self.lookups[*lookups] += weight;
        self.gaps.add_all(gaps);
    }
}

/// The most kinds of lookups that are told apart. More would be somebody's game.
const MAX_COUNTED_KINDS: usize = 4_096;

fn count_kind(kinds: &mut BTreeMap<([u16; MAX_TYPES], usize), u64>, lookup: &Lookup) {
    let kind = (lookup.types, lookup.count);
    if let Some(count) = kinds.get_mut(&kind) {
        *count += 1;
    } else if kinds.len() < MAX_COUNTED_KINDS {
        kinds.insert(kind, 1);
    }
}

/// Names below which nearly all names are asked for once: labels that programs make up.
struct RandomParents(HashMap<u64, bool, Keys>);

impl RandomParents {
    fn find(names: &Sample<Named>) -> Self {
        /// Names that are asked for once, at least.
        const ENOUGH: f64 = 30.0;
        /// The part of the lookups below the parent that ask for them.
        const NEARLY_ALL: f64 = 0.9;
        let mut parents: HashMap<u64, (f64, f64), Keys> = HashMap::default();
        for name in names.held.values() {
            let (once, all) = parents.entry(name.parent).or_default();
            *once += f64::from(u8::from(name.lookups == 1));
            *all += f64::from(name.lookups);
        }
        let is_random = |(once, all): (f64, f64)| once >= ENOUGH && once >= NEARLY_ALL * all;
        Self(parents.into_iter().map(|(parent, counts)| (parent, is_random(counts))).collect())
    }

    fn has(&self, name: &Named) -> bool {
        name.lookups == 1 && self.0.get(&name.parent).copied().unwrap_or(false)
    }
}

/// How many lookups lie between two for the same name, in groups that grow by a fifth.
#[derive(Clone, Debug)]
struct Distances(Vec<DistanceGroup>);

#[derive(Clone, Debug)]
struct DistanceGroup {
    /// The highest distance.
    most: u64,
    /// Lookups for a name that was asked for before, by the distance.
    repeated: f64,
    /// Others, by their own number.
    new: f64,
}

impl Distances {
    fn new() -> Self {
        let next = |last: &u64| (last + 1).max((*last as f64 * 1.2) as u64);
        let all = std::iter::successors(Some(1), |last| (*last < 1 << 50).then(|| next(last)));
        Self(all.map(|most| DistanceGroup { most, repeated: 0.0, new: 0.0 }).collect())
    }

    fn add(&mut self, distance: Option<u64>, number: u64, weight: f64) {
        let value = distance.unwrap_or(number);
        let at = self.0.partition_point(|group| group.most < value).min(self.0.len() - 1);
        match distance {
            Some(_) => self.0[at].repeated += weight,
            None => self.0[at].new += weight,
        }
    }

    /// Pairs of a number of lookups and the share of those after so many whose name was not among so many
    /// before: what a cache misses that holds names for that long.
    fn misses(&self, lookups: u64) -> Vec<(f64, f64)> {
        /// Shorter distances tell of single clients, not of popularity.
        const LEAST: u64 = 8;
        let mut repeated: f64 = self.0.iter().map(|group| group.repeated).sum();
        let mut new: f64 = self.0.iter().map(|group| group.new).sum();
        let mut misses = Vec::new();
        for group in self.0.iter().take_while(|group| group.most <= lookups / 2) {
            repeated -= group.repeated;
            new -= group.new;
            if group.most >= LEAST {
                let share = (repeated + new).max(0.0) / (lookups - group.most) as f64;
                misses.push((group.most as f64, share));
            }
        }
        misses
    }
}

/// Things by key, at most so many. Where there are more, only those of every second key are held, then of every
/// fourth, and so on. The choice lies in the key alone, so what is held of them is complete.
#[derive(Clone, Debug)]
struct Sample<V> {
    most: usize,
    level: u32,
    held: HashMap<u64, V, Keys>,
}

impl<V> Sample<V> {
    fn new(most: usize) -> Self {
        Self { most, level: 0, held: HashMap::default() }
    }

    /// How many keys there are for each that is held.
    fn weight(&self) -> f64 {
        (1_u64 << self.level) as f64
    }

    fn is_in(key: u64, level: u32) -> bool {
        // The lowest bits place a key in the table, and its highest tell keys of one place apart.
        (key >> 20) & ((1 << level) - 1) == 0
    }

    fn get(&mut self, key: u64) -> Option<&mut V> {
        self.held.get_mut(&key)
    }

    /// The thing of this key, and the weight of the sample, if it is in the sample.
    fn entry(&mut self, key: u64, new: impl FnOnce() -> V) -> Option<(&mut V, f64)> {
        if !Self::is_in(key, self.level) {
            return None;
        }
        while self.held.len() >= self.most && self.level < 32 && !self.held.contains_key(&key) {
            self.level += 1;
            let level = self.level;
            self.held.retain(|key, _| Self::is_in(*key, level));
            if !Self::is_in(key, level) {
                return None;
            }
        }
        let weight = self.weight();
        Some((self.held.entry(key).or_insert_with(new), weight))
    }
}

/// Things by key, for a time, and at most so many.
#[derive(Clone, Debug)]
struct Recent<V> {
    most: usize,
    time_ns: u64,
    held: HashMap<u64, (u64, V), Keys>,
    /// Keys with the time when they came, the oldest first. A key that came again stands there twice.
    order: VecDeque<(u64, u64)>,
}

impl<V> Recent<V> {
    fn new(most: usize, time_ns: u64) -> Self {
        Self { most, time_ns, held: HashMap::default(), order: VecDeque::new() }
    }

    fn get(&mut self, key: u64) -> Option<&mut V> {
        self.held.get_mut(&key).map(|(_, value)| value)
    }

    /// Puts a thing there. The one before it with this key, or the oldest of too many, is gone.
    fn insert(&mut self, at_ns: u64, key: u64, value: V, mut gone: impl FnMut(V)) {
        if self.order.len() >= self.most {
            self.forget_oldest(&mut gone);
        }
        if let Some((_, before)) = self.held.insert(key, (at_ns, value)) {
            gone(before);
        }
        self.order.push_back((at_ns, key));
    }

    /// Forgets what is too old.
    fn forget(&mut self, now_ns: u64, mut gone: impl FnMut(V)) {
        while self.order.front().is_some_and(|(at_ns, _)| now_ns - at_ns > self.time_ns) {
            self.forget_oldest(&mut gone);
        }
    }

    fn forget_oldest(&mut self, gone: &mut impl FnMut(V)) {
        let Some((at_ns, key)) = self.order.pop_front() else { return };
        // It may have come again since.
        if let Entry::Occupied(entry) = self.held.entry(key)
            && entry.get().0 == at_ns
        {
            gone(entry.remove().1);
        }
    }
}

/// Keys are hashes already.
type Keys = BuildHasherDefault<KeyHasher>;

#[derive(Clone, Copy, Debug, Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, octets: &[u8]) {
        // Keys come by the method below; this is right for anything else too.
        for octet in octets {
            self.0 = (self.0 ^ u64::from(*octet)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}

fn key(value: impl Hash) -> u64 {
    // Without random keys: the same capture gives the same sample.
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Of a name in wire form. The case of letters does not matter (RFC 4343).
fn name_key(name: &[u8]) -> u64 {
    let mut lower = [0; 255];
    let length = name.len().min(lower.len());
    lower[..length].copy_from_slice(&name[..length]);
    // Lengths of labels are below the letters.
    lower[..length].make_ascii_lowercase();
    key(&lower[..length])
}

fn as_set(length: Duration) -> String {
    duration::as_set(nanoseconds(length))
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The number with so many significant digits: more say nothing, and nobody reads them.
fn rounded(number: f64, digits: usize) -> f64 {
    let text = format!("{number:.*e}", digits.saturating_sub(1));
    text.parse().unwrap_or(number)
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// The population.
    pub population: Population,
    /// Queries that it was found from, without retransmissions.
    pub queries: u64,
    /// From the first query to the last.
    pub length: Duration,
    /// The share of the messages that repeat a query because its answer was late. They are no part of the
    /// population.
    pub retransmitted_share: f64,
    /// How many clients sent anything. The population may have more.
    pub clients_seen: u64,
    /// What to know about it.
    pub notes: Vec<ProfileNote>,
}

/// Why a population is not quite that of the capture.
#[derive(Clone, Debug, PartialEq)]
pub enum ProfileNote {
    /// A part that the messages say too little of: it is as in [`Population::typical`].
    Kept(Kept),
    /// Not all clients were watched.
    ClientsSampled {
        /// How many there are for each that was.
        one_in: u64,
    },
    /// Not all names were watched.
    NamesSampled {
        /// How many there are for each that was.
        one_in: u64,
    },
    /// Most of the clients sent nothing in the time of the capture: how many there are is a guess.
    ManyUnseen {
        /// Clients for each one that was seen.
        for_each_seen: f64,
    },
    /// Rare combinations of types were left out.
    KindsLeftOut {
        /// How many.
        kinds: usize,
        /// Their share of the lookups.
        share: f64,
    },
    /// Messages that are no queries and no responses with one question, and zone transfers.
    Unread {
        /// How many.
        messages: u64,
    },
}

/// A part of a population that is not found without enough messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// Names that do not exist: only responses tell of them.
    Missing,
    /// Popular names.
    Popular,
    /// Lookups in a burst.
    BurstLookups,
    /// Times between the lookups of a burst.
    BurstGaps,
    /// The distribution of silences.
    SilenceShape,
}

impl fmt::Display for ProfileNote {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kept(kept) => {
                let (what, why) = match kept {
                    Kept::Missing => {
                        ("names.missing", "only responses tell which names do not exist")
                    }
                    Kept::Popular => ("names.popular", "there are too few queries"),
                    Kept::BurstLookups => ("bursts.lookups", "there are too few bursts"),
                    Kept::BurstGaps => {
                        ("bursts.gap", "there are too few bursts of several lookups")
                    }
                    Kept::SilenceShape => {
                        ("bursts.silence.shape", "too few clients have many bursts")
                    }
                };
                write!(formatter, "`{what}` is the default: {why}")
            }
            Self::ClientsSampled { one_in } => {
                write!(formatter, "one of {} clients was watched", number::count(*one_in))
            }
            Self::NamesSampled { one_in } => {
                write!(formatter, "one of {} names was watched", number::count(*one_in))
            }
            Self::ManyUnseen { for_each_seen } => write!(
                formatter,
                "`clients` is a guess: for each client that was seen there are {} in all",
                number::three_digits(*for_each_seen)
            ),
            Self::KindsLeftOut { kinds, share: part } => write!(
                formatter,
                "{kinds} rare combinations of types are left out, {} of the lookups",
                share::rounded(*part)
            ),
            Self::Unread { messages } => {
                let count = number::count(*messages);
                write!(
                    formatter,
                    "{count} messages are left out: they are no standard queries with one question, or zone \
                     transfers"
                )
            }
        }
    }
}

/// There are too few queries for a profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{} in {}: at least {} queries over at least {} are needed{}",
    number::counted(*queries, "query", "queries"), as_set(*length), ProfileError::FEWEST_QUERIES,
    as_set(ProfileError::SHORTEST),
    if *unread > 0 {
        let one = "message is no standard query";
        format!("; {}", number::counted(*unread, one, "messages are no standard queries"))
    } else {
        String::new()
    }
)]
pub struct ProfileError {
    /// Queries that there are.
    pub queries: u64,
    /// From the first to the last.
    pub length: Duration,
    /// Messages that are none.
    pub unread: u64,
}

impl ProfileError {
    /// The fewest queries that are enough.
    pub const FEWEST_QUERIES: u64 = 100;
    /// The shortest time that is enough.
    pub const SHORTEST: Duration = Duration::from_secs(1);
}
