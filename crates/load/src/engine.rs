//! Starts the workers, gathers what they count, and adds it up.

use std::io;
use std::num::NonZeroU64;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Barrier, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use dnslab_measure::{
    Counters, Histogram, Interval, LoadFacts, Measured, ResourceSeries, Unbalanced, WorkerFacts,
};
use dnslab_traffic::{Arrivals, Picker, Schedule};
use rustix::process::{Resource, getrlimit};
use rustix::thread::{CpuSet, sched_setaffinity, set_current_timer_slack};

use crate::channel::ClientTls;
use crate::client::{Client, Judge};
use crate::clock::{Clock, Nanos, nanos};
use crate::demand::Demand;
use crate::tally::{IntervalTally, Phases};
use crate::worker::{Orders, Worker, WorkerEnd};
use crate::{LoadSpec, Mode};

/// Why a load did not begin, or cannot be trusted.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A number is outside its range.
    #[error("{what} must be {range}, not {value}")]
    OutOfRange {
        /// Which number.
        what: &'static str,
        /// Its range.
        range: &'static str,
        /// What was given.
        value: String,
    },
    /// There is nothing to ask.
    #[error("the query list is empty: name a query file with at least one query")]
    NoQueries,
    /// An encrypted transport without TLS settings.
    #[error("transport {0} needs TLS settings: name an authority, or switch verification off")]
    NoTls(dnslab_wire::Transport),
    /// More sockets than the process may open.
    #[error(
        "{clients} clients need {clients} sockets, but this process may open {limit} files: use \
         fewer clients, or raise the limit (`ulimit -n`)"
    )]
    TooManyClients {
        /// Clients asked for.
        clients: u32,
        /// The limit on open files.
        limit: u64,
    },
    /// A worker could not begin.
    #[error("cannot start a load worker: {0}")]
    Worker(#[source] io::Error),
    /// A CPU cannot be used.
    #[error(
        "cannot pin a load worker to CPU {cpu}: {source}; `dnslab doctor` lists the usable CPUs"
    )]
    Pin {
        /// The CPU.
        cpu: usize,
        /// What the system said.
        source: io::Error,
    },
    /// The outcomes do not add up: a fault of the engine, and the run is worthless.
    #[error("the sums of this run do not hold: {0}; please report this fault")]
    Sums(#[from] Unbalanced),
}

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
    /// The last reason for which a connection ended or did not come about.
    pub last_connection_end: Option<String>,
    /// The load was interrupted before its time.
    pub cut_short: bool,
}

/// Files that the process needs besides the sockets of the clients.
const OTHER_FILES: u64 = 64;

/// Longest silence towards the observer.
const TICK: Duration = Duration::from_millis(50);

/// Time between the last worker's readiness and the zero of the timeline.
const LEAD: Duration = Duration::from_millis(2);

/// What a load tells while it runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Progress<'a> {
    /// Some time has passed, at most 50 ms since the last word.
    Tick,
    /// All workers have left this interval behind.
    Interval(&'a Interval),
}

/// Applies a load and waits for its end. `stop` ends the measured window early; the queries in
/// flight still get their outcome. `observe` is told of the progress.
///
/// # Errors
/// When the load cannot be applied as asked, or its sums do not hold at the end.
pub fn run(
    spec: &LoadSpec,
    stop: &AtomicBool,
    observe: &mut dyn FnMut(Progress<'_>),
) -> Result<LoadResult, LoadError> {
    check(spec)?;
    let phases = phases(spec);
    let origin = OnceLock::new();
    let barrier = Barrier::new(spec.workers as usize + 1);
    let (sender, reports) = mpsc::channel();
    let (ends, series) = thread::scope(|scope| {
        let threads: Vec<_> = (0..spec.workers)
            .map(|shard| {
                let start = Start { spec, shard, phases, barrier: &barrier, origin: &origin };
                let reports = sender.clone();
                scope.spawn(move || start.work(stop, reports))
            })
            .collect();
        drop(sender);
        barrier.wait();
        origin.set(Instant::now() + LEAD).expect("the origin is set once, here");
        barrier.wait();
        let series = gather(&reports, spec.workers, &phases, observe);
        let join = |thread: thread::ScopedJoinHandle<'_, _>| match thread.join() {
            Ok(end) => end,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        (threads.into_iter().map(join).collect::<Result<Vec<WorkerEnd>, LoadError>>(), series)
    });
    let origin = *origin.get().expect("set before the workers began");
    finish(spec, phases, origin, ends?, series)
}

fn check(spec: &LoadSpec) -> Result<(), LoadError> {
    let range = |ok: bool, what, range, value: String| {
        if ok { Ok(()) } else { Err(LoadError::OutOfRange { what, range, value }) }
    };
    range(spec.clients >= 1, "clients", "at least 1", spec.clients.to_string())?;
    let workers = spec.workers;
    let fits = workers >= 1 && workers <= spec.clients;
    range(fits, "workers", "between 1 and the number of clients", workers.to_string())?;
    match spec.mode {
        Mode::Closed { outstanding } => {
            let fits = (1..=65_536).contains(&outstanding);
            range(fits, "outstanding", "between 1 and 65536", outstanding.to_string())?;
        }
        Mode::Open { rate_qps, .. } => {
            let fits = rate_qps.is_finite() && rate_qps > 0.0;
            range(fits, "rate", "above 0", rate_qps.to_string())?;
        }
    }
    let duration = format!("{:?}", spec.duration);
    range(!spec.duration.is_zero(), "duration", "longer than 0", duration)?;
    range(!spec.timeout.is_zero(), "timeout", "longer than 0", format!("{:?}", spec.timeout))?;
    if spec.queries.is_empty() {
        return Err(LoadError::NoQueries);
    }
    if spec.transport.is_encrypted() && spec.tls.is_none() {
        return Err(LoadError::NoTls(spec.transport));
    }
    check_clients(spec.clients)
}

/// Checks that the process may open a socket for every client.
///
/// # Errors
/// [`LoadError::TooManyClients`] when it may not.
pub fn check_clients(clients: u32) -> Result<(), LoadError> {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    if u64::from(clients) + OTHER_FILES > limit {
        return Err(LoadError::TooManyClients { clients, limit });
    }
    Ok(())
}

/// Intervals are 100 ms long, or longer so that there are at most 200 of them.
fn phases(spec: &LoadSpec) -> Phases {
    let tenth = Duration::from_millis(100);
    let length = spec.warm_up + spec.duration;
    let tenths = length.as_millis().div_ceil(200 * tenth.as_millis()).max(1);
    Phases {
        measured_from: nanos(spec.warm_up),
        until: nanos(length),
        interval: nanos(tenth * u32::try_from(tenths).unwrap_or(u32::MAX)),
        timeout: nanos(spec.timeout),
    }
}

/// What one worker thread starts with.
struct Start<'a> {
    spec: &'a LoadSpec,
    shard: u32,
    phases: Phases,
    barrier: &'a Barrier,
    origin: &'a OnceLock<Instant>,
}

impl Start<'_> {
    /// The thread's whole life. All workers wait for each other, so that the timeline begins when
    /// the slowest is ready; one that fails does not leave the others waiting.
    fn work(
        &self,
        stop: &AtomicBool,
        reports: mpsc::Sender<IntervalTally>,
    ) -> Result<WorkerEnd, LoadError> {
        let prepared = self.pin().map(|()| self.clients());
        self.barrier.wait();
        self.barrier.wait();
        let clients = prepared?;
        let origin = *self.origin.get().expect("set between the two waits");
        let spec = self.spec;
        let orders = Orders {
            clock: Clock::starting_at(origin),
            phases: self.phases,
            target: spec.target,
            transport: spec.transport,
            timeout: nanos(spec.timeout),
            horizon: nanos(spec.effective_horizon()),
            stop,
            reports,
        };
        let judge = Judge {
            queries: &spec.queries,
            timeout: orders.timeout,
            expected: spec.expected,
            wrong_example: None,
        };
        let demand = self.demand(clients.len() as u32);
        let worker = Worker::new(orders, judge, demand, clients).map_err(LoadError::Worker)?;
        thread::sleep(origin.saturating_duration_since(Instant::now()));
        worker.run().map_err(LoadError::Worker)
    }

    fn pin(&self) -> Result<(), LoadError> {
        // The kernel may round a sleep up by this much; the default of 50 us is the size of the
        // gaps between queries here.
        set_current_timer_slack(NonZeroU64::new(1)).ok();
        let Some(cpu) = self.cpu() else { return Ok(()) };
        let mut set = CpuSet::new();
        if cpu >= CpuSet::MAX_CPU {
            let source = io::Error::from(io::ErrorKind::InvalidInput);
            return Err(LoadError::Pin { cpu, source });
        }
        set.set(cpu);
        sched_setaffinity(None, &set).map_err(|error| LoadError::Pin { cpu, source: error.into() })
    }

    fn cpu(&self) -> Option<usize> {
        let cpus = &self.spec.cpus;
        (!cpus.is_empty()).then(|| cpus[self.shard as usize % cpus.len()])
    }

    /// The clients of this worker: every `workers`-th.
    fn clients(&self) -> Vec<Client> {
        let spec = self.spec;
        let outstanding = match spec.mode {
            Mode::Closed { outstanding } => outstanding as usize,
            Mode::Open { .. } => 1,
        };
        let tls = spec.tls.as_ref().filter(|_| spec.transport.is_encrypted());
        (self.shard..spec.clients)
            .step_by(spec.workers as usize)
            .map(|_| Client::new(outstanding, tls.map(ClientTls::new)))
            .collect()
    }

    fn demand(&self, clients: u32) -> Demand {
        let spec = self.spec;
        let (shard, shards) = (self.shard, spec.workers);
        let count = spec.queries.len();
        let picker = Picker::new(spec.selection, count, spec.seed, shard, shards);
        match spec.mode {
            Mode::Closed { outstanding } => {
                Demand::Closed { outstanding: outstanding as usize, picker }
            }
            Mode::Open { rate_qps, pace } => {
                let schedule = Schedule::new(pace, rate_qps, spec.seed, shard, shards);
                let arrivals = Arrivals::new(schedule, clients, picker);
                Demand::Open { arrivals: Box::new(arrivals.peekable()) }
            }
        }
    }
}

/// Puts the workers' intervals together until all workers have ended.
fn gather(
    reports: &Receiver<IntervalTally>,
    workers: u32,
    phases: &Phases,
    observe: &mut dyn FnMut(Progress<'_>),
) -> Vec<Interval> {
    let mut open: std::collections::BTreeMap<u64, (u32, IntervalTally)> = Default::default();
    let mut series = Vec::new();
    loop {
        let report = match reports.recv_timeout(TICK) {
            Ok(report) => report,
            Err(RecvTimeoutError::Timeout) => {
                observe(Progress::Tick);
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => break,
        };
        let number = report.number;
        let (count, merged) = open
            .entry(number)
            .or_insert_with(|| (0, IntervalTally { number, ..IntervalTally::default() }));
        merged.merge(&report);
        *count += 1;
        if *count == workers {
            let interval = merged.finish(phases);
            open.remove(&number);
            observe(Progress::Interval(&interval));
            series.push(interval);
        }
    }
    // After an interrupt the workers may end in different intervals.
    series.extend(open.values().map(|(_, merged)| merged.finish(phases)));
    series.sort_by_key(|interval| interval.at_ns);
    series
}

/// Adds up what the workers counted, and asserts the sums.
fn finish(
    spec: &LoadSpec,
    phases: Phases,
    origin: Instant,
    ends: Vec<WorkerEnd>,
    mut series: Vec<Interval>,
) -> Result<LoadResult, LoadError> {
    let until: Nanos = ends.iter().map(|end| end.until).max().unwrap_or(phases.until);
    series.retain(|interval| interval.at_ns < until);
    for interval in &mut series {
        interval.length_ns = interval.length_ns.min(until - interval.at_ns);
    }
    let mut measured = Measured {
        window_ns: until.saturating_sub(phases.measured_from).max(1),
        window_start_ns: phases.measured_from,
        sent_in_window: 0,
        answered_in_window: 0,
        counters: Counters::default(),
        warm_up: Counters::default(),
        latency: Histogram::new(),
        service_time: Histogram::new(),
        send_lag: Histogram::new(),
        connect_time: Histogram::new(),
        handshake_time: Histogram::new(),
        intervals: series,
        resources: ResourceSeries::default(),
        workers: Vec::new(),
        tls: None,
    };
    let (mut wrong_example, mut last_connection_end, mut send_path) = (None, None, None);
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
        };
        measured.sent_in_window += end.tally.sent_in_window;
        measured.answered_in_window += end.tally.answered_in_window;
        measured.workers.push(facts);
        measured.latency.merge(&end.tally.latency);
        measured.service_time.merge(&end.tally.service_time);
        measured.send_lag.merge(&end.tally.send_lag);
        measured.connect_time.merge(&end.tally.connect_time);
        measured.handshake_time.merge(&end.tally.handshake_time);
        measured.tls = measured.tls.take().or(end.tls);
        wrong_example = wrong_example.or(end.wrong_example);
        last_connection_end = last_connection_end.or(end.last_end);
        send_path = send_path.or(end.send_path);
        let (warm_up, counters) = end.tally.into_counters();
        measured.warm_up.merge(&warm_up);
        measured.counters.merge(&counters);
    }
    measured.warm_up.outcomes.check()?;
    measured.counters.outcomes.check()?;
    let cut_short = until < phases.until;
    let facts = facts(spec, send_path.unwrap_or("none: no channel was open at the end"));
    Ok(LoadResult { origin, facts, measured, wrong_example, last_connection_end, cut_short })
}

fn facts(spec: &LoadSpec, send_path: &str) -> LoadFacts {
    let workers = spec.workers as usize;
    LoadFacts {
        transport: spec.transport.to_string(),
        target: spec.target.to_string(),
        clients: spec.clients,
        mode: spec.mode.facts(),
        duration_ns: nanos(spec.duration),
        warm_up_ns: nanos(spec.warm_up),
        timeout_ns: nanos(spec.timeout),
        workers: spec.workers,
        cpus: spec
            .cpus
            .iter()
            .copied()
            .cycle()
            .take(workers.min(workers * spec.cpus.len()))
            .collect(),
        queries: spec.queries.description().to_owned(),
        seed: spec.seed,
        send_path: send_path.to_owned(),
        horizon_ns: nanos(spec.effective_horizon()),
    }
}
