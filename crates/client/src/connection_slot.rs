//! A socket of a simulated client, with the queries in flight on it and those that wait for it.

use std::collections::{HashMap, VecDeque};

use dnslab_wire::{Signed, Transport};

use crate::attempts::Attempts;
use crate::connection::Connection;
use crate::in_flight::InFlightTable;
use crate::runtime::Runtime;
use crate::time::Nanos;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    /// `None` in a closed loop until the query is first sent: it becomes due then.
    pub(crate) due: Option<Nanos>,
    /// Its place in the query list.
    pub(crate) query: u32,
    pub(crate) sent_before: u8,
    /// Which of its client's attempts it is, from 0.
    pub(crate) attempt: u8,
}

impl Pending {
    /// A query that was not sent yet.
    #[inline]
    pub(crate) fn new(due: Option<Nanos>, query: u32) -> Self {
        Self { due, query, sent_before: 0, attempt: 0 }
    }

    /// When it has waited to be sent for too long. One that is not due waits for ever.
    #[inline]
    pub(crate) fn end_of_wait(&self, attempts: &Attempts) -> Option<Nanos> {
        self.due.map(|due| due.saturating_add(attempts.end(self.attempt)))
    }
}

/// Where a slot is on the way of its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// It has no connection, and waits for none.
    Closed,
    /// It has no connection, and is in the worker's queue of slots to open.
    Queued,
    /// Its connection is being opened. Queries may be sent on it if they go as early data.
    Opening,
    /// Its connection was opened.
    Opened,
    /// It never has a socket of its own, but an address of its own at a socket that many clients share.
    Shared,
}

impl Life {
    pub(crate) fn has_connection(self) -> bool {
        matches!(self, Self::Opening | Self::Opened)
    }
}

/// What a client has a slot for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlotKind {
    /// One of the client's usual connections.
    Usual,
    /// Queries to another server of the client.
    OtherServer,
    /// Queries whose answers were truncated over UDP.
    OverTcp,
}

/// What the server has done for a slot so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    /// No query was sent.
    NotAsked,
    /// Queries were sent, and the server has looked at none.
    NotAnswered,
    /// The server has looked at a query.
    Answered,
}

/// A connection of a simulated client, or its UDP socket. While it rests, its boxes and queues are empty and
/// take no memory.
pub(crate) struct ConnectionSlot<R: Runtime> {
    pub(crate) connection: Option<Box<dyn Connection<R>>>,
    pub(crate) table: InFlightTable,
    pub(crate) pending: VecDeque<Pending>,
    /// Signatures of the queries in flight, by id: an answer is signed together with its query's signature
    /// (RFC 8945, section 5.3). `None`, without memory, where nothing is signed.
    #[expect(clippy::box_collection, reason = "a map itself is 48 octets of every slot's memory")]
    pub(crate) signed: Option<Box<HashMap<u16, Signed>>>,
    /// Its place among the clients of the worker.
    pub(crate) client: u32,
    /// For a drain: the slot whose connection it took over.
    pub(crate) drains_for: Option<u32>,
    /// Queries of this slot in flight on drains.
    pub(crate) on_drains: u32,
    pub(crate) transport: Transport,
    pub(crate) life: Life,
    pub(crate) kind: SlotKind,
    /// Which of its client's servers it leads to, from 0.
    pub(crate) server: u8,
    /// It is in the worker's list of slots to look after.
    pub(crate) listed: bool,
    /// The connection that is open, or was last, has answered a query.
    pub(crate) has_answered: bool,
    /// Its client, one of those that come while the load runs, has had a query that became due.
    pub(crate) has_come: bool,
    pub(crate) service: Service,
    /// When the server last answered one of its queries. Before the first answer, when the first query was
    /// sent.
    pub(crate) heard_at: Nanos,
    /// Queries that have timed out since then.
    pub(crate) timed_out_in_a_row: u32,
    /// When the last of these did.
    pub(crate) timed_out_at: Nanos,
    /// Open when the measured window ended, or about to be opened again at once.
    pub(crate) was_open_at_end: bool,
    /// It is in the worker's queue of idle slots.
    pub(crate) idle_listed: bool,
    /// Epoll was last asked for writability too.
    pub(crate) watches_writing: bool,
    /// Closed loop: the window when it is fully open.
    pub(crate) widest: u32,
    /// Closed loop: how much of the window is open. It opens step by step. Otherwise the whole window would
    /// reach the server in one burst that no socket buffer holds.
    pub(crate) window: u32,
    /// Queries sent since the connection was opened.
    pub(crate) sent: u32,
    /// Queries after which the connection is closed.
    pub(crate) quota: u32,
    /// How often its connection was to be opened.
    pub(crate) opened: u32,
    /// Attempts to connect since the last answer.
    pub(crate) attempts: u32,
    /// The earliest instant at which the worker looks after it in any case; [`Nanos::MAX`] for none.
    pub(crate) alarm: Nanos,
    /// When the current attempt to connect began.
    pub(crate) connecting_since: Nanos,
    /// After a failure, no attempt to connect begins before this instant.
    pub(crate) reconnect_at: Nanos,
    /// When the last query was sent or the last message came.
    pub(crate) active_at: Nanos,
    /// When the last query was sent, in an open loop over TCP; 0 in other loads.
    pub(crate) followed_at: Nanos,
    /// How long the server says it keeps an idle connection (RFC 7828); [`Nanos::MAX`] if it said nothing.
    pub(crate) server_idle: Nanos,
    /// Drops of its sockets that are closed already.
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
            life: Life::Closed,
            kind: SlotKind::Usual,
            server: 0,
            listed: false,
            has_answered: false,
            has_come: false,
            service: Service::NotAsked,
            heard_at: 0,
            timed_out_in_a_row: 0,
            timed_out_at: 0,
            was_open_at_end: false,
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

    pub(crate) fn is_open(&self) -> bool {
        self.life == Life::Shared
            || self.connection.as_ref().is_some_and(|connection| connection.is_open())
    }

    /// The connection takes no more queries, and is closed when its last has ended.
    pub(crate) fn is_draining(&self) -> bool {
        self.connection.as_ref().is_some_and(|connection| connection.is_draining())
    }

    /// Notes that queries were sent on it. `follows` in an open loop: the next query does not wait for the
    /// answer to the one before.
    pub(crate) fn note_sent(&mut self, sent: Nanos, queries: usize, follows: bool) {
        self.sent += queries as u32;
        self.active_at = sent;
        if self.service == Service::NotAsked {
            (self.service, self.heard_at) = (Service::NotAnswered, sent);
        }
        if follows && self.transport.runs_over_tcp() {
            self.followed_at = sent;
        }
    }

    /// Notes at the end of the measured window whether it is open. A connection counts that the server closed
    /// after an answer and that is being opened again: it may have had its share.
    pub(crate) fn note_end(&mut self) {
        self.was_open_at_end =
            self.is_open() || self.service == Service::Answered && self.attempts <= 1;
    }

    /// The client had a connection when the measured window ended, and no sign that the server did not serve
    /// it: it asked nothing, or had an answer.
    pub(crate) fn was_served(&self) -> bool {
        self.was_open_at_end && self.service != Service::NotAnswered
    }

    /// More of its queries timed out in a row than `by_chance`, in at least this time.
    pub(crate) fn is_forsaken(&self, by_chance: f64, least: Nanos) -> bool {
        let since = self.timed_out_at.saturating_sub(self.heard_at);
        f64::from(self.timed_out_in_a_row) > by_chance && since >= least
    }

    pub(crate) fn forget_signature(&mut self, id: u16) {
        if let Some(signed) = &mut self.signed {
            signed.remove(&id);
        }
    }

    /// Nothing is in flight, and nothing waits.
    pub(crate) fn is_idle(&self) -> bool {
        self.table.len() == 0 && self.pending.is_empty()
    }

    pub(crate) fn send_path(&self) -> Option<&'static str> {
        self.connection.as_ref().map(|connection| connection.send_path())
    }

    /// What a window counts: queries in flight, on drains too, and those that wait to be sent.
    pub(crate) fn outstanding(&self) -> usize {
        self.table.len() + self.pending.len() + self.on_drains as usize
    }

    /// How long its connection may be idle; `own` is the client's limit.
    pub(crate) fn longest_idle(&self, own: Nanos) -> Nanos {
        own.min(self.server_idle)
    }

    /// Moves what belongs to the slot's connection to a drain.
    pub(crate) fn hand_over_to(&mut self, drain: &mut Self) {
        drain.connection = self.connection.take();
        drain.table = std::mem::replace(&mut self.table, InFlightTable::new());
        drain.signed = self.signed.take();
        drain.client = self.client;
        (drain.transport, drain.server) = (self.transport, self.server);
        drain.kind = self.kind;
        drain.life = std::mem::replace(&mut self.life, Life::Closed);
        drain.watches_writing = std::mem::take(&mut self.watches_writing);
        drain.connecting_since = self.connecting_since;
        drain.active_at = self.active_at;
        drain.followed_at = self.followed_at;
        self.on_drains += drain.table.len() as u32;
        self.sent = 0;
        self.server_idle = Nanos::MAX;
    }
}
