//! The server's end of a connection.

use std::collections::VecDeque;
use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use h2::server::{Connection, SendResponse};
use h2::{RecvStream, server};
use http::StatusCode;

use super::answers::{Answers, STREAM, refuse};
use super::error::Http2Error;
use super::message::head;
use super::pipe::Pipe;
use crate::doh::{MAX_MESSAGE, MessageIn};

/// A request on its connection: the number of its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestId(pub u32);

/// A DNS message that came as a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// For [`Server::answer`].
    pub id: RequestId,
    /// The message, as it came.
    pub message: Bytes,
}

/// One connection, from the side that answers. It refuses by itself what is no DNS over HTTPS: a path that is
/// not served (404), a method other than GET, HEAD and POST (405), a message that is too long (413, 414),
/// another content type (415), a head that is too long (431), and what is no base64url (400).
///
/// What a client can make it keep is bounded. It keeps 1 MiB of requests that have not come whole or that
/// nobody has taken; more are refused with 503. It keeps 256 KiB of answers for which the client opens no
/// window; [`Server::next_request`] hands out nothing until the client does. What the client gives up is
/// forgotten. The connection is read all the while: the client can open its windows in no other way.
///
/// Octets to write come out of [`Server::poll`] alone: call it after each [`Server::receive`], and
/// after each batch of answers.
pub struct Server {
    pipe: Pipe,
    state: State,
    path: String,
    /// Requests whose bodies have not ended.
    reading: Vec<Reading>,
    answers: Answers,
    /// Requests that nobody has taken yet.
    requests: VecDeque<Request>,
    /// Octets of these, and of the bodies that have not ended.
    kept: usize,
}

enum State {
    /// The client's preface has not come.
    Greeting(Pin<Box<server::Handshake<Pipe, Bytes>>>),
    Open(Box<Connection<Pipe, Bytes>>),
}

/// A request whose body has not ended.
struct Reading {
    body: RecvStream,
    message: Vec<u8>,
    /// Octets that have come.
    length: usize,
    /// What it will be refused with. Its body is still read, and dropped: a client that is answered while it
    /// still sends may take that for a fault of the stream (curl 7.88 does).
    refusal: Option<StatusCode>,
    respond: SendResponse<Bytes>,
}

/// Requests that a client may have open at once. One that the program loses keeps its stream until the client
/// gives it up, so this must be larger than what a load leaves outstanding.
const MAX_STREAMS: u32 = 1 << 16;

/// Octets of messages that a client can make a connection keep: of requests that have not come whole or that
/// nobody has taken. Some thousand queries of a usual length.
const MAX_KEPT: usize = 1 << 20;

/// Octets of a request's head, as RFC 9113, section 6.5.2, counts them (SETTINGS_MAX_HEADER_LIST_SIZE). The
/// longest message in base64url has 87,380, and there is room for the rest. `h2` refuses more with 431, and
/// ends a connection whose CONTINUATION frames do not end; its own bound is 16 MiB.
const HEADER_LIST: u32 = 1 << 17;

/// Octets of a refused request that are read and dropped; then its stream is reset.
const MAX_DROPPED: usize = 1 << 20;

/// Octets that a client may send on a connection before it is told that they were read, which is at once.
const CONNECTION_WINDOW: u32 = 16 << 20;

impl Server {
    /// A new connection of a server that serves this path.
    #[must_use]
    pub fn new(path: &str) -> Self {
        Self::with_streams(path, MAX_STREAMS)
    }

    /// A new connection with so many requests open at once.
    #[must_use]
    pub fn with_streams(path: &str, max_streams: u32) -> Self {
        let pipe = Pipe::default();
        let handshake = server::Builder::new()
            .max_concurrent_streams(max_streams)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(HEADER_LIST)
            // A server that stood still may read hundreds of requests together with the resets of clients
            // that gave up. That is no attack here.
            .max_pending_accept_reset_streams(usize::MAX)
            .max_local_error_reset_streams(None)
            .handshake(pipe.clone());
        Self {
            pipe,
            state: State::Greeting(Box::pin(handshake)),
            path: path.to_owned(),
            reading: Vec::new(),
            answers: Answers::default(),
            requests: VecDeque::new(),
            kept: 0,
        }
    }

    /// Takes octets that came from the client.
    pub fn receive(&mut self, octets: &[u8]) {
        self.pipe.receive(octets);
    }

    /// The client has closed its side of the stream.
    pub fn end(&mut self) {
        self.pipe.end();
    }

    /// Appends what must be written to `out`, and reads what has come: look at
    /// [`Server::next_request`] after it.
    ///
    /// # Errors
    /// When the connection is over. What `out` holds then is still to be written: it may say why.
    pub fn poll(&mut self, out: &mut Vec<u8>) -> Result<(), Http2Error> {
        let pipe = self.pipe.clone();
        pipe.while_writing_to(out, || self.advance())
    }

    /// The next request that has come whole. `None` also while the client opens no window for its answers.
    pub fn next_request(&mut self) -> Option<Request> {
        if self.answers.are_kept_back() {
            return None;
        }
        let request = self.requests.pop_front()?;
        self.kept -= request.message.len();
        Some(request)
    }

    /// Answers a request; false if its client does not wait any more. Call [`Server::poll`] after the last
    /// answer of a batch.
    pub fn answer(&mut self, id: RequestId, message: &[u8]) -> bool {
        self.answers.answer(id.0, message)
    }

    /// Refuses a request with this status, or with 500 if that is none.
    pub fn refuse(&mut self, id: RequestId, status: u16) {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        self.answers.refuse(id.0, status);
    }

    /// True if requests are open that have not been answered.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.answers.are_awaited()
    }

    /// Octets of memory that the client makes the connection hold: requests, answers that its windows keep
    /// back, and what `h2` knows of their streams. What an idle connection needs is not counted.
    #[must_use]
    pub fn memory(&self) -> usize {
        let streams = self.reading.len() + self.requests.len();
        self.pipe.memory() + self.kept + streams * STREAM + self.answers.memory()
    }

    /// Says that no further request will be looked at (GOAWAY); those open can be answered.
    pub fn close(&mut self) {
        if let State::Open(connection) = &mut self.state {
            connection.graceful_shutdown();
        }
    }

    /// Lets `h2` read and write, and takes the requests.
    fn advance(&mut self) -> Result<(), Http2Error> {
        let context = &mut Context::from_waker(Waker::noop());
        if let State::Greeting(handshake) = &mut self.state {
            match handshake.as_mut().poll(context) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Ok(connection)) => self.state = State::Open(Box::new(connection)),
                Poll::Ready(Err(error)) => return Err(Http2Error::of(error)),
            }
        }
        let some_were_left = !self.requests.is_empty();
        loop {
            let State::Open(connection) = &mut self.state else { return Ok(()) };
            match connection.poll_accept(context) {
                Poll::Ready(Some(Ok((request, respond)))) => self.take(request, respond),
                Poll::Ready(Some(Err(error))) => return Err(Http2Error::of(error)),
                Poll::Ready(None) => return Err(Http2Error::Closed),
                Poll::Pending => break,
            }
        }
        if some_were_left {
            self.drop_given_up(context);
        }
        let moved = self.answers.resume(context) | self.read_bodies(context);
        if moved
            && let State::Open(connection) = &mut self.state
            && let Poll::Ready(Err(error)) = connection.poll_closed(context)
        {
            return Err(Http2Error::of(error));
        }
        Ok(())
    }

    fn take(&mut self, request: http::Request<RecvStream>, respond: SendResponse<Bytes>) {
        let mut message = Vec::new();
        let refusal = match head(&request).message(&self.path, &mut message) {
            Ok(MessageIn::Query { is_head }) => return self.deliver(message, respond, is_head),
            Ok(MessageIn::Body) => None,
            Err(status) => Some(status),
        };
        let body = request.into_body();
        self.reading.push(Reading { body, message: Vec::new(), length: 0, refusal, respond });
    }

    /// Drops requests that their clients gave up before anybody took them. A stream that was reset does not
    /// count against the streams that a client may have open, so requests that wait for the client's windows
    /// would pile up ("rapid reset", CVE-2023-44487). This is not needed where all requests are taken each
    /// time, as they are unless answers are kept back.
    fn drop_given_up(&mut self, context: &mut Context<'_>) {
        let Self { requests, answers, kept, .. } = self;
        requests.retain(|request| {
            let is_wanted = answers.is_wanted(request.id.0, context);
            *kept -= if is_wanted { 0 } else { request.message.len() };
            is_wanted
        });
    }

    /// Reads the bodies as far as they have come; true if that leaves something to be written.
    fn read_bodies(&mut self, context: &mut Context<'_>) -> bool {
        let (mut next, mut moved) = (0, false);
        while next < self.reading.len() {
            let reading = &mut self.reading[next];
            let before = reading.message.len();
            let body = reading.read(context);
            self.kept = self.kept - before + reading.message.len();
            if self.kept > MAX_KEPT {
                self.kept -= reading.give_up(StatusCode::SERVICE_UNAVAILABLE);
            }
            match body {
                Body::Pending => next += 1,
                Body::Whole => {
                    // Not `swap_remove`: what came first is answered first.
                    let mut reading = self.reading.remove(next);
                    self.kept -= reading.message.len();
                    match reading.refusal {
                        Some(status) => refuse(&mut reading.respond, status),
                        None => self.deliver(reading.message, reading.respond, false),
                    }
                    moved = true;
                }
                Body::Broken => {
                    let reading = self.reading.remove(next);
                    self.kept -= reading.message.len();
                    moved = true;
                }
            }
        }
        moved
    }

    /// Keeps a whole message for [`Server::next_request`], if there is room for it.
    fn deliver(&mut self, message: Vec<u8>, mut respond: SendResponse<Bytes>, is_head: bool) {
        if self.kept + message.len() > MAX_KEPT {
            return refuse(&mut respond, StatusCode::SERVICE_UNAVAILABLE);
        }
        self.kept += message.len();
        let id = RequestId(respond.stream_id().as_u32());
        self.answers.wait(respond, is_head);
        self.requests.push_back(Request { id, message: message.into() });
    }
}

enum Body {
    Pending,
    /// All of it is there, or more than anybody wants to read.
    Whole,
    /// The client gave the request up.
    Broken,
}

impl Reading {
    fn read(&mut self, context: &mut Context<'_>) -> Body {
        loop {
            match self.body.poll_data(context) {
                Poll::Pending => return Body::Pending,
                Poll::Ready(None) => return Body::Whole,
                Poll::Ready(Some(Err(_))) => return Body::Broken,
                Poll::Ready(Some(Ok(part))) => {
                    // Fails only when more is released than came.
                    let _ = self.body.flow_control().release_capacity(part.len());
                    self.length += part.len();
                    if self.length > MAX_MESSAGE && self.refusal.is_none() {
                        self.give_up(StatusCode::PAYLOAD_TOO_LARGE);
                    }
                    if self.length > MAX_DROPPED {
                        return Body::Whole;
                    }
                    if self.refusal.is_none() {
                        self.message.extend_from_slice(&part);
                    }
                }
            }
        }
    }

    /// Drops what has come, to refuse the request when the rest has; returns how many octets that were.
    fn give_up(&mut self, status: StatusCode) -> usize {
        self.refusal = Some(status);
        std::mem::take(&mut self.message).len()
    }
}
