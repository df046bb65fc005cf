//! Where queries go that do not go on a client's usual connections.

use std::collections::HashMap;

use dnslab_traffic::ServerOrder;

use crate::attempts::Attempts;

/// A way of a client beside its usual connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Detour {
    pub(super) client: u32,
    pub(super) server: u8,
    /// For what was truncated over UDP.
    pub(super) over_tcp: bool,
}

/// The slots that clients have beside their usual connections, and the server that each asks first.
#[derive(Default)]
pub(super) struct Detours {
    /// Each way has one slot, which it keeps.
    slots: HashMap<Detour, u32>,
    /// By client, where clients know several servers and do not always ask the same one first.
    first_servers: Vec<u8>,
    /// Drains without a connection.
    free_drains: Vec<u32>,
}

impl Detours {
    pub(super) fn slot(&self, detour: Detour) -> Option<u32> {
        self.slots.get(&detour).copied()
    }

    pub(super) fn add(&mut self, detour: Detour, slot: u32) {
        self.slots.insert(detour, slot);
    }

    /// The server that a client asks its next query first.
    pub(super) fn first_server(&mut self, client: u32, attempts: &Attempts) -> u8 {
        if attempts.order == ServerOrder::InOrder {
            return 0;
        }
        let place = client as usize;
        if self.first_servers.len() <= place {
            self.first_servers.resize(place + 1, 0);
        }
        let server = self.first_servers[place];
        if attempts.order == ServerOrder::Rotate {
            self.first_servers[place] = attempts.next_server(server);
        }
        server
    }

    /// The server that a client asks after an attempt at this one has failed.
    pub(super) fn next_server(&mut self, client: u32, server: u8, attempts: &Attempts) -> u8 {
        let next = attempts.next_server(server);
        if let Some(first) = self.first_servers.get_mut(client as usize)
            && attempts.order == ServerOrder::Sticky
            && *first == server
        {
            *first = next;
        }
        next
    }

    /// A drain for another connection.
    pub(super) fn take_drain(&mut self) -> Option<u32> {
        self.free_drains.pop()
    }

    /// A drain has no connection any more.
    pub(super) fn free_drain(&mut self, number: u32) {
        self.free_drains.push(number);
    }

    /// Checks that these are the free drains, each of them once.
    #[cfg(test)]
    #[track_caller]
    pub(super) fn check(&self, free: &std::collections::BTreeSet<u32>) {
        assert_eq!(self.free_drains.len(), free.len());
        assert!(self.free_drains.iter().all(|drain| free.contains(drain)));
    }
}
