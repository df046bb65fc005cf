//! A thread that watches what a server uses, every 0.1 s.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use dnslab_measure::{ResourceSample, ResourceSeries};

use crate::cgroup::{CpuSource, MemorySource, Sources};
use crate::descendants;
use crate::readings::{DropTally, MachineTime, ThreadTally, resident_octets};

/// Time between samples. Each costs up to a millisecond of CPU with servers of ten threads (measured
/// in a build without optimisation), so the watch takes at most 1 % of one CPU, and a run of ten
/// seconds still has a hundred points.
const INTERVAL: Duration = Duration::from_millis(100);

/// What a sampler needs to know of a server.
#[derive(Clone, Debug)]
pub struct Watched {
    /// Its first process.
    pub(crate) pid: u32,
    /// Where its figures are read.
    pub(crate) sources: Sources,
    /// How many CPUs it may use.
    pub(crate) cpus: usize,
}

impl Watched {
    /// A process whose figures come from `sources`, and that may use `cpus` CPUs.
    #[must_use]
    pub fn new(pid: u32, sources: Sources, cpus: usize) -> Self {
        Self { pid, sources, cpus }
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
    let start = Instant::now();
    let mut due = start;
    loop {
        match watch.sample() {
            Some(sample) => samples.push(sample),
            None => return samples,
        }
        began.send(()).ok();
        // Instants that passed while this thread did not run are left out, not made up for.
        while due <= Instant::now() {
            due += INTERVAL;
        }
        match stopped.recv_timeout(due.saturating_duration_since(Instant::now())) {
            Err(RecvTimeoutError::Timeout) => {}
            _ => {
                samples.extend(watch.sample());
                return samples;
            }
        }
    }
}

/// The state of the sums.
struct Watch<'a> {
    watched: &'a Watched,
    threads: ThreadTally,
    drops: DropTally,
}

impl<'a> Watch<'a> {
    fn new(watched: &'a Watched) -> Self {
        Self { watched, threads: ThreadTally::default(), drops: DropTally::new(watched.pid) }
    }

    /// Takes one sample and its instant, which is that of the CPU reading; `None` when the server
    /// is gone.
    fn sample(&mut self) -> Option<(Instant, ResourceSample)> {
        let sources = &self.watched.sources;
        let processes = descendants::tree(self.watched.pid);
        if processes.is_empty() {
            return None;
        }
        let at = Instant::now();
        let group_cpu_ns = sources.cpu.read_ns();
        let threads = self.threads.read(&processes);
        let cpu_ns = match sources.cpu {
            CpuSource::Processes => threads.cpu_ns,
            // The group is removed when the server has ended.
            CpuSource::V1(_) | CpuSource::V2(_) => group_cpu_ns?,
        };
        let memory_octets = match sources.memory {
            MemorySource::Processes => resident_octets(&processes),
            MemorySource::V1(_) | MemorySource::V2(_) => sources.memory.read_octets()?,
        };
        let machine = MachineTime::now();
        let sample = ResourceSample {
            at_ns: 0,
            cpu_ns,
            memory_octets,
            context_switches: threads.switches,
            udp_drops: self.drops.read(&processes),
            steal_ns: machine.steal_ns,
            machine_ns: machine.processes_ns,
        };
        Some((at, sample))
    }
}

/// `at` relative to `origin`, nanoseconds.
fn signed_ns(at: Instant, origin: Instant) -> i64 {
    let ns = |length: Duration| i64::try_from(length.as_nanos()).unwrap_or(i64::MAX);
    match at.checked_duration_since(origin) {
        Some(after) => ns(after),
        None => -ns(origin.duration_since(at)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_before_the_origin_are_negative() {
        let origin = Instant::now();
        assert_eq!(signed_ns(origin + Duration::from_nanos(5), origin), 5);
        assert_eq!(signed_ns(origin, origin + Duration::from_nanos(5)), -5);
    }
}
