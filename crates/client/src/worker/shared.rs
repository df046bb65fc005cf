//! One socket for the datagrams of many clients, each with an address of its own.
//!
//! A server tells clients apart by address and port. A million clients with a socket each would be more files than a
//! process may have, and a socket for each query costs more system calls than the query. So clients with addresses
//! of their own send from one socket, which names the source of each datagram (`IP_PKTINFO`, ip(7)) and tells
//! where each answer came to. Each client still has its own message ids, and an answer that comes to another
//! client's address is not its own. Datagrams of many clients share a system call.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};

use dnslab_settings::ReceiveTime;
use dnslab_traffic::SourceAddresses;
use dnslab_wire::{Additions, MAX_BATCH, MessageBatch, Transport, datagrams};

use super::Worker;
use crate::connection::{
    ConnectionEnd, Delivery, Received, is_about_an_earlier_datagram, is_for_now,
};
use crate::connection_slot::Pending;
use crate::in_flight::{Entry, Known};
use crate::recorder::Stray;
use crate::runtime::{DatagramOptions, DatagramSocket, Inbox as _, Runtime, Watch, Watched};
use crate::shard::Shard;
use crate::time::{Nanos, Stamps};

/// The number of the shared socket, among those of slots.
pub(super) const SHARED: u32 = u32::MAX;

/// Its system calls.
pub(super) const SEND_PATH: &str =
    "sendmmsg and recvmmsg; one socket for all clients, each with an address of its own";

/// Reads in one round at most.
const READS_PER_ROUND: usize = 16;

pub(super) struct SharedSocket<R: Runtime> {
    socket: R::Datagrams,
    inbox: <R::Datagrams as DatagramSocket>::Inbox,
    sources: SourceAddresses,
    target: SocketAddr,
    outbox: MessageBatch,
    /// Of each message of the outbox: its source, slot and id.
    origins: Vec<IpAddr>,
    sent: Vec<(u32, u16)>,
    /// When the first message of the outbox was written.
    since: Nanos,
    is_blocked: bool,
}

/// Clients of this job can share a socket: they ask over UDP, and keep their port.
pub(super) fn is_possible(shard: &Shard<'_>) -> bool {
    let load = &shard.job.settings;
    let is_udp = shard.endpoints.iter().any(|endpoint| endpoint.transport == Transport::Udp);
    shard.job.replay.is_some()
        && is_udp
        && load.sources.is_some()
        && shard.quota.is_none()
        && load.tsig.is_none()
}

impl<R: Runtime> Worker<'_, R> {
    /// Whether a client sends from the shared socket: it has an address that no other client has. Opens the socket
    /// for the first.
    pub(super) fn shares(&mut self, client: u32, transport: Transport) -> bool {
        let Some(sources) = &self.shard.job.settings.sources else { return false };
        let number = self.shard.client_number(client);
        let is_own = || sources.client_of(sources.get(number)) == Some(number.into());
        if !self.may_share || transport != Transport::Udp || !is_own() {
            return false;
        }
        if self.shared.is_none() {
            match self.open_shared(sources.clone()) {
                Ok(shared) => self.shared = Some(Box::new(shared)),
                Err(error) => {
                    // Then each client opens a socket of its own, and says what is wrong.
                    self.may_share = false;
                    self.last_end = Some(ConnectionEnd::connect(error).to_string());
                }
            }
        }
        self.shared.is_some()
    }

    fn open_shared(&mut self, sources: SourceAddresses) -> io::Result<SharedSocket<R>> {
        let target = self.shard.endpoint(Transport::Udp).target;
        let stamps = self.shard.job.settings.receive_time == ReceiveTime::Kernel;
        let options = DatagramOptions { stamps, probes_mtu: false };
        let socket = self.runtime.bind_shared(target, options)?;
        self.runtime.watch(
            Watched::Datagrams(&socket),
            SHARED,
            Watch { writing: false, again: false },
        )?;
        Ok(SharedSocket {
            socket,
            inbox: crate::runtime::Inbox::shared(),
            sources,
            target,
            outbox: MessageBatch::default(),
            origins: Vec::new(),
            sent: Vec::new(),
            since: 0,
            is_blocked: false,
        })
    }

    /// Writes what a client has pending into the outbox, and sends that when it is full.
    pub(super) fn send_shared(&mut self, number: u32) {
        let Some(mut shared) = self.shared.take() else { return };
        let client = self.shard.client_number(self.slots[number as usize].client);
        let source = shared.sources.get(client);
        while !shared.is_blocked
            && let Some(pending) = self.slots[number as usize].pending.front().copied()
        {
            if shared.outbox.is_empty() {
                shared.since = self.runtime.now();
            }
            let (due, sent) = (pending.due.unwrap_or(shared.since), shared.since);
            let entry = Entry { due, sent, query: pending.query, sent_before: pending.sent_before };
            let slot = &mut self.slots[number as usize];
            slot.pending.pop_front();
            let Some(id) = slot.table.insert(entry) else {
                self.give_up(pending, sent);
                continue;
            };
            let subnet = self.shard.subnet_of(slot.client);
            let cookie = self.matcher.cookies.get(slot.client as usize);
            let additions = Additions { cookie, subnet: subnet.as_ref(), padding: 0 };
            let query = self.matcher.queries.get(pending.query);
            shared.outbox.push_with(|octets| query.append_to(id, &additions, octets));
            shared.origins.push(source);
            shared.sent.push((number, id));
            if shared.outbox.len() == MAX_BATCH {
                self.flush(&mut shared);
            }
        }
        if let Some(pending) = self.slots[number as usize].pending.front() {
            let late = pending.due.unwrap_or(0) + self.shard.timeout;
            self.arm(number, late);
            self.waiting_for_shared.push(number);
        }
        self.shared = Some(shared);
    }

    /// Sends what the round has left in the outbox.
    pub(super) fn flush_shared(&mut self) {
        if let Some(mut shared) = self.shared.take() {
            self.flush(&mut shared);
            self.shared = Some(shared);
        }
    }

    fn flush(&mut self, shared: &mut SharedSocket<R>) {
        let all = shared.outbox.len();
        let sent = self.runtime.now();
        let mut taken = 0;
        // An error about an earlier datagram takes the place of a call. One about this datagram, for want of a
        // route, comes again at every call.
        let mut calls_left = 2 * all;
        while taken < all {
            calls_left = usize::saturating_sub(calls_left, 1);
            let SharedSocket { socket, outbox, origins, target, .. } = &*shared;
            match socket.send_from(outbox, origins, *target, taken) {
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
                    let (number, id) = shared.sent[taken];
                    let table = &mut self.slots[number as usize].table;
                    if let Known::InFlight(Entry { due, query, sent_before, .. }) =
                        table.look_up(id)
                    {
                        table.take_back(id);
                        self.give_up(Pending { due: Some(due), query, sent_before }, sent);
                    }
                    self.last_end = Some(ConnectionEnd::Broken(error).to_string());
                    taken += 1;
                }
            }
        }
        for ((number, id), octets) in shared.sent[..taken].iter().zip(shared.outbox.lengths()) {
            let slot = &mut self.slots[*number as usize];
            let Known::InFlight(entry) = slot.table.look_up(*id) else { continue };
            slot.table.stamp_again(*id, entry.due, sent);
            slot.note_sent(sent, 1, true);
            self.recorder.sent(entry.due, sent, octets, entry.sent_before == 0);
            self.arm(*number, sent + self.shard.timeout);
        }
        for (number, id) in shared.sent[taken..].iter().rev() {
            let slot = &mut self.slots[*number as usize];
            let Known::InFlight(entry) = slot.table.look_up(*id) else { continue };
            slot.table.take_back(*id);
            let Entry { due, query, sent_before, .. } = entry;
            let pending = Pending { due: Some(due), query, sent_before };
            slot.pending.push_front(pending);
            self.arm(*number, due + self.shard.timeout);
            self.waiting_for_shared.push(*number);
        }
        if shared.is_blocked {
            self.watch_shared(shared);
        }
        shared.outbox.clear();
        shared.origins.clear();
        shared.sent.clear();
    }

    /// Asks for writability only while something waits for it.
    fn watch_shared(&mut self, shared: &SharedSocket<R>) {
        let watch = Watch { writing: shared.is_blocked, again: true };
        let watched = self.runtime.watch(Watched::Datagrams(&shared.socket), SHARED, watch);
        watched.expect("the socket is open and watched");
    }

    /// Does what the shared socket is ready for.
    pub(super) fn advance_shared(&mut self) {
        let Some(mut shared) = self.shared.take() else { return };
        if std::mem::take(&mut shared.is_blocked) {
            self.watch_shared(&shared);
            for number in std::mem::take(&mut self.waiting_for_shared) {
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
        self.shared = Some(shared);
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
    fn slot_at(&self, shared: &SharedSocket<R>, ends: Option<(SocketAddr, IpAddr)>) -> Option<u32> {
        // Anybody may send to a socket that is not connected.
        let (_, to) = ends.filter(|(from, _)| *from == shared.target)?;
        let client = u32::try_from(shared.sources.client_of(to)?).ok()?;
        if client % self.shard.of != self.shard.number {
            return None;
        }
        let number = *self.comers.get((client / self.shard.of) as usize)?;
        self.slots[number as usize].is_shared.then_some(number)
    }

    /// Answers that the shared socket has dropped.
    pub(super) fn shared_drops(&self) -> u64 {
        self.shared.as_ref().map_or(0, |shared| shared.socket.drops())
    }
}
