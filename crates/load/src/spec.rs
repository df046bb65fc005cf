//! A load, as it is asked for.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use dnslab_settings::{HttpSettings, Load, Mode, Quickack, ReceiveTime, Subnets};
use dnslab_traffic::{
    ClientBehaviour, ClientSubnets, Connect, QueryList, Selection, SourceAddresses, Truncated,
    Turns,
};
use dnslab_wire::{Query, Transport, TsigKey};

use crate::{Expected, TlsSettings};

/// A worker with a window of at most so many queries acts on each of them by itself
/// ([`LoadSpec::effective_horizon`]).
const LONE_QUERIES: u32 = 4;

/// One load on one server.
#[derive(Clone, Debug)]
pub struct LoadSpec {
    /// Where the queries go.
    pub target: SocketAddr,
    /// How they travel.
    pub transport: Transport,
    /// Simulated clients, each with sockets of its own; at least 1.
    pub clients: u32,
    /// Closed or open loop.
    pub mode: Mode,
    /// Length of the measured window.
    pub duration: Duration,
    /// Length of the warm-up before it, measured but kept apart.
    pub warm_up: Duration,
    /// Queries after which the load ends, before its time is over: counted from its start, and divided
    /// among the workers; `None` for no bound.
    pub max_queries: Option<u64>,
    /// A query without an answer for this long has timed out.
    pub timeout: Duration,
    /// Worker threads; at least 1, and no more than clients.
    pub workers: u32,
    /// CPUs to pin the workers to, in turn; empty leaves them to the scheduler.
    pub cpus: Vec<usize>,
    /// What is asked.
    pub queries: Arc<QueryList>,
    /// In which order.
    pub selection: Selection,
    /// Seed of everything drawn at random.
    pub seed: u64,
    /// What every answer must be, if the experiment states it.
    pub expected: Option<Expected>,
    /// TLS, for the encrypted transports.
    pub tls: Option<TlsSettings>,
    /// Longest time for which sends and receives are gathered, where that gathers anything: see
    /// [`LoadSpec::effective_horizon`]. Zero acts on each wake-up.
    pub horizon: Duration,
    /// When clients connect, how often, for how long, and what they do with truncated answers.
    pub behaviour: ClientBehaviour,
    /// Addresses that the clients send from, in turn; the kernel chooses where there is none.
    pub sources: Option<SourceAddresses>,
    /// Client subnets (RFC 7871) that the clients' queries carry, in turn.
    pub subnets: Option<ClientSubnets>,
    /// Queries ask for the server's idle time-out, and clients close a connection that has been idle
    /// for so long (RFC 7828). The queries themselves hold the option.
    pub keepalive: bool,
    /// Queries carry a DNS cookie, each client's own (RFC 7873).
    pub cookies: bool,
    /// Queries are signed with this key, and answers must be (RFC 8945).
    pub tsig: Option<TsigKey>,
    /// HTTP, for the transports over it.
    pub http: HttpSettings,
    /// Whose clock says when a datagram came.
    pub receive_time: ReceiveTime,
    /// When it may send, where it takes turns with other loads; [`LoadSpec::warm_up`] and
    /// [`LoadSpec::duration`] are then those of the timeline that all of them share, and an open
    /// loop has its rate in its own slices.
    pub turns: Option<Turns>,
    /// Whether the clients' kernel acknowledges what came over TCP at once.
    pub quickack: Quickack,
}

impl LoadSpec {
    /// A load of one client with one query outstanding for ten seconds after one second of warm-up,
    /// from one worker thread, with a time-out of two seconds; to be changed as needed.
    #[must_use]
    pub fn new(target: SocketAddr, transport: Transport, queries: Arc<QueryList>) -> Self {
        let warm_up = Duration::from_secs(1);
        let settings = Load { transport, clients: 1, warm_up, ..Load::default() };
        Self::of(&settings, target, queries)
    }

    /// The load that these settings ask for, from one worker thread for each that they name. What they leave
    /// to files, and to who starts the load, is still to be put in: client subnets and keys of files, TLS, the
    /// expected answer, the seed.
    #[must_use]
    pub fn of(settings: &Load, target: SocketAddr, queries: Arc<QueryList>) -> Self {
        let written = match &settings.client_subnets {
            Some(Subnets::Written(subnets)) => Some(subnets.clone()),
            Some(Subnets::File(_)) | None => None,
        };
        Self {
            target,
            transport: settings.transport,
            clients: settings.clients,
            mode: settings.mode(),
            duration: settings.duration,
            warm_up: settings.warm_up,
            max_queries: settings.queries_in_all,
            timeout: settings.timeout,
            workers: settings.workers.unwrap_or(1),
            cpus: settings.cpus.clone(),
            queries,
            selection: settings.selection,
            seed: 1,
            expected: None,
            tls: None,
            horizon: settings.horizon,
            behaviour: settings.behaviour(),
            sources: settings.sources.clone(),
            subnets: written,
            keepalive: settings.keepalive,
            cookies: settings.cookies,
            tsig: settings.tsig.clone(),
            http: settings.http(),
            receive_time: settings.receive_time,
            turns: None,
            quickack: settings.quickack,
        }
    }

    /// How many workers a load has if nobody says so: one for each CPU, and at most one for each client.
    /// In a closed loop no more than leave each worker a window of five queries, so that the horizon is
    /// applied ([`LoadSpec::effective_horizon`]) whatever the number of CPUs: differences between
    /// transports depend on it.
    #[must_use]
    pub fn default_workers(cpus: u32, clients: u32, mode: &Mode) -> u32 {
        let most = match mode {
            Mode::Closed { outstanding } => {
                let window = clients.saturating_mul(*outstanding);
                clients.min(window / (LONE_QUERIES + 1))
            }
            Mode::Open { .. } => clients,
        };
        cpus.clamp(1, most.max(1))
    }

    /// The horizon as it is applied: all of it, or zero where next to nothing would be gathered and
    /// the wait would only add to the latency. That is a window of at most four queries for each
    /// worker, or a schedule with less than two arrivals in a horizon. It follows from what was
    /// asked, not from how the server fares, so that it is the same for all variants that are
    /// asked the same.
    #[must_use]
    pub fn effective_horizon(&self) -> Duration {
        let workers = f64::from(self.workers.max(1));
        let gathers = match &self.mode {
            Mode::Closed { outstanding } => {
                f64::from(self.clients) * f64::from(*outstanding) / workers
                    > f64::from(LONE_QUERIES)
            }
            Mode::Open { rate, .. } => {
                let rate_qps = rate.mean(self.warm_up + self.duration);
                rate_qps / workers * self.horizon.as_secs_f64() >= 2.0
            }
        };
        if gathers { self.horizon } else { Duration::ZERO }
    }

    /// Truncated answers are asked again over TCP.
    pub(crate) fn retries_over_tcp(&self) -> bool {
        self.behaviour.truncated == Truncated::AskOverTcp && !self.transport.is_connection()
    }

    /// Queries carry an OPT record, so that answers may: with a cookie, the server's idle time, or
    /// the upper bits of the response code (RFC 6891, section 6.1.3).
    pub(crate) fn sends_options(&self) -> bool {
        let additional = |query: &Query| query.octets()[10..12] != [0, 0];
        let all = self.cookies || self.subnets.is_some() || self.keepalive;
        all || self.queries.iter().next().is_some_and(additional)
    }

    /// Sockets that the clients may have open at the same time, before any limit: one for each of
    /// their connections, and one more for truncated answers asked again. Where clients connect on
    /// query_source and close idle connections, no more than come about within an idle time and a time-out.
    ///
    /// Those that wait for the last answers of a connection which has had its share
    /// (`queries_per_connection`, GOAWAY) come on top: how many depends on what is lost. Where they
    /// leave no socket for the next connection, it waits until one of them is closed, a time-out
    /// later at the latest.
    #[must_use]
    pub fn sockets(&self) -> u64 {
        let clients = u64::from(self.clients);
        let retries = if self.retries_over_tcp() { clients } else { 0 };
        let all = clients * u64::from(self.behaviour.connections) + retries;
        let idle = self.behaviour.idle.filter(|_| self.behaviour.connect == Connect::OnDemand);
        match (&self.mode, idle) {
            (Mode::Open { rate, .. }, Some(idle)) => {
                let length = self.warm_up + self.duration;
                let most_qps = rate.at(Duration::ZERO).max(rate.at(length)).max(rate.mean(length));
                all.min((most_qps * (idle + self.timeout).as_secs_f64()).ceil() as u64)
            }
            _ => all,
        }
    }
}

#[cfg(test)]
mod tests {
    use dnslab_traffic::{Pace, Rate};

    use super::*;

    fn spec() -> LoadSpec {
        let queries = QueryList::from_text(&b"a.example A\n"[..], "test", &Default::default());
        let target = "127.0.0.1:53".parse().unwrap();
        LoadSpec::new(target, Transport::Udp, Arc::new(queries.unwrap()))
    }

    fn open(rate_qps: f64) -> Mode {
        Mode::Open { rate: Rate::Constant(rate_qps), pace: Pace::Constant }
    }

    #[test]
    fn many_cpus_leave_each_worker_a_window() {
        let workers = LoadSpec::default_workers;
        let closed = |outstanding| Mode::Closed { outstanding };
        assert_eq!(workers(1, 100, &closed(1)), 1);
        assert_eq!(workers(8, 100, &closed(1)), 8);
        assert_eq!(workers(64, 100, &closed(1)), 20);
        assert_eq!(workers(64, 100, &closed(10)), 64);
        // Next to nothing is gathered in such a window anyway.
        assert_eq!(workers(64, 4, &closed(1)), 1);
        assert_eq!(workers(64, 4, &closed(100)), 4);
        assert_eq!(workers(64, 100, &open(1_000.0)), 64);
        for cpus in 1..=64 {
            let spec = LoadSpec {
                clients: 100,
                workers: workers(cpus, 100, &closed(1)),
                mode: closed(1),
                ..spec()
            };
            assert_eq!(spec.effective_horizon(), spec.horizon, "{cpus} CPUs");
        }
    }

    #[test]
    fn the_horizon_is_applied_where_it_gathers() {
        let horizon_us = |clients, workers, mode| {
            let horizon = Duration::from_micros(50);
            let spec = LoadSpec { clients, workers, mode, horizon, ..spec() };
            spec.effective_horizon().as_micros()
        };
        let closed = |outstanding| Mode::Closed { outstanding };
        assert_eq!(horizon_us(4, 1, closed(1)), 0);
        assert_eq!(horizon_us(5, 1, closed(1)), 50);
        assert_eq!(horizon_us(8, 2, closed(1)), 0);
        assert_eq!(horizon_us(1, 1, open(39_999.0)), 0);
        assert_eq!(horizon_us(1, 1, open(40_000.0)), 50);
        assert_eq!(horizon_us(2, 2, open(79_999.0)), 0);
    }

    #[test]
    fn idle_clients_need_fewer_sockets() {
        let with =
            |mode, behaviour| LoadSpec { clients: 100_000, mode, behaviour, ..spec() }.sockets();
        let sockets = |mode, idle: Option<u64>, connections, truncated| {
            let (idle, connect) = (idle.map(Duration::from_secs), Connect::OnDemand);
            let queries_per_connection = None;
            let behaviour =
                ClientBehaviour { connections, queries_per_connection, idle, connect, truncated };
            with(mode, behaviour)
        };
        let closed = Mode::Closed { outstanding: 1 };
        assert_eq!(sockets(closed.clone(), None, 1, Truncated::Count), 100_000);
        assert_eq!(sockets(closed.clone(), Some(1), 1, Truncated::Count), 100_000);
        assert_eq!(sockets(closed, None, 2, Truncated::AskOverTcp), 300_000);
        assert_eq!(sockets(open(1_000.0), None, 1, Truncated::Count), 100_000);
        assert_eq!(sockets(open(1_000.0), Some(8), 1, Truncated::Count), 10_000);
        assert_eq!(sockets(open(1e6), Some(8), 1, Truncated::Count), 100_000);
        // All are open at the start, however soon they are closed after it.
        let idle = Some(Duration::from_secs(8));
        let at_start = ClientBehaviour { idle, ..ClientBehaviour::default() };
        assert_eq!(with(open(1_000.0), at_start), 100_000);
    }
}
