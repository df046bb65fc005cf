//! CPU time that each answer costs more than it needs: a counted loop.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::Duration;

use super::clock;

/// The loop that stands for [`crate::Program::busy`]. It is counted and not timed: reading a clock
/// before and after would itself cost as much as the shortest times that are asked for, and would count
/// what the kernel gave to others in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Busy {
    /// Steps for each answer; 0 for nothing.
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
    /// One step takes one to two nanoseconds. Of 200 ns some 5 ns are missing, since a CPU works on what
    /// comes before and after at the same time; and the calibration is off by up to 1.5 %
    /// on a virtual machine with other work. The count stays what it is while the server runs, so the
    /// time changes with the clock rate of the CPU. A second thread of the same core hardly slows the
    /// loop down, since each step waits for the one before it and so leaves most of the core idle.
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

    /// Spends the time; how many steps that were.
    #[inline]
    pub(super) fn spend(self) -> u64 {
        if self.steps > 0 {
            work(self.steps);
        }
        self.steps
    }

    /// Steps for each answer.
    pub(super) fn steps(self) -> u64 {
        self.steps
    }
}

/// How many steps take `time`, if [`BLOCK`] of them take `block_ns`: at least one.
fn steps(time: Duration, block_ns: u64) -> u64 {
    let steps = time.as_nanos() as f64 * BLOCK as f64 / block_ns.max(1) as f64;
    (steps.round() as u64).max(1)
}

/// A shift, an addition modulo two and a multiplication for each step, each of which needs the result
/// of the one before it. No compiler can put several of such steps into one, as it does with those of
/// a linear generator. The fences keep the CPU from working on most of what comes before and
/// after meanwhile. Never inlined, so that the loop that is calibrated is the one that is run.
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
        // A thread clock that stood still all the time is no reason to divide by zero.
        check(Duration::from_nanos(1), 0, BLOCK);
    }

    #[test]
    fn nothing_is_spent_by_default() {
        assert_eq!(Busy::calibrate(Duration::ZERO).spend(), 0);
    }

    /// The thread's own clock: other processes do not count. A factor of 4 either way is more than any
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
