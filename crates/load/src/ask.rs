//! One query, one answer: whether a server is ready and what it says.

use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use dnslab_client::connection::{self, Connection, ConnectionEnd, Delivery, Route, Scratch};
use dnslab_client::runtime::{Path, Runtime as _};
use dnslab_client::{CertificateFault, ClientTls, Nanos, TlsSettings, nanos};
use dnslab_settings::{HttpSettings, ReceiveTime};
use dnslab_wire::{Additions, MessageBatch, Query, Response, Transport};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::socket_error;

use crate::clock::Clock;
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
    /// The server's certificate was not accepted.
    #[error("{target} {fault}")]
    Certificate {
        /// Where the query went.
        target: SocketAddr,
        /// Why not.
        fault: CertificateFault,
    },
    /// The server took the query and gave no DNS message for it.
    #[error("{target} does not answer over {transport}: {reason}")]
    Refused {
        /// How the query travelled.
        transport: Transport,
        /// Where it went.
        target: SocketAddr,
        /// What it did instead.
        reason: String,
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

/// Asks one query over a connection of the engine and returns the whole answer. Waits for `timeout` at each
/// step (opening, answer). `http` is for the transports over HTTP.
///
/// # Errors
/// When there is no answer in time, or one to another question. Over UDP anybody may send such a message, so
/// there it is an error only if no right answer follows in time.
pub fn ask(
    target: SocketAddr,
    transport: Transport,
    query: &Query,
    tls: Option<&TlsSettings>,
    http: &HttpSettings,
    timeout: Duration,
) -> Result<Vec<u8>, AskError> {
    let failed = |source| AskError::Exchange { transport, target, source };
    let (tls, watch) = match (transport.is_encrypted(), tls) {
        (false, _) => (None, None),
        (true, Some(settings)) => {
            let (settings, watch) = settings.watched();
            (Some(ClientTls::new(&settings, transport)), Some(watch))
        }
        (true, None) => return Err(failed(io::Error::other("no TLS settings are given"))),
    };
    let clock = Clock::start();
    let mut kernel = Kernel::new(clock, None).map_err(failed)?;
    let route = Route {
        path: Path { target, source: None },
        transport,
        client: 0,
        tls: tls.as_ref(),
        http,
        receive_time: ReceiveTime::User,
        quickack: false,
    };
    let connection =
        connection::open(&mut kernel, &route, clock.now()).map_err(|end| failed(as_io(end)))?;
    let asking = Asking {
        connection,
        kernel,
        scratch: Scratch::default(),
        timeout: nanos(timeout),
        has_strangers: transport == Transport::Udp,
    };
    asking.exchange(query).map_err(|trouble| {
        match (watch.and_then(|watch| watch.fault()), trouble) {
            (Some(fault), _) => AskError::Certificate { target, fault },
            (None, Trouble::Io(source)) => failed(source),
            (None, Trouble::Refused(reason)) => AskError::Refused { transport, target, reason },
            (None, Trouble::Mismatch) => {
                AskError::Mismatch { transport, target, query: query.to_string() }
            }
        }
    })
}

fn answers(octets: &[u8], query: &Query) -> bool {
    Response::parse(octets)
        .is_ok_and(|response| response.id == ID && query.is_answered_by(&response))
}

/// One query per connection needs no other id.
const ID: u16 = 0x1ab1;

enum Trouble {
    /// There was no connection, or no answer.
    Io(io::Error),
    /// The server gave something else.
    Refused(String),
    /// Only messages that answer other questions came.
    Mismatch,
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
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
}

impl Asking {
    fn exchange(mut self, query: &Query) -> Result<Vec<u8>, Trouble> {
        let mut outbox = MessageBatch::default();
        outbox.push_with(|octets| query.append_to(ID, &Additions::default(), octets));
        let mut is_sent = false;
        let mut has_other = false;
        let mut deadline = self.kernel.now() + self.timeout;
        loop {
            if !is_sent && self.connection.is_open() {
                is_sent = self
                    .connection
                    .send(&self.kernel, &outbox, &mut self.scratch)
                    .map_err(as_io)?
                    > 0;
                deadline = self.kernel.now() + self.timeout;
            }
            self.wait(deadline)?;
            let mut came = None;
            let mut deliver = |delivery: Delivery<'_>| match content(delivery) {
                Ok(octets) if !answers(&octets, query) => has_other = true,
                content => came = Some(content),
            };
            let advanced = self.connection.advance(&self.kernel, &mut self.scratch, &mut deliver);
            if let Some(came) = came {
                self.connection.close(self.kernel.now(), &mut self.scratch);
                return came;
            }
            advanced.map_err(as_io)?;
            let is_over = self.kernel.now() >= deadline;
            if has_other && (is_over || !self.has_strangers) {
                return Err(Trouble::Mismatch);
            }
            if is_over {
                let step = if is_sent { "no answer" } else { "no connection" };
                let error = io::Error::new(io::ErrorKind::TimedOut, format!("{step} in time"));
                return Err(error.into());
            }
        }
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
    let refused = |reason: &str| Err(Trouble::Refused(reason.to_owned()));
    match delivery {
        Delivery::Message(received) => Ok(received.octets.to_vec()),
        Delivery::Refused { status: 0, .. } => {
            refused("the server reset the stream of the query, or its response is none")
        }
        Delivery::Refused { status: 200, .. } => {
            refused("the server's response has HTTP status 200, and is no DNS message")
        }
        Delivery::Refused { status, .. } => {
            refused(&format!("the server refused the query with HTTP status {status}"))
        }
        Delivery::NotProcessed { .. } => {
            refused("the server went away without a look at the query")
        }
        Delivery::TooEarly { .. } => refused("the server says that it was asked too early"),
    }
}

fn as_io(end: ConnectionEnd) -> io::Error {
    match end {
        ConnectionEnd::Connect(error) | ConnectionEnd::Broken(error) => error,
        other => io::Error::other(other.to_string()),
    }
}
