//! What answers are held against, and what follows from each.

use dnslab_traffic::QueryList;
use dnslab_wire::{BADCOOKIE, Cookie, CookieFinding, Response, ResponseOptions, Transport};

use crate::channel::{Delivery, Received};
use crate::clock::{self, Nanos};
use crate::in_flight::{Entry, Known};
use crate::lane::{Lane, Pending};
use crate::tally::{AnswerFacts, Loss, Stray, Tally};

/// What a right answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Response code of the header, 0 to 15.
    pub rcode: u8,
    /// Records that the answer section must have at least; not asked of truncated answers.
    pub answers: u16,
}

impl Expected {
    fn is_met_by(self, response: &Response<'_>, rcode: u16) -> bool {
        let enough = response.answers >= self.answers || response.truncated;
        rcode == u16::from(self.rcode) && enough
    }
}

/// A query that is not over with what came, and is asked again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Again {
    pub(crate) entry: Entry,
    /// Over TCP, because its answer was truncated (RFC 7766, section 5).
    pub(crate) over_tcp: bool,
}

impl Again {
    /// The query as it waits to be sent again.
    pub(crate) fn pending(&self) -> Pending {
        let Entry { due, query, sent_before, .. } = self.entry;
        Pending { due: Some(due), query, sent_before: sent_before + 1 }
    }
}

/// How often a query is sent at most. A server that refuses the cookie that it gave itself, or that
/// shuts every connection unseen, must not be asked for ever.
const MOST_TIMES: u8 = 4;

/// What answers are held against.
pub(crate) struct Judge<'a> {
    pub(crate) queries: &'a QueryList,
    /// An answer that comes this long after its query was sent comes too late, even if nobody had
    /// the time to give the query up before.
    pub(crate) timeout: Nanos,
    /// What every answer must be.
    pub(crate) expected: Option<Expected>,
    /// Truncated answers over UDP are asked again over TCP.
    pub(crate) retries_over_tcp: bool,
    /// The OPT record of answers is read, for cookies and for the server's idle time.
    pub(crate) reads_options: bool,
    /// The cookies of the worker's clients; empty where none are sent.
    pub(crate) cookies: Vec<Cookie>,
    /// Queries to ask again, for the worker to take.
    pub(crate) again: Vec<Again>,
    /// The first wrong answer, for the report.
    pub(crate) wrong_example: Option<String>,
}

impl Judge<'_> {
    /// Books what came of a query on a lane.
    #[inline]
    pub(crate) fn receive(&mut self, lane: &mut Lane, tally: &mut Tally, delivery: Delivery<'_>) {
        match delivery {
            Delivery::Message(message) => self.receive_message(lane, tally, message),
            Delivery::Refused { id, at } => {
                if let Known::InFlight(entry) = lane.table.look_up(id) {
                    lane.table.answered(id);
                    tally.lost(entry.due, at, Loss::Refused);
                }
            }
            Delivery::NotProcessed { id } => self.receive_not_processed(lane, tally, id),
        }
    }

    /// Books a message by its id and question.
    #[inline]
    fn receive_message(&mut self, lane: &mut Lane, tally: &mut Tally, message: Received<'_>) {
        let Ok(response) = Response::parse(message.octets) else {
            return Self::receive_malformed(lane, tally, message);
        };
        match lane.table.look_up(response.id) {
            Known::InFlight(entry) if self.is_answer(&entry, &response) => {
                if message.at.saturating_sub(entry.sent) >= self.timeout {
                    lane.table.timed_out(response.id);
                    lane.forget_signature(response.id);
                    tally.lost(entry.due, message.at, Loss::TimedOut);
                    tally.stray(message.at, Stray::Late);
                    return;
                }
                self.receive_answer(lane, tally, message, &response, &entry);
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

    /// Books a message that answers a query in flight.
    #[inline]
    fn receive_answer(
        &mut self,
        lane: &mut Lane,
        tally: &mut Tally,
        message: Received<'_>,
        response: &Response<'_>,
        entry: &Entry,
    ) {
        let Received { octets, at } = message;
        let mut rcode = u16::from(response.rcode);
        if self.reads_options
            && let Some(options) = ResponseOptions::read(octets)
        {
            rcode = options.rcode;
            if let Some(keepalive) = options.keepalive {
                lane.server_idle = clock::nanos(keepalive);
            }
            if let Some(cookie) = self.cookies.get_mut(lane.client as usize)
                && cookie.learn(&options) == CookieFinding::WrongClientCookie
            {
                // Somebody who does not know the client's cookie: not the server that was asked
                // (RFC 7873, section 5.3). The query goes on waiting.
                return tally.stray(at, Stray::Unexpected);
            }
        }
        lane.table.answered(response.id);
        if !Self::is_signed_well(lane, tally, message, response.id) {
            return tally.lost(entry.due, at, Loss::Malformed);
        }
        let is_datagram = lane.transport == Transport::Udp;
        let over_tcp = response.truncated && self.retries_over_tcp && is_datagram;
        let refused_cookie = rcode == BADCOOKIE && !self.cookies.is_empty();
        if (over_tcp || refused_cookie) && self.ask_again(entry, over_tcp) {
            tally.asked_again(entry.due, over_tcp);
            return;
        }
        let facts = AnswerFacts {
            rcode,
            truncated: response.truncated,
            empty: rcode == 0 && response.answers == 0,
            wrong: self.is_wrong(entry, response, rcode),
            octets: octets.len(),
        };
        tally.answered(entry, at, facts);
    }

    /// Verifies the signature of an answer if its query was signed (RFC 8945, section 5.3).
    #[inline]
    fn is_signed_well(lane: &mut Lane, tally: &mut Tally, message: Received<'_>, id: u16) -> bool {
        let Some(signed) = &mut lane.signed else { return true };
        let Some(signed) = signed.remove(&id) else { return true };
        let good = signed.verify(message.octets, clock::unix_seconds()).is_ok();
        if !good {
            tally.bad_signature(message.at);
        }
        good
    }

    /// A query that the server never looked at is asked again on the next connection; one that this
    /// befell too often is lost.
    fn receive_not_processed(&mut self, lane: &mut Lane, tally: &mut Tally, id: u16) {
        let Known::InFlight(entry) = lane.table.look_up(id) else { return };
        lane.table.take_back(id);
        tally.connections(entry.sent).not_processed += 1;
        if self.ask_again(&entry, false) {
            tally.asked_again(entry.due, false);
        } else {
            tally.lost(entry.due, entry.sent, Loss::ConnectionLost);
        }
    }

    /// Puts a query down to be asked again; false if that was done too often.
    fn ask_again(&mut self, entry: &Entry, over_tcp: bool) -> bool {
        let may = entry.sent_before + 1 < MOST_TIMES;
        if may {
            self.again.push(Again { entry: *entry, over_tcp });
        }
        may
    }

    /// Octets that are no response. With the id of a query in flight they are what the server made
    /// of it; else nobody asked for them.
    fn receive_malformed(lane: &mut Lane, tally: &mut Tally, message: Received<'_>) {
        let in_flight =
            Response::id_of(message.octets).and_then(|id| match lane.table.look_up(id) {
                Known::InFlight(entry) => Some((id, entry)),
                _ => None,
            });
        match in_flight {
            Some((id, entry)) => {
                lane.table.answered(id);
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
    fn is_wrong(&mut self, entry: &Entry, response: &Response<'_>, rcode: u16) -> bool {
        let right = self.expected.is_none_or(|expected| expected.is_met_by(response, rcode));
        if !right && self.wrong_example.is_none() {
            let query = self.queries.get(entry.query);
            let (name, records) = (dnslab_wire::rcode_name(rcode), response.answers);
            let truncated = if response.truncated { ", truncated" } else { "" };
            self.wrong_example =
                Some(format!("{query} was answered with {name}, {records} records{truncated}"));
        }
        !right
    }
}
