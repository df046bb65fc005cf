//! Time for which an answer keeps its thread, without CPU time.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::clock;
use crate::program::Program;

/// What [`Program::hold`] and [`Program::serial`] ask for. Clones are of one server.
///
/// Threads that are all busy wait for each other: all hold their answers at the same time, then each has its serial
/// time, one after the other. So `N` threads need `hold + N serial` for `N` answers, which is the law of Amdahl with a
/// serial share of `serial / (hold + serial)`. A lock for the serial time alone would not give it: threads would come to
/// it in turn and wait for nobody, until it is never free. `RwLock` lets the thread that leaves it come back before
/// those that wait.
#[derive(Clone, Debug)]
pub(super) struct Hold {
    hold: Duration,
    serial: Duration,
    threads: Arc<Threads>,
}

#[derive(Debug, Default)]
struct Threads {
    now: Mutex<Now>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Now {
    /// Threads that hold an answer.
    holding: usize,
    /// Threads that wait for their serial time. Nobody begins to hold an answer before they have had it.
    waiting: usize,
    is_serial: bool,
}

impl Hold {
    pub(super) fn new(program: &Program) -> Self {
        let Program { hold, serial, .. } = program;
        Self { hold: *hold, serial: *serial, threads: Arc::default() }
    }

    pub(super) fn is_none(&self) -> bool {
        self.hold.is_zero() && self.serial.is_zero()
    }

    #[inline]
    pub(super) fn spend(&self) {
        if !self.is_none() {
            self.sleep();
        }
    }

    fn sleep(&self) {
        self.threads.when(|now| now.waiting == 0 && !now.is_serial).holding += 1;
        clock::sleep(self.hold);
        let mut now = self.threads.now();
        now.holding -= 1;
        now.waiting += usize::from(!self.serial.is_zero());
        drop(now);
        self.threads.changed.notify_all();
        if self.serial.is_zero() {
            return;
        }
        let mut now = self.threads.when(|now| now.holding == 0 && !now.is_serial);
        now.waiting -= 1;
        now.is_serial = true;
        drop(now);
        clock::sleep(self.serial);
        self.threads.now().is_serial = false;
        self.threads.changed.notify_all();
    }
}

impl Threads {
    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until it is so.
    fn when(&self, is_so: impl Fn(&Now) -> bool) -> MutexGuard<'_, Now> {
        let waited = self.changed.wait_while(self.now(), |now| !is_so(now));
        waited.unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    const ANSWERS: u32 = 10;

    /// How long so many threads take for [`ANSWERS`] each.
    fn time_of(threads: usize, hold_ms: u64, serial_ms: u64) -> Duration {
        let program = Program {
            hold: Duration::from_millis(hold_ms),
            serial: Duration::from_millis(serial_ms),
            ..Program::default()
        };
        let hold = Hold::new(&program);
        let start = clock::now();
        thread::scope(|scope| {
            for _ in 0..threads {
                let hold = hold.clone();
                scope.spawn(move || (0..ANSWERS).for_each(|_| hold.spend()));
            }
        });
        start.elapsed()
    }

    /// Sleeping takes no CPU, so it is the serial time alone that holds threads up.
    #[test]
    fn serial_time_is_that_of_one_thread_at_a_time() {
        let [one, four] = [1, 4].map(|threads| time_of(threads, 6, 2));
        // Nobody holds an answer during the 40 serial times, and each thread holds ten.
        assert!(four >= Duration::from_millis(60 + 80), "{four:?}");
        // By the law 1.75 times as long. Threads that wait for a turn that does not come take four times as long.
        assert!(four < one.mul_f64(2.8), "{one:?} and {four:?}");
        let parallel = time_of(4, 8, 0);
        assert!(
            parallel >= Duration::from_millis(80) && parallel < four,
            "{parallel:?} and {four:?}"
        );
    }
}
