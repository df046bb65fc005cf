//! What a worker does once for each query, within reach of `benches/instructions.rs`.
//!
//! No part of the crate's interface: it is there only with the feature `bench`, and changes with
//! what it wraps. Counts of instructions are taken of its methods; what they do besides the work
//! that they are named after is a loop.

use std::collections::VecDeque;
use std::hint::black_box;

use dnslab_traffic::QueryList;
use dnslab_wire::{Additions, Cookie, Transport};

use crate::Expected;
use crate::clock::Nanos;
use crate::connection::{Delivery, Received};
use crate::connection_slot::ConnectionSlot;
use crate::in_flight::{Entry, InFlightTable, Known};
use crate::kernel::Kernel;
use crate::recorder::{AnswerFacts, Phases, Recorder};
use crate::response_matcher::{ResponseMatcher, Signatures};
use crate::sample::Sample;

/// A millisecond in nanoseconds.
const MILLISECOND: Nanos = 1_000_000;

/// Of so many answers a worker parses one in full when it has 800,000 of them in a second.
const FULL_LOAD: u32 = 200;

/// Ten seconds without warm-up, in an interval that does not end, with a time-out of two seconds.
const PHASES: Phases = Phases {
    measured_from: 0,
    until: 10_000 * MILLISECOND,
    interval: 10_000 * MILLISECOND,
    timeout: 2_000 * MILLISECOND,
};

/// Query `number` of the list, due and sent one microsecond after the one before it.
fn entry(number: u32) -> Entry {
    let due = MILLISECOND + Nanos::from(number) * 1_000;
    Entry { due, sent: due + 500, query: number, sent_before: 0 }
}

/// The table of one socket, with as many queries in flight as a window has.
#[derive(Debug)]
pub struct Window {
    table: InFlightTable,
    /// The ids in flight, oldest first.
    ids: VecDeque<u16>,
}

impl Window {
    /// A window that is open as far as it goes.
    #[must_use]
    pub fn new(outstanding: u32) -> Self {
        let mut table = InFlightTable::new();
        table.expect(outstanding as usize);
        let ids = (0..outstanding).filter_map(|number| table.insert(entry(number))).collect();
        Self { table, ids }
    }

    /// So many times: the oldest query is found and answered, and another takes its place.
    pub fn turn(&mut self, times: u32) {
        for number in 0..times {
            let Some(id) = self.ids.pop_front() else { return };
            if let Known::InFlight(found) = black_box(self.table.look_up(id)) {
                black_box(found);
                self.table.answered(id);
            }
            self.ids.extend(self.table.insert(entry(number)));
        }
    }

    /// So many times: all queries are looked at whether they have timed out, and none has.
    pub fn scan(&mut self, times: u32) {
        for _ in 0..times {
            black_box(self.table.expire(Some(0), |_, entry| {
                black_box(entry);
            }));
        }
    }

    /// Queries in flight.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.table.len()
    }
}

/// The counts of a worker.
#[derive(Debug)]
pub struct Counts(Recorder);

impl Default for Counts {
    /// Counts of an open loop, which keeps its milliseconds too.
    fn default() -> Self {
        Self(Recorder::new(PHASES, None, true))
    }
}

impl Counts {
    /// So many answers are counted, each one microsecond slower than the one before it.
    pub fn answered(&mut self, times: u32) {
        let facts =
            AnswerFacts { rcode: 0, truncated: false, empty: false, wrong: false, octets: 64 };
        for number in 0..times {
            let query = entry(number);
            let received = query.sent + 20_000 + Nanos::from(number) * 1_000;
            black_box(&mut self.0).answered(&query, received, black_box(facts));
        }
    }

    /// So many queries become due and are sent.
    pub fn sent(&mut self, times: u32) {
        for number in 0..times {
            let Entry { due, sent, .. } = entry(number);
            let recorder = black_box(&mut self.0);
            recorder.due(due);
            recorder.sent(due, sent, 45, true);
        }
    }

    /// Answers counted so far.
    #[must_use]
    pub fn into_answered(self) -> u64 {
        self.0.into_counters().1.outcomes.answered
    }
}

/// A worker at the instant when it has read the answers to all queries of a list.
pub struct Reading {
    matcher: ResponseMatcher<'static>,
    slot: ConnectionSlot<Kernel>,
    recorder: Recorder,
    /// The answers, in the order of the list.
    messages: Vec<Vec<u8>>,
}

impl Reading {
    /// One client has asked each query of the list once, and `answer` makes a message of the octets
    /// of each. With `cookie`, the client sends it, and reads the OPT records of answers.
    ///
    /// # Panics
    /// When the list has more queries than there are ids.
    #[must_use]
    pub fn new(
        queries: QueryList,
        cookie: Option<Cookie>,
        answer: impl Fn(Vec<u8>) -> Vec<u8>,
    ) -> Self {
        // The matcher borrows the list, as those of all workers do; here it lasts as long as the
        // process, which ends after one count.
        let queries: &'static QueryList = Box::leak(Box::new(queries));
        let mut slot = ConnectionSlot::new(0, Transport::Udp, 0);
        let additions = Additions { cookie: cookie.as_ref(), subnet: None };
        let messages = (0..queries.len()).map(|number| {
            let id = slot.table.insert(entry(number)).expect("there are more ids than queries");
            let mut message = Vec::new();
            queries.get(number).append_to(id, &additions, &mut message);
            answer(message)
        });
        let messages = messages.collect();
        let matcher = ResponseMatcher {
            queries,
            timeout: PHASES.timeout,
            expected: Some(Expected { rcode: 0, answers: 1 }),
            retries_over_tcp: false,
            reads_options: cookie.is_some(),
            cookies: cookie.into_iter().collect(),
            origin_unix_ns: 0,
            again: Vec::new(),
            wrong_example: None,
            sample: Sample::one_of(FULL_LOAD),
            malformed_example: None,
            signatures: Signatures::default(),
        };
        Self { matcher, slot, recorder: Recorder::new(PHASES, None, false), messages }
    }

    /// Every message is judged and booked.
    pub fn receive(&mut self) {
        for (number, octets) in (0..).zip(&self.messages) {
            let at = entry(number).sent + 200_000;
            let delivery = Delivery::Message(Received { octets, at });
            self.matcher.receive(&mut self.slot, &mut self.recorder, black_box(delivery));
        }
    }

    /// How many answers were counted, how many of them as wrong, and how many messages as
    /// unexpected.
    #[must_use]
    pub fn into_counted(self) -> (u64, u64, u64) {
        let (_, measured) = self.recorder.into_counters();
        (measured.outcomes.answered, measured.answers.wrong, measured.answers.unexpected)
    }
}
