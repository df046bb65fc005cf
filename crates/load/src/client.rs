//! One simulated client: its channel, what it has in flight, what it still has to send.

use std::collections::VecDeque;

use dnslab_traffic::QueryList;
use dnslab_wire::Response;

use crate::channel::{Channel, ClientTls, Received};
use crate::clock::Nanos;
use crate::in_flight::{Entry, InFlightTable, Known};
use crate::tally::{AnswerFacts, Loss, Stray, Tally};

/// A query that waits to be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    /// When it became due by the schedule. Without a schedule (closed loop) a query is due when it
    /// is sent, so this is `None`.
    pub(crate) due: Option<Nanos>,
    /// Its place in the query list.
    pub(crate) query: u32,
}

/// A simulated client. Boxes and queues are empty, without memory, while it rests.
pub(crate) struct Client {
    pub(crate) channel: Option<Box<dyn Channel>>,
    pub(crate) tls: Option<ClientTls>,
    pub(crate) table: InFlightTable,
    pub(crate) pending: VecDeque<Pending>,
    /// It stands in the worker's list of clients to look after.
    pub(crate) listed: bool,
    /// The readiness that epoll was last asked for includes writing.
    pub(crate) watches_writing: bool,
    /// The latest instant at which the worker will look for unsent queries to give up.
    pub(crate) gives_up_at: Nanos,
    /// Closed loop: how much of the window is open. It opens step by step, so that a server is not
    /// met by the whole window in one burst that no socket buffer holds.
    pub(crate) window: usize,
    /// The current attempt to connect began then.
    pub(crate) connecting_since: Nanos,
    /// Attempts to connect since the last answer.
    pub(crate) attempts: u32,
    /// Drops of sockets that are closed already.
    pub(crate) drops: u64,
}

impl Client {
    pub(crate) fn new(outstanding: usize, tls: Option<ClientTls>) -> Self {
        Self {
            channel: None,
            tls,
            table: InFlightTable::new(outstanding),
            pending: VecDeque::new(),
            listed: false,
            watches_writing: false,
            gives_up_at: 0,
            window: 0,
            connecting_since: 0,
            attempts: 0,
            drops: 0,
        }
    }

    /// Queries may be sent now.
    pub(crate) fn is_open(&self) -> bool {
        self.channel.as_ref().is_some_and(|channel| channel.is_open())
    }

    /// Which system calls carry the messages, if the channel is open.
    pub(crate) fn send_path(&self) -> Option<&'static str> {
        self.channel.as_ref().map(|channel| channel.send_path())
    }

    /// Queries in flight and waiting to be sent: what a window counts.
    pub(crate) fn outstanding(&self) -> usize {
        self.table.len() + self.pending.len()
    }
}

/// What a right answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Response code of the header, 0 to 15.
    pub rcode: u8,
    /// Records that the answer section must have at least; not asked of truncated answers.
    pub answers: u16,
}

impl Expected {
    fn is_met_by(self, response: &Response<'_>) -> bool {
        response.rcode == self.rcode && (response.answers >= self.answers || response.truncated)
    }
}

/// What answers are held against.
pub(crate) struct Judge<'a> {
    pub(crate) queries: &'a QueryList,
    /// An answer that comes this long after its query was sent comes too late, even if nobody had
    /// the time to give the query up before.
    pub(crate) timeout: Nanos,
    /// What every answer must be.
    pub(crate) expected: Option<Expected>,
    /// The first wrong answer, for the report.
    pub(crate) wrong_example: Option<String>,
}

impl Judge<'_> {
    /// Books one message that came to a client.
    #[inline]
    pub(crate) fn receive(
        &mut self,
        table: &mut InFlightTable,
        tally: &mut Tally,
        message: Received<'_>,
    ) {
        let Ok(response) = Response::parse(message.octets) else {
            Self::receive_malformed(table, tally, message);
            return;
        };
        match table.look_up(response.id) {
            Known::InFlight(entry) if self.is_answer(&entry, &response) => {
                if message.at.saturating_sub(entry.sent) >= self.timeout {
                    table.timed_out(response.id);
                    tally.lost(entry.due, message.at, Loss::TimedOut);
                    tally.stray(message.at, Stray::Late);
                    return;
                }
                table.answered(response.id);
                let facts = AnswerFacts {
                    rcode: response.rcode,
                    truncated: response.truncated,
                    empty: response.rcode == 0 && response.answers == 0,
                    wrong: self.is_wrong(&entry, &response),
                    octets: message.octets.len(),
                };
                tally.answered(&entry, message.at, facts);
            }
            Known::Answered(entry) if self.is_answer(&entry, &response) => {
                tally.stray(message.at, Stray::Duplicate);
            }
            Known::TimedOut(entry) if self.is_answer(&entry, &response) => {
                tally.stray(message.at, Stray::Late);
            }
            _ => tally.stray(message.at, Stray::Unexpected),
        }
    }

    /// Octets that are no response. With the id of a query in flight they are what the server made
    /// of it; else nobody asked for them.
    fn receive_malformed(table: &mut InFlightTable, tally: &mut Tally, message: Received<'_>) {
        let in_flight = Response::id_of(message.octets).and_then(|id| match table.look_up(id) {
            Known::InFlight(entry) => Some((id, entry)),
            _ => None,
        });
        match in_flight {
            Some((id, entry)) => {
                table.answered(id);
                tally.lost(entry.due, message.at, Loss::Malformed);
            }
            None => tally.stray(message.at, Stray::Unexpected),
        }
    }

    /// The question is that of the query. A server may leave it out of an error (a format error,
    /// for one, when it could not read the question).
    #[inline]
    fn is_answer(&self, entry: &Entry, response: &Response<'_>) -> bool {
        let query = self.queries.get(entry.query);
        query.asks_the_same(response.question)
            || (response.question.is_empty() && response.rcode != 0)
    }

    #[inline]
    fn is_wrong(&mut self, entry: &Entry, response: &Response<'_>) -> bool {
        let right = self.expected.is_none_or(|expected| expected.is_met_by(response));
        if !right && self.wrong_example.is_none() {
            let query = self.queries.get(entry.query);
            let (rcode, records) = (dnslab_wire::rcode_name(response.rcode), response.answers);
            let truncated = if response.truncated { ", truncated" } else { "" };
            self.wrong_example =
                Some(format!("{query} was answered with {rcode}, {records} records{truncated}"));
        }
        !right
    }
}
