//! One connection over TCP, DNS over TLS or DNS over HTTPS: a state machine over octets in and octets out.

mod hello;
mod leaving;
mod quota;
mod unwritten;

pub(super) use quota::LINGER;

use std::io::{self, Read, Write};
use std::net::{IpAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

use dnslab_socket::EventFlags;
use dnslab_transport::http2::Http2Error;
use dnslab_wire::{FrameReader, Transport, push_frame};
use rustls::{HandshakeKind, ServerConnection};

use self::hello::{Hello, Refused};
use self::quota::{Quota, Stage};
use self::unwritten::{BACKLOG, Unwritten};
use super::delayed::Destination;
use super::doh2::{Http, Room};
use super::respond::{Arrival, Reaction, Responder};
use super::shared::Shared;
use super::token::ConnectionId;
use crate::counters::Ended;

pub(super) struct Connection {
    /// Its name in epoll and the delay queue.
    id: ConnectionId,
    /// Non-blocking.
    socket: TcpStream,
    transport: Transport,
    /// The address of this host that it came to.
    local: Option<IpAddr>,
    /// Of the encrypted transports.
    tls: Option<Box<ServerConnection>>,
    /// Of DNS over HTTPS before its client has said which protocol it wants.
    hello: Option<Box<Hello>>,
    /// Of DNS over HTTPS.
    http: Option<Http>,
    /// Octets of queries, decrypted. With HTTP nothing stays in it.
    reader: FrameReader,
    /// Answers, not yet encrypted.
    unwritten: Unwritten,
    held: Held,
    quota: Quota,
    /// The client has sent its last octet: answer what it asked, then close (RFC 7766, section 6.2.4).
    input_ended: bool,
    is_handshaking: bool,
    /// Queries came before the handshake ended.
    had_early_data: bool,
    /// What epoll watches for.
    pub(super) interest: EventFlags,
    /// Octets of a handshake that has not ended: the session keeps them.
    handshake_octets: usize,
    /// Octets of memory as last added up.
    pub(super) noted_memory: usize,
    /// When octets last moved, in nanoseconds of the monotonic clock.
    pub(super) active_ns: u64,
}

/// Message ids have 16 bits, so a client cannot tell more outstanding queries apart.
const MAX_HELD: u32 = 1 << 16;

/// Octets of one connection's held answers; 64 for each of [`MAX_HELD`].
const MAX_HELD_OCTETS: usize = 4 * 1024 * 1024;

/// Octets that a TLS session keeps of what the socket does not take (rustls' default).
const TLS_BUFFER: usize = 64 * 1024;

/// Reads of one connection before the others have their turn.
const READS: usize = 4;

impl Connection {
    pub(super) fn new(
        id: ConnectionId,
        socket: TcpStream,
        transport: Transport,
        shared: &Shared,
        now_ns: u64,
    ) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        // Each wake-up already writes once; Nagle's algorithm would only delay that.
        socket.set_nodelay(true)?;
        let (mut tls, mut hello) = (None, None);
        match shared.tls.of(transport) {
            Some(config) if transport.is_http() => hello = Some(Box::new(Hello::new(config))),
            Some(config) => {
                tls = Some(Box::new(ServerConnection::new(config).map_err(io::Error::other)?));
            }
            None => {}
        }
        Ok(Self {
            id,
            local: socket.local_addr().ok().map(|address| address.ip()),
            socket,
            transport,
            http: transport.is_http().then(|| Http::new(&shared.http_path)),
            is_handshaking: tls.is_some() || hello.is_some(),
            tls,
            hello,
            had_early_data: false,
            reader: FrameReader::default(),
            unwritten: Unwritten::new(transport, shared.pack_answers),
            held: Held::default(),
            quota: Quota::new(shared.queries_per_connection),
            input_ended: false,
            interest: EventFlags::IN,
            handshake_octets: 0,
            noted_memory: 0,
            active_ns: now_ns,
        })
    }

    pub(super) fn wanted(&self) -> EventFlags {
        if self.is_lingering() {
            return EventFlags::IN;
        }
        let mut wanted = EventFlags::empty();
        wanted.set(EventFlags::IN, !self.input_ended && !self.is_deaf() && !self.is_backlogged());
        let tls_wants = self.tls.as_ref().is_some_and(|tls| tls.wants_write());
        wanted.set(EventFlags::OUT, tls_wants || !self.unwritten.is_empty());
        wanted
    }

    /// While the program holds answers back, silence is not idleness.
    pub(super) fn is_waiting(&self) -> bool {
        self.held.answers > 0
    }

    /// Octets of memory that the client makes it hold: input, answers, and buffers that are kept for later.
    /// What a resting connection needs is not counted, nor are held answers, which have their own bound.
    pub(super) fn memory(&self) -> usize {
        let is_full = self.tls.as_ref().is_some_and(|tls| tls.wants_write());
        let http = self.http.as_ref().map_or(0, |http| http.server.memory());
        let tls = self.handshake_octets + if is_full { TLS_BUFFER } else { 0 };
        self.reader.memory() + self.unwritten.memory() + http + tls
    }

    /// Frees memory that is only kept for later.
    pub(super) fn release(&mut self) {
        self.reader.release();
        self.unwritten.release();
    }

    /// Reads what came, answers it, and writes once.
    pub(super) fn on_readable(&mut self, responder: &mut Responder) -> Result<(), Ended> {
        if self.is_lingering() {
            return self.drop_input();
        }
        if self.tls.is_some() || self.hello.is_some() {
            self.read_tls(responder)?
        } else {
            self.read_plain(responder)?
        }
        self.advance(responder)
    }

    /// Takes a held answer that is due; false if the client has given up its request. Call
    /// [`Connection::advance`] after the last.
    pub(super) fn push_held(&mut self, request: u32, message: &[u8]) -> bool {
        self.held.answers -= 1;
        self.held.octets -= message.len();
        match &mut self.http {
            Some(http) => http.answer(request, message),
            None => {
                push_frame(self.unwritten.octets_mut(), message);
                true
            }
        }
    }

    /// Answers queries that are already here and writes, until one of them cannot go on.
    pub(super) fn advance(&mut self, responder: &mut Responder) -> Result<(), Ended> {
        if self.is_lingering() || self.hello.is_some() {
            return Ok(());
        }
        loop {
            let stopped_early = self.answer_messages(responder)?;
            self.flush()?;
            if !stopped_early || self.is_backlogged() {
                break;
            }
        }
        if self.input_ended && self.held.answers == 0 && self.unwritten.is_empty() {
            self.close();
            return Err(Ended::Closed);
        }
        self.leave();
        Ok(())
    }

    /// Says good-bye in HTTP/2 and TLS.
    pub(super) fn close(&mut self) {
        if let Some(http) = &mut self.http
            && self.hello.is_none()
        {
            http.close(self.unwritten.octets_mut());
            // The client may be gone already.
            let _ = self.flush();
        }
        self.say_good_bye();
    }

    /// Says good-bye in TLS, so that the client can tell the end from a cut (RFC 8446, section 6.1).
    fn say_good_bye(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
            // As with HTTP/2: the client may be gone.
            let _ = tls.write_tls(&mut self.socket);
        }
    }

    /// The client must read before it is read from again.
    fn is_backlogged(&self) -> bool {
        self.unwritten.len() >= BACKLOG || self.held.is_full()
    }

    /// Nothing that the client still sends is looked at. It is not read either, or a client that does not
    /// read its last answers could fill the memory.
    fn is_deaf(&self) -> bool {
        match self.http {
            Some(_) => self.quota.stage != Stage::Open,
            None => self.quota.is_used_up(),
        }
    }

    fn read_plain(&mut self, responder: &mut Responder) -> Result<(), Ended> {
        for _ in 0..READS {
            if self.input_ended || self.is_deaf() || self.is_backlogged() {
                return Ok(());
            }
            let space = self.reader.space();
            let room = space.len();
            match read(&mut self.socket, space)? {
                None => return Ok(()),
                Some(0) => self.input_ended = true,
                Some(count) => {
                    self.reader.filled(count);
                    self.answer_messages(responder)?;
                    if count < room {
                        return Ok(());
                    }
                    self.reader.widen();
                }
            }
        }
        Ok(())
    }

    fn read_tls(&mut self, responder: &mut Responder) -> Result<(), Ended> {
        if self.input_ended || self.is_deaf() || self.is_backlogged() {
            return Ok(());
        }
        let mut buffer = std::mem::take(&mut responder.received);
        let outcome = read(&mut self.socket, &mut buffer).and_then(|count| match count {
            None => Ok(()),
            Some(0) => {
                self.input_ended = true;
                if self.is_handshaking { Err(Ended::Handshake) } else { Ok(()) }
            }
            Some(count) => {
                self.handshake_octets += if self.is_handshaking { count } else { 0 };
                self.decrypt(&buffer[..count], responder)
            }
        });
        responder.received = buffer;
        outcome
    }

    fn decrypt(&mut self, mut octets: &[u8], responder: &mut Responder) -> Result<(), Ended> {
        if let Some(hello) = &mut self.hello {
            match hello.receive(&mut octets, &mut self.socket) {
                Ok(None) if octets.is_empty() => return Ok(()),
                Ok(None) => return self.decrypt(octets, responder),
                Ok(Some(tls)) => (self.tls, self.hello) = (Some(tls), None),
                Err(Refused) => return Err(Ended::Handshake),
            }
        }
        loop {
            let Some(tls) = &mut self.tls else { return Ok(()) };
            if !octets.is_empty() {
                tls.read_tls(&mut octets).map_err(|_| Ended::Broken)?;
            }
            if tls.process_new_packets().is_err() {
                // The alert says why.
                let _ = tls.write_tls(&mut self.socket);
                return Err(if self.is_handshaking { Ended::Handshake } else { Ended::Broken });
            }
            if self.is_handshaking && !tls.is_handshaking() {
                self.is_handshaking = false;
                self.handshake_octets = 0;
                let connections = &mut responder.counters.connections;
                match tls.handshake_kind() {
                    Some(HandshakeKind::Resumed) => connections.resumed_handshakes += 1,
                    _ => connections.full_handshakes += 1,
                }
            }
            self.read_early_data(responder)?;
            self.read_decrypted()?;
            self.answer_messages(responder)?;
            if octets.is_empty() {
                return Ok(());
            }
        }
    }

    fn read_early_data(&mut self, responder: &mut Responder) -> Result<(), Ended> {
        loop {
            let Some(tls) = &mut self.tls else { return Ok(()) };
            let Some(mut early_data) = tls.early_data() else { return Ok(()) };
            let space = self.reader.space();
            let Ok(count @ 1..) = early_data.read(space) else { return Ok(()) };
            if !self.had_early_data {
                self.had_early_data = true;
                responder.counters.connections.early_data += 1;
            }
            self.take_decrypted(count);
        }
    }

    /// `count` decrypted octets are in the reader's space.
    fn take_decrypted(&mut self, count: usize) {
        match &mut self.http {
            Some(http) => http.server.receive(&self.reader.space()[..count]),
            None => self.reader.filled(count),
        }
    }

    fn read_decrypted(&mut self) -> Result<(), Ended> {
        loop {
            let Some(tls) = &mut self.tls else { return Ok(()) };
            match tls.reader().read(self.reader.space()) {
                Ok(0) => {
                    self.input_ended = true;
                    return Ok(());
                }
                Ok(count) => self.take_decrypted(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(_) => return Err(Ended::Broken),
            }
        }
    }

    /// Answers whole queries; true if it stopped before the last of them.
    fn answer_messages(&mut self, responder: &mut Responder) -> Result<bool, Ended> {
        if self.http.is_some() {
            return self.answer_requests(responder);
        }
        loop {
            if self.is_backlogged() {
                return Ok(true);
            }
            if self.quota.is_used_up() {
                return Ok(false);
            }
            let (id, transport) = (self.id, self.transport);
            let destination = Destination::Stream { id, transport, request: 0 };
            let arrival = Arrival { transport, local: self.local };
            let Some(query) = self.reader.next_frame() else { return Ok(false) };
            let unwritten = self.unwritten.octets_mut();
            let put = |octets: &[u8]| push_frame(unwritten, octets);
            self.quota.taken += 1;
            match responder.message(query, arrival, destination, put) {
                Reaction::Done => {}
                Reaction::Held(octets) => self.held.add(1, octets),
                // Octets that are no DNS are most likely out of step for good.
                Reaction::NoQuery => return Err(Ended::Broken),
            }
        }
    }

    /// Answers whole requests; true if it stopped before the last of them.
    fn answer_requests(&mut self, responder: &mut Responder) -> Result<bool, Ended> {
        let Some(http) = &mut self.http else { return Ok(false) };
        if self.quota.stage != Stage::Open {
            return Ok(false);
        }
        let mut polled = http.server.poll(self.unwritten.octets_mut());
        let room = Room {
            unwritten: BACKLOG.saturating_sub(self.unwritten.len()),
            held: MAX_HELD.saturating_sub(self.held.answers),
            held_octets: MAX_HELD_OCTETS.saturating_sub(self.held.octets),
        };
        let taken = http.answer_requests(self.id, responder, room);
        self.held.add(taken.held, taken.held_octets);
        self.quota.taken += taken.requests;
        if self.quota.is_used_up() {
            http.go_away();
        }
        if polled.is_ok() {
            polled = http.server.poll(self.unwritten.octets_mut());
        }
        match polled {
            Ok(()) => Ok(taken.stopped_early),
            Err(Http2Error::Closed) if self.quota.is_used_up() => {
                self.quota.stage = Stage::Spoken;
                Ok(false)
            }
            Err(error) => {
                // What is left to be written says why.
                let _ = self.flush();
                Err(match error {
                    Http2Error::Closed => Ended::Closed,
                    _ => Ended::Broken,
                })
            }
        }
    }

    /// As much as the socket takes.
    fn flush(&mut self) -> Result<(), Ended> {
        let Self { socket, tls, unwritten, .. } = self;
        let Some(tls) = tls else {
            while !unwritten.is_empty() {
                match write(socket.write(unwritten.all()))? {
                    None => break,
                    Some(count) => unwritten.advance(count),
                }
            }
            return Ok(());
        };
        loop {
            // The session takes a bounded amount. Each call becomes one record, or several if one cannot hold
            // it.
            let mut is_full = false;
            while !unwritten.is_empty() && !is_full {
                let record = unwritten.record();
                let count = tls.writer().write(record).map_err(|_| Ended::Broken)?;
                is_full = count < record.len();
                unwritten.advance(count);
            }
            while tls.wants_write() {
                if write(tls.write_tls(socket))?.is_none() {
                    return Ok(());
                }
            }
            // During the handshake it keeps what it cannot encrypt yet.
            if !is_full || tls.is_handshaking() {
                return Ok(());
            }
        }
    }
}

/// Answers of a connection that the program holds back.
#[derive(Default)]
struct Held {
    answers: u32,
    octets: usize,
}

impl Held {
    fn add(&mut self, answers: u32, octets: usize) {
        self.answers += answers;
        self.octets += octets;
    }

    fn is_full(&self) -> bool {
        self.answers >= MAX_HELD || self.octets >= MAX_HELD_OCTETS
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// `None` if nothing is there.
fn read(socket: &mut TcpStream, space: &mut [u8]) -> Result<Option<usize>, Ended> {
    write(socket.read(space))
}

/// `None` for "not now".
fn write(result: io::Result<usize>) -> Result<Option<usize>, Ended> {
    match result {
        Ok(count) => Ok(Some(count)),
        Err(error) => match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(None),
            _ => Err(Ended::Broken),
        },
    }
}
