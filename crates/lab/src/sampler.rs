//! A thread that watches what a server uses, every 0.1 s.

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use dnslab_record::{
    CpuLimit, CpuShare, LiveLimit, LiveServer, ResourceSample, ResourceSeries, Span,
};
use rustix::time::{ClockId, clock_gettime};

use crate::cgroup::{self, CpuSource, MemorySource, Sources};
use crate::cpu_group::{GroupLog, GroupWaits};
use crate::descendants;
use crate::interrupts::{self, CpuTime, CpuTimes};
use crate::readings::{DropTally, MachineTime, ThreadTally, resident_octets, tells_waits};
use crate::threads::ThreadLog;
use crate::timeline::signed_ns;
use crate::written::WrittenTally;

/// Time between samples. Each costs up to a millisecond of CPU with servers of ten threads (measured in a
/// build without optimisation), so the watch takes at most 1 % of one CPU, and a run of ten seconds still has
/// a hundred points.
const INTERVAL: Duration = Duration::from_millis(100);

/// Most CPUs that are recorded one by one: a record of ten seconds grows by 1 KiB for each.
const MAX_CORES: usize = 32;

/// Attempts at the first and at the last sample, which bound what the series covers.
const ATTEMPTS: usize = 5;

const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(10);

/// What a sampler needs to know of a server.
#[derive(Clone, Debug)]
pub struct Watched {
    pub(crate) processes: Processes,
    pub(crate) sources: Sources,
    /// How many CPUs it may use.
    pub(crate) cpus: usize,
    /// Those of them whose interrupts count as its own.
    pub(crate) own_cpus: Vec<usize>,
    /// CPUs of the load.
    pub(crate) load_cpus: Vec<usize>,
    /// Sockets known to be its own, even if this user may not see what it has open.
    pub(crate) sockets: HashSet<u64>,
    /// Its query logs.
    pub(crate) logs: Vec<PathBuf>,
    /// CPUs of the server that are recorded one by one; empty if it may use all.
    pub(crate) server_cpus: Vec<usize>,
    /// Processes of dnslab beside this one.
    pub(crate) of_dnslab: Vec<u32>,
}

impl Watched {
    /// A process whose figures come from `sources`, and that may use `cpus` CPUs.
    #[must_use]
    pub fn new(pid: u32, sources: Sources, cpus: usize) -> Self {
        Self {
            processes: Processes::Trees(vec![pid]),
            sources,
            cpus,
            own_cpus: Vec::new(),
            load_cpus: Vec::new(),
            sockets: HashSet::new(),
            logs: Vec::new(),
            server_cpus: Vec::new(),
            of_dnslab: Vec::new(),
        }
    }

    /// This process with all that it has started, and a load on these CPUs: what is watched where no server is. All
    /// interrupts of the machine count.
    #[must_use]
    pub fn of_this_process(load_cpus: &[usize]) -> Self {
        let own = Self::new(std::process::id(), Sources::PROCESSES, 1);
        Self { load_cpus: load_cpus.to_vec(), own_cpus: crate::cpus::online(), ..own }
    }

    /// A server that somebody else started, with `sockets` among its own. It may use these CPUs.
    pub(crate) fn of_external(
        processes: Processes,
        sources: Sources,
        cpus: Vec<usize>,
        sockets: HashSet<u64>,
    ) -> Self {
        let own = Self { processes, sockets, ..Self::new(0, sources, cpus.len()) };
        own.pinned_to(&cpus)
    }

    /// A server that may use these CPUs only: their interrupts count as its own.
    #[must_use]
    pub fn pinned_to(mut self, cpus: &[usize]) -> Self {
        self.own_cpus = cpus.to_vec();
        self.server_cpus = cpus.to_vec();
        self
    }

    /// The CPUs that are recorded one by one: those of server and load, or all where the server is not
    /// pinned; at most [`MAX_CORES`].
    fn cores(&self, times: &CpuTimes) -> Vec<usize> {
        let mut cores = match self.server_cpus.is_empty() {
            true => times.all(),
            false => self.server_cpus.iter().chain(&self.load_cpus).copied().collect(),
        };
        cores.sort_unstable();
        cores.dedup();
        cores.truncate(MAX_CORES);
        cores
    }

    /// A server beside a load on these CPUs: the interrupts there count as the load's.
    #[must_use]
    pub fn beside_load(mut self, cpus: &[usize]) -> Self {
        self.own_cpus.retain(|cpu| !cpus.contains(cpu));
        self.load_cpus = cpus.to_vec();
        self
    }

    /// A server on a machine where these processes are dnslab's, too. This one is in any case.
    #[must_use]
    pub fn beside_dnslab(mut self, mut processes: Vec<u32>) -> Self {
        processes.retain(|pid| *pid != std::process::id());
        self.of_dnslab = processes;
        self
    }

    /// A server with these query logs.
    #[must_use]
    pub fn with_logs(mut self, logs: Vec<PathBuf>) -> Self {
        self.logs = logs;
        self
    }

    /// A server that is watched through `/proc` alone.
    #[must_use]
    pub fn without_groups(mut self) -> Self {
        self.sources = Sources::PROCESSES;
        self
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Processes {
    /// These and all their descendants.
    Trees(Vec<u32>),
    /// All in this control group and in those below it.
    Group(PathBuf),
}

impl Processes {
    /// Those that exist now, each once. The watching process is no part of a server that started it.
    pub(crate) fn now(&self) -> Vec<u32> {
        let mut all: Vec<u32> = match self {
            // What the first process of the system has started is no part of a server.
            Self::Trees(roots) if roots == &[1] => roots.clone(),
            Self::Trees(roots) => roots.iter().flat_map(|root| descendants::tree(*root)).collect(),
            Self::Group(folder) => cgroup::members(folder),
        };
        let mut known = HashSet::new();
        all.retain(|pid| known.insert(*pid));
        let own = std::process::id();
        let is_meant = matches!(self, Self::Trees(roots) if roots.contains(&own));
        if known.contains(&own) && !is_meant {
            let own = descendants::tree(own);
            all.retain(|pid| !own.contains(pid));
        }
        all
    }
}

/// A running watch.
#[derive(Debug)]
pub struct Sampler {
    stop: mpsc::Sender<()>,
    thread: Option<JoinHandle<Seen>>,
    watched: Watched,
    latest: Arc<Mutex<Option<Latest>>>,
}

/// The newest sample, and what follows from it and the one before.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Latest {
    /// The server.
    pub server: LiveServer,
    /// What the CPUs of the load did since the sample before; empty with the first one.
    pub load_cpus: Vec<CpuShare>,
}

impl Sampler {
    /// Takes the first sample before it returns, and then one every 0.1 s until [`Sampler::finish`] or the
    /// end of the server. So a load that begins afterwards is covered from its start.
    ///
    /// A failed reading while the server is there costs only a point of the chart: figures are cumulative.
    #[must_use]
    pub fn start(watched: Watched) -> Self {
        let (stop, stopped) = mpsc::channel();
        let (began, has_begun) = mpsc::channel();
        let for_thread = watched.clone();
        let latest = Arc::new(Mutex::new(None));
        let shared = Arc::clone(&latest);
        let sample = move || sample_until(&for_thread, &shared, &began, &stopped);
        let thread = thread::Builder::new().spawn(sample).ok();
        // An error means that the thread has ended already, or never was, which `finish` finds out.
        has_begun.recv().ok();
        Self { stop, thread, watched, latest }
    }

    /// What the newest sample says; `None` before the first one. The sampling thread never waits for a reader.
    #[must_use]
    pub fn latest(&self) -> Option<Latest> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes a last sample, ends the watch, and returns the samples on the timeline that begins at `origin`
    /// (the start of the load); earlier samples have negative times.
    ///
    /// The samples cover the load unless the server ended before, or its figures could not be read at either
    /// end. Then [`ResourceSeries::cpu_ns`] gives `None` for the window, and the server counts as not
    /// watched.
    #[must_use]
    pub fn finish(self, origin: Instant) -> ResourceSeries {
        self.finish_over(origin, Span::default())
    }

    /// Ends as [`Sampler::finish`] does, and adds what the busiest threads and the CPUs of the load did over a window
    /// of that timeline.
    #[must_use]
    pub fn finish_over(self, origin: Instant, window: Span) -> ResourceSeries {
        self.stop.send(()).ok();
        // After a panic, or without a thread, the run has no resources and says so.
        let seen = self.thread.and_then(|thread| thread.join().ok()).unwrap_or_else(Seen::new);
        let Watched { sources, cpus, load_cpus, .. } = self.watched;
        let began = signed_ns(seen.began, origin);
        let window = window.since(began);
        let samples = seen.samples.into_iter();
        let GroupWaits { limit, pressure_share } = seen.group.over(window);
        ResourceSeries {
            cpu_source: sources.cpu.describe().to_owned(),
            memory_source: sources.memory.describe().to_owned(),
            cpus,
            samples: samples
                .map(|sample| ResourceSample {
                    at_ns: sample.at_ns.saturating_add(began),
                    ..sample
                })
                .collect(),
            threads: seen.threads.busiest(window),
            load_cpus: shares(&load_cpus, &seen.load, window),
            core_cpus: seen.cores,
            irq_apart: interrupts::kept_apart(),
            cpu_limit: limit,
            pressure_share,
            clock_bound_ns: None,
        }
    }
}

/// What a watch has seen, on a timeline that begins with the watch.
struct Seen {
    began: Instant,
    samples: Vec<ResourceSample>,
    threads: ThreadLog,
    /// Each sample's instant, and what the CPUs of the load had done by then, in their order.
    load: Vec<(i64, Vec<CpuTime>)>,
    cores: Vec<usize>,
    /// What the server's control groups said of its wait for CPU time.
    group: GroupLog,
}

impl Seen {
    /// What the newest sample says of a server that may use `cpus` CPUs, beside a load on `load_cpus`.
    fn latest(&self, cpus: usize, load_cpus: &[usize]) -> Option<Latest> {
        let (first, last) = (self.samples.first()?, self.samples.last()?);
        let before = self.samples.iter().rev().nth(1);
        let share = |before: &ResourceSample| {
            let used = last.cpu_ns.saturating_sub(before.cpu_ns) as f64;
            used / (last.at_ns - before.at_ns).max(1) as f64
        };
        let limit = self.group.over(Span::between(first.at_ns, last.at_ns)).limit;
        let waited_ns = last.waited_ns.zip(first.waited_ns);
        let server = LiveServer {
            cpu_ns: last.cpu_ns.saturating_sub(first.cpu_ns),
            cpu_share: before.map(share),
            cpus,
            memory_octets: last.memory_octets,
            udp_drops: last.udp_drops.saturating_sub(first.udp_drops),
            waited_ns: waited_ns.map(|(now, before)| now.saturating_sub(before)),
            limit: limit.map(|CpuLimit { cpus, periods, throttled, .. }| LiveLimit {
                cpus,
                periods,
                throttled,
            }),
        };
        let since = before.map(|before| Span::between(before.at_ns, last.at_ns));
        let load = &self.load[self.load.len().saturating_sub(2)..];
        let load_cpus = since.map(|since| shares(load_cpus, load, since)).unwrap_or_default();
        Some(Latest { server, load_cpus })
    }

    fn new() -> Self {
        Self {
            began: Instant::now(),
            samples: Vec::new(),
            threads: ThreadLog::default(),
            load: Vec::new(),
            cores: Vec::new(),
            group: GroupLog::default(),
        }
    }
}

/// What CPUs did over a window, from the readings that enclose it; empty if none do.
fn shares(cpus: &[usize], readings: &[(i64, Vec<CpuTime>)], window: Span) -> Vec<CpuShare> {
    let before = readings.iter().rfind(|(at, _)| *at <= window.from_ns);
    let after = readings.iter().find(|(at, _)| *at >= window.to_ns);
    let (Some((began, before)), Some((ended, after))) = (before, after) else { return Vec::new() };
    let span = (ended - began).max(1) as f64;
    let share = |more: u64, less: u64| more.saturating_sub(less) as f64 / span;
    let both = before.iter().zip(after);
    cpus.iter()
        .zip(both)
        .map(|(&cpu, (before, after))| CpuShare {
            cpu,
            used: share(after.used_ns, before.used_ns),
            irq: share(after.irq_ns, before.irq_ns),
        })
        .collect()
}

/// Due instants are counted from the first one, never from the last sample.
fn sample_until(
    watched: &Watched,
    shared: &Mutex<Option<Latest>>,
    began: &mpsc::Sender<()>,
    stopped: &mpsc::Receiver<()>,
) -> Seen {
    let mut watch = Watch::new(watched);
    let mut due = Instant::now();
    let mut reading = watch.insist();
    loop {
        if matches!(reading, Reading::Ended) {
            return watch.seen;
        }
        // Whoever reads just now has the sample before, and this thread samples on.
        if let Ok(mut latest) = shared.try_lock() {
            *latest = watch.seen.latest(watched.cpus, &watched.load_cpus);
        }
        began.send(()).ok();
        // Instants that passed while this thread did not run are left out.
        while due <= Instant::now() {
            due += INTERVAL;
        }
        match stopped.recv_timeout(due.saturating_duration_since(Instant::now())) {
            Err(RecvTimeoutError::Timeout) => reading = watch.sample(),
            _ => {
                watch.insist();
                return watch.seen;
            }
        }
    }
}

enum Reading {
    Sample,
    /// The server is there, but a figure could not be read.
    Missed,
    Ended,
}

struct Watch<'a> {
    watched: &'a Watched,
    threads: ThreadTally,
    /// Of dnslab's other processes.
    of_dnslab: ThreadTally,
    drops: DropTally,
    seen: Seen,
    logs: WrittenTally,
}

impl<'a> Watch<'a> {
    fn new(watched: &'a Watched) -> Self {
        Self {
            watched,
            threads: ThreadTally::default(),
            of_dnslab: ThreadTally::default(),
            drops: DropTally::new(&watched.sockets),
            seen: Seen::new(),
            logs: WrittenTally::default(),
        }
    }

    /// Takes a sample, with some attempts.
    fn insist(&mut self) -> Reading {
        for _ in 1..ATTEMPTS {
            match self.sample() {
                Reading::Missed => thread::sleep(BETWEEN_ATTEMPTS),
                reading => return reading,
            }
        }
        self.sample()
    }

    fn sample(&mut self) -> Reading {
        let processes = self.watched.processes.now();
        if processes.is_empty() {
            return Reading::Ended;
        }
        match self.read(&processes) {
            Some(()) => Reading::Sample,
            // The group goes away with the server: then this is the end and no failure.
            None if self.watched.processes.now().is_empty() => Reading::Ended,
            None => Reading::Missed,
        }
    }

    /// `None` if a figure cannot be read. The instant is that of the CPU reading.
    fn read(&mut self, processes: &[u32]) -> Option<()> {
        let sources = &self.watched.sources;
        let at = Instant::now();
        let group_cpu_ns = sources.cpu.read_ns();
        let threads = self.threads.read(processes);
        let cpu_ns = match sources.cpu {
            CpuSource::Processes => threads.cpu_ns,
            CpuSource::V1(_) | CpuSource::V2(_) => group_cpu_ns?,
        };
        let memory_octets = match sources.memory {
            MemorySource::Processes => resident_octets(processes),
            MemorySource::V1(_) | MemorySource::V2(_) => sources.memory.read_octets()?,
        };
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let machine = MachineTime::of(&stat, interrupts::kept_apart() == Some(true));
        let times = CpuTimes::of(&stat);
        let own = times.sum(&self.watched.own_cpus);
        let at_ns = signed_ns(at, self.seen.began);
        self.seen
            .threads
            .push(at_ns, self.threads.alive(), |id| descendants::name(id).unwrap_or_default());
        let load = self.watched.load_cpus.iter().map(|cpu| times.cpu(*cpu));
        self.seen.load.push((at_ns, load.collect()));
        if self.seen.samples.is_empty() {
            self.seen.cores = self.watched.cores(&times);
            let ids: Vec<String> = processes.iter().map(u32::to_string).collect();
            self.seen.group = GroupLog::of(ids.iter().map(String::as_str));
        }
        self.seen.group.read(at_ns);
        self.seen.samples.push(ResourceSample {
            at_ns,
            cpu_ns,
            memory_octets,
            context_switches: threads.switches,
            udp_drops: self.drops.read(processes),
            steal_ns: machine.steal_ns,
            machine_ns: machine.processes_ns,
            dnslab_ns: own_cpu_ns() + self.of_dnslab.read(&self.watched.of_dnslab).cpu_ns,
            log_octets: self.logs.read(&self.watched.logs),
            irq_ns: own.irq_ns,
            cpus_used_ns: own.used_ns,
            waited_ns: tells_waits().then_some(threads.waited_ns),
            cores_used_ns: self.seen.cores.iter().map(|cpu| times.cpu(*cpu).used_ns).collect(),
        });
        Some(())
    }
}

fn own_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_cpus_of_the_load_are_told_over_the_window() {
        let time = |used_ns, irq_ns| vec![CpuTime { used_ns, irq_ns }];
        let readings = [(0, time(0, 0)), (100, time(50, 10)), (200, time(150, 30))];
        let shares_in = |from, to| shares(&[3], &readings, Span::between(from, to));
        assert_eq!(shares_in(100, 200), [CpuShare { cpu: 3, used: 1.0, irq: 0.2 }]);
        assert_eq!(shares_in(50, 150), [CpuShare { cpu: 3, used: 0.75, irq: 0.15 }]);
        assert_eq!(shares_in(50, 201), []);
    }

    /// Writes the CPU time of a group so that a reader never sees half of it.
    fn write_usage(group: &Path, used_us: u64) {
        let (part, file) = (group.join("part"), group.join("cpu.stat"));
        fs::write(&part, format!("usage_usec {used_us}\n")).unwrap();
        fs::rename(part, file).unwrap();
    }

    /// Watches this process through a group whose files are written here: used once, then gone for longer
    /// than a tick, then perhaps there again. Returns the series, and when the files were gone in nanoseconds
    /// of its timeline.
    fn interrupted(comes_back: bool) -> (ResourceSeries, i64) {
        let group = tempfile::tempdir().unwrap();
        let write = |used_us| write_usage(group.path(), used_us);
        write(1);
        let sources = Sources {
            cpu: CpuSource::V2(group.path().to_owned()),
            memory: MemorySource::Processes,
        };
        let sampler = Sampler::start(Watched::new(std::process::id(), sources, 1));
        let origin = Instant::now();
        fs::remove_file(group.path().join("cpu.stat")).unwrap();
        let gone_ns = signed_ns(Instant::now(), origin);
        thread::sleep(INTERVAL * 5 / 2);
        if comes_back {
            write(5);
        }
        (sampler.finish(origin), gone_ns)
    }

    #[test]
    fn a_failed_reading_does_not_end_the_series() {
        let (series, gone_ns) = interrupted(true);
        let last = series.samples.last().unwrap();
        assert_eq!((series.samples[0].cpu_ns, last.cpu_ns), (1_000, 5_000), "{series:?}");
        assert!(series.cpu_ns(Span::between(0, gone_ns)).is_some(), "{series:?}");
    }

    #[test]
    fn a_series_that_could_not_go_on_does_not_cover_the_load() {
        let (series, gone_ns) = interrupted(false);
        assert!(!series.samples.is_empty(), "{series:?}");
        assert_eq!(series.cpu_ns(Span::between(0, gone_ns + 1)), None, "{series:?}");
    }

    fn sample(at_ns: i64, cpu_ns: u64) -> ResourceSample {
        ResourceSample {
            at_ns,
            cpu_ns,
            memory_octets: 5,
            udp_drops: 3,
            waited_ns: Some(at_ns as u64 * 2),
            ..ResourceSample::default()
        }
    }

    #[test]
    fn the_latest_sample_is_told_as_a_rate() {
        let time = |used_ns| vec![CpuTime { used_ns, irq_ns: 0 }];
        let mut seen = Seen::new();
        assert_eq!(seen.latest(2, &[3]), None);
        seen.samples.push(sample(100, 1_000));
        seen.load.push((100, time(0)));
        let first = seen.latest(2, &[3]).unwrap();
        assert_eq!((first.server.cpu_share, first.server.cpu_ns), (None, 0));
        seen.samples.push(sample(200, 1_150));
        seen.load.push((200, time(50)));
        let second = seen.latest(2, &[3]).unwrap();
        let LiveServer { cpu_ns, cpu_share, cpus, memory_octets, udp_drops, waited_ns, limit } =
            second.server;
        assert_eq!((waited_ns, limit), (Some(200), None));
        assert_eq!((cpu_ns, cpu_share, cpus), (150, Some(1.5), 2));
        assert_eq!((memory_octets, udp_drops), (5, 0));
        assert_eq!(second.load_cpus, [CpuShare { cpu: 3, used: 0.5, irq: 0.0 }]);
    }

    #[test]
    fn this_process_is_counted_once() {
        let own = std::process::id();
        let watched = Watched::of_this_process(&[]).beside_dnslab(vec![own]);
        let sampler = Sampler::start(watched);
        // More than a tick, by which the times of other processes are known.
        let until = own_cpu_ns() + 50_000_000;
        while own_cpu_ns() < until {
            std::hint::black_box(descendants::tree(own));
        }
        let series = sampler.finish(Instant::now());
        let last = series.samples.last().unwrap();
        assert!(last.dnslab_ns > 0 && last.dnslab_ns <= own_cpu_ns(), "{last:?}");
    }

    #[test]
    fn instants_before_the_origin_are_negative() {
        let origin = Instant::now();
        assert_eq!(signed_ns(origin + Duration::from_nanos(5), origin), 5);
        assert_eq!(signed_ns(origin, origin + Duration::from_nanos(5)), -5);
    }
}
