//! What a run measured.

use dnslab_figures::{
    Counters, Histogram, HttpRefusals, Interval, NetworkDrops, Pacing, Tls, WindowCounts,
};
use serde::{Deserialize, Serialize};

use crate::resources::{ResourceSeries, ThreadShare};
use crate::span::Span;

/// One load worker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerFacts {
    /// CPU that the thread was pinned to.
    pub cpu: Option<usize>,
    /// CPU time that the thread used in the measured window, nanoseconds; of a load that takes turns, in
    /// those.
    pub cpu_ns: u64,
    /// Time in the same for which the thread could have run but another one had its CPU, nanoseconds.
    #[serde(default)]
    pub waited_ns: u64,
    /// Length of the measured window as the thread saw it, nanoseconds; of a load that takes turns, of those:
    /// each until the thread found that it was over, as long as the two times above are of.
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
    /// Clients that were connected when the measured window ended, and had an answer by the end of
    /// the load if they had asked; `None` if clients connect on demand, and in records that do not
    /// have it.
    #[serde(default)]
    pub served_clients: Option<u32>,
    /// Clients whose last queries all timed out, more of them than chance makes where so many queries are
    /// lost; 0 in records that do not have it.
    #[serde(default)]
    pub forsaken_clients: u32,
    /// The shortest round trip to the server that the kernel measured when a TCP connection was opened,
    /// nanoseconds; `None` without one, and in records that do not have it.
    #[serde(default)]
    pub round_trip_ns: Option<u64>,
    /// Time in the measured window in which connections waited to be opened while as many connections as
    /// the worker has on their way at once were on their way, nanoseconds.
    #[serde(default)]
    pub connections_held_ns: u64,
    /// Time in the measured window that the thread slept for a batch, nanoseconds.
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

    /// How long the thread slept for a batch on average, nanoseconds; `None` if it never did.
    #[must_use]
    pub fn mean_pause_ns(&self) -> Option<f64> {
        (self.pauses > 0).then(|| self.pause_ns as f64 / self.pauses as f64)
    }

    /// By how much the sleeps for batches delayed an answer on average, at most, nanoseconds: their mean
    /// length, times their share of the time.
    #[must_use]
    pub fn batching_ns(&self) -> f64 {
        self.mean_pause_ns().map_or(0.0, |pause| pause * self.share(self.pause_ns).min(1.0))
    }

    /// Share of the time that the thread waited for its CPU, in [0, 1]. Older records of loads that took turns
    /// have a wait in them that went on after the turn.
    #[must_use]
    pub fn waited_share(&self) -> f64 {
        self.share(self.waited_ns).min(1.0)
    }

    /// A part of the measured window as a share of it, in [0, 1].
    fn share(&self, part_ns: u64) -> f64 {
        if self.elapsed_ns == 0 { 0.0 } else { part_ns as f64 / self.elapsed_ns as f64 }
    }
}

/// How a load took turns with others on the same timeline: what of the measured window was its own,
/// and what of that counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnsTaken {
    /// How many loads took turns.
    pub loads: u32,
    /// Length of a slice, nanoseconds.
    pub slice_ns: u64,
    /// What does not count at the beginning of a slice, nanoseconds.
    pub lead_ns: u64,
    /// What does not count at its end, nanoseconds.
    pub tail_ns: u64,
    /// Time in the measured window that was this load's, nanoseconds.
    pub own_ns: u64,
    /// The part of it that counts, nanoseconds: rates and latencies are of this time.
    pub counted_ns: u64,
    /// Answers received in the measured window, also while the time did not count.
    pub answered: u64,
}

/// What a run measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// When the load began, nanoseconds since 1970 in UTC; 0 in records that do not have it.
    #[serde(default, skip_serializing_if = "is_unknown")]
    pub began_unix_ns: u64,
    /// Length of the measured window, nanoseconds; shorter than asked if the run was cut short.
    pub window_ns: u64,
    /// When the measured window began, nanoseconds after the load began.
    pub window_start_ns: u64,
    /// Queries sent inside the measured window, whenever they were due: what was offered.
    pub sent_in_window: u64,
    /// Answers received inside the measured window, whenever their query was due. Those of an open
    /// loop that come later have an outcome, but are no rate that the server kept up.
    pub answered_in_window: u64,
    /// How the load took turns with others; `None` where it was alone. Then the two counts above are
    /// of the time that counts, and the counters below of the whole window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<TurnsTaken>,
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
    /// How much later than due clients with queries of their own turned to them, before any connecting;
    /// empty for other loads.
    #[serde(default, skip_serializing_if = "Histogram::is_empty")]
    pub start_lag: Histogram,
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
    /// The parts of the measured window that `load.windows` names, in its order; none in records that do not
    /// have it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<WindowCounts>,
    /// Warm-up and measured window, interval by interval.
    pub intervals: Vec<Interval>,
    /// The intervals in whole seconds of the timeline, with the quantiles of all queries of each; empty where the
    /// intervals are that long, and in records that do not have it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seconds: Vec<Interval>,
    /// What the network stack of the generator's host dropped and sent again from the start of the
    /// load to its end, on behalf of whatever process; `None` where the kernel does not say, and in records that do
    /// not have it.
    #[serde(default)]
    pub network: Option<NetworkDrops>,
    /// The workers.
    pub workers: Vec<WorkerFacts>,
    /// What TLS agreed on.
    pub tls: Option<Tls>,
}

fn is_unknown(unix_ns: &u64) -> bool {
    *unix_ns == 0
}

impl Measured {
    /// Responses of HTTP that carried no DNS message, in the warm-up too, by their status.
    #[must_use]
    pub fn http_refusals(&self) -> Vec<(u16, HttpRefusals)> {
        let mut both = self.warm_up.clone();
        both.merge(&self.counters);
        both.http_refusals.into_iter().collect()
    }

    /// Answered queries per second of the measured window.
    #[must_use]
    pub fn answered_qps(&self) -> f64 {
        self.answered_in_window as f64 * 1e9 / self.counted_ns() as f64
    }

    /// Offered (sent) queries per second of the measured window.
    #[must_use]
    pub fn offered_qps(&self) -> f64 {
        self.sent_in_window as f64 * 1e9 / self.counted_ns() as f64
    }

    /// Queries that became due in the measured window, per second: what an open loop was to send. Of a
    /// Poisson process that is what was drawn, and not the rate that was asked for.
    #[must_use]
    pub fn due_qps(&self) -> f64 {
        self.counters.outcomes.due as f64 * 1e9 / self.own_ns() as f64
    }

    /// The part of the measured window that was this load's own, nanoseconds; all of it, if it took
    /// no turns.
    #[must_use]
    pub fn own_ns(&self) -> u64 {
        self.turns.as_ref().map_or(self.window_ns, |turns| turns.own_ns.max(1))
    }

    /// The part of the measured window that counts for rates and latencies, nanoseconds.
    #[must_use]
    pub fn counted_ns(&self) -> u64 {
        self.turns.as_ref().map_or(self.window_ns, |turns| turns.counted_ns.max(1))
    }

    /// Answers received in the measured window, also while the time did not count.
    #[must_use]
    pub fn answered(&self) -> u64 {
        self.turns.as_ref().map_or(self.answered_in_window, |turns| turns.answered)
    }

    /// The measured window.
    #[must_use]
    pub fn window(&self) -> Span {
        let end_ns = self.window_start_ns + self.window_ns;
        Span::between(self.window_start_ns as i64, end_ns as i64)
    }

    /// The CPU use of any server of this run as a share of its CPUs, with the interrupts there. Where loads take turns,
    /// the interrupts are taken to be as many in each turn. It may be above 1 by the error of the kernel's ticks.
    #[must_use]
    pub fn used_share_of(&self, resources: &ResourceSeries) -> Option<f64> {
        resources.with_own_interrupts(self.busy_share_of(resources)?, self.window())
    }

    /// What the busiest threads of a server used while its turn was, the busiest first.
    #[must_use]
    pub fn threads_of(&self, resources: &ResourceSeries) -> Vec<ThreadShare> {
        let mut threads = resources.threads.clone();
        if self.turns.is_some() {
            let scale = self.window_ns as f64 / self.own_ns() as f64;
            threads.iter_mut().for_each(|thread| thread.share *= scale);
        }
        threads
    }

    /// Of the time for which threads of a server could run in the measured window, the share for which they
    /// had no CPU, in [0, 1]; `None` where that is not known.
    #[must_use]
    pub fn waited_share_of(&self, resources: &ResourceSeries) -> Option<f64> {
        resources.waited_share(self.window())
    }

    /// The CPU use of any server of this run as a share of the CPUs it was given, from its samples, over its own part of
    /// the measured window. In turns it may be above 1 by a hundredth: what is left of a turn is worked off at the
    /// beginning of the next one, which is another load's.
    #[must_use]
    pub fn busy_share_of(&self, resources: &ResourceSeries) -> Option<f64> {
        let share = resources.busy_share(self.window())?;
        Some(share * self.window_ns as f64 / self.own_ns() as f64)
    }

    /// TLS handshakes, full and resumed, for each answered query of the measured window; `None`
    /// without any in it, as where connections are kept.
    #[must_use]
    pub fn handshakes_per_query(&self) -> Option<f64> {
        let connections = &self.counters.connections;
        let handshakes = connections.full_handshakes + connections.resumed_handshakes;
        let answered = self.answered();
        (handshakes > 0 && answered > 0).then(|| handshakes as f64 / answered as f64)
    }

    /// The generator's CPU time per answered query over the measured window, nanoseconds; `None` if its
    /// workers are not known.
    #[must_use]
    pub fn generator_cpu_per_query_ns(&self) -> Option<f64> {
        let answered = self.answered();
        let cpu_ns: u64 = self.workers.iter().map(|worker| worker.cpu_ns).sum();
        (answered > 0 && !self.workers.is_empty()).then(|| cpu_ns as f64 / answered as f64)
    }

    /// The intervals that lie in the measured window with their whole length; at its ends there may be
    /// parts of some.
    #[must_use]
    pub fn whole_intervals(&self) -> Vec<&Interval> {
        let window = self.window();
        let length_ns = self.intervals.iter().map(|interval| interval.length_ns).max();
        let mut intervals: Vec<&Interval> = self.intervals.iter().collect();
        intervals.retain(|interval| {
            let (at, end) = (interval.at_ns as i64, (interval.at_ns + interval.length_ns) as i64);
            Some(interval.length_ns) == length_ns && window.from_ns <= at && end <= window.to_ns
        });
        intervals
    }

    /// Mean time between two queries of one connection in the measured window, nanoseconds; `None`
    /// without connections or queries.
    #[must_use]
    pub fn connection_gap_ns(&self) -> Option<f64> {
        let (warm_up, measured) = (&self.warm_up.connections, &self.counters.connections);
        let opened = warm_up.opened + measured.opened;
        let ended = warm_up.lost + warm_up.closed + measured.lost + measured.closed;
        let kept = opened.saturating_sub(ended);
        let sent = self.sent_in_window;
        (kept > 0 && sent > 0).then(|| self.counted_ns() as f64 * kept as f64 / sent as f64)
    }
}
