//! What a short sleep is on this machine: how long, and how much CPU time it takes.
//!
//! A load worker sleeps for a horizon of tens of microseconds in every round. On a machine of iron
//! that is late by a few of them and costs one or two; on a virtual one each end of it may be an
//! exit to the hypervisor, and cost more than all the queries of the round.

use std::num::NonZeroU64;
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::{current_timer_slack, set_current_timer_slack};
use rustix::time::{ClockId, clock_gettime};

/// Asked of each sleep: the engine's usual horizon.
pub(crate) const ASKED: Duration = Duration::from_micros(50);

/// Work before each sleep, so that the CPU is as awake as in a round.
const WORK: Duration = Duration::from_micros(20);

/// Sleeps that are measured: some 30 ms.
const SLEEPS: u32 = 300;

/// A short sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sleep {
    /// How long it is; the median.
    pub(crate) lasts: Duration,
    /// CPU time that goes with it: going to sleep and waking up; the mean.
    pub(crate) cpu: Duration,
}

impl Sleep {
    /// Measures it on the CPU that the calling thread is on.
    pub(crate) fn measure() -> Self {
        // The kernel may round a sleep up by this much; workers ask for as little.
        let slack = current_timer_slack().ok().and_then(NonZeroU64::new);
        set_current_timer_slack(NonZeroU64::new(1)).ok();
        let (began, mut worked) = (cpu_time(), Duration::ZERO);
        let mut lengths: Vec<Duration> = (0..SLEEPS)
            .map(|_| {
                let work = Instant::now();
                while work.elapsed() < WORK {}
                worked += work.elapsed();
                let asleep = Instant::now();
                thread::sleep(ASKED);
                asleep.elapsed()
            })
            .collect();
        let cpu = cpu_time().saturating_sub(began).saturating_sub(worked) / SLEEPS;
        set_current_timer_slack(slack).ok();
        lengths.sort_unstable();
        Self { lasts: lengths[lengths.len() / 2], cpu }
    }
}

/// CPU time of the calling thread.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_is_not_shorter_than_asked_and_leaves_the_thread_as_it_was() {
        let slack = current_timer_slack().unwrap();
        let sleep = Sleep::measure();
        assert!(sleep.lasts >= ASKED, "{sleep:?}");
        assert!(sleep.cpu > Duration::ZERO, "{sleep:?}");
        assert_eq!(current_timer_slack().unwrap(), slack);
    }
}
