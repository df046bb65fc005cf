//! What a load brought, added up from what its workers counted.

use std::time::Instant;

use dnslab_client::{Job, Nanos, Phases, WorkerEnd, nanos};
use dnslab_figures::{Interval, NetworkDrops, WindowCounts};
use dnslab_record::{LoadFacts, Measured, MeasuredShare, TurnsTaken, WorkerFacts};
use dnslab_traffic::{TimeWindow, TimeWindows, Turns};

use crate::LoadError;
use crate::aggregator::Aggregate;
use crate::facts::facts;

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
    /// The first answer with a right header that turned out malformed when it was parsed in full, and how.
    pub malformed_example: Option<String>,
    /// The first thing that was wrong with an answer's signature, or that the server said of a query's, with
    /// the remedy.
    pub signature_example: Option<String>,
    /// The last reason for which a connection ended or did not come about.
    pub last_connection_end: Option<String>,
    /// The load was interrupted, or ended itself because the server refused every signature.
    pub cut_short: bool,
}

/// Adds up what the workers of one host counted, each with how late it began.
pub(crate) fn share_of(
    job: &Job,
    ends: Vec<(WorkerEnd, Nanos)>,
    network: Option<NetworkDrops>,
) -> Result<MeasuredShare, LoadError> {
    let phases = Phases::of(job);
    let until = ends.iter().map(|(end, _)| end.until).max().unwrap_or(phases.until);
    let counted = Measured { network, ..nothing_counted(job, phases, until) };
    let mut share = MeasuredShare { until_ns: until, counted, ..MeasuredShare::default() };
    for (worker, (end, late)) in ends.into_iter().enumerate() {
        if let Some(reason) = end.failure {
            return Err(LoadError::ClientsLost { reason });
        }
        let cpu = (!job.cpus.is_empty()).then(|| job.cpus[worker % job.cpus.len()]);
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
        let counted = &mut share.counted;
        counted.sent_in_window += end.recorder.sent_in_window;
        counted.answered_in_window += end.recorder.answered_in_window;
        if let Some(turns) = &mut counted.turns {
            turns.answered += end.recorder.answered_in_all;
        }
        counted.workers.push(facts);
        let Measured { latency, service_time, send_lag, .. } = counted;
        end.recorder.add_times(latency, service_time, send_lag);
        end.recorder.add_windows(&mut counted.windows);
        counted.start_lag.merge(&end.recorder.start_lag);
        counted.connect_time.merge(&end.recorder.connect_time);
        counted.handshake_time.merge(&end.recorder.handshake_time);
        counted.resumed_handshake_time.merge(&end.recorder.resumed_handshake_time);
        counted.early_data_time.merge(&end.recorder.early_data_time);
        counted.tls = counted.tls.take().or(end.agreed);
        share.late_ns = share.late_ns.max(late);
        share.wrong_example = share.wrong_example.or(end.wrong_example);
        share.malformed_example = share.malformed_example.or(end.malformed_example);
        share.signature_example = share.signature_example.or(end.signature_example);
        share.last_connection_end = share.last_connection_end.or(end.last_end);
        share.send_path = share.send_path.or(end.send_path.map(str::to_owned));
        let counters = end.recorder.into_counters();
        share.counted.warm_up.merge(&counters.warm_up);
        share.counted.counters.merge(&counters.measured);
    }
    Ok(share)
}

/// Puts together what the hosts of a load counted, and asserts the sums.
pub(crate) fn finish(
    job: &Job,
    origin: Instant,
    shares: Vec<MeasuredShare>,
    aggregate: Aggregate,
) -> Result<LoadResult, LoadError> {
    let phases = Phases::of(job);
    let Aggregate { began_unix_ns, mut series, mut seconds, pacing, .. } = aggregate;
    let until = shares.iter().map(|share| share.until_ns).max().unwrap_or(phases.until);
    end_at(until, job, &mut series);
    end_at(until, job, &mut seconds);
    let mut measured = nothing_counted(job, phases, until);
    measured.began_unix_ns = began_unix_ns;
    measured.intervals = series;
    measured.seconds = seconds;
    measured.pacing = pacing;
    let (mut wrong_example, mut last_connection_end, mut send_path) = (None, None, None);
    let (mut malformed_example, mut signature_example) = (None, None);
    for share in shares {
        measured.add(share.counted);
        wrong_example = wrong_example.or(share.wrong_example);
        malformed_example = malformed_example.or(share.malformed_example);
        signature_example = signature_example.or(share.signature_example);
        last_connection_end = last_connection_end.or(share.last_connection_end);
        send_path = send_path.or(share.send_path);
    }
    measured.warm_up.outcomes.check()?;
    measured.counters.outcomes.check()?;
    measured.windows.iter().try_for_each(|window| window.outcomes.check())?;
    let sent_all = job.settings.queries_in_all.is_some_and(|most| due(&measured) >= most);
    let is_interrupted = interrupted(&measured) > 0;
    let cut_short = (until < phases.until || is_interrupted) && !sent_all;
    let send_path =
        send_path.unwrap_or_else(|| "none: no connection was open at the end".to_owned());
    let mut facts = LoadFacts { send_path, ..facts(job) };
    if job.played.is_some() {
        // How many clients there are is known when all have come.
        facts.clients = measured.workers.iter().map(|worker| worker.clients).sum();
    }
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

/// Ends the intervals with the load. Leaves out the intervals in which others had their turn: there was no
/// rate.
fn end_at(until: Nanos, job: &Job, series: &mut Vec<Interval>) {
    series.retain(|interval| interval.at_ns < until);
    for interval in series.iter_mut() {
        interval.length_ns = interval.length_ns.min(until - interval.at_ns);
        let end = interval.at_ns + interval.length_ns;
        interval.own_ns = job.timeline.turns().map(|turns| turns.own_between(interval.at_ns, end));
    }
    series.retain(|interval| interval.own_ns != Some(0));
}

/// A measured window that ends at `until`, in which nothing was counted yet.
fn nothing_counted(job: &Job, phases: Phases, until: Nanos) -> Measured {
    Measured {
        window_ns: until.saturating_sub(phases.measured_from).max(1),
        window_start_ns: phases.measured_from,
        turns: job.timeline.turns().map(|turns| taken(turns, phases.measured_from, until)),
        windows: job.settings.windows.iter().flat_map(TimeWindows::as_slice).map(empty).collect(),
        ..Measured::default()
    }
}

fn empty(window: &TimeWindow) -> WindowCounts {
    WindowCounts {
        name: window.name.clone(),
        from_ns: nanos(window.from),
        to_ns: nanos(window.to),
        ..WindowCounts::default()
    }
}

/// The part of the measured window that was the load's own.
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

/// Queries that have no outcome because the load was left, also of the warm-up.
fn interrupted(measured: &Measured) -> u64 {
    measured.warm_up.outcomes.interrupted + measured.counters.outcomes.interrupted
}

/// Queries that became due, also in the warm-up.
fn due(measured: &Measured) -> u64 {
    measured.warm_up.outcomes.due + measured.counters.outcomes.due
}
