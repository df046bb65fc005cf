//! The only module of the engine that reads a clock.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds since the load began, on the monotonic clock.
pub(crate) type Nanos = u64;

/// The timeline of one load; copies agree with each other, across threads too.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: Instant,
}

impl Clock {
    /// A timeline whose zero is `origin`.
    pub(crate) fn starting_at(origin: Instant) -> Self {
        Self { origin }
    }

    /// Now; zero before the origin.
    #[inline]
    pub(crate) fn now(&self) -> Nanos {
        nanos(self.origin.elapsed())
    }
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

    /// What was booked since `earlier`.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            cpu: self.cpu.saturating_sub(earlier.cpu),
            waited: self.waited.saturating_sub(earlier.waited),
        }
    }
}
