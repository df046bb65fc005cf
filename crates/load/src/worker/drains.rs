//! Channels that take no more queries, and wait for the answers to their last.
//!
//! A client that may send no more on a connection sends on a new one, whatever the old one still
//! owes it: else one lost datagram would keep it from sending for a whole time-out. The old channel
//! moves with its table of queries in flight into a lane of its own, which nothing is sent on, and
//! which closes when the last of them has its outcome. Its place in the lists, in epoll and among
//! the alarms is that of any lane.

use super::Worker;
use crate::clock::Nanos;
use crate::lane::Lane;
use crate::runtime::Runtime;

impl<R: Runtime> Worker<'_, R> {
    /// The lane that a lane's queries belong to: itself, or the one whose channel it drains.
    #[inline]
    pub(super) fn home(&self, number: u32) -> u32 {
        self.lanes[number as usize].drains_for.unwrap_or(number)
    }

    /// Moves a lane's channel, with what is in flight on it, to a drain; the lane is then without a
    /// channel.
    pub(super) fn drain(&mut self, number: u32, now: Nanos) {
        let drain = self.free_drain(number);
        let [lane, drained] = self
            .lanes
            .get_disjoint_mut([number as usize, drain as usize])
            .expect("a drain is another lane than its own");
        let (is_draining, alarm) = (lane.is_draining(), lane.alarm);
        lane.hand_over_to(drained);
        if is_draining {
            self.back_off(number, now);
        }
        self.register_again(drain);
        // Nothing on the channel is to be looked after before the lane itself was. An alarm that the
        // drain has from its last channel goes off sooner, and finds this one.
        self.arm(drain, alarm);
    }

    /// A lane without a channel, to drain that of `number`.
    fn free_drain(&mut self, number: u32) -> u32 {
        let drain = self.free_drains.pop().unwrap_or_else(|| {
            let Lane { client, transport, .. } = self.lanes[number as usize];
            self.lanes.push(Lane::new(client, transport, 0));
            self.lanes.len() as u32 - 1
        });
        self.lanes[drain as usize].drains_for = Some(number);
        drain
    }

    /// Notes that so many queries in flight on a lane have their outcome: if it is a drain, their
    /// places in the window of the lane that it drains for are free.
    #[inline]
    pub(super) fn note_ended(&mut self, number: u32, ended: usize) {
        if ended > 0
            && let Some(home) = self.lanes[number as usize].drains_for
        {
            self.lanes[home as usize].on_drains -= ended as u32;
            self.list(home);
        }
    }

    /// Closes places of a window that are free because the queries in them ended without an answer:
    /// they open again step by step. The window is that of the lane which they belong to.
    pub(super) fn close_places(&mut self, number: u32, count: usize) {
        let home = self.home(number);
        let window = &mut self.lanes[home as usize].window;
        *window = window.saturating_sub(count as u32);
    }

    /// Closes a drain that nothing is in flight on.
    pub(super) fn rest_drain(&mut self, number: u32, now: Nanos) {
        let lane = &self.lanes[number as usize];
        if lane.channel.is_some() && lane.table.len() == 0 {
            self.close(number, now);
        }
    }
}
