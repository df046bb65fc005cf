//! The record of one run.

use serde::{Deserialize, Serialize};

use crate::{Caveat, Counters, Histogram, Interval, Limit, ResourceSeries};

/// Version of the record's form on disk. It rises with every change that an older reader would
/// misunderstand; readers keep reading all older ones.
pub const RECORD_FORMAT: u32 = 1;

/// Everything that one run of one variant left behind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// [`RECORD_FORMAT`] at the time of writing.
    pub format: u32,
    /// Name of the variant.
    pub variant: String,
    /// Repetition, from 1.
    pub repetition: u32,
    /// Place in the order of execution, from 0.
    pub position: u32,
    /// When the run began, RFC 3339 in UTC.
    pub started: String,
    /// Whether the run counts.
    pub status: RunStatus,
    /// The load as it was applied.
    pub load: LoadFacts,
    /// The server as it ran.
    pub server: ServerFacts,
    /// What was measured; `None` if the run failed before the load began.
    pub measured: Option<Measured>,
    /// Reasons to doubt.
    pub caveats: Vec<Caveat>,
    /// What bounded the answered rate.
    pub limit: Limit,
}

/// Whether a run counts. Only valid runs enter the statistics; the others are kept and shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "kebab-case")]
pub enum RunStatus {
    /// It counts.
    Valid,
    /// Measured, but the answers were wrong beyond the limit.
    Invalid {
        /// Why, with an example.
        reason: String,
    },
    /// It could not be measured to its end.
    Failed {
        /// Why.
        reason: String,
        /// Last lines of the server's log.
        log_tail: Vec<String>,
    },
}

/// How queries were paced.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
        /// `constant` or `poisson`.
        pace: String,
    },
}

/// The load as it was applied.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadFacts {
    /// `udp`, `tcp` or `dot`.
    pub transport: String,
    /// Address and port that the queries went to.
    pub target: String,
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
    /// Longest time for which sends and receives are gathered into one system call, nanoseconds.
    pub horizon_ns: u64,
}

impl LoadFacts {
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

/// The server as it ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerFacts {
    /// `embedded`, `bind`, `knot`, `nsd` or `external`.
    pub kind: String,
    /// What the server says of its version; empty when unknown.
    pub version: String,
    /// The command line.
    pub command: Vec<String>,
    /// Path of the configuration inside the run's folder, if one was written.
    pub configuration: Option<String>,
    /// Threads that it was configured for; 0 when unknown.
    pub threads: u32,
    /// CPUs that it was pinned to; empty if not pinned.
    pub cpus: Vec<usize>,
    /// What the adapter changed from the server's defaults and why, one sentence each.
    pub notes: Vec<String>,
}

/// One load worker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerFacts {
    /// CPU that the thread was pinned to.
    pub cpu: Option<usize>,
    /// CPU time that the thread used in the measured window, nanoseconds.
    pub cpu_ns: u64,
    /// Time in the measured window for which the thread could have run but another one had its CPU,
    /// nanoseconds.
    #[serde(default)]
    pub waited_ns: u64,
    /// Length of the measured window as the thread saw it, nanoseconds.
    pub elapsed_ns: u64,
    /// Answers that its UDP sockets dropped.
    pub drops: u64,
    /// Clients that it simulated.
    #[serde(default)]
    pub clients: u32,
    /// Clients that could send when the measured window began.
    #[serde(default)]
    pub open_clients: u32,
}

impl WorkerFacts {
    /// Share of the time that the thread used its CPU, in [0, 1].
    #[must_use]
    pub fn busy_share(&self) -> f64 {
        if self.elapsed_ns == 0 { 0.0 } else { self.cpu_ns as f64 / self.elapsed_ns as f64 }
    }

    /// Share of the time that the thread waited for its CPU, in [0, 1].
    #[must_use]
    pub fn waited_share(&self) -> f64 {
        if self.elapsed_ns == 0 { 0.0 } else { self.waited_ns as f64 / self.elapsed_ns as f64 }
    }
}

/// What TLS agreed on (RFC 8446; RFC 7858 for DNS).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tls {
    /// `TLSv1.2` or `TLSv1.3`.
    pub version: String,
    /// Cipher suite.
    pub cipher_suite: String,
    /// Whether the certificate was verified.
    pub verified: bool,
}

/// What a run measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Length of the measured window, nanoseconds; shorter than asked if the run was cut short.
    pub window_ns: u64,
    /// When the measured window began, nanoseconds after the load began.
    pub window_start_ns: u64,
    /// Queries sent inside the measured window, whenever they were due: what was offered.
    pub sent_in_window: u64,
    /// Answers received inside the measured window, whenever their query was due. Those of an open
    /// loop that come later have an outcome, but are no rate that the server kept up.
    pub answered_in_window: u64,
    /// Counts of the queries that became due in the measured window.
    pub counters: Counters,
    /// Counts of the queries that became due in the warm-up.
    pub warm_up: Counters,
    /// received - due. A query that was lost, in whatever way, counts with the time-out at least.
    pub latency: Histogram,
    /// received - sent, of answered queries.
    pub service_time: Histogram,
    /// sent - due, of sent queries.
    pub send_lag: Histogram,
    /// Time from the connection attempt until the transport (TCP) was connected.
    pub connect_time: Histogram,
    /// Time of the TLS handshake, from the connected transport.
    pub handshake_time: Histogram,
    /// Warm-up and measured window, interval by interval.
    pub intervals: Vec<Interval>,
    /// The server's resources; empty samples when it could not be watched.
    pub resources: ResourceSeries,
    /// The workers.
    pub workers: Vec<WorkerFacts>,
    /// What TLS agreed on.
    pub tls: Option<Tls>,
}

impl Measured {
    /// Answered queries per second of the measured window.
    #[must_use]
    pub fn answered_qps(&self) -> f64 {
        self.answered_in_window as f64 * 1e9 / self.window_ns as f64
    }

    /// Offered (sent) queries per second of the measured window.
    #[must_use]
    pub fn offered_qps(&self) -> f64 {
        self.sent_in_window as f64 * 1e9 / self.window_ns as f64
    }

    /// The measured window as a span of the run's timeline, nanoseconds since the load began.
    #[must_use]
    pub fn window(&self) -> (i64, i64) {
        (self.window_start_ns as i64, (self.window_start_ns + self.window_ns) as i64)
    }

    /// The server's CPU use in [0, 1] of the CPUs it was given, over the measured window.
    #[must_use]
    pub fn server_busy_share(&self) -> Option<f64> {
        let (from, to) = self.window();
        self.resources.busy_share(from, to)
    }

    /// The server's CPU time per answered query over the measured window, nanoseconds.
    #[must_use]
    pub fn server_cpu_per_query_ns(&self) -> Option<f64> {
        let (from, to) = self.window();
        let answered = self.answered_in_window;
        let cpu_ns = self.resources.cpu_between_ns(from, to)?;
        (answered > 0).then(|| cpu_ns as f64 / answered as f64)
    }

    /// The generator's CPU time per answered query over the measured window, nanoseconds.
    #[must_use]
    pub fn generator_cpu_per_query_ns(&self) -> Option<f64> {
        let answered = self.answered_in_window;
        let cpu_ns: u64 = self.workers.iter().map(|worker| worker.cpu_ns).sum();
        (answered > 0).then(|| cpu_ns as f64 / answered as f64)
    }
}
