//! One slot: a socket of a simulated client with what is in flight on it and what waits for it.

use std::collections::{HashMap, VecDeque};

use dnslab_wire::{Signed, Transport};

use crate::connection::Connection;
use crate::in_flight::InFlightTable;
use crate::runtime::Runtime;
use crate::time::Nanos;

/// A query that waits to be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    /// When it became due. Without a schedule (closed loop) a query is due when it is first sent,
    /// so this is `None` until then.
    pub(crate) due: Option<Nanos>,
    /// Its place in the query list.
    pub(crate) query: u32,
    /// How often it was sent before.
    pub(crate) sent_before: u8,
}

/// A connection of a simulated client, or its UDP socket. Boxes and queues are empty, without
/// memory, while it rests.
pub(crate) struct ConnectionSlot<R: Runtime> {
    pub(crate) connection: Option<Box<dyn Connection<R>>>,
    pub(crate) table: InFlightTable,
    pub(crate) pending: VecDeque<Pending>,
    /// Signatures of the queries in flight, by id (RFC 8945, section 5.3, signs an answer together
    /// with its query's); `None`, without memory, where nothing is signed.
    #[expect(clippy::box_collection, reason = "a map itself is 48 octets of every slot's memory")]
    pub(crate) signed: Option<Box<HashMap<u16, Signed>>>,
    /// The client that it belongs to: its place among those of the worker.
    pub(crate) client: u32,
    /// For one that only waits for the last answers of a connection: the slot whose connection that was.
    pub(crate) drains_for: Option<u32>,
    /// Queries of this slot in flight on connections that are drained.
    pub(crate) on_drains: u32,
    /// How queries travel on it: as those of the load do, or over TCP when they are asked again.
    pub(crate) transport: Transport,
    /// It stands in the worker's list of slots to look after.
    pub(crate) listed: bool,
    /// It stands in the worker's queue of slots to open.
    pub(crate) queued: bool,
    /// An attempt to open it was made at some time.
    pub(crate) was_tried: bool,
    /// A query was sent on it at some time.
    pub(crate) was_asked: bool,
    /// The server has looked at a query of it at some time.
    pub(crate) was_answered: bool,
    /// When the server last answered a query of it; if it never did, when the first was sent.
    pub(crate) heard_at: Nanos,
    /// Queries that have timed out since then.
    pub(crate) timed_out_in_a_row: u32,
    /// When the last of these did.
    pub(crate) timed_out_at: Nanos,
    /// It was open when the measured window ended, or about to be opened again at once.
    pub(crate) was_open_at_end: bool,
    /// Its connection is there, and was not open yet.
    pub(crate) is_new: bool,
    /// It is idle and stands in the worker's queue of idle slots.
    pub(crate) idle_listed: bool,
    /// The readiness that epoll was last asked for includes writing.
    pub(crate) watches_writing: bool,
    /// Closed loop: how many queries it keeps outstanding when its window is open.
    pub(crate) widest: u32,
    /// Closed loop: how much of the window is open. It opens step by step, so that a server is not
    /// met by the whole window in one burst that no socket buffer holds.
    pub(crate) window: u32,
    /// Queries sent since the connection was opened.
    pub(crate) sent: u32,
    /// Queries after which the connection is closed.
    pub(crate) quota: u32,
    /// How often a connection was opened.
    pub(crate) opened: u32,
    /// Attempts to connect since the last answer.
    pub(crate) attempts: u32,
    /// The earliest instant at which the worker looks after it in any case; [`Nanos::MAX`] for
    /// none.
    pub(crate) alarm: Nanos,
    /// The current attempt to connect began then.
    pub(crate) connecting_since: Nanos,
    /// After a failure: no attempt to connect before this instant.
    pub(crate) reconnect_at: Nanos,
    /// The last query was sent, or the last message came, then.
    pub(crate) active_at: Nanos,
    /// The last query was sent then, in an open loop over TCP; 0 elsewhere.
    pub(crate) followed_at: Nanos,
    /// The server closes the connection when it has been idle for so long, it says (RFC 7828);
    /// [`Nanos::MAX`] if it said nothing.
    pub(crate) server_idle: Nanos,
    /// Drops of sockets that are closed already.
    pub(crate) drops: u64,
}

impl<R: Runtime> ConnectionSlot<R> {
    pub(crate) fn new(client: u32, transport: Transport, widest: u32) -> Self {
        Self {
            connection: None,
            table: InFlightTable::new(),
            pending: VecDeque::new(),
            signed: None,
            client,
            drains_for: None,
            on_drains: 0,
            transport,
            listed: false,
            queued: false,
            was_tried: false,
            was_asked: false,
            was_answered: false,
            heard_at: 0,
            timed_out_in_a_row: 0,
            timed_out_at: 0,
            was_open_at_end: false,
            is_new: false,
            idle_listed: false,
            watches_writing: false,
            widest,
            window: 0,
            sent: 0,
            quota: u32::MAX,
            opened: 0,
            attempts: 0,
            alarm: Nanos::MAX,
            connecting_since: 0,
            reconnect_at: 0,
            active_at: 0,
            followed_at: 0,
            server_idle: Nanos::MAX,
            drops: 0,
        }
    }

    /// Queries may be sent now, as far as the connection is concerned.
    pub(crate) fn is_open(&self) -> bool {
        self.connection.as_ref().is_some_and(|connection| connection.is_open())
    }

    /// The connection is there, but takes no more queries: it is closed when its last has ended.
    pub(crate) fn is_draining(&self) -> bool {
        self.connection.as_ref().is_some_and(|connection| connection.is_draining())
    }

    /// Queries left on it, as the latest ones. `follows` in an open loop: there the next query does
    /// not wait for the answer to the one before it.
    pub(crate) fn note_sent(&mut self, sent: Nanos, queries: usize, follows: bool) {
        self.sent += queries as u32;
        self.active_at = sent;
        if !self.was_asked {
            (self.was_asked, self.heard_at) = (true, sent);
        }
        if follows && self.transport.runs_over_tcp() {
            self.followed_at = sent;
        }
    }

    /// Notes whether it is open, at the end of the measured window. One that the server has closed after
    /// it had answered, and that is being opened again, counts: it may have had its share.
    pub(crate) fn note_end(&mut self) {
        self.was_open_at_end = self.is_open() || self.was_answered && self.attempts <= 1;
    }

    /// The client had a connection when the measured window ended, and no reason to believe that the
    /// server did not serve it: it asked nothing, or had an answer.
    pub(crate) fn was_served(&self) -> bool {
        self.was_open_at_end && (self.was_answered || !self.was_asked)
    }

    /// Nothing will be held against the signature of this query any more.
    pub(crate) fn forget_signature(&mut self, id: u16) {
        if let Some(signed) = &mut self.signed {
            signed.remove(&id);
        }
    }

    /// Nothing is in flight, and nothing waits.
    pub(crate) fn is_idle(&self) -> bool {
        self.table.len() == 0 && self.pending.is_empty()
    }

    /// Which system calls carry the messages, if the connection is open.
    pub(crate) fn send_path(&self) -> Option<&'static str> {
        self.connection.as_ref().map(|connection| connection.send_path())
    }

    /// Queries in flight, on drained connections too, and waiting to be sent: what a window counts.
    pub(crate) fn outstanding(&self) -> usize {
        self.table.len() + self.pending.len() + self.on_drains as usize
    }

    /// How long its connection may be idle if its client lets it be for `own`.
    pub(crate) fn longest_idle(&self, own: Nanos) -> Nanos {
        own.min(self.server_idle)
    }

    /// Moves what belongs to the slot's connection to `drain`, which waits for the last answers.
    pub(crate) fn hand_over_to(&mut self, drain: &mut Self) {
        drain.connection = self.connection.take();
        drain.table = std::mem::replace(&mut self.table, InFlightTable::new());
        drain.signed = self.signed.take();
        drain.client = self.client;
        drain.transport = self.transport;
        drain.is_new = std::mem::take(&mut self.is_new);
        drain.watches_writing = std::mem::take(&mut self.watches_writing);
        drain.connecting_since = self.connecting_since;
        drain.active_at = self.active_at;
        drain.followed_at = self.followed_at;
        self.on_drains += drain.table.len() as u32;
        self.sent = 0;
        self.server_idle = Nanos::MAX;
    }
}
