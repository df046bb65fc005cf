//! Which slot a query goes to: for its first attempt, for the next one, and over TCP.

use dnslab_wire::{Cookie, Transport};
use rand::Rng as _;

use super::Worker;
use super::detours::Detour;
use crate::connection_slot::{ConnectionSlot, Life, Pending, SlotKind};
use crate::replay::Queries;
use crate::response_matcher::{Retry, Way};
use crate::runtime::Runtime;
use crate::time::Nanos;

impl<R: Runtime> Worker<'_, R> {
    /// The slot of a client that may come now for the first time. Clients with smaller numbers have come
    /// before, or are let in with it.
    #[inline]
    pub(super) fn slot_of_comer(&mut self, client: u32) -> u32 {
        loop {
            if let Some(slot) = self.comers.slot(client) {
                return slot;
            }
            self.let_in();
        }
    }

    #[cold]
    fn let_in(&mut self) {
        let (client, number) = (self.comers.count(), self.slots.len() as u32);
        let transport = self.shard.transport_of(self.shard.client_number(client));
        let life = self.life_at_first(client, transport, 0);
        self.slots.push(ConnectionSlot { life, ..ConnectionSlot::new(client, transport, 0) });
        self.comers.add(number);
        if let Some(random) = &mut self.cookie_source {
            self.matcher.cookies.push(Cookie::new(random.random()));
        }
    }

    /// A slot that a client has beside its usual connections.
    pub(super) fn detour(&mut self, detour: Detour) -> u32 {
        if let Some(known) = self.detours.slot(detour) {
            return known;
        }
        let Detour { client, server, over_tcp } = detour;
        let usual = self.slots[self.first_slot(client) as usize].transport;
        let (kind, transport) = match over_tcp {
            true => (SlotKind::OverTcp, Transport::Tcp),
            false => (SlotKind::OtherServer, usual),
        };
        let life = self.life_at_first(client, transport, server);
        let slot = ConnectionSlot::new(client, transport, 0);
        self.slots.push(ConnectionSlot { server, kind, life, ..slot });
        let number = self.slots.len() as u32 - 1;
        self.detours.add(detour, number);
        number
    }

    fn life_at_first(&mut self, client: u32, transport: Transport, server: u8) -> Life {
        if self.shares(client, transport, server) { Life::Shared } else { Life::Closed }
    }

    /// The slot on which a client asks a query for the first time; `usual` is one of its usual connections.
    #[inline]
    pub(super) fn slot_for_first_attempt(&mut self, usual: u32) -> u32 {
        match self.shard.attempts.has_choice() {
            true => self.slot_of_first_server(usual),
            false => usual,
        }
    }

    #[cold]
    fn slot_of_first_server(&mut self, usual: u32) -> u32 {
        let client = self.slots[usual as usize].client;
        match self.detours.first_server(client, &self.shard.attempts) {
            0 => usual,
            server => self.detour(Detour { client, server, over_tcp: false }),
        }
    }

    /// The slot for the next attempt after one on this slot. It stays with TCP, as glibc does.
    fn slot_for_next_attempt(&mut self, number: u32) -> u32 {
        let home = self.home(number);
        if !self.shard.attempts.has_choice() {
            return home;
        }
        let ConnectionSlot { client, server, kind, .. } = self.slots[home as usize];
        let next = self.detours.next_server(client, server, &self.shard.attempts);
        match (next, kind == SlotKind::OverTcp) {
            (0, false) => self.first_slot(client),
            (server, over_tcp) => self.detour(Detour { client, server, over_tcp }),
        }
    }

    /// Queues the queries that are to be asked again, after the end of queries on this slot.
    #[inline]
    pub(super) fn take_up_again(&mut self, number: u32, now: Nanos) {
        if !self.matcher.again.is_empty() {
            self.queue_again(number, now);
        }
    }

    fn queue_again(&mut self, number: u32, now: Nanos) {
        let mut again = std::mem::take(&mut self.matcher.again);
        if let Queries::Recent(recent) = &mut self.matcher.queries {
            for Retry { pending, .. } in &mut again {
                if let Some(transcript) = &mut self.recorder.transcript {
                    transcript.take_up_again(pending.query);
                }
                pending.query = recent.keep_again(now, pending.query);
            }
        }
        let home = self.home(number);
        let ConnectionSlot { client, server, .. } = self.slots[home as usize];
        for Retry { pending, way } in &again {
            let elsewhere = match way {
                Way::Same => continue,
                Way::OverTcp => self.detour(Detour { client, server, over_tcp: true }),
                Way::NextServer => self.slot_for_next_attempt(number),
            };
            self.put_waiting(elsewhere, *pending);
            self.list(elsewhere);
        }
        for Retry { pending, .. } in again.drain(..).rev().filter(|retry| retry.way == Way::Same) {
            self.put_back(home, pending);
            self.list(home);
        }
        self.matcher.again = again;
    }

    /// Puts a query among those that wait on a slot, the first to be given up first, and behind its equals. A further
    /// attempt is older than what waits there, but waits for longer.
    pub(super) fn put_waiting(&mut self, number: u32, pending: Pending) {
        self.put_behind(number, pending, |other, own| other <= own);
    }

    /// Puts a query back among those that wait on a slot, before its equals.
    pub(super) fn put_back(&mut self, number: u32, pending: Pending) {
        self.put_behind(number, pending, |other, own| other < own);
    }

    /// Puts a query behind those for which this holds of their ends and its own.
    fn put_behind(
        &mut self,
        number: u32,
        pending: Pending,
        is_before: impl Fn(Nanos, Nanos) -> bool,
    ) {
        let attempts = &self.shard.attempts;
        let end = |pending: &Pending| pending.end_of_wait(attempts).unwrap_or(Nanos::MAX);
        let (own, waiting) = (end(&pending), &mut self.slots[number as usize].pending);
        let place = waiting.partition_point(|other| is_before(end(other), own));
        waiting.insert(place, pending);
    }

    /// Looks after all slots of a client whose query elsewhere has ended: its place in a window is free.
    #[inline]
    pub(super) fn list_client_of_retry(&mut self, number: u32) {
        let slot = &self.slots[number as usize];
        if slot.kind != SlotKind::Usual {
            self.list_client(slot.client);
        }
    }

    fn list_client(&mut self, client: u32) {
        if let Some(first) = self.comers.slot(client) {
            return self.list(first);
        }
        for usual in (client as usize..self.regular).step_by(self.shard.clients as usize) {
            self.list(usual as u32);
        }
    }
}
