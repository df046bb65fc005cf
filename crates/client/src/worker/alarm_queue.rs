//! When to look after which slot.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::time::Nanos;

/// A slot is to be looked after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Alarm {
    pub(super) at: Nanos,
    pub(super) slot: u32,
}

/// Alarms, the first one first. One that is no longer that of its slot stays until its time.
#[derive(Default)]
pub(super) struct AlarmQueue {
    alarms: BinaryHeap<Reverse<Alarm>>,
}

impl AlarmQueue {
    #[inline]
    pub(super) fn set(&mut self, alarm: Alarm) {
        self.alarms.push(Reverse(alarm));
    }

    /// When the first goes off.
    pub(super) fn next(&self) -> Option<Nanos> {
        self.alarms.peek().map(|Reverse(alarm)| alarm.at)
    }

    /// Takes out the first, if it goes off at `now`.
    pub(super) fn take_due(&mut self, now: Nanos) -> Option<Alarm> {
        self.next().filter(|at| *at <= now)?;
        self.alarms.pop().map(|Reverse(alarm)| alarm)
    }

    #[cfg(test)]
    pub(super) fn all(&self) -> std::collections::BTreeSet<Alarm> {
        self.alarms.iter().map(|Reverse(alarm)| *alarm).collect()
    }
}
