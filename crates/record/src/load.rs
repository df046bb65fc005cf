//! A load as it was applied.

use std::time::Duration;

use dnslab_settings::Mode;
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
        /// `constant` or `poisson`, or [`LoadMode::CLIENTS`].
        pace: String,
    },
}

impl LoadMode {
    /// The pace of clients with queries of their own.
    pub const CLIENTS: &str = "each client's own";

    /// How a load with this warm-up and this measured window was paced: the intended rate is that of the
    /// window.
    #[must_use]
    pub fn of(mode: &Mode, warm_up: Duration, duration: Duration) -> Self {
        match mode {
            Mode::Closed { outstanding } => Self::Closed { outstanding: *outstanding },
            Mode::Open { rate, pace } => Self::Open {
                rate_qps: rate.mean_within(warm_up, duration),
                pace: match rate.is_constant() {
                    true => pace.to_string(),
                    false => format!("{pace}, {rate}"),
                },
            },
            // The rate is known when the clients are.
            Mode::Clients => Self::Open { rate_qps: 0.0, pace: Self::CLIENTS.to_owned() },
        }
    }
}

/// The load as it was applied.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadFacts {
    /// `udp`, `tcp`, `dot`, `doh2`, `doq` or `doh3`.
    pub transport: String,
    /// The shares of the clients that used other transports, as `load.mix` has them; empty if all used one.
    #[serde(default)]
    pub mix: String,
    /// `capture` or `population` if clients of one were played; empty if not, and in records that do not have it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub played: String,
    /// Address and port that the queries went to.
    pub target: String,
    /// Addresses of the further servers that the clients know; empty in records that do not have it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further: Vec<String>,
    /// Simulated clients, each with its own socket.
    pub clients: u32,
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
    /// `GET` or `POST` (RFC 8484, section 4.1); `None` without HTTP.
    #[serde(default)]
    pub http_method: Option<String>,
    /// What the clients add to the queries (cookies, client subnets, signatures), as a sentence; empty
    /// without any. What all queries have alike stands in `queries`.
    #[serde(default)]
    pub edns: String,
    /// Where the receive time of an answer comes from: `kernel` (a time stamp of the packet) or
    /// `user` (a clock read after the system call); empty in records that do not have it.
    #[serde(default)]
    pub receive_time: String,
    /// Queries after which the load ended before its time was over; `None` without a bound and in records
    /// that do not have it.
    #[serde(default)]
    pub max_queries: Option<u64>,
    /// Source addresses of the clients as they were asked for; `None` if the kernel chose.
    #[serde(default)]
    pub sources: Option<String>,
    /// Whether the clients' kernel acknowledged what came over TCP as soon as it was read
    /// (`TCP_QUICKACK`, tcp(7)); false in records that do not have it.
    #[serde(default)]
    pub quickack: bool,
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
