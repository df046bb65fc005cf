//! From what is due to what is sent.

use dnslab_traffic::ClientQuery;
use dnslab_wire::Transport;

use super::Worker;
use super::batching::{put_by_end, put_by_length};
use super::detours::Detour;
use crate::connection::ConnectionEnd;
use crate::connection_slot::{Life, Pending, SlotKind};
use crate::in_flight::Entry;
use crate::query_source::QuerySource;
use crate::recorder::{Loss, Recorder};
use crate::replay::Queries;
use crate::runtime::Runtime;
use crate::time::Nanos;

/// Messages in one batch at most, whatever the connection would take.
const BATCH_LIMIT: usize = 512;

/// Places by which a slot's window opens in one round of the loop. An answer frees its place at once. A place
/// that was never open, or whose query timed out, opens in these steps. Otherwise the whole window would go
/// out as one burst at the start and one time-out after a loss, overflow a socket buffer, and do so again.
const STEP: u32 = 8;

/// Queries that a worker takes up at most before it looks after its sockets again. One that falls behind would else send
/// all that is due at once, whose answers do not fit into its socket buffers, and fall further behind: of 150,000 queries per
/// second 19,000 were answered, and 123,000 with this bound, on one AMD core.
const MAX_AT_ONCE: u32 = 512;

/// Queries without an outcome at most. Further ones wait in the schedule, where they take no memory. No worker sends as
/// many within a time-out.
const MAX_UNSETTLED: usize = 1 << 22;

impl<R: Runtime> Worker<'_, R> {
    /// Takes what the schedule has made due.
    pub(super) fn take_arrivals(&mut self, now: Nanos) {
        let last = now.min(self.until.saturating_sub(1));
        if let QuerySource::Clients { .. } = self.query_source {
            return self.take_up(last, now);
        }
        let (mut taken, waits_again) = (0, self.shard.attempts.has_next(0));
        while self.may_take(taken)
            && let QuerySource::Open { arrivals } = &mut self.query_source
            && let Some(arrival) = arrivals.next_until(last)
        {
            taken += 1;
            self.left -= 1;
            let due = Some(arrival.due_ns);
            self.recorder.due(arrival.due_ns);
            self.unsettled += 1;
            if self.matcher.is_mixed {
                let transport = self.slots[arrival.client as usize].transport;
                self.recorder.due_over(arrival.due_ns, transport);
            }
            let number = self.slot_for_first_attempt(arrival.client);
            let query = match &mut self.matcher.queries {
                Queries::List(_) => arrival.query,
                Queries::Recent(recent) => {
                    let query = self.shard.job.queries.get(arrival.query);
                    if let Some(transcript) = &mut self.recorder.transcript {
                        let client = self.shard.client_number(arrival.client);
                        transcript.take_up(arrival.client, client, query);
                    }
                    recent.keep(now, query.clone())
                }
            };
            if waits_again {
                self.put_waiting(number, Pending::new(due, query));
            } else {
                self.slots[number as usize].pending.push_back(Pending::new(due, query));
            }
            let slot = &mut self.slots[number as usize];
            if !slot.listed {
                slot.listed = true;
                self.listed.push(number);
            }
        }
        if taken == MAX_AT_ONCE || self.unsettled >= MAX_UNSETTLED {
            self.pass_over_late(now);
        }
    }

    #[inline]
    fn may_take(&self, taken: u32) -> bool {
        self.left > 0 && taken < MAX_AT_ONCE && self.unsettled < MAX_UNSETTLED
    }

    /// Gives up what is still in the schedule although its client would not wait for it any more.
    #[cold]
    fn pass_over_late(&mut self, now: Nanos) {
        let late = now.saturating_sub(self.shard.attempts.patience()).min(self.until);
        // What each query is told is kept by its place.
        if self.recorder.transcript.is_none() {
            self.pass_over(late, |recorder, due, count| recorder.never_sent(due, now, count));
        }
    }

    /// Takes what is due before `until` out of the schedule, and counts it by milliseconds.
    fn pass_over(&mut self, until: Nanos, count: impl Fn(&mut Recorder, Nanos, u64)) {
        const MILLISECOND: Nanos = 1_000_000;
        while self.left > 0
            && let QuerySource::Open { arrivals } = &mut self.query_source
            && let Some(due) = arrivals.next_due().filter(|due| *due < until)
        {
            let edge = (due / MILLISECOND + 1) * MILLISECOND;
            let edge = if due < self.recorder.measured_from() {
                edge.min(self.recorder.measured_from())
            } else {
                edge
            };
            let from = arrivals.next_client();
            let passed = arrivals.skip_until(edge.min(until)).min(self.left);
            self.left -= passed;
            count(&mut self.recorder, due, passed);
            if self.matcher.is_mixed {
                self.count_over_transports(due, from, passed);
            }
        }
    }

    /// So many queries of clients became due, in turn from this client on.
    fn count_over_transports(&mut self, due: Nanos, from: u32, queries: u64) {
        let clients = u32::try_from(self.regular).unwrap_or(u32::MAX).max(1);
        for place in 0..clients {
            let client = (u64::from(from) + u64::from(place)) % u64::from(clients);
            let own = queries / u64::from(clients)
                + u64::from(u64::from(place) < queries % u64::from(clients));
            let transport = self.slots[client as usize].transport;
            self.recorder.due_over_many(due, transport, own);
        }
    }

    /// Counts what has no outcome when a load that was left early ends.
    pub(super) fn leave_unsettled(&mut self) {
        let mut left: Vec<(Nanos, u32)> = Vec::new();
        for (number, slot) in (0..).zip(&mut self.slots) {
            slot.table.drain(|entry| left.push((entry.due, number)));
            left.extend(slot.pending.drain(..).filter_map(|pending| Some((pending.due?, number))));
        }
        for (due, number) in left {
            self.recorder.interrupted(due, 1);
            if self.matcher.is_mixed {
                let home = self.home(number);
                self.recorder.interrupted_over(due, self.slots[home as usize].transport);
            }
        }
        self.unsettled = 0;
        self.pass_over(self.until, |recorder, due, count| recorder.interrupted_in_all(due, count));
    }

    /// Takes up what clients with queries of their own have to send until `last`.
    fn take_up(&mut self, last: Nanos, now: Nanos) {
        let mut taken = 0;
        // What each query is told, and over what, is kept by its place.
        let passes_over = self.recorder.transcript.is_none() && !self.matcher.is_mixed;
        let too_late = now.saturating_sub(self.shard.attempts.patience());
        while self.may_take(taken)
            && let QuerySource::Clients { upcoming } = &mut self.query_source
            && let Some(ClientQuery { due_ns, client, query }) = upcoming.next_if_due(last)
            && let Queries::Recent(recent) = &mut self.matcher.queries
        {
            taken += 1;
            // Its client does not wait for it any more.
            if due_ns < too_late && passes_over {
                self.left -= 1;
                self.recorder.never_sent(due_ns, now, 1);
                self.recorder.taken_up(due_ns, now);
                continue;
            }
            if let Some(transcript) = &mut self.recorder.transcript {
                transcript.take_up(client / self.shard.workers, client, &query);
            }
            let query = recent.keep(now, query);
            let number = self.slot_of_comer(client / self.shard.workers);
            self.left -= 1;
            self.recorder.due(due_ns);
            self.recorder.taken_up(due_ns, now);
            self.unsettled += 1;
            let pending = Pending::new(Some(due_ns), query);
            let slot = &mut self.slots[number as usize];
            if self.matcher.is_mixed {
                self.recorder.due_over(due_ns, slot.transport);
            }
            if !std::mem::replace(&mut slot.has_come, true) {
                self.comers.note_asker();
            }
            let number = self.slot_for_first_attempt(number);
            self.put_waiting(number, pending);
            self.list(number);
        }
    }

    /// Opens, fills, sends and closes where something changed.
    pub(super) fn look_after_listed(&mut self, now: Nanos) {
        let mut listed = std::mem::take(&mut self.listed);
        for number in listed.drain(..) {
            self.slots[number as usize].listed = false;
            self.fill_window(number, now);
            self.send_pending(number);
            self.rest(number, now);
        }
        // The list keeps its memory and what was listed in the meantime.
        listed.append(&mut self.listed);
        self.listed = listed;
    }

    /// Closed loop: fills the slot's window. A query becomes due when it is sent. What is not sent before the
    /// measured window ends never becomes due.
    fn fill_window(&mut self, number: u32, now: Nanos) {
        if !matches!(self.query_source, QuerySource::Closed { .. }) {
            return;
        }
        let has_turn = self.shard.has_turn(now);
        let slot = &mut self.slots[number as usize];
        if now >= self.until || !has_turn {
            slot.pending.retain(|pending| pending.due.is_some());
            return;
        }
        if slot.widest == 0 || !slot.is_open() {
            return;
        }
        slot.window = (slot.window + STEP).min(slot.widest);
        let missing = (slot.window as usize).saturating_sub(slot.outstanding());
        let missing = match self.matcher.retries_over_tcp {
            true => missing.min(self.free_places_of_client(number)),
            false => missing,
        };
        let QuerySource::Closed { picker } = &mut self.query_source else { return };
        let slot = &mut self.slots[number as usize];
        let missing = missing.min(usize::try_from(self.left).unwrap_or(usize::MAX));
        self.left -= missing as u64;
        for _ in 0..missing {
            slot.pending.push_back(Pending::new(None, picker.next_query()));
        }
        if slot.window < slot.widest {
            self.list(number);
        }
    }

    /// Free places in the window of a slot's client, after the queries on all slots that share the window and
    /// on the slot for asking again over TCP.
    fn free_places_of_client(&self, number: u32) -> usize {
        let (client, clients) = (self.slots[number as usize].client, self.shard.clients as usize);
        let (mut widest, mut outstanding) = (0, 0);
        let usual = self.slots[..self.regular].iter().skip(client as usize).step_by(clients);
        let retry = self.detours.slot(Detour { client, server: 0, over_tcp: true });
        let retry = retry.map(|retry| &self.slots[retry as usize]);
        for slot in usual.chain(retry) {
            widest += slot.widest as usize;
            outstanding += slot.outstanding();
        }
        widest.saturating_sub(outstanding)
    }

    /// Sends what the slot has pending, in batches, as far as its connection takes it.
    fn send_pending(&mut self, number: u32) {
        if self.slots[number as usize].life == Life::Shared {
            return self.send_shared(number);
        }
        while self.may_send(number) {
            match self.send_batch(number) {
                Ok(true) => {}
                Ok(false) => break,
                Err(end) => {
                    self.end_after_reading(number, &end);
                    break;
                }
            }
        }
        let unsent = self.slots[number as usize].pending.front();
        if let Some(end) = unsent.and_then(|pending| pending.end_of_wait(&self.shard.attempts)) {
            self.arm(number, end);
        }
        self.watch(number);
    }

    #[inline]
    fn may_send(&self, number: u32) -> bool {
        let slot = &self.slots[number as usize];
        !slot.pending.is_empty() && !self.has_had_its_share(number) && slot.is_open()
    }

    /// The connection has carried all queries that it may: the client's quota is used up, or the server wants
    /// it closed (an idle time of zero, RFC 7828, section 3.2.2).
    #[inline]
    fn has_had_its_share(&self, number: u32) -> bool {
        let slot = &self.slots[number as usize];
        slot.sent >= slot.quota || slot.server_idle == 0
    }

    /// True if the connection took all of the batch.
    fn send_batch(&mut self, number: u32) -> Result<bool, ConnectionEnd> {
        let sent = self.runtime.now();
        let has_turn = self.shard.has_turn(sent);
        let slot = &mut self.slots[number as usize];
        if sent >= self.until || !has_turn {
            // A round may last beyond the end of the window or of a turn. What would be due when it is sent
            // is not due any more then.
            slot.pending.retain(|pending| pending.due.is_some());
        }
        let connection = slot.connection.as_mut().expect("the connection was found open");
        let quota = (slot.quota - slot.sent) as usize;
        let limit = connection.batch_limit().min(BATCH_LIMIT).min(quota).min(slot.pending.len());
        if limit == 0 {
            return Ok(slot.pending.is_empty());
        }
        let mut ids = [0u16; BATCH_LIMIT];
        let is_grouped = self.group(number, limit);
        if self.shard.job.settings.tsig.is_some() {
            self.matcher.read_time_of_day(&self.runtime);
        }
        let offered = self.fill_outbox(number, sent, &mut ids[..limit]);
        // Signing a batch takes time, which is not the server's.
        let sent = match &self.shard.job.settings.tsig {
            Some(_) => self.stamp_again(number, &ids[..offered]),
            None => sent,
        };
        let slot = &mut self.slots[number as usize];
        if offered == 0 {
            // All 65,536 ids of this socket are in flight: nothing that waits can be sent.
            for pending in std::mem::take(&mut slot.pending) {
                self.give_up(number, pending, sent);
            }
            return Ok(true);
        }
        let connection = slot.connection.as_mut().expect("the connection was found open");
        let result = connection.send(&self.runtime, &self.outbox.messages, &mut self.scratch);
        let taken = *result.as_ref().unwrap_or(&0);
        for id in &ids[taken..offered] {
            slot.table.take_back(*id);
            slot.forget_signature(*id);
        }
        self.book_sent(number, sent, taken);
        if is_grouped && taken < limit {
            // The first that waits is the first to be given up.
            let pending = &mut self.slots[number as usize].pending;
            let waiting = &mut pending.make_contiguous()[..limit - taken];
            put_by_end(waiting, &self.shard.attempts);
        }
        result.map(|taken| taken == offered)
    }

    /// Sorts the first `count` waiting queries by length, if that makes groups; returns whether it did.
    /// Neighbours of one length can go as one segmented datagram. All of them are due, so nothing moves by
    /// more than this batch. While a socket is blocked the order stays, so that no length waits for ever.
    fn group(&mut self, number: u32, count: usize) -> bool {
        let slot = &mut self.slots[number as usize];
        let in_groups = slot.transport == Transport::Udp && self.batching.sorts_by_length();
        if !in_groups || count < 2 || slot.watches_writing {
            return false;
        }
        let queries = &self.matcher.queries;
        let length = |query| queries.get(query).octets().len();
        put_by_length(&mut slot.pending.make_contiguous()[..count], length);
        true
    }

    /// Puts the first waiting queries into the outbox, each with an id of its own. Returns how many.
    fn fill_outbox(&mut self, number: u32, sent: Nanos, ids: &mut [u16]) -> usize {
        let slot = &mut self.slots[number as usize];
        let queries = &self.matcher.queries;
        let subnet = self.shard.subnet_of(slot.client);
        let cookie = self.matcher.cookies.get(slot.client as usize);
        let additions = self.shard.additions(slot.transport, cookie, subnet.as_ref());
        self.outbox.messages.clear();
        let mut offered = 0;
        for (pending, id) in slot.pending.iter().zip(ids) {
            let Pending { due, query, sent_before, attempt } = *pending;
            let entry = Entry { due: due.unwrap_or(sent), sent, query, sent_before, attempt };
            let Some(free) = slot.table.insert(entry) else { break };
            *id = free;
            let unix_ns = self.matcher.origin_unix_ns + sent;
            let query = queries.get(query);
            let outbox = &mut self.outbox;
            if let Some(signed) = self.shard.push_query(query, free, &additions, unix_ns, outbox) {
                slot.signed.get_or_insert_default().insert(free, signed);
            }
            offered += 1;
        }
        offered
    }

    /// Sets the instant at which the first waiting queries, with these ids, are sent to now. In a closed loop
    /// they are also due now, but not after the end of the window.
    fn stamp_again(&mut self, number: u32, ids: &[u16]) -> Nanos {
        let now = self.runtime.now();
        let sent = match self.query_source {
            QuerySource::Closed { .. } => now.min(self.until.saturating_sub(1)),
            QuerySource::Open { .. } | QuerySource::Clients { .. } => now,
        };
        let slot = &mut self.slots[number as usize];
        for (pending, id) in slot.pending.iter().zip(ids) {
            slot.table.stamp_again(*id, pending.due.unwrap_or(sent), sent);
        }
        sent
    }

    /// Books the first `taken` waiting queries as sent.
    fn book_sent(&mut self, number: u32, sent: Nanos, taken: usize) {
        if taken == 0 {
            return;
        }
        let slot = &mut self.slots[number as usize];
        slot.note_sent(sent, taken, self.query_source.is_open());
        let transport = slot.transport;
        for (pending, octets) in slot.pending.drain(..taken).zip(self.outbox.messages.lengths()) {
            if pending.due.is_none() {
                self.recorder.due(sent);
                if self.matcher.is_mixed {
                    self.recorder.due_over(sent, transport);
                }
                self.unsettled += 1;
            }
            let first = pending.sent_before == 0;
            self.recorder.sent(pending.due.unwrap_or(sent), sent, octets, first);
        }
        if self.shard.attempts.has_choice() {
            let server = self.slots[number as usize].server;
            self.recorder.sent_to(server, sent, taken);
        }
        self.arm(number, sent + self.shard.timeout);
    }

    /// Books a query that will not be sent in this attempt, if it was due.
    pub(super) fn give_up(&mut self, number: u32, pending: Pending, now: Nanos) {
        if pending.due.is_some() {
            // One that waits to be asked again was sent.
            let loss = if pending.sent_before == 0 { Loss::NotSent } else { Loss::TimedOut };
            let is_over = self.matcher.fail(&mut self.recorder, &pending, now, loss);
            self.unsettled -= usize::from(is_over);
            self.take_up_again(number, now);
        }
    }

    /// What a slot does after sending: it closes at the end of its quota or because the server has announced
    /// its end, or it is opened, or it is idle.
    fn rest(&mut self, number: u32, now: Nanos) {
        let slot = &self.slots[number as usize];
        if slot.drains_for.is_some() {
            return self.rest_drain(number, now);
        }
        let is_over = slot.is_draining() || self.has_had_its_share(number) && slot.is_open();
        match (is_over, slot.table.len()) {
            (true, 0) => self.close(number, now),
            (true, _) => self.drain(number, now),
            (false, _) => {}
        }
        let slot = &self.slots[number as usize];
        if slot.connection.is_some() {
            self.note_idle(number);
        } else if self.wants_connection(number, now) {
            self.queue_opening(number, now);
        }
    }

    /// Whether a slot without a connection is to have one: it has something to send, or its client keeps it
    /// open.
    pub(super) fn wants_connection(&self, number: u32, now: Nanos) -> bool {
        let slot = &self.slots[number as usize];
        let sends_at_once = slot.widest > 0;
        let is_first = self.shard.opens_at_start && slot.opened == 0;
        let keeps_open = (self.shard.keeps_open || is_first) && slot.kind == SlotKind::Usual;
        let wants = !slot.pending.is_empty() || (now < self.until && (sends_at_once || keeps_open));
        wants && slot.life != Life::Shared
    }
}
