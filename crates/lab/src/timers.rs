//! What a short sleep is on this machine: how long, and how much CPU time it takes.
//!
//! A load worker sleeps for tens of microseconds in every round. On physical hardware the sleep ends a few
//! microseconds late and costs one or two. On a virtual machine each end of it may be an exit to the
//! hypervisor, and cost more than all the queries of the round.

use std::num::NonZeroU64;
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::{current_timer_slack, set_current_timer_slack};
use rustix::time::{ClockId, clock_gettime};

/// Length asked of each sleep: the engine's usual one.
pub(crate) const ASKED: Duration = Duration::from_micros(50);

/// Work before each sleep, so that the CPU is as awake as in a round.
const WORK: Duration = Duration::from_micros(20);

/// Number of sleeps: some 30 ms.
const SLEEPS: u32 = 300;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sleep {
    /// Median.
    pub(crate) lasts: Duration,
    /// Mean CPU time of going to sleep and waking up.
    pub(crate) cpu: Duration,
}

impl Sleep {
    /// On the CPU of the calling thread.
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
        assert_eq!(current_timer_slack().unwrap(), slack);
    }
}
