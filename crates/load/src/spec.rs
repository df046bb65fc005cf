//! A load, as it is asked for.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use dnslab_measure::LoadMode;
use dnslab_traffic::{
    ClientBehaviour, ClientSubnets, Connect, Pace, QueryList, Rate, Selection, SourceAddresses,
    Truncated, Turns,
};
use dnslab_transport::Method;
use dnslab_wire::{Query, Transport, TsigKey};

use crate::{Expected, TlsSettings};

/// A worker with a window of at most so many queries acts on each of them by itself
/// ([`LoadSpec::effective_horizon`]).
const LONE_QUERIES: u32 = 4;

/// How queries are paced.
#[derive(Clone, Debug, PartialEq)]
pub enum Mode {
    /// A window of outstanding queries per client; the next is sent when one ends.
    Closed {
        /// Outstanding queries per client, at least 1.
        outstanding: u32,
    },
    /// A schedule that does not wait for the server.
    Open {
        /// Queries per second over all clients, and how that changes with time.
        rate: Rate,
        /// How the due instants are spread.
        pace: Pace,
    },
}

impl Mode {
    /// The mode in the form of the record: the intended rate is that of the measured window.
    #[must_use]
    pub fn facts(&self, warm_up: Duration, duration: Duration) -> LoadMode {
        match self {
            Self::Closed { outstanding } => LoadMode::Closed { outstanding: *outstanding },
            Self::Open { rate, pace } => {
                let pace = match rate {
                    Rate::Constant(_) => pace.to_string(),
                    changing => format!("{pace}, {changing}"),
                };
                let rate_qps = match rate {
                    Rate::Constant(rate_qps) => *rate_qps,
                    changing => {
                        let due =
                            changing.cumulated(warm_up + duration) - changing.cumulated(warm_up);
                        due / duration.as_secs_f64()
                    }
                };
                LoadMode::Open { rate_qps, pace }
            }
        }
    }
}

/// How DNS messages become HTTP requests (RFC 8484).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpSettings {
    /// GET or POST.
    pub method: Method,
    /// Path of the resource, without the variable `dns`.
    pub path: String,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self { method: Method::default(), path: "/dns-query".to_owned() }
    }
}

/// When the clients' kernel acknowledges what came over TCP as soon as it was read (`TCP_QUICKACK`,
/// tcp(7)), and does not wait up to 40 ms for the next query to carry the acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Quickack {
    /// Never, as the kernel is preset.
    #[default]
    Never,
    /// In an open loop. In a closed one the next query follows an answer at once, and carries the
    /// acknowledgement for nothing.
    OpenLoop,
    /// In every loop.
    Always,
}

impl Quickack {
    /// The name in experiment files and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::OpenLoop => "open-loop",
            Self::Always => "always",
        }
    }

    /// Whether clients of such a loop acknowledge at once.
    #[must_use]
    pub fn applies(self, mode: &Mode) -> bool {
        match self {
            Self::Never => false,
            Self::OpenLoop => matches!(mode, Mode::Open { .. }),
            Self::Always => true,
        }
    }
}

/// Whose clock says when a datagram came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ReceiveTime {
    /// Ours, read once for each batch after it was read from the kernel: what a client sees, with
    /// the wait for its CPU and for the horizon.
    #[default]
    User,
    /// The kernel's, stamped when the datagram came to the host (`SO_TIMESTAMPNS`, socket(7)):
    /// without what the generator itself adds after it. UDP only.
    Kernel,
}

impl ReceiveTime {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::User, Self::Kernel];

    /// The name in experiment files, on the command line and in records.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Kernel => "kernel",
        }
    }
}

impl fmt::Display for ReceiveTime {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// The text names no receive time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown receive time `{0}`: it is one of user, kernel")]
pub struct UnknownReceiveTime(
    /// The text.
    pub String,
);

impl FromStr for ReceiveTime {
    type Err = UnknownReceiveTime;

    fn from_str(text: &str) -> Result<Self, UnknownReceiveTime> {
        let named = |time: &Self| time.name() == text;
        Self::ALL.into_iter().find(named).ok_or_else(|| UnknownReceiveTime(text.to_owned()))
    }
}

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
    pub most_queries: Option<u64>,
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
        Self {
            target,
            transport,
            clients: 1,
            mode: Mode::Closed { outstanding: 1 },
            duration: Duration::from_secs(10),
            warm_up: Duration::from_secs(1),
            most_queries: None,
            timeout: Duration::from_secs(2),
            workers: 1,
            cpus: Vec::new(),
            queries,
            selection: Selection::default(),
            seed: 1,
            expected: None,
            tls: None,
            horizon: Duration::from_micros(20),
            behaviour: ClientBehaviour::default(),
            sources: None,
            subnets: None,
            keepalive: false,
            cookies: false,
            tsig: None,
            http: HttpSettings::default(),
            receive_time: ReceiveTime::default(),
            turns: None,
            quickack: Quickack::Never,
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

    #[test]
    fn the_intended_rate_is_that_of_the_window() {
        let rate: Rate = "steps:20000,10000/1s".parse().unwrap();
        let mode = Mode::Open { rate, pace: Pace::Constant };
        let LoadMode::Open { rate_qps, .. } =
            mode.facts(Duration::from_secs(1), Duration::from_secs(4))
        else {
            panic!()
        };
        assert!((rate_qps - 10_000.0).abs() < 1e-6, "{rate_qps}");
    }

    #[test]
    fn receive_times_are_read_back() {
        for time in ReceiveTime::ALL {
            assert_eq!(time.to_string().parse(), Ok(time));
        }
        assert!("nic".parse::<ReceiveTime>().unwrap_err().to_string().contains("`nic`"));
    }
}
