//! What happened interval by interval.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One interval of a run. Counts are of events inside the interval; quantiles are of the latencies
/// of the queries that were answered or timed out inside it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Start of the interval, nanoseconds since the load began (warm-up included).
    pub at_ns: u64,
    /// Length in nanoseconds.
    pub length_ns: u64,
    /// How much of it was this load's turn, nanoseconds; `None` where the load took no turns with
    /// others, and had all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_ns: Option<u64>,
    /// Queries that became due.
    pub due: u64,
    /// Queries sent.
    pub sent: u64,
    /// Queries answered.
    pub answered: u64,
    /// Queries that ended in any other outcome.
    pub lost: u64,
    /// The answered ones by response code, as in [`crate::Answers::rcodes`]; empty in records that do not
    /// have it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rcodes: BTreeMap<String, u64>,
    /// Median latency in nanoseconds, if any query ended here.
    pub p50_ns: Option<u64>,
    /// 0.95 quantile of the latency in nanoseconds.
    pub p95_ns: Option<u64>,
    /// 0.99 quantile of the latency in nanoseconds.
    pub p99_ns: Option<u64>,
    /// 0.999 quantile of the latency in nanoseconds.
    pub p999_ns: Option<u64>,
    /// Largest latency in nanoseconds.
    pub max_ns: Option<u64>,
    /// What was carried meanwhile; `None` in records that do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<IntervalTraffic>,
}

/// What a load carried in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntervalTraffic {
    /// Octets of the DNS messages sent, without what their transport adds.
    pub sent_octets: u64,
    /// Octets of the DNS messages received, without what their transport adds.
    pub received_octets: u64,
    /// Connections that became usable.
    pub opened: u64,
    /// Usable connections that ended, whoever ended them; `None` in records that do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<u64>,
    /// Full TLS handshakes.
    pub full_handshakes: u64,
    /// Resumed TLS handshakes, those with early data among them.
    pub resumed_handshakes: u64,
}

impl IntervalTraffic {
    /// Adds what was carried by another worker, or in another interval.
    pub fn merge(&mut self, other: &Self) {
        self.sent_octets += other.sent_octets;
        self.received_octets += other.received_octets;
        self.opened += other.opened;
        self.ended = match (self.ended, other.ended) {
            (Some(own), Some(more)) => Some(own + more),
            (own, more) => own.or(more),
        };
        self.full_handshakes += other.full_handshakes;
        self.resumed_handshakes += other.resumed_handshakes;
    }

    /// What was carried since `earlier`; both are sums since the load began.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            sent_octets: self.sent_octets - earlier.sent_octets,
            received_octets: self.received_octets - earlier.received_octets,
            opened: self.opened - earlier.opened,
            ended: self.ended.map(|ended| ended - earlier.ended.unwrap_or(0)),
            full_handshakes: self.full_handshakes - earlier.full_handshakes,
            resumed_handshakes: self.resumed_handshakes - earlier.resumed_handshakes,
        }
    }
}

impl Interval {
    /// Answered queries per second of the time that was the load's own.
    #[must_use]
    pub fn answered_qps(&self) -> f64 {
        self.answered as f64 * 1e9 / self.own_ns.unwrap_or(self.length_ns).max(1) as f64
    }
}
