//! One query before a load, as the load sends it, and its answer: whether a server is ready and what it says.

use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use dnslab_client::connection::{self, Connection, ConnectionEnd, Delivery, Scratch, TlsRefusal};
use dnslab_client::runtime::Runtime as _;
use dnslab_client::{CertificateFault, FaultWatch, Job, Nanos, Outbox, Shard, TlsSettings, nanos};
use dnslab_settings::TlsVersions;
use dnslab_wire::{MessageBatch, Method, Query, Response, Signed, TlsGroup, Transport, TsigFault};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::socket_error;

use crate::clock::{Clock, wall_clock};
use crate::kernel::{Kernel, descriptor};

/// Why there was no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The exchange failed or took too long.
    #[error("{target} does not answer over {transport}: {source}")]
    Exchange {
        /// How the query travelled.
        transport: Transport,
        /// Where it went.
        target: SocketAddr,
        /// What happened.
        source: io::Error,
    },
    /// The query could not leave: no socket, or no port of the client's own address.
    #[error("no query can be sent to {target} over {transport}: {end}")]
    NoSocket {
        /// How the query would have travelled.
        transport: Transport,
        /// Where it was to go.
        target: SocketAddr,
        /// What is missing, and what to do about it.
        end: ConnectionEnd,
    },
    /// The handshake of TLS was refused.
    #[error("{target} does not answer over {transport}: {end}")]
    Tls {
        /// How the query was to travel.
        transport: Transport,
        /// Where it was to go.
        target: SocketAddr,
        /// Why.
        refusal: TlsRefusal,
        /// The load offers other versions or key exchange groups than the default ones.
        has_own_offer: bool,
        /// The reason in the words of TLS.
        end: ConnectionEnd,
    },
    /// The server's certificate was not accepted.
    #[error("{target} {fault}")]
    Certificate {
        /// Where the query went.
        target: SocketAddr,
        /// Why not.
        fault: CertificateFault,
    },
    /// The server took the query and gave no DNS message for it.
    #[error("{target} does not answer over {transport}: {refusal}")]
    Refused {
        /// How the query travelled.
        transport: Transport,
        /// Where it went.
        target: SocketAddr,
        /// By which method, over HTTP.
        method: Method,
        /// What it did instead.
        refusal: Refusal,
    },
    /// The query was signed, and the answer says that its signature is refused, or is not signed well itself.
    #[error("{target} does not answer over {transport}: {fault} (key `{key}`, query {query})")]
    Signature {
        /// How the query travelled.
        transport: Transport,
        /// Where it went.
        target: SocketAddr,
        /// What was asked.
        query: String,
        /// The name of the key.
        key: String,
        /// What is wrong, and what to do about it.
        fault: TsigFault,
    },
    /// Another host asked, and had no answer.
    #[error("{host}: {reason}")]
    Elsewhere {
        /// Its name.
        host: String,
        /// Why, in its words.
        reason: String,
        /// Nothing came within the time-out.
        is_silence: bool,
        /// It may be otherwise in a moment.
        is_transient: bool,
        /// The server has answered that it does not.
        is_refusal: bool,
    },
    /// Nothing that came back within the time-out is an answer to the query.
    #[error("{target} does not answer over {transport}: what came back is no answer to {query}")]
    Mismatch {
        /// How the query travelled.
        transport: Transport,
        /// Where it went.
        target: SocketAddr,
        /// What was asked.
        query: String,
    },
}

impl AskError {
    /// Another host has asked nothing: it is lost, or does not allow it.
    #[must_use]
    pub fn not_asked(host: String, reason: String) -> Self {
        Self::Elsewhere { host, reason, is_silence: false, is_transient: false, is_refusal: false }
    }

    /// Whether nothing came within the time-out.
    #[must_use]
    pub fn is_silence(&self) -> bool {
        match self {
            Self::Exchange { source, .. } => source.kind() == io::ErrorKind::TimedOut,
            Self::Elsewhere { is_silence, .. } => *is_silence,
            _ => false,
        }
    }

    /// Whether the server has answered that it does not: with a status of HTTP, or because of the signature.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::Refused { .. } => true,
            Self::Signature { fault, .. } => fault.refusal().is_some(),
            Self::Elsewhere { is_refusal, .. } => *is_refusal,
            _ => false,
        }
    }

    /// Whether it may be otherwise in a moment: a server that starts has no listening socket, or ends its connections.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Exchange { source, .. } => matches!(
                source.kind(),
                io::ErrorKind::ConnectionRefused
                    | io::ErrorKind::ConnectionReset
                    | io::ErrorKind::ConnectionAborted
                    | io::ErrorKind::BrokenPipe
                    | io::ErrorKind::UnexpectedEof
            ),
            Self::Elsewhere { is_transient, .. } => *is_transient,
            _ => false,
        }
    }

    /// Whether no packet of an exchange came, or it was refused by the system on the way.
    #[must_use]
    pub fn is_of_exchange(&self) -> bool {
        match self {
            Self::Exchange { .. } => true,
            Self::Elsewhere { is_silence, is_transient, .. } => *is_silence || *is_transient,
            _ => false,
        }
    }
}

/// What a server gave in the place of a DNS message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// An HTTP status other than 200.
    #[error("the server refused the query with HTTP status {0}")]
    Status(u16),
    /// HTTP status 200 with something else (RFC 8484, sections 4.1 and 6).
    #[error(
        "the server's response has HTTP status 200, but not the content type application/dns-message, or no DNS \
         message with the id 0"
    )]
    NoMessage,
    /// The stream of the query ended without a response.
    #[error("the server reset the stream of the query, or its response is none")]
    Reset,
    /// The server went away.
    #[error("the server went away without a look at the query")]
    NotProcessed,
    /// It came with the first packet.
    #[error("the server says that it was asked too early")]
    TooEarly,
}

/// Whose query it is, and whom it asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asker {
    /// The client of the load, counted over all workers. It has its address, cookie and subnet.
    pub client: u32,
    /// How the query travels. Where truncated answers are asked again over TCP, that may be TCP, too.
    pub transport: Transport,
    /// Which of the servers that the client knows, from 0.
    pub server: u8,
}

/// Asks one query as a client of this load does, by a connection of the engine, and returns the whole answer. Address,
/// TLS, HTTP, and what the query carries are made where the worker has them from ([`Shard`]). Waits for `timeout` at
/// each step (opening, answer).
///
/// # Errors
/// When there is no answer in time, or one to another question. Over UDP anybody may send such a message, so
/// there it is an error only if no right answer follows in time.
pub fn ask(job: &Job, asker: Asker, query: &Query, timeout: Duration) -> Result<Vec<u8>, AskError> {
    let Asker { client, transport, server } = asker;
    let (job, watch) = watched(job, asker);
    let stop = AtomicBool::new(false);
    let shard = Shard::new(&job, 0, 1, &stop);
    let route = shard.route(client, transport, server);
    let target = route.path.target;
    let failed = |source| AskError::Exchange { transport, target, source };
    if transport.is_encrypted() && route.tls.is_none() {
        return Err(failed(io::Error::other("no TLS settings are given")));
    }
    let clock = Clock::start();
    let mut kernel = Kernel::new(clock, None).map_err(failed)?;
    let (subnet, cookie) = (shard.subnet_of(client), shard.cookie_of(client));
    let additions = shard.additions(transport, cookie.as_ref(), subnet.as_ref());
    let mut outbox = Outbox::default();
    let signed = shard.push_query(query, ID, &additions, wall_clock(), &mut outbox);
    let asked = connection::open(&mut kernel, &route, clock.now()).map_err(Trouble::End);
    let answer = asked.and_then(|connection| {
        let asking = Asking {
            connection,
            kernel,
            scratch: Scratch::default(),
            timeout: nanos(timeout),
            has_strangers: transport == Transport::Udp,
            signed,
        };
        asking.exchange(&outbox.messages, query)
    });
    answer.map_err(|trouble| {
        let fault = watch.and_then(|watch| watch.fault());
        match (fault, trouble) {
            (Some(fault), _) => AskError::Certificate { target, fault },
            (None, Trouble::Io(source)) => failed(source),
            (None, Trouble::End(end)) => ended(&job, (transport, target), end),
            (None, Trouble::Refused(refusal)) => {
                let method = job.settings.http_method;
                AskError::Refused { transport, target, method, refusal }
            }
            (None, Trouble::Signature(key, fault)) => {
                AskError::Signature { transport, target, query: query.to_string(), key, fault }
            }
            (None, Trouble::Mismatch) => {
                AskError::Mismatch { transport, target, query: query.to_string() }
            }
        }
    })
}

/// The load of one worker, which records why a certificate is not accepted on the way that is asked.
fn watched(job: &Job, asker: Asker) -> (Job, Option<Arc<FaultWatch>>) {
    let mut job = Job { workers: 1, ..job.clone() };
    let is_asked = |transport| transport == asker.transport;
    let tls = match usize::from(asker.server).checked_sub(1) {
        None if is_asked(job.settings.transport) => job.tls.as_mut(),
        None => job
            .others
            .iter_mut()
            .find(|endpoint| is_asked(endpoint.transport))
            .and_then(|endpoint| endpoint.tls.as_mut()),
        Some(place) => {
            let endpoints = job.further.get_mut(place).into_iter().flatten();
            endpoints
                .into_iter()
                .find(|endpoint| is_asked(endpoint.transport))
                .and_then(|endpoint| endpoint.tls.as_mut())
        }
    };
    let watch = tls.filter(|_| asker.transport.is_encrypted()).map(|tls: &mut TlsSettings| {
        let (settings, watch) = tls.watched();
        *tls = settings;
        watch
    });
    (job, watch)
}

/// Why a connection that came to its end gave no answer.
fn ended(job: &Job, (transport, target): (Transport, SocketAddr), end: ConnectionEnd) -> AskError {
    if let Some(refusal) = end.tls_refusal() {
        let load = &job.settings;
        let has_own_offer =
            load.tls_versions != TlsVersions::Both || load.tls_groups != TlsGroup::PRESET;
        return AskError::Tls { transport, target, refusal, has_own_offer, end };
    }
    match end {
        ConnectionEnd::NoFiles | ConnectionEnd::NoPorts => {
            AskError::NoSocket { transport, target, end }
        }
        ConnectionEnd::Connect(source) | ConnectionEnd::Broken(source) => {
            AskError::Exchange { transport, target, source }
        }
        other => {
            AskError::Exchange { transport, target, source: io::Error::other(other.to_string()) }
        }
    }
}

fn answers(octets: &[u8], query: &Query) -> bool {
    Response::parse(octets)
        .is_ok_and(|response| response.id == ID && query.is_answered_by(&response))
}

/// One query per connection needs no other id.
const ID: u16 = 0x1ab1;

enum Trouble {
    /// There was no answer.
    Io(io::Error),
    /// The connection did not come about, or came to its end.
    End(ConnectionEnd),
    /// The server gave something else.
    Refused(Refusal),
    /// The signature of this key was refused, or the answer has no good one.
    Signature(String, TsigFault),
    /// Only messages that answer other questions came.
    Mismatch,
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<ConnectionEnd> for Trouble {
    fn from(end: ConnectionEnd) -> Self {
        Self::End(end)
    }
}

struct Asking {
    connection: Box<dyn Connection<Kernel>>,
    kernel: Kernel,
    scratch: Scratch<Kernel>,
    /// Longest time for each step.
    timeout: Nanos,
    /// Somebody else than the server may send messages (RFC 5452, section 9.1). An answer to another question
    /// then says nothing of this query.
    has_strangers: bool,
    /// What checks the answer, if the query is signed.
    signed: Option<Signed>,
}

impl Asking {
    fn exchange(mut self, outbox: &MessageBatch, query: &Query) -> Result<Vec<u8>, Trouble> {
        let mut is_sent = false;
        // The last message that is no answer.
        let mut other = None;
        let mut deadline = self.kernel.now() + self.timeout;
        loop {
            if !is_sent && self.connection.is_open() {
                is_sent = self.connection.send(&self.kernel, outbox, &mut self.scratch)? > 0;
                deadline = self.kernel.now() + self.timeout;
            }
            self.wait(deadline)?;
            let mut came = Vec::new();
            let mut deliver = |delivery: Delivery<'_>| came.push(content(delivery));
            let advanced = self.connection.advance(&self.kernel, &mut self.scratch, &mut deliver);
            for content in came {
                match content.and_then(|octets| self.accept(octets, query)) {
                    Err(Trouble::Mismatch) => other = Some(Trouble::Mismatch),
                    // Anybody may send a message without a signature. The right one may follow.
                    Err(Trouble::Signature(key, fault)) if fault.refusal().is_none() => {
                        other = Some(Trouble::Signature(key, fault));
                    }
                    answer => {
                        self.connection.close(self.kernel.now(), &mut self.scratch);
                        return answer;
                    }
                }
            }
            advanced?;
            let is_over = self.kernel.now() >= deadline;
            if is_over || !self.has_strangers {
                other.take().map_or(Ok(()), Err)?;
            }
            if is_over {
                let step = if is_sent { "no answer" } else { "no connection" };
                let error = io::Error::new(io::ErrorKind::TimedOut, format!("{step} in time"));
                return Err(error.into());
            }
        }
    }

    /// A message if it is the answer.
    fn accept(&self, octets: Vec<u8>, query: &Query) -> Result<Vec<u8>, Trouble> {
        if !answers(&octets, query) {
            return Err(Trouble::Mismatch);
        }
        let Some(signed) = &self.signed else { return Ok(octets) };
        let verified = signed.verify(&octets, wall_clock() / 1_000_000_000);
        verified.map_err(|fault| Trouble::Signature(signed.key_name(), fault))?;
        Ok(octets)
    }

    /// Waits until the socket is ready, a timer of the connection is due, or the time is over.
    fn wait(&self, deadline: Nanos) -> io::Result<()> {
        let until = self.connection.next_timer().map_or(deadline, |timer| timer.min(deadline));
        let left = until.saturating_sub(self.kernel.now());
        let left = Timespec {
            tv_sec: i64::try_from(left / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: (left % 1_000_000_000) as _,
        };
        let mut interest = PollFlags::IN;
        interest.set(PollFlags::OUT, self.connection.wants_to_write());
        let socket = descriptor(self.connection.socket());
        let mut ready = [PollFd::from_borrowed_fd(socket, interest)];
        match poll(&mut ready, Some(&left)) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        if ready[0].revents().contains(PollFlags::ERR) { refusal(socket) } else { Ok(()) }
    }
}

/// The error that waits at a socket. Connections over UDP ignore an ICMP message, which costs one query of
/// many. Here it says that nobody is there.
fn refusal(socket: BorrowedFd<'_>) -> io::Result<()> {
    match socket_error(socket)? {
        // A packet was larger than the path takes. QUIC sends a smaller one.
        Ok(()) | Err(rustix::io::Errno::MSGSIZE) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn content(delivery: Delivery<'_>) -> Result<Vec<u8>, Trouble> {
    Err(Trouble::Refused(match delivery {
        Delivery::Message(received) => return Ok(received.octets.to_vec()),
        Delivery::Refused { status: 0, .. } => Refusal::Reset,
        Delivery::Refused { status: 200, .. } => Refusal::NoMessage,
        Delivery::Refused { status, .. } => Refusal::Status(status),
        Delivery::NotProcessed { .. } => Refusal::NotProcessed,
        Delivery::TooEarly { .. } => Refusal::TooEarly,
    }))
}
