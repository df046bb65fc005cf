//! Instants on a load's timeline. Nothing here reads a clock.

use std::time::{Duration, Instant};

/// Nanoseconds since the load began, on the monotonic clock.
pub type Nanos = u64;

/// A duration as nanoseconds; 584 years are enough.
#[must_use]
pub fn nanos(duration: Duration) -> Nanos {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The timeline of one load: [`Nanos`] to and from the instants of the standard library.
#[derive(Clone, Copy, Debug)]
pub struct Timeline {
    origin: Instant,
}

impl Timeline {
    /// A timeline whose zero is `origin`.
    #[must_use]
    pub fn starting_at(origin: Instant) -> Self {
        Self { origin }
    }

    /// This instant of the timeline, for the standard library.
    #[must_use]
    pub fn instant(&self, at: Nanos) -> Instant {
        self.origin + Duration::from_nanos(at)
    }

    /// Zero before the origin.
    #[inline]
    #[must_use]
    pub fn nanos_at(&self, at: Instant) -> Nanos {
        nanos(at.saturating_duration_since(self.origin))
    }
}

/// What the kernel has booked for a thread, nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadTime {
    /// CPU time used.
    pub cpu: Nanos,
    /// Time for which the thread could have run but another one had its CPU. Zero if the kernel does not say
    /// (`/proc/thread-self/schedstat`, second figure).
    pub waited: Nanos,
}

impl ThreadTime {
    pub(crate) fn plus(self, other: Self) -> Self {
        Self { cpu: self.cpu + other.cpu, waited: self.waited + other.waited }
    }

    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            cpu: self.cpu.saturating_sub(earlier.cpu),
            waited: self.waited.saturating_sub(earlier.waited),
        }
    }
}
