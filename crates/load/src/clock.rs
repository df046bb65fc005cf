//! The only module of the engine that reads a clock.

#![expect(clippy::disallowed_methods, reason = "the clock of the engine is here")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use dnslab_client::{Nanos, ThreadTime, Timeline, nanos};
use rustix::time::{ClockId, clock_gettime};

/// The timeline of one load. Copies agree with each other, also across threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    timeline: Timeline,
}

impl Clock {
    pub(crate) fn starting_at(origin: Instant) -> Self {
        Self { timeline: Timeline::starting_at(origin) }
    }

    pub(crate) fn start() -> Self {
        Self::starting_at(Instant::now())
    }

    pub(crate) fn timeline(&self) -> Timeline {
        self.timeline
    }

    /// The origin, nanoseconds since 1970 in UTC.
    pub(crate) fn began_unix_ns(&self) -> u64 {
        let ahead = self.timeline.instant(0).saturating_duration_since(Instant::now());
        (wall_clock() + nanos(ahead)).saturating_sub(self.now())
    }

    /// Zero before the origin.
    #[inline]
    pub(crate) fn now(&self) -> Nanos {
        self.timeline.nanos_at(Instant::now())
    }
}

pub(crate) fn instant_in(after: Duration) -> Instant {
    Instant::now() + after
}

/// How often a sleep looks whether anybody waits for its end.
const LOOK: Duration = Duration::from_millis(100);

/// Does not sleep if the instant is over, and not much longer once it is stopped.
pub(crate) fn sleep_until(instant: Instant, stop: &AtomicBool) {
    loop {
        let left = instant.saturating_duration_since(Instant::now());
        if left.is_zero() || stop.load(Ordering::Relaxed) {
            return;
        }
        thread::sleep(left.min(LOOK));
    }
}

/// Nanoseconds since 1970 in UTC.
pub(crate) fn wall_clock() -> u64 {
    nanos(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
}

/// CPU time of the calling thread so far.
pub(crate) fn cpu_time() -> Nanos {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// CPU time of the calling thread so far, and how long it waited for its CPU, as the kernel says.
pub(crate) fn thread_time() -> ThreadTime {
    let schedule = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let waited = schedule.split_ascii_whitespace().nth(1).and_then(|text| text.parse().ok());
    ThreadTime { cpu: cpu_time(), waited: waited.unwrap_or(0) }
}
