//! A seeded network and its clock, in place of the kernel.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::rc::Rc;
use std::time::Instant;

use dnslab_wire::MessageBatch;
use dnslab_wire::Transport;
use rand::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::addresses::nobody;
use super::server::{Server, ToClient};
use crate::recorder::IntervalRecord;
use crate::runtime::{
    DatagramOptions, DatagramSocket, Ends, Group, Inbox, Path, Runtime, StreamSocket, Watch,
    Watched,
};
use crate::time::{Nanos, ThreadTime, Timeline};

/// Any day in 2026, nanoseconds since 1970.
const DAY: u64 = 1_790_000_000_000_000_000;

/// Octets of a connection that may be on their way in each direction.
const STREAM_BUFFER: usize = 16 * 1024;

/// Datagrams that a socket holds.
const DATAGRAM_BUFFER: usize = 64;

/// How bad the network and the machine are; shares in [0, 1].
#[derive(Clone, Debug)]
pub(super) struct Faults {
    /// Time from one side to the other, nanoseconds. Later octets of a stream never overtake earlier ones.
    pub(super) delay: Range<Nanos>,
    /// Datagrams that are lost, that come twice, that take ten times as long.
    pub(super) lost: f64,
    pub(super) doubled: f64,
    pub(super) late: f64,
    /// Sends that are taken in part, or not at all.
    pub(super) partial: f64,
    /// Calls at a socket for datagrams that report an ICMP error, or a full device.
    pub(super) icmp: f64,
    /// Connections that are refused, or whose SYN is lost.
    pub(super) refused: f64,
    pub(super) unheard: f64,
    /// Connections that are reset when something is sent on them.
    pub(super) reset: f64,
    /// Readings of the clock at which the thread was away from its CPU, and for how long.
    pub(super) descheduled: f64,
    pub(super) away: Range<Nanos>,
    /// The instants between which the thread was stopped, once.
    pub(super) stopped: Option<(Nanos, Nanos)>,
    /// Datagrams of the server of which a bit is changed, and those that random octets come before.
    pub(super) spoilt: f64,
    pub(super) after_garbage: f64,
    /// What breaks every stream.
    pub(super) broken: Option<Broken>,
    /// From this socket on, nothing of the server comes over streams.
    pub(super) mute_from: Option<usize>,
    /// When somebody sets the clocks of both sides, and by how many seconds.
    pub(super) clock_set: Option<(Nanos, i64)>,
}

/// What the network does to each stream.
#[derive(Clone, Copy, Debug)]
pub(super) enum Broken {
    /// Ends it after so many octets of the server.
    EndAfter { octets: usize, by_reset: bool },
    /// Ends it after a random number of octets of the server, up to this one.
    EndAtRandom(usize),
    /// Changes a bit of every octet whose number is a multiple of this, on the way to the server.
    SpoilQueries(usize),
    /// Changes a bit of every such octet on the way to the client.
    SpoilAnswers(usize),
    /// Random octets in place of the server's after so many.
    Garbage(usize),
}

/// A link on which nothing goes wrong, 100 us long.
impl Default for Faults {
    fn default() -> Self {
        Self {
            delay: 100_000..100_001,
            lost: 0.0,
            doubled: 0.0,
            late: 0.0,
            partial: 0.0,
            icmp: 0.0,
            refused: 0.0,
            unheard: 0.0,
            reset: 0.0,
            descheduled: 0.0,
            away: 0..1,
            stopped: None,
            spoilt: 0.0,
            after_garbage: 0.0,
            broken: None,
            mute_from: None,
            clock_set: None,
        }
    }
}

#[derive(Debug)]
enum Event {
    Connected(usize, Result<(), ErrorKind>),
    ToServer(usize, Vec<u8>),
    ToClient(usize, Vec<u8>),
    /// The server closes the connection, with a reset or in good order.
    Closed(usize, bool),
    /// The server does what it wanted to do later.
    Server,
}

#[derive(Debug, Default)]
struct SocketState {
    is_stream: bool,
    slot: u32,
    watches_writing: bool,
    is_watched: bool,
    is_dropped: bool,
    /// Whether the connection is there or has failed; `None` while that is open.
    connected: Option<Result<(), ErrorKind>>,
    /// Octets of a stream, or datagrams, that have come.
    octets: VecDeque<u8>,
    datagrams: VecDeque<Datagram>,
    /// It is an address of a client at this socket, which many clients share.
    shares: Option<(usize, IpAddr)>,
    /// Nobody is at the address that it sends to.
    is_dead: bool,
    /// The server that it sends to, for a socket of many clients.
    target: Option<SocketAddr>,
    /// The server has closed: with a reset or in good order.
    closed: Option<bool>,
    /// Octets on their way to the server.
    on_their_way: usize,
    /// When the last octets of each direction come.
    last_to_server: Nanos,
    last_to_client: Nanos,
    /// How many octets came from each side.
    from_client: usize,
    from_server: usize,
    /// The network ends the stream after so many octets of the server, with a reset or in good order.
    ends_after: Option<(usize, bool)>,
    dropped: u64,
    /// The next call reports this.
    error: Option<ErrorKind>,
    /// The kernel cuts no datagrams.
    no_segments: bool,
}

impl SocketState {
    fn is_ready(&self) -> bool {
        let has_failed = matches!(self.connected, Some(Err(_)));
        let writing = (self.watches_writing || has_failed) && self.can_be_written();
        !self.is_dropped && self.is_watched && (self.can_be_read() || writing)
    }

    fn can_be_read(&self) -> bool {
        !self.octets.is_empty()
            || !self.datagrams.is_empty()
            || self.closed.is_some()
            || self.error.is_some()
    }

    fn can_be_written(&self) -> bool {
        match self.is_stream {
            true => self.connected.is_some() && self.on_their_way < STREAM_BUFFER,
            false => true,
        }
    }
}

/// All sockets, the link, and the server at its end.
pub(crate) struct Net {
    pub(super) now: Nanos,
    /// For how long the worker did not get its CPU.
    waited: Nanos,
    pub(super) random: Xoshiro256PlusPlus,
    pub(super) faults: Faults,
    pub(super) server: Server,
    transport: Transport,
    origin: Instant,
    events: BTreeMap<(Nanos, u64), Event>,
    count: u64,
    sockets: Vec<SocketState>,
    /// Calls of the worker. Too many show that it goes on for ever.
    pub(super) calls: u64,
    /// Records of what the queries were told.
    pub(super) transcript: Vec<u8>,
}

/// The world of a simulated worker.
#[derive(Clone)]
pub(crate) struct Simulated(pub(super) Rc<RefCell<Net>>);

pub(crate) struct Stream(Rc<RefCell<Net>>, usize);
pub(crate) struct Datagrams(Rc<RefCell<Net>>, usize);

/// Datagrams, each in a slot.
#[derive(Default)]
pub(crate) struct Received(Vec<Datagram>);

#[derive(Debug)]
struct Datagram {
    octets: Vec<u8>,
    /// When it came, nanoseconds since 1970.
    wall: u64,
    /// The socket, or the address at a socket of many clients, that it came to.
    number: usize,
    /// At a socket of many clients.
    ends: Option<Ends>,
}

impl Net {
    pub(super) fn new(seed: u64, transport: Transport, faults: Faults, server: Server) -> Self {
        Self {
            now: 0,
            waited: 0,
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            faults,
            server,
            transport,
            origin: Instant::now(),
            events: BTreeMap::new(),
            count: 0,
            sockets: Vec::new(),
            calls: 0,
            transcript: Vec::new(),
        }
    }

    fn chance(&mut self, share: f64) -> bool {
        share > 0.0 && self.random.random_bool(share)
    }

    fn delay(&mut self) -> Nanos {
        let Range { start, end } = self.faults.delay;
        self.random.random_range(start..end)
    }

    fn schedule(&mut self, at: Nanos, event: Event) {
        self.count += 1;
        self.events.insert((at.max(self.now), self.count), event);
    }

    /// Nanoseconds since 1970, on both sides.
    fn time_of_day(&self) -> u64 {
        let set = self.faults.clock_set.filter(|(at, _)| *at <= self.now);
        let seconds = set.map_or(0, |(_, seconds)| seconds);
        (DAY + self.now).saturating_add_signed(seconds * 1_000_000_000)
    }

    /// A little time passes with each look at the clock, and sometimes much.
    fn read_clock(&mut self) -> Nanos {
        self.calls += 1;
        assert!(self.calls < 20_000_000, "the worker goes round and round at {} ns", self.now);
        let mut passed = self.random.random_range(20..400);
        if self.chance(self.faults.descheduled) {
            let away = self.random.random_range(self.faults.away.clone());
            self.waited += away;
            passed += away;
        }
        self.pass_until(self.now + passed);
        if let Some((from, to)) = self.faults.stopped
            && (from..to).contains(&self.now)
        {
            self.pass_until(to);
        }
        self.now
    }

    /// Lets everything up to an instant happen.
    fn pass_until(&mut self, until: Nanos) {
        while let Some(entry) = self.events.first_entry()
            && entry.key().0 <= until
        {
            let ((at, _), event) = entry.remove_entry();
            self.now = self.now.max(at);
            self.happen(event);
        }
        self.now = self.now.max(until);
    }

    fn happen(&mut self, event: Event) {
        self.server.time_of_day = self.time_of_day();
        match event {
            Event::Connected(number, result) => self.sockets[number].connected = Some(result),
            Event::ToServer(number, mut octets) => {
                let socket = &mut self.sockets[number];
                if socket.is_stream {
                    if let Some(end) = self.server.end_of_stall(self.now) {
                        return self.schedule(end, Event::ToServer(number, octets));
                    }
                    socket.on_their_way -= octets.len();
                    if let Some(Broken::SpoilQueries(every)) = self.faults.broken {
                        spoil(&mut octets, socket.from_client, every);
                    }
                    socket.from_client += octets.len();
                }
                // What was sent before its socket was closed still arrives.
                self.server.receive(self.now, self.origin, number, &octets);
                self.carry_out();
            }
            Event::Server => {
                self.server.look_at_the_time(self.now, self.origin);
                self.carry_out();
            }
            Event::ToClient(number, octets) => {
                let (is_stream, wall) = (self.sockets[number].is_stream, self.time_of_day());
                let shares = self.sockets[number].shares;
                let socket = &mut self.sockets[shares.map_or(number, |(shared, _)| shared)];
                let ends = shares.and_then(|(_, to)| Some(Ends { from: socket.target?, to }));
                if socket.is_dropped || socket.closed.is_some() {
                } else if is_stream {
                    socket.octets.extend(octets);
                } else if socket.datagrams.len() < DATAGRAM_BUFFER {
                    socket.datagrams.push_back(Datagram { octets, wall, number, ends });
                } else {
                    socket.dropped += 1;
                }
            }
            Event::Closed(number, by_reset) => {
                let socket = &mut self.sockets[number];
                socket.closed.get_or_insert(by_reset);
                if by_reset {
                    socket.octets.clear();
                }
            }
        }
    }

    /// Puts what the server says on the link.
    fn carry_out(&mut self) {
        for (number, what) in std::mem::take(&mut self.server.out) {
            match what {
                ToClient::Octets(mut octets) if self.sockets[number].is_stream => {
                    let end = self.break_stream(number, &mut octets);
                    // In pieces, as the network has it.
                    let mut rest = &octets[..];
                    while !rest.is_empty() {
                        let length = self.random.random_range(1..=rest.len().min(1_460));
                        let at = (self.now + self.delay()).max(self.sockets[number].last_to_client);
                        self.sockets[number].last_to_client = at;
                        self.schedule(at, Event::ToClient(number, rest[..length].to_vec()));
                        rest = &rest[length..];
                    }
                    if let Some(by_reset) = end {
                        self.server.forget(number);
                        let at = (self.now + self.delay()).max(self.sockets[number].last_to_client);
                        self.schedule(at, Event::Closed(number, by_reset));
                    }
                }
                ToClient::Octets(octets) => self.send_datagram(number, octets, false),
                ToClient::Close { by_reset } => {
                    let at = (self.now + self.delay()).max(self.sockets[number].last_to_client);
                    self.schedule(at, Event::Closed(number, by_reset));
                }
            }
        }
        if let Some(at) = self.server.next_time(self.origin) {
            self.schedule(at, Event::Server);
        }
    }

    /// Breaks the octets of the server as wanted. Returns how the stream ends after them, if it does.
    fn break_stream(&mut self, number: usize, octets: &mut Vec<u8>) -> Option<bool> {
        let socket = &mut self.sockets[number];
        let before = socket.from_server;
        if self.faults.mute_from.is_some_and(|first| number >= first) {
            octets.clear();
        }
        socket.from_server += octets.len();
        match self.faults.broken {
            Some(Broken::SpoilAnswers(every)) => spoil(octets, before, every),
            Some(Broken::Garbage(from)) => {
                let own = from.saturating_sub(before).min(octets.len());
                self.random.fill(&mut octets[own..]);
            }
            _ => {}
        }
        let (last, by_reset) = socket.ends_after?;
        octets.truncate(last.saturating_sub(before));
        (before + octets.len() >= last).then_some(by_reset)
    }

    /// Puts a datagram on the link.
    fn send_datagram(&mut self, number: usize, octets: Vec<u8>, to_server: bool) {
        let copies = match self.random.random::<f64>() {
            draw if draw < self.faults.lost => 0,
            draw if draw < self.faults.lost + self.faults.doubled => 2,
            _ => 1,
        };
        let mut octets = octets;
        if !to_server && !octets.is_empty() && self.chance(self.faults.spoilt) {
            let place = self.random.random_range(0..octets.len());
            octets[place] ^= 1 << self.random.random_range(0..8);
        }
        if !to_server && self.chance(self.faults.after_garbage) {
            let mut garbage = vec![0; octets.len()];
            self.random.fill(&mut garbage[..]);
            self.schedule(self.now + self.faults.delay.start, Event::ToClient(number, garbage));
        }
        for _ in 0..copies {
            let times = if self.chance(self.faults.late) { 10 } else { 1 };
            let at = self.now + times * self.delay();
            let octets = octets.clone();
            self.schedule(
                at,
                match to_server {
                    true => Event::ToServer(number, octets),
                    false => Event::ToClient(number, octets),
                },
            );
        }
    }

    /// The number of an address at a socket that many clients share.
    fn address(&mut self, shared: usize, address: IpAddr) -> usize {
        let known = self.sockets.iter().position(|socket| socket.shares == Some((shared, address)));
        known.unwrap_or_else(|| {
            self.sockets
                .push(SocketState { shares: Some((shared, address)), ..SocketState::default() });
            let number = self.sockets.len() - 1;
            self.server.opened(self.transport, number, false);
            number
        })
    }

    /// Sometimes ends the rest of a call at a socket for datagrams with an error.
    fn trouble(&mut self, number: usize) -> io::Result<()> {
        if let Some(kind) = self.sockets[number].error.take() {
            return Err(kind.into());
        }
        if self.chance(self.faults.icmp) {
            let errors = [ErrorKind::ConnectionRefused, ErrorKind::HostUnreachable];
            return Err(errors[self.random.random_range(0..errors.len())].into());
        }
        Ok(())
    }
}

impl Runtime for Simulated {
    type Stream = Stream;
    type Datagrams = Datagrams;

    fn timeline(&self) -> Timeline {
        Timeline::starting_at(self.0.borrow().origin)
    }

    fn now(&self) -> Nanos {
        self.0.borrow_mut().read_clock()
    }

    fn wall_clock(&self) -> u64 {
        let net = &mut *self.0.borrow_mut();
        net.read_clock();
        net.time_of_day()
    }

    fn cpu_time(&self) -> Nanos {
        self.0.borrow().now
    }

    fn thread_time(&self) -> ThreadTime {
        let net = self.0.borrow();
        ThreadTime { cpu: net.now - net.waited, waited: net.waited }
    }

    fn connect(&mut self, path: Path) -> io::Result<Stream> {
        let net = &mut *self.0.borrow_mut();
        let number = net.sockets.len();
        let is_dead = path.target == nobody();
        net.sockets.push(SocketState { is_stream: true, is_dead, ..SocketState::default() });
        let at = net.now + net.delay();
        if net.chance(net.faults.refused) {
            net.schedule(at, Event::Connected(number, Err(ErrorKind::ConnectionRefused)));
        } else if !is_dead && !net.chance(net.faults.unheard) {
            net.schedule(at, Event::Connected(number, Ok(())));
        }
        net.server.opened(net.transport, number, true);
        net.sockets[number].ends_after = match net.faults.broken {
            Some(Broken::EndAfter { octets, by_reset }) => Some((octets, by_reset)),
            Some(Broken::EndAtRandom(most)) => {
                Some((net.random.random_range(0..=most), net.random.random()))
            }
            _ => None,
        };
        if let Some((0, by_reset)) = net.sockets[number].ends_after {
            net.server.forget(number);
            net.schedule(at, Event::Closed(number, by_reset));
        }
        Ok(Stream(Rc::clone(&self.0), number))
    }

    fn bind(&mut self, path: Path, _: DatagramOptions) -> io::Result<Datagrams> {
        let net = &mut *self.0.borrow_mut();
        let number = net.sockets.len();
        let no_segments = net.chance(0.2);
        let is_dead = path.target == nobody();
        net.sockets.push(SocketState { no_segments, is_dead, ..SocketState::default() });
        net.server.opened(net.transport, number, false);
        Ok(Datagrams(Rc::clone(&self.0), number))
    }

    fn bind_shared(&mut self, target: SocketAddr, _: DatagramOptions) -> io::Result<Datagrams> {
        let net = &mut *self.0.borrow_mut();
        let is_dead = target == nobody();
        let target = Some(target);
        net.sockets.push(SocketState { is_dead, target, ..SocketState::default() });
        Ok(Datagrams(Rc::clone(&self.0), net.sockets.len() - 1))
    }

    fn watch(&mut self, socket: Watched<'_, Self>, slot: u32, watch: Watch) -> io::Result<()> {
        let number = match socket {
            Watched::Stream(Stream(_, number)) | Watched::Datagrams(Datagrams(_, number)) => {
                *number
            }
        };
        let socket = &mut self.0.borrow_mut().sockets[number];
        assert_eq!(socket.is_watched, watch.again, "a socket is watched once, and then changed");
        (socket.is_watched, socket.slot, socket.watches_writing) = (true, slot, watch.writing);
        Ok(())
    }

    fn wait(&mut self, until: Nanos, ready: &mut Vec<u32>) -> io::Result<()> {
        let net = &mut *self.0.borrow_mut();
        ready.clear();
        net.read_clock();
        loop {
            let sockets = net.sockets.iter().filter(|socket| socket.is_ready());
            ready.extend(sockets.map(|socket| socket.slot));
            let next = net.events.first_key_value().map(|((at, _), _)| *at);
            match next.filter(|at| *at < until) {
                _ if !ready.is_empty() => return Ok(()),
                Some(at) => net.pass_until(at),
                None => {
                    net.pass_until(until.max(net.now));
                    return Ok(());
                }
            }
        }
    }

    fn sleep(&mut self, duration: Nanos) {
        let net = &mut *self.0.borrow_mut();
        let over = net.random.random_range(0..80_000);
        net.pass_until(net.now + duration + over);
    }

    fn report(&mut self, _: IntervalRecord) {}

    fn told(&mut self, block: Vec<u8>) {
        crate::records_of(&block, &mut self.0.borrow_mut().transcript);
    }
}

impl StreamSocket for Stream {
    fn is_connected(&self) -> io::Result<bool> {
        match self.0.borrow().sockets[self.1].connected {
            None => Ok(false),
            Some(result) => result.map(|()| true).map_err(Into::into),
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let net = &mut *self.0.borrow_mut();
        let socket = &mut net.sockets[self.1];
        if socket.octets.is_empty() {
            return match socket.closed {
                None => Err(ErrorKind::WouldBlock.into()),
                Some(true) => Err(ErrorKind::ConnectionReset.into()),
                Some(false) => Ok(0),
            };
        }
        let there = socket.octets.len().min(buffer.len());
        let length = if there > 1 { net.random.random_range(1..=there) } else { there };
        for (place, octet) in buffer.iter_mut().zip(socket.octets.drain(..length)) {
            *place = octet;
        }
        Ok(length)
    }

    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        let net = &mut *self.0.borrow_mut();
        if net.sockets[self.1].closed.is_some() {
            return Err(ErrorKind::BrokenPipe.into());
        }
        if net.chance(net.faults.reset) {
            net.happen(Event::Closed(self.1, true));
            net.server.forget(self.1);
            return Err(ErrorKind::ConnectionReset.into());
        }
        let room = STREAM_BUFFER - net.sockets[self.1].on_their_way;
        let mut length = room.min(octets.len());
        if length > 0 && net.chance(net.faults.partial) {
            length = net.random.random_range(0..=length);
        }
        if length == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        let at = (net.now + net.delay()).max(net.sockets[self.1].last_to_server);
        let socket = &mut net.sockets[self.1];
        socket.last_to_server = at;
        socket.on_their_way += length;
        net.schedule(at, Event::ToServer(self.1, octets[..length].to_vec()));
        Ok(length)
    }

    fn acknowledge(&self) -> io::Result<()> {
        Ok(())
    }

    fn round_trip(&self) -> Option<Nanos> {
        Some(2 * self.0.borrow().faults.delay.start)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let net = &mut *self.0.borrow_mut();
        net.sockets[self.1].is_dropped = true;
        net.server.forget(self.1);
    }
}

impl DatagramSocket for Datagrams {
    type Inbox = Received;

    fn send_batch(
        &self,
        batch: &MessageBatch,
        first: usize,
        max_segments: usize,
    ) -> io::Result<usize> {
        let net = &mut *self.0.borrow_mut();
        net.trouble(self.1)?;
        let is_cut = max_segments > 1 && batch.len() > first + 1;
        if is_cut && net.sockets[self.1].no_segments {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        let mut left = batch.len() - first;
        if net.chance(net.faults.partial) {
            left = net.random.random_range(0..=left);
        }
        if left == 0 {
            let full = if net.random.random() { libc::ENOBUFS } else { libc::EAGAIN };
            return Err(io::Error::from_raw_os_error(full));
        }
        if net.sockets[self.1].is_dead {
            return Ok(left);
        }
        for message in batch.messages().skip(first).take(left) {
            net.server.sent(net.now, self.1, message);
            net.send_datagram(self.1, message.to_vec(), true);
        }
        Ok(left)
    }

    fn send_from(
        &self,
        batch: &MessageBatch,
        sources: &[IpAddr],
        _: SocketAddr,
        first: usize,
    ) -> io::Result<usize> {
        let net = &mut *self.0.borrow_mut();
        net.trouble(self.1)?;
        let mut left = batch.len() - first;
        if net.chance(net.faults.partial) {
            left = net.random.random_range(0..=left);
        }
        if left == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        if net.sockets[self.1].is_dead {
            return Ok(left);
        }
        for (message, source) in batch.messages().zip(sources).skip(first).take(left) {
            let number = net.address(self.1, *source);
            net.server.sent(net.now, number, message);
            net.send_datagram(number, message.to_vec(), true);
        }
        Ok(left)
    }

    fn send_segments(&self, octets: &[u8], segment: usize) -> io::Result<()> {
        let net = &mut *self.0.borrow_mut();
        net.trouble(self.1)?;
        if octets.len() > segment && net.sockets[self.1].no_segments {
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        if net.chance(net.faults.partial) {
            return Err(ErrorKind::WouldBlock.into());
        }
        let is_dead = net.sockets[self.1].is_dead;
        for datagram in octets.chunks(segment.max(1)).filter(|_| !is_dead) {
            net.send_datagram(self.1, datagram.to_vec(), true);
        }
        Ok(())
    }

    fn receive(&self, inbox: &mut Received) -> io::Result<bool> {
        let net = &mut *self.0.borrow_mut();
        net.trouble(self.1)?;
        let there = net.sockets[self.1].datagrams.len();
        if there == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        let count = net.random.random_range(1..=there.min(8));
        inbox.0 = net.sockets[self.1].datagrams.drain(..count).collect();
        if net.transport == Transport::Udp {
            for Datagram { octets, number, .. } in &inbox.0 {
                net.server.read(*number, octets);
            }
        }
        Ok(count < there)
    }

    fn drops(&self) -> u64 {
        self.0.borrow().sockets[self.1].dropped
    }
}

impl Drop for Datagrams {
    fn drop(&mut self) {
        let net = &mut *self.0.borrow_mut();
        net.sockets[self.1].is_dropped = true;
        net.server.forget(self.1);
    }
}

impl Inbox for Received {
    fn new() -> Self {
        Self::default()
    }

    fn shared() -> Self {
        Self::default()
    }

    fn groups(&self) -> impl Iterator<Item = Group<'_>> {
        self.0.iter().map(|Datagram { octets, wall, ends, .. }| Group {
            octets,
            segment: octets.len(),
            timestamp: Some(*wall),
            ends: *ends,
        })
    }
}

/// Changes a bit of every octet whose number is a multiple of `every`, except the first. `before` octets came
/// before.
fn spoil(octets: &mut [u8], before: usize, every: usize) {
    for (number, octet) in (before..).zip(octets) {
        if number > 0 && number % every == 0 {
            *octet ^= 0x10;
        }
    }
}
