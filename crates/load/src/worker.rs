//! The one worker loop: every transport, every schedule, one OS thread, nothing shared.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use dnslab_measure::Tls;
use dnslab_wire::Transport;
use rustix::event::{Timespec, epoll};

use crate::channel::{self, ChannelEnd, Opened, Received, Scratch};
use crate::client::{Client, Judge, Pending};
use crate::clock::{Clock, Nanos, thread_cpu};
use crate::demand::Demand;
use crate::in_flight::{Entry, Known};
use crate::sys::Outbox;
use crate::tally::{IntervalTally, Loss, Phases, Tally};

/// What a worker needs to know, fixed for its whole life.
pub(crate) struct Orders<'a> {
    pub(crate) clock: Clock,
    pub(crate) phases: Phases,
    pub(crate) target: SocketAddr,
    pub(crate) transport: Transport,
    pub(crate) timeout: Nanos,
    /// Shortest time between two rounds of the loop while much is in flight.
    pub(crate) horizon: Nanos,
    pub(crate) stop: &'a AtomicBool,
    pub(crate) reports: Sender<IntervalTally>,
}

/// What a worker leaves behind.
pub(crate) struct WorkerEnd {
    pub(crate) tally: Tally,
    /// CPU time used in the measured window, nanoseconds.
    pub(crate) cpu: Nanos,
    /// Length of the measured window as this thread saw it.
    pub(crate) elapsed: Nanos,
    /// End of the measured window.
    pub(crate) until: Nanos,
    pub(crate) drops: u64,
    pub(crate) tls: Option<Tls>,
    pub(crate) wrong_example: Option<String>,
    /// The last reason for which a channel ended.
    pub(crate) last_end: Option<String>,
}

/// A sent query's time-out.
struct Deadline {
    at: Nanos,
    client: u32,
    id: u16,
}

/// Rounds are held apart by the horizon only when more than this is in flight: with fewer, nothing
/// would be gathered and the wait would only add to the latency.
const FEW_IN_FLIGHT: usize = 4;

/// Longest sleep, so that an interrupt is noticed soon.
const LONGEST_WAIT: Nanos = 50_000_000;

/// First pause after a failed connection attempt; it doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Nanos = 10_000_000;
const LONGEST_PAUSE: Nanos = 1_000_000_000;

/// Reads of one channel in one round at most, so that none starves the others.
const READS_PER_ROUND: usize = 16;

/// Events taken from epoll in one call.
const EVENTS: usize = 512;

pub(crate) struct Worker<'a> {
    orders: Orders<'a>,
    judge: Judge<'a>,
    demand: Demand,
    clients: Vec<Client>,
    poll: rustix::fd::OwnedFd,
    /// Clients whose window or queue must be looked after.
    listed: Vec<u32>,
    /// Time-outs of sent queries, in order.
    deadlines: VecDeque<Deadline>,
    /// Time-outs of queries that wait to be sent, in order.
    unsent_deadlines: VecDeque<(Nanos, u32)>,
    /// When to connect which client again.
    reconnects: BinaryHeap<Reverse<(Nanos, u32)>>,
    unsettled: usize,
    tally: Tally,
    outbox: Outbox,
    scratch: Scratch,
    until: Nanos,
    cpu_at_start: Option<(Nanos, Nanos)>,
    cpu_at_end: Option<(Nanos, Nanos)>,
    tls: Option<Tls>,
    last_end: Option<String>,
}

impl<'a> Worker<'a> {
    pub(crate) fn new(
        orders: Orders<'a>,
        judge: Judge<'a>,
        demand: Demand,
        clients: Vec<Client>,
    ) -> std::io::Result<Self> {
        let tally = Tally::new(orders.phases);
        let until = orders.phases.until;
        Ok(Self {
            poll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            orders,
            judge,
            demand,
            clients,
            listed: Vec::new(),
            deadlines: VecDeque::new(),
            unsent_deadlines: VecDeque::new(),
            reconnects: BinaryHeap::new(),
            unsettled: 0,
            tally,
            outbox: Outbox::default(),
            scratch: Scratch::default(),
            until,
            cpu_at_start: None,
            cpu_at_end: None,
            tls: None,
            last_end: None,
        })
    }

    /// Runs the load to its end: until the window is over and every query has its outcome.
    pub(crate) fn run(mut self) -> WorkerEnd {
        for number in 0..self.clients.len() as u32 {
            self.open(number, self.orders.clock.now());
        }
        let mut events = Vec::with_capacity(EVENTS);
        loop {
            let now = self.orders.clock.now();
            self.note_phase(now);
            if now >= self.until && self.unsettled == 0 {
                break;
            }
            self.reconnect(now);
            self.take_arrivals(now);
            self.look_after_listed(now);
            self.expire(now);
            self.report_interval(now);
            self.wait(now, &mut events);
            for event in events.drain(..) {
                self.advance(event.data.u64() as u32);
            }
        }
        self.finish()
    }

    /// Notes the thread's CPU time at both ends of the measured window, and an interrupt.
    fn note_phase(&mut self, now: Nanos) {
        if self.orders.stop.load(Ordering::Relaxed) && now < self.until {
            self.until = now;
            self.tally.cut_short(now);
        }
        if self.cpu_at_start.is_none() && now >= self.orders.phases.measured_from {
            self.cpu_at_start = Some((now, thread_cpu()));
        }
        if self.cpu_at_end.is_none() && now >= self.until {
            self.cpu_at_end = Some((now, thread_cpu()));
        }
    }

    fn list(&mut self, number: u32) {
        let client = &mut self.clients[number as usize];
        if !client.listed {
            client.listed = true;
            self.listed.push(number);
        }
    }

    /// Takes what the schedule has made due.
    fn take_arrivals(&mut self, now: Nanos) {
        let Demand::Open { arrivals } = &mut self.demand else { return };
        let last = now.min(self.until.saturating_sub(1));
        while let Some(arrival) = arrivals.next_if(|arrival| arrival.due_ns <= last) {
            let pending = Pending { due: arrival.due_ns, query: arrival.query };
            self.tally.due(pending.due);
            self.unsettled += 1;
            let client = &mut self.clients[arrival.client as usize];
            client.pending.push_back(pending);
            if !client.listed {
                client.listed = true;
                self.listed.push(arrival.client);
            }
        }
    }

    /// Fills windows and sends what is due, for every client where something changed.
    fn look_after_listed(&mut self, now: Nanos) {
        let mut listed = std::mem::take(&mut self.listed);
        for number in listed.drain(..) {
            self.clients[number as usize].listed = false;
            self.fill_window(number, now);
            self.send_pending(number);
        }
        // The list keeps its memory, and what was listed meanwhile.
        listed.append(&mut self.listed);
        self.listed = listed;
    }

    /// Closed loop: what is missing in the client's window is due now.
    fn fill_window(&mut self, number: u32, now: Nanos) {
        let Demand::Closed { outstanding, picker } = &mut self.demand else { return };
        let client = &mut self.clients[number as usize];
        if now >= self.until || !client.is_open() {
            return;
        }
        for _ in client.unsettled()..*outstanding {
            client.pending.push_back(Pending { due: now, query: picker.next_query() });
            self.tally.due(now);
            self.unsettled += 1;
        }
    }

    /// Sends what the client has pending, in batches, as far as its channel takes it.
    fn send_pending(&mut self, number: u32) {
        loop {
            let client = &mut self.clients[number as usize];
            if client.pending.is_empty() {
                break;
            }
            if !client.is_open() {
                self.await_sending(number);
                break;
            }
            match self.send_batch(number) {
                Ok(true) => {}
                Ok(false) => {
                    self.await_sending(number);
                    break;
                }
                Err(end) => {
                    self.end_channel(number, &end);
                    self.await_sending(number);
                    break;
                }
            }
        }
        self.watch(number);
    }

    /// Sends one batch; true if the channel took all of it.
    fn send_batch(&mut self, number: u32) -> Result<bool, ChannelEnd> {
        let client = &mut self.clients[number as usize];
        let channel = client.channel.as_mut().expect("the channel was found open");
        let mut ids = [0u16; BATCH_LIMIT];
        let limit = channel.batch_limit().min(BATCH_LIMIT).min(client.pending.len());
        self.outbox.clear();
        let sent = self.orders.clock.now();
        let mut offered = 0;
        for (pending, id) in client.pending.iter().zip(&mut ids[..limit]) {
            let entry = Entry { due: pending.due, sent, query: pending.query };
            let Some(free) = client.table.insert(entry) else { break };
            *id = free;
            self.outbox.push(free, self.judge.queries.get(pending.query).octets());
            offered += 1;
        }
        if offered == 0 {
            // All 65,536 ids of this socket are in flight: the query cannot be sent.
            let pending = client.pending.pop_front().expect("the queue was found filled");
            self.tally.lost(pending.due, sent, Loss::NotSent);
            self.unsettled -= 1;
            return Ok(true);
        }
        let result = channel.send(&self.outbox, &mut self.scratch);
        let taken = *result.as_ref().unwrap_or(&0);
        for id in &ids[taken..offered] {
            client.table.take_back(*id);
        }
        for (pending, id) in client.pending.drain(..taken).zip(ids) {
            let octets = self.judge.queries.get(pending.query).octets().len();
            self.tally.sent(pending.due, sent, octets);
            let at = sent + self.orders.timeout;
            self.deadlines.push_back(Deadline { at, client: number, id });
        }
        result.map(|taken| taken == offered)
    }

    /// Makes sure that what could not be sent now is given up at its time-out. Due times rise, so
    /// one entry for the youngest is enough for all before it.
    fn await_sending(&mut self, number: u32) {
        let client = &mut self.clients[number as usize];
        if let Some(youngest) = client.pending.back() {
            let at = youngest.due + self.orders.timeout;
            if at > client.gives_up_at {
                client.gives_up_at = at;
                self.unsent_deadlines.push_back((at, number));
            }
        }
    }

    /// Asks epoll for writability only while something waits for it.
    fn watch(&mut self, number: u32) {
        let client = &mut self.clients[number as usize];
        let Some(channel) = &client.channel else { return };
        let writing = channel.wants_to_write();
        if writing != client.watches_writing {
            client.watches_writing = writing;
            let data = epoll::EventData::new_u64(u64::from(number));
            epoll::modify(&self.poll, channel.descriptor(), data, interest(writing))
                .expect("the descriptor is open and registered");
        }
    }

    /// Gives up what has waited for the time-out, sent or not.
    fn expire(&mut self, now: Nanos) {
        while let Some(deadline) = self.deadlines.front()
            && deadline.at <= now
        {
            let Deadline { at, client: number, id } =
                self.deadlines.pop_front().expect("the queue has a front");
            let client = &mut self.clients[number as usize];
            // The id may be a later query's by now.
            if let Known::InFlight(entry) = client.table.look_up(id)
                && entry.sent + self.orders.timeout == at
            {
                client.table.timed_out(id);
                self.tally.lost(entry.due, now, Loss::TimedOut);
                self.unsettled -= 1;
                self.list(number);
            }
        }
        while let Some((at, number)) = self.unsent_deadlines.front().copied()
            && at <= now
        {
            self.unsent_deadlines.pop_front();
            let client = &mut self.clients[number as usize];
            while let Some(pending) = client.pending.front().copied()
                && pending.due + self.orders.timeout <= now
            {
                client.pending.pop_front();
                self.tally.lost(pending.due, now, Loss::NotSent);
                self.unsettled -= 1;
            }
            self.list(number);
        }
    }

    fn report_interval(&mut self, now: Nanos) {
        if let Some(interval) = self.tally.finished_interval(now) {
            // Nobody listens any more only when the whole load is being given up.
            self.orders.reports.send(interval).ok();
        }
    }

    /// Sleeps until something is to be done: an arrival, a time-out, an interval's end, a socket.
    fn wait(&mut self, now: Nanos, events: &mut Vec<epoll::Event>) {
        if self.orders.horizon > 0 && self.unsettled > FEW_IN_FLIGHT {
            // Gather what comes meanwhile into fewer, larger calls.
            std::thread::sleep(Duration::from_nanos(self.orders.horizon));
        }
        let interval = self.orders.phases.interval;
        let mut wake = (now + LONGEST_WAIT).min((now / interval + 1) * interval);
        let mut earlier = |instant: Option<Nanos>| wake = wake.min(instant.unwrap_or(Nanos::MAX));
        earlier(self.demand.next_due().filter(|_| now < self.until));
        earlier(self.deadlines.front().map(|deadline| deadline.at));
        earlier(self.unsent_deadlines.front().map(|(at, _)| *at));
        earlier(self.reconnects.peek().map(|Reverse((at, _))| *at));
        earlier((now < self.until).then_some(self.until));
        earlier((!self.listed.is_empty()).then_some(now));
        let left = wake.saturating_sub(self.orders.clock.now());
        let timeout = Timespec {
            tv_sec: (left / 1_000_000_000) as i64,
            tv_nsec: (left % 1_000_000_000) as i64,
        };
        events.clear();
        let spare = rustix::buffer::spare_capacity(events);
        // An interrupted wait is a short one; the loop comes round again.
        epoll::wait(&self.poll, spare, Some(&timeout)).ok();
    }

    /// Lets one channel do what its socket is ready for, and books what came.
    fn advance(&mut self, number: u32) {
        let client = &mut self.clients[number as usize];
        let before = client.table.len();
        let mut end = None;
        if let Some(channel) = client.channel.as_mut() {
            for _ in 0..READS_PER_ROUND {
                let (table, judge, tally) = (&mut client.table, &mut self.judge, &mut self.tally);
                let mut deliver = |message: Received<'_>| judge.receive(table, tally, message);
                match channel.advance(&self.orders.clock, &mut self.scratch, &mut deliver) {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(reason) => {
                        end = Some(reason);
                        break;
                    }
                }
            }
        }
        self.unsettled -= before - client.table.len();
        let opened = client.channel.as_mut().and_then(|channel| channel.take_opened());
        if let Some(opened) = opened {
            self.note_opened(number, opened);
        }
        if let Some(end) = end {
            self.end_channel(number, &end);
        }
        self.list(number);
    }

    /// Begins to open a client's channel.
    fn open(&mut self, number: u32, now: Nanos) {
        let client = &mut self.clients[number as usize];
        let (transport, target) = (self.orders.transport, self.orders.target);
        if transport.is_stream() {
            self.tally.connections(now).attempted += 1;
        }
        match channel::open(transport, target, client.tls.as_ref(), now) {
            Ok(mut channel) => {
                let opened = channel.take_opened();
                client.watches_writing = channel.wants_to_write();
                let data = epoll::EventData::new_u64(u64::from(number));
                let flags = interest(client.watches_writing);
                epoll::add(&self.poll, channel.descriptor(), data, flags)
                    .expect("a new descriptor can be registered");
                client.channel = Some(channel);
                if let Some(opened) = opened {
                    self.note_opened(number, opened);
                }
            }
            Err(end) => self.end_channel(number, &end),
        }
    }

    fn note_opened(&mut self, number: u32, opened: Opened) {
        self.clients[number as usize].attempts = 0;
        self.list(number);
        let now = self.orders.clock.now();
        let Some(connect) = opened.connect else { return };
        let counts = self.tally.connections(now);
        counts.opened += 1;
        if let Some(handshake) = &opened.handshake {
            if handshake.resumed {
                counts.resumed_handshakes += 1;
            } else {
                counts.full_handshakes += 1;
            }
            self.tally.handshake_time.record_ns(handshake.duration);
        }
        self.tally.connect_time.record_ns(connect);
        if let Some(handshake) = opened.handshake {
            self.tls.get_or_insert(handshake.agreed);
        }
    }

    /// Closes a channel that is at its end: what was in flight on it is lost, what was not sent
    /// waits for the next one.
    fn end_channel(&mut self, number: u32, end: &ChannelEnd) {
        let now = self.orders.clock.now();
        let client = &mut self.clients[number as usize];
        let channel = client.channel.take();
        let was_open = channel.as_ref().is_some_and(|channel| channel.is_open());
        client.drops += channel.as_ref().map_or(0, |channel| channel.drops());
        // Closing the descriptor takes it out of epoll.
        drop(channel);
        let counts = self.tally.connections(now);
        if was_open {
            counts.lost += 1;
        } else {
            counts.failed += 1;
        }
        let (tally, unsettled) = (&mut self.tally, &mut self.unsettled);
        client.table.drain(|entry| {
            tally.lost(entry.due, now, Loss::ConnectionLost);
            *unsettled -= 1;
        });
        let pause = match client.attempts {
            0 => 0,
            failed => (FIRST_PAUSE << (failed - 1).min(10)).min(LONGEST_PAUSE),
        };
        client.attempts += 1;
        self.last_end = Some(end.to_string());
        self.reconnects.push(Reverse((now + pause, number)));
        self.list(number);
    }

    /// Opens again what has paused for long enough, while there is something left to send.
    fn reconnect(&mut self, now: Nanos) {
        while let Some(Reverse((at, number))) = self.reconnects.peek().copied()
            && at <= now
        {
            self.reconnects.pop();
            if now < self.until || !self.clients[number as usize].pending.is_empty() {
                self.open(number, now);
            }
        }
    }

    fn finish(mut self) -> WorkerEnd {
        let now = self.orders.clock.now();
        self.report_interval(now);
        let (from, cpu_from) = self.cpu_at_start.unwrap_or((now, thread_cpu()));
        let (to, cpu_to) = self.cpu_at_end.unwrap_or((now, thread_cpu()));
        let open = |client: &Client| client.channel.as_ref().map_or(0, |channel| channel.drops());
        WorkerEnd {
            drops: self.clients.iter().map(|client| client.drops + open(client)).sum(),
            tally: self.tally,
            cpu: cpu_to.saturating_sub(cpu_from),
            elapsed: to.saturating_sub(from),
            until: self.until,
            tls: self.tls,
            wrong_example: self.judge.wrong_example,
            last_end: self.last_end,
        }
    }
}

/// Messages in one batch at most, whatever the channel would take.
const BATCH_LIMIT: usize = 512;

fn interest(writing: bool) -> epoll::EventFlags {
    let reading = epoll::EventFlags::IN;
    if writing { reading | epoll::EventFlags::OUT } else { reading }
}
