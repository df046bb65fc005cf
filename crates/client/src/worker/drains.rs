//! Connections that take no more queries and wait for their last answers.
//!
//! A client that may send no more on a connection goes on with a new one, even if answers are still to come
//! on the old one. Otherwise one lost datagram would keep it from sending for a whole time-out. The old
//! connection moves with its table of queries in flight into a slot of its own, a drain. Nothing is sent on a
//! drain, and it closes when its last query has its outcome. In the lists, in epoll and among the alarms it
//! is like any other slot.

use super::Worker;
use crate::connection_slot::ConnectionSlot;
use crate::runtime::Runtime;
use crate::time::Nanos;

impl<R: Runtime> Worker<'_, R> {
    /// The slot that a slot's queries belong to: itself, or for a drain the slot that it drains for.
    #[inline]
    pub(super) fn home(&self, number: u32) -> u32 {
        self.slots[number as usize].drains_for.unwrap_or(number)
    }

    /// Moves a slot's connection, with the queries in flight on it, to a drain. The slot then has no
    /// connection.
    pub(super) fn drain(&mut self, number: u32, now: Nanos) {
        let drain = self.free_drain(number);
        let [slot, drained] = self
            .slots
            .get_disjoint_mut([number as usize, drain as usize])
            .expect("a drain is another slot than its own");
        let (is_draining, alarm) = (slot.is_draining(), slot.alarm);
        slot.hand_over_to(drained);
        if is_draining {
            self.back_off(number, now);
        }
        self.register_again(drain);
        // Nothing on the connection needs attention before the slot itself did. If the drain still has an
        // earlier alarm of its last connection, that alarm finds this one.
        self.arm(drain, alarm);
    }

    /// A slot without a connection, to drain that of `number`.
    fn free_drain(&mut self, number: u32) -> u32 {
        let drain = self.detours.take_drain().unwrap_or_else(|| {
            let ConnectionSlot { client, transport, .. } = self.slots[number as usize];
            self.slots.push(ConnectionSlot::new(client, transport, 0));
            self.slots.len() as u32 - 1
        });
        self.slots[drain as usize].drains_for = Some(number);
        drain
    }

    /// Notes that `ended` queries in flight on a slot have their outcome. If the slot is a drain, this frees
    /// their places in the window of the slot that it drains for.
    #[inline]
    pub(super) fn note_ended(&mut self, number: u32, ended: usize) {
        if ended > 0
            && let Some(home) = self.slots[number as usize].drains_for
        {
            self.slots[home as usize].on_drains -= ended as u32;
            self.list(home);
        }
    }

    /// Closes window places whose queries ended without an answer. They open again step by step. The window
    /// is that of the slot that the queries belong to.
    pub(super) fn close_places(&mut self, number: u32, count: usize) {
        let home = self.home(number);
        let window = &mut self.slots[home as usize].window;
        *window = window.saturating_sub(count as u32);
    }

    pub(super) fn rest_drain(&mut self, number: u32, now: Nanos) {
        let slot = &self.slots[number as usize];
        if slot.connection.is_some() && slot.table.len() == 0 {
            self.close(number, now);
        }
    }
}
