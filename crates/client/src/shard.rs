//! The part of a load that one worker has.

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use dnslab_settings::{HttpSettings, Load, Mode};
use dnslab_traffic::{
    Arrivals, Candidates, Connect, Picker, Purpose, Quota, Random, Schedule, drawn_for, stream,
};
use dnslab_wire::{Additions, ClientSubnet, Cookie, MessageBatch, Query, Signed, Transport};
use rand::Rng as _;

use crate::attempts::Attempts;
use crate::connection::Route;
use crate::connection_slot::ConnectionSlot;
use crate::query_source::QuerySource;
use crate::recorder::Phases;
use crate::replay::{Queries, RecentQueries, Upcoming};
use crate::runtime::{Path, Runtime};
use crate::time::{Nanos, nanos};
use crate::tls::ClientTls;
use crate::{Feed, Job, TlsSettings};

/// What a worker needs to know, fixed for its whole life. What each query or connection needs of the settings
/// is ready here.
pub struct Shard<'a> {
    pub(crate) job: &'a Job,
    pub(crate) phases: Phases,
    /// How long the first attempt waits for its answer.
    pub(crate) timeout: Nanos,
    pub(crate) attempts: Attempts,
    /// Shortest time between two rounds of the loop while anything is in flight; 0 for none.
    pub(crate) batch_delay: Nanos,
    /// This worker's number. Its clients are `number`, `number + workers`, `number + 2 * workers`, ...,
    /// counted over all workers.
    pub(crate) number: u32,
    pub(crate) workers: u32,
    /// Clients that are known before the load begins; none where queries come while it runs.
    pub(crate) clients: u32,
    /// Queries after which it ends.
    pub(crate) max_queries: u64,
    /// Queries on one connection, or from one UDP socket, before it is closed.
    pub(crate) quota: Option<Quota>,
    /// A client closes what has been idle for so long; [`Nanos::MAX`] for never.
    pub(crate) idle: Nanos,
    /// Clients open their slots when the load begins, without something to send.
    pub(crate) opens_at_start: bool,
    /// When the first slot is opened at the start, and the time between two of them.
    pub(crate) connects_from: Nanos,
    pub(crate) connect_gap: Nanos,
    /// Closed loop: nothing is sent before.
    pub(crate) sends_from: Nanos,
    /// Clients open their slots again at once when they are lost.
    pub(crate) keeps_open: bool,
    pub(crate) max_open: usize,
    /// Where queries go: first those of the load's own transport, then those of the others, then the same of
    /// each further server.
    pub(crate) endpoints: Vec<ShardEndpoint>,
    /// Its clients' queries, if they come while the load runs.
    feed: Option<Box<dyn Feed>>,
    /// Clients with queries of their own pad them to a multiple of so many octets over encrypted transports; 0 for
    /// none. Queries of a list have their padding already.
    pub(crate) padding: u16,
    pub(crate) http: HttpSettings,
    pub(crate) quickack: bool,
    /// Set from outside to end the measured window early.
    pub(crate) stop: &'a AtomicBool,
}

/// A transport of the server, as the clients of a worker use it.
pub(crate) struct ShardEndpoint {
    /// Which of the client's servers it is, from 0.
    pub(crate) server: u8,
    pub(crate) transport: Transport,
    pub(crate) target: SocketAddr,
    pub(crate) tls: Option<ClientTls>,
    /// Of a number drawn for each client in [0, 1), those below it and not below the one before.
    below: f64,
}

impl ShardEndpoint {
    /// One that no client is drawn for.
    fn new(
        load: &Load,
        server: u8,
        transport: Transport,
        target: SocketAddr,
        tls: &Option<TlsSettings>,
    ) -> Self {
        let tls = tls.as_ref().filter(|_| transport.is_encrypted());
        let tls = tls.map(|tls| {
            // A query may wait for its time-out without a packet, and then the connection is idle.
            let silence = load.idle.map(|idle| idle.saturating_add(load.timeout));
            ClientTls::new(tls, transport).with_idle_timeout(silence)
        });
        Self { server, transport, target, tls, below: 0.0 }
    }

    fn is(&self, transport: Transport, server: u8) -> bool {
        self.transport == transport && self.server == server
    }
}

/// Messages to be sent.
#[derive(Default)]
pub struct Outbox {
    /// The messages, in the order in which they are sent.
    pub messages: MessageBatch,
    /// The last query before it was signed.
    unsigned: Vec<u8>,
}

/// The clients of a [`Shard`], at rest.
pub struct Clients<R: Runtime> {
    pub(crate) slots: Vec<ConnectionSlot<R>>,
    /// Empty where none are sent.
    pub(crate) cookies: Vec<Cookie>,
}

impl<'a> Shard<'a> {
    /// The part of worker `number`, which may have `max_open` sockets at once. `stop` ends the measured
    /// window early. Queries in flight still get their outcome.
    #[must_use]
    pub fn new(job: &'a Job, number: u32, max_open: usize, stop: &'a AtomicBool) -> Self {
        let (load, workers) = (&job.settings, job.workers);
        let phases = Phases::of(job);
        let clients = match &job.played {
            Some(_) => 0,
            None => (load.clients - number).div_ceil(workers),
        };
        let opens_at_start = load.connect == Connect::AtStart;
        let has_connections = load.transports().any(Transport::is_connection);
        let Range { start: connects_from, end: connects_until } =
            match has_connections && opens_at_start {
                true => time_to_connect(job, &phases),
                false => 0..0,
            };
        let slots = u64::from(clients * load.connections);
        let (shard, shards) = (u64::from(number), u64::from(workers));
        let max_queries = load
            .queries_in_all
            .map_or(u64::MAX, |most| most / shards + u64::from(shard < most % shards));
        Self {
            job,
            phases,
            timeout: phases.timeout,
            attempts: Attempts::new(&job.attempts()),
            batch_delay: nanos(job.applied_batch_delay()),
            number,
            workers,
            clients,
            max_queries,
            quota: load.behaviour().queries_per_connection,
            idle: load.idle.map_or(Nanos::MAX, nanos),
            opens_at_start,
            connects_from,
            connect_gap: (connects_until - connects_from) / slots.max(1),
            sends_from: if load.mode.is_closed() { connects_until } else { 0 },
            keeps_open: opens_at_start && load.idle.is_none(),
            max_open,
            endpoints: endpoints(job),
            feed: None,
            padding: if job.played.is_some() { load.padding } else { 0 },
            http: load.http(),
            quickack: job.acknowledges_at_once(),
            stop,
        }
    }

    /// A shard with these queries, for a job whose clients have queries of their own.
    #[must_use]
    pub fn fed_by(self, feed: Box<dyn Feed>) -> Self {
        Self { feed: Some(feed), ..self }
    }

    /// The way of queries over this transport to a server. Truncated answers are asked again over TCP at the
    /// address for UDP.
    pub(crate) fn endpoint(&self, transport: Transport, server: u8) -> &ShardEndpoint {
        let find =
            |transport| self.endpoints.iter().find(|endpoint| endpoint.is(transport, server));
        find(transport).or_else(|| find(Transport::Udp)).unwrap_or(&self.endpoints[0])
    }

    /// How one of its clients reaches a server over this transport: all that a connection is opened with. The worker
    /// and whoever asks before the load go the same way, since it is made here alone.
    #[must_use]
    pub fn route(&self, client: u32, transport: Transport, server: u8) -> Route<'_> {
        let endpoint = self.endpoint(transport, server);
        let sources = self.job.settings.sources.as_ref();
        let source = sources.map(|sources| sources.get(self.client_number(client)));
        Route {
            path: Path { target: endpoint.target, source },
            transport,
            client,
            tls: endpoint.tls.as_ref(),
            http: &self.http,
            receive_time: self.job.settings.receive_time,
            quickack: self.quickack,
        }
    }

    /// What one of its clients adds to each query over this transport. The subnet is that of
    /// [`Shard::subnet_of`].
    #[inline]
    #[must_use]
    pub fn additions<'b>(
        &self,
        transport: Transport,
        cookie: Option<&'b Cookie>,
        subnet: Option<&'b ClientSubnet>,
    ) -> Additions<'b> {
        let padding = if transport.is_encrypted() { self.padding } else { 0 };
        Additions { cookie, subnet, padding }
    }

    /// Appends a query to the messages to be sent, as a client sends it: with this id, with what the client adds,
    /// and signed at `unix_ns`, nanoseconds since 1970, if queries are.
    #[inline]
    pub fn push_query(
        &self,
        query: &Query,
        id: u16,
        additions: &Additions<'_>,
        unix_ns: u64,
        outbox: &mut Outbox,
    ) -> Option<Signed> {
        let Outbox { messages, unsigned } = outbox;
        let Some(key) = &self.job.settings.tsig else {
            messages.push_with(|octets| query.append_to(id, additions, octets));
            return None;
        };
        unsigned.clear();
        query.append_records_to(id, additions, unsigned);
        let signed = key.sign(unsigned, unix_ns / 1_000_000_000);
        messages.push_with(|octets| octets.extend_from_slice(unsigned));
        Some(signed)
    }

    /// The transport of a client, which it keeps. `client` counts over all workers, so a client has the same
    /// for any number of workers.
    pub(crate) fn transport_of(&self, client: u32) -> Transport {
        if self.endpoints.len() == 1 {
            return self.endpoints[0].transport;
        }
        let drawn = drawn_for(self.job.seed, Purpose::Transports, client.into());
        let is_its = |endpoint: &&ShardEndpoint| drawn < endpoint.below;
        self.endpoints[1..].iter().find(is_its).unwrap_or(&self.endpoints[0]).transport
    }

    /// The clients have had their time to connect, and it is this load's turn, if it takes turns.
    #[inline]
    pub(crate) fn has_turn(&self, now: Nanos) -> bool {
        now >= self.sends_from && self.is_own(now)
    }

    /// No other load has its turn, whether this one sends or only connects.
    pub(crate) fn is_own(&self, now: Nanos) -> bool {
        self.job.timeline.turns().is_none_or(|turns| turns.is_own(now))
    }

    /// When the next turn begins, if it is not now.
    pub(crate) fn next_turn(&self, now: Nanos) -> Option<Nanos> {
        let turns = self.job.timeline.turns();
        if now < self.sends_from && turns.is_none_or(|turns| turns.is_own(self.sends_from)) {
            return Some(self.sends_from);
        }
        turns?.next_own(now.max(self.sends_from))
    }

    /// The client subnet (RFC 7871) of one of its clients.
    #[must_use]
    pub fn subnet_of(&self, client: u32) -> Option<ClientSubnet> {
        self.job.subnets().map(|subnets| subnets.of_client(self.client_number(client)))
    }

    /// Counted over all workers.
    pub(crate) fn client_number(&self, client: u32) -> u32 {
        client * self.workers + self.number
    }

    /// The clients as they are before the load begins. A million of them take time, so they are made before
    /// the timeline begins.
    #[must_use]
    pub fn clients<R: Runtime>(&self) -> Clients<R> {
        Clients { slots: self.slots(), cookies: self.cookies() }
    }

    /// In the order that [`crate::Worker`] keeps. A client's window is divided among its connections.
    fn slots<R: Runtime>(&self) -> Vec<ConnectionSlot<R>> {
        let (load, clients) = (&self.job.settings, self.clients);
        let connections = load.connections;
        let outstanding = load.mode.outstanding().unwrap_or(0);
        let usual = (0..connections).flat_map(|connection| {
            let widest = outstanding / connections;
            let widest = widest + u32::from(connection < outstanding % connections);
            (0..clients).map(move |client| {
                let transport = self.transport_of(self.client_number(client));
                ConnectionSlot::new(client, transport, widest)
            })
        });
        usual.collect()
    }

    fn cookies(&self) -> Vec<Cookie> {
        let mut random = self.cookie_source();
        let cookie = || Some(Cookie::new(random.as_mut()?.random()));
        std::iter::repeat_with(cookie).take(self.clients as usize).flatten().collect()
    }

    /// The cookie that one of its clients begins with, if they have any.
    #[must_use]
    pub fn cookie_of(&self, client: u32) -> Option<Cookie> {
        let mut random = self.cookie_source()?;
        let drawn = std::iter::repeat_with(|| Cookie::new(random.random()));
        drawn.take(client as usize + 1).last()
    }

    /// What the cookies of its clients are drawn from in turn, if they have any: random, as RFC 9018, section
    /// 3, wants them, and the same for the same seed.
    pub(crate) fn cookie_source(&self) -> Option<Random> {
        let has_cookies = self.job.settings.cookies;
        has_cookies.then(|| stream(self.job.seed, Purpose::Cookies, self.number))
    }

    pub(crate) fn queries(&self) -> Queries<'a> {
        match &self.job.played {
            Some(_) => Queries::Recent(RecentQueries::new()),
            // What a query is told is kept by the number of the query, of which that of the list is none.
            None if self.tells() => Queries::Recent(RecentQueries::new()),
            None => Queries::List(&self.job.queries),
        }
    }

    /// What each query is told is passed on. A closed loop has no queries that another load has, too.
    pub(crate) fn tells(&self) -> bool {
        self.job.tells && (self.job.played.is_some() || !self.job.settings.mode.is_closed())
    }

    /// Which queries of the list follow one whose name does not exist, if clients have a search list.
    pub(crate) fn candidates(&self) -> Option<Candidates> {
        let load = &self.job.settings;
        let (names, search) = (load.names.as_ref()?, load.search_list()?);
        Some(Candidates::of(names, &load.types.clone().unwrap_or_default(), &search))
    }

    pub(crate) fn query_source(&mut self) -> QuerySource {
        if let Some(feed) = self.feed.take() {
            return QuerySource::Clients { upcoming: Box::new(Upcoming::new(feed)) };
        }
        let Job { settings: load, seed, queries, .. } = self.job;
        let (exponent, worker) = (load.zipf_exponent.0, (self.number, self.workers));
        let picker = match self.candidates() {
            None => Picker::new(load.selection, exponent, queries.len(), *seed, worker),
            Some(candidates) => {
                let starts: Arc<[u32]> = candidates.starts().into();
                let names = u32::try_from(starts.len()).unwrap_or(u32::MAX);
                Picker::new(load.selection, exponent, names, *seed, worker).among(starts)
            }
        };
        match &load.mode {
            // Clients with queries of their own are fed: this has an end at once.
            Mode::Closed { .. } | Mode::Capture(_) | Mode::Population { .. } => {
                QuerySource::Closed { picker }
            }
            Mode::Open { rate, pace } => {
                let schedule = Schedule::new(rate, *pace, *seed, self.number, self.workers);
                let arrivals = Arrivals::new(schedule, self.clients * load.connections, picker);
                let arrivals = match self.job.timeline.turns() {
                    Some(turns) => arrivals.in_turns(turns.clone()),
                    None => arrivals,
                };
                QuerySource::Open { arrivals: Box::new(arrivals) }
            }
        }
    }
}

fn endpoints(job: &Job) -> Vec<ShardEndpoint> {
    let load = &job.settings;
    let first = ShardEndpoint::new(load, 0, load.transport, job.target, &job.tls);
    let mut below = 0.0;
    let others = job.others.iter().map(|other| {
        below += other.share;
        ShardEndpoint {
            below,
            ..ShardEndpoint::new(load, 0, other.transport, other.target, &other.tls)
        }
    });
    let further = (1..).zip(&job.further).flat_map(|(server, endpoints)| {
        endpoints.iter().map(move |other| {
            ShardEndpoint::new(load, server, other.transport, other.target, &other.tls)
        })
    });
    std::iter::once(first).chain(others).chain(further).collect()
}

/// When the clients begin to connect at the start, and until when all are to have begun: the first half of
/// what comes before anything counts. They begin evenly over that time. Some servers take one connection,
/// then serve all that have asked, then take the next, and their listening sockets queue as few as ten. If
/// the load has a single turn, the time is that of its turn, so that no connection is idle before it.
fn time_to_connect(job: &Job, phases: &Phases) -> Range<Nanos> {
    let from = phases.measured_from;
    let turns = job.timeline.turns();
    let first = turns.and_then(|turns| turns.first_counted(from)).unwrap_or(from);
    let lead = match turns {
        Some(turns) if turns.is_single() => turns.lead_ns().min(first),
        _ => first,
    };
    first - lead..first - lead / 2
}

impl Phases {
    /// Intervals of the series of a record, at most.
    pub const MAX_SERIES: u64 = 200;

    /// The phases of a load. Intervals are 100 ms long, or longer so that there are at most
    /// [`Phases::MAX_SERIES`] of them, but no longer than a second as far as that is possible: somebody watches.
    /// If the load takes turns again and again, each load has as many slices in an interval as any other, so that
    /// all intervals have the same share of the load's time.
    #[must_use]
    pub fn of(job: &Job) -> Self {
        let tenth = Duration::from_millis(100);
        let length = job.timeline.length();
        let unit = match job.timeline.turns() {
            Some(turns) if !turns.is_single() => {
                let once_each = u128::from(turns.once_each_ns());
                tenth.as_nanos().div_ceil(once_each) * once_each
            }
            _ => tenth.as_nanos(),
        };
        let second = Duration::from_secs(1).as_nanos();
        let of_series = length.as_nanos().div_ceil(u128::from(Self::MAX_SERIES) * unit).max(1);
        let units = of_series.div_ceil((of_series * unit).div_ceil(second));
        Self {
            measured_from: job.timeline.measured_from_ns(),
            until: job.timeline.until_ns(),
            interval: u64::try_from(unit * units).unwrap_or(u64::MAX),
            timeout: nanos(job.settings.timeout),
        }
    }

    /// How many intervals make one of the series of a record.
    #[must_use]
    pub fn in_series(&self) -> u64 {
        self.until.div_ceil(self.interval.max(1)).div_ceil(Self::MAX_SERIES).max(1)
    }
}
