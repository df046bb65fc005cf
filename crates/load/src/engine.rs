//! Starts the workers, gathers what they count, and adds it up.

use std::io;
use std::num::NonZeroU64;
use std::sync::atomic::AtomicBool;
use std::sync::{Barrier, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use dnslab_measure::Interval;
use dnslab_traffic::{Arrivals, Connect, Picker, Purpose, Schedule, stream};
use dnslab_transport::Method;
use dnslab_wire::{Cookie, Transport};
use rand::Rng as _;
use rustix::process::{Resource, getrlimit};
use rustix::thread::{CpuSet, sched_setaffinity, set_current_timer_slack};

use crate::aggregator::{Aggregator, Reports, observe_all};
use crate::clock::{Clock, Nanos, instant_in, nanos, sleep_until};
use crate::connection_slot::ConnectionSlot;
use crate::kernel::Kernel;
use crate::query_source::QuerySource;
use crate::recorder::Phases;
use crate::response_matcher::{ResponseMatcher, Signatures};
use crate::result::finish;
use crate::runtime::Runtime;
use crate::sample::Sample;
use crate::tls::ClientTls;
use crate::worker::{Job, Worker, WorkerEnd};
use crate::{LoadError, LoadResult, LoadSpec, Mode, TlsSettings};

/// Files that the process needs besides the sockets of the clients.
const OTHER_FILES: u64 = 64;

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

/// One of several loads on one timeline.
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    /// The load; where it takes turns with the others, its [`LoadSpec::turns`] say when.
    pub spec: &'a LoadSpec,
    /// Ends its measured window early; the queries in flight still get their outcome.
    pub stop: &'a AtomicBool,
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
    let mut results = run_together(&[Member { spec, stop }], &mut |_, progress| observe(progress));
    results.pop().expect("one load has one result")
}

/// Applies several loads on one timeline, which begins when all of their workers are ready, and
/// waits for the end of all. `observe` is told of the progress, with the number of the load.
///
/// One result for each load, in order; an error where that one could not be applied as asked, or
/// its sums do not hold at the end. The others are applied all the same.
pub fn run_together(
    members: &[Member<'_>],
    observe: &mut dyn FnMut(usize, Progress<'_>),
) -> Vec<Result<LoadResult, LoadError>> {
    let checked: Vec<Result<(), LoadError>> =
        members.iter().map(|member| check(member.spec)).collect();
    let runs = |load: &usize| checked[*load].is_ok();
    let loads: Vec<usize> = (0..members.len()).filter(runs).collect();
    let workers: u32 = loads.iter().map(|load| members[*load].spec.workers).sum();
    let barrier = Barrier::new(workers as usize + 1);
    let origin = OnceLock::new();
    let (ended, zero) = thread::scope(|scope| {
        let (mut gatherers, mut threads) = (Vec::new(), Vec::new());
        for load in &loads {
            let Member { spec, stop } = members[*load];
            let phases = phases(spec);
            let (aggregator, reports) =
                Aggregator::new(*load, spec.workers, phases, spec.turns.clone());
            gatherers.push(aggregator);
            let start = |(shard, reports): (u32, Reports)| {
                let start = Start { spec, shard, phases, barrier: &barrier, origin: &origin };
                scope.spawn(move || start.work(stop, reports))
            };
            threads.push((0..spec.workers).zip(reports).map(start).collect::<Vec<_>>());
        }
        barrier.wait();
        let zero = instant_in(LEAD);
        origin.set(zero).expect("the origin is set once, here");
        barrier.wait();
        let gathered = observe_all(gatherers, Clock::starting_at(zero), observe);
        let join = |thread: thread::ScopedJoinHandle<'_, _>| match thread.join() {
            Ok(end) => end,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        let ends = threads
            .into_iter()
            .map(|threads| threads.into_iter().map(join).collect::<Result<Vec<WorkerEnd>, _>>());
        (ends.zip(gathered).collect::<Vec<_>>(), zero)
    });
    let mut ended = ended.into_iter();
    let result = |(member, checked): (&Member<'_>, Result<(), LoadError>)| {
        checked?;
        let (ends, gathered) = ended.next().expect("each load that was applied has ended");
        finish(member.spec, phases(member.spec), zero, ends?, gathered)
    };
    members.iter().zip(checked).map(result).collect()
}

fn check(spec: &LoadSpec) -> Result<(), LoadError> {
    let range = |ok: bool, what, range, value: String| {
        if ok { Ok(()) } else { Err(LoadError::OutOfRange { what, range, value }) }
    };
    range(spec.clients >= 1, "clients", "at least 1", spec.clients.to_string())?;
    let workers = spec.workers;
    let fits = workers >= 1 && workers <= spec.clients;
    range(fits, "workers", "between 1 and the number of clients", workers.to_string())?;
    let behaviour = &spec.behaviour;
    let connections = behaviour.connections;
    range(connections >= 1, "connections", "at least 1", connections.to_string())?;
    let quota = behaviour.queries_per_connection;
    let asks = quota.is_none_or(|quota| quota.mean() >= 1);
    range(asks, "queries per connection", "at least 1", "0".to_owned())?;
    match &spec.mode {
        Mode::Closed { outstanding } => {
            let fits = (connections..=65_536).contains(outstanding);
            let allowed = "between the number of connections per client and 65536";
            range(fits, "outstanding", allowed, outstanding.to_string())?;
        }
        Mode::Open { rate, .. } => {
            let rate_qps = rate.mean(spec.warm_up + spec.duration);
            let fits = rate_qps.is_finite() && rate_qps > 0.0;
            range(fits, "rate", "above 0", rate.to_string())?;
        }
    }
    let duration = format!("{:?}", spec.duration);
    range(!spec.duration.is_zero(), "duration", "longer than 0", duration)?;
    range(!spec.timeout.is_zero(), "timeout", "longer than 0", format!("{:?}", spec.timeout))?;
    if spec.queries.is_empty() {
        return Err(LoadError::NoQueries);
    }
    if let Some(sources) = &spec.sources
        && sources.get(0).is_ipv4() != spec.target.is_ipv4()
    {
        let sources = sources.to_string();
        return Err(LoadError::SourceFamily { sources, target: spec.target });
    }
    if spec.transport.is_encrypted() && spec.tls.is_none() {
        return Err(LoadError::NoTls(spec.transport));
    }
    let sends_early = spec.tls.as_ref().is_some_and(TlsSettings::early_data);
    if sends_early && spec.transport.is_http() && spec.http.method == Method::Post {
        return Err(LoadError::EarlyPost(spec.transport));
    }
    check_sockets(spec.sockets())
}

/// Checks that the process may have so many sockets open at once.
///
/// # Errors
/// [`LoadError::TooManySockets`] when it may not.
pub fn check_sockets(sockets: u64) -> Result<(), LoadError> {
    let limit = file_limit();
    if sockets + OTHER_FILES > limit {
        return Err(LoadError::TooManySockets { sockets, limit });
    }
    Ok(())
}

/// Files that the process may open.
fn file_limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Sockets that each worker may have open at once; at least one, so that none waits for ever.
fn max_open(workers: u32) -> usize {
    let files = file_limit().saturating_sub(OTHER_FILES) / u64::from(workers);
    usize::try_from(files).unwrap_or(usize::MAX).max(1)
}

/// Intervals are 100 ms long, or longer so that there are at most 200 of them. Of a load that takes
/// turns again and again they are whole blocks, so that each has as much of its time as any other.
pub(crate) fn phases(spec: &LoadSpec) -> Phases {
    let tenth = Duration::from_millis(100);
    let length = spec.warm_up + spec.duration;
    let unit = match &spec.turns {
        Some(turns) if 2 * u128::from(turns.block_ns()) <= length.as_nanos() => {
            tenth.as_nanos().div_ceil(u128::from(turns.block_ns())) * u128::from(turns.block_ns())
        }
        _ => tenth.as_nanos(),
    };
    let units = length.as_nanos().div_ceil(200 * unit).max(1);
    Phases {
        measured_from: nanos(spec.warm_up),
        until: nanos(length),
        interval: u64::try_from(unit * units).unwrap_or(u64::MAX),
        timeout: nanos(spec.timeout),
    }
}

/// What one worker thread starts with.
pub(crate) struct Start<'a> {
    pub(crate) spec: &'a LoadSpec,
    pub(crate) shard: u32,
    pub(crate) phases: Phases,
    pub(crate) barrier: &'a Barrier,
    pub(crate) origin: &'a OnceLock<Instant>,
}

impl Start<'_> {
    /// The thread's whole life. All workers wait for each other, so that the timeline begins when
    /// the slowest is ready; one that fails does not leave the others waiting.
    fn work(&self, stop: &AtomicBool, reports: Reports) -> Result<WorkerEnd, LoadError> {
        let prepared = self.pin().map(|()| (self.slots(), self.cookies()));
        self.barrier.wait();
        self.barrier.wait();
        let prepared = prepared?;
        let origin = *self.origin.get().expect("set between the two waits");
        let kernel = Kernel::new(Clock::starting_at(origin)).map_err(LoadError::Worker)?;
        let worker = self.worker(kernel, prepared, stop, reports);
        sleep_until(origin);
        worker.run().map_err(LoadError::Worker)
    }

    /// The worker of these slots and cookies, with all that it needs to know.
    pub(crate) fn worker<'s, R: Runtime>(
        &'s self,
        runtime: R,
        (slots, cookies): (Vec<ConnectionSlot<R>>, Vec<Cookie>),
        stop: &'s AtomicBool,
        reports: Reports,
    ) -> Worker<'s, R> {
        let spec = self.spec;
        let job = self.job(stop, reports);
        let matcher = ResponseMatcher {
            queries: &spec.queries,
            timeout: job.timeout,
            expected: spec.expected,
            retries_over_tcp: spec.retries_over_tcp(),
            reads_options: spec.sends_options(),
            cookies,
            origin_unix_ns: 0,
            again: Vec::new(),
            wrong_example: None,
            sample: Sample::default(),
            malformed_example: None,
            signatures: Signatures::default(),
        };
        Worker::new(runtime, job, matcher, self.query_source(), slots)
    }

    fn job<'s>(&'s self, stop: &'s AtomicBool, reports: Reports) -> Job<'s> {
        let (spec, behaviour) = (self.spec, &self.spec.behaviour);
        let tls = spec.tls.as_ref().filter(|_| spec.transport.is_encrypted());
        let opens_at_start = behaviour.connect == Connect::AtStart;
        let (connects_from, connects_until) = match spec.transport.is_connection() && opens_at_start
        {
            true => self.time_to_connect(),
            false => (0, 0),
        };
        let slots = u64::from(self.client_count() * behaviour.connections);
        Job {
            phases: self.phases,
            target: spec.target,
            transport: spec.transport,
            timeout: nanos(spec.timeout),
            horizon: nanos(spec.effective_horizon()),
            shard: self.shard,
            shards: spec.workers,
            clients: self.client_count(),
            max_queries: self.max_queries(),
            quota: behaviour.queries_per_connection,
            seed: spec.seed,
            idle: behaviour.idle.map_or(Nanos::MAX, nanos),
            opens_at_start,
            connects_from,
            connect_gap: (connects_until - connects_from) / slots.max(1),
            sends_from: match spec.mode {
                Mode::Closed { .. } => connects_until,
                Mode::Open { .. } => 0,
            },
            keeps_open: opens_at_start && behaviour.idle.is_none(),
            max_open: max_open(spec.workers),
            sources: spec.sources.as_ref(),
            subnets: spec.subnets.as_ref(),
            tsig: spec.tsig.as_ref(),
            tls: tls.map(|tls| {
                // A query may wait for its time-out without a packet, and then the connection is idle.
                let silence = behaviour.idle.map(|idle| idle.saturating_add(spec.timeout));
                ClientTls::new(tls, spec.transport).with_idle_timeout(silence)
            }),
            http: &spec.http,
            receive_time: spec.receive_time,
            turns: spec.turns.as_ref(),
            quickack: spec.quickack.applies(&spec.mode),
            stop,
            reports,
        }
    }

    /// When something counts for the first time.
    fn first_counted(&self) -> Nanos {
        let from = self.phases.measured_from;
        self.spec.turns.as_ref().and_then(|turns| turns.first_counted(from)).unwrap_or(from)
    }

    /// When its clients begin to connect at the start, and until when all are to have begun: the first
    /// half of what comes before anything counts. They begin evenly over that time: some servers take one
    /// connection, then serve all that have asked, then take the next, and their listening sockets queue as
    /// few as ten. Of a load that has one turn for all it is that of its
    /// turn, so that no connection is idle before its load.
    fn time_to_connect(&self) -> (Nanos, Nanos) {
        let first = self.first_counted();
        let lead = match &self.spec.turns {
            Some(turns) if turns.is_single() => turns.lead_ns().min(first),
            _ => first,
        };
        (first - lead, first - lead / 2)
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

    /// Queries after which this worker has done its part.
    fn max_queries(&self) -> u64 {
        let (shard, shards) = (u64::from(self.shard), u64::from(self.spec.workers));
        self.spec
            .max_queries
            .map_or(u64::MAX, |most| most / shards + u64::from(shard < most % shards))
    }

    /// How many clients this worker has: every `workers`-th.
    fn client_count(&self) -> u32 {
        (self.spec.clients - self.shard).div_ceil(self.spec.workers)
    }

    /// The slots of this worker's clients: see [`Worker`]. A client's window is divided among its
    /// connections.
    pub(crate) fn slots<R: Runtime>(&self) -> Vec<ConnectionSlot<R>> {
        let (spec, clients) = (self.spec, self.client_count());
        let connections = spec.behaviour.connections;
        let outstanding = match spec.mode {
            Mode::Closed { outstanding } => outstanding,
            Mode::Open { .. } => 0,
        };
        let usual = (0..connections).flat_map(|connection| {
            let widest = outstanding / connections;
            let widest = widest + u32::from(connection < outstanding % connections);
            (0..clients).map(move |client| ConnectionSlot::new(client, spec.transport, widest))
        });
        let retries = if spec.retries_over_tcp() { clients } else { 0 };
        let retries = (0..retries).map(|client| ConnectionSlot::new(client, Transport::Tcp, 0));
        usual.chain(retries).collect()
    }

    /// The cookies of this worker's clients: random, as RFC 9018, section 3, wants them, and the
    /// same for the same seed.
    pub(crate) fn cookies(&self) -> Vec<Cookie> {
        if !self.spec.cookies {
            return Vec::new();
        }
        let mut random = stream(self.spec.seed, Purpose::Cookies, self.shard);
        (0..self.client_count()).map(|_| Cookie::new(random.random())).collect()
    }

    fn query_source(&self) -> QuerySource {
        let spec = self.spec;
        let (shard, shards) = (self.shard, spec.workers);
        let count = spec.queries.len();
        let picker = Picker::new(spec.selection, count, spec.seed, shard, shards);
        match &spec.mode {
            Mode::Closed { .. } => QuerySource::Closed { picker },
            Mode::Open { rate, pace } => {
                let schedule = Schedule::new(rate, *pace, spec.seed, shard, shards);
                let slots = self.client_count() * spec.behaviour.connections;
                let arrivals = Arrivals::new(schedule, slots, picker);
                let arrivals = match &spec.turns {
                    Some(turns) => arrivals.in_turns(turns.clone()),
                    None => arrivals,
                };
                QuerySource::Open { arrivals: Box::new(arrivals.peekable()) }
            }
        }
    }
}
