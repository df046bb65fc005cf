//! What of the memory of servers is that of a run.
//!
//! A server that dnslab starts has the memory of its run alone. One that ran before keeps memory that it needed for
//! earlier loads, and needs no more for a like load: so it is asked what it had at its least, and whether it had
//! needed more before.

use std::collections::BTreeMap;

use dnslab_record::{Measured, ResourceSeries, RunRecord};

/// From so many connections on, the growth of a server's memory is that of its connections.
const MANY_CONNECTIONS: u64 = 100;

/// Octets that any server needs for a connection, with and without encryption: Unbound takes 1,080 for one over TCP,
/// and a session of OpenSSL or GnuTLS alone some 10,000. What grows by less had the memory already.
const LEAST_FOR_PLAIN: u64 = 512;
const LEAST_FOR_ENCRYPTED: u64 = 4_096;

/// A figure of which up to one part in so many may have been kept from earlier loads is told: it is too large by a
/// third at most.
const KEPT_PARTS: u64 = 4;

/// While the first half of the connections opens, memory grows by one part in so many of its whole growth at least.
/// Where more than three eighths of what the connections need had been kept, it does not.
const FIRST_HALF_PARTS: u64 = 5;

/// What the memory of the servers in one run says.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RunMemory {
    /// Largest memory of the servers, octets; `None` where nobody watched them, and where a part of it was kept
    /// from earlier loads.
    pub peak_octets: Option<u64>,
    /// By how much the memory of the server under test grew for each connection that was open at once, octets.
    /// `None` with fewer than 100 of them, where other things grow more, and as above.
    pub per_connection_octets: Option<f64>,
    /// One of the two is not known, since the server kept memory from earlier loads.
    pub is_kept: bool,
}

/// What a server that ran before had of memory at its least, over all runs of a session.
#[derive(Clone, Copy, Debug)]
struct Seen {
    least_octets: u64,
    /// It had memory of earlier loads when the session began.
    had_more_before: bool,
}

/// The memory of the servers of a session.
#[derive(Debug, Default)]
pub struct MemoryLog<'a> {
    /// By [`process`].
    running: BTreeMap<&'a str, Seen>,
}

impl<'a> MemoryLog<'a> {
    /// Of all runs of a session, also those that do not count.
    #[must_use]
    pub fn of(records: &[&'a RunRecord]) -> Self {
        let mut running: BTreeMap<&str, Seen> = BTreeMap::new();
        let external = records.iter().filter(|record| record.server.is_external());
        for record in external.clone() {
            let Some(least_octets) = least(record) else { continue };
            let seen = running
                .entry(process(record))
                .or_insert(Seen { least_octets, had_more_before: false });
            seen.least_octets = seen.least_octets.min(least_octets);
        }
        for record in external {
            let Some(seen) = running.get_mut(process(record)) else { continue };
            let measured = record.measured.as_ref();
            let growth = measured.and_then(|measured| Growth::of(record, measured, Some(*seen)));
            seen.had_more_before |= growth.is_some_and(|growth| growth.used_what_was_there());
        }
        Self { running }
    }

    /// What the memory in one of the runs says.
    #[must_use]
    pub fn in_run(&self, record: &RunRecord) -> RunMemory {
        let (Some(measured), Some(peak)) = (&record.measured, record.peak_memory_octets()) else {
            return RunMemory::default();
        };
        let seen = match record.server.is_external() {
            true => self.running.get(process(record)).copied(),
            false => None,
        };
        let growth = Growth::of(record, measured, seen);
        let per_connection = growth.map(|growth| growth.per_connection());
        let Some(seen) = seen else {
            let per_connection_octets = per_connection;
            return RunMemory { peak_octets: Some(peak), per_connection_octets, is_kept: false };
        };
        let kept = base(&record.watched.resources).saturating_sub(seen.least_octets);
        let is_own = |octets: u64| !seen.had_more_before && is_own(octets, kept);
        let is_growth_own = growth.is_none_or(|growth| is_own(growth.octets));
        let is_peak_own = is_own(peak) && is_growth_own;
        RunMemory {
            peak_octets: is_peak_own.then_some(peak),
            per_connection_octets: per_connection.filter(|_| is_growth_own),
            is_kept: !is_peak_own,
        }
    }
}

/// Whether so little of a figure was kept that it is told.
fn is_own(octets: u64, kept: u64) -> bool {
    kept.saturating_mul(KEPT_PARTS) <= octets
}

/// How the memory of the server under test grew with its connections.
#[derive(Clone, Copy, Debug)]
struct Growth {
    connections: u64,
    /// From what it had at its least.
    octets: u64,
    /// Of that, what it had kept when the run began.
    kept: u64,
    /// The least that any server needs for these connections.
    least: u64,
    /// From the least in this run until half of the connections were open, and until it had most; `None` where that
    /// was not recorded.
    halves: Option<(u64, u64)>,
}

impl Growth {
    /// `None` with few connections, and where nobody watched.
    fn of(record: &RunRecord, measured: &Measured, seen: Option<Seen>) -> Option<Self> {
        let opened = measured.warm_up.connections.opened + measured.counters.connections.opened;
        let connections = opened.min(u64::from(record.load.clients));
        let resources = &record.watched.resources;
        let peak = resources.peak_memory_octets().filter(|_| connections >= MANY_CONNECTIONS)?;
        // A server that was started for the run may give back what it needed for its zone.
        let before = resources.samples.first()?.memory_octets;
        let base = if seen.is_some() { base(resources) } else { before };
        let least = seen.map_or(base, |seen| seen.least_octets.min(base));
        let for_each = match measured.tls {
            Some(_) => LEAST_FOR_ENCRYPTED,
            None => LEAST_FOR_PLAIN,
        };
        let half = half_open(measured, connections);
        let at_half = half.and_then(|at| resources.memory_from_octets(at));
        let halves = at_half.map(|half| (half.saturating_sub(base), peak.saturating_sub(base)));
        Some(Self {
            connections,
            octets: peak.saturating_sub(least),
            kept: base - least,
            least: for_each * connections,
            halves,
        })
    }

    fn per_connection(self) -> f64 {
        self.octets as f64 / self.connections as f64
    }

    /// Whether connections were given memory that nobody saw before: it grew by less than connections need, or not
    /// yet with the first of them.
    fn used_what_was_there(self) -> bool {
        let is_flat_at_first =
            self.halves.is_some_and(|(half, whole)| half.saturating_mul(FIRST_HALF_PARTS) < whole);
        let is_little = self.octets < self.least;
        // What earlier runs of this session left makes it flat at first, too.
        is_little || is_flat_at_first && is_own(self.octets, self.kept)
    }
}

/// Which process a run had as its server. Records that do not have it are of one process for each address.
fn process(record: &RunRecord) -> &str {
    match record.server.process.as_str() {
        "" => record.load.target.rsplit_once(':').map_or("", |(address, _)| address),
        process => process,
    }
}

/// The least memory of a run, octets.
fn least(record: &RunRecord) -> Option<u64> {
    let samples = &record.watched.resources.samples;
    samples.iter().map(|sample| sample.memory_octets).min()
}

/// The least memory before it was at its largest, octets: what had been kept may be given back when a load begins.
fn base(resources: &ResourceSeries) -> u64 {
    let memory = resources.samples.iter().map(|sample| sample.memory_octets);
    let peak = memory.clone().max().unwrap_or(0);
    let until_peak = memory.clone().position(|octets| octets == peak).unwrap_or(0);
    memory.take(until_peak + 1).min().unwrap_or(0)
}

/// When half of the connections were open, nanoseconds since the load began.
fn half_open(measured: &Measured, connections: u64) -> Option<i64> {
    let mut opened = 0;
    let reached = measured.intervals.iter().find(|interval| {
        opened += interval.traffic.map_or(0, |traffic| traffic.opened);
        2 * opened >= connections
    })?;
    i64::try_from(reached.at_ns.saturating_add(reached.length_ns)).ok()
}
