//! What one worker counts.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use dnslab_figures::{
    ByPhase, Counters, Histogram, HowEnded, HttpRefusals, Interval, IntervalTraffic, LONG,
    Outcomes, TransportOutcomes, WindowCounts, at_once_ns,
};
use dnslab_traffic::Turns;
use dnslab_wire::{Transport, rcode_name};
use serde::{Deserialize, Serialize};

use crate::connection::HandshakeKind;
use crate::in_flight::Entry;
use crate::time::Nanos;
use crate::transcript::Transcript;

/// When the phases of a load begin and end, nanoseconds since it began.
#[derive(Clone, Copy, Debug)]
pub struct Phases {
    /// End of the warm-up, beginning of the measured window.
    pub measured_from: Nanos,
    /// End of the measured window: nothing becomes due from here on.
    pub until: Nanos,
    /// Length of the intervals of the series.
    pub interval: Nanos,
    /// A query without an answer for this long has timed out.
    pub timeout: Nanos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    TimedOut,
    NotSent,
    ConnectionLost,
    Malformed,
    Refused,
}

/// Why a client asks again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// No answer came in time.
    Silence,
    /// The connection ended, or the answer was a failure of the server.
    Answer,
}

impl Loss {
    fn count(self, outcomes: &mut Outcomes) {
        match self {
            Self::TimedOut => outcomes.timed_out += 1,
            Self::NotSent => outcomes.not_sent += 1,
            Self::ConnectionLost => outcomes.connection_lost += 1,
            Self::Malformed => outcomes.malformed += 1,
            Self::Refused => outcomes.refused += 1,
        }
    }
}

impl From<Loss> for HowEnded {
    fn from(loss: Loss) -> Self {
        match loss {
            Loss::TimedOut => Self::TimedOut,
            Loss::NotSent => Self::NotSent,
            Loss::ConnectionLost => Self::ConnectionLost,
            Loss::Malformed => Self::Malformed,
            Loss::Refused => Self::Refused,
        }
    }
}

/// Messages without a query in flight that they answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stray {
    Late,
    Duplicate,
    Unexpected,
}

/// What happened since the load began, or in an interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Events {
    /// Queries that became due.
    pub due: u64,
    /// Queries sent for the first time.
    pub sent: u64,
    /// Answers received.
    pub answered: u64,
    /// Queries that ended without an answer.
    pub lost: u64,
    /// The answers by response code.
    pub rcodes: RcodeCounts,
    /// Octets and connections.
    pub traffic: IntervalTraffic,
}

impl Events {
    /// What happened since `earlier`; both are sums since the load began.
    fn since(&self, earlier: &Self) -> Self {
        Self {
            due: self.due - earlier.due,
            sent: self.sent - earlier.sent,
            answered: self.answered - earlier.answered,
            lost: self.lost - earlier.lost,
            rcodes: self.rcodes.since(&earlier.rcodes),
            traffic: self.traffic.since(&earlier.traffic),
        }
    }

    fn merge(&mut self, other: &Self) {
        self.due += other.due;
        self.sent += other.sent;
        self.answered += other.answered;
        self.lost += other.lost;
        self.rcodes.merge(&other.rcodes);
        self.traffic.merge(&other.traffic);
    }
}

/// One interval, and what was counted until its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IntervalRecord {
    /// Its place among the intervals, from 0.
    pub number: u64,
    /// What happened in it.
    pub events: Events,
    /// Of the queries that ended in it.
    pub latency: Histogram,
    /// Sums since the load began.
    pub sums: ByPhase<PhaseCounts>,
    /// CPU time of the worker in the load's own turns since the load began, nanoseconds; of several, that of the one
    /// which has used most until then.
    pub busiest: Nanos,
    /// Open loop: the milliseconds of the timeline since the last reported interval, from `first_millisecond`
    /// on.
    pub milliseconds: Vec<Millisecond>,
    /// Number of the first of [`Self::milliseconds`].
    pub first_millisecond: u64,
}

/// Queries due and sent in one millisecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Millisecond {
    /// Queries that became due in it.
    pub due: u32,
    /// Queries sent in it.
    pub sent: u32,
}

/// Response codes that are counted without a search: those of the header, and all extended ones in use.
const USUAL_RCODES: usize = 24;

/// Answers by response code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RcodeCounts {
    usual: [u64; USUAL_RCODES],
    unusual: BTreeMap<u16, u64>,
}

impl RcodeCounts {
    #[inline]
    fn count(&mut self, rcode: u16) {
        match self.usual.get_mut(usize::from(rcode)) {
            Some(count) => *count += 1,
            None => *self.unusual.entry(rcode).or_default() += 1,
        }
    }

    fn merge(&mut self, other: &Self) {
        for (own, more) in self.usual.iter_mut().zip(&other.usual) {
            *own += more;
        }
        for (rcode, more) in &other.unusual {
            *self.unusual.entry(*rcode).or_default() += more;
        }
    }

    /// What was counted since `earlier`; both are sums since the load began.
    fn since(&self, earlier: &Self) -> Self {
        let mut since = self.clone();
        for (own, before) in since.usual.iter_mut().zip(&earlier.usual) {
            *own -= before;
        }
        for (rcode, before) in &earlier.unusual {
            *since.unusual.entry(*rcode).or_default() -= before;
        }
        since
    }

    /// The codes that were seen, by their mnemonics.
    fn by_name(&self) -> BTreeMap<String, u64> {
        let usual = (0u16..).zip(self.usual);
        let all = usual.chain(self.unusual.iter().map(|(rcode, count)| (*rcode, *count)));
        let seen = all.filter(|(_, count)| *count > 0);
        seen.map(|(rcode, count)| (rcode_name(rcode).into_owned(), count)).collect()
    }
}

/// Counts of one phase, with response codes by number.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PhaseCounts {
    counters: Counters,
    rcodes: RcodeCounts,
    /// By the number of the transport; only where clients use several.
    over: [TransportOutcomes; Transport::ALL.len()],
}

/// Counts of the queries that became due in a time window.
#[derive(Clone, Debug)]
struct Windowed {
    /// On the timeline of the load.
    span: Range<Nanos>,
    outcomes: Outcomes,
    rcodes: RcodeCounts,
    latency: Histogram,
    service_time: Histogram,
}

impl Windowed {
    fn new(span: Range<Nanos>) -> Self {
        Self {
            span,
            outcomes: Outcomes::default(),
            rcodes: RcodeCounts::default(),
            latency: Histogram::allocated(),
            service_time: Histogram::allocated(),
        }
    }
}

/// How close to its schedule an open loop sends, millisecond by millisecond.
#[derive(Clone, Debug, Default)]
struct Paced {
    /// From `first` on.
    milliseconds: VecDeque<Millisecond>,
    /// Number of the first millisecond, from the beginning of the load.
    first: u64,
}

const MILLISECOND: Nanos = 1_000_000;

impl Paced {
    #[inline]
    fn at(&mut self, instant: Nanos) -> &mut Millisecond {
        let place = (instant / MILLISECOND).saturating_sub(self.first) as usize;
        if place >= self.milliseconds.len() {
            self.milliseconds.resize(place + 1, Millisecond::default());
        }
        &mut self.milliseconds[place]
    }

    /// Hands out the milliseconds that have ended, from `first` on.
    fn take_ended(&mut self, now: Nanos) -> Vec<Millisecond> {
        let until = now / MILLISECOND;
        let count = until.saturating_sub(self.first) as usize;
        self.milliseconds.resize(self.milliseconds.len().max(count), Millisecond::default());
        self.first = until.max(self.first);
        self.milliseconds.drain(..count).collect()
    }
}

/// Everything that one worker counts. Queries belong to the phase in which they were due. Messages without a
/// query, and connections, belong to the phase in which they came.
#[derive(Clone, Debug)]
pub struct Recorder {
    phases: Phases,
    /// The time that counts, if the load takes turns with others. Without turns, all of it counts.
    turns: Option<Turns>,
    sums: ByPhase<PhaseCounts>,
    /// Queries that were sent again.
    sent_again: u64,
    /// Queries sent inside the measured window, whenever they were due.
    pub sent_in_window: u64,
    /// Answers received inside the measured window, whenever their query was due.
    pub answered_in_window: u64,
    /// Answers received inside the measured window, with those that came outside the load's turns.
    pub answered_in_all: u64,
    latency: Histogram,
    service_time: Histogram,
    send_lag: Histogram,
    /// Latencies that are service times too: of queries sent when they were due. In a closed loop those are
    /// all.
    both: Histogram,
    /// Queries that were sent when they were due.
    without_lag: u64,
    /// How much later than due clients with queries of their own turned to them, before any connecting.
    pub start_lag: Histogram,
    /// Times to connect over TCP.
    pub connect_time: Histogram,
    /// The shortest round trip to the server over TCP.
    pub round_trip: Option<Nanos>,
    /// See [`dnslab_figures::at_once_ns`]; 0 without a round trip.
    at_once: Nanos,
    /// Times of full handshakes.
    pub handshake_time: Histogram,
    /// Times of resumed handshakes.
    pub resumed_handshake_time: Histogram,
    /// Times of handshakes with early data that was accepted.
    pub early_data_time: Histogram,
    /// Number of the current interval.
    interval: u64,
    /// Latencies of the queries that have ended in it.
    in_interval: Histogram,
    /// What happened before it.
    before: Events,
    /// None in most loads.
    windows: Vec<Windowed>,
    /// Open loop only.
    paced: Option<Box<Paced>>,
    /// What each query is told, if that is to be kept.
    pub(crate) transcript: Option<Box<Transcript>>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct AnswerFacts {
    /// With the bits of the OPT record where that was read (RFC 6891).
    pub(crate) rcode: u16,
    pub(crate) truncated: bool,
    /// It came over TCP to a query that was asked over UDP before.
    pub(crate) over_tcp: bool,
    /// NOERROR without a record in the answer section.
    pub(crate) empty: bool,
    /// Not the answer that the experiment expects.
    pub(crate) wrong: bool,
    pub(crate) octets: usize,
}

impl Recorder {
    pub(crate) fn new(phases: Phases, turns: Option<Turns>, is_paced: bool) -> Self {
        Self {
            phases,
            turns,
            sums: ByPhase::default(),
            sent_again: 0,
            sent_in_window: 0,
            answered_in_window: 0,
            answered_in_all: 0,
            latency: Histogram::allocated(),
            service_time: Histogram::allocated(),
            send_lag: Histogram::allocated(),
            both: Histogram::allocated(),
            without_lag: 0,
            start_lag: Histogram::new(),
            connect_time: Histogram::new(),
            round_trip: None,
            at_once: 0,
            handshake_time: Histogram::new(),
            resumed_handshake_time: Histogram::new(),
            early_data_time: Histogram::new(),
            interval: 0,
            in_interval: Histogram::allocated(),
            before: Events::default(),
            windows: Vec::new(),
            paced: is_paced.then(Box::default),
            transcript: None,
        }
    }

    /// Counts the queries of each of these spans of the timeline for itself, too.
    pub(crate) fn with_windows(mut self, spans: impl Iterator<Item = Range<Nanos>>) -> Self {
        self.windows = spans.map(Windowed::new).collect();
        self
    }

    /// Ends the measured window early.
    pub(crate) fn cut_short(&mut self, until: Nanos) {
        self.phases.until = until;
    }

    #[inline]
    pub(crate) fn due(&mut self, at: Nanos) {
        self.phase(at).counters.outcomes.due += 1;
        if !self.windows.is_empty() {
            self.in_windows(at, |window, _| window.outcomes.due += 1);
        }
        if let Some(paced) = &mut self.paced {
            paced.at(at).due += 1;
        }
    }

    /// Its client turned at `at` to a query that was due at `due`.
    pub(crate) fn taken_up(&mut self, due: Nanos, at: Nanos) {
        if self.is_measured(due) {
            self.start_lag.record_ns(at.saturating_sub(due));
        }
    }

    /// A query that is due at `due` belongs to a client of this transport, where clients use several.
    #[inline]
    pub(crate) fn due_over(&mut self, due: Nanos, transport: Transport) {
        self.phase(due).over[transport as usize].due += 1;
    }

    /// It was answered.
    #[inline]
    pub(crate) fn answered_over(&mut self, due: Nanos, transport: Transport) {
        self.phase(due).over[transport as usize].answered += 1;
    }

    /// A query was handed to the kernel, for the first time or again.
    #[inline]
    pub(crate) fn sent(&mut self, due: Nanos, at: Nanos, octets: usize, first: bool) {
        let is_measured = self.is_measured(due);
        let is_in_window = self.is_in_window(at) && self.is_counted(at);
        let phase = self.phase(due);
        phase.counters.sent += 1;
        phase.counters.sent_octets += octets as u64;
        if !first {
            self.sent_again += 1;
            return;
        }
        self.sent_in_window += u64::from(is_in_window);
        if is_measured {
            match at.saturating_sub(due) {
                0 => self.without_lag += 1,
                lag => self.send_lag.record_ns(lag),
            }
        }
        if let Some(paced) = &mut self.paced {
            paced.at(at).sent += 1;
        }
    }

    /// A query that was due at `at` is asked again.
    pub(crate) fn asked_again(&mut self, at: Nanos, is_truncated: bool) {
        let counters = &mut self.phase(at).counters;
        counters.asked_again += 1;
        counters.answers.truncated += u64::from(is_truncated);
        counters.answers.asked_over_tcp += u64::from(is_truncated);
    }

    /// The next name of a search list is asked for, for what was due at `due`.
    pub(crate) fn searched(&mut self, due: Nanos) {
        let counters = &mut self.phase(due).counters;
        counters.asked_again += 1;
        counters.searched += 1;
    }

    /// An attempt for a query that was due at `due` failed, and the client makes another.
    pub(crate) fn attempted_again(&mut self, due: Nanos, failure: Failure) {
        let counters = &mut self.phase(due).counters;
        counters.asked_again += 1;
        match failure {
            Failure::Silence => counters.attempts.timed_out += 1,
            Failure::Answer => counters.attempts.failed += 1,
        }
    }

    /// So many queries were sent at `at` to a server, of several that clients know.
    pub(crate) fn sent_to(&mut self, server: u8, at: Nanos, queries: usize) {
        let sent = &mut self.phase(at).counters.attempts.sent_to;
        let server = usize::from(server);
        if sent.len() <= server {
            sent.resize(server + 1, 0);
        }
        sent[server] += queries as u64;
    }

    /// A right answer to a query that was due at `due` was parsed in full. It stands for `stands_for`
    /// answers.
    pub(crate) fn checked(&mut self, due: Nanos, stands_for: u32, is_malformed: bool) {
        let answers = &mut self.phase(due).counters.answers;
        answers.checked += 1;
        answers.checked_stand_for += u64::from(stands_for);
        if is_malformed {
            answers.malformed += 1;
            answers.malformed_stand_for += u64::from(stands_for);
        }
    }

    pub(crate) fn bad_signature(&mut self, at: Nanos) {
        self.phase(at).counters.answers.bad_signature += 1;
    }

    /// The server refused the signature of a query that was due at `due`.
    pub(crate) fn refused_signature(&mut self, due: Nanos, error: &str) {
        let refused = &mut self.phase(due).counters.answers.refused_signatures;
        *refused.entry(error.to_owned()).or_default() += 1;
    }

    /// A query that was due at `due` was refused with this status of HTTP.
    pub(crate) fn refused_by_http(&mut self, due: Nanos, at: Nanos, status: u16) {
        let refusals = &mut self.phase(due).counters.http_refusals;
        refusals.entry(status).or_insert(HttpRefusals { count: 0, first_ns: at }).count += 1;
    }

    pub(crate) fn note_round_trip(&mut self, round_trip: Nanos) {
        let shortest = self.round_trip.map_or(round_trip, |known| known.min(round_trip));
        self.round_trip = Some(shortest);
        self.at_once = at_once_ns(shortest);
    }

    /// A query that was due at `due` was answered after `took`. A later query was sent on its connection,
    /// `since` before the answer. All by value: a reference to the query would keep it in memory on the way
    /// of every answer.
    #[cold]
    #[inline(never)]
    pub(crate) fn overtaken(&mut self, due: Nanos, took: Nanos, since: Nanos) {
        let at_once = self.at_once;
        if at_once == 0 || took < at_once.saturating_mul(LONG) {
            return;
        }
        let answers = &mut self.phase(due).counters.answers;
        answers.overtaken += 1;
        answers.after_next_query += u64::from(since <= at_once);
    }

    pub(crate) fn handshake_time(&mut self, kind: HandshakeKind) -> &mut Histogram {
        match kind {
            HandshakeKind::Full => &mut self.handshake_time,
            HandshakeKind::Resumed => &mut self.resumed_handshake_time,
            HandshakeKind::EarlyData => &mut self.early_data_time,
        }
    }

    #[inline]
    pub(crate) fn answered(&mut self, query: &Entry, received: Nanos, answer: AnswerFacts) {
        let phase = self.phase(query.due);
        phase.counters.outcomes.answered += 1;
        phase.rcodes.count(answer.rcode);
        let answers = &mut phase.counters.answers;
        // One that came over UDP before was counted when the query was asked again.
        match (answer.truncated, answer.over_tcp) {
            (false, _) => {}
            (true, false) => answers.truncated += 1,
            (true, true) => answers.truncated_over_tcp += 1,
        }
        answers.empty += u64::from(answer.empty);
        answers.wrong += u64::from(answer.wrong);
        answers.octets += answer.octets as u64;
        if self.is_in_window(received) {
            self.answered_in_all += 1;
            self.answered_in_window += u64::from(self.is_counted(received));
        }
        let latency = received.saturating_sub(query.due);
        self.in_interval.record_ns(latency);
        if !self.windows.is_empty() {
            let service_time = received.saturating_sub(query.sent);
            self.answered_in_windows(query.due, latency, service_time, answer.rcode);
        }
        if self.is_measured(query.due) {
            if query.sent == query.due {
                self.both.record_ns(latency);
            } else {
                self.latency.record_ns(latency);
                self.service_time.record_ns(received.saturating_sub(query.sent));
            }
        }
    }

    /// Query number `query`, which was due at `due`, ends at `at` without an answer.
    pub(crate) fn lost(&mut self, query: u32, due: Nanos, at: Nanos, loss: Loss) {
        if let Some(transcript) = &mut self.transcript {
            transcript.ended(query, loss.into(), &[]);
        }
        loss.count(&mut self.phase(due).counters.outcomes);
        // A client without an answer has waited for its time-out at least, even if the engine knew earlier
        // that none would come. Otherwise a transport that loses connections would look faster than one that
        // loses datagrams.
        let latency = at.saturating_sub(due).max(self.phases.timeout);
        self.in_interval.record_ns(latency);
        if self.is_measured(due) {
            self.latency.record_ns(latency);
        }
        if !self.windows.is_empty() {
            self.in_windows(due, |window, is_counted| {
                loss.count(&mut window.outcomes);
                if is_counted {
                    window.latency.record_ns(latency);
                }
            });
        }
    }

    /// A query that was due at `due` was answered. All by value, as in [`Self::overtaken`].
    #[cold]
    #[inline(never)]
    fn answered_in_windows(&mut self, due: Nanos, latency: Nanos, service_time: Nanos, rcode: u16) {
        self.in_windows(due, |window, is_counted| {
            window.outcomes.answered += 1;
            window.rcodes.count(rcode);
            if is_counted {
                window.latency.record_ns(latency);
                window.service_time.record_ns(service_time);
            }
        });
    }

    /// Counts a query that was due at `due` in each of its time windows. As in the measured window, all
    /// queries have an outcome, and the times of those count that were due while the load's turn counted.
    #[cold]
    #[inline(never)]
    fn in_windows(&mut self, due: Nanos, count: impl Fn(&mut Windowed, bool)) {
        let is_counted = self.is_counted(due);
        let of_query = |window: &&mut Windowed| window.span.contains(&due);
        self.windows.iter_mut().filter(of_query).for_each(|window| count(window, is_counted));
    }

    /// So many queries that became due at `due` are given up at `at`: there was no time to send them.
    pub(crate) fn never_sent(&mut self, due: Nanos, at: Nanos, count: u64) {
        let outcomes = &mut self.phase(due).counters.outcomes;
        outcomes.due += count;
        outcomes.not_sent += count;
        let latency = at.saturating_sub(due).max(self.phases.timeout);
        self.in_interval.record_many_ns(latency, count);
        if self.is_measured(due) {
            self.latency.record_many_ns(latency, count);
        }
        self.in_windows(due, |window, is_counted| {
            window.outcomes.due += count;
            window.outcomes.not_sent += count;
            if is_counted {
                window.latency.record_many_ns(latency, count);
            }
        });
        if let Some(paced) = &mut self.paced {
            let due = &mut paced.at(due).due;
            *due = due.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
        }
    }

    /// So many queries that were due at `due` have no outcome when the load, which was left early, ends. They are in
    /// no latency: nobody knows what it would have been.
    pub(crate) fn interrupted(&mut self, due: Nanos, count: u64) {
        self.phase(due).counters.outcomes.interrupted += count;
        self.in_windows(due, |window, _| window.outcomes.interrupted += count);
    }

    /// So many queries became due at `due`, and nobody sent them before the load ended, which was left early.
    pub(crate) fn interrupted_in_all(&mut self, due: Nanos, count: u64) {
        self.phase(due).counters.outcomes.due += count;
        self.in_windows(due, |window, _| window.outcomes.due += count);
        self.interrupted(due, count);
    }

    /// So many queries that are due at `due` belong to clients of this transport.
    pub(crate) fn due_over_many(&mut self, due: Nanos, transport: Transport, count: u64) {
        self.phase(due).over[transport as usize].due += count;
    }

    /// A query of a client of this transport has none.
    pub(crate) fn interrupted_over(&mut self, due: Nanos, transport: Transport) {
        let over = &mut self.phase(due).over[transport as usize];
        over.due = over.due.saturating_sub(1);
    }

    /// Beginning of the measured window.
    pub(crate) fn measured_from(&self) -> Nanos {
        self.phases.measured_from
    }

    pub(crate) fn stray(&mut self, at: Nanos, stray: Stray) {
        let answers = &mut self.phase(at).counters.answers;
        match stray {
            Stray::Late => answers.late += 1,
            Stray::Duplicate => answers.duplicate += 1,
            Stray::Unexpected => answers.unexpected += 1,
        }
    }

    pub(crate) fn connections(&mut self, at: Nanos) -> &mut dnslab_figures::Connections {
        &mut self.phase(at).counters.connections
    }

    /// Hands out the oldest interval that ended before `now`, if there is one, even if nothing happened in
    /// it. What happens after the measured window is in no interval. `spare` gives an empty histogram for the
    /// next one.
    pub(crate) fn finished_interval(
        &mut self,
        now: Nanos,
        spare: impl FnOnce() -> Histogram,
    ) -> Option<IntervalRecord> {
        let Phases { until, interval, .. } = self.phases;
        let current = if now >= until { until.div_ceil(interval) } else { now / interval };
        if self.interval >= current {
            return None;
        }
        let now = self.events();
        let mut ended = IntervalRecord {
            number: self.interval,
            events: now.since(&self.before),
            latency: std::mem::replace(&mut self.in_interval, spare()),
            sums: self.sums.clone(),
            ..IntervalRecord::default()
        };
        self.before = now;
        self.interval += 1;
        if let Some(paced) = &mut self.paced {
            let end = (self.interval * interval).min(until);
            ended.first_millisecond = paced.first;
            ended.milliseconds = paced.take_ended(end);
        }
        Some(ended)
    }

    /// What happened since the load began. The sums of both phases have it already, so a query costs nothing
    /// more.
    fn events(&self) -> Events {
        let mut events = Events::default();
        for PhaseCounts { counters, rcodes, .. } in [&self.sums.warm_up, &self.sums.measured] {
            let Counters { outcomes, sent, sent_octets, answers, connections, .. } = counters;
            events.merge(&Events {
                due: outcomes.due,
                sent: *sent,
                answered: outcomes.answered,
                lost: outcomes.settled() - outcomes.answered - outcomes.interrupted,
                rcodes: rcodes.clone(),
                traffic: IntervalTraffic {
                    sent_octets: *sent_octets,
                    received_octets: answers.octets,
                    opened: connections.opened,
                    ended: Some(connections.lost + connections.closed),
                    full_handshakes: connections.full_handshakes,
                    resumed_handshakes: connections.resumed_handshakes,
                },
            });
        }
        events.sent -= self.sent_again;
        events
    }

    /// In [0, 1].
    pub(crate) fn lost_share(&self) -> f64 {
        let mut outcomes = self.sums.warm_up.counters.outcomes;
        outcomes.merge(&self.sums.measured.counters.outcomes);
        outcomes.lost_share()
    }

    /// Adds the measured latencies, service times and send lags to these.
    pub fn add_times(
        &self,
        latency: &mut Histogram,
        service_time: &mut Histogram,
        send_lag: &mut Histogram,
    ) {
        latency.merge(&self.latency);
        latency.merge(&self.both);
        service_time.merge(&self.service_time);
        service_time.merge(&self.both);
        send_lag.merge(&self.send_lag);
        send_lag.record_many_ns(0, self.without_lag);
    }

    /// Adds the counts of each time window to these, which are in the order of the job's.
    pub fn add_windows(&self, windows: &mut [WindowCounts]) {
        for (all, own) in windows.iter_mut().zip(&self.windows) {
            all.outcomes.merge(&own.outcomes);
            for (rcode, count) in own.rcodes.by_name() {
                *all.rcodes.entry(rcode).or_default() += count;
            }
            all.latency.merge(&own.latency);
            all.service_time.merge(&own.service_time);
        }
    }

    /// The counts of the warm-up and of the measured window.
    pub fn into_counters(self) -> ByPhase<Counters> {
        let ByPhase { warm_up, measured } = self.sums;
        ByPhase { warm_up: warm_up.finish(), measured: measured.finish() }
    }

    #[inline]
    fn is_measured(&self, due: Nanos) -> bool {
        due >= self.phases.measured_from && self.is_counted(due)
    }

    #[inline]
    fn is_counted(&self, at: Nanos) -> bool {
        self.turns.as_ref().is_none_or(|turns| turns.is_counted(at))
    }

    #[inline]
    fn is_in_window(&self, at: Nanos) -> bool {
        (self.phases.measured_from..self.phases.until).contains(&at)
    }

    #[inline]
    fn phase(&mut self, at: Nanos) -> &mut PhaseCounts {
        let ByPhase { warm_up, measured } = &mut self.sums;
        if at >= self.phases.measured_from { measured } else { warm_up }
    }
}

impl PhaseCounts {
    /// Whether somebody can have counted all of this.
    fn is_possible(&self) -> bool {
        // Codes are 12 bits (RFC 6891, section 6.1.3).
        self.counters.is_possible() && self.rcodes.unusual.len() <= 1 << 12
    }

    /// Adds what another worker counted.
    fn merge(&mut self, other: &Self) {
        self.counters.merge(&other.counters);
        self.rcodes.merge(&other.rcodes);
        for (own, more) in self.over.iter_mut().zip(&other.over) {
            own.due += more.due;
            own.answered += more.answered;
        }
    }

    /// The counts in the form of the record.
    #[must_use]
    pub fn finish(mut self) -> Counters {
        self.counters.answers.rcodes = self.rcodes.by_name();
        let over = Transport::ALL.into_iter().zip(self.over).filter(|(_, over)| over.due > 0);
        self.counters.by_transport =
            over.map(|(transport, over)| (transport.to_string(), over)).collect();
        self.counters
    }
}

impl IntervalRecord {
    /// Adds the events of another interval that follows, without its milliseconds, its sums and the CPU time.
    pub fn extend(&mut self, other: &Self) {
        self.events.merge(&other.events);
        self.latency.merge(&other.latency);
    }

    /// Adds the same interval of another worker.
    pub fn merge(&mut self, other: &Self) {
        self.extend(other);
        self.sums.warm_up.merge(&other.sums.warm_up);
        self.sums.measured.merge(&other.sums.measured);
        self.busiest = self.busiest.max(other.busiest);
        self.first_millisecond = other.first_millisecond;
        let longer = self.milliseconds.len().max(other.milliseconds.len());
        self.milliseconds.resize(longer, Millisecond::default());
        for (own, more) in self.milliseconds.iter_mut().zip(&other.milliseconds) {
            own.due = own.due.saturating_add(more.due);
            own.sent = own.sent.saturating_add(more.sent);
        }
    }

    /// What an interval of this load cannot have, which somebody else counted until now; `None` if all of it can be.
    #[must_use]
    pub fn fault(&self, phases: &Phases, now: Nanos) -> Option<&'static str> {
        let milliseconds = self.milliseconds.len() as u64;
        let (begins, length) = (self.number.checked_mul(phases.interval), phases.interval);
        if begins.is_none_or(|begins| begins >= phases.until.min(now)) {
            Some("an interval that was not yet")
        } else if milliseconds > length / MILLISECOND + 2
            || self.first_millisecond > phases.until / MILLISECOND
        {
            Some("milliseconds that are not in their interval")
        } else if !self.sums.warm_up.is_possible() || !self.sums.measured.is_possible() {
            Some("counts of more than there is to count")
        } else {
            None
        }
    }

    /// The interval in the form of the record. `turns` are those of the load, if it takes any.
    pub fn finish(&self, phases: &Phases, turns: Option<&Turns>) -> Interval {
        self.finish_over(1, phases, turns)
    }

    /// `intervals` intervals in a row as one, in the form of the record. The number is that of the first.
    pub fn finish_over(&self, intervals: u64, phases: &Phases, turns: Option<&Turns>) -> Interval {
        let at_ns = self.number * phases.interval;
        let length_ns = intervals.saturating_mul(phases.interval);
        let length_ns = length_ns.min(phases.until.saturating_sub(at_ns)).max(1);
        let Events { due, sent, answered, lost, .. } = self.events;
        Interval {
            at_ns,
            length_ns,
            own_ns: turns.map(|turns| turns.own_between(at_ns, at_ns + length_ns)),
            due,
            sent,
            answered,
            lost,
            rcodes: self.events.rcodes.by_name(),
            p50_ns: self.latency.quantile_ns(0.5),
            p95_ns: self.latency.quantile_ns(0.95),
            p99_ns: self.latency.quantile_ns(0.99),
            p999_ns: self.latency.quantile_ns(0.999),
            max_ns: self.latency.max_ns(),
            traffic: Some(self.events.traffic),
        }
    }
}
