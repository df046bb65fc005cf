//! A TCP connection, for all transports over TCP: connecting, one write per batch, large reads.

use std::io;

use dnslab_wire::MessageBatch;

use super::{Connection, ConnectionEnd, Delivery, Draining, Handshake, Opened, Route, Scratch};
use crate::runtime::{Runtime, StreamSocket, Watched};
use crate::time::Nanos;

/// Octets read in one call at most: some hundreds of answers.
const READ: usize = 64 * 1024;

/// Messages in one write at most.
pub(super) const BATCH: usize = 512;

/// What lies between messages and the TCP stream: length prefixes, with TLS below them or without, or HTTP/2.
/// It is given octets and does no input or output itself.
pub(crate) trait Layer {
    /// How a batch travels, for the record.
    fn send_path(&self) -> &'static str;

    /// The transport is connected. Appends what must go out first to `write`.
    fn begin(&mut self, _write: &mut Vec<u8>) {}

    /// The handshake, if there is any, has ended.
    fn is_established(&self) -> bool;

    /// Messages may be sent, perhaps before the handshake has ended.
    fn may_send(&self) -> bool {
        self.is_established()
    }

    fn is_draining(&self) -> bool {
        false
    }

    /// The error with which the server announced its end, if there was one.
    fn announced(&self) -> Option<String> {
        None
    }

    /// Messages that are taken at most now; at least 1.
    fn batch_limit(&self) -> usize {
        BATCH
    }

    /// Appends the octets that carry the messages to `write`. Returns how many messages were taken, in order.
    /// `plain` is empty and free to be used.
    fn seal(
        &mut self,
        outbox: &MessageBatch,
        plain: &mut Vec<u8>,
        write: &mut Vec<u8>,
    ) -> Result<usize, ConnectionEnd>;

    /// Delivers what `read` carries, and appends what must go out in return to `write`. `plain` is empty and
    /// free to be used.
    ///
    /// # Errors
    /// When the connection is at its end; what came before it has been delivered.
    fn open(
        &mut self,
        read: &[u8],
        at: Nanos,
        plain: &mut Vec<u8>,
        write: &mut Vec<u8>,
        deliver: &mut dyn FnMut(Delivery<'_>),
    ) -> Result<(), ConnectionEnd>;

    /// Nobody waits any more for the answer to the query with this id.
    fn forget(&mut self, _id: u16) {}

    /// Appends what says good-bye to `write`.
    fn close(&mut self, _plain: &mut Vec<u8>, _write: &mut Vec<u8>) {}

    /// The handshake that established the layer, if there was one; it took `duration`.
    fn handshake(&self, _duration: Nanos) -> Option<Handshake> {
        None
    }
}

enum State {
    Connecting,
    Handshaking { connected: Nanos },
    Open,
}

/// A TCP connection with a layer above it.
pub(crate) struct Stream<S, L> {
    socket: S,
    layer: L,
    state: State,
    began: Nanos,
    connect: Nanos,
    opened: Option<Opened>,
    /// What came is acknowledged as soon as it was read.
    quickack: bool,
    /// Octets that the kernel did not take yet.
    unsent: Vec<u8>,
}

impl<S: StreamSocket, L: Layer> Stream<S, L> {
    pub(crate) fn connect<R: Runtime<Stream = S>>(
        runtime: &mut R,
        route: &Route<'_>,
        layer: L,
        now: Nanos,
    ) -> Result<Self, ConnectionEnd> {
        let socket = runtime.connect(route.path).map_err(ConnectionEnd::connect)?;
        Ok(Self {
            socket,
            layer,
            state: State::Connecting,
            began: now,
            connect: 0,
            opened: None,
            quickack: route.quickack,
            unsent: Vec::new(),
        })
    }

    /// Goes on from a socket that became writable while connecting.
    fn connected(&mut self, now: Nanos) -> Result<(), ConnectionEnd> {
        if !self.socket.is_connected().map_err(ConnectionEnd::Connect)? {
            return Ok(());
        }
        self.connect = now.saturating_sub(self.began);
        self.state = State::Handshaking { connected: now };
        let mut first = Vec::new();
        self.layer.begin(&mut first);
        self.write(&first)
    }

    /// Writes `octets`, or keeps those that the kernel does not take.
    fn write(&mut self, octets: &[u8]) -> Result<(), ConnectionEnd> {
        if !self.unsent.is_empty() {
            self.unsent.extend_from_slice(octets);
            return self.write_unsent();
        }
        let taken = self.offer(octets)?;
        self.unsent.extend_from_slice(&octets[taken..]);
        Ok(())
    }

    fn write_unsent(&mut self) -> Result<(), ConnectionEnd> {
        let unsent = std::mem::take(&mut self.unsent);
        let taken = self.offer(&unsent)?;
        // An empty rest gives its memory back: most connections never block.
        if taken < unsent.len() {
            self.unsent = unsent;
            self.unsent.drain(..taken);
        }
        Ok(())
    }

    /// Offers octets to the kernel until it takes no more. Returns how many it took.
    fn offer(&mut self, octets: &[u8]) -> Result<usize, ConnectionEnd> {
        let mut taken = 0;
        while taken < octets.len() {
            match self.socket.write(&octets[taken..]) {
                Ok(count) => taken += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(broken(error)),
            }
        }
        Ok(taken)
    }

    /// Reads once. Returns the number of octets, or `None` if there are none now.
    fn read(&mut self, buffer: &mut Vec<u8>) -> Result<Option<usize>, ConnectionEnd> {
        buffer.resize(READ, 0);
        match self.socket.read(buffer) {
            Ok(0) => Err(ConnectionEnd::Closed),
            Ok(count) => {
                // The next query sets the kernel back to holding it back, so each read asks anew.
                if self.quickack {
                    self.socket.acknowledge().map_err(broken)?;
                }
                Ok(Some(count))
            }
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(None),
                _ => Err(broken(error)),
            },
        }
    }

    fn note_established(&mut self, now: Nanos) {
        if let State::Handshaking { connected } = self.state
            && self.layer.is_established()
        {
            self.state = State::Open;
            let handshake = self.layer.handshake(now.saturating_sub(connected));
            let round_trip = self.socket.round_trip();
            self.opened = Some(Opened { connect: Some(self.connect), round_trip, handshake });
        }
    }
}

/// A server that closes with unread queries in its buffer sends a reset, and writing to a closed connection
/// is a broken pipe. Both mean that the server closed.
fn broken(error: io::Error) -> ConnectionEnd {
    match error.kind() {
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => ConnectionEnd::Closed,
        _ => ConnectionEnd::Broken(error),
    }
}

impl<R: Runtime, L: Layer> Connection<R> for Stream<R::Stream, L> {
    fn socket(&self) -> Watched<'_, R> {
        Watched::Stream(&self.socket)
    }

    fn is_open(&self) -> bool {
        !matches!(self.state, State::Connecting)
            && self.layer.may_send()
            && !self.layer.is_draining()
    }

    fn is_draining(&self) -> bool {
        self.layer.is_draining()
    }

    fn why_draining(&self) -> Draining {
        Draining::Announced(self.layer.announced())
    }

    fn wants_to_write(&self) -> bool {
        matches!(self.state, State::Connecting) || !self.unsent.is_empty()
    }

    fn batch_limit(&self) -> usize {
        self.layer.batch_limit()
    }

    fn send(
        &mut self,
        _: &R,
        outbox: &MessageBatch,
        scratch: &mut Scratch<R>,
    ) -> Result<usize, ConnectionEnd> {
        // A message is taken only when all before it have left. So what the server does not read waits with
        // the client, where it can time out, and memory stays bounded.
        if !self.unsent.is_empty() {
            return Ok(0);
        }
        scratch.plain.clear();
        scratch.write.clear();
        let taken = self.layer.seal(outbox, &mut scratch.plain, &mut scratch.write)?;
        self.write(&scratch.write)?;
        Ok(taken)
    }

    fn advance(
        &mut self,
        runtime: &R,
        scratch: &mut Scratch<R>,
        deliver: &mut dyn FnMut(Delivery<'_>),
    ) -> Result<bool, ConnectionEnd> {
        if matches!(self.state, State::Connecting) {
            self.connected(runtime.now())?;
            self.note_established(runtime.now());
        }
        // A connection that broke while writing may still have answers to read.
        let unsent = if self.unsent.is_empty() { Ok(()) } else { self.write_unsent() };
        if matches!(self.state, State::Connecting) {
            return unsent.map(|()| false);
        }
        let Some(count) = self.read(&mut scratch.read)? else { return unsent.map(|()| false) };
        let at = runtime.now();
        let Scratch { read, plain, write, .. } = scratch;
        plain.clear();
        write.clear();
        let opened = self.layer.open(&read[..count], at, plain, write, deliver);
        // What came before an alert has been delivered. Then the alert ends the connection, and our own alert
        // is written as far as possible.
        let written = self.write(write);
        opened?;
        written?;
        unsent?;
        self.note_established(at);
        Ok(count == READ)
    }

    fn forget(&mut self, _: Nanos, id: u16) {
        self.layer.forget(id);
    }

    fn close(&mut self, _: Nanos, scratch: &mut Scratch<R>) {
        if matches!(self.state, State::Connecting) || !self.unsent.is_empty() {
            return;
        }
        scratch.plain.clear();
        scratch.write.clear();
        self.layer.close(&mut scratch.plain, &mut scratch.write);
        // A server that is gone needs no good-bye.
        self.write(&scratch.write).ok();
    }

    fn take_opened(&mut self) -> Option<Opened> {
        self.opened.take()
    }

    fn send_path(&self) -> &'static str {
        self.layer.send_path()
    }
}
