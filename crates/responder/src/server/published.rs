//! Counters of a running server: a copy that each worker makes when it is woken for it. Nothing else is done
//! for it, and nothing at all for a query.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io;

use super::clock;
use crate::counters::Counters;

/// Reads what a server has counted so far, from any thread.
#[derive(Clone, Debug)]
pub struct CountersHandle {
    /// One for each worker.
    slots: Arc<[Slot]>,
}

/// Where a worker leaves its copy.
#[derive(Debug)]
pub(super) struct Slot {
    /// The worker watches this eventfd: a copy is wanted.
    pub(super) wake: OwnedFd,
    copy: Mutex<Copied>,
    is_fresh: Condvar,
}

#[derive(Debug, Default)]
struct Copied {
    counters: Counters,
    /// How many copies were asked for.
    asked: u64,
    /// The last of these that was made.
    made: u64,
    /// The worker has ended; no other copy follows.
    is_last: bool,
}

impl CountersHandle {
    pub(super) fn new(workers: usize) -> io::Result<Self> {
        let slot = |_| Slot::new();
        Ok(Self { slots: (0..workers).map(slot).collect::<io::Result<_>>()? })
    }

    pub(super) fn slot(&self, worker: usize) -> &Slot {
        &self.slots[worker]
    }

    /// What all workers have counted until now; once the server has stopped, the exact sums.
    ///
    /// A worker that has made no copy after `patience`, because it is stalled or has not begun, counts with
    /// the one before.
    #[must_use]
    pub fn read(&self, patience: Duration) -> Counters {
        for slot in &*self.slots {
            slot.ask();
        }
        let until = clock::now() + patience;
        let mut sum = Counters::default();
        for slot in &*self.slots {
            sum.merge(&slot.wait(until));
        }
        sum
    }
}

impl Slot {
    fn new() -> io::Result<Self> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { wake, copy: Mutex::default(), is_fresh: Condvar::new() })
    }

    fn ask(&self) {
        self.lock().asked += 1;
        // Fails only when the counter is full, and then the worker is awake already.
        let _ = io::write(&self.wake, &1_u64.to_ne_bytes());
    }

    /// The copy that was asked for, or what is there by then.
    fn wait(&self, until: Instant) -> Counters {
        let patience = until.saturating_duration_since(clock::now());
        let is_stale = |copied: &mut Copied| !copied.is_last && copied.made < copied.asked;
        let copied = self.is_fresh.wait_timeout_while(self.lock(), patience, is_stale);
        copied.unwrap_or_else(PoisonError::into_inner).0.counters
    }

    pub(super) fn publish(&self, counters: &Counters, is_last: bool) {
        // If nothing can be read, the worker was woken for something else.
        let _ = io::read(&self.wake, &mut [0_u8; 8]);
        let mut copied = self.lock();
        copied.counters = *counters;
        copied.made = copied.asked;
        copied.is_last = is_last;
        drop(copied);
        self.is_fresh.notify_all();
    }

    /// A thread that panicked while it held the lock has left whole figures: they are plain numbers.
    fn lock(&self) -> MutexGuard<'_, Copied> {
        self.copy.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
