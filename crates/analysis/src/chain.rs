//! What each server of a chain did, from the records alone.

use dnslab_record::{
    ChainPart, CounterSeries, Measured, Observation, RunRecord, Span, UNDER_TEST, counter,
};
use serde::{Deserialize, Serialize};

use crate::statistics::mean_of;

/// Queries and connections that reached a server; `None` where it does not tell.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct Reached {
    /// Queries over the transport by which the one before it asks.
    pub queries: Option<u64>,
    /// Connections.
    pub connections: Option<u64>,
    /// Full TLS handshakes.
    pub full_handshakes: Option<u64>,
    /// Resumed TLS handshakes.
    pub resumed_handshakes: Option<u64>,
}

impl Reached {
    /// Reads each count with `read`, by the names of [`counter`].
    fn of(transport: &str, read: impl Fn(&str) -> Option<u64>) -> Self {
        let own = queries_over(transport).and_then(&read);
        Self {
            queries: own.or_else(|| read(counter::QUERIES)),
            connections: read(counter::CONNECTIONS),
            full_handshakes: read(counter::HANDSHAKES_FULL),
            resumed_handshakes: read(counter::HANDSHAKES_RESUMED),
        }
    }

    /// What the load did itself: it knows its connections without asking the server.
    fn of_load(measured: &Measured) -> Self {
        let phases = [&measured.warm_up, &measured.counters];
        let sum =
            |count: fn(&dnslab_figures::Counters) -> u64| Some(phases.into_iter().map(count).sum());
        let any = phases.iter().any(|phase| phase.connections.attempted > 0);
        let connected = |count| if any { sum(count) } else { None };
        Self {
            queries: sum(|phase| phase.sent),
            connections: connected(|phase| phase.connections.opened),
            full_handshakes: connected(|phase| phase.connections.full_handshakes),
            resumed_handshakes: connected(|phase| phase.connections.resumed_handshakes),
        }
    }

    /// Queries for each connection; `None` without a connection.
    #[must_use]
    pub fn queries_per_connection(&self) -> Option<f64> {
        let connections = self.connections.filter(|connections| *connections > 0)?;
        Some(self.queries? as f64 / connections as f64)
    }

    fn plus(self, other: Self) -> Self {
        Self {
            queries: sum_of_known(self.queries, other.queries),
            connections: sum_of_known(self.connections, other.connections),
            full_handshakes: sum_of_known(self.full_handshakes, other.full_handshakes),
            resumed_handshakes: sum_of_known(self.resumed_handshakes, other.resumed_handshakes),
        }
    }
}

fn sum_of_known(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.into_iter().chain(other).reduce(|one, other| one + other)
}

/// The name of the count of queries over one transport, as records call it; `None` for those that
/// have no count of their own.
fn queries_over(transport: &str) -> Option<&'static str> {
    match transport {
        "udp" => Some(counter::QUERIES_UDP),
        "tcp" => Some(counter::QUERIES_TCP),
        "dot" => Some(counter::QUERIES_DOT),
        "doh2" | "doh3" => Some(counter::QUERIES_DOH),
        _ => None,
    }
}

/// One server of a chain, the server under test among them: in one run, or over several.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ServerFigures {
    /// [`UNDER_TEST`], or the role of the [`ChainPart`].
    pub role: String,
    /// The host that it runs on; empty if that is not known.
    pub host: String,
    /// Its kind and version, as one text.
    pub server: String,
    /// The transport over which the one before it asks.
    pub transport: String,
    /// Queries per second: of the server under test those answered in the measured window, of the
    /// others those that they counted in it (in as much of the load as they were read for, if the
    /// readings do not cover the window). The mean over runs.
    pub qps: Option<f64>,
    /// Mean latency, nanoseconds: of the server under test that of the load, of the others from the
    /// query of the server before it to the answer, as far as that one counts the time, in the span of
    /// `qps`. The mean over runs.
    #[serde(default)]
    pub mean_latency_ns: Option<f64>,
    /// CPU use in [0, 1] of the CPUs that it was given, over the measured window; the mean over runs.
    pub busy_share: Option<f64>,
    /// CPU time for each of the queries in `qps`, nanoseconds; the mean over runs.
    pub cpu_per_query_ns: Option<f64>,
    /// Its largest memory, octets; of several runs the largest.
    pub peak_memory_octets: Option<u64>,
    /// What reached it from the first reading, before the load, to the last one after it; of the
    /// server under test what the load says of itself. The sum of runs.
    pub during_load: Reached,
    /// What reached it since it started: with what was asked until all of the chain was ready, for a
    /// forwarder may open its connections then and keep them. The sum of runs; of the server under
    /// test nothing.
    pub since_start: Reached,
}

impl ServerFigures {
    /// Every server of the chain of a run, the server under test first; nothing without a chain or
    /// without a measurement.
    #[must_use]
    pub fn of_run(record: &RunRecord) -> Vec<Self> {
        let chain = &record.watched.chain;
        let last = chain.last().map_or(&record.server, |part| &part.server);
        let is_chain = !chain.is_empty() || last.upstream.is_some();
        let Some(run) = record.observation().filter(|_| is_chain) else { return Vec::new() };
        let behind = record.watched.chain.iter().map(|part| part.counters.as_ref());
        let before = std::iter::once(record.watched.counters.as_ref()).chain(behind);
        let parts = record.watched.chain.iter().zip(before);
        let parts = parts.map(|(part, before)| Self::of_part(part, before, run.measured));
        let counted = chain.last().map_or(&record.watched.counters, |part| &part.counters);
        let external = last.upstream.iter().map(|external| Self {
            role: "upstream".to_owned(),
            server: format!("external {external}"),
            transport: external.transport.clone(),
            mean_latency_ns: counted
                .as_ref()
                .and_then(|counted| mean_wait_ns(counted, run.measured.window())),
            ..Self::default()
        });
        std::iter::once(Self::under_test(record, &run)).chain(parts).chain(external).collect()
    }

    /// Every server of the chain over the runs of a variant; those of a run that has another chain
    /// than the first are left out.
    #[must_use]
    pub fn over_runs<'a>(records: impl Iterator<Item = &'a RunRecord>) -> Vec<Self> {
        let runs: Vec<Vec<Self>> = records.map(Self::of_run).collect();
        let first = runs.first().map(Vec::as_slice).unwrap_or_default();
        let means = first.iter().enumerate().map(|(place, server)| {
            let same = runs.iter().filter_map(|run| run.get(place));
            Self::mean(&same.filter(|other| other.role == server.role).collect::<Vec<_>>())
        });
        means.collect()
    }

    fn under_test(record: &RunRecord, run: &Observation<'_>) -> Self {
        let measured = run.measured;
        // The hosts stand from the clients to the end of the chain.
        let host = record.testbed.as_ref().and_then(|all| all.hosts.get(1));
        Self {
            role: UNDER_TEST.to_owned(),
            host: host.map(|host| host.name.clone()).unwrap_or_default(),
            server: record.server.title(),
            transport: record.load.transport_name().to_owned(),
            qps: Some(measured.answered_qps()),
            mean_latency_ns: measured.latency.mean_ns(),
            busy_share: run.server_busy_share(),
            cpu_per_query_ns: run.server_cpu_per_query_ns(),
            peak_memory_octets: run.watched.resources.peak_memory_octets(),
            during_load: Reached::of_load(measured),
            since_start: Reached::default(),
        }
    }

    /// The figures of a server behind it; `before` is what the server that asks it counted.
    fn of_part(part: &ChainPart, before: Option<&CounterSeries>, measured: &Measured) -> Self {
        let window = measured.window();
        let counters = part.counters.as_ref();
        let span = counters.and_then(|counters| counted_span(counters, window));
        let queries = counters
            .zip(span)
            .and_then(|(counters, span)| counters.growth_in(counter::QUERIES, span, window.to_ns));
        let seconds = span.map(|span| span.length_ns() as f64 / 1e9);
        let cpu_ns = span.and_then(|span| part.resources.cpu_ns(span));
        let queries = queries.filter(|queries| *queries > 0.0);
        let reached = |read: fn(&CounterSeries, &str) -> Option<u64>| {
            Reached::of(&part.transport, |name| counters.and_then(|series| read(series, name)))
        };
        Self {
            role: part.role.clone(),
            host: part.host.clone(),
            server: part.server.title(),
            transport: part.transport.clone(),
            qps: queries.zip(seconds).map(|(queries, seconds)| queries / seconds),
            mean_latency_ns: before.and_then(|before| mean_wait_ns(before, window)),
            busy_share: measured.busy_share_of(&part.resources),
            cpu_per_query_ns: cpu_ns.zip(queries).map(|(cpu_ns, queries)| cpu_ns as f64 / queries),
            peak_memory_octets: part.resources.peak_memory_octets(),
            during_load: reached(CounterSeries::growth),
            since_start: reached(CounterSeries::total),
        }
    }

    /// The mean of a server's figures over several runs, at least one.
    fn mean(runs: &[&Self]) -> Self {
        let mean = |figure: fn(&Self) -> Option<f64>| {
            mean_of(&runs.iter().filter_map(|run| figure(run)).collect::<Vec<f64>>())
        };
        let sum = |figure: fn(&Self) -> Reached| {
            runs.iter().map(|run| figure(run)).reduce(Reached::plus).unwrap_or_default()
        };
        Self {
            qps: mean(|run| run.qps),
            mean_latency_ns: mean(|run| run.mean_latency_ns),
            busy_share: mean(|run| run.busy_share),
            cpu_per_query_ns: mean(|run| run.cpu_per_query_ns),
            peak_memory_octets: runs.iter().filter_map(|run| run.peak_memory_octets).max(),
            during_load: sum(|run| run.during_load),
            since_start: sum(|run| run.since_start),
            ..runs[0].clone()
        }
    }
}

/// How long a server waited for an answer of the one behind it on average, nanoseconds; `None` if it
/// does not count that, or asked nothing.
fn mean_wait_ns(counters: &CounterSeries, window: Span) -> Option<f64> {
    let span = counted_span(counters, window)?;
    let waited_ns = counters.growth_in(counter::UPSTREAM_WAITED_NS, span, window.to_ns)?;
    let asked = counters.growth_in(counter::UPSTREAM_QUERIES, span, window.to_ns)?;
    (asked > 0.0).then(|| waited_ns / asked)
}

/// The span for which queries are counted: the measured window, or as much of the load as there is
/// between the first reading and the last if they do not cover the window.
fn counted_span(counters: &CounterSeries, window: Span) -> Option<Span> {
    let [first, .., last] = counters.samples.as_slice() else { return None };
    let span = match first.at_ns <= window.from_ns && window.to_ns <= last.at_ns {
        true => window,
        false => Span::between(first.at_ns.max(0), last.at_ns.min(window.to_ns)),
    };
    (span.length_ns() > 0).then_some(span)
}
