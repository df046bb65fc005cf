//! What a worker does once for each query, within reach of `benches/instructions.rs`.
//!
//! No part of the crate's interface: it is there only with the feature `bench`, and changes with what it
//! wraps. The benchmark counts the instructions of its methods. Apart from the named work, each method has
//! only a loop.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::hint::black_box;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use dnslab_settings::{Load, Mode, RightCodes};
use dnslab_traffic::QueryList;
use dnslab_wire::{Additions, Cookie, MessageBatch, Transport};

use crate::attempts::Attempts;
use crate::connection::{Delivery, Received};
use crate::connection_slot::ConnectionSlot;
use crate::in_flight::{Entry, InFlightTable, Known};
use crate::recorder::{AnswerFacts, IntervalRecord, Phases, Recorder};
use crate::replay::Queries;
use crate::response_matcher::ResponseMatcher;
use crate::runtime::{
    DatagramOptions, DatagramSocket, Group, Inbox, Path, Runtime, StreamSocket, Watch, Watched,
};
use crate::sample::Sample;
use crate::time::{Nanos, ThreadTime, Timeline};
use crate::{Expected, Job, Shard, Worker};

const MILLISECOND: Nanos = 1_000_000;

/// A worker with 800,000 answers in a second parses one of so many in full.
const FULL_LOAD: u32 = 200;

/// Ten seconds without warm-up, a single interval, and a time-out of two seconds.
const PHASES: Phases = Phases {
    measured_from: 0,
    until: 10_000 * MILLISECOND,
    interval: 10_000 * MILLISECOND,
    timeout: 2_000 * MILLISECOND,
};

/// Query `number` of the list, due and sent one microsecond after the one before it.
fn entry(number: u32) -> Entry {
    let due = MILLISECOND + Nanos::from(number) * 1_000;
    Entry { due, sent: due + 500, query: number, sent_before: 0, attempt: 0 }
}

/// The table of one socket, with as many queries in flight as a window has.
#[derive(Debug)]
pub struct Window {
    table: InFlightTable,
    /// The ids in flight, oldest first.
    ids: VecDeque<u16>,
    attempts: Attempts,
}

impl Window {
    /// A window that is fully open.
    #[must_use]
    pub fn new(outstanding: u32) -> Self {
        let mut table = InFlightTable::new();
        table.expect(outstanding as usize);
        let ids = (0..outstanding).filter_map(|number| table.insert(entry(number))).collect();
        Self { table, ids, attempts: Attempts::at_one_server(1, PHASES.timeout, 1) }
    }

    /// So many times, finds and answers the oldest query, and puts another in its place.
    pub fn turn(&mut self, times: u32) {
        for number in 0..times {
            let Some(id) = self.ids.pop_front() else { return };
            if let Known::InFlight(found) = black_box(self.table.look_up(id)) {
                black_box(found);
                self.table.answered(id);
            }
            if let Some(id) = self.table.insert(entry(number)) {
                self.ids.push_back(id);
            }
        }
    }

    /// So many times, checks all queries for their time-out. None has timed out.
    pub fn scan(&mut self, times: u32) {
        for _ in 0..times {
            black_box(self.table.expire(Some(0), &self.attempts, |_, entry| {
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
    /// Counts of an open loop, which also keeps its milliseconds.
    fn default() -> Self {
        Self(Recorder::new(PHASES, None, true))
    }
}

impl Counts {
    /// Counts so many answers, each one microsecond slower than the one before it.
    pub fn answered(&mut self, times: u32) {
        let facts = AnswerFacts {
            rcode: 0,
            truncated: false,
            over_tcp: false,
            empty: false,
            wrong: false,
            octets: 64,
        };
        for number in 0..times {
            let query = entry(number);
            let received = query.sent + 20_000 + Nanos::from(number) * 1_000;
            black_box(&mut self.0).answered(&query, received, black_box(facts));
        }
    }

    /// Counts so many queries that become due and are sent.
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
        self.0.into_counters().measured.outcomes.answered
    }
}

/// A worker at the instant when it has read the answers to all queries of a list.
pub struct Reading {
    matcher: ResponseMatcher<'static>,
    slot: ConnectionSlot<Mirror>,
    recorder: Recorder,
    /// The answers, in the order of the list.
    messages: Vec<Vec<u8>>,
}

impl Reading {
    /// One client has asked each query of the list once, and `answer` turns the octets of each into a
    /// message. With `cookie`, the client sends it and reads the OPT records of answers.
    ///
    /// # Panics
    /// When the list has more queries than there are ids.
    #[must_use]
    pub fn new(
        queries: QueryList,
        cookie: Option<Cookie>,
        answer: impl Fn(Vec<u8>) -> Vec<u8>,
    ) -> Self {
        // The matcher borrows the list, as those of all workers do. Here the list lasts as long as the
        // process, which ends after one count.
        let queries: &'static QueryList = Box::leak(Box::new(queries));
        let mut slot = ConnectionSlot::new(0, Transport::Udp, 0);
        let additions = Additions { cookie: cookie.as_ref(), ..Additions::default() };
        let messages = (0..queries.len()).map(|number| {
            let id = slot.table.insert(entry(number)).expect("there are more ids than queries");
            let mut message = Vec::new();
            queries.get(number).append_to(id, &additions, &mut message);
            answer(message)
        });
        let messages = messages.collect();
        let attempts = Attempts::at_one_server(1, PHASES.timeout, 1);
        let matcher = ResponseMatcher {
            expected: Some(Expected { codes: RightCodes::One(0), answers: 1 }),
            reads_options: cookie.is_some(),
            cookies: cookie.into_iter().collect(),
            sample: Sample::one_of(FULL_LOAD),
            ..ResponseMatcher::new(Queries::List(queries), PHASES.timeout, attempts)
        };
        Self { matcher, slot, recorder: Recorder::new(PHASES, None, false), messages }
    }

    /// Judges and books every message.
    pub fn receive(&mut self) {
        for (number, octets) in (0..).zip(&self.messages) {
            let at = entry(number).sent + 200_000;
            let delivery = Delivery::Message(Received { octets, at });
            self.matcher.receive(&mut self.slot, &mut self.recorder, black_box(delivery));
        }
    }

    /// What was counted.
    #[must_use]
    pub fn into_counted(self) -> Counted {
        let measured = self.recorder.into_counters().measured;
        Counted {
            answered: measured.outcomes.answered,
            wrong: measured.answers.wrong,
            unexpected: measured.answers.unexpected,
        }
    }
}

/// What a [`Reading`] has counted.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Answers.
    pub answered: u64,
    /// Answers that are wrong.
    pub wrong: u64,
    /// Messages that answer no query.
    pub unexpected: u64,
}

/// A whole load: one worker on sockets that send each query back as its own answer.
pub struct Round {
    job: Job,
}

impl Round {
    /// A closed loop of 100 clients with so many queries outstanding each, which ends after `queries`.
    #[must_use]
    pub fn new(transport: Transport, outstanding: u32, queries: u64, list: QueryList) -> Self {
        let settings = Load {
            transport,
            mode: Mode::Closed { outstanding },
            queries_in_all: Some(queries),
            ..Load::default()
        };
        let target = std::net::SocketAddr::from(([192, 0, 2, 1], 53));
        Self { job: Job::new(settings, target, Arc::new(list)) }
    }

    /// Applies the load, and returns how many queries were answered.
    ///
    /// # Panics
    /// Never: a mirror has all that a worker asks for.
    #[must_use]
    pub fn run(self, origin: Instant) -> u64 {
        let stop = AtomicBool::new(false);
        let shard = Shard::new(&self.job, 0, usize::MAX, &stop);
        let clients = shard.clients();
        let worker = Worker::new(Mirror::new(origin), shard, clients);
        let end = worker.run().expect("a mirror has all that a worker asks for");
        let counters = end.recorder.into_counters();
        counters.warm_up.outcomes.answered + counters.measured.outcomes.answered
    }
}

/// A runtime whose sockets send each query back with its QR bit set. Its clock goes on by 100 ns at each
/// look.
struct Mirror {
    timeline: Timeline,
    now: std::cell::Cell<Nanos>,
    /// Sockets in which something waits, each once.
    ready: Rc<RefCell<Vec<u32>>>,
}

impl Mirror {
    fn new(origin: Instant) -> Self {
        Self {
            timeline: Timeline::starting_at(origin),
            now: std::cell::Cell::new(0),
            ready: Rc::default(),
        }
    }
}

#[derive(Default)]
struct Waiting {
    octets: Vec<u8>,
    /// For UDP: the length of each datagram; all have the same.
    segment: usize,
    slot: u32,
    ready: Rc<RefCell<Vec<u32>>>,
}

impl Waiting {
    /// Answers a message of a stream or a datagram whose header begins at `header`.
    #[inline]
    fn answer(&mut self, octets: &[u8], header: usize) {
        if self.octets.is_empty() {
            self.ready.borrow_mut().push(self.slot);
        }
        let from = self.octets.len();
        self.octets.extend_from_slice(octets);
        self.octets[from + header + 2] |= 0x80;
    }
}

struct MirrorSocket(RefCell<Waiting>);

#[derive(Default)]
struct MirrorInbox {
    octets: Vec<u8>,
    segment: usize,
}

impl Runtime for Mirror {
    type Stream = MirrorSocket;
    type Datagrams = MirrorSocket;

    fn timeline(&self) -> Timeline {
        self.timeline
    }

    fn now(&self) -> Nanos {
        self.now.set(self.now.get() + 100);
        self.now.get()
    }

    fn wall_clock(&self) -> u64 {
        0
    }

    fn cpu_time(&self) -> Nanos {
        0
    }

    fn thread_time(&self) -> ThreadTime {
        ThreadTime::default()
    }

    fn connect(&mut self, _: Path) -> io::Result<MirrorSocket> {
        let ready = Rc::clone(&self.ready);
        Ok(MirrorSocket(RefCell::new(Waiting { ready, ..Waiting::default() })))
    }

    fn bind(&mut self, path: Path, _: DatagramOptions) -> io::Result<MirrorSocket> {
        self.connect(path)
    }

    fn bind_shared(&mut self, _: SocketAddr, _: DatagramOptions) -> io::Result<MirrorSocket> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn watch(&mut self, socket: Watched<'_, Self>, slot: u32, watch: Watch) -> io::Result<()> {
        let (Watched::Stream(socket) | Watched::Datagrams(socket)) = socket;
        socket.0.borrow_mut().slot = slot;
        if watch.writing {
            self.ready.borrow_mut().push(slot);
        }
        Ok(())
    }

    fn wait(&mut self, until: Nanos, ready: &mut Vec<u32>) -> io::Result<()> {
        ready.clear();
        ready.append(&mut self.ready.borrow_mut());
        if ready.is_empty() {
            self.now.set(self.now.get().max(until));
        }
        Ok(())
    }

    fn sleep(&mut self, duration: Nanos) {
        self.now.set(self.now.get() + duration);
    }

    fn report(&mut self, _: IntervalRecord) {}
}

impl StreamSocket for MirrorSocket {
    fn is_connected(&self) -> io::Result<bool> {
        Ok(true)
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let waiting = self.0.get_mut();
        if waiting.octets.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let length = waiting.octets.len().min(buffer.len());
        buffer[..length].copy_from_slice(&waiting.octets[..length]);
        waiting.octets.drain(..length);
        Ok(length)
    }

    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        let waiting = self.0.get_mut();
        let mut rest = octets;
        while let Some((length, _)) = rest.split_first_chunk() {
            let (frame, after) = rest.split_at(2 + usize::from(u16::from_be_bytes(*length)));
            waiting.answer(frame, 2);
            rest = after;
        }
        Ok(octets.len())
    }

    fn acknowledge(&self) -> io::Result<()> {
        Ok(())
    }

    fn round_trip(&self) -> Option<Nanos> {
        None
    }
}

impl DatagramSocket for MirrorSocket {
    type Inbox = MirrorInbox;

    fn send_batch(&self, batch: &MessageBatch, first: usize, _: usize) -> io::Result<usize> {
        let mut waiting = self.0.borrow_mut();
        for message in batch.messages().skip(first) {
            waiting.segment = message.len();
            waiting.answer(message, 0);
        }
        Ok(batch.len() - first)
    }

    fn send_from(
        &self,
        batch: &MessageBatch,
        _: &[IpAddr],
        _: SocketAddr,
        first: usize,
    ) -> io::Result<usize> {
        self.send_batch(batch, first, 1)
    }

    fn send_segments(&self, _: &[u8], _: usize) -> io::Result<()> {
        Ok(())
    }

    fn receive(&self, inbox: &mut MirrorInbox) -> io::Result<bool> {
        let mut waiting = self.0.borrow_mut();
        if waiting.octets.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        inbox.octets.clear();
        inbox.octets.append(&mut waiting.octets);
        inbox.segment = waiting.segment;
        Ok(false)
    }

    fn drops(&self) -> u64 {
        0
    }
}

impl Inbox for MirrorInbox {
    fn new() -> Self {
        Self::default()
    }

    fn shared() -> Self {
        Self::default()
    }

    fn groups(&self) -> impl Iterator<Item = Group<'_>> {
        let Self { octets, segment } = self;
        std::iter::once(Group { octets, segment: *segment, timestamp: None, ends: None })
    }
}
