//! Starts the workers, collects what they count, and adds it up.

use std::fs::File;
use std::num::NonZeroU64;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, OnceLock};
use std::time::{Duration, Instant};
use std::{io, thread};

use dnslab_client::{
    ClientTraffic, Feed, Job, Nanos, Phases, Shard, Share, Worker, WorkerEnd, sockets,
};
use dnslab_record::MeasuredShare;
use rustix::process::{Resource, getrlimit};
use rustix::thread::set_current_timer_slack;

use crate::aggregator::{Aggregate, Aggregator, AwaitedClock, Observers, Relay, Reports};
use crate::clock::{Clock, instant_in, sleep_until};
use crate::kernel::Kernel;
use crate::pin::pin_to;
use crate::progress::Progress;
use crate::result::{finish, share_of};
use crate::told::{Teller, Writer};
use crate::{LoadError, LoadResult};

/// Files that the process needs besides the sockets of the clients.
const OTHER_FILES: u64 = 64;

/// Time from the last worker's readiness to the zero of the timeline.
const LEAD: Duration = Duration::from_millis(2);

/// A clock shows zero before its origin. With the origin so far ahead, all that a worker does before the load begins
/// happens at zero.
const NOT_SOON: Duration = Duration::from_secs(24 * 3_600);

/// One of several loads on one timeline.
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    /// The load. If it takes turns with the others, its [`Job::timeline`] says when.
    pub job: &'a Job,
    /// The workers that are here.
    pub share: Share,
    /// The clients of [`Job::played`].
    pub clients: Option<&'a Arc<dyn ClientTraffic>>,
    /// Ends its measured window early. Queries in flight still get their outcome.
    pub stop: &'a AtomicBool,
    /// Where what the queries are told is written, with [`Job::tells`]: records, without a header.
    pub told: Option<&'a File>,
}

/// Applies a load and waits for its end. `stop` ends the measured window early; queries in flight still get
/// their outcome. `observe` is told of the progress.
///
/// # Errors
/// When the load cannot be applied as asked, or its sums do not hold at the end.
pub fn run(
    job: &Job,
    stop: &AtomicBool,
    observe: &mut dyn FnMut(Progress<'_>),
) -> Result<LoadResult, LoadError> {
    let member = Member { job, share: Share::whole(job), clients: None, stop, told: None };
    let mut results = run_together(&[member], &mut |_, progress| observe(progress));
    results.pop().expect("one load has one result")
}

/// Applies several loads on one timeline, which begins when all of their workers are ready, and waits until
/// all have ended. `observe` is told of the progress, with the number of the load.
///
/// Returns one result for each load, in order. It is an error if that load could not be applied as asked, or
/// if its sums do not hold at the end. The others are applied all the same.
pub fn run_together(
    members: &[Member<'_>],
    observe: &mut dyn FnMut(usize, Progress<'_>),
) -> Vec<Result<LoadResult, LoadError>> {
    let applied = apply(members, &mut || Some(instant_in(LEAD)), None, observe);
    let results = members.iter().zip(applied).map(|(member, applied)| {
        let Applied { share, aggregate, origin } = applied?;
        finish(member.job, origin, vec![share], aggregate)
    });
    results.collect()
}

/// Applies the shares of several loads that this host has. `begin` is called once, when all workers here are ready: it
/// waits for the instant at which the timeline begins on all hosts; `None` gives the loads up. `relay` is told of the
/// intervals.
///
/// Returns what was counted of each load, in order, as [`run_together`] does.
pub fn run_shares(
    members: &[Member<'_>],
    begin: &mut dyn FnMut() -> Option<Instant>,
    relay: &Relay<'_>,
) -> Vec<Result<MeasuredShare, LoadError>> {
    let applied = apply(members, begin, Some(relay), &mut |_, _| {});
    applied.into_iter().map(|applied| Ok(applied?.share)).collect()
}

/// Puts together what `hosts` hosts tell of their shares of these jobs, on a timeline that begins at `origin`. `gather`
/// runs on a thread of its own: it gets the ways to report intervals, for each job one for each host, and returns what
/// the hosts counted of each job in the end, or why there is nothing of it. `observe` is told of the progress.
///
/// Returns one result for each job, in order.
///
/// # Panics
/// When `gather` does, or returns another number of results.
pub fn run_elsewhere(
    jobs: &[&Job],
    hosts: u32,
    origin: Instant,
    gather: impl FnOnce(Vec<Vec<Reports>>) -> Vec<Result<Vec<MeasuredShare>, String>> + Send,
    observe: &mut dyn FnMut(usize, Progress<'_>),
) -> Vec<Result<LoadResult, String>> {
    let clock = AwaitedClock::default();
    clock.set(Some(Clock::starting_at(origin)));
    let aggregators = jobs.iter().enumerate().map(|(load, job)| {
        Aggregator::new(load, hosts, Phases::of(job), job.timeline.turns().cloned())
    });
    let (aggregators, reports): (Vec<_>, Vec<_>) = aggregators.unzip();
    let ended = thread::scope(|scope| {
        let gathering = thread::Builder::new().spawn_scoped(scope, move || gather(reports))?;
        let observers = Observers::start(scope, aggregators, &clock)?;
        let aggregates = observers.observe(observe);
        Ok::<_, io::Error>(join(gathering).into_iter().zip(aggregates).collect::<Vec<_>>())
    });
    let ended = match ended {
        Ok(ended) => ended,
        Err(source) => {
            let workers = jobs.iter().map(|job| job.workers).sum();
            let reason = LoadError::Threads { workers, source }.to_string();
            return jobs.iter().map(|_| Err(reason.clone())).collect();
        }
    };
    assert_eq!(ended.len(), jobs.len(), "each job has its result");
    let results = jobs.iter().zip(ended).map(|(job, (shares, aggregate))| {
        finish(job, origin, shares?, aggregate).map_err(|error| error.to_string())
    });
    results.collect()
}

/// What came of a load's workers here.
struct Applied {
    share: MeasuredShare,
    aggregate: Aggregate,
    origin: Instant,
}

fn apply(
    members: &[Member<'_>],
    begin: &mut dyn FnMut() -> Option<Instant>,
    relay: Option<&Relay<'_>>,
    observe: &mut dyn FnMut(usize, Progress<'_>),
) -> Vec<Result<Applied, LoadError>> {
    let (mut checked, mut feeds) = (Vec::new(), Vec::new());
    for member in members {
        match check(member).and_then(|()| feeds_of(member)) {
            Ok(begun) => {
                feeds.push(begun);
                checked.push(Ok(()));
            }
            Err(error) => checked.push(Err(error)),
        }
    }
    let runs = |load: &usize| checked[*load].is_ok();
    let loads: Vec<usize> = (0..members.len()).filter(runs).collect();
    let workers: u32 = loads.iter().map(|load| members[*load].share.count).sum();
    let (gate, clock) = (Gate::new(workers), AwaitedClock::default());
    let mut ended = thread::scope(|scope| {
        let begun = loads.into_iter().zip(feeds);
        let begun: io::Result<(Vec<_>, Vec<_>)> = begun
            .map(|(load, feeds)| {
                let (aggregator, threads) =
                    Threads::start(scope, load, members[load], feeds, &gate)?;
                Ok((aggregator.relayed_by(relay), threads))
            })
            .collect();
        let begun = begun.and_then(|(aggregators, threads)| {
            Ok((Observers::start(scope, aggregators, &clock)?, threads))
        });
        gate.all_are_here.set(begun.is_ok()).expect("it is set once, here");
        // Those who have come leave again.
        let (observers, threads) = begun.inspect_err(|_| clock.set(None))?;
        gate.barrier.wait();
        // Where others have shares, too, a load that lacks one is of no use.
        let is_shared = members.iter().any(|member| member.share.count < member.job.workers);
        let lacks_some =
            checked.iter().any(Result::is_err) || gate.is_broken.load(Ordering::Relaxed);
        let origin = if is_shared && lacks_some { None } else { begin() };
        gate.origin.set(origin).expect("the origin is set once, here");
        gate.barrier.wait();
        clock.set(origin.map(Clock::starting_at));
        let aggregates = observers.observe(observe);
        let ends: Vec<_> = threads.into_iter().map(Threads::join).collect();
        Ok::<_, io::Error>((ends.into_iter(), aggregates.into_iter(), origin))
    });
    let results = members.iter().zip(checked).map(|(member, checked)| {
        checked?;
        let (ends, aggregates, origin) = ended.as_mut().map_err(|error| {
            let code = error.raw_os_error();
            let source = code.map_or_else(|| error.kind().into(), io::Error::from_raw_os_error);
            LoadError::Threads { workers, source }
        })?;
        let ends = ends.next().expect("each load that was applied has ended");
        let origin = origin.ok_or(LoadError::NotBegun)?;
        let aggregate = aggregates.next().expect("each load that was applied has ended");
        let share = share_of(member.job, ends?, aggregate.network)?;
        Ok(Applied { share, aggregate, origin })
    });
    results.collect()
}

/// The threads of one load.
struct Threads<'scope> {
    workers: Vec<thread::ScopedJoinHandle<'scope, Result<(WorkerEnd, Nanos), LoadError>>>,
    /// It ends with the last worker.
    writer: Option<thread::ScopedJoinHandle<'scope, io::Result<()>>>,
}

impl<'scope> Threads<'scope> {
    /// Starts them, with what adds up their reports.
    fn start(
        scope: &'scope thread::Scope<'scope, '_>,
        load: usize,
        member: Member<'scope>,
        feeds: Vec<Box<dyn Feed>>,
        gate: &'scope Gate,
    ) -> io::Result<(Aggregator<'scope>, Self)> {
        let Member { job, share, stop, told, .. } = member;
        let (teller, writer) = told.filter(|_| job.tells).map(Writer::new).unzip();
        let writer = writer.map(|writer| {
            let write = move || writer.write(&job.cpus);
            thread::Builder::new().spawn_scoped(scope, write)
        });
        let writer = writer.transpose()?;
        let mut feeds = feeds.into_iter();
        let (aggregator, reports) =
            Aggregator::new(load, share.count, Phases::of(job), job.timeline.turns().cloned());
        let workers = share.numbers().zip(reports).map(|(number, reports)| {
            let start = Start { job, share, number, gate };
            let (feed, teller) = (feeds.next(), teller.clone());
            let work = move || start.work(stop, feed, (reports, teller));
            thread::Builder::new().spawn_scoped(scope, work)
        });
        let workers = workers.collect::<io::Result<_>>()?;
        Ok((aggregator, Self { workers, writer }))
    }

    fn join(self) -> Result<Vec<(WorkerEnd, Nanos)>, LoadError> {
        let ends = self.workers.into_iter().map(join).collect::<Result<_, _>>();
        let written = self.writer.map_or(Ok(()), join);
        let ends = ends?;
        written.map_err(LoadError::Told)?;
        Ok(ends)
    }
}

/// What a thread of the load came to. Its panic is ours.
fn join<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    match thread.join() {
        Ok(end) => end,
        Err(panic) => resume_unwind(panic),
    }
}

/// The queries of clients that have their own, for each worker.
fn feeds_of(member: &Member<'_>) -> Result<Vec<Box<dyn Feed>>, LoadError> {
    let Member { job, share, clients, .. } = member;
    let Some(clients) = clients else { return Ok(Vec::new()) };
    let source = |source| LoadError::Clients { clients: clients.known().description, source };
    clients.begin(share.count, &job.cpus).map_err(source)
}

/// What the settings do not say: their check knows neither the queries nor TLS, nor what this process may have open.
fn check(member: &Member<'_>) -> Result<(), LoadError> {
    let Member { job, clients, .. } = member;
    let load = &job.settings;
    let is_played = load.mode.is_played();
    if (job.played.is_some(), clients.is_some()) != (is_played, is_played) {
        return Err(LoadError::NoClients);
    }
    if job.queries.is_empty() && !is_played {
        return Err(LoadError::NoQueries);
    }
    let others = job.others.iter().chain(job.further.iter().flatten());
    let others = others.map(|other| (other.transport, &other.tls));
    for (transport, tls) in std::iter::once((load.transport, &job.tls)).chain(others) {
        if transport.is_encrypted() && tls.is_none() {
            return Err(LoadError::NoTls(transport));
        }
    }
    // Clients that come while the load runs connect when they must, and make room for each other.
    let servers = 1 + job.further.len() as u64;
    let (own, all) = (u64::from(member.share.count), u64::from(job.workers.max(1)));
    let here = (sockets(load) * own).div_ceil(all);
    if !is_played { check_sockets(servers * here) } else { Ok(()) }
}

/// Checks that the process may have so many sockets open at once.
///
/// # Errors
/// [`LoadError::TooManySockets`] when it may not.
pub fn check_sockets(sockets: u64) -> Result<(), LoadError> {
    let (limit, needed) = (file_limit(), sockets.saturating_add(OTHER_FILES));
    if needed > limit {
        return Err(LoadError::TooManySockets { sockets, needed, limit });
    }
    Ok(())
}

fn file_limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// At least one, so that no worker waits for ever.
fn max_open(workers: u32) -> usize {
    let files = file_limit().saturating_sub(OTHER_FILES) / u64::from(workers);
    usize::try_from(files).unwrap_or(usize::MAX).max(1)
}

/// Where the workers of all loads wait for each other.
struct Gate {
    barrier: Barrier,
    /// `None` if the loads are given up.
    origin: OnceLock<Option<Instant>>,
    /// One of them cannot begin.
    is_broken: AtomicBool,
    /// Whether every worker has a thread. Without one of them nobody would come past the barrier.
    all_are_here: OnceLock<bool>,
}

impl Gate {
    fn new(workers: u32) -> Self {
        let barrier = Barrier::new(workers as usize + 1);
        let (origin, all_are_here) = (OnceLock::new(), OnceLock::new());
        Self { barrier, origin, is_broken: AtomicBool::new(false), all_are_here }
    }
}

struct Start<'a> {
    job: &'a Job,
    share: Share,
    number: u32,
    gate: &'a Gate,
}

impl Start<'_> {
    /// The whole life of a worker's thread. All workers wait for each other, so the timeline begins when the
    /// slowest is ready. A worker that fails does not leave the others waiting.
    fn work(
        &self,
        stop: &AtomicBool,
        feed: Option<Box<dyn Feed>>,
        (reports, teller): (Reports, Option<Teller>),
    ) -> Result<(WorkerEnd, Nanos), LoadError> {
        if !*self.gate.all_are_here.wait() {
            return Err(LoadError::Worker(io::ErrorKind::WouldBlock.into()));
        }
        let ready = AssertUnwindSafe(|| self.ready(stop, feed, (reports, teller)));
        let worker = catch_unwind(ready);
        if !matches!(worker, Ok(Ok(_))) {
            self.gate.is_broken.store(true, Ordering::Relaxed);
        }
        self.gate.barrier.wait();
        self.gate.barrier.wait();
        let mut worker = worker.unwrap_or_else(|panic| resume_unwind(panic))?;
        let origin = *self.gate.origin.get().expect("set between the two waits");
        let origin = origin.ok_or(LoadError::NotBegun)?;
        let clock = Clock::starting_at(origin);
        worker.runtime_mut().starts_at(clock);
        sleep_until(origin, stop);
        let late = clock.now();
        Ok((worker.run().map_err(LoadError::Worker)?, late))
    }

    /// A worker with all that it can have before the timeline begins.
    fn ready<'a>(
        &'a self,
        stop: &'a AtomicBool,
        feed: Option<Box<dyn Feed>>,
        (reports, teller): (Reports, Option<Teller>),
    ) -> Result<Worker<'a, Kernel>, LoadError> {
        self.pin()?;
        let mut shard = Shard::new(self.job, self.number, max_open(self.share.count), stop);
        if let Some(feed) = feed {
            shard = shard.fed_by(feed);
        }
        let clients = shard.clients();
        let kernel = Kernel::new(Clock::starting_at(instant_in(NOT_SOON)), Some(reports));
        let kernel = kernel.map_err(LoadError::Worker)?.telling(teller);
        let mut worker = Worker::new(kernel, shard, clients);
        worker.open_early();
        Ok(worker)
    }

    fn pin(&self) -> Result<(), LoadError> {
        // The kernel may delay the end of a sleep by this much. The default of 50 us is the size of the gaps
        // between queries here.
        set_current_timer_slack(NonZeroU64::new(1)).ok();
        let Some(cpu) = self.cpu() else { return Ok(()) };
        pin_to(&[cpu]).map_err(|source| LoadError::Pin { cpu, source })
    }

    fn cpu(&self) -> Option<usize> {
        let cpus = &self.job.cpus;
        let place = (self.number - self.share.first) as usize;
        (!cpus.is_empty()).then(|| cpus[place % cpus.len()])
    }
}
