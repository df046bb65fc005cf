//! The one worker loop: every transport, every schedule, one OS thread, nothing shared.

mod alarms;
mod drains;
mod sending;
mod shared;
mod slots;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::sync::atomic::Ordering;

use dnslab_figures::Tls;
use dnslab_traffic::{Random, ServerOrder};
use dnslab_wire::{Cookie, MessageBatch, Transport};
use rand::Rng as _;
use shared::SharedSocket;

use crate::connection::Scratch;
use crate::connection_slot::ConnectionSlot;
use crate::query_source::QuerySource;
use crate::recorder::Recorder;
use crate::replay::Queries;
use crate::response_matcher::{ResponseMatcher, Signatures};
use crate::runtime::Runtime;
use crate::sample::Sample;
use crate::shard::{Clients, Shard};
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

/// Sleeps that let more answers and arrivals come together in one batch.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pauses {
    /// Their number.
    pub count: u64,
    /// Their length together.
    pub time: Nanos,
}

/// What leads a client elsewhere than its usual connections do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Extra {
    client: u32,
    server: u8,
    /// For what was truncated over UDP.
    over_tcp: bool,
}

/// How long a load that is left early waits for the last answers. One Ctrl-C ends within two seconds.
const LAST_ANSWERS: Nanos = 1_000_000_000;

/// Longest sleep, so that an interrupt is noticed soon.
const MAX_WAIT: Nanos = 50_000_000;

/// The clients of a [`Shard`], on one thread.
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
    /// The slots of the clients that came while the load runs, in the order of their numbers.
    comers: Vec<u32>,
    /// How many of them have asked something.
    askers: u32,
    /// Slots that clients have beside their usual connections.
    extra_slots: HashMap<Extra, u32>,
    /// The server that each client asks first now, where clients know several and it is not always the same.
    first_servers: Vec<u8>,
    /// When the last round began, and the longest time between two.
    last_round: Nanos,
    max_round: Nanos,
    /// The sockets of the clients that have an address of their own, one for each server, and whether there
    /// may be any.
    shared: Vec<Option<Box<SharedSocket<R>>>>,
    may_share: bool,
    /// Slots with queries that it did not take.
    waiting_for_shared: Vec<u32>,
    /// What their cookies are drawn from.
    cookie_source: Option<Random>,
    /// Drains without a connection.
    free_drains: Vec<u32>,
    /// Slots that must be looked after.
    listed: Vec<u32>,
    /// When to look after which slot. Entries that are no longer the alarm of their slot are skipped.
    alarms: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// Slots to open, in the order in which they asked.
    to_open: VecDeque<u32>,
    /// When the last round began, if it left slots unopened because as many connections as allowed were being
    /// opened.
    held_since: Option<Nanos>,
    /// How long slots waited for that in the measured window.
    held: Nanos,
    /// Idle slots with the instant since when, longest idle first.
    idle: VecDeque<(Nanos, u32)>,
    /// Connections, being opened or open.
    open: usize,
    /// Connections that are being opened.
    connecting: usize,
    /// Clients that could send when the measured window began.
    open_clients: u32,
    /// Queries that are not due yet and may become so.
    left: u64,
    /// Queries that became due and have no outcome yet.
    unsettled: usize,
    mixed_lengths: bool,
    recorder: Recorder,
    outbox: MessageBatch,
    /// A message before it is signed.
    unsigned: Vec<u8>,
    scratch: Scratch<R>,
    until: Nanos,
    /// When it ends whatever is in flight, once it is to be left.
    leaves_at: Nanos,
    woke: Nanos,
    /// By how much a sleep is longer than asked.
    oversleep: Nanos,
    /// The longest time without an answer after which a client with timed-out queries was answered again.
    max_silence: Nanos,
    /// How often that happened, and how many queries timed out in these times.
    silences: u64,
    timed_out_in_silences: u64,
    /// Those in the measured window.
    pauses: Pauses,
    /// The last round was in the load's own turn.
    had_turn: bool,
    /// What the sockets had dropped shortly before the measured window.
    drops_before: Option<u64>,
    /// Beginning and end of the measured window, as this thread saw them.
    begins: Option<Nanos>,
    ends: Option<Nanos>,
    /// The thread's time at the beginning of the current turn, and when that was.
    turn_since: Option<(ThreadTime, Nanos)>,
    /// That of all turns before, and how long those took, each until the thread found that it was over.
    time: ThreadTime,
    elapsed: Nanos,
    /// The thread's CPU time at the beginning of the current turn, and that of all turns before, in the warm-up too.
    used_since: Option<Nanos>,
    used: Nanos,
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
            queries: shard.queries(),
            timeout: shard.timeout,
            attempts: shard.attempts.clone(),
            expected: job.expected,
            retries_over_tcp: job.retries_over_tcp(),
            is_mixed: !job.others.is_empty(),
            reads_options: job.sends_options(),
            cookies,
            origin_unix_ns: 0,
            again: Vec::new(),
            wrong_example: None,
            sample: Sample::default(),
            malformed_example: None,
            signatures: Signatures::default(),
        };
        let query_source = shard.query_source();
        let mut recorder =
            Recorder::new(shard.phases, job.timeline.turns().cloned(), query_source.is_open())
                .with_windows(job.windows());
        recorder.told = shard.tells().then(Box::default);
        let (until, max_queries) = (shard.phases.until, shard.max_queries);
        let may_share = shared::is_possible(&shard);
        Self {
            runtime,
            mixed_lengths: match &matcher.queries {
                Queries::List(queries) => sending::are_mixed(queries.iter()),
                Queries::Recent(_) => true,
            },
            cookie_source: shard.cookie_source(),
            shard,
            matcher,
            query_source,
            regular: slots.len(),
            slots,
            comers: Vec::new(),
            askers: 0,
            extra_slots: HashMap::new(),
            first_servers: Vec::new(),
            last_round: 0,
            max_round: 0,
            shared: Vec::new(),
            may_share,
            waiting_for_shared: Vec::new(),
            free_drains: Vec::new(),
            listed: Vec::new(),
            alarms: BinaryHeap::new(),
            to_open: VecDeque::new(),
            held_since: None,
            held: 0,
            idle: VecDeque::new(),
            open: 0,
            connecting: 0,
            open_clients: 0,
            left: max_queries,
            unsettled: 0,
            recorder,
            outbox: MessageBatch::default(),
            unsigned: Vec::new(),
            scratch: Scratch::default(),
            until,
            leaves_at: Nanos::MAX,
            woke: 0,
            oversleep: 0,
            max_silence: 0,
            silences: 0,
            timed_out_in_silences: 0,
            pauses: Pauses::default(),
            had_turn: false,
            drops_before: None,
            begins: None,
            ends: None,
            turn_since: None,
            time: ThreadTime::default(),
            elapsed: 0,
            used_since: None,
            used: 0,
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
            self.wait(now, &mut ready)?;
            // What became due during the wait belongs to earlier intervals. What comes now belongs to the
            // current one.
            let now = self.runtime.now();
            self.woke = now;
            self.take_arrivals(now);
            self.report_interval(now);
            for number in ready.drain(..) {
                match shared::server_of(number) {
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
        self.shard.clients + self.comers.len() as u32
    }

    /// The slot of a client's first connection.
    #[inline]
    fn first_slot(&self, client: u32) -> u32 {
        if self.comers.is_empty() { client } else { self.comers[client as usize] }
    }

    fn first_slots(&self) -> impl Iterator<Item = &ConnectionSlot<R>> {
        (0..self.clients()).map(|client| &self.slots[self.first_slot(client) as usize])
    }

    /// The slot of a client that may come now for the first time. Clients with smaller numbers have come
    /// before, or are let in with it.
    #[inline]
    fn slot_of_comer(&mut self, client: u32) -> u32 {
        while self.comers.len() <= client as usize {
            self.let_in();
        }
        self.comers[client as usize]
    }

    #[cold]
    fn let_in(&mut self) {
        let (client, number) = (self.comers.len() as u32, self.slots.len() as u32);
        let transport = self.shard.transport_of(self.shard.client_number(client));
        let is_shared = self.shares(client, transport, 0);
        self.slots.push(ConnectionSlot { is_shared, ..ConnectionSlot::new(client, transport, 0) });
        self.comers.push(number);
        if let Some(random) = &mut self.cookie_source {
            self.matcher.cookies.push(Cookie::new(random.random()));
        }
    }

    /// A slot that a client has beside its usual connections.
    fn extra_slot(&mut self, extra: Extra) -> u32 {
        if let Some(known) = self.extra_slots.get(&extra) {
            return *known;
        }
        let Extra { client, server, over_tcp } = extra;
        let usual = self.slots[self.first_slot(client) as usize].transport;
        let transport = if over_tcp { Transport::Tcp } else { usual };
        let is_shared = self.shares(client, transport, server);
        let slot = ConnectionSlot::new(client, transport, 0);
        self.slots.push(ConnectionSlot { server, is_extra: true, over_tcp, is_shared, ..slot });
        let number = self.slots.len() as u32 - 1;
        self.extra_slots.insert(extra, number);
        number
    }

    /// The slot on which a client asks a query for the first time; `usual` is one of its usual connections.
    #[inline]
    fn slot_for_first_attempt(&mut self, usual: u32) -> u32 {
        match self.shard.attempts.has_choice() {
            true => self.slot_of_first_server(usual),
            false => usual,
        }
    }

    #[cold]
    fn slot_of_first_server(&mut self, usual: u32) -> u32 {
        let client = self.slots[usual as usize].client;
        let place = client as usize;
        if self.first_servers.len() <= place {
            self.first_servers.resize(place + 1, 0);
        }
        let server = self.first_servers[place];
        match self.shard.attempts.order {
            ServerOrder::InOrder => return usual,
            ServerOrder::Rotate => {
                self.first_servers[place] = self.shard.attempts.next_server(server);
            }
            ServerOrder::Sticky => {}
        }
        match server {
            0 => usual,
            server => self.extra_slot(Extra { client, server, over_tcp: false }),
        }
    }

    /// The slot for the next attempt after one on this slot. It stays with TCP, as glibc does.
    fn slot_for_next_attempt(&mut self, number: u32) -> u32 {
        let home = self.home(number);
        if !self.shard.attempts.has_choice() {
            return home;
        }
        let ConnectionSlot { client, server, over_tcp, .. } = self.slots[home as usize];
        let first = self.first_slot(client);
        let next = self.shard.attempts.next_server(server);
        if let Some(first) = self.first_servers.get_mut(client as usize)
            && self.shard.attempts.order == ServerOrder::Sticky
            && *first == server
        {
            *first = next;
        }
        match (next, over_tcp) {
            (0, false) => first,
            (server, over_tcp) => self.extra_slot(Extra { client, server, over_tcp }),
        }
    }

    /// Forgets queries that have their outcome, with the time in which a late answer to them is recognised.
    fn forget_queries(&mut self, now: Nanos) {
        if let Queries::Recent(recent) = &mut self.matcher.queries {
            let round = now.saturating_sub(self.last_round);
            (self.last_round, self.max_round) = (now, self.max_round.max(round));
            // A query may wait until its last attempt is over before it is sent, and for another time-out after
            // that. For one more, a late answer is recognised. One that is asked again is kept anew. A thread that does not get its
            // CPU may be late by a round with each of it.
            let attempts = &self.shard.attempts;
            let life = attempts.patience() + 2 * attempts.longest() + 3 * self.max_round;
            recent.forget(now.saturating_sub(life));
            if let Some(told) = &mut self.recorder.told {
                told.forget_before(recent.first());
                if let Some(block) = told.full_block(false) {
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
        if self.begins.is_none() && now >= self.shard.phases.measured_from {
            self.begins = Some(now);
            self.turn_since = self.had_turn.then(|| (self.runtime.thread_time(), now));
            // A client that connects on demand, or is between two connections, is where it wants to be.
            let keeps_open = self.shard.keeps_open && self.shard.quota.is_none();
            let could_send = |slot: &&ConnectionSlot<R>| slot.is_open() || !keeps_open;
            let open = self.first_slots().filter(could_send).count();
            self.open_clients = u32::try_from(open).unwrap_or(u32::MAX);
        }
        if self.ends.is_none() && now >= self.until {
            self.end_turn();
            self.ends = Some(now);
            self.note_open_at_end();
        }
    }

    /// Adds the thread's time in its own turns of the measured window. In the turns of others the thread only
    /// waits, for them and for late answers. A thread that does not get its CPU finds late that its turn is over,
    /// and has waited until then: the length of the turn is that of the same time.
    fn end_turn(&mut self) {
        if let Some((used, began)) = self.turn_since.take() {
            self.time = self.time.plus(self.runtime.thread_time().since(used));
            // After the thread's time, so that no part of it is beyond this span.
            self.elapsed += self.runtime.now().saturating_sub(began);
        }
    }

    /// Closed loop: looks after all slots when a turn of this load begins, because their windows are to be
    /// filled.
    fn note_turn(&mut self, now: Nanos) {
        let has_turn = self.shard.has_turn(now);
        let is_closed = matches!(self.query_source, QuerySource::Closed { .. });
        if has_turn && !self.had_turn && is_closed {
            (0..self.slots.len() as u32).for_each(|number| self.list(number));
        }
        let is_own = self.shard.is_own(now);
        if is_own != self.used_since.is_some() {
            self.used = self.used();
            self.used_since = is_own.then(|| self.runtime.cpu_time());
        }
        match (has_turn, self.had_turn) {
            (true, false) if self.begins.is_some() && self.ends.is_none() => {
                self.turn_since = Some((self.runtime.thread_time(), now));
            }
            (false, true) => self.end_turn(),
            _ => {}
        }
        self.had_turn = has_turn;
    }

    /// CPU time of the thread in its own turns so far.
    fn used(&self) -> Nanos {
        let in_turn = |since| self.runtime.cpu_time().saturating_sub(since);
        self.used + self.used_since.map_or(0, in_turn)
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
        self.shared_drops() + self.slots.iter().map(|slot| slot.drops + open(slot)).sum::<u64>()
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
        let shared = (!self.shared.is_empty()).then_some(shared::SEND_PATH);
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
            interval.busiest = self.used();
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
        if self.shard.batch_delay > 0 && self.unsettled > 0 && self.had_turn {
            // Let more come together for fewer, larger calls. But if the round itself took as long, enough
            // has come already.
            let batch_delay = self.shard.batch_delay;
            let taken = self.runtime.now().saturating_sub(self.woke);
            let pause = match &self.query_source {
                QuerySource::Closed { .. } if taken < batch_delay => {
                    batch_delay - self.oversleep.min(batch_delay)
                }
                QuerySource::Closed { .. } => 0,
                // What has become due since the last wake-up waits for no more than one batch delay.
                QuerySource::Open { .. } | QuerySource::Clients { .. } => {
                    batch_delay.saturating_sub(taken + self.oversleep)
                }
            };
            self.pause(pause);
        }
        let interval = self.shard.phases.interval;
        let mut wake = (now + MAX_WAIT).min((now / interval + 1) * interval);
        let mut earlier = |instant: Option<Nanos>| wake = wake.min(instant.unwrap_or(Nanos::MAX));
        earlier(self.shard.next_turn(now).filter(|_| !self.had_turn));
        earlier(self.query_source.next_due(now).filter(|_| now < self.until && self.left > 0));
        earlier(self.alarms.peek().map(|Reverse((at, _))| *at));
        earlier((now < self.until).then_some(self.until));
        earlier((!self.listed.is_empty() || self.may_open()).then_some(now));
        self.runtime.wait(wake, ready)
    }

    /// Sleeps, and learns how much longer than asked that takes: some microseconds, or tens of them on a
    /// virtual machine with the timers of its host.
    fn pause(&mut self, pause: Nanos) {
        if pause == 0 {
            // Forget half of what was learnt: the next sleep may be asked for again.
            self.oversleep /= 2;
            return;
        }
        let began = self.runtime.now();
        self.runtime.sleep(pause);
        let slept = self.runtime.now().saturating_sub(began);
        if self.begins.is_some() && self.ends.is_none() {
            self.pauses.count += 1;
            self.pauses.time += slept;
        }
        let over = slept.saturating_sub(pause);
        // A moving mean over about eight sleeps. One long wait for the CPU must not weigh more.
        let over = over.min(self.shard.batch_delay);
        self.oversleep = self.oversleep - self.oversleep / 8 + over / 8;
    }

    fn finish(mut self) -> WorkerEnd {
        let now = self.runtime.now();
        if now >= self.leaves_at {
            self.leave_unsettled();
        }
        self.report_interval(now);
        if let Some(block) = self.recorder.told.as_mut().and_then(|told| told.full_block(true)) {
            self.runtime.told(block);
        }
        self.end_turn();
        self.say_good_bye();
        WorkerEnd {
            send_path: self.find_send_path().or(self.send_path),
            clients: self.shard.clients + self.askers,
            open_clients: self.open_clients,
            // A client at the end of its quota is between two connections.
            // One whose first server is away is served by the next.
            served_clients: (self.shard.keeps_open
                && self.shard.quota.is_none()
                && !self.shard.attempts.has_choice())
            .then(|| self.served_clients()),
            forsaken_clients: self.forsaken_clients(),
            held: self.held,
            drops: self.drops().saturating_sub(self.drops_before.unwrap_or(0)),
            pauses: self.pauses,
            recorder: self.recorder,
            time: self.time,
            elapsed: self.elapsed,
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
