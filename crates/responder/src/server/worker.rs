//! One event loop on one thread.

use std::cmp::Reverse;
use std::io;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::AsFd;
use std::time::Duration;

use dnslab_socket::{EventFlags, Poller, ReceiveBatch, SendBatch, receive_drops};
use dnslab_transport::quic::Holder;
use dnslab_wire::Transport;

use super::bind::WorkerSockets;
use super::clock::{self, Timer};
use super::connections::Connections;
use super::delayed::{Destination, Held};
use super::published::Slot;
use super::quic::{QuicConnection, QuicSockets};
use super::respond::Responder;
use super::shared::Shared;
use super::stream::{Connection, LINGER};
use super::token::{ConnectionId, Token};
use super::udp;
use crate::counters::{Counters, Ended};

/// One thread's part of the server. It shares only what is only read.
pub(super) struct Worker<'s> {
    shared: &'s Shared,
    published: &'s Slot,
    poller: Poller,
    /// Goes off when the next held answer is due.
    timer: Timer,
    datagrams: Vec<UdpSocket>,
    listeners: Vec<(TcpListener, Transport)>,
    quic: QuicSockets,
    /// Buffers for the UDP sockets.
    queries: ReceiveBatch,
    answers: SendBatch,
    connections: Connections,
    /// They got a held answer in this wake-up and must be written to.
    touched: Vec<ConnectionId>,
    responder: Responder,
    /// When accepting goes on after a pause, in nanoseconds of the monotonic clock.
    paused_until_ns: Option<u64>,
    /// When connections are reviewed next, in nanoseconds of the monotonic clock.
    review_ns: u64,
}

/// A connection by its name in this worker.
enum AnyConnection {
    Stream(ConnectionId),
    Quic(QuicConnection),
}

/// Events taken from epoll in one call.
const EVENTS: usize = 256;

/// Connections accepted in one wake-up before the others have their turn.
const ACCEPTS: usize = 64;

/// How long accepting pauses when the process or the machine has no descriptors or memory left. The listener
/// stays readable meanwhile, so going on at once would spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

impl<'s> Worker<'s> {
    pub(super) fn new(
        shared: &'s Shared,
        published: &'s Slot,
        sockets: WorkerSockets,
        responder: Responder,
    ) -> io::Result<Self> {
        let (poller, timer) = (Poller::new(EVENTS)?, Timer::new()?);
        poller.add(&shared.stop.wake, Token::Stop, EventFlags::IN)?;
        poller.add(&timer, Token::Timer, EventFlags::IN)?;
        poller.add(&published.wake, Token::Counters, EventFlags::IN)?;
        for (number, socket) in (0..).zip(&sockets.datagrams) {
            poller.add(socket, Token::Datagrams(number), EventFlags::IN)?;
        }
        for (number, (listener, _)) in (0..).zip(&sockets.listeners) {
            poller.add(listener, Token::Listener(number), EventFlags::IN)?;
        }
        let quic = QuicSockets::new(sockets.quic, &shared.quic);
        for (number, socket) in (0..).zip(quic.iter()) {
            poller.add(socket, Token::Quic(number), EventFlags::IN)?;
        }
        Ok(Self {
            shared,
            published,
            poller,
            timer,
            datagrams: sockets.datagrams,
            listeners: sockets.listeners,
            quic,
            queries: udp::queries(responder.holds()),
            answers: SendBatch::default(),
            connections: Connections::default(),
            touched: Vec::new(),
            responder,
            paused_until_ns: None,
            review_ns: 0,
        })
    }

    /// Serves until the stop handle is used; returns what was counted.
    pub(super) fn run(mut self) -> io::Result<Counters> {
        loop {
            let due_ns = [self.responder.delayed.next_due_ns(), self.quic.next_due_ns()];
            self.timer.set(due_ns.into_iter().flatten().min())?;
            self.poller.wait(self.max_wait())?;
            self.stand_still();
            if self.shared.stop.is_set() {
                return Ok(self.finish());
            }
            self.deliver_due();
            self.quic.on_timer(&mut self.responder);
            let mut number = 0;
            while let Some((token, flags)) = self.poller.ready(number) {
                number += 1;
                match Token::from(token) {
                    // Both were handled above.
                    Token::Stop | Token::Timer => {}
                    Token::Datagrams(socket) => {
                        let datagrams = &self.datagrams[socket as usize];
                        let (queries, answers) = (&mut self.queries, &mut self.answers);
                        udp::serve(datagrams, socket, queries, answers, &mut self.responder);
                    }
                    Token::Listener(listener) => self.accept(listener as usize),
                    Token::Connection(id) => self.serve_connection(id, flags),
                    Token::Quic(socket) => self.quic.serve(socket, &mut self.responder),
                    Token::Counters => self.published.publish(&self.counted(), false),
                }
                self.keep_within_memory();
            }
            self.note_first_query();
            self.deliver_due();
            self.review();
        }
    }

    /// How long the loop may wait for the kernel: forever, unless connections must be reviewed.
    fn max_wait(&self) -> Option<Duration> {
        if self.paused_until_ns.is_some() {
            return Some(ACCEPT_PAUSE);
        }
        (self.connections.len() > 0).then(|| self.review_interval())
    }

    /// How often connections are reviewed: an idle one lives at most a quarter too long.
    fn review_interval(&self) -> Duration {
        let quarter = self.shared.idle_timeout / 4;
        quarter.clamp(Duration::from_millis(10), Duration::from_secs(1))
    }

    /// Plays a programmed stall: neither reads nor answers until it is over.
    fn stand_still(&mut self) {
        /// A stop is noticed within this time.
        const SLICE: Duration = Duration::from_millis(20);
        let Some(stall) = self.responder.player.stall() else { return };
        let Some(first_ns) = self.shared.first_query_ns.get() else { return };
        while !self.shared.stop.is_set() {
            let since_first = Duration::from_nanos(clock::now_ns().saturating_sub(*first_ns));
            let Some(remaining) = stall.remaining(since_first) else { return };
            clock::sleep(remaining.min(SLICE));
        }
    }

    /// Notes when the first query came; stalls are counted from then.
    fn note_first_query(&self) {
        if self.responder.player.stall().is_some() && self.responder.counters.has_received() {
            self.shared.first_query_ns.get_or_init(clock::now_ns);
        }
    }

    fn accept(&mut self, number: usize) {
        let transport = self.listeners[number].1;
        let now_ns = clock::now_ns();
        for _ in 0..ACCEPTS {
            if self.connections.len() >= self.shared.connections_per_worker {
                return self.pause_accepting(now_ns);
            }
            match self.listeners[number].0.accept() {
                Ok((socket, _)) => {
                    self.responder.counters.connections.accepted += 1;
                    let id = self.connections.next_id();
                    let opened = Connection::new(id, socket, transport, self.shared, now_ns);
                    let watched = opened.ok().filter(|connection| {
                        let (token, interest) = (Token::Connection(id), connection.interest);
                        self.poller.add(connection, token, interest).is_ok()
                    });
                    match watched {
                        Some(connection) => self.connections.add(id, connection),
                        // It failed while it waited, or there is no memory for it.
                        None => self.responder.counters.connections.end(Ended::Broken, 0),
                    }
                }
                Err(error) => match error.raw_os_error() {
                    Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM) => {
                        return self.pause_accepting(now_ns);
                    }
                    _ if error.kind() == io::ErrorKind::WouldBlock => return,
                    // Errors of a connection that ended while it waited (accept(2)).
                    _ => {}
                },
            }
        }
    }

    /// Leaves new connections in the kernel's queue for a while.
    fn pause_accepting(&mut self, now_ns: u64) {
        if self.paused_until_ns.is_none() {
            self.responder.counters.connections.accept_pauses += 1;
            self.watch_listeners(EventFlags::empty());
        }
        self.paused_until_ns = Some(now_ns + ACCEPT_PAUSE.as_nanos() as u64);
    }

    fn watch_listeners(&self, interest: EventFlags) {
        for (number, (listener, _)) in (0..).zip(&self.listeners) {
            self.poller
                .modify(listener, Token::Listener(number), interest)
                .expect("the listener was added when the worker was made");
        }
    }

    fn serve_connection(&mut self, id: ConnectionId, flags: EventFlags) {
        let Some(connection) = self.connections.get(id) else { return };
        if !connection.is_lingering() {
            connection.active_ns = clock::now_ns();
        }
        let outcome = if flags.contains(EventFlags::IN) {
            connection.on_readable(&mut self.responder)
        } else if flags.intersects(EventFlags::ERR | EventFlags::HUP) {
            Err(Ended::Broken)
        } else {
            connection.advance(&mut self.responder)
        };
        self.settle(id, outcome);
    }

    /// Closes a connection that is over; watches any other for what it wants next.
    fn settle(&mut self, id: ConnectionId, outcome: Result<(), Ended>) {
        self.connections.note_memory(id);
        let Some(connection) = self.connections.get(id) else { return };
        let ended = match outcome {
            Ok(()) => {
                let wanted = connection.wanted();
                if wanted == connection.interest {
                    return;
                }
                connection.interest = wanted;
                match self.poller.modify(&*connection, Token::Connection(id), wanted) {
                    Ok(()) => return,
                    Err(_) => Ended::Broken,
                }
            }
            Err(ended) => connection.why(ended),
        };
        self.responder.counters.connections.end(ended, connection.queries());
        self.connections.remove(id);
    }

    /// Closes the connections that hold the most memory when all of them hold more than they may.
    ///
    /// Not the newest: those that hold most do not read what they asked for, or do not end what they began. A
    /// load opens all its connections before one of them does that.
    fn keep_within_memory(&mut self) {
        let most = self.shared.memory_per_worker;
        if self.connections.memory() + self.quic.memory() <= most {
            return;
        }
        // An eighth is freed at once, because each time costs a look at all connections.
        let wanted = most - most / 8;
        self.connections.release_memory();
        let mut sum = self.connections.memory() + self.quic.memory();
        if sum <= wanted {
            return;
        }
        let streams = self.connections.holders().map(|holder| holder.map(AnyConnection::Stream));
        let quic = self.quic.holders().map(|holder| holder.map(AnyConnection::Quic));
        let mut holders: Vec<Holder<AnyConnection>> = streams.chain(quic).collect();
        holders.sort_unstable_by_key(|holder| Reverse(holder.memory));
        for holder in holders {
            if sum <= wanted {
                break;
            }
            sum -= holder.memory;
            match holder.connection {
                AnyConnection::Stream(id) => {
                    let Some(connection) = self.connections.get(id) else { continue };
                    let ended = connection.why(Ended::Broken);
                    self.responder.counters.connections.end(ended, connection.queries());
                    self.connections.remove(id);
                }
                AnyConnection::Quic(name) => self.quic.cut(name, &mut self.responder.counters),
            }
        }
    }

    fn deliver_due(&mut self) {
        if self.responder.delayed.next_due_ns().is_none() {
            return;
        }
        let now_ns = clock::now_ns();
        // Answers of one socket are sent together; clients of several are rare.
        let mut open = None;
        while let Some(held) = self.responder.delayed.pop_due(now_ns) {
            let Held { due_ns, destination, message } = held;
            self.responder.counters.lateness.record(now_ns - due_ns);
            match destination {
                Destination::Datagram { socket, peer } => {
                    if open != Some(socket) || self.answers.len() == udp::BATCH {
                        self.send_batch(open);
                    }
                    open = Some(socket);
                    self.answers.push_to(peer, &message);
                }
                Destination::Stream { id, transport, request } => {
                    let messages = self.responder.counters.messages_mut(transport);
                    match self.connections.get(id) {
                        None => messages.unsent += 1,
                        Some(connection) => {
                            if connection.push_held(request, &message) {
                                messages.answered += 1;
                            } else {
                                messages.unsent += 1;
                            }
                            if self.touched.last() != Some(&id) {
                                self.touched.push(id);
                            }
                        }
                    }
                }
                Destination::Quic { socket, request, transport } => {
                    let messages = self.responder.counters.messages_mut(transport);
                    match self.quic.push_held(socket, request, &message) {
                        true => messages.answered += 1,
                        false => messages.unsent += 1,
                    }
                }
            }
            self.responder.delayed.recycle(message);
        }
        self.send_batch(open);
        self.quic.flush(&mut self.responder);
        let mut touched = std::mem::take(&mut self.touched);
        for id in touched.drain(..) {
            if let Some(connection) = self.connections.get(id) {
                connection.active_ns = now_ns;
                let outcome = connection.advance(&mut self.responder);
                self.settle(id, outcome);
            }
        }
        self.touched = touched;
    }

    fn send_batch(&mut self, socket: Option<u32>) {
        if let Some(socket) = socket {
            let socket = &self.datagrams[socket as usize];
            udp::send(socket, &mut self.answers, &mut self.responder.counters);
        }
    }

    /// Closes idle connections, and accepts again if it is time.
    fn review(&mut self) {
        if self.connections.len() == 0 && self.paused_until_ns.is_none() {
            return;
        }
        let now_ns = clock::now_ns();
        if self.paused_until_ns.is_some_and(|until_ns| until_ns <= now_ns)
            && self.connections.len() < self.shared.connections_per_worker
        {
            self.paused_until_ns = None;
            self.watch_listeners(EventFlags::IN);
        }
        if now_ns < self.review_ns {
            return;
        }
        self.review_ns = now_ns + self.review_interval().as_nanos() as u64;
        let longest_ns = self.shared.idle_timeout.as_nanos() as u64;
        let is_idle = |connection: &Connection| {
            let linger_ns = LINGER.as_nanos() as u64;
            let most_ns = if connection.is_lingering() { linger_ns } else { longest_ns };
            !connection.is_waiting() && connection.active_ns + most_ns <= now_ns
        };
        for id in self.connections.matching(is_idle) {
            let Some(connection) = self.connections.get(id) else { continue };
            let mut ended = Ended::Quota;
            if !connection.is_lingering() {
                connection.close();
                ended = Ended::Idle;
            }
            self.responder.counters.connections.end(ended, connection.queries());
            self.connections.remove(id);
        }
    }

    /// With the connections that are open.
    fn counted(&self) -> Counters {
        let mut counters = self.responder.counters;
        for connection in self.connections.iter() {
            counters.connections.open += 1;
            counters.connections.queries.record(connection.queries());
        }
        self.quic.count(&mut counters);
        counters
    }

    fn finish(mut self) -> Counters {
        let counters = &mut self.responder.counters;
        while let Some(held) = self.responder.delayed.pop_due(u64::MAX) {
            let transport = match held.destination {
                Destination::Datagram { .. } => Transport::Udp,
                Destination::Stream { transport, .. } | Destination::Quic { transport, .. } => {
                    transport
                }
            };
            counters.messages_mut(transport).unsent += 1;
        }
        let drops = self.datagrams.iter().map(|socket| receive_drops(socket.as_fd()));
        counters.receive_drops = drops.sum();
        let counters = self.counted();
        self.quic.close();
        self.published.publish(&counters, true);
        counters
    }
}
