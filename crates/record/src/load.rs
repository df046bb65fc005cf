//! A load as it was applied.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use dnslab_settings::{Mode, ReceiveTime};
use dnslab_traffic::{Pace, Rate, SourceAddresses, TransportMix};
use dnslab_wire::{Method, Transport};
use serde::{Deserialize, Serialize};

/// How queries were paced.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "mode", rename_all = "kebab-case")]
pub enum LoadMode {
    /// A window of outstanding queries per client; the next is sent when one ends.
    Closed {
        /// Outstanding queries per client.
        outstanding: u32,
    },
    /// A schedule that does not wait for the server.
    Open {
        /// Intended queries per second over all clients.
        rate_qps: f64,
        /// How the instants are spread at which queries become due.
        #[serde(with = "crate::text")]
        #[schemars(with = "String")]
        pace: OpenPace,
    },
}

impl LoadMode {
    /// How a load with this warm-up and this measured window was paced: the intended rate is that of the
    /// window.
    #[must_use]
    pub fn of(mode: &Mode, warm_up: Duration, duration: Duration) -> Self {
        match mode {
            Mode::Closed { outstanding } => Self::Closed { outstanding: *outstanding },
            Mode::Open { rate, pace } => {
                let changing = (!rate.is_constant()).then(|| rate.clone());
                let pace = OpenPace::Schedule { pace: *pace, changing };
                Self::Open { rate_qps: rate.mean_within(warm_up, duration), pace }
            }
            // The rate is known when the clients are.
            Mode::Capture(_) | Mode::Population { .. } => {
                Self::Open { rate_qps: 0.0, pace: OpenPace::Clients }
            }
        }
    }
}

/// How an open loop spreads the instants at which its queries become due.
#[derive(Clone, Debug, PartialEq)]
pub enum OpenPace {
    /// By a schedule.
    Schedule {
        /// Equal gaps, or those of a Poisson process.
        pace: Pace,
        /// The rate, if it changes with time.
        changing: Option<Rate>,
    },
    /// Each client has queries of its own.
    Clients,
}

impl OpenPace {
    /// A constant rate with this pace.
    #[must_use]
    pub fn constant(pace: Pace) -> Self {
        Self::Schedule { pace, changing: None }
    }
}

const CLIENTS: &str = "each client's own";

impl fmt::Display for OpenPace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Schedule { pace, changing: None } => pace.fmt(formatter),
            Self::Schedule { pace, changing: Some(rate) } => write!(formatter, "{pace}, {rate}"),
            Self::Clients => formatter.write_str(CLIENTS),
        }
    }
}

/// The text is no pace of an open loop.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no pace")]
pub struct NoPace(String);

impl FromStr for OpenPace {
    type Err = NoPace;

    fn from_str(text: &str) -> Result<Self, NoPace> {
        if text == CLIENTS {
            return Ok(Self::Clients);
        }
        let (pace, rate) = match text.split_once(", ") {
            Some((pace, rate)) => (pace, Some(rate)),
            None => (text, None),
        };
        let changing = rate.map(str::parse).transpose();
        match (pace.parse(), changing) {
            (Ok(pace), Ok(changing)) => Ok(Self::Schedule { pace, changing }),
            _ => Err(NoPace(text.to_owned())),
        }
    }
}

dnslab_wire::words! {
    /// Whose clients were played.
    pub enum Played as "kind of clients" {
        /// Those of a capture.
        Capture = "capture",
        /// Those of a population.
        Population = "population",
    }
}

/// The load as it was applied.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadFacts {
    /// How the queries travelled, but for those of [`Self::mix`]; `None` where another tool does not say.
    #[serde(with = "crate::text::or_empty")]
    pub transport: Option<Transport>,
    /// The shares of the clients that used other transports; `None` if all used one.
    #[serde(default, with = "crate::text::or_empty")]
    pub mix: Option<TransportMix>,
    /// Whose clients were played; `None` if the load made its own.
    #[serde(default, with = "crate::text::or_empty", skip_serializing_if = "Option::is_none")]
    pub played: Option<Played>,
    /// Address and port that the queries went to.
    pub target: String,
    /// Addresses of the further servers that the clients know; empty in records that do not have it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further: Vec<String>,
    /// Simulated clients, each with its own socket.
    pub clients: u32,
    /// Sockets that they may have at one time; 0 in records that do not have it.
    #[serde(default, skip_serializing_if = "crate::omitted::is_zero")]
    pub sockets: u64,
    /// Closed or open loop.
    pub mode: LoadMode,
    /// Length of the measured window, nanoseconds.
    pub duration_ns: u64,
    /// Length of the warm-up before it, nanoseconds.
    pub warm_up_ns: u64,
    /// A query without an answer for this long has timed out, nanoseconds.
    pub timeout_ns: u64,
    /// How long a client waits in all that asks more than once, nanoseconds; `None` for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patience_ns: Option<u64>,
    /// Worker threads.
    pub workers: u32,
    /// CPUs that the workers were pinned to, one per worker; empty if not pinned.
    pub cpus: Vec<usize>,
    /// Where the queries came from, as a sentence.
    pub queries: String,
    /// Seed of everything drawn at random.
    pub seed: u64,
    /// Which system calls carried the datagrams or octets.
    pub send_path: String,
    /// Longest time for which sends and receives wait for others, to share a system call; nanoseconds.
    pub batch_delay_ns: u64,
    /// How the clients behave (connections, queries for each, idle time, truncated answers), as a
    /// sentence; empty in records that do not have it.
    #[serde(default)]
    pub behaviour: String,
    /// What TLS was to do; `None` without encryption and in records that do not have it.
    #[serde(default)]
    pub tls: Option<TlsFacts>,
    /// The method of the requests (RFC 8484, section 4.1); `None` without HTTP.
    #[serde(default, with = "crate::text::optional")]
    pub http_method: Option<Method>,
    /// What the clients add to the queries (cookies, client subnets, signatures), as a sentence; empty
    /// without any. What all queries have alike stands in `queries`.
    #[serde(default)]
    pub edns: String,
    /// Where the receive time of an answer comes from; `None` where another tool measured.
    #[serde(default, with = "crate::text::or_empty")]
    pub receive_time: Option<ReceiveTime>,
    /// Queries after which the load ended before its time was over; `None` without a bound and in records
    /// that do not have it.
    #[serde(default)]
    pub max_queries: Option<u64>,
    /// Source addresses of the clients as they were asked for; `None` if the kernel chose.
    #[serde(default, with = "crate::text::optional")]
    pub sources: Option<SourceAddresses>,
    /// Whether the clients' kernel acknowledged what came over TCP as soon as it was read
    /// (`TCP_QUICKACK`, tcp(7)); false in records that do not have it.
    #[serde(default)]
    pub quickack: bool,
    /// The hosts that shared the load, in the order of their workers; none where this machine had all of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<LoadHost>,
}

/// A host that had a share of the load.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadHost {
    /// The name by which it is reached.
    pub host: String,
    /// Its worker threads.
    pub workers: u32,
    /// CPUs of it that they were pinned to, one per worker.
    pub cpus: Vec<usize>,
    /// How far its clock is known, nanoseconds: it began within so much of the planned instant, before it was late.
    pub clock_bound_ns: u64,
    /// How much later than planned the last of its workers began, nanoseconds.
    pub late_ns: u64,
    /// Queries that it sent, each as often as it did, in the warm-up too.
    #[serde(default)]
    pub sent: u64,
    /// Queries of the measured window that were answered to it.
    #[serde(default)]
    pub answered: u64,
}

impl LoadHost {
    /// How many CPUs its workers had; at least 1.
    #[must_use]
    pub fn cpu_count(&self) -> usize {
        self.cpus.iter().collect::<BTreeSet<_>>().len().max(1)
    }
}

/// What TLS was to do; what it agreed on with the server is in [`dnslab_figures::Tls`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsFacts {
    /// Versions that were offered, e.g. `TLSv1.2`, `TLSv1.3`.
    pub versions: Vec<String>,
    /// Whether a client came back with the ticket of its last session (RFC 8446, section 2.2).
    pub resumption: bool,
    /// Whether a client that came back sent its first queries as early data (RFC 8446, section 2.3).
    pub early_data: bool,
    /// Key exchange groups that were offered, the preferred one first, in the words of IANA; empty in
    /// records that do not have it.
    #[serde(default)]
    pub groups: Vec<String>,
    /// DNS over TLS: `per-query` for one query in each TLS record, `shared` for as many as were sent
    /// together; empty for other transports and in records that do not have it.
    #[serde(default)]
    pub records: String,
}

impl LoadFacts {
    /// Name of the transport of the clients that have no other; empty where it is not known.
    #[must_use]
    pub fn transport_name(&self) -> &'static str {
        self.transport.map_or("", Transport::name)
    }

    /// True if some of the queries travelled so.
    #[must_use]
    pub fn has_transport(&self, transport: Transport) -> bool {
        let mixed = self.mix.iter().flat_map(TransportMix::shares);
        self.transport == Some(transport) || mixed.into_iter().any(|(other, _)| *other == transport)
    }

    /// What the latency of a query reaches that is lost, nanoseconds; 0 if it is not known.
    #[must_use]
    pub fn max_wait_ns(&self) -> u64 {
        self.patience_ns.unwrap_or(self.timeout_ns)
    }

    /// Queries that a closed loop keeps outstanding over all clients; `None` for an open loop.
    #[must_use]
    pub fn window(&self) -> Option<u64> {
        match self.mode {
            LoadMode::Closed { outstanding } => {
                Some(u64::from(self.clients) * u64::from(outstanding))
            }
            LoadMode::Open { .. } => None,
        }
    }
}
