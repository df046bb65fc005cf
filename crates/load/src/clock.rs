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

/// CPU time that the calling thread has used so far, nanoseconds.
pub(crate) fn thread_cpu() -> Nanos {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
