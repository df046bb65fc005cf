//! The one worker loop: every transport, every schedule, one OS thread, nothing shared.

mod channels;
mod sending;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use dnslab_measure::Tls;
use dnslab_wire::Transport;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

use crate::channel::Scratch;
use crate::client::{Client, Judge};
use crate::clock::{Clock, Nanos, ThreadTime};
use crate::demand::Demand;
use crate::in_flight::Known;
use crate::sys::Outbox;
use crate::tally::{IntervalTally, Loss, Phases, Tally};

/// What a worker needs to know, fixed for its whole life.
pub(crate) struct Orders<'a> {
    pub(crate) clock: Clock,
    pub(crate) phases: Phases,
    pub(crate) target: SocketAddr,
    pub(crate) transport: Transport,
    pub(crate) timeout: Nanos,
    /// Shortest time between two rounds of the loop while anything is in flight; 0 for none.
    pub(crate) horizon: Nanos,
    pub(crate) stop: &'a AtomicBool,
    pub(crate) reports: Sender<IntervalTally>,
}

/// What a worker leaves behind.
pub(crate) struct WorkerEnd {
    pub(crate) tally: Tally,
    /// CPU time used in the measured window, and time waited for a CPU.
    pub(crate) time: ThreadTime,
    /// Length of the measured window as this thread saw it.
    pub(crate) elapsed: Nanos,
    /// End of the measured window.
    pub(crate) until: Nanos,
    pub(crate) clients: u32,
    /// Clients that could send when the measured window began.
    pub(crate) open_clients: u32,
    pub(crate) drops: u64,
    /// Which system calls carried the messages; `None` if no channel was ever opened.
    pub(crate) send_path: Option<&'static str>,
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

/// Longest sleep, so that an interrupt is noticed soon.
const LONGEST_WAIT: Nanos = 50_000_000;

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
    /// When to give up which client's attempt to connect, and when that attempt began; in order.
    connecting: VecDeque<(Nanos, u32, Nanos)>,
    /// Clients that could send when the measured window began.
    open_clients: u32,
    unsettled: usize,
    tally: Tally,
    outbox: Outbox,
    scratch: Scratch,
    until: Nanos,
    time_at_start: Option<(Nanos, ThreadTime)>,
    time_at_end: Option<(Nanos, ThreadTime)>,
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
            connecting: VecDeque::new(),
            open_clients: 0,
            unsettled: 0,
            tally,
            outbox: Outbox::default(),
            scratch: Scratch::default(),
            until,
            time_at_start: None,
            time_at_end: None,
            tls: None,
            last_end: None,
        })
    }

    /// Runs the load to its end: until the window is over and every query has its outcome.
    ///
    /// # Errors
    /// When the kernel lacks what the loop stands on.
    pub(crate) fn run(mut self) -> std::io::Result<WorkerEnd> {
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
            self.give_up_connecting(now);
            self.reconnect(now);
            self.take_arrivals(now);
            self.look_after_listed(now);
            self.expire(now);
            self.wait(now, &mut events)?;
            // What became due during the wait belongs to the intervals before now, and what comes
            // now to that of now.
            let now = self.orders.clock.now();
            self.take_arrivals(now);
            self.report_interval(now);
            for event in events.drain(..) {
                self.advance(event.data.u64() as u32);
            }
        }
        Ok(self.finish())
    }

    /// Notes the thread's CPU time at both ends of the measured window, and an interrupt.
    fn note_phase(&mut self, now: Nanos) {
        if self.orders.stop.load(Ordering::Relaxed) && now < self.until {
            self.until = now;
            self.tally.cut_short(now);
        }
        if self.time_at_start.is_none() && now >= self.orders.phases.measured_from {
            self.time_at_start = Some((now, ThreadTime::now()));
            let open = self.clients.iter().filter(|client| client.is_open()).count();
            self.open_clients = u32::try_from(open).unwrap_or(u32::MAX);
        }
        if self.time_at_end.is_none() && now >= self.until {
            self.time_at_end = Some((now, ThreadTime::now()));
        }
    }

    pub(super) fn list(&mut self, number: u32) {
        let client = &mut self.clients[number as usize];
        if !client.listed {
            client.listed = true;
            self.listed.push(number);
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
                client.window = client.window.saturating_sub(1);
                self.tally.lost(entry.due, now, Loss::TimedOut);
                self.unsettled -= 1;
                self.list(number);
            }
        }
        while let Some((at, number)) = self.unsent_deadlines.front().copied()
            && at <= now
        {
            self.unsent_deadlines.pop_front();
            while let Some(pending) = self.clients[number as usize].pending.front().copied()
                && pending.due.is_some_and(|due| due + self.orders.timeout <= now)
            {
                self.clients[number as usize].pending.pop_front();
                self.give_up(pending, now);
            }
            self.list(number);
        }
    }

    fn report_interval(&mut self, now: Nanos) {
        while let Some(interval) = self.tally.finished_interval(now) {
            // Nobody listens any more only when the whole load is being given up.
            self.orders.reports.send(interval).ok();
        }
    }

    /// Sleeps until something is to be done: an arrival, a time-out, an interval's end, a socket.
    ///
    /// # Errors
    /// When the kernel does not know `epoll_pwait2`, which came with Linux 5.11.
    fn wait(&mut self, now: Nanos, events: &mut Vec<epoll::Event>) -> std::io::Result<()> {
        if self.orders.horizon > 0 && self.unsettled > 0 {
            // Gather what comes meanwhile into fewer, larger calls.
            std::thread::sleep(Duration::from_nanos(self.orders.horizon));
        }
        let interval = self.orders.phases.interval;
        let mut wake = (now + LONGEST_WAIT).min((now / interval + 1) * interval);
        let mut earlier = |instant: Option<Nanos>| wake = wake.min(instant.unwrap_or(Nanos::MAX));
        earlier(self.demand.next_due().filter(|_| now < self.until));
        earlier(self.deadlines.front().map(|deadline| deadline.at));
        earlier(self.unsent_deadlines.front().map(|(at, _)| *at));
        earlier(self.connecting.front().map(|(at, ..)| *at));
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
        match epoll::wait(&self.poll, spare, Some(&timeout)) {
            // An interrupted wait is a short one; the loop comes round again.
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn finish(mut self) -> WorkerEnd {
        let now = self.orders.clock.now();
        self.report_interval(now);
        let (from, time_from) = self.time_at_start.unwrap_or((now, ThreadTime::now()));
        let (to, time_to) = self.time_at_end.unwrap_or((now, ThreadTime::now()));
        let open = |client: &Client| client.channel.as_ref().map_or(0, |channel| channel.drops());
        WorkerEnd {
            send_path: self.clients.iter().find_map(|client| client.send_path()),
            clients: u32::try_from(self.clients.len()).unwrap_or(u32::MAX),
            open_clients: self.open_clients,
            drops: self.clients.iter().map(|client| client.drops + open(client)).sum(),
            tally: self.tally,
            time: time_to.since(time_from),
            elapsed: to.saturating_sub(from),
            until: self.until,
            tls: self.tls,
            wrong_example: self.judge.wrong_example,
            last_end: self.last_end,
        }
    }
}
