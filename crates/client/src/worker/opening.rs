//! Which slots are opened, in which order and at what pace, and what makes room for them.

use std::collections::VecDeque;
use std::ops::Range;

use crate::connection_slot::Life;
use crate::time::Nanos;

/// Connections that a worker opens at the same time. Thousands at once overflow the queue of a listening
/// socket (`net.core.somaxconn`, 4096 by default, and servers ask for less). Each connection that does not
/// fit waits a second for its next SYN.
pub(super) const MAX_CONNECTING: usize = 256;

/// First pause after a failed attempt to connect; it doubles up to [`MAX_PAUSE`].
const FIRST_PAUSE: Nanos = 10_000_000;
const MAX_PAUSE: Nanos = 1_000_000_000;

/// How long a slot is left closed after so many attempts to connect without an answer.
pub(super) fn pause_after(attempts: u32) -> Nanos {
    match attempts {
        0 => 0,
        failed => (FIRST_PAUSE << (failed - 1).min(10)).min(MAX_PAUSE),
    }
}

/// An idle slot, whose connection may make room for another.
pub(super) struct IdleSlot {
    pub(super) number: u32,
    /// When it was last active, as far as this list knows.
    pub(super) since: Nanos,
}

/// The slots that wait to be opened, and the connections that there are.
pub(super) struct Opening {
    /// Slots to open, in the order in which they asked.
    queue: VecDeque<u32>,
    /// Longest idle first.
    idle: VecDeque<IdleSlot>,
    /// Connections, being opened or open.
    connections: usize,
    /// Connections that are being opened.
    connecting: usize,
    /// Connections at most.
    most: usize,
    /// When the last round began, if it left slots unopened because as many connections as allowed were being
    /// opened.
    held_since: Option<Nanos>,
    /// How long slots waited for that in the measured window.
    held: Nanos,
}

impl Opening {
    /// For a worker that may have `most` connections at once.
    pub(super) fn new(most: usize) -> Self {
        Self {
            queue: VecDeque::new(),
            idle: VecDeque::new(),
            connections: 0,
            connecting: 0,
            most,
            held_since: None,
            held: 0,
        }
    }

    pub(super) fn queue(&mut self, number: u32) {
        self.queue.push_back(number);
    }

    /// The slot to open next; `None` while no slot waits, or all have to wait for another's end.
    pub(super) fn next(&self) -> Option<u32> {
        let has_room = !self.is_full() || !self.idle.is_empty();
        let may_open = self.connecting < MAX_CONNECTING && has_room;
        self.queue.front().copied().filter(|_| may_open)
    }

    /// Takes the slot that is to be opened next out of the queue.
    pub(super) fn take_next(&mut self) {
        self.queue.pop_front();
    }

    /// No more connections are allowed.
    pub(super) fn is_full(&self) -> bool {
        self.connections >= self.most
    }

    /// The life of a slot goes on.
    pub(super) fn note_life(&mut self, before: Life, after: Life) {
        self.connecting += usize::from(after == Life::Opening);
        self.connecting -= usize::from(before == Life::Opening);
        self.connections += usize::from(after.has_connection());
        self.connections -= usize::from(before.has_connection());
    }

    pub(super) fn note_idle(&mut self, slot: IdleSlot) {
        self.idle.push_back(slot);
    }

    /// Takes the slot that has been idle for longest out of the list.
    pub(super) fn take_longest_idle(&mut self) -> Option<IdleSlot> {
        self.idle.pop_front()
    }

    /// Counts the time in the measured window for which slots wait because as many connections as allowed are
    /// being opened. Time since the last call counts only if `counts`.
    pub(super) fn note_held(&mut self, now: Nanos, window: Range<Nanos>, counts: bool) {
        if let Some(since) = self.held_since.take() {
            let (from, to) = (since.max(window.start), now.min(window.end));
            self.held += if counts { to.saturating_sub(from) } else { 0 };
        }
        let is_held = !self.queue.is_empty() && self.connecting >= MAX_CONNECTING;
        self.held_since = is_held.then_some(now);
    }

    pub(super) fn held(&self) -> Nanos {
        self.held
    }

    /// Checks the counts against the lives of all slots.
    #[cfg(test)]
    #[track_caller]
    pub(super) fn check(&self, lives: impl Iterator<Item = (u32, Life)>) {
        let (mut connections, mut connecting, mut queued) = (0, 0, Vec::new());
        for (number, life) in lives {
            connections += usize::from(life.has_connection());
            connecting += usize::from(life == Life::Opening);
            queued.extend((life == Life::Queued).then_some(number));
        }
        let counted = (self.connections, self.connecting);
        assert_eq!(counted, (connections, connecting), "connections, and those being opened");
        assert!(connections <= self.most && connecting <= MAX_CONNECTING, "{counted:?}");
        let mut queue: Vec<u32> = self.queue.iter().copied().collect();
        queue.sort_unstable();
        assert_eq!(queue, queued, "slots to open");
    }
}
