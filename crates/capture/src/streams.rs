//! Messages out of TCP connections, in bounded memory.
//!
//! Only the direction to the server is read. What the server says would tell which octets it never got, but not
//! more about what it was asked.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::ops::Range;

use dnslab_wire::Frames;

use crate::datagram::Segment;
use crate::generations::Generations;
use crate::message::check;
use crate::{Counts, Reason};

/// The most connections of one generation.
const MAX_CONNECTIONS: usize = 65_536;

/// The most octets that all connections together hold, besides what each costs anyway.
const MAX_MEMORY: usize = 64 << 20;

/// The most octets of a connection that wait for earlier ones.
const MAX_HELD: usize = 256 * 1024;

/// The most segments of a connection that wait.
const MAX_SEGMENTS: usize = 512;

/// How far ahead of what is expected a segment may be, octets. Farther is a segment of another connection, or
/// nonsense.
const MAX_AHEAD: i32 = 1 << 20;

/// How long segments wait for earlier ones, in nanoseconds of the capture. A retransmission takes hardly longer; what
/// comes later was lost by the capture.
const PATIENCE_NS: u64 = 5_000_000_000;

/// Octets of memory that are kept for messages that wait to be given out.
const READY: usize = 128 * 1024;

/// The connections of a capture.
#[derive(Debug)]
pub(crate) struct Streams {
    connections: Generations<Ends, Connection>,
    /// Octets that they hold.
    memory: usize,
    ready: Ready,
}

/// Client and server.
type Ends = (SocketAddr, SocketAddr);

/// Queries that wait to be given out.
#[derive(Debug, Default)]
struct Ready {
    octets: Vec<u8>,
    queries: VecDeque<StreamQuery>,
}

/// A query that was found in a stream.
#[derive(Clone, Debug)]
pub(crate) struct StreamQuery {
    pub(crate) at_ns: u64,
    pub(crate) client: SocketAddr,
    pub(crate) server: SocketAddr,
    /// Its place in [`Streams::octets`].
    pub(crate) message: Range<usize>,
}

#[derive(Debug)]
struct Connection {
    /// The sequence number of its SYN, if that was captured.
    first: Option<u32>,
    /// The sequence number that is expected.
    next: u32,
    state: State,
    /// The message that is not whole yet, with its length prefix.
    partial: Vec<u8>,
    /// Segments after a gap, in order.
    held: Vec<Held>,
    /// Octets of them.
    held_octets: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Reading,
    /// Nobody knows where the next message begins. Segments are skipped for this reason.
    Lost(Reason),
    /// Its entry stays for a while, so that retransmissions are no new connection.
    Closed,
}

#[derive(Debug)]
struct Held {
    at_ns: u64,
    sequence: u32,
    data: Box<[u8]>,
}

impl Streams {
    pub(crate) fn new() -> Self {
        Self { connections: Generations::new(), memory: 0, ready: Ready::default() }
    }

    /// The next query that was found. The caller counts it.
    #[inline]
    pub(crate) fn next_query(&mut self) -> Option<StreamQuery> {
        self.ready.queries.pop_front()
    }

    /// The octets that messages are in.
    pub(crate) fn octets(&self) -> &[u8] {
        &self.ready.octets
    }

    /// Takes a segment from a client and counts it. Call it when no query waits.
    pub(crate) fn add(
        &mut self,
        at_ns: u64,
        ends: Ends,
        segment: &Segment<'_>,
        counts: &mut Counts,
    ) {
        if self.ready.queries.is_empty() {
            self.ready.octets.clear();
            self.ready.octets.shrink_to(READY);
        }
        if segment.is_reset {
            counts.carriers += 1;
            if let Some(connection) = self.connections.remove(&ends) {
                self.end(ends, connection, counts);
            }
            return;
        }
        if segment.is_syn {
            counts.carriers += 1;
            self.open(ends, segment, counts);
            // Data may come with it (TCP Fast Open, RFC 7413). It is not in an entry that was there before.
            if let Some(connection) = self.connections.get(&ends)
                && !segment.data.is_empty()
                && connection.state == State::Reading
                && connection.next == segment.sequence.wrapping_add(1)
            {
                let before = connection.memory();
                connection.feed(at_ns, ends, segment.data, &mut self.ready, counts);
                self.memory = self.memory + connection.memory() - before;
            }
        } else if segment.data.is_empty() && !segment.is_fin {
            counts.carriers += 1;
        } else {
            self.data(at_ns, ends, segment, counts);
        }
        if self.connections.young() >= MAX_CONNECTIONS {
            self.turn(counts);
        }
        while self.memory > MAX_MEMORY {
            self.turn(counts);
        }
    }

    /// Makes an entry for a connection that begins, unless this is its SYN again.
    fn open(&mut self, ends: Ends, segment: &Segment<'_>, counts: &mut Counts) {
        if let Some(connection) = self.connections.get(&ends) {
            if connection.first == Some(segment.sequence) {
                return;
            }
            // The client uses the port again.
            if let Some(connection) = self.connections.remove(&ends) {
                self.end(ends, connection, counts);
            }
        }
        counts.connections += 1;
        let mut connection = Connection::new(segment.sequence.wrapping_add(1), State::Reading);
        connection.first = Some(segment.sequence);
        self.connections.insert(ends, connection);
    }

    fn data(&mut self, at_ns: u64, ends: Ends, segment: &Segment<'_>, counts: &mut Counts) {
        let connection = match self.connections.get(&ends) {
            Some(connection) => connection,
            None if segment.data.is_empty() => {
                counts.carriers += 1;
                return;
            }
            None => {
                counts.connections_without_start += 1;
                let state = State::Lost(Reason::StreamStart);
                self.connections.insert(ends, Connection::new(segment.sequence, state));
                self.connections.get(&ends).expect("it was just inserted")
            }
        };
        let before = connection.memory();
        connection.add(at_ns, ends, segment.sequence, segment.data, &mut self.ready, counts);
        let end = segment.sequence.wrapping_add(segment.data.len() as u32);
        let is_at_end = match connection.state {
            State::Reading => connection.held.is_empty() && connection.next == end,
            State::Lost(_) => true,
            State::Closed => false,
        };
        if segment.is_fin && is_at_end {
            connection.close(counts);
        }
        self.memory = self.memory + connection.memory() - before;
    }

    /// Counts what is left of a connection that is no longer in the table.
    fn end(&mut self, ends: Ends, mut connection: Connection, counts: &mut Counts) {
        self.memory -= connection.memory();
        if !connection.held.is_empty() {
            connection.give_up(ends, &mut self.ready, counts);
        }
        connection.close(counts);
    }

    fn turn(&mut self, counts: &mut Counts) {
        for (ends, connection) in self.connections.turn() {
            self.end(ends, connection, counts);
        }
    }

    /// Gives up what is not whole. Queries may wait then.
    pub(crate) fn finish(&mut self, counts: &mut Counts) {
        self.turn(counts);
        self.turn(counts);
    }
}

impl Connection {
    fn new(next: u32, state: State) -> Self {
        Self { first: None, next, state, partial: Vec::new(), held: Vec::new(), held_octets: 0 }
    }

    /// Octets that it holds, besides its entry.
    fn memory(&self) -> usize {
        self.partial.capacity() + self.held_octets + self.held.capacity() * size_of::<Held>()
    }

    /// How far `sequence` is ahead of what is expected.
    fn ahead(&self, sequence: u32) -> i32 {
        sequence.wrapping_sub(self.next).cast_signed()
    }

    /// Takes the data of a segment, which may be empty, and counts the segment.
    fn add(
        &mut self,
        at_ns: u64,
        ends: Ends,
        sequence: u32,
        data: &[u8],
        ready: &mut Ready,
        counts: &mut Counts,
    ) {
        let ahead = self.ahead(sequence);
        // Beyond the end there is another connection of the same ports, whose beginning was not captured.
        if self.state == State::Closed && !data.is_empty() && !(-MAX_AHEAD..=0).contains(&ahead) {
            counts.connections_without_start += 1;
            self.state = State::Lost(Reason::StreamStart);
        }
        match (self.state, ahead) {
            _ if data.is_empty() => counts.carriers += 1,
            // Sent again.
            (State::Closed, _) => counts.carriers += 1,
            (State::Lost(reason), _) => {
                if self.resume(at_ns, ends, sequence, data, ready, counts) {
                    counts.carriers += 1;
                } else {
                    counts.skip(reason);
                }
            }
            (State::Reading, MAX_AHEAD..) => counts.skip(Reason::StreamGap),
            (State::Reading, 1..) => {
                counts.carriers += 1;
                self.hold(at_ns, sequence, data);
                let waited = self.held.iter().map(|held| at_ns.saturating_sub(held.at_ns)).max();
                if self.held_octets > MAX_HELD
                    || self.held.len() > MAX_SEGMENTS
                    || waited.is_some_and(|waited| waited > PATIENCE_NS)
                {
                    self.give_up(ends, ready, counts);
                }
            }
            (State::Reading, _) => {
                counts.carriers += 1;
                self.take(at_ns, ends, sequence, data, ready, counts);
                self.take_held(ends, ready, counts);
            }
        }
    }

    /// Takes what is new in data that begins at or before what is expected.
    fn take(
        &mut self,
        at_ns: u64,
        ends: Ends,
        sequence: u32,
        data: &[u8],
        ready: &mut Ready,
        counts: &mut Counts,
    ) {
        let known = self.next.wrapping_sub(sequence) as usize;
        if let Some(new @ [_, ..]) = data.get(known..) {
            self.feed(at_ns, ends, new, ready, counts);
        }
    }

    /// Takes the segments that waited and are now next.
    fn take_held(&mut self, ends: Ends, ready: &mut Ready, counts: &mut Counts) {
        while let Some(first) = self.held.first()
            && self.ahead(first.sequence) <= 0
        {
            let held = self.held.remove(0);
            self.held_octets -= held.data.len();
            self.take(held.at_ns, ends, held.sequence, &held.data, ready, counts);
        }
    }

    fn hold(&mut self, at_ns: u64, sequence: u32, data: &[u8]) {
        let place =
            self.held.partition_point(|held| self.ahead(held.sequence) < self.ahead(sequence));
        if self
            .held
            .get(place)
            .is_some_and(|held| held.sequence == sequence && held.data.len() >= data.len())
        {
            return;
        }
        self.held_octets += data.len();
        self.held.insert(place, Held { at_ns, sequence, data: data.into() });
    }

    /// Takes the next octets of the stream.
    fn feed(
        &mut self,
        at_ns: u64,
        ends: Ends,
        data: &[u8],
        ready: &mut Ready,
        counts: &mut Counts,
    ) {
        self.next = self.next.wrapping_add(data.len() as u32);
        if self.partial.is_empty() {
            let rest = ready.cut(at_ns, ends, data, counts);
            self.partial.extend_from_slice(rest);
        } else {
            self.partial.extend_from_slice(data);
            let rest = ready.cut(at_ns, ends, &self.partial, counts).len();
            self.partial.drain(..self.partial.len() - rest);
            if self.partial.is_empty() {
                self.partial = Vec::new();
            }
        }
    }

    /// Stops waiting for octets, and reads on where a segment after them is whole messages.
    fn give_up(&mut self, ends: Ends, ready: &mut Ready, counts: &mut Counts) {
        self.lose(counts);
        self.held_octets = 0;
        for held in std::mem::take(&mut self.held) {
            let ahead = self.ahead(held.sequence);
            if self.state == State::Reading && ahead <= 0 {
                self.take(held.at_ns, ends, held.sequence, &held.data, ready, counts);
                continue;
            }
            if self.state == State::Reading {
                self.lose(counts);
            }
            if !self.resume(held.at_ns, ends, held.sequence, &held.data, ready, counts) {
                counts.carried_nothing(1, Reason::StreamGap);
            }
        }
    }

    fn lose(&mut self, counts: &mut Counts) {
        counts.gaps += 1;
        if !self.partial.is_empty() {
            counts.skip_message(Reason::StreamGap);
            self.partial = Vec::new();
        }
        self.state = State::Lost(Reason::StreamGap);
    }

    /// Begins to read with this segment if it is nothing but whole queries. That it is so by chance is as good as
    /// impossible: the length, five bits, the number of questions and a name must fit.
    fn resume(
        &mut self,
        at_ns: u64,
        ends: Ends,
        sequence: u32,
        data: &[u8],
        ready: &mut Ready,
        counts: &mut Counts,
    ) -> bool {
        let mut frames = Frames::new(data);
        if !frames.by_ref().all(|message| check(message).is_ok()) || !frames.rest().is_empty() {
            return false;
        }
        counts.resumed += 1;
        self.state = State::Reading;
        self.next = sequence;
        self.feed(at_ns, ends, data, ready, counts);
        true
    }

    fn close(&mut self, counts: &mut Counts) {
        if !self.partial.is_empty() {
            counts.skip_message(Reason::StreamCut);
            self.partial = Vec::new();
        }
        self.state = State::Closed;
    }
}

impl Ready {
    /// Takes the whole messages at the start of a stream, and gives the rest.
    fn cut<'a>(
        &mut self,
        at_ns: u64,
        (client, server): Ends,
        stream: &'a [u8],
        counts: &mut Counts,
    ) -> &'a [u8] {
        let mut frames = Frames::new(stream);
        for message in frames.by_ref() {
            match check(message) {
                Ok(()) => {
                    let start = self.octets.len();
                    self.octets.extend_from_slice(message);
                    let message = start..self.octets.len();
                    self.queries.push_back(StreamQuery { at_ns, client, server, message });
                }
                Err(reason) => counts.skip_message(reason),
            }
        }
        frames.rest()
    }
}
