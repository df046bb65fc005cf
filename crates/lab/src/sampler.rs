//! A thread that watches what a server uses, every 0.1 s.

use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use dnslab_measure::{ResourceSample, ResourceSeries};

use crate::cgroup::{CpuSource, MemorySource, Sources};
use crate::descendants;
use crate::readings::{DropTally, MachineTime, ThreadTally, resident_octets};
use crate::written::WrittenTally;

/// Time between samples. Each costs up to a millisecond of CPU with servers of ten threads (measured
/// in a build without optimisation), so the watch takes at most 1 % of one CPU, and a run of ten
/// seconds still has a hundred points.
const INTERVAL: Duration = Duration::from_millis(100);

/// Attempts at the first and at the last sample, which bound what the series covers.
const ATTEMPTS: usize = 5;

/// Time between these attempts.
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(10);

/// What a sampler needs to know of a server.
#[derive(Clone, Debug)]
pub struct Watched {
    /// Its first process.
    pub(crate) pid: u32,
    /// Where its figures are read.
    pub(crate) sources: Sources,
    /// How many CPUs it may use.
    pub(crate) cpus: usize,
    /// The logs of queries that it was told to write.
    pub(crate) logs: Vec<PathBuf>,
}

impl Watched {
    /// A process whose figures come from `sources`, and that may use `cpus` CPUs.
    #[must_use]
    pub fn new(pid: u32, sources: Sources, cpus: usize) -> Self {
        Self { pid, sources, cpus, logs: Vec::new() }
    }

    /// The same server, whose logs of queries are these files.
    #[must_use]
    pub fn with_logs(mut self, logs: Vec<PathBuf>) -> Self {
        self.logs = logs;
        self
    }

    /// The same server, watched through `/proc` alone.
    #[must_use]
    pub fn without_groups(mut self) -> Self {
        self.sources = Sources { cpu: CpuSource::Processes, memory: MemorySource::Processes };
        self
    }
}

/// A running watch.
#[derive(Debug)]
pub struct Sampler {
    stop: mpsc::Sender<()>,
    thread: JoinHandle<Vec<(Instant, ResourceSample)>>,
    watched: Watched,
}

impl Sampler {
    /// Takes the first sample before it returns, and then one every 0.1 s until
    /// [`Sampler::finish`] or the end of the server. So a load that begins afterwards is covered
    /// from its start.
    ///
    /// A reading that fails while the server is there is made up for by the next one: every figure
    /// is cumulative, so nothing is lost but a point of the chart.
    #[must_use]
    pub fn start(watched: Watched) -> Self {
        let (stop, stopped) = mpsc::channel();
        let (began, has_begun) = mpsc::channel();
        let for_thread = watched.clone();
        let thread = thread::spawn(move || sample_until(&for_thread, &began, &stopped));
        // An error means that the thread has ended already, which `finish` finds out.
        has_begun.recv().ok();
        Self { stop, thread, watched }
    }

    /// Takes a last sample, ends the watch, and gives the samples on the timeline that begins at
    /// `origin` (the start of the load); samples before it have negative times.
    ///
    /// The samples cover the load unless the server ended before, or its figures could not be read
    /// at the one end or the other: then [`ResourceSeries::cpu_between_ns`] gives `None` for the
    /// window, and the server counts as not watched.
    #[must_use]
    pub fn finish(self, origin: Instant) -> ResourceSeries {
        self.stop.send(()).ok();
        // A watch that panicked has nothing to say; the run then has no resources and says so.
        let samples = self.thread.join().unwrap_or_default();
        let samples = samples
            .into_iter()
            .map(|(at, sample)| ResourceSample { at_ns: signed_ns(at, origin), ..sample });
        ResourceSeries {
            cpu_source: self.watched.sources.cpu.describe().to_owned(),
            memory_source: self.watched.sources.memory.describe().to_owned(),
            cpus: self.watched.cpus,
            samples: samples.collect(),
        }
    }
}

/// The sampling thread: due instants are counted from the first one, never from the last sample.
fn sample_until(
    watched: &Watched,
    began: &mpsc::Sender<()>,
    stopped: &mpsc::Receiver<()>,
) -> Vec<(Instant, ResourceSample)> {
    let mut watch = Watch::new(watched);
    let mut samples = Vec::new();
    let mut due = Instant::now();
    let mut reading = watch.insist();
    loop {
        match reading {
            Reading::Sample(at, sample) => samples.push((at, sample)),
            Reading::Missed => {}
            Reading::Ended => return samples,
        }
        began.send(()).ok();
        // Instants that passed while this thread did not run are left out, not made up for.
        while due <= Instant::now() {
            due += INTERVAL;
        }
        match stopped.recv_timeout(due.saturating_duration_since(Instant::now())) {
            Err(RecvTimeoutError::Timeout) => reading = watch.sample(),
            _ => {
                if let Reading::Sample(at, sample) = watch.insist() {
                    samples.push((at, sample));
                }
                return samples;
            }
        }
    }
}

/// What came of one look at the server.
enum Reading {
    /// A sample, and its instant, which is that of the CPU reading.
    Sample(Instant, ResourceSample),
    /// The server is there, but a figure could not be read.
    Missed,
    /// The server is gone.
    Ended,
}

/// The state of the sums.
struct Watch<'a> {
    watched: &'a Watched,
    threads: ThreadTally,
    drops: DropTally,
    logs: WrittenTally,
}

impl<'a> Watch<'a> {
    fn new(watched: &'a Watched) -> Self {
        Self {
            watched,
            threads: ThreadTally::default(),
            drops: DropTally::new(watched.pid),
            logs: WrittenTally::default(),
        }
    }

    /// Takes a sample; tries again at once, some times, when it is missed.
    fn insist(&mut self) -> Reading {
        for _ in 1..ATTEMPTS {
            match self.sample() {
                Reading::Missed => thread::sleep(BETWEEN_ATTEMPTS),
                reading => return reading,
            }
        }
        self.sample()
    }

    /// Takes one sample.
    fn sample(&mut self) -> Reading {
        let processes = descendants::tree(self.watched.pid);
        if processes.is_empty() {
            return Reading::Ended;
        }
        match self.read(&processes) {
            Some((at, sample)) => Reading::Sample(at, sample),
            // The group goes away with the server: then this is the end, and not a failure.
            None if descendants::tree(self.watched.pid).is_empty() => Reading::Ended,
            None => Reading::Missed,
        }
    }

    /// Reads every figure of these processes; `None` if one of them cannot be read.
    fn read(&mut self, processes: &[u32]) -> Option<(Instant, ResourceSample)> {
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
        let machine = MachineTime::now();
        let sample = ResourceSample {
            at_ns: 0,
            cpu_ns,
            memory_octets,
            context_switches: threads.switches,
            udp_drops: self.drops.read(processes),
            steal_ns: machine.steal_ns,
            machine_ns: machine.processes_ns,
            log_octets: self.logs.read(&self.watched.logs),
        };
        Some((at, sample))
    }
}

/// `at` relative to `origin`, nanoseconds.
pub(crate) fn signed_ns(at: Instant, origin: Instant) -> i64 {
    let ns = |length: Duration| i64::try_from(length.as_nanos()).unwrap_or(i64::MAX);
    match at.checked_duration_since(origin) {
        Some(after) => ns(after),
        None => -ns(origin.duration_since(at)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Watches this process through a group whose files are written here: used once, then gone for
    /// longer than a tick, then perhaps there again. The series, and when the files were gone in
    /// nanoseconds of its timeline.
    fn interrupted(comes_back: bool) -> (ResourceSeries, i64) {
        let group = tempfile::tempdir().unwrap();
        let write = |used_us: u64| {
            // Whole at once: a reader never sees half of it.
            let (part, file) = (group.path().join("part"), group.path().join("cpu.stat"));
            fs::write(&part, format!("usage_usec {used_us}\n")).unwrap();
            fs::rename(part, file).unwrap();
        };
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
        assert!(series.cpu_between_ns(0, gone_ns).is_some(), "{series:?}");
    }

    #[test]
    fn a_series_that_could_not_go_on_does_not_cover_the_load() {
        let (series, gone_ns) = interrupted(false);
        assert!(!series.samples.is_empty(), "{series:?}");
        assert_eq!(series.cpu_between_ns(0, gone_ns + 1), None, "{series:?}");
    }

    #[test]
    fn instants_before_the_origin_are_negative() {
        let origin = Instant::now();
        assert_eq!(signed_ns(origin + Duration::from_nanos(5), origin), 5);
        assert_eq!(signed_ns(origin, origin + Duration::from_nanos(5)), -5);
    }
}
