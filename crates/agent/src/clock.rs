//! The clock of one end: nanoseconds of CLOCK_MONOTONIC (clock_gettime(2)), which all processes of a machine share.

use std::time::{Duration, Instant};

use dnslab_lab::signed_ns;
use rustix::time::{ClockId, clock_gettime};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    began: Instant,
    /// What it was then.
    began_ns: i64,
}

impl Clock {
    /// How far apart two processes of a machine read it, nanoseconds: each has found it out within half of that.
    pub(crate) const BOUND_NS: u64 = 20_000;

    pub(crate) fn start() -> Self {
        loop {
            let (began, now) = (Instant::now(), clock_gettime(ClockId::Monotonic));
            // Else this thread was away in between.
            if began.elapsed() < Duration::from_nanos(Self::BOUND_NS / 2) {
                return Self { began, began_ns: now.tv_sec * 1_000_000_000 + now.tv_nsec };
            }
        }
    }

    pub(crate) fn now_ns(self) -> i64 {
        self.ns_of(Instant::now())
    }

    pub(crate) fn ns_of(self, at: Instant) -> i64 {
        self.began_ns.saturating_add(signed_ns(at, self.began))
    }

    /// `None` for an instant that this clock cannot have.
    pub(crate) fn instant_of(self, ns: i64) -> Option<Instant> {
        let since_ns = ns.checked_sub(self.began_ns)?;
        let length = Duration::from_nanos(since_ns.unsigned_abs());
        match since_ns < 0 {
            true => self.began.checked_sub(length),
            false => self.began.checked_add(length),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_those_that_were_told() {
        let clock = Clock::start();
        for ns in [0, 5, -5, 7_000_000_000] {
            assert_eq!(clock.instant_of(ns).map(|at| clock.ns_of(at)), Some(ns));
        }
    }
}
