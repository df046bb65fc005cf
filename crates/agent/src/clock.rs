//! The clock of one end: nanoseconds since it began.

use std::time::{Duration, Instant};

use dnslab_lab::signed_ns;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    began: Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self { began: Instant::now() }
    }

    pub(crate) fn now_ns(self) -> i64 {
        self.ns_of(Instant::now())
    }

    pub(crate) fn ns_of(self, at: Instant) -> i64 {
        signed_ns(at, self.began)
    }

    /// `None` for an instant that this clock cannot have.
    pub(crate) fn instant_of(self, ns: i64) -> Option<Instant> {
        let length = Duration::from_nanos(ns.unsigned_abs());
        match ns < 0 {
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
