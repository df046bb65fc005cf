//! One socket for the datagrams of many clients, each with an address of its own.
//!
//! A server tells clients apart by address and port. A million clients with a socket each would be more files than a
//! process may have, and a socket for each query costs more system calls than the query. So clients with addresses
//! of their own send from one socket, which names the source of each datagram (`IP_PKTINFO`, ip(7)) and tells
//! where each answer came to. Each client still has its own message ids, and an answer that comes to another
//! client's address is not its own. Datagrams of many clients share a system call.

use std::io::{self, ErrorKind};

use dnslab_settings::ReceiveTime;
use dnslab_traffic::SourceAddresses;
use dnslab_wire::{MAX_BATCH, Transport, datagrams};

use super::Worker;
use super::detours::Detour;
use super::shared_sockets::{Sender, SharedSocket, number_of};
use crate::connection::{
    ConnectionEnd, Delivery, Received, is_about_an_earlier_datagram, is_for_now,
};
use crate::connection_slot::{Life, Pending};
use crate::in_flight::{Entry, Known};
use crate::recorder::Stray;
use crate::runtime::{
    DatagramOptions, DatagramSocket, Ends, Inbox, Runtime, Stamps, Watch, Watched,
};
use crate::shard::Outbox;

/// Reads in one round at most: more than a round sends, so that answers that have come do not wait for queries.
const READS_PER_ROUND: usize = 64;

impl<R: Runtime> Worker<'_, R> {
    /// Whether a client sends from the shared socket: it has an address that no other client has. Opens the socket
    /// for the first.
    pub(super) fn shares(&mut self, client: u32, transport: Transport, server: u8) -> bool {
        let Some(sources) = &self.shard.job.settings.sources else { return false };
        let number = self.shard.client_number(client);
        let is_own = || sources.client_of(sources.get(number)) == Some(number.into());
        if !self.shared.are_possible() || transport != Transport::Udp || !is_own() {
            return false;
        }
        if !self.shared.has(server) {
            match self.open_shared(sources.clone(), server) {
                Ok(shared) => self.shared.put(Box::new(shared)),
                Err(error) => {
                    // Then each client opens a socket of its own, and says what is wrong.
                    self.shared.give_up();
                    self.last_end = Some(ConnectionEnd::connect(error).to_string());
                }
            }
        }
        self.shared.has(server)
    }

    fn open_shared(&mut self, sources: SourceAddresses, server: u8) -> io::Result<SharedSocket<R>> {
        let target = self.shard.endpoint(Transport::Udp, server).target;
        let stamps = self.shard.job.settings.receive_time == ReceiveTime::Kernel;
        let options = DatagramOptions { stamps, probes_mtu: false };
        let socket = self.runtime.bind_shared(target, options)?;
        self.runtime.watch(
            Watched::Datagrams(&socket),
            number_of(server),
            Watch { writing: false, again: false },
        )?;
        Ok(SharedSocket {
            server,
            socket,
            inbox: Inbox::shared(),
            sources,
            target,
            outbox: Outbox::default(),
            origins: Vec::new(),
            senders: Vec::new(),
            since: 0,
            is_blocked: false,
        })
    }

    /// Writes what a client has pending into the outbox, and sends that when it is full.
    pub(super) fn send_shared(&mut self, number: u32) {
        let server = self.slots[number as usize].server;
        let Some(mut shared) = self.shared.take(server) else { return };
        let client = self.shard.client_number(self.slots[number as usize].client);
        let source = shared.sources.get(client);
        while !shared.is_blocked
            && let Some(pending) = self.slots[number as usize].pending.front().copied()
        {
            if shared.outbox.messages.is_empty() {
                shared.since = self.runtime.now();
            }
            let (due, sent) = (pending.due.unwrap_or(shared.since), shared.since);
            let Pending { query, sent_before, attempt, .. } = pending;
            let entry = Entry { due, sent, query, sent_before, attempt };
            let slot = &mut self.slots[number as usize];
            slot.pending.pop_front();
            let Some(id) = slot.table.insert(entry) else {
                self.give_up(number, pending, sent);
                continue;
            };
            let subnet = self.shard.subnet_of(slot.client);
            let cookie = self.matcher.cookies.get(slot.client as usize);
            let additions = self.shard.additions(Transport::Udp, cookie, subnet.as_ref());
            let query = self.matcher.queries.get(pending.query);
            // Signed queries are not sent from here ([`SharedSockets::new`]), so they need no time.
            self.shard.push_query(query, id, &additions, 0, &mut shared.outbox);
            shared.origins.push(source);
            shared.senders.push(Sender { slot: number, id });
            if shared.outbox.messages.len() == MAX_BATCH {
                self.flush(&mut shared);
            }
        }
        if let Some(pending) = self.slots[number as usize].pending.front() {
            let late = pending.end_of_wait(&self.shard.attempts).unwrap_or(0);
            self.arm(number, late);
            self.shared.wait(number);
        }
        self.shared.put(shared);
    }

    /// Sends what the round has left in the outboxes.
    pub(super) fn flush_shared(&mut self) {
        for server in 0..self.shared.servers() {
            if let Some(mut shared) = self.shared.take(server as u8) {
                self.flush(&mut shared);
                self.shared.put(shared);
            }
        }
    }

    fn flush(&mut self, shared: &mut SharedSocket<R>) {
        let all = shared.outbox.messages.len();
        let sent = self.runtime.now();
        let mut taken = 0;
        // An error about an earlier datagram takes the place of a call. One about this datagram, for want of a
        // route, comes again at every call.
        let mut calls_left = 2 * all;
        while taken < all {
            calls_left = usize::saturating_sub(calls_left, 1);
            let SharedSocket { socket, outbox, origins, target, .. } = &*shared;
            match socket.send_from(&outbox.messages, origins, *target, taken) {
                Ok(count) => taken += count,
                Err(error)
                    if calls_left > 0
                        && (error.kind() == ErrorKind::Interrupted
                            || is_about_an_earlier_datagram(&error)) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock || is_for_now(&error) => {
                    shared.is_blocked = true;
                    break;
                }
                // This datagram alone cannot go: its client has an address that the host has not, say.
                Err(error) => {
                    let Sender { slot, id } = shared.senders[taken];
                    let table = &mut self.slots[slot as usize].table;
                    if let Known::InFlight(entry) = table.look_up(id) {
                        table.take_back(id);
                        self.give_up(slot, unsent(&entry), sent);
                    }
                    self.last_end = Some(ConnectionEnd::Broken(error).to_string());
                    taken += 1;
                }
            }
        }
        let lengths = shared.outbox.messages.lengths();
        for (&Sender { slot: number, id }, octets) in shared.senders[..taken].iter().zip(lengths) {
            let slot = &mut self.slots[number as usize];
            let Known::InFlight(entry) = slot.table.look_up(id) else { continue };
            slot.table.stamp_again(id, entry.due, sent);
            slot.note_sent(sent, 1, true);
            self.recorder.sent(entry.due, sent, octets, entry.sent_before == 0);
            self.arm(number, sent + self.shard.timeout);
        }
        if self.shard.attempts.has_choice() && taken > 0 {
            self.recorder.sent_to(shared.server, sent, taken);
        }
        for &Sender { slot: number, id } in shared.senders[taken..].iter().rev() {
            let slot = &mut self.slots[number as usize];
            let Known::InFlight(entry) = slot.table.look_up(id) else { continue };
            slot.table.take_back(id);
            let pending = unsent(&entry);
            self.put_back(number, pending);
            self.arm(number, pending.end_of_wait(&self.shard.attempts).unwrap_or(0));
            self.shared.wait(number);
        }
        if shared.is_blocked {
            self.watch_shared(shared);
        }
        shared.outbox.messages.clear();
        shared.origins.clear();
        shared.senders.clear();
    }

    /// Asks for writability only while something waits for it.
    fn watch_shared(&mut self, shared: &SharedSocket<R>) {
        let watch = Watch { writing: shared.is_blocked, again: true };
        let number = number_of(shared.server);
        let watched = self.runtime.watch(Watched::Datagrams(&shared.socket), number, watch);
        watched.expect("the socket is open and watched");
    }

    /// Does what the shared socket for a server is ready for.
    pub(super) fn advance_shared(&mut self, server: u8) {
        let Some(mut shared) = self.shared.take(server) else { return };
        if std::mem::take(&mut shared.is_blocked) {
            self.watch_shared(&shared);
            for number in self.shared.take_waiting() {
                self.list(number);
            }
        }
        for _ in 0..READS_PER_ROUND {
            match shared.socket.receive(&mut shared.inbox) {
                Ok(more) => {
                    self.deliver_shared(&shared);
                    if !more {
                        break;
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if is_about_an_earlier_datagram(&error) => {}
                Err(_) => break,
            }
        }
        self.shared.put(shared);
    }

    fn deliver_shared(&mut self, shared: &SharedSocket<R>) {
        let now = self.runtime.now();
        let mut stamps = Stamps::default();
        for group in shared.inbox.groups() {
            let at =
                group.timestamp.map_or(now, |stamp| stamps.on_timeline(&self.runtime, now, stamp));
            let number = self.slot_at(shared, group.ends);
            for octets in datagrams(group.octets, group.segment) {
                let Some(number) = number else {
                    self.recorder.stray(at, Stray::Unexpected);
                    continue;
                };
                let slot = &mut self.slots[number as usize];
                let before = slot.table.len();
                let message = Delivery::Message(Received { octets, at });
                self.matcher.receive(slot, &mut self.recorder, message);
                let ended = before - slot.table.len();
                self.note_read(number, ended, true, now);
            }
        }
    }

    /// The slot of the client whose address a datagram of the server came to.
    fn slot_at(&self, shared: &SharedSocket<R>, ends: Option<Ends>) -> Option<u32> {
        // Anybody may send to a socket that is not connected.
        let ends = ends.filter(|ends| ends.from == shared.target)?;
        let client = u32::try_from(shared.sources.client_of(ends.to)?).ok()?;
        if client % self.shard.workers != self.shard.number {
            return None;
        }
        let client = client / self.shard.workers;
        let number = match shared.server {
            0 => self.comers.slot(client)?,
            server => self.detours.slot(Detour { client, server, over_tcp: false })?,
        };
        (self.slots[number as usize].life == Life::Shared).then_some(number)
    }
}

/// A query that was not sent after all.
fn unsent(entry: &Entry) -> Pending {
    let Entry { due, query, sent_before, attempt, .. } = *entry;
    Pending { due: Some(due), query, sent_before, attempt }
}
