//! Puts the workers' reports together while they run, in a thread that waits for the workers: counting must
//! not delay measuring, even on a machine without a spare CPU.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender, TrySendError};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use std::{io, thread};

use dnslab_client::{IntervalRecord, Phases};
use dnslab_figures::{ByPhase, Histogram, Interval, NetworkDrops, Pacing, PacingTally};
use dnslab_record::LiveInterval;
use dnslab_socket::{set_idle_policy, set_usual_policy};
use dnslab_traffic::Turns;
use rustix::process::Pid;
use rustix::thread::gettid;

use crate::clock::Clock;
use crate::network::NetworkWindow;
use crate::progress::Progress;

/// Longest time between two words to the observer.
const TICK: Duration = Duration::from_millis(50);

/// Intervals that wait for the observer, at most: each has a histogram of 216 KiB. An observer that hangs for
/// longer, for instance at a terminal that is stopped, gets the latencies of those that follow with a later one.
const UNSEEN: usize = 32;

/// Is given each interval that all workers of a load on this host have finished, with the number of the load. Returns a
/// histogram of which nothing is needed any more.
pub type Relay<'a> = dyn Fn(usize, IntervalRecord) -> Histogram + Sync + 'a;

/// The way of a worker, or of all workers of a host, to the aggregator and back.
#[derive(Debug)]
pub struct Reports {
    /// Who reports.
    shard: u32,
    to_aggregator: Sender<(u32, IntervalRecord)>,
    /// Empty histograms that the aggregator no longer needs. The kernel would have to find 220 KiB of pages
    /// for a fresh one, at the end of each interval, while queries are due.
    spares: Receiver<Histogram>,
    aggregator: Arc<AtomicI32>,
}

impl Drop for Reports {
    /// The worker has ended, and nothing is measured any more. The aggregator has what is left to do, and whoever waits
    /// for it must not wait until a busy machine has a CPU to spare.
    fn drop(&mut self) {
        if let Some(thread) = Pid::from_raw(self.aggregator.load(Ordering::Relaxed)) {
            set_usual_policy(thread);
        }
    }
}

impl Reports {
    /// Reports an interval; each once, and in order.
    pub fn send(&self, interval: IntervalRecord) {
        // Nobody listens any more only when the whole load is being given up.
        self.to_aggregator.send((self.shard, interval)).ok();
    }

    /// An empty histogram that came back, if one has.
    #[must_use]
    pub fn spare(&self) -> Option<Histogram> {
        self.spares.try_recv().ok()
    }
}

/// An interval on its way to the observer.
struct Finished {
    /// The number of its load.
    load: usize,
    live: LiveInterval,
    /// Where its histogram goes afterwards.
    back: Sender<Histogram>,
}

pub(crate) struct Aggregate {
    /// When the load began, nanoseconds since 1970 in UTC.
    pub(crate) began_unix_ns: u64,
    /// In order.
    pub(crate) series: Vec<Interval>,
    /// The series in seconds, or about; empty where an interval is as long.
    pub(crate) seconds: Vec<Interval>,
    /// Open loop: how close to its schedule the load was sent, in the measured window.
    pub(crate) pacing: Option<Pacing>,
    /// What the network stack dropped in the measured window.
    /// `None` if the kernel did not say.
    pub(crate) network: Option<NetworkDrops>,
}

/// Takes the reports of all workers of a load, or of the hosts that have them.
pub(crate) struct Aggregator<'a> {
    /// The load's number among those that run together.
    load: usize,
    /// When the load begins, nanoseconds since 1970 in UTC.
    began_unix_ns: u64,
    phases: Phases,
    turns: Option<Turns>,
    reports: Receiver<(u32, IntervalRecord)>,
    /// Its thread, once it has one.
    thread: Arc<AtomicI32>,
    spares: Vec<Sender<Histogram>>,
    /// Intervals that not all workers have finished, by number, with how many have.
    open: BTreeMap<u64, (usize, IntervalRecord)>,
    series: Joined,
    /// `None` where an interval of the series is as long.
    seconds: Option<Joined>,
    pacing: Option<PacingTally>,
    /// Whoever puts the intervals of several hosts together; `None` where that is done here.
    relay: Option<&'a Relay<'a>>,
    /// The latest interval, if the observer was too slow for it, with the latencies of all before it that were not
    /// told either.
    untold: Option<Finished>,
}

/// Intervals put together to longer ones: the quantiles of these do not follow from those of their parts.
struct Joined {
    /// How many make a longer one.
    intervals: u64,
    /// The one that has not ended.
    current: Option<IntervalRecord>,
    ended: Vec<Interval>,
}

impl Joined {
    fn series(phases: &Phases) -> Self {
        Self { intervals: phases.in_series(), current: None, ended: Vec::new() }
    }

    /// Seconds, or about.
    fn seconds(phases: &Phases) -> Option<Self> {
        const SECOND: u64 = 1_000_000_000;
        let of_series = phases.in_series() * phases.interval;
        let intervals = (SECOND + of_series / 2) / of_series.max(1);
        let intervals = intervals * phases.in_series();
        (intervals > phases.in_series()).then(|| Self {
            intervals,
            current: None,
            ended: Vec::new(),
        })
    }

    /// Adds an interval that all workers have finished. Intervals come in order.
    fn add(&mut self, interval: &IntervalRecord, phases: &Phases, turns: Option<&Turns>) {
        if self.intervals == 1 {
            self.ended.push(interval.finish(phases, turns));
            return;
        }
        let first = interval.number - interval.number % self.intervals;
        match &mut self.current {
            Some(current) if current.number == first => current.extend(interval),
            _ => {
                self.end(phases, turns);
                let mut current = IntervalRecord { number: first, ..IntervalRecord::default() };
                current.extend(interval);
                self.current = Some(current);
            }
        }
    }

    /// Ends the current one.
    fn end(&mut self, phases: &Phases, turns: Option<&Turns>) {
        let ended = self.current.take();
        self.ended
            .extend(ended.map(|interval| interval.finish_over(self.intervals, phases, turns)));
    }
}

impl<'a> Aggregator<'a> {
    /// An aggregator of the load with this number, and the ends of those who report.
    pub(crate) fn new(
        load: usize,
        reporters: u32,
        phases: Phases,
        turns: Option<Turns>,
    ) -> (Self, Vec<Reports>) {
        let (to_aggregator, reports) = mpsc::channel();
        let thread = Arc::new(AtomicI32::new(0));
        let (spares, ends) = (0..reporters)
            .map(|shard| {
                let (back, spares) = mpsc::channel();
                let (to_aggregator, aggregator) = (to_aggregator.clone(), Arc::clone(&thread));
                (back, Reports { shard, to_aggregator, spares, aggregator })
            })
            .unzip();
        let open = BTreeMap::new();
        let (series, seconds) = (Joined::series(&phases), Joined::seconds(&phases));
        let (began_unix_ns, pacing, relay, untold) = (0, None, None, None);
        let aggregator = Self {
            load,
            began_unix_ns,
            phases,
            turns,
            reports,
            thread,
            spares,
            open,
            series,
            seconds,
            pacing,
            relay,
            untold,
        };
        (aggregator, ends)
    }

    /// Intervals go to this relay, if there is one.
    pub(crate) fn relayed_by(self, relay: Option<&'a Relay<'a>>) -> Self {
        Self { relay, ..self }
    }

    /// Takes reports until all workers have ended.
    fn run(mut self, clock: Clock, finished: &SyncSender<Finished>) -> Aggregate {
        let mut network = NetworkWindow::default();
        loop {
            let wait = network.look(&self.phases, clock.now());
            match self.reports.recv_timeout(Duration::from_nanos(wait)) {
                Ok((shard, report)) => self.add(shard, report, finished),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        if let Some(untold) = self.untold.take() {
            // The observer outlives the aggregator.
            finished.send(untold).ok();
        }
        // After an interrupt the workers may end in different intervals.
        let turns = self.turns.as_ref();
        for (_, merged) in std::mem::take(&mut self.open).into_values() {
            if let Some(relay) = self.relay {
                relay(self.load, merged);
                continue;
            }
            for joined in std::iter::once(&mut self.series).chain(&mut self.seconds) {
                joined.add(&merged, &self.phases, turns);
            }
        }
        for joined in std::iter::once(&mut self.series).chain(&mut self.seconds) {
            joined.end(&self.phases, turns);
        }
        let pacing = self.pacing.map(|recorder| recorder.finish());
        Aggregate {
            began_unix_ns: self.began_unix_ns,
            series: self.series.ended,
            seconds: self.seconds.map(|seconds| seconds.ended).unwrap_or_default(),
            pacing,
            network: network.drops(),
        }
    }

    /// Adds one worker's interval, and finishes the interval if all workers have reported it.
    fn add(&mut self, shard: u32, report: IntervalRecord, finished: &SyncSender<Finished>) {
        let number = report.number;
        let (mut count, mut merged) = match self.open.remove(&number) {
            None => (0, report),
            Some((count, mut merged)) => {
                merged.merge(&report);
                give_back(&self.spares[shard as usize], report.latency);
                (count, merged)
            }
        };
        count += 1;
        if count < self.spares.len() {
            self.open.insert(number, (count, merged));
            return;
        }
        if let Some(relay) = self.relay {
            give_back(&self.spares[shard as usize], relay(self.load, merged));
            return;
        }
        let interval = merged.finish(&self.phases, self.turns.as_ref());
        for joined in std::iter::once(&mut self.series).chain(&mut self.seconds) {
            joined.add(&merged, &self.phases, self.turns.as_ref());
        }
        self.add_pacing(&merged);
        if let Some(untold) = self.untold.take() {
            merged.latency.merge(&untold.live.latency);
            give_back(&untold.back, untold.live.latency);
        }
        let ByPhase { warm_up, measured } = merged.sums;
        let live = LiveInterval {
            interval,
            latency: merged.latency,
            counters: ByPhase { warm_up: warm_up.finish(), measured: measured.finish() },
            busiest_worker_ns: merged.busiest,
            window_ns: self.phases.measured_from..self.phases.until,
            began_unix_ns: self.began_unix_ns,
        };
        let back = self.spares[shard as usize].clone();
        if let Err(refused) = finished.try_send(Finished { load: self.load, live, back }) {
            let (TrySendError::Full(untold) | TrySendError::Disconnected(untold)) = refused;
            self.untold = Some(untold);
        }
    }

    /// Adds the whole milliseconds of an interval that lie in the measured window and in the load's turns.
    fn add_pacing(&mut self, interval: &IntervalRecord) {
        const MILLISECOND: u64 = 1_000_000;
        let Phases { measured_from, until, .. } = self.phases;
        let window = measured_from.div_ceil(MILLISECOND)..until / MILLISECOND;
        let counts = |number: u64| {
            let turns = self.turns.as_ref();
            turns.is_none_or(|turns| turns.is_counted(number * MILLISECOND))
        };
        for (number, millisecond) in (interval.first_millisecond..).zip(&interval.milliseconds) {
            let recorder = self.pacing.get_or_insert_default();
            if window.contains(&number) && counts(number) {
                recorder.push(millisecond.due, millisecond.sent);
            }
        }
    }
}

/// Empties a histogram and gives it to a worker for another interval.
fn give_back(spares: &Sender<Histogram>, mut histogram: Histogram) {
    histogram.clear();
    // A worker that has ended needs none.
    spares.send(histogram).ok();
}

/// The clock of a load that is to begin. Whoever waits for it is told `None` if the load does not begin.
#[derive(Debug, Default)]
pub(crate) struct AwaitedClock(OnceLock<Option<(Clock, u64)>>);

impl AwaitedClock {
    /// # Panics
    /// At the second call.
    pub(crate) fn set(&self, clock: Option<Clock>) {
        let clock = clock.map(|clock| (clock, clock.began_unix_ns()));
        self.0.set(clock).expect("a load begins once");
    }
}

/// Takes the reports of all loads. Each load has a thread that runs only when no other has work for its CPU.
pub(crate) struct Observers<'scope> {
    loads: Vec<usize>,
    intervals: Receiver<Finished>,
    threads: Vec<thread::ScopedJoinHandle<'scope, Option<Aggregate>>>,
}

impl<'scope> Observers<'scope> {
    /// Starts the threads, which wait for the clock.
    ///
    /// # Errors
    /// When there is no thread for one of the loads. Those of the others still wait for the clock.
    pub(crate) fn start(
        scope: &'scope thread::Scope<'scope, '_>,
        aggregators: Vec<Aggregator<'scope>>,
        clock: &'scope AwaitedClock,
    ) -> io::Result<Self> {
        let (sender, intervals) = mpsc::sync_channel(UNSEEN);
        let loads: Vec<usize> = aggregators.iter().map(|aggregator| aggregator.load).collect();
        let threads = aggregators.into_iter().map(|aggregator| {
            let sender = sender.clone();
            thread::Builder::new().spawn_scoped(scope, move || {
                let (clock, began_unix_ns) = (*clock.0.wait())?;
                set_idle_policy();
                aggregator.thread.store(gettid().as_raw_nonzero().get(), Ordering::Relaxed);
                let aggregator = Aggregator { began_unix_ns, ..aggregator };
                Some(aggregator.run(clock, &sender))
            })
        });
        let threads = threads.collect::<io::Result<_>>()?;
        Ok(Self { loads, intervals, threads })
    }

    /// Tells the observer in the calling thread, until the workers of all loads have ended.
    pub(crate) fn observe(self, observe: &mut dyn FnMut(usize, Progress<'_>)) -> Vec<Aggregate> {
        let Self { loads, intervals, threads } = self;
        loop {
            match intervals.recv_timeout(TICK) {
                Ok(Finished { load, live, back }) => {
                    observe(load, Progress::Interval(&live));
                    give_back(&back, live.latency);
                }
                Err(RecvTimeoutError::Timeout) => {
                    loads.iter().for_each(|load| observe(*load, Progress::Tick));
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let join = |thread: thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().filter_map(join).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dnslab_client::{Events, Millisecond};

    fn observe_one(
        aggregator: Aggregator<'static>,
        observe: &mut dyn FnMut(usize, Progress<'_>),
    ) -> Vec<Aggregate> {
        let clock = AwaitedClock::default();
        clock.set(Some(Clock::start()));
        thread::scope(|scope| {
            Observers::start(scope, vec![aggregator], &clock).unwrap().observe(observe)
        })
    }

    #[test]
    fn milliseconds_of_all_workers_are_added_and_the_warm_up_is_left_out() {
        let phases =
            Phases { measured_from: 3_000_000, until: 8_000_000, interval: 4_000_000, timeout: 1 };
        let (aggregator, ends) = Aggregator::new(0, 2, phases, None);
        for number in 0..2 {
            for (end, count) in ends.iter().zip(1..) {
                let milliseconds = vec![Millisecond { due: count, sent: count }; 4];
                let first_millisecond = number * 4;
                end.send(IntervalRecord {
                    number,
                    milliseconds,
                    first_millisecond,
                    busiest: u64::from(count),
                    ..IntervalRecord::default()
                });
            }
        }
        drop(ends);
        let mut reports = 0;
        let aggregates = observe_one(aggregator, &mut |load, progress| {
            assert_eq!(load, 0);
            if let Progress::Interval(live) = progress {
                reports += 1;
                assert_eq!(live.busiest_worker_ns, 2);
            }
        });
        let [aggregate] = <[Aggregate; 1]>::try_from(aggregates).ok().unwrap();
        assert_eq!((aggregate.series.len(), reports), (2, 2));
        let pacing = aggregate.pacing.unwrap();
        let millisecond = pacing.of_width(1_000_000).unwrap();
        assert_eq!((millisecond.windows, millisecond.due), (5, 15));
        assert_eq!(millisecond.max_error, 0.0);
    }

    #[test]
    fn a_second_has_the_quantiles_of_all_its_queries() {
        const TENTH: u64 = 100_000_000;
        let phases = Phases { measured_from: 0, until: 15 * TENTH, interval: TENTH, timeout: 1 };
        let (aggregator, ends) = Aggregator::new(0, 2, phases, None);
        for number in 0..15 {
            for end in &ends {
                let mut latency = end.spare().unwrap_or_default();
                // One interval in ten is slow: its median is no median of the second.
                latency.record_many_ns(if number % 10 == 0 { 9_000 } else { 1_000 }, 50);
                end.send(IntervalRecord {
                    number,
                    events: Events { answered: 50, ..Events::default() },
                    latency,
                    ..IntervalRecord::default()
                });
            }
        }
        drop(ends);
        let aggregates = observe_one(aggregator, &mut |_, _| {});
        let [aggregate] = <[Aggregate; 1]>::try_from(aggregates).ok().unwrap();
        let [first, second] = aggregate.seconds.as_slice() else {
            panic!("{:?}", aggregate.seconds)
        };
        assert_eq!((first.at_ns, first.length_ns, first.answered), (0, 10 * TENTH, 1_000));
        assert_eq!((second.at_ns, second.length_ns, second.answered), (10 * TENTH, 5 * TENTH, 500));
        assert!(first.p50_ns.unwrap() < 1_100 && first.p95_ns.unwrap() > 8_900, "{first:?}");
    }

    #[test]
    fn whoever_watches_a_long_load_hears_of_each_second() {
        const SECOND: u64 = 1_000_000_000;
        let phases = Phases { measured_from: 0, until: 500 * SECOND, interval: SECOND, timeout: 1 };
        let (aggregator, ends) = Aggregator::new(0, 1, phases, None);
        let watch = thread::spawn(move || {
            for number in 0..500 {
                let mut latency = ends[0].spare().unwrap_or_default();
                latency.record_many_ns(1_000 * (number % 3 + 1), 7);
                let events = Events { answered: 7, ..Events::default() };
                ends[0].send(IntervalRecord {
                    number,
                    events,
                    latency,
                    ..IntervalRecord::default()
                });
            }
        });
        let (mut reports, mut latencies, mut watch) = (0, 0, Some(watch));
        let aggregates = observe_one(aggregator, &mut |_, progress| {
            if let Progress::Interval(live) = progress {
                (reports, latencies) = (reports + 1, latencies + live.latency.len());
                // It hangs at first, and misses what then does not fit.
                if let Some(watch) = watch.take() {
                    watch.join().unwrap();
                    thread::sleep(TICK);
                }
            }
        });
        let [aggregate] = <[Aggregate; 1]>::try_from(aggregates).ok().unwrap();
        assert!(reports >= UNSEEN, "{reports}");
        assert_eq!(latencies, 500 * 7);
        assert_eq!((aggregate.series.len(), aggregate.seconds.len()), (167, 0));
        let [first, .., last] = aggregate.series.as_slice() else { unreachable!() };
        assert_eq!((first.length_ns, first.answered), (3 * SECOND, 21));
        assert_eq!((last.at_ns, last.length_ns, last.answered), (498 * SECOND, 2 * SECOND, 14));
        assert!(first.p50_ns.unwrap() < 2_100 && first.p95_ns.unwrap() > 2_900, "{first:?}");
    }

    #[test]
    fn histograms_come_back_empty() {
        let phases = Phases { measured_from: 0, until: 4, interval: 4, timeout: 1 };
        let (mut aggregator, ends) = Aggregator::new(0, 2, phases, None);
        let (finished, intervals) = mpsc::sync_channel(1);
        for end in &ends {
            let mut latency = end.spare().unwrap_or_default();
            latency.record_ns(5_000);
            end.send(IntervalRecord { latency, ..IntervalRecord::default() });
        }
        for _ in 0..2 {
            let (shard, report) = aggregator.reports.recv().unwrap();
            aggregator.add(shard, report, &finished);
        }
        let Finished { live, back, .. } = intervals.recv().unwrap();
        assert_eq!(live.latency.len(), 2);
        give_back(&back, live.latency);
        assert_eq!(aggregator.series.ended.len(), 1);
        let spares: Vec<Histogram> = ends.iter().flat_map(|end| end.spares.try_iter()).collect();
        assert_eq!(spares, [Histogram::new(), Histogram::new()]);
    }
}
