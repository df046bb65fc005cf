//! What a load brought, added up from what its workers counted.

use std::time::Instant;

use dnslab_measure::{Interval, LoadFacts, LoadMode, Measured, TlsFacts, TurnsTaken, WorkerFacts};

use dnslab_traffic::Turns;
use dnslab_wire::Transport;

use crate::aggregator::Aggregate;
use crate::clock::{Nanos, nanos};
use crate::recorder::Phases;
use crate::worker::WorkerEnd;
use crate::{LoadError, LoadSpec, TlsSettings};

/// What a load brought.
#[derive(Debug)]
pub struct LoadResult {
    /// Zero of the run's timeline.
    pub origin: Instant,
    /// The load as it was applied.
    pub facts: LoadFacts,
    /// What was measured; the server's resources are for the caller to fill in.
    pub measured: Measured,
    /// The first answer that was not the expected one.
    pub wrong_example: Option<String>,
    /// The first answer with a right header that was malformed when it was parsed in full, and how.
    pub malformed_example: Option<String>,
    /// The first thing that was wrong with the signature of an answer, or that the server said of
    /// that of a query, with the remedy.
    pub signature_example: Option<String>,
    /// The last reason for which a connection ended or did not come about.
    pub last_connection_end: Option<String>,
    /// The load was interrupted before its time, or ended itself because the server refused every
    /// signature.
    pub cut_short: bool,
}

/// Adds up what the workers counted, and asserts the sums.
pub(crate) fn finish(
    spec: &LoadSpec,
    phases: Phases,
    origin: Instant,
    ends: Vec<WorkerEnd>,
    gathered: Aggregate,
) -> Result<LoadResult, LoadError> {
    let Aggregate { mut series, mut seconds, pacing, network } = gathered;
    let until: Nanos = ends.iter().map(|end| end.until).max().unwrap_or(phases.until);
    end_at(until, spec, &mut series);
    end_at(until, spec, &mut seconds);
    let mut measured = nothing_counted(spec, phases, until);
    measured.intervals = series;
    measured.seconds = seconds;
    measured.pacing = pacing;
    measured.network = network;
    let (mut wrong_example, mut last_connection_end, mut send_path) = (None, None, None);
    let (mut malformed_example, mut signature_example) = (None, None);
    for (shard, end) in ends.into_iter().enumerate() {
        let cpu = (!spec.cpus.is_empty()).then(|| spec.cpus[shard % spec.cpus.len()]);
        let facts = WorkerFacts {
            cpu,
            cpu_ns: end.time.cpu,
            waited_ns: end.time.waited,
            elapsed_ns: end.elapsed,
            drops: end.drops,
            clients: end.clients,
            open_clients: end.open_clients,
            served_clients: end.served_clients,
            forsaken_clients: end.forsaken_clients,
            round_trip_ns: end.recorder.round_trip,
            connections_held_ns: end.held,
            pause_ns: end.pauses.time,
            pauses: end.pauses.count,
        };
        measured.sent_in_window += end.recorder.sent_in_window;
        measured.answered_in_window += end.recorder.answered_in_window;
        if let Some(turns) = &mut measured.turns {
            turns.answered += end.recorder.answered_in_all;
        }
        measured.workers.push(facts);
        let Measured { latency, service_time, send_lag, .. } = &mut measured;
        end.recorder.add_times(latency, service_time, send_lag);
        measured.connect_time.merge(&end.recorder.connect_time);
        measured.handshake_time.merge(&end.recorder.handshake_time);
        measured.resumed_handshake_time.merge(&end.recorder.resumed_handshake_time);
        measured.early_data_time.merge(&end.recorder.early_data_time);
        measured.tls = measured.tls.take().or(end.agreed);
        wrong_example = wrong_example.or(end.wrong_example);
        malformed_example = malformed_example.or(end.malformed_example);
        signature_example = signature_example.or(end.signature_example);
        last_connection_end = last_connection_end.or(end.last_end);
        send_path = send_path.or(end.send_path);
        let (warm_up, counters) = end.recorder.into_counters();
        measured.warm_up.merge(&warm_up);
        measured.counters.merge(&counters);
    }
    measured.warm_up.outcomes.check()?;
    measured.counters.outcomes.check()?;
    let sent_all = spec.max_queries.is_some_and(|most| due(&measured) >= most);
    let cut_short = until < phases.until && !sent_all;
    let send_path = send_path.unwrap_or("none: no connection was open at the end").to_owned();
    let facts = LoadFacts { send_path, ..spec.facts() };
    Ok(LoadResult {
        origin,
        facts,
        measured,
        wrong_example,
        malformed_example,
        signature_example,
        last_connection_end,
        cut_short,
    })
}

/// Ends the intervals with the load, and leaves out those in which others had their turn: there was no
/// rate.
fn end_at(until: Nanos, spec: &LoadSpec, series: &mut Vec<Interval>) {
    series.retain(|interval| interval.at_ns < until);
    for interval in series.iter_mut() {
        interval.length_ns = interval.length_ns.min(until - interval.at_ns);
        let end = interval.at_ns + interval.length_ns;
        interval.own_ns = spec.turns.as_ref().map(|turns| turns.own_between(interval.at_ns, end));
    }
    series.retain(|interval| interval.own_ns != Some(0));
}

/// A measured window that ends at `until`, in which nothing was counted yet.
fn nothing_counted(spec: &LoadSpec, phases: Phases, until: Nanos) -> Measured {
    Measured {
        window_ns: until.saturating_sub(phases.measured_from).max(1),
        window_start_ns: phases.measured_from,
        turns: spec.turns.as_ref().map(|turns| taken(turns, phases.measured_from, until)),
        ..Measured::default()
    }
}

/// What of the measured window was the load's own.
fn taken(turns: &Turns, from: Nanos, until: Nanos) -> TurnsTaken {
    TurnsTaken {
        loads: turns.loads(),
        slice_ns: turns.slice_ns(),
        lead_ns: turns.lead_ns(),
        tail_ns: turns.tail_ns(),
        own_ns: turns.own_between(from, until),
        counted_ns: turns.counted_between(from, until),
        ..TurnsTaken::default()
    }
}

/// Queries that became due, in the warm-up too.
fn due(measured: &Measured) -> u64 {
    measured.warm_up.outcomes.due + measured.counters.outcomes.due
}

/// The warm-up and the measured window as far as they are this load's own.
fn own_phases(spec: &LoadSpec) -> (Nanos, Nanos) {
    let (warm_up, duration) = (nanos(spec.warm_up), nanos(spec.duration));
    match &spec.turns {
        None => (warm_up, duration),
        Some(turns) if turns.is_single() => (turns.lead_ns(), turns.counted_between(0, Nanos::MAX)),
        Some(turns) => (warm_up / u64::from(turns.loads()), duration / u64::from(turns.loads())),
    }
}

impl LoadSpec {
    /// The load as it is asked for; which system calls carry it turns up when it is applied.
    #[must_use]
    pub fn facts(&self) -> LoadFacts {
        let workers = self.workers as usize;
        let (warm_up_ns, duration_ns) = own_phases(self);
        LoadFacts {
            transport: self.transport.to_string(),
            target: self.target.to_string(),
            clients: self.clients,
            mode: LoadMode::of(&self.mode, self.warm_up, self.duration),
            duration_ns,
            warm_up_ns,
            timeout_ns: nanos(self.timeout),
            workers: self.workers,
            cpus: self
                .cpus
                .iter()
                .copied()
                .cycle()
                .take(workers.min(workers * self.cpus.len()))
                .collect(),
            queries: self.queries.description().to_owned(),
            seed: self.seed,
            send_path: String::new(),
            batch_delay_ns: nanos(self.effective_horizon()),
            behaviour: self.behaviour.to_string(),
            tls: self
                .tls
                .as_ref()
                .filter(|_| self.transport.is_encrypted())
                .map(|tls| tls_facts(tls, self.transport)),
            http_method: self.transport.is_http().then(|| self.http.method.to_string()),
            edns: edns(self),
            receive_time: self.receive_time.to_string(),
            sources: self.sources.as_ref().map(ToString::to_string),
            max_queries: self.max_queries,
            quickack: self.quickack.applies(&self.mode)
                && (self.transport.runs_over_tcp() || self.retries_over_tcp()),
        }
    }
}

/// What the clients add to their queries, as a sentence; what all queries have is said where they
/// come from.
fn edns(spec: &LoadSpec) -> String {
    let mut parts = Vec::new();
    if spec.cookies {
        parts.push("a DNS cookie of each client (RFC 7873)".to_owned());
    }
    if let Some(subnets) = &spec.subnets {
        parts.push(format!("client subnets {subnets} in turn (RFC 7871)"));
    }
    if let Some(key) = &spec.tsig {
        parts.push(format!("signed with the key {key} (RFC 8945)"));
    }
    parts.join("; ")
}

fn tls_facts(tls: &TlsSettings, transport: Transport) -> TlsFacts {
    let has_choice = transport == Transport::Dot;
    TlsFacts {
        versions: crate::tls::offered_names(tls.versions()).map(str::to_owned).collect(),
        resumption: tls.resumption(),
        early_data: tls.early_data(),
        groups: tls.groups().iter().map(ToString::to_string).collect(),
        records: if has_choice { tls.records.to_string() } else { String::new() },
    }
}
