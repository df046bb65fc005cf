//! The only module of the engine that reads a clock.

#![expect(clippy::disallowed_methods, reason = "the clock of the engine is here")]

use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rustix::time::{ClockId, clock_gettime};

use crate::runtime::Runtime;

/// Nanoseconds since the load began, on the monotonic clock.
pub(crate) type Nanos = u64;

/// The timeline of one load; copies agree with each other, across threads too.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: Instant,
}

/// Instants of a load's timeline as the standard library has them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeline {
    origin: Instant,
}

impl Timeline {
    /// A timeline whose zero is `origin`.
    #[cfg(test)]
    pub(crate) fn starting_at(origin: Instant) -> Self {
        Self { origin }
    }

    /// An instant of the timeline as the standard library has it.
    pub(crate) fn instant(&self, at: Nanos) -> Instant {
        self.origin + Duration::from_nanos(at)
    }

    /// Such an instant on the timeline; zero before the origin.
    pub(crate) fn nanos_at(&self, at: Instant) -> Nanos {
        nanos(at.saturating_duration_since(self.origin))
    }
}

impl Clock {
    /// A timeline whose zero is `origin`.
    pub(crate) fn starting_at(origin: Instant) -> Self {
        Self { origin }
    }

    /// Its instants as the standard library has them.
    pub(crate) fn timeline(&self) -> Timeline {
        Timeline { origin: self.origin }
    }

    /// A timeline whose zero is now.
    pub(crate) fn start() -> Self {
        Self::starting_at(Instant::now())
    }

    /// Now; zero before the origin.
    #[inline]
    pub(crate) fn now(&self) -> Nanos {
        nanos(self.origin.elapsed())
    }
}

/// The instant that comes `after` now.
pub(crate) fn instant_in(after: Duration) -> Instant {
    Instant::now() + after
}

/// Sleeps until this instant; not at all if it is over.
pub(crate) fn sleep_until(instant: Instant) {
    thread::sleep(instant.saturating_duration_since(Instant::now()));
}

/// Brings the kernel's time stamps, which are of the time of day, onto the timeline. The distance of
/// the two clocks is read once for each batch, so that a step of the time of day does little harm.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stamps {
    /// The time of day, nanoseconds since 1970, at the instant that the batch was read.
    wall: Option<u64>,
}

impl Stamps {
    /// The instant of a stamp, in nanoseconds since 1970, of a batch that was read at `now`.
    pub(crate) fn on_timeline(&mut self, runtime: &impl Runtime, now: Nanos, stamp: u64) -> Nanos {
        let wall = *self.wall.get_or_insert_with(|| {
            // The time of day is read after `now`: less what passed between them.
            runtime.wall_clock().saturating_sub(runtime.now().saturating_sub(now))
        });
        now.saturating_sub(wall.saturating_sub(stamp))
    }
}

/// Nanoseconds since 1970 in UTC.
pub(crate) fn wall_clock() -> u64 {
    nanos(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
}

/// A duration as nanoseconds; 584 years are enough.
pub(crate) fn nanos(duration: Duration) -> Nanos {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// What the kernel has booked for the calling thread so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ThreadTime {
    /// CPU time used, nanoseconds.
    pub(crate) cpu: Nanos,
    /// Time for which the thread could have run but another one had its CPU, nanoseconds; zero
    /// where the kernel does not say (`/proc/thread-self/schedstat`, second figure).
    pub(crate) waited: Nanos,
}

impl ThreadTime {
    /// Of the calling thread, now.
    pub(crate) fn now() -> Self {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        let cpu = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
        let schedule = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let waited = schedule.split_ascii_whitespace().nth(1).and_then(|text| text.parse().ok());
        Self { cpu, waited: waited.unwrap_or(0) }
    }

    /// Both together.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self { cpu: self.cpu + other.cpu, waited: self.waited + other.waited }
    }

    /// What was booked since `earlier`.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            cpu: self.cpu.saturating_sub(earlier.cpu),
            waited: self.waited.saturating_sub(earlier.waited),
        }
    }
}
