//! What TCP and TLS share: connecting, framing, one write per batch, large reads.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd as _, BorrowedFd};

use dnslab_wire::{Frames, push_frame};
use socket2::{Domain, Protocol, Socket, Type};

use super::{Channel, ChannelEnd, Handshake, Opened, Received, Scratch};
use crate::clock::{Clock, Nanos};
use crate::sys::Outbox;

/// Octets read in one call at most: some hundreds of answers.
const READ: usize = 64 * 1024;

/// Messages in one write at most.
const BATCH: usize = 512;

/// What lies between messages and the TCP stream: nothing, or TLS. A state machine that is handed
/// octets; it does no input or output.
pub(crate) trait Layer {
    /// How a batch travels, for the record.
    fn send_path(&self) -> &'static str;

    /// The transport is connected: appends to `write` what must go out first.
    fn begin(&mut self, write: &mut Vec<u8>) -> Result<(), ChannelEnd>;

    /// Messages may be sent.
    fn is_ready(&self) -> bool;

    /// Appends the octets that carry `plain` to `write`.
    fn seal(&mut self, plain: &[u8], write: &mut Vec<u8>) -> Result<(), ChannelEnd>;

    /// Appends what `read` carries to `plain`, and what must go out in return to `write`.
    fn open(
        &mut self,
        read: &[u8],
        plain: &mut Vec<u8>,
        write: &mut Vec<u8>,
    ) -> Result<(), ChannelEnd>;

    /// The handshake that made the layer ready, and took `duration`; `None` if there is none.
    fn handshake(&self, duration: Nanos) -> Option<Handshake>;
}

enum State {
    Connecting,
    Handshaking { connected: Nanos },
    Open,
}

/// A TCP connection with a layer above it.
pub(crate) struct Stream<L> {
    socket: TcpStream,
    layer: L,
    state: State,
    began: Nanos,
    connect: Nanos,
    opened: Option<Opened>,
    /// Octets that the kernel did not take yet.
    unsent: Vec<u8>,
    /// The beginning of a message whose rest has not come yet.
    partial: Vec<u8>,
}

impl<L: Layer> Stream<L> {
    /// Begins to connect.
    pub(crate) fn connect(target: SocketAddr, layer: L, now: Nanos) -> Result<Self, ChannelEnd> {
        let socket = (|| {
            let family = Domain::for_address(target);
            let socket = Socket::new(family, Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
            // Batches are made above; the kernel must not hold back a small last one.
            socket.set_tcp_nodelay(true)?;
            match socket.connect(&target.into()) {
                Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
                _ => Ok(TcpStream::from(socket)),
            }
        })()
        .map_err(ChannelEnd::Connect)?;
        Ok(Self {
            socket,
            layer,
            state: State::Connecting,
            began: now,
            connect: 0,
            opened: None,
            unsent: Vec::new(),
            partial: Vec::new(),
        })
    }

    /// Goes on from a socket that became writable while connecting.
    fn connected(&mut self, now: Nanos) -> Result<(), ChannelEnd> {
        if let Some(error) = self.socket.take_error().map_err(ChannelEnd::Connect)? {
            return Err(ChannelEnd::Connect(error));
        }
        match self.socket.peer_addr() {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotConnected => return Ok(()),
            Err(error) => return Err(ChannelEnd::Connect(error)),
        }
        self.connect = now.saturating_sub(self.began);
        self.state = State::Handshaking { connected: now };
        let mut first = Vec::new();
        self.layer.begin(&mut first)?;
        self.write(&first)
    }

    /// Writes `octets`, or keeps those that the kernel does not take.
    fn write(&mut self, octets: &[u8]) -> Result<(), ChannelEnd> {
        if !self.unsent.is_empty() {
            self.unsent.extend_from_slice(octets);
            return self.write_unsent();
        }
        let taken = self.offer(octets)?;
        self.unsent.extend_from_slice(&octets[taken..]);
        Ok(())
    }

    fn write_unsent(&mut self) -> Result<(), ChannelEnd> {
        let unsent = std::mem::take(&mut self.unsent);
        let taken = self.offer(&unsent)?;
        // An empty rest gives its memory back: most connections never block.
        if taken < unsent.len() {
            self.unsent = unsent;
            self.unsent.drain(..taken);
        }
        Ok(())
    }

    /// Offers octets to the kernel until it takes no more; how many it took.
    fn offer(&mut self, octets: &[u8]) -> Result<usize, ChannelEnd> {
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

    /// Reads once; the count of octets, `None` when there are none now.
    fn read(&mut self, buffer: &mut Vec<u8>) -> Result<Option<usize>, ChannelEnd> {
        buffer.resize(READ, 0);
        match self.socket.read(buffer) {
            Ok(0) => Err(ChannelEnd::Closed),
            Ok(count) => Ok(Some(count)),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(None),
                _ => Err(broken(error)),
            },
        }
    }

    fn note_ready(&mut self, now: Nanos) {
        if let State::Handshaking { connected } = self.state
            && self.layer.is_ready()
        {
            self.state = State::Open;
            let handshake = self.layer.handshake(now.saturating_sub(connected));
            self.opened = Some(Opened { connect: Some(self.connect), handshake });
        }
    }
}

/// A server that closes with unread queries in its buffer sends a reset, and writing to a closed
/// connection is a broken pipe: both are the server's closing.
fn broken(error: io::Error) -> ChannelEnd {
    match error.kind() {
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => ChannelEnd::Closed,
        _ => ChannelEnd::Broken(error),
    }
}

impl<L: Layer> Channel for Stream<L> {
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn is_open(&self) -> bool {
        matches!(self.state, State::Open)
    }

    fn wants_to_write(&self) -> bool {
        matches!(self.state, State::Connecting) || !self.unsent.is_empty()
    }

    fn batch_limit(&self) -> usize {
        BATCH
    }

    fn send(&mut self, outbox: &Outbox, scratch: &mut Scratch) -> Result<usize, ChannelEnd> {
        // A message is taken only when all before it left: what the server does not read waits
        // with the client, where it can time out, and memory stays bounded.
        if !self.unsent.is_empty() {
            return Ok(0);
        }
        scratch.plain.clear();
        scratch.write.clear();
        for message in outbox.messages() {
            push_frame(&mut scratch.plain, message);
        }
        self.layer.seal(&scratch.plain, &mut scratch.write)?;
        self.write(&scratch.write)?;
        Ok(outbox.len())
    }

    fn advance(
        &mut self,
        clock: &Clock,
        scratch: &mut Scratch,
        deliver: &mut dyn FnMut(Received<'_>),
    ) -> Result<bool, ChannelEnd> {
        if matches!(self.state, State::Connecting) {
            self.connected(clock.now())?;
            self.note_ready(clock.now());
        }
        if !self.unsent.is_empty() {
            self.write_unsent()?;
        }
        if matches!(self.state, State::Connecting) {
            return Ok(false);
        }
        let Some(count) = self.read(&mut scratch.read)? else { return Ok(false) };
        let at = clock.now();
        scratch.plain.clear();
        scratch.plain.append(&mut self.partial);
        scratch.write.clear();
        let opened =
            self.layer.open(&scratch.read[..count], &mut scratch.plain, &mut scratch.write);
        let mut frames = Frames::new(&scratch.plain);
        for octets in frames.by_ref() {
            deliver(Received { octets, at });
        }
        self.partial = frames.rest().to_vec();
        // Answers that came before an alert count; then the alert ends the channel.
        let alert = self.write(&scratch.write);
        opened?;
        alert?;
        self.note_ready(at);
        Ok(count == READ)
    }

    fn take_opened(&mut self) -> Option<Opened> {
        self.opened.take()
    }

    fn send_path(&self) -> &'static str {
        self.layer.send_path()
    }
}
