//! What happens because time has passed: time-outs, connections' timers, idle slots.

use super::Worker;
use super::alarm_queue::Alarm;
use super::opening::IdleSlot;
use crate::connection::ConnectionEnd;
use crate::connection_slot::Life;
use crate::recorder::Loss;
use crate::response_matcher::again;
use crate::runtime::Runtime;
use crate::time::Nanos;
use dnslab_settings::ReceiveTime;

impl<R: Runtime> Worker<'_, R> {
    /// Looks after a slot at `at` at the latest. A slot has one alarm for everything that it waits for. When
    /// the alarm goes off, later times are found again.
    #[inline]
    pub(super) fn arm(&mut self, number: u32, at: Nanos) {
        let slot = &mut self.slots[number as usize];
        if at < slot.alarm {
            slot.alarm = at;
            self.alarms.set(Alarm { at, slot: number });
        }
    }

    pub(super) fn serve_alarms(&mut self, now: Nanos) {
        while let Some(Alarm { at, slot: number }) = self.alarms.take_due(now) {
            // An earlier alarm took this one's place.
            if self.slots[number as usize].alarm == at {
                self.slots[number as usize].alarm = Nanos::MAX;
                self.look_at_the_time(number, now);
            }
        }
    }

    /// Gives up what has waited for the time-out, sends what a connection's timer wants sent, and arms the
    /// next alarm.
    fn look_at_the_time(&mut self, number: u32, now: Nanos) {
        let timeout = self.shard.timeout;
        if self.is_attempt_late(number, now) || self.may_have_come_in_time(number, now) {
            // This thread may have been away from its CPU, so what the slot waits for may be there.
            let slot = &self.slots[number as usize];
            match slot.life {
                Life::Shared => self.advance_shared(slot.server),
                _ => self.advance(number),
            }
        }
        if self.is_attempt_late(number, now) {
            // A lost SYN would keep its client away for seconds without a word. Queries that went as early
            // data end with the attempt.
            if let Some(connection) = &mut self.slots[number as usize].connection {
                // Over QUIC the server may have taken the connection for open.
                connection.close(now, &mut self.scratch);
            }
            let error = std::io::Error::from(std::io::ErrorKind::TimedOut);
            self.end_connection(number, &ConnectionEnd::Connect(error));
        }
        let next = self.expire(number, now);
        self.give_up_unsent(number, now);
        let timer = self.timer_of(number);
        if timer.is_some_and(|at| at <= now) {
            self.advance(number);
        }
        let slot = &self.slots[number as usize];
        let connecting = (slot.life == Life::Opening).then(|| slot.connecting_since + timeout);
        let unsent =
            slot.pending.front().and_then(|pending| pending.end_of_wait(&self.shard.attempts));
        let sent = next.filter(|_| slot.table.len() > 0);
        let timer = self.timer_of(number);
        let idle = self.idle_end(number);
        if idle.is_some_and(|end| end <= now) {
            self.close(number, now);
        }
        let idle = idle.filter(|end| *end > now);
        for at in [connecting, sent, unsent, timer, idle].into_iter().flatten() {
            // If a timer is overdue all the same, the next round serves it.
            self.arm(number, at.max(now + 1));
        }
        self.list(number);
        self.list_client_of_retry(number);
    }

    fn is_attempt_late(&self, number: u32, now: Nanos) -> bool {
        let slot = &self.slots[number as usize];
        slot.life == Life::Opening && slot.connecting_since + self.shard.timeout <= now
    }

    /// A query in flight has waited for the time-out. But the kernel's clock counts, and the kernel may have
    /// had its answer in time.
    fn may_have_come_in_time(&mut self, number: u32, now: Nanos) -> bool {
        if self.shard.job.settings.receive_time == ReceiveTime::User {
            return false;
        }
        let table = &mut self.slots[number as usize].table;
        let next = table.expire(None, &self.shard.attempts, |_, _| {});
        next.is_some_and(|end| end <= now)
    }

    fn timer_of(&self, number: u32) -> Option<Nanos> {
        self.slots[number as usize]
            .connection
            .as_ref()
            .and_then(|connection| connection.next_timer())
    }

    /// Ends the queries in flight that have waited for the time-out. Returns when the next of the others has
    /// waited for it.
    fn expire(&mut self, number: u32, now: Nanos) -> Option<Nanos> {
        let slot = &mut self.slots[number as usize];
        let (recorder, matcher) = (&mut self.recorder, &mut self.matcher);
        let (table, connection, signed) = (&mut slot.table, &mut slot.connection, &mut slot.signed);
        let (mut expired, mut lost) = (0, 0);
        let next = table.expire(Some(now), &self.shard.attempts, |id, entry| {
            expired += 1;
            if let Some(connection) = connection {
                connection.forget(now, id);
            }
            if let Some(signed) = signed {
                signed.remove(&id);
            }
            lost += usize::from(matcher.fail(recorder, &again(&entry), now, Loss::TimedOut));
        });
        if expired > 0 {
            self.unsettled -= lost;
            let home = self.home(number);
            let home = &mut self.slots[home as usize];
            home.timed_out_in_a_row = home.timed_out_in_a_row.saturating_add(lost as u32);
            home.timed_out_at = now;
            self.close_places(number, expired);
            self.note_ended(number, expired);
            self.take_up_again(number, now);
        }
        next
    }

    /// Gives up queries that have waited for the time-out without being sent.
    fn give_up_unsent(&mut self, number: u32, now: Nanos) {
        while let Some(pending) = self.slots[number as usize].pending.front().copied()
            && pending.end_of_wait(&self.shard.attempts).is_some_and(|end| end <= now)
        {
            self.slots[number as usize].pending.pop_front();
            self.give_up(number, pending, now);
        }
    }

    /// `None` if the slot is not idle, or is never closed for being idle.
    fn idle_end(&self, number: u32) -> Option<Nanos> {
        let slot = &self.slots[number as usize];
        let limit = slot.longest_idle(self.shard.idle);
        let is_idle = slot.life == Life::Opened && slot.is_open() && slot.is_idle();
        (is_idle && limit < Nanos::MAX).then(|| slot.active_at.saturating_add(limit))
    }

    /// Notes that a slot is idle, if idle slots of its kind are closed.
    pub(super) fn note_idle(&mut self, number: u32) {
        let Some(end) = self.idle_end(number) else { return };
        self.arm(number, end);
        let slot = &mut self.slots[number as usize];
        if !slot.idle_listed {
            slot.idle_listed = true;
            self.opening.note_idle(IdleSlot { number, since: slot.active_at });
        }
    }

    /// False if none is idle.
    pub(super) fn close_longest_idle(&mut self, now: Nanos) -> bool {
        while let Some(IdleSlot { number, since }) = self.opening.take_longest_idle() {
            self.slots[number as usize].idle_listed = false;
            if self.idle_end(number).is_none() {
                continue;
            }
            if self.slots[number as usize].active_at == since {
                self.close(number, now);
                return true;
            }
            // It was busy in the meantime.
            self.note_idle(number);
        }
        false
    }
}
