//! The life of the slots: opened, read, closed, lost, opened again.

use dnslab_wire::Transport;

use super::{Worker, opening};
use crate::connection::{self, ConnectionEnd, Delivery, HandshakeKind, Opened};
use crate::connection_slot::{Life, Service};
use crate::recorder::Loss;
use crate::response_matcher::again;
use crate::runtime::{Runtime, Watch};
use crate::time::Nanos;

/// Reads of one connection in one round at most, so that none starves the others.
const READS_PER_ROUND: usize = 16;

/// Connections that one round begins to open. A UDP socket is open at once, but takes some ten system calls.
/// A thousand in a row would delay answers that have come.
const OPENED_PER_ROUND: usize = 64;

/// UDP sockets that are opened before a load begins. It waits for them, some 30 us for each, and hears no interrupt.
const OPENED_EARLY: usize = 1_000;

impl<R: Runtime> Worker<'_, R> {
    /// Does what a slot's socket is ready for, and books what came.
    pub(super) fn advance(&mut self, number: u32) {
        let slot = &mut self.slots[number as usize];
        let before = slot.table.len();
        let (mut end, mut has_looked) = (None, false);
        // Out of the slot while it delivers into it.
        let Some(mut connection) = slot.connection.take() else { return };
        if slot.signed.is_some() {
            self.matcher.read_time_of_day(&self.runtime);
        }
        for _ in 0..READS_PER_ROUND {
            let (matcher, recorder) = (&mut self.matcher, &mut self.recorder);
            let mut deliver = |delivery: Delivery<'_>| {
                has_looked |= !matches!(delivery, Delivery::NotProcessed { .. });
                matcher.receive(slot, recorder, delivery);
            };
            match connection.advance(&self.runtime, &mut self.scratch, &mut deliver) {
                Ok(true) => {}
                Ok(false) => break,
                Err(reason) => {
                    end = Some(reason);
                    break;
                }
            }
        }
        let (opened, timer) = (connection.take_opened(), connection.next_timer());
        slot.connection = Some(connection);
        let ended = before - slot.table.len();
        let now = if ended > 0 { self.runtime.now() } else { 0 };
        self.note_read(number, ended, has_looked, now);
        if let Some(timer) = timer {
            self.arm(number, timer);
        }
        if let Some(opened) = opened {
            self.note_opened(number, &opened);
        }
        if let Some(end) = end {
            self.end_connection(number, &end);
        }
        self.list(number);
        self.list_client_of_retry(number);
    }

    /// Notes that what was read at `now` has ended so many queries of a slot. `has_looked`: the server has looked
    /// at one of them.
    pub(super) fn note_read(&mut self, number: u32, ended: usize, has_looked: bool, now: Nanos) {
        if ended > 0 {
            let slot = &mut self.slots[number as usize];
            slot.active_at = now;
            slot.has_answered = true;
            // Only a server that looks at queries is worth a reconnection without a pause.
            if has_looked {
                let home = self.home(number);
                let home = &mut self.slots[home as usize];
                if home.timed_out_in_a_row > 0 {
                    self.silences.note(now.saturating_sub(home.heard_at), home.timed_out_in_a_row);
                }
                (home.attempts, home.service) = (0, Service::Answered);
                (home.heard_at, home.timed_out_in_a_row) = (now, 0);
            }
        }
        self.unsettled -= ended - self.matcher.again.len();
        self.note_ended(number, ended);
        self.take_up_again(number, now);
    }

    pub(super) fn queue_opening(&mut self, number: u32, now: Nanos) {
        let slot = &mut self.slots[number as usize];
        if slot.life != Life::Closed {
            return;
        }
        if slot.reconnect_at > now {
            let at = slot.reconnect_at;
            if self.shard.attempts.has_choice() {
                self.ask_elsewhere(number, now);
            }
            return self.arm(number, at);
        }
        self.set_life(number, Life::Queued);
        self.opening.queue(number);
    }

    /// Opens slots that wait for it, within three limits: per round, at the same time, and open sockets of
    /// the process. If a client wants to send, the connection that has been idle for longest makes room. If
    /// none is idle, the slot waits until a connection ends.
    pub(super) fn open_queued(&mut self, now: Nanos) {
        let mut left = OPENED_PER_ROUND;
        while left > 0
            && let Some(number) = self.opening.next()
        {
            // What it was to send may have timed out in the meantime.
            let is_wanted = self.wants_connection(number, now);
            if is_wanted && self.opening.is_full() && !self.close_longest_idle(now) {
                self.last_end.get_or_insert_with(|| ConnectionEnd::NoFiles.to_string());
                break;
            }
            self.opening.take_next();
            self.set_life(number, Life::Closed);
            if is_wanted {
                self.open(number, now);
                left -= 1;
            }
        }
    }

    /// Opens the UDP sockets of clients that connect at the start of an open loop, before it begins: what becomes due
    /// while they are opened would leave at once. Those of further clients, and what cannot be opened, are left to
    /// [`Self::run`], and so is a closed loop, which begins with a query for each socket that is open.
    pub fn open_early(&mut self) {
        if !self.query_source.is_open() {
            return;
        }
        for number in 0..self.slots.len().min(OPENED_EARLY) as u32 {
            let is_datagram = self.slots[number as usize].transport == Transport::Udp;
            if !is_datagram || !self.wants_connection(number, 0) {
                continue;
            }
            if !self.opening.is_full() {
                self.open(number, 0);
            }
            if self.slots[number as usize].connection.is_none() {
                break;
            }
        }
    }

    fn open(&mut self, number: u32, now: Nanos) {
        self.set_life(number, Life::Opening);
        let slot = &mut self.slots[number as usize];
        let (shard, job) = (&self.shard, self.shard.job);
        if slot.transport.is_connection() {
            self.recorder.connections(now).attempted += 1;
        }
        let client = shard.client_number(slot.client);
        slot.opened = slot.opened.wrapping_add(1);
        if let Some(quota) = shard.quota {
            let connection = number / shard.clients.max(1);
            slot.quota = quota.draw(job.seed, client, connection, slot.opened);
        }
        let route = shard.route(slot.client, slot.transport, slot.server);
        slot.connecting_since = now;
        slot.active_at = now;
        slot.has_answered = false;
        match connection::open(&mut self.runtime, &route, now) {
            Ok(mut connection) => {
                let (opened, timer) = (connection.take_opened(), connection.next_timer());
                slot.watches_writing = connection.wants_to_write();
                let watch = Watch { writing: slot.watches_writing, again: false };
                if let Err(error) = self.runtime.watch(connection.socket(), number, watch) {
                    return self.end_connection(number, &ConnectionEnd::Connect(error));
                }
                slot.connection = Some(connection);
                slot.table.expect(slot.widest as usize);
                match opened {
                    Some(opened) => self.note_opened(number, &opened),
                    None => self.arm(number, now + self.shard.timeout),
                }
                if let Some(timer) = timer {
                    self.arm(number, timer);
                }
                self.list(number);
            }
            Err(end) => self.end_connection(number, &end),
        }
    }

    fn note_opened(&mut self, number: u32, opened: &Opened) {
        self.list(number);
        self.set_life(number, Life::Opened);
        let now = self.runtime.now();
        // It is idle from here on, however long the handshake was.
        self.slots[number as usize].active_at = now;
        if let Some(connect) = opened.connect {
            self.recorder.connect_time.record_ns(connect);
        }
        if let Some(round_trip) = opened.round_trip {
            self.recorder.note_round_trip(round_trip);
        }
        if opened.connect.is_some() || opened.handshake.is_some() {
            self.recorder.connections(now).opened += 1;
        }
        let Some(handshake) = &opened.handshake else { return };
        let counts = self.recorder.connections(now);
        match handshake.kind {
            HandshakeKind::Full => counts.full_handshakes += 1,
            HandshakeKind::Resumed => counts.resumed_handshakes += 1,
            HandshakeKind::EarlyData => {
                counts.resumed_handshakes += 1;
                counts.early_data += 1;
            }
        }
        self.recorder.handshake_time(handshake.kind).record_ns(handshake.duration);
        self.agreed.get_or_insert_with(|| handshake.agreed.clone());
    }

    fn set_life(&mut self, number: u32, life: Life) {
        let before = std::mem::replace(&mut self.slots[number as usize].life, life);
        self.opening.note_life(before, life);
    }

    /// Closes a connection on which sending has failed. The socket may still hold what the server sent
    /// before, so it is read first.
    pub(super) fn end_after_reading(&mut self, number: u32, end: &ConnectionEnd) {
        self.advance(number);
        // Usually reading has come to the same end.
        if self.slots[number as usize].connection.is_some() {
            self.end_connection(number, end);
        }
    }

    /// Closes a connection that is at its end. Queries in flight on it are lost; unsent ones wait for the
    /// next connection. A connection that was only idle for too long is closed, not lost.
    pub(super) fn end_connection(&mut self, number: u32, end: &ConnectionEnd) {
        let now = self.runtime.now();
        let slot = &self.slots[number as usize];
        let was_new = slot.life == Life::Opening;
        if matches!(end, ConnectionEnd::Idle) && !was_new && slot.table.len() == 0 {
            return self.close(number, now);
        }
        // A server that accepts a connection to close it turns it away, too.
        let was_never_answered = slot.table.len() > 0 && !slot.has_answered;
        // The announcement was counted when the connection became a drain.
        let is_known = slot.drains_for.is_some() && slot.is_draining();
        self.drop_connection(number);
        let slot = &mut self.slots[number as usize];
        if slot.transport.is_connection() {
            let counts = self.recorder.connections(now);
            if was_new {
                counts.failed += 1;
            } else {
                counts.lost += 1;
            }
            if end.is_refusal() && (was_new || was_never_answered) {
                counts.refused += 1;
            }
        }
        let (matcher, recorder) = (&mut self.matcher, &mut self.recorder);
        let (mut ended, mut lost) = (0, 0);
        slot.table.drain(|entry| {
            ended += 1;
            lost += usize::from(matcher.fail(recorder, &again(&entry), now, Loss::ConnectionLost));
        });
        slot.table.release();
        self.unsettled -= lost;
        self.close_places(number, ended);
        self.note_ended(number, ended);
        self.take_up_again(number, now);
        if was_new && self.shard.attempts.has_choice() {
            self.ask_elsewhere(number, now);
        }
        if !is_known {
            self.back_off(number, now);
        }
        self.last_end = Some(end.to_string());
        self.list(number);
        self.list_client_of_retry(number);
    }

    /// Has the next server asked what waits for a connection that did not come about. What has no attempt left
    /// goes on waiting.
    fn ask_elsewhere(&mut self, number: u32, now: Nanos) {
        let waiting = std::mem::take(&mut self.slots[number as usize].pending);
        for pending in waiting {
            match self.shard.attempts.has_next(pending.attempt) && pending.due.is_some() {
                true => self.matcher.fail(&mut self.recorder, &pending, now, Loss::ConnectionLost),
                false => {
                    self.slots[number as usize].pending.push_back(pending);
                    true
                }
            };
        }
        self.take_up_again(number, now);
    }

    /// Sets when the slot may be opened again after the server has ended its connection: at once if the
    /// server has answered since the last time.
    pub(super) fn back_off(&mut self, number: u32, now: Nanos) {
        let home = self.home(number);
        let slot = &mut self.slots[home as usize];
        slot.reconnect_at = now + opening::pause_after(slot.attempts);
        slot.attempts += 1;
    }

    /// Closes a slot in good order, without queries in flight: by its client's habit, or because the server
    /// has announced its end.
    pub(super) fn close(&mut self, number: u32, now: Nanos) {
        let slot = &mut self.slots[number as usize];
        let is_connection = slot.transport.is_connection();
        let was_new = slot.life == Life::Opening;
        let is_drain = slot.drains_for.is_some();
        let draining = slot.connection.as_ref().filter(|connection| connection.is_draining());
        let by_server = draining.and_then(|connection| connection.why_draining().by_server());
        if let Some(connection) = &mut slot.connection {
            connection.close(now, &mut self.scratch);
        }
        self.drop_connection(number);
        if is_connection {
            let counts = self.recorder.connections(now);
            if was_new {
                // It carried only early data, so it never was more than an attempt.
                counts.failed += 1;
            } else if by_server.is_some() {
                counts.lost += 1;
            } else {
                counts.closed += 1;
            }
        }
        if let Some(why) = by_server {
            self.last_end = Some(why);
            if !is_drain {
                self.back_off(number, now);
            }
        }
        self.slots[number as usize].table.release();
        self.list(number);
    }

    /// Says good-bye on all connections when the load is over. A server that is not told keeps them until
    /// they have been idle for too long, and they count against its limits.
    pub(super) fn say_good_bye(&mut self) {
        let now = self.runtime.now();
        for connection in self.slots.iter_mut().filter_map(|slot| slot.connection.as_mut()) {
            connection.close(now, &mut self.scratch);
        }
    }

    fn drop_connection(&mut self, number: u32) {
        self.set_life(number, Life::Closed);
        let slot = &mut self.slots[number as usize];
        if let Some(connection) = slot.connection.take() {
            slot.drops += connection.drops();
            // Dropping it closes the descriptor, which takes it out of epoll.
            if slot.drains_for.is_some() {
                self.detours.free_drain(number);
            }
        }
        slot.window = 0;
        slot.sent = 0;
        slot.server_idle = Nanos::MAX;
        slot.signed = None;
    }

    /// Asks epoll for writability only while something waits for it.
    pub(super) fn watch(&mut self, number: u32) {
        let slot = &mut self.slots[number as usize];
        let Some(connection) = &slot.connection else { return };
        let (writing, timer) = (connection.wants_to_write(), connection.next_timer());
        if writing != slot.watches_writing {
            slot.watches_writing = writing;
            self.register_again(number);
        }
        if let Some(timer) = timer {
            self.arm(number, timer);
        }
    }

    /// Tells epoll what a slot's connection waits for, and whose it is.
    pub(super) fn register_again(&mut self, number: u32) {
        let slot = &self.slots[number as usize];
        let Some(connection) = &slot.connection else { return };
        let watch = Watch { writing: slot.watches_writing, again: true };
        let watched = self.runtime.watch(connection.socket(), number, watch);
        watched.expect("the socket is open and watched");
    }

    pub(super) fn note_open_at_end(&mut self) {
        for client in 0..self.clients() {
            let number = self.first_slot(client);
            self.slots[number as usize].note_end();
        }
    }

    /// Clients that were connected at the end of the measured window and, if they had asked, had an answer.
    /// Called when all queries have their outcome.
    pub(super) fn served_clients(&self) -> u32 {
        self.first_slots().filter(|slot| slot.was_served()).count() as u32
    }

    /// Clients that the server never answered, or no longer. They had no answer for at least three time-outs,
    /// and for twice as long as any client that was answered again had to wait. And their timed-out queries
    /// are no accident.
    ///
    /// One time-out alone says nothing. In a closed loop a lost query keeps its place for that long, so at
    /// any instant the last query of most clients may be lost. Two time-outs may come from a socket buffer
    /// that is too small for the window: the places come back all at once and overflow it again.
    pub(super) fn forsaken_clients(&self) -> u32 {
        let lost = self.recorder.lost_share();
        let by_chance = self.silences.in_a_row_by_chance(lost, self.clients());
        let least = (3 * self.shard.timeout).max(2 * self.silences.longest());
        self.first_slots().filter(|slot| slot.is_forsaken(by_chance, least)).count() as u32
    }

    /// Counts the time for which slots waited since the last round.
    pub(super) fn note_held(&mut self, now: Nanos) {
        let window = self.shard.phases.measured_from..self.until;
        self.opening.note_held(now, window, self.turns.has_turn());
    }
}
