//! A thread that reads what a server counted itself, once a second.

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use dnslab_record::{CounterSample, CounterSeries, counter};

use crate::network::Visit;
use crate::server::{Access, ServerKind, adapter};
use crate::timeline::signed_ns;

/// Time between readings. One costs the server up to some milliseconds of CPU time (BIND renders its
/// statistics as text), so the watch takes less than 1 % of a CPU.
const INTERVAL: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
pub(crate) struct Counted {
    pub(crate) kind: ServerKind,
    pub(crate) access: Access,
    /// Asking disturbs its clients, so it is asked before and after the load only.
    pub(crate) is_disturbed: bool,
    /// `None` for the network of the caller.
    pub(crate) network: Option<PathBuf>,
}

/// A running watch of a server's own counters.
#[derive(Debug)]
pub struct CounterWatch {
    stop: mpsc::Sender<()>,
    thread: io::Result<JoinHandle<Readings>>,
    source: &'static str,
}

/// The samples, and why the last failed reading failed.
#[derive(Debug, Default)]
struct Readings {
    samples: Vec<(Instant, CounterSample)>,
    failure: Option<String>,
}

impl CounterWatch {
    /// Takes the first reading before it returns, and then one each second, unless that disturbs the server's
    /// clients. `None` for a server that does not publish its counters.
    pub(crate) fn start(counted: Counted) -> Option<Self> {
        let source = adapter(counted.kind).facts().counter_source?;
        let (stop, stopped) = mpsc::channel();
        let (began, has_begun) = mpsc::channel();
        let thread = thread::Builder::new().spawn(move || read_until(counted, &began, &stopped));
        // An error means that the thread has ended already, or never was, which `finish` finds out.
        has_begun.recv().ok();
        Some(Self { stop, thread, source })
    }

    /// Takes a last reading, ends the watch, and returns the readings on the timeline that begins at
    /// `origin`, the start of the load.
    #[must_use]
    pub fn finish(self, origin: Instant) -> CounterSeries {
        self.stop.send(()).ok();
        let readings = match self.thread {
            Ok(thread) => thread.join().unwrap_or_default(),
            Err(error) => Readings { failure: Some(error.to_string()), ..Readings::default() },
        };
        let on_timeline = |(at, sample)| CounterSample { at_ns: signed_ns(at, origin), ..sample };
        CounterSeries {
            source: self.source.to_owned(),
            samples: readings.samples.into_iter().map(on_timeline).collect(),
            failure: readings.failure,
        }
    }
}

/// Reads until it is told to stop, and then once more.
fn read_until(
    mut counted: Counted,
    began: &mpsc::Sender<()>,
    stopped: &mpsc::Receiver<()>,
) -> Readings {
    let mut readings = Readings::default();
    // The thread ends in that network, so there is nothing to return to.
    let _visit = match counted.network.as_deref().map(Visit::to).transpose() {
        Ok(visit) => visit,
        Err(error) => {
            readings.failure = Some(format!("its network: {error}"));
            return readings;
        }
    };
    readings.insist(&mut counted, FIRST);
    began.send(()).ok();
    loop {
        let waited = stopped.recv_timeout(INTERVAL);
        let is_last = !matches!(waited, Err(RecvTimeoutError::Timeout));
        if is_last {
            readings.insist(&mut counted, LAST);
            readings.settle(&mut counted);
            return readings;
        }
        if !counted.is_disturbed {
            readings.read(&mut counted);
        }
    }
}

/// How long the first reading is tried: some servers (CoreDNS, PowerDNS Recursor) answer queries a little
/// before they publish their counters.
const FIRST: Duration = Duration::from_secs(2);

/// How long the last reading is tried: a server that is silent by now must not delay the end.
const LAST: Duration = Duration::from_millis(200);

const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(50);

/// Time between last readings: some servers (CoreDNS) count a query when they have answered it, so that those of the end
/// may be missing for as long as a thread waits for its CPU.
const SETTLING: Duration = Duration::from_millis(10);

/// Last readings, so that a server that others ask too is not waited for.
const MAX_LAST_READINGS: u32 = 10;

impl Readings {
    /// Takes a reading that no later one can replace. The last attempt begins within this time.
    fn insist(&mut self, counted: &mut Counted, within: Duration) {
        let (known, failure) = (self.samples.len(), self.failure.clone());
        let end = Instant::now() + within;
        loop {
            self.read(counted);
            if self.samples.len() > known {
                self.failure = failure;
                return;
            }
            if Instant::now() >= end {
                return;
            }
            thread::sleep(BETWEEN_ATTEMPTS);
        }
    }

    /// Reads again until no query is added, and keeps the latest reading alone.
    fn settle(&mut self, counted: &mut Counted) {
        let failure = self.failure.clone();
        for _ in 0..MAX_LAST_READINGS {
            let (known, queries) = (self.samples.len(), self.latest_queries());
            if known == 0 {
                break;
            }
            thread::sleep(SETTLING);
            self.read(counted);
            if self.samples.len() > known {
                self.samples.remove(known - 1);
            }
            if self.latest_queries() == queries {
                break;
            }
        }
        // One that ends meanwhile has told all that it counted.
        self.failure = failure;
    }

    fn latest_queries(&self) -> Option<u64> {
        self.samples.last()?.1.counts.get(counter::QUERIES).copied()
    }

    /// Takes one reading. A failed one is no loss, because all counts are cumulative.
    fn read(&mut self, counted: &mut Counted) {
        let at = Instant::now();
        let counts = adapter(counted.kind).counters(&counted.access);
        counted.access.earlier += 1;
        match counts {
            Ok(counts) => self.samples.push((at, CounterSample { at_ns: 0, counts })),
            Err(reason) => self.failure = Some(reason),
        }
    }
}
