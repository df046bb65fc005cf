//! Extra CPU time for each answer: a counted loop.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::Duration;

use super::clock;

/// The loop of [`crate::Program::busy`]. It is counted, not timed: reading a clock before and after would
/// cost as much as the shortest times that are asked for, and would count what the kernel gave to others in
/// between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Busy {
    /// For each answer; 0 for nothing.
    steps: u64,
}

/// Steps of one block of the calibration: some 0.3 ms, of which reading the clock is 0.1 %.
const BLOCK: u64 = 200_000;

/// Blocks before those that count: a CPU that slept takes a while to reach its clock rate.
const WARM_UP: usize = 16;

/// Blocks whose median counts. Odd.
const BLOCKS: usize = 31;

impl Busy {
    /// The loop that takes `time` of a CPU, measured now on this thread, in some 15 ms.
    ///
    /// One step takes one to two nanoseconds. Of 200 ns some 5 ns are missing, because a CPU overlaps the
    /// loop with what comes before and after it. The calibration is off by up to 1.5 % on a virtual machine
    /// with other work. The count stays the same while the server runs, so the time changes with the clock
    /// rate of the CPU. A second thread of the same core hardly slows the loop down: each step waits for the
    /// one before it, so most of the core is idle.
    pub(super) fn calibrate(time: Duration) -> Self {
        if time.is_zero() {
            return Self { steps: 0 };
        }
        let block_ns = || {
            let start_ns = clock::thread_cpu_ns();
            work(BLOCK);
            clock::thread_cpu_ns() - start_ns
        };
        let mut blocks_ns: Vec<u64> =
            std::iter::repeat_with(block_ns).take(WARM_UP + BLOCKS).skip(WARM_UP).collect();
        blocks_ns.sort_unstable();
        Self { steps: steps(time, blocks_ns[BLOCKS / 2]) }
    }

    /// Returns the steps.
    #[inline]
    pub(super) fn spend(self) -> u64 {
        if self.steps > 0 {
            work(self.steps);
        }
        self.steps
    }

    pub(super) fn steps(self) -> u64 {
        self.steps
    }
}

/// At least one; [`BLOCK`] of them take `block_ns`.
fn steps(time: Duration, block_ns: u64) -> u64 {
    let steps = time.as_nanos() as f64 * BLOCK as f64 / block_ns.max(1) as f64;
    (steps.round() as u64).max(1)
}

/// Each step is a shift, an addition modulo two and a multiplication, which need the result of the step
/// before. No compiler can merge such steps, as it does with those of a linear generator. The fences keep the
/// CPU from overlapping most of what comes before and after. Never inlined, so that the calibrated loop is
/// the one that runs.
#[inline(never)]
fn work(steps: u64) {
    let state = AtomicU64::new(1);
    black_box(&state);
    fence(Ordering::SeqCst);
    let mut number = state.load(Ordering::Relaxed);
    for _ in 0..steps {
        number = (number ^ (number >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    }
    state.store(number, Ordering::Relaxed);
    fence(Ordering::SeqCst);
    black_box(&state);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_follow_the_time() {
        let check = |time, block_ns, expected| assert_eq!(steps(time, block_ns), expected);
        // 1.25 ns for each step.
        check(Duration::from_nanos(200), 250_000, 160);
        check(Duration::from_millis(1), 250_000, 800_000);
        check(Duration::from_nanos(1), 250_000, 1);
        check(Duration::from_nanos(1), 2_000_000, 1);
        // A thread clock that stood still must not divide by zero.
        check(Duration::from_nanos(1), 0, BLOCK);
    }

    #[test]
    fn nothing_is_spent_by_default() {
        assert_eq!(Busy::calibrate(Duration::ZERO).spend(), 0);
    }

    /// On the thread's own clock other processes do not count. A factor of 4 either way is more than any
    /// change of a CPU's clock rate, and less than a wrong unit.
    #[test]
    fn the_time_is_spent_on_the_cpu() {
        const TIMES: u64 = 100;
        let busy = Busy::calibrate(Duration::from_micros(200));
        let start_ns = clock::thread_cpu_ns();
        let steps: u64 = (0..TIMES).map(|_| busy.spend()).sum();
        let spent_ns = clock::thread_cpu_ns() - start_ns;
        assert_eq!(steps, TIMES * busy.steps());
        let asked_ns = TIMES * 200_000;
        assert!((asked_ns / 4..=asked_ns * 4).contains(&spent_ns), "{spent_ns} of {asked_ns} ns");
    }
}
