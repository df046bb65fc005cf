//! What servers counted themselves, read during a run.
//!
//! Every server counts in words of its own. Where a count means the same as another server's, it has
//! one of the names below; any other keeps the server's name.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::span::Span;

/// Queries that came from clients, over all transports.
pub const QUERIES: &str = "queries";
/// Those that came over UDP.
pub const QUERIES_UDP: &str = "queries.udp";
/// Those that came over TCP without encryption.
pub const QUERIES_TCP: &str = "queries.tcp";
/// Those that came over DNS over TLS.
pub const QUERIES_DOT: &str = "queries.dot";
/// Those that came over DNS over HTTPS.
pub const QUERIES_DOH: &str = "queries.doh";
/// Answers to clients.
pub const RESPONSES: &str = "responses";
/// Queries answered from the cache.
pub const CACHE_HITS: &str = "cache.hits";
/// Queries that the cache could not answer.
pub const CACHE_MISSES: &str = "cache.misses";
/// Queries sent to the upstream server.
pub const UPSTREAM_QUERIES: &str = "upstream.queries";
/// Time from the queries sent to the upstream server to their answers, nanoseconds, as a sum.
pub const UPSTREAM_WAITED_NS: &str = "upstream.waited-ns";
/// Answers of the upstream server that did not come in time.
pub const UPSTREAM_TIMEOUTS: &str = "upstream.timeouts";
/// Connections that were accepted, over all transports.
pub const CONNECTIONS: &str = "connections";
/// Full TLS handshakes with clients.
pub const HANDSHAKES_FULL: &str = "handshakes.full";
/// TLS handshakes with clients that resumed an earlier session.
pub const HANDSHAKES_RESUMED: &str = "handshakes.resumed";
/// Connections that the server closed because they had carried as many queries as it allows.
pub const CLOSED_BY_QUOTA: &str = "connections.closed-by-quota";
/// Connections that the server closed because they were idle.
pub const CLOSED_BY_IDLENESS: &str = "connections.closed-by-idleness";
/// dnstap messages that the server wrote.
pub const DNSTAP_MESSAGES: &str = "dnstap.messages";
/// dnstap messages that it lost, because the queue to their writer was full.
pub const DNSTAP_DROPPED: &str = "dnstap.dropped";
/// Answers that a program of the embedded server held back.
pub const DELAYED: &str = "delayed.answers";
/// How much longer than the program says they were held back, nanoseconds, as a sum.
pub const DELAYED_LATE_NS: &str = "delayed.late-ns";

/// The counters of one server at one instant. All are cumulative.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CounterSample {
    /// When, in nanoseconds since the load began; negative before it.
    pub at_ns: i64,
    /// The counts by name.
    pub counts: BTreeMap<String, u64>,
}

/// The counters of one server during a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CounterSeries {
    /// Where they were read, e.g. `BIND's statistics channel`.
    pub source: String,
    /// The readings, oldest first: one before the load, about one each second, one after it. A record in which
    /// they are in another order is not read.
    pub samples: Vec<CounterSample>,
    /// Why a reading failed, the last time that one did.
    #[serde(default)]
    pub failure: Option<String>,
}

impl CounterSample {
    /// When it was read, in the load that ended at `end_ns`.
    fn instant_ns(&self, end_ns: i64) -> i64 {
        self.at_ns.clamp(0, end_ns.max(0))
    }

    fn count(&self, name: &str) -> f64 {
        self.counts.get(name).copied().unwrap_or(0) as f64
    }
}

impl CounterSeries {
    /// By how much a count grew from the first reading to the last; `None` without two readings that
    /// have it. A count that an early reading does not have yet began at 0.
    #[must_use]
    pub fn growth(&self, name: &str) -> Option<u64> {
        let [first, .., last] = self.samples.as_slice() else { return None };
        let begin = first.counts.get(name).copied().unwrap_or(0);
        Some(last.counts.get(name)?.saturating_sub(begin))
    }

    /// By how much a count grew in a span of a load that ended at `end_ns`, linearly
    /// interpolated between readings; `None` when the readings do not cover the span, or the last has
    /// no such count. A count that an early reading does not have yet was 0.
    ///
    /// A reading before the load stands for its beginning and one after it for its end, for nothing
    /// was asked in between.
    #[must_use]
    pub fn growth_in(&self, name: &str, span: Span, end_ns: i64) -> Option<f64> {
        self.total(name)?;
        let from = self.count_at(name, span.from_ns, end_ns)?;
        Some((self.count_at(name, span.to_ns, end_ns)? - from).max(0.0))
    }

    /// A count at an instant of a load, linearly between the readings around it.
    fn count_at(&self, name: &str, at_ns: i64, end_ns: i64) -> Option<f64> {
        // It is asked for each interval of a run, so it does not look at all readings.
        let after = self.samples.partition_point(|sample| sample.instant_ns(end_ns) <= at_ns);
        let left = &self.samples[after.checked_sub(1)?];
        let (left_ns, left) = (left.instant_ns(end_ns), left.count(name));
        // Of several before the load, or after it, the last one.
        if left_ns == at_ns {
            return Some(left);
        }
        let right = self.samples.get(after)?;
        let share = (at_ns - left_ns) as f64 / (right.instant_ns(end_ns) - left_ns) as f64;
        Some(left + share * (right.count(name) - left))
    }

    /// The count at the last reading: since the server started.
    #[must_use]
    pub fn total(&self, name: &str) -> Option<u64> {
        self.samples.last()?.counts.get(name).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(readings: &[&[(&str, u64)]]) -> CounterSeries {
        let sample = |counts: &&[(&str, u64)]| CounterSample {
            at_ns: 0,
            counts: counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect(),
        };
        CounterSeries { samples: readings.iter().map(sample).collect(), ..Default::default() }
    }

    #[test]
    fn growth_is_from_the_first_reading_to_the_last() {
        let growth = |readings: &[&[(&str, u64)]]| series(readings).growth(QUERIES);
        assert_eq!(growth(&[&[(QUERIES, 3)], &[(QUERIES, 5)], &[(QUERIES, 10)]]), Some(7));
        assert_eq!(growth(&[&[], &[(QUERIES, 10)]]), Some(10));
        assert_eq!(growth(&[&[(QUERIES, 3)], &[]]), None);
        assert_eq!(growth(&[&[(QUERIES, 3)]]), None);
        assert_eq!(series(&[&[(QUERIES, 3)]]).total(QUERIES), Some(3));
    }

    #[test]
    fn growth_in_a_span_is_interpolated_and_never_invented() {
        let mut series = series(&[&[], &[(QUERIES, 100)], &[(QUERIES, 300)], &[(QUERIES, 310)]]);
        for (sample, at_ns) in series.samples.iter_mut().zip([-10, 10, 20, 40]) {
            sample.at_ns = at_ns;
        }
        let grown = |from, to, end| series.growth_in(QUERIES, Span::between(from, to), end);
        assert_eq!((grown(0, 20, 40), grown(10, 15, 40)), (Some(300.0), Some(100.0)));
        assert_eq!(grown(5, 15, 40), Some(150.0));
        // What was counted until the reading after the load was asked before its end.
        assert_eq!((grown(0, 22, 22), grown(20, 21, 22)), (Some(310.0), Some(5.0)));
        assert_eq!((grown(-1, 20, 40), grown(0, 41, 40)), (None, None));
        assert_eq!(series.growth_in(CONNECTIONS, Span::between(0, 15), 40), None);
        series.samples.remove(0);
        assert_eq!(series.growth_in(QUERIES, Span::between(0, 15), 40), None);
    }
}
