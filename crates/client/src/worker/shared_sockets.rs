//! The sockets that clients with an address of their own share, one for each server.

use std::net::{IpAddr, SocketAddr};

use dnslab_traffic::SourceAddresses;
use dnslab_wire::Transport;

use crate::runtime::{DatagramSocket, Runtime};
use crate::shard::{Outbox, Shard};
use crate::time::Nanos;

/// The number of the shared socket for the first server, among those of slots. Those for the others lie below.
const SHARED: u32 = u32::MAX;

/// Servers that a client knows at most.
const MAX_SERVERS: u32 = 256;

/// The server of a shared socket; `None` for a slot.
pub(super) fn server_of(number: u32) -> Option<u8> {
    let below = SHARED - number;
    (below < MAX_SERVERS).then_some(below as u8)
}

/// The number of the shared socket for a server, among those of slots.
pub(super) fn number_of(server: u8) -> u32 {
    SHARED - u32::from(server)
}

/// The system calls of shared sockets.
const SEND_PATH: &str =
    "sendmmsg and recvmmsg; one socket for all clients, each with an address of its own";

/// Whose query a message of the outbox is.
pub(super) struct Sender {
    pub(super) slot: u32,
    pub(super) id: u16,
}

pub(super) struct SharedSocket<R: Runtime> {
    pub(super) server: u8,
    pub(super) socket: R::Datagrams,
    pub(super) inbox: <R::Datagrams as DatagramSocket>::Inbox,
    pub(super) sources: SourceAddresses,
    pub(super) target: SocketAddr,
    pub(super) outbox: Outbox,
    /// The source of each message of the outbox.
    pub(super) origins: Vec<IpAddr>,
    /// The sender of each message of the outbox.
    pub(super) senders: Vec<Sender>,
    /// When the first message of the outbox was written.
    pub(super) since: Nanos,
    pub(super) is_blocked: bool,
}

/// The shared sockets of a worker.
pub(super) struct SharedSockets<R: Runtime> {
    /// By server. Those that were never opened, and the one that is in use, are missing.
    sockets: Vec<Option<Box<SharedSocket<R>>>>,
    /// Clients may share sockets.
    is_possible: bool,
    /// Slots with queries that a socket did not take.
    waiting: Vec<u32>,
}

impl<R: Runtime> SharedSockets<R> {
    /// None yet. Clients of this shard may share sockets if they ask over UDP, and keep their port.
    pub(super) fn new(shard: &Shard<'_>) -> Self {
        let load = &shard.job.settings;
        let is_udp = shard.endpoints.iter().any(|endpoint| endpoint.transport == Transport::Udp);
        let is_possible = shard.job.played.is_some()
            && is_udp
            && load.sources.is_some()
            && shard.quota.is_none()
            && load.tsig.is_none();
        Self { sockets: Vec::new(), is_possible, waiting: Vec::new() }
    }

    pub(super) fn are_possible(&self) -> bool {
        self.is_possible
    }

    /// No socket can be opened: each further client opens one of its own.
    pub(super) fn give_up(&mut self) {
        self.is_possible = false;
    }

    pub(super) fn has(&self, server: u8) -> bool {
        self.sockets.get(usize::from(server)).is_some_and(Option::is_some)
    }

    /// Takes the socket for a server out while it is used.
    pub(super) fn take(&mut self, server: u8) -> Option<Box<SharedSocket<R>>> {
        self.sockets.get_mut(usize::from(server))?.take()
    }

    /// Adds a socket, or puts it back.
    pub(super) fn put(&mut self, socket: Box<SharedSocket<R>>) {
        let place = usize::from(socket.server);
        if self.sockets.len() <= place {
            self.sockets.resize_with(place + 1, || None);
        }
        self.sockets[place] = Some(socket);
    }

    /// Servers for which there may be one.
    pub(super) fn servers(&self) -> usize {
        self.sockets.len()
    }

    /// A slot has queries that its socket did not take.
    pub(super) fn wait(&mut self, slot: u32) {
        self.waiting.push(slot);
    }

    /// The slots that wait for a socket to be writable. They wait no more.
    pub(super) fn take_waiting(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.waiting)
    }

    /// Which system calls carry the messages, if any socket was opened.
    pub(super) fn send_path(&self) -> Option<&'static str> {
        (!self.sockets.is_empty()).then_some(SEND_PATH)
    }

    /// Answers that the sockets have dropped.
    pub(super) fn drops(&self) -> u64 {
        self.sockets.iter().flatten().map(|shared| shared.socket.drops()).sum()
    }
}
