//! Counters of a server that runs, for whoever asks: a copy that each worker makes when it is woken
//! for it. Nothing is done for it otherwise, and nothing at all for a query.

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
    /// An eventfd that the worker watches: a copy is wanted.
    pub(super) wake: OwnedFd,
    /// The copy.
    copy: Mutex<Copied>,
    /// A fresh copy is there.
    is_fresh: Condvar,
}

/// The last copy, and how it stands.
#[derive(Debug, Default)]
struct Copied {
    /// Counted by then.
    counters: Counters,
    /// How many copies were asked for.
    asked: u64,
    /// The last of these that was made.
    made: u64,
    /// The worker has ended; there will be no other copy.
    is_last: bool,
}

impl CountersHandle {
    /// Slots for so many workers.
    ///
    /// # Errors
    /// When the process has no descriptors left.
    pub(super) fn new(workers: usize) -> io::Result<Self> {
        let slot = |_| Slot::new();
        Ok(Self { slots: (0..workers).map(slot).collect::<io::Result<_>>()? })
    }

    /// The slot of this worker.
    pub(super) fn slot(&self, worker: usize) -> &Slot {
        &self.slots[worker]
    }

    /// What all workers have counted until now; once the server has stopped, the exact sums.
    ///
    /// A worker that has not made a copy after `patience`, because it stands still or has not
    /// begun, is counted with the one before.
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
    /// A slot without a copy.
    fn new() -> io::Result<Self> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { wake, copy: Mutex::default(), is_fresh: Condvar::new() })
    }

    /// Asks the worker for a copy.
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

    /// Leaves a copy, the last one if the worker ends.
    pub(super) fn publish(&self, counters: &Counters, is_last: bool) {
        // Nothing to be read means only that the worker was woken for something else.
        let _ = io::read(&self.wake, &mut [0_u8; 8]);
        let mut copied = self.lock();
        copied.counters = *counters;
        copied.made = copied.asked;
        copied.is_last = is_last;
        drop(copied);
        self.is_fresh.notify_all();
    }

    /// The copy. A thread that panicked while it held the lock has left whole figures behind: they
    /// are plain numbers.
    fn lock(&self) -> MutexGuard<'_, Copied> {
        self.copy.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
