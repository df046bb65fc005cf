//! Matches answers to queries, and books what follows.

use dnslab_figures::HowEnded;
use dnslab_settings::RightCodes;
use dnslab_traffic::Candidates;
use dnslab_wire::{
    BADCOOKIE, Cookie, CookieFinding, Held, Response, ResponseOptions, Transport, TsigFault, rcode,
};

use crate::attempts::Attempts;
use crate::connection::{Delivery, Received};
use crate::connection_slot::{ConnectionSlot, Pending, SlotKind};
use crate::in_flight::{Entry, Known};
use crate::recorder::{AnswerFacts, Failure, Loss, Recorder, Stray};
use crate::replay::Queries;
use crate::runtime::Runtime;
use crate::sample::Sample;
use crate::time::{self, Nanos};

/// What an answer must be to be right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Expected {
    /// Its response code.
    pub codes: RightCodes,
    /// Least number of records in the answer section. If there must be any, one of them has the type that was
    /// asked for. Only answers that are parsed in full are checked for that.
    pub answers: u16,
}

impl Expected {
    fn is_met_by(self, response: &Response<'_>, rcode: u16) -> bool {
        self.codes.has(rcode) && response.answers >= self.answers
    }
}

/// A query that is to be asked again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retry {
    pub(crate) pending: Pending,
    pub(crate) way: Way,
}

/// Where a query is asked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Where it was asked before.
    Same,
    /// At the same server over TCP, because its answer was truncated (RFC 7766, section 5) or its cookie was
    /// refused twice (RFC 7873, section 5.3).
    OverTcp,
    /// At the next server, if the client knows more than one.
    NextServer,
}

/// The query goes on waiting, after it was sent once more.
pub(crate) fn again(entry: &Entry) -> Pending {
    let Entry { due, query, sent_before, attempt, .. } = *entry;
    Pending { due: Some(due), query, sent_before: sent_before.saturating_add(1), attempt }
}

/// How often a query is sent at most. A server may refuse the cookie that it gave itself, or close every
/// connection unseen. It must not be asked for ever.
const MAX_TIMES: u8 = 4;

pub(crate) struct ResponseMatcher<'a> {
    pub(crate) queries: Queries<'a>,
    /// An answer that comes this long after its query was sent may be too late, even if the query has not
    /// been given up yet.
    pub(crate) timeout: Nanos,
    pub(crate) attempts: Attempts,
    pub(crate) expected: Option<Expected>,
    /// Truncated answers over UDP are asked again over TCP.
    pub(crate) retries_over_tcp: bool,
    /// Clients use several transports.
    pub(crate) is_mixed: bool,
    /// The OPT record of answers is read, for cookies and for the server's idle time.
    pub(crate) reads_options: bool,
    /// The cookies of the worker's clients; empty where none are sent.
    pub(crate) cookies: Vec<Cookie>,
    /// Which query follows one whose name does not exist; `None` if clients have no search list.
    pub(crate) candidates: Option<Candidates>,
    /// The zero of the timeline, nanoseconds since 1970 in UTC. Signatures have the time of day (RFC 8945,
    /// section 4.2), which somebody may set while the load runs.
    pub(crate) origin_unix_ns: u64,
    /// Queries to ask again. The worker takes them.
    pub(crate) again: Vec<Retry>,
    /// The first wrong answer, for the report.
    pub(crate) wrong_example: Option<String>,
    /// Which right answers are parsed in full.
    pub(crate) sample: Sample,
    /// The fault of the first of them that was malformed, for the report.
    pub(crate) malformed_example: Option<String>,
    pub(crate) signatures: Signatures,
}

/// The signatures of one worker's queries (RFC 8945).
#[derive(Debug, Default)]
pub(crate) struct Signatures {
    /// The first thing that was wrong with an answer's signature, for the report. What the server says of the
    /// query's signature replaces it: that has the remedy.
    pub(crate) example: Option<String>,
    is_refusal: bool,
    /// Answers that refused the signature of their query.
    refused: u32,
    has_good: bool,
}

/// After so many refused signatures without a good one the load ends: every further query would be refused
/// too. More than one, so that a forged refusal or two end no load.
const HOPELESS: u32 = 20;

impl Signatures {
    pub(crate) fn are_hopeless(&self) -> bool {
        self.refused >= HOPELESS && !self.has_good
    }
}

impl<'a> ResponseMatcher<'a> {
    /// For clients that send no options, use one transport and expect no particular answer.
    pub(crate) fn new(queries: Queries<'a>, timeout: Nanos, attempts: Attempts) -> Self {
        Self {
            queries,
            timeout,
            attempts,
            expected: None,
            retries_over_tcp: false,
            is_mixed: false,
            reads_options: false,
            cookies: Vec::new(),
            candidates: None,
            origin_unix_ns: 0,
            again: Vec::new(),
            wrong_example: None,
            sample: Sample::default(),
            malformed_example: None,
            signatures: Signatures::default(),
        }
    }

    /// To be called before a batch is signed, and before answers to signed queries are read.
    pub(crate) fn read_time_of_day(&mut self, runtime: &impl Runtime) {
        self.origin_unix_ns = runtime.wall_clock().saturating_sub(runtime.now());
    }

    #[inline]
    pub(crate) fn receive<R: Runtime>(
        &mut self,
        slot: &mut ConnectionSlot<R>,
        recorder: &mut Recorder,
        delivery: Delivery<'_>,
    ) {
        match delivery {
            Delivery::Message(message) => self.receive_message(slot, recorder, message),
            other => self.receive_no_message(slot, recorder, other),
        }
    }

    #[inline(never)]
    fn receive_no_message<R: Runtime>(
        &mut self,
        slot: &mut ConnectionSlot<R>,
        recorder: &mut Recorder,
        delivery: Delivery<'_>,
    ) {
        let (Delivery::Refused { id, .. }
        | Delivery::NotProcessed { id }
        | Delivery::TooEarly { id }) = delivery
        else {
            return;
        };
        let Known::InFlight(entry) = slot.table.look_up(id) else { return };
        match delivery {
            Delivery::Message(_) => {}
            Delivery::Refused { at, status, .. } => {
                // 0 is a stream that was reset.
                if status > 0 {
                    recorder.refused_by_http(entry.due, at, status);
                }
                slot.table.answered(id);
                slot.forget_signature(id);
                self.fail(recorder, &again(&entry), at, Loss::Refused);
            }
            Delivery::NotProcessed { .. } => {
                recorder.connections(entry.sent).not_processed += 1;
                self.take_back(slot, recorder, id, &entry, Loss::ConnectionLost);
            }
            // The early data that the request was part of has been accepted, so the handshake is over on this
            // side, and what is sent from here on is no early data.
            Delivery::TooEarly { .. } => self.take_back(slot, recorder, id, &entry, Loss::Refused),
        }
    }

    #[inline]
    fn receive_message<R: Runtime>(
        &mut self,
        slot: &mut ConnectionSlot<R>,
        recorder: &mut Recorder,
        message: Received<'_>,
    ) {
        let Ok(response) = Response::parse(message.octets) else {
            return self.receive_malformed(slot, recorder, message);
        };
        match slot.table.look_up(response.id) {
            Known::InFlight(entry) if self.is_answer(&entry, &response) => {
                let took = message.at.saturating_sub(entry.sent);
                if took >= self.timeout && took >= self.attempts.wait(entry.attempt) {
                    slot.table.timed_out(response.id);
                    slot.forget_signature(response.id);
                    self.fail(recorder, &again(&entry), message.at, Loss::TimedOut);
                    recorder.stray(message.at, Stray::Late);
                    return;
                }
                self.receive_answer(slot, recorder, message, &response, &entry);
            }
            Known::Answered(entry) if self.is_answer(&entry, &response) => {
                recorder.stray(message.at, Stray::Duplicate);
            }
            Known::TimedOut(entry)
                if self.queries.has_forgotten(entry.query) || self.is_answer(&entry, &response) =>
            {
                recorder.stray(message.at, Stray::Late);
            }
            _ => recorder.stray(message.at, Stray::Unexpected),
        }
    }

    #[inline]
    fn receive_answer<R: Runtime>(
        &mut self,
        slot: &mut ConnectionSlot<R>,
        recorder: &mut Recorder,
        message: Received<'_>,
        response: &Response<'_>,
        entry: &Entry,
    ) {
        let Received { octets, at } = message;
        // First of all: a message that may not be the server's must teach nothing.
        if slot.signed.is_some() && !self.is_signed_well(slot, recorder, message, response.id) {
            return;
        }
        let mut rcode = u16::from(response.rcode);
        let mut finding = CookieFinding::None;
        if self.reads_options
            && let Some(options) = ResponseOptions::read(octets)
        {
            rcode = options.rcode;
            if let Some(cookie) = self.cookies.get_mut(slot.client as usize) {
                finding = cookie.learn(&options);
            }
            if finding == CookieFinding::WrongClientCookie {
                // The sender does not know the client's cookie, so it is not the server that was asked (RFC
                // 7873, section 5.3). The query goes on waiting.
                return recorder.stray(at, Stray::Unexpected);
            }
            // On other transports the option has no meaning: UDP has no connection (RFC 7828, section 3.2.1),
            // and QUIC and HTTP have means of their own (RFC 9250, section 5.5.2).
            let may_have_it = matches!(slot.transport, Transport::Tcp | Transport::Dot);
            if let Some(keepalive) = options.keepalive.filter(|_| may_have_it) {
                slot.server_idle = time::nanos(keepalive);
            }
        }
        slot.table.answered(response.id);
        slot.forget_signature(response.id);
        let refused_cookie = rcode == BADCOOKIE && finding == CookieFinding::Learned;
        if let Some(way) = self.retry(slot.transport, entry, response, refused_cookie)
            && self.ask_again(entry, way)
        {
            recorder.asked_again(entry.due, response.truncated);
            return;
        }
        if is_failure(rcode) && self.attempts.has_next(entry.attempt) {
            self.ask_next(recorder, again(entry), Failure::Answer);
            return;
        }
        if let Some(candidates) = &self.candidates
            && leaves_name_open(rcode)
            && let Some(query) = candidates.after(entry.query)
        {
            // Another query, with attempts of its own, for the name that has been due since then.
            let pending = Pending { due: Some(entry.due), query, sent_before: 1, attempt: 0 };
            self.again.push(Retry { pending, way: Way::Same });
            recorder.searched(entry.due);
            return;
        }
        let facts = AnswerFacts {
            rcode,
            truncated: response.truncated,
            over_tcp: slot.kind == SlotKind::OverTcp,
            empty: rcode == 0 && response.answers == 0,
            wrong: self.is_wrong(entry, response, rcode),
            octets: octets.len(),
        };
        if !facts.wrong && self.sample.takes_next() {
            self.check_in_full(recorder, entry.due, entry.query, message);
        }
        if entry.sent < slot.followed_at {
            let took = at.saturating_sub(entry.sent);
            recorder.overtaken(entry.due, took, at.saturating_sub(slot.followed_at));
        }
        if let Some(transcript) = &mut recorder.transcript {
            transcript.ended(entry.query, HowEnded::Answered, octets);
        }
        if self.is_mixed {
            // Only clients of UDP ask again over TCP.
            let asked_over = if facts.over_tcp { Transport::Udp } else { slot.transport };
            recorder.answered_over(entry.due, asked_over);
        }
        recorder.answered(entry, at, facts);
    }

    /// Whether to ask the same server again, and if so, where.
    ///
    /// A refused cookie is worth another try only with the cookie that came with the refusal. If that is
    /// refused too, only TCP is left, if the client may use it: the servers at the address do not agree on
    /// their secret (RFC 7873, section 5.3).
    #[inline]
    fn retry(
        &self,
        transport: Transport,
        entry: &Entry,
        response: &Response<'_>,
        refused_cookie: bool,
    ) -> Option<Way> {
        let may_use_tcp = self.retries_over_tcp && transport == Transport::Udp;
        if response.truncated && may_use_tcp {
            return Some(Way::OverTcp);
        }
        // Each attempt is sent once, and once more with another cookie.
        let is_first = entry.sent_before <= entry.attempt;
        let way = if is_first { Way::Same } else { Way::OverTcp };
        (refused_cookie && (is_first || may_use_tcp)).then_some(way)
    }

    /// Ends an attempt of a client, which asks again if it has another. True if the query has an outcome.
    pub(crate) fn fail(
        &mut self,
        recorder: &mut Recorder,
        pending: &Pending,
        at: Nanos,
        loss: Loss,
    ) -> bool {
        let Some(due) = pending.due else { return true };
        let is_over = !self.attempts.has_next(pending.attempt);
        if is_over {
            recorder.lost(pending.query, due, at, loss);
        } else {
            let failure = match loss {
                Loss::TimedOut | Loss::NotSent => Failure::Silence,
                Loss::ConnectionLost | Loss::Malformed | Loss::Refused => Failure::Answer,
            };
            self.ask_next(recorder, *pending, failure);
        }
        is_over
    }

    #[cold]
    fn ask_next(&mut self, recorder: &mut Recorder, pending: Pending, failure: Failure) {
        recorder.attempted_again(pending.due.unwrap_or(0), failure);
        let pending = Pending { attempt: pending.attempt + 1, ..pending };
        self.again.push(Retry { pending, way: Way::NextServer });
    }

    /// Verifies the signature of an answer if its query was signed. Books the answer if it is not signed
    /// well. Apart from the path of an ordinary answer, which costs less for it.
    #[inline(never)]
    fn is_signed_well<R: Runtime>(
        &mut self,
        slot: &mut ConnectionSlot<R>,
        recorder: &mut Recorder,
        message: Received<'_>,
        id: u16,
    ) -> bool {
        let verified = self.check_signature(slot, message, id);
        match verified {
            Ok(()) => self.signatures.has_good = true,
            Err(fault) => self.receive_ill_signed(slot, recorder, message, id, fault),
        }
        verified.is_ok()
    }

    /// As RFC 8945, section 5.4, says; right if the query was not signed.
    fn check_signature<R: Runtime>(
        &self,
        slot: &ConnectionSlot<R>,
        message: Received<'_>,
        id: u16,
    ) -> Result<(), TsigFault> {
        let Some(signed) = slot.signed.as_ref().and_then(|signed| signed.get(&id)) else {
            return Ok(());
        };
        signed.verify(message.octets, (self.origin_unix_ns + message.at) / 1_000_000_000)
    }

    /// Books a message that is not signed as the answer to its query must be. Anybody who can send datagrams
    /// can send such a message. So it is no answer, and the query goes on waiting (RFC 8945, section 5.4).
    /// But if the message says that the server refused the signature, no answer will come, and the query has
    /// been refused.
    fn receive_ill_signed<R: Runtime>(
        &mut self,
        slot: &mut ConnectionSlot<R>,
        recorder: &mut Recorder,
        message: Received<'_>,
        id: u16,
        fault: TsigFault,
    ) {
        let Known::InFlight(entry) = slot.table.look_up(id) else { return };
        recorder.bad_signature(message.at);
        let refusal = fault.refusal();
        let signatures = &mut self.signatures;
        if signatures.example.is_none() || refusal.is_some() && !signatures.is_refusal {
            let signed = slot.signed.as_ref().and_then(|signed| signed.get(&id));
            let key = signed.map(|signed| signed.key_name()).unwrap_or_default();
            let query = self.queries.get(entry.query);
            signatures.example = Some(format!("{fault} (key `{key}`, query {query})"));
            signatures.is_refusal = refusal.is_some();
        }
        let Some(refusal) = refusal else { return };
        slot.table.answered(id);
        slot.forget_signature(id);
        recorder.refused_signature(entry.due, refusal);
        recorder.lost(entry.query, entry.due, message.at, Loss::Refused);
        signatures.refused = signatures.refused.saturating_add(1);
    }

    /// Asks a query again that the server did not look at. A query that was taken back too often is lost.
    fn take_back<R: Runtime>(
        &mut self,
        slot: &mut ConnectionSlot<R>,
        recorder: &mut Recorder,
        id: u16,
        entry: &Entry,
        loss: Loss,
    ) {
        slot.table.take_back(id);
        slot.forget_signature(id);
        if self.ask_again(entry, Way::Same) {
            recorder.asked_again(entry.due, false);
        } else {
            self.fail(recorder, &again(entry), entry.sent, loss);
        }
    }

    /// False if the query was asked again too often.
    fn ask_again(&mut self, entry: &Entry, way: Way) -> bool {
        // Each attempt may be sent so often.
        let may = entry.sent_before + 1 < MAX_TIMES.saturating_mul(entry.attempt + 1);
        if may {
            self.again.push(Retry { pending: again(entry), way });
        }
        may
    }

    /// Books octets that are no response. With the id of a query in flight they count as the server's answer
    /// to it, unless the query was signed. With any other id they are unexpected.
    #[inline(never)]
    fn receive_malformed<R: Runtime>(
        &mut self,
        slot: &mut ConnectionSlot<R>,
        recorder: &mut Recorder,
        message: Received<'_>,
    ) {
        let in_flight =
            Response::id_of(message.octets).and_then(|id| match slot.table.look_up(id) {
                Known::InFlight(entry) => Some((id, entry)),
                _ => None,
            });
        match in_flight {
            Some((id, _)) if self.check_signature(slot, message, id).is_err() => {
                self.receive_ill_signed(slot, recorder, message, id, TsigFault::Malformed);
            }
            Some((id, entry)) => {
                slot.table.answered(id);
                slot.forget_signature(id);
                self.fail(recorder, &again(&entry), message.at, Loss::Malformed);
            }
            None => recorder.stray(message.at, Stray::Unexpected),
        }
    }

    #[inline]
    fn is_answer(&self, entry: &Entry, response: &Response<'_>) -> bool {
        self.queries.get(entry.query).is_answered_by(response)
    }

    /// Parses an answer in full whose header looked right. All by value, as in [`Recorder::overtaken`].
    #[cold]
    #[inline(never)]
    fn check_in_full(
        &mut self,
        recorder: &mut Recorder,
        due: Nanos,
        query: u32,
        message: Received<'_>,
    ) {
        let stands_for = self.sample.taken(message.at, message.octets.len());
        let read = dnslab_wire::read_answer(message.octets);
        let wants_record = self.expected.is_some_and(|expected| expected.answers > 0);
        let is_right = read.as_ref().is_ok_and(|content| {
            !wants_record || content.truncated || content.held == Held::Record
        });
        recorder.checked(due, stands_for, !is_right);
        if !is_right && self.malformed_example.is_none() {
            let query = self.queries.get(query);
            self.malformed_example = Some(match read {
                Err(fault) => format!("malformed answer to {query}: {fault}"),
                Ok(_) => format!("{query} was answered with aliases alone"),
            });
        }
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

/// A client with another server asks that (glibc and musl do): SERVFAIL, NOTIMP and REFUSED say nothing of the
/// name (RFC 1035, section 4.1.1).
fn is_failure(rcode: u16) -> bool {
    matches!(rcode, rcode::SERVFAIL | rcode::NOTIMP | rcode::REFUSED)
}

/// glibc goes on to the next name of its search list after NXDOMAIN and SERVFAIL (`__res_context_search`). A name that
/// exists without this type most likely has the other one that getaddrinfo(3) asks for beside it, which ends the search.
fn leaves_name_open(rcode: u16) -> bool {
    matches!(rcode, rcode::NXDOMAIN | rcode::SERVFAIL)
}

#[cfg(test)]
mod tests;
