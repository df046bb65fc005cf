//! What a run measured.

use serde::{Deserialize, Serialize};

use crate::{CounterSeries, Counters, Histogram, Interval, NetworkDrops, Pacing, ResourceSeries};

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
    /// Answers that its UDP sockets dropped in the measured window, and at most an interval before
    /// it.
    pub drops: u64,
    /// Clients that it simulated.
    #[serde(default)]
    pub clients: u32,
    /// Clients that could send when the measured window began; all, if they connect on demand.
    #[serde(default)]
    pub open_clients: u32,
    /// Time in the measured window in which lanes waited to be opened while as many connections as
    /// the worker has on their way at once were on their way, nanoseconds.
    #[serde(default)]
    pub connections_held_ns: u64,
    /// Time in the measured window that the thread slept to gather what comes meanwhile,
    /// nanoseconds.
    #[serde(default)]
    pub pause_ns: u64,
    /// How often it did.
    #[serde(default)]
    pub pauses: u64,
}

impl WorkerFacts {
    /// Share of the time that the thread used its CPU, in [0, 1].
    #[must_use]
    pub fn busy_share(&self) -> f64 {
        self.share(self.cpu_ns)
    }

    /// Share of the time in which connections waited for others of the same worker, in [0, 1].
    #[must_use]
    pub fn held_share(&self) -> f64 {
        self.share(self.connections_held_ns)
    }

    /// How long the thread slept on average to gather what comes meanwhile, nanoseconds; `None` if
    /// it never did.
    #[must_use]
    pub fn mean_pause_ns(&self) -> Option<f64> {
        (self.pauses > 0).then(|| self.pause_ns as f64 / self.pauses as f64)
    }

    /// Share of the time that the thread waited for its CPU, in [0, 1].
    #[must_use]
    pub fn waited_share(&self) -> f64 {
        self.share(self.waited_ns)
    }

    /// A part of the measured window as a share of it, in [0, 1].
    fn share(&self, part_ns: u64) -> f64 {
        if self.elapsed_ns == 0 { 0.0 } else { part_ns as f64 / self.elapsed_ns as f64 }
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
    /// How close to its schedule an open loop sent; `None` for a closed loop, which has none, and in
    /// records that do not have it.
    #[serde(default)]
    pub pacing: Option<Pacing>,
    /// Time from the connection attempt until the transport (TCP) was connected. QUIC connects by
    /// its handshake and has none.
    pub connect_time: Histogram,
    /// Time of the full TLS handshakes, from the connected transport (QUIC: from the first packet).
    /// Records without [`Measured::resumed_handshake_time`] hold the resumed ones here too.
    pub handshake_time: Histogram,
    /// Time of the resumed TLS handshakes without accepted early data, from the connected transport
    /// (QUIC: from the first packet).
    #[serde(default)]
    pub resumed_handshake_time: Histogram,
    /// Time of the TLS handshakes with accepted early data (RFC 8446, section 2.3), until they were
    /// confirmed. Queries left before that, so it is no part of their latency.
    #[serde(default)]
    pub early_data_time: Histogram,
    /// Warm-up and measured window, interval by interval.
    pub intervals: Vec<Interval>,
    /// The server's resources; empty samples when it could not be watched.
    pub resources: ResourceSeries,
    /// What the server itself counted; `None` if it tells nobody, and in records that do not have it.
    #[serde(default)]
    pub server_counters: Option<CounterSeries>,
    /// What the network stack of the generator's host dropped and sent again from the start of the
    /// load to its end, on behalf of whatever process; all 0 in records that do not have it.
    #[serde(default)]
    pub network: NetworkDrops,
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

    /// Queries that became due in the measured window, per second: what an open loop was to send. Of a
    /// Poisson process that is what was drawn, and not the rate that was asked for.
    #[must_use]
    pub fn due_qps(&self) -> f64 {
        self.counters.outcomes.due as f64 * 1e9 / self.window_ns as f64
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

    /// The same with the time of interrupts on its CPUs, where the kernel does not count that as the time
    /// of threads.
    #[must_use]
    pub fn server_used_share(&self) -> Option<f64> {
        let (from, to) = self.window();
        self.resources.used_share(from, to)
    }

    /// The server's CPU time per answered query over the measured window, nanoseconds.
    #[must_use]
    pub fn server_cpu_per_query_ns(&self) -> Option<f64> {
        let (from, to) = self.window();
        let answered = self.answered_in_window;
        let cpu_ns = self.resources.cpu_between_ns(from, to)?;
        (answered > 0).then(|| cpu_ns as f64 / answered as f64)
    }

    /// Octets that the server wrote to its logs of queries, per answered query, over the measured
    /// window; `None` without such a log. What the server still held back is not in it.
    #[must_use]
    pub fn log_octets_per_query(&self) -> Option<f64> {
        let (from, to) = self.window();
        let is_written = self.resources.samples.last()?.log_octets > 0;
        let octets = self.resources.growth_between(from, to, |sample| sample.log_octets)?;
        let answered = self.answered_in_window;
        (is_written && answered > 0).then(|| octets as f64 / answered as f64)
    }

    /// The generator's CPU time per answered query over the measured window, nanoseconds.
    #[must_use]
    pub fn generator_cpu_per_query_ns(&self) -> Option<f64> {
        let answered = self.answered_in_window;
        let cpu_ns: u64 = self.workers.iter().map(|worker| worker.cpu_ns).sum();
        (answered > 0).then(|| cpu_ns as f64 / answered as f64)
    }
}
