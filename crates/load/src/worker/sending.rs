//! What is due becomes batches: arrivals, windows, queues, message ids.

use super::{Deadline, Worker};
use crate::channel::ChannelEnd;
use crate::client::Pending;
use crate::clock::Nanos;
use crate::demand::Demand;
use crate::in_flight::Entry;
use crate::tally::Loss;

/// Messages in one batch at most, whatever the channel would take.
const BATCH_LIMIT: usize = 512;

/// Places by which a client's window opens in one round of the loop. An answer frees its place at
/// once; a place that was never open, or whose query timed out, opens in these steps. Else the
/// whole window, at the start and one time-out after a loss, would come as one burst, be lost in a
/// full socket buffer, and come again.
const STEP: usize = 8;

impl Worker<'_> {
    /// Takes what the schedule has made due.
    pub(super) fn take_arrivals(&mut self, now: Nanos) {
        let Demand::Open { arrivals } = &mut self.demand else { return };
        let last = now.min(self.until.saturating_sub(1));
        while let Some(arrival) = arrivals.next_if(|arrival| arrival.due_ns <= last) {
            let pending = Pending { due: Some(arrival.due_ns), query: arrival.query };
            self.tally.due(arrival.due_ns);
            self.unsettled += 1;
            let client = &mut self.clients[arrival.client as usize];
            client.pending.push_back(pending);
            if !client.listed {
                client.listed = true;
                self.listed.push(arrival.client);
            }
        }
    }

    /// Fills windows and sends what is due, for every client where something changed.
    pub(super) fn look_after_listed(&mut self, now: Nanos) {
        let mut listed = std::mem::take(&mut self.listed);
        for number in listed.drain(..) {
            self.clients[number as usize].listed = false;
            self.fill_window(number, now);
            self.send_pending(number);
        }
        // The list keeps its memory, and what was listed meanwhile.
        listed.append(&mut self.listed);
        self.listed = listed;
    }

    /// Closed loop: what is missing in the client's window is to be sent. It becomes due when it is
    /// sent; what has not been sent when the measured window ends never does.
    pub(super) fn fill_window(&mut self, number: u32, now: Nanos) {
        let Demand::Closed { outstanding, picker } = &mut self.demand else { return };
        let client = &mut self.clients[number as usize];
        if now >= self.until {
            client.pending.clear();
            return;
        }
        if !client.is_open() {
            return;
        }
        client.window = (client.window + STEP).min(*outstanding);
        for _ in client.outstanding()..client.window {
            client.pending.push_back(Pending { due: None, query: picker.next_query() });
        }
        if client.window < *outstanding {
            self.list(number);
        }
    }

    /// Sends what the client has pending, in batches, as far as its channel takes it.
    pub(super) fn send_pending(&mut self, number: u32) {
        loop {
            let client = &mut self.clients[number as usize];
            if client.pending.is_empty() {
                break;
            }
            if !client.is_open() {
                self.await_sending(number);
                break;
            }
            match self.send_batch(number) {
                Ok(true) => {}
                Ok(false) => {
                    self.await_sending(number);
                    break;
                }
                Err(end) => {
                    self.end_channel(number, &end);
                    self.await_sending(number);
                    break;
                }
            }
        }
        self.watch(number);
    }

    /// Sends one batch; true if the channel took all of it.
    pub(super) fn send_batch(&mut self, number: u32) -> Result<bool, ChannelEnd> {
        let client = &mut self.clients[number as usize];
        let channel = client.channel.as_mut().expect("the channel was found open");
        let mut ids = [0u16; BATCH_LIMIT];
        let limit = channel.batch_limit().min(BATCH_LIMIT).min(client.pending.len());
        self.outbox.clear();
        let sent = self.orders.clock.now();
        if sent >= self.until {
            // A round may last beyond the end of the window: what is due when it is sent is not
            // due any more.
            client.pending.retain(|pending| pending.due.is_some());
        }
        let limit = limit.min(client.pending.len());
        if limit == 0 {
            return Ok(true);
        }
        let mut offered = 0;
        for (pending, id) in client.pending.iter().zip(&mut ids[..limit]) {
            let due = pending.due.unwrap_or(sent);
            let entry = Entry { due, sent, query: pending.query };
            let Some(free) = client.table.insert(entry) else { break };
            *id = free;
            self.outbox.push(free, self.judge.queries.get(pending.query).octets());
            offered += 1;
        }
        if offered == 0 {
            // All 65,536 ids of this socket are in flight: the query cannot be sent.
            let pending = client.pending.pop_front().expect("the queue was found filled");
            self.give_up(pending, sent);
            return Ok(true);
        }
        let result = channel.send(&self.outbox, &mut self.scratch);
        let taken = *result.as_ref().unwrap_or(&0);
        for id in &ids[taken..offered] {
            client.table.take_back(*id);
        }
        for (pending, id) in client.pending.drain(..taken).zip(ids) {
            let octets = self.judge.queries.get(pending.query).octets().len();
            if pending.due.is_none() {
                self.tally.due(sent);
                self.unsettled += 1;
            }
            self.tally.sent(pending.due.unwrap_or(sent), sent, octets);
            let at = sent + self.orders.timeout;
            self.deadlines.push_back(Deadline { at, client: number, id });
        }
        result.map(|taken| taken == offered)
    }

    /// Books a query that was due and will not be sent.
    pub(super) fn give_up(&mut self, pending: Pending, now: Nanos) {
        if let Some(due) = pending.due {
            self.tally.lost(due, now, Loss::NotSent);
            self.unsettled -= 1;
        }
    }

    /// Makes sure that what could not be sent now is given up at its time-out. Due times rise, so
    /// one entry for the youngest is enough for all before it.
    pub(super) fn await_sending(&mut self, number: u32) {
        let client = &mut self.clients[number as usize];
        if let Some(due) = client.pending.back().and_then(|youngest| youngest.due) {
            let at = due + self.orders.timeout;
            if at > client.gives_up_at {
                client.gives_up_at = at;
                self.unsent_deadlines.push_back((at, number));
            }
        }
    }
}
