//! The one worker loop: every transport, every schedule, one OS thread, nothing shared.
//!
//! The parts of a worker, each with what always holds of it:
//!
//! - `opening`: which slots are opened, in which order and at what pace.
//! - `turns`: what the thread does in the slices in which its load may send.
//! - `batching`: the sleep that lets messages come together, and their order.
//! - `detours`: the slots beside a client's usual connections, and free drains.
//! - `alarm_queue`, `silences`, `comers`, `shared_sockets`: when to look after a slot, how long clients were not
//!   answered, clients that come while the load runs, sockets of many clients.

mod alarm_queue;
mod alarms;
mod batching;
mod comers;
mod detours;
mod drains;
#[cfg(test)]
mod invariants;
mod opening;
mod routing;
mod sending;
mod shared;
mod shared_sockets;
mod silences;
mod slots;
mod turns;

pub use batching::Pauses;

use std::sync::atomic::Ordering;

use alarm_queue::AlarmQueue;
use batching::Batching;
use comers::Comers;
use detours::Detours;
use dnslab_figures::Tls;
use dnslab_traffic::Random;
use opening::Opening;
use shared_sockets::SharedSockets;
use silences::Silences;
use turns::OwnTurns;

use crate::connection::Scratch;
use crate::connection_slot::ConnectionSlot;
use crate::query_source::QuerySource;
use crate::recorder::Recorder;
use crate::replay::Queries;
use crate::response_matcher::ResponseMatcher;
use crate::runtime::Runtime;
use crate::shard::{Clients, Outbox, Shard};
use crate::time::{Nanos, ThreadTime};

/// What a worker leaves behind.
pub struct WorkerEnd {
    /// What it counted.
    pub recorder: Recorder,
    /// CPU time, and time waited for a CPU, in its turns of the measured window.
    pub time: ThreadTime,
    /// Length of the measured window as this thread saw it; of a load that takes turns, of those, each until
    /// the thread found that it was over. `time` is of as long.
    pub elapsed: Nanos,
    /// End of the measured window.
    pub until: Nanos,
    /// Its clients, connected or not.
    pub clients: u32,
    /// Clients that could send when the measured window began.
    pub open_clients: u32,
    /// Clients that were connected at its end and, if they had asked, had an answer; `None` where clients
    /// connect on demand.
    pub served_clients: Option<u32>,
    /// Clients whose last queries all timed out, beyond chance.
    pub forsaken_clients: u32,
    /// Time in the measured window in which slots could not be opened because as many connections as allowed
    /// were being opened.
    pub held: Nanos,
    /// Answers that its UDP sockets dropped, counted from at most one interval before the measured window:
    /// reading the count of each socket takes time.
    pub drops: u64,
    /// Batching sleeps in the measured window.
    pub pauses: Pauses,
    /// Which system calls carried the messages; `None` if no connection was ever opened.
    pub send_path: Option<&'static str>,
    /// What TLS agreed on first.
    pub agreed: Option<Tls>,
    /// The first answer that was not the expected one.
    pub wrong_example: Option<String>,
    /// The fault of the first answer that was malformed when it was parsed in full.
    pub malformed_example: Option<String>,
    /// The first thing that was wrong with a signature.
    pub signature_example: Option<String>,
    /// The last reason for which a connection ended.
    pub last_end: Option<String>,
    /// Why the clients' queries could not be read to their end.
    pub failure: Option<String>,
}

/// How long a load that is left early waits for the last answers. One Ctrl-C ends within two seconds.
const LAST_ANSWERS: Nanos = 1_000_000_000;

/// Longest sleep, so that an interrupt is noticed soon.
const MAX_WAIT: Nanos = 50_000_000;

/// The clients of a [`Shard`], on one thread.
///
/// Whoever drives a worker makes three calls, on the thread that the worker is to have. [`Worker::new`] takes the
/// clients as [`Shard::clients`] made them. [`Worker::open_early`] opens what may be open before the load begins; it
/// may be left out. [`Worker::run`] then applies the load and returns when it is over.
///
/// The clock belongs to the [`Runtime`]. A worker asks it for the time, sleeps and waits through it, and keeps no
/// time of its own. Instant 0 of the timeline should come between the last two calls. What is due when `run` is
/// called late is sent late, and the lag counts. Whoever drives the worker ends the load early by the flag that
/// [`Shard::new`] was given.
///
/// In each round of `run`, a worker takes what has become due, serves the alarms of its slots, sends and opens, waits
/// for sockets, and reads from those that are ready.
pub struct Worker<'a, R: Runtime> {
    runtime: R,
    shard: Shard<'a>,
    matcher: ResponseMatcher<'a>,
    query_source: QuerySource,
    /// First the connections of the clients that are known at the start: the first one of each client, then
    /// the second one of each, and so on. Then, as they are needed: the slots of clients that come while the
    /// load runs, slots for asking again over TCP, and drains, which wait for the last answers of used-up
    /// connections.
    slots: Vec<ConnectionSlot<R>>,
    /// How many slots are connections of clients that were known at the start.
    regular: usize,
    comers: Comers,
    detours: Detours,
    shared: SharedSockets<R>,
    /// What the cookies of clients that come are drawn from.
    cookie_source: Option<Random>,
    /// Slots that must be looked after.
    listed: Vec<u32>,
    alarms: AlarmQueue,
    opening: Opening,
    batching: Batching,
    turns: OwnTurns,
    silences: Silences,
    /// Queries that are not due yet and may become so.
    left: u64,
    /// Queries that became due and have no outcome yet.
    unsettled: usize,
    /// End of the measured window.
    until: Nanos,
    /// When it ends whatever is in flight, once it is to be left.
    leaves_at: Nanos,
    recorder: Recorder,
    outbox: Outbox,
    scratch: Scratch<R>,
    /// Clients that could send when the measured window began.
    open_clients: u32,
    /// What the sockets had dropped shortly before the measured window.
    drops_before: Option<u64>,
    send_path: Option<&'static str>,
    agreed: Option<Tls>,
    last_end: Option<String>,
}

impl<'a, R: Runtime> Worker<'a, R> {
    /// A worker for this part of a load.
    #[must_use]
    pub fn new(runtime: R, mut shard: Shard<'a>, clients: Clients<R>) -> Self {
        let Clients { slots, cookies } = clients;
        let job = shard.job;
        let matcher = ResponseMatcher {
            expected: job.expected,
            retries_over_tcp: job.retries_over_tcp(),
            is_mixed: !job.others.is_empty(),
            reads_options: job.sends_options(),
            cookies,
            candidates: shard.candidates(),
            ..ResponseMatcher::new(shard.queries(), shard.timeout, shard.attempts.clone())
        };
        let query_source = shard.query_source();
        let mut recorder =
            Recorder::new(shard.phases, job.timeline.turns().cloned(), query_source.is_open())
                .with_windows(job.windows());
        recorder.transcript = shard.tells().then(Box::default);
        let mixed_lengths = match &matcher.queries {
            Queries::List(queries) => batching::are_mixed(queries.iter()),
            Queries::Recent(_) => true,
        };
        Self {
            runtime,
            regular: slots.len(),
            slots,
            comers: Comers::default(),
            detours: Detours::default(),
            shared: SharedSockets::new(&shard),
            cookie_source: shard.cookie_source(),
            listed: Vec::new(),
            alarms: AlarmQueue::default(),
            opening: Opening::new(shard.max_open),
            batching: Batching::new(shard.batch_delay, mixed_lengths),
            turns: OwnTurns::default(),
            silences: Silences::default(),
            left: shard.max_queries,
            unsettled: 0,
            until: shard.phases.until,
            leaves_at: Nanos::MAX,
            shard,
            matcher,
            query_source,
            recorder,
            outbox: Outbox::default(),
            scratch: Scratch::default(),
            open_clients: 0,
            drops_before: None,
            send_path: None,
            agreed: None,
            last_end: None,
        }
    }

    /// What the worker stands on.
    pub fn runtime_mut(&mut self) -> &mut R {
        &mut self.runtime
    }

    /// Runs the load to its end: until the window is over and every query has its outcome.
    ///
    /// # Errors
    /// When the kernel lacks what the loop stands on.
    pub fn run(mut self) -> std::io::Result<WorkerEnd> {
        for number in 0..self.slots.len() as u32 {
            let gaps = u64::from(number).saturating_mul(self.shard.connect_gap);
            self.slots[number as usize].reconnect_at = self.shard.connects_from + gaps;
            self.list(number);
        }
        let mut ready = Vec::new();
        loop {
            let now = self.runtime.now();
            self.note_phase(now);
            // First of all: what was due before the end has an outcome, however late this thread is.
            self.take_arrivals(now);
            let is_settled = self.unsettled == 0 && self.is_read(now);
            if now >= self.until && (is_settled || now >= self.leaves_at) {
                self.note_held(now);
                break;
            }
            self.serve_alarms(now);
            self.forget_queries(now);
            self.note_turn(now);
            self.look_after_listed(now);
            self.flush_shared();
            self.open_queued(now);
            self.note_held(now);
            #[cfg(test)]
            self.check_invariants(now);
            self.wait(now, &mut ready)?;
            // What became due during the wait belongs to earlier intervals. What comes now belongs to the
            // current one.
            let now = self.runtime.now();
            self.batching.wake(now);
            self.take_arrivals(now);
            self.report_interval(now);
            for number in ready.drain(..) {
                match shared_sockets::server_of(number) {
                    Some(server) => self.advance_shared(server),
                    None => self.advance(number),
                }
            }
        }
        Ok(self.finish())
    }

    /// What became due before the end was taken up. A source that is slower than the load is waited for, so that it
    /// shows in the lag, but not for ever.
    fn is_read(&mut self, now: Nanos) -> bool {
        let patience = self.until.saturating_add(10 * self.shard.timeout);
        self.left == 0 || now >= patience || self.query_source.is_read_until(self.until)
    }

    /// How many clients there are, or have been so far.
    fn clients(&self) -> u32 {
        self.shard.clients + self.comers.count()
    }

    /// The slot of a client's first connection.
    #[inline]
    fn first_slot(&self, client: u32) -> u32 {
        self.comers.slot(client).unwrap_or(client)
    }

    fn first_slots(&self) -> impl Iterator<Item = &ConnectionSlot<R>> {
        (0..self.clients()).map(|client| &self.slots[self.first_slot(client) as usize])
    }

    /// Forgets queries that have their outcome, with the time in which a late answer to them is recognised.
    fn forget_queries(&mut self, now: Nanos) {
        if let Queries::Recent(recent) = &mut self.matcher.queries {
            // A query may wait until its last attempt is over before it is sent, and for another time-out after
            // that. For one more, a late answer is recognised. One that is asked again is kept anew. A thread that
            // does not get its CPU may be late by a round with each of it.
            let attempts = &self.shard.attempts;
            let longest_round = recent.begin_round(now);
            let life = attempts.patience() + 2 * attempts.longest() + 3 * longest_round;
            recent.forget(now.saturating_sub(life));
            if let Some(transcript) = &mut self.recorder.transcript {
                transcript.forget_before(recent.first());
                if let Some(block) = transcript.full_block(false) {
                    self.runtime.told(block);
                }
            }
        }
    }

    /// Notes the thread's CPU time at both ends of the measured window, and an interrupt.
    fn note_phase(&mut self, now: Nanos) {
        let is_left = self.shard.stop.load(Ordering::Relaxed);
        if is_left && self.leaves_at == Nanos::MAX {
            self.leaves_at = now.saturating_add(LAST_ANSWERS);
        }
        let is_over = is_left
            || self.matcher.signatures.are_hopeless()
            || self.query_source.failure().is_some()
            || self.has_done_its_part();
        if is_over && now < self.until {
            self.until = now;
            self.recorder.cut_short(now);
        }
        let soon = now + self.shard.phases.interval;
        if self.drops_before.is_none() && soon >= self.shard.phases.measured_from {
            // What has just been opened has dropped nothing.
            let is_new = self.shard.phases.measured_from == 0;
            self.drops_before = Some(if is_new { 0 } else { self.drops() });
        }
        if !self.turns.has_begun() && now >= self.shard.phases.measured_from {
            self.turns.begin_window(&self.runtime, now);
            // A client that connects on demand, or is between two connections, is where it wants to be.
            let keeps_open = self.shard.keeps_open && self.shard.quota.is_none();
            let could_send = |slot: &&ConnectionSlot<R>| slot.is_open() || !keeps_open;
            let open = self.first_slots().filter(could_send).count();
            self.open_clients = u32::try_from(open).unwrap_or(u32::MAX);
        }
        if !self.turns.has_ended() && now >= self.until {
            self.turns.end_window(&self.runtime);
            self.note_open_at_end();
        }
    }

    /// Closed loop: looks after all slots when a turn of this load begins, because their windows are to be
    /// filled.
    fn note_turn(&mut self, now: Nanos) {
        let (has_turn, is_own) = (self.shard.has_turn(now), self.shard.is_own(now));
        let begins = self.turns.note_round(&self.runtime, now, has_turn, is_own);
        if begins && matches!(self.query_source, QuerySource::Closed { .. }) {
            (0..self.slots.len() as u32).for_each(|number| self.list(number));
        }
    }

    fn has_done_its_part(&self) -> bool {
        self.left == 0
            && self.unsettled == 0
            && self.slots.iter().all(|slot| slot.pending.is_empty())
    }

    fn drops(&self) -> u64 {
        let open = |slot: &ConnectionSlot<R>| {
            slot.connection.as_ref().map_or(0, |connection| connection.drops())
        };
        self.shared.drops() + self.slots.iter().map(|slot| slot.drops + open(slot)).sum::<u64>()
    }

    /// Has a slot looked after in this round, or the next.
    fn list(&mut self, number: u32) {
        let slot = &mut self.slots[number as usize];
        if !slot.listed {
            slot.listed = true;
            self.listed.push(number);
        }
    }

    /// Which system calls carry the messages now. Of a million clients most are not connected: looking at all of
    /// them takes milliseconds.
    fn find_send_path(&self) -> Option<&'static str> {
        const SLOTS: usize = 1_000;
        let shared = self.shared.send_path();
        shared.or_else(|| self.slots.iter().take(SLOTS).find_map(ConnectionSlot::send_path))
    }

    fn report_interval(&mut self, now: Nanos) {
        // An interval has all that became due in it, also what a worker that falls behind has not taken up yet.
        let now = match &mut self.query_source {
            QuerySource::Open { arrivals } if self.left > 0 => {
                arrivals.next_due().map_or(now, |due| due.min(now))
            }
            _ => now,
        };
        while let Some(mut interval) = self.recorder.finished_interval(now, || self.runtime.spare())
        {
            interval.busiest = self.turns.used(&self.runtime);
            self.send_path = self.find_send_path().or(self.send_path);
            self.runtime.report(interval);
            self.matcher.sample.look(now);
        }
    }

    /// Sleeps until something is to be done: an arrival, a time-out, an interval's end, a socket.
    ///
    /// # Errors
    /// When the kernel does not know `epoll_pwait2`, which came with Linux 5.11.
    fn wait(&mut self, now: Nanos, ready: &mut Vec<u32>) -> std::io::Result<()> {
        // While others have their turn, what is left comes one by one.
        if self.batching.is_on() && self.unsettled > 0 && self.turns.has_turn() {
            self.pause();
        }
        let interval = self.shard.phases.interval;
        let wake = (now + MAX_WAIT).min((now / interval + 1) * interval);
        let has_work = !self.listed.is_empty() || self.opening.next().is_some();
        let earlier = [
            self.shard.next_turn(now).filter(|_| !self.turns.has_turn()),
            self.query_source.next_due(now).filter(|_| now < self.until && self.left > 0),
            self.alarms.next(),
            (now < self.until).then_some(self.until),
            has_work.then_some(now),
        ];
        let wake = earlier.into_iter().flatten().fold(wake, Nanos::min);
        self.runtime.wait(wake, ready)
    }

    /// Sleeps for a batch.
    fn pause(&mut self) {
        let pause = self.batching.next_pause(self.runtime.now(), self.query_source.is_open());
        if pause > 0 {
            let began = self.runtime.now();
            self.runtime.sleep(pause);
            let slept = self.runtime.now().saturating_sub(began);
            self.batching.note_pause(pause, slept, self.turns.is_measured());
        }
    }

    fn finish(mut self) -> WorkerEnd {
        let now = self.runtime.now();
        if now >= self.leaves_at {
            self.leave_unsettled();
        }
        self.report_interval(now);
        let transcript = self.recorder.transcript.as_mut();
        if let Some(block) = transcript.and_then(|transcript| transcript.full_block(true)) {
            self.runtime.told(block);
        }
        self.turns.end_turn(&self.runtime);
        self.say_good_bye();
        WorkerEnd {
            send_path: self.find_send_path().or(self.send_path),
            clients: self.shard.clients + self.comers.askers(),
            open_clients: self.open_clients,
            // A client at the end of its quota is between two connections.
            // One whose first server is away is served by the next.
            served_clients: (self.shard.keeps_open
                && self.shard.quota.is_none()
                && !self.shard.attempts.has_choice())
            .then(|| self.served_clients()),
            forsaken_clients: self.forsaken_clients(),
            held: self.opening.held(),
            drops: self.drops().saturating_sub(self.drops_before.unwrap_or(0)),
            pauses: self.batching.pauses(),
            recorder: self.recorder,
            time: self.turns.time(),
            elapsed: self.turns.elapsed(),
            until: self.until,
            agreed: self.agreed,
            wrong_example: self.matcher.wrong_example,
            malformed_example: self.matcher.malformed_example,
            signature_example: self.matcher.signatures.example,
            last_end: self.last_end,
            failure: self.query_source.failure().cloned(),
        }
    }
}
