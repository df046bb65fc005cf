//! The server's end of a connection.

use std::collections::{HashMap, VecDeque};
use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use h2::server::{Connection, SendResponse};
use h2::{RecvStream, server};
use http::StatusCode;

use super::Http2Error;
use super::message::{Asked, LONGEST_MESSAGE, answer_head, read_head, refusal_head};
use super::pipe::Pipe;

/// A request's name on its connection: the number of its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestId(pub u32);

/// A DNS message that came as a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Whom to answer.
    pub id: RequestId,
    /// The message, as it came.
    pub message: Bytes,
}

/// One connection, from the side that answers. It refuses by itself what is no DNS over HTTPS: a
/// path that is not served (404), a method other than GET and POST (405), a message that is too
/// long (413, 414), another content type (415), and what is no base64url (400).
///
/// Octets to write come out of [`Server::poll`] alone: call it after each [`Server::receive`], and
/// after each batch of answers.
pub struct Server {
    pipe: Pipe,
    state: State,
    /// The path that is served.
    path: String,
    /// Requests whose bodies have not ended.
    reading: Vec<Reading>,
    /// Whom to answer; a request that is never answered keeps its stream open.
    waiting: HashMap<u32, SendResponse<Bytes>>,
    /// Requests that nobody has taken yet.
    requests: VecDeque<Request>,
}

/// How far the connection is.
enum State {
    /// The client's preface has not come.
    Greeting(Pin<Box<server::Handshake<Pipe, Bytes>>>),
    /// Requests may come.
    Open(Box<Connection<Pipe, Bytes>>),
}

/// A request whose body has not ended.
struct Reading {
    body: RecvStream,
    message: Vec<u8>,
    /// Octets that have come.
    length: usize,
    /// What it will be refused with. Its body is read all the same, and dropped: a client that is
    /// answered while it still sends may take that for a fault of the stream (curl 7.88 does).
    refusal: Option<StatusCode>,
    respond: SendResponse<Bytes>,
}

/// Requests that a client may have open at once. A request that the program loses keeps its stream
/// until the client gives it up, so this must be larger than what a load leaves outstanding.
const MOST_STREAMS: u32 = 1 << 16;

/// Octets of a refused request that are read and dropped; then its stream is reset.
const MOST_DROPPED: usize = 1 << 20;

/// Octets that a client may send on the whole connection before it is told that they were read;
/// they are read at once.
const CONNECTION_WINDOW: u32 = 16 << 20;

impl Server {
    /// A new connection of a server that serves this path.
    #[must_use]
    pub fn new(path: &str) -> Self {
        Self::with_streams(path, MOST_STREAMS)
    }

    /// The same with so many requests open at once.
    #[must_use]
    pub fn with_streams(path: &str, most_streams: u32) -> Self {
        let pipe = Pipe::default();
        let handshake = server::Builder::new()
            .max_concurrent_streams(most_streams)
            .initial_connection_window_size(CONNECTION_WINDOW)
            // A server that stood still may read hundreds of requests together with the resets of
            // clients that waited no longer. That is no attack here.
            .max_pending_accept_reset_streams(usize::MAX)
            .max_local_error_reset_streams(None)
            .handshake(pipe.clone());
        Self {
            pipe,
            state: State::Greeting(Box::pin(handshake)),
            path: path.to_owned(),
            reading: Vec::new(),
            waiting: HashMap::new(),
            requests: VecDeque::new(),
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

    /// The next request that has come whole.
    pub fn next_request(&mut self) -> Option<Request> {
        self.requests.pop_front()
    }

    /// Answers a request; false if its client does not wait any more. Call [`Server::poll`] after
    /// the last answer of a batch.
    pub fn answer(&mut self, id: RequestId, message: &[u8]) -> bool {
        let Some(mut respond) = self.waiting.remove(&id.0) else { return false };
        let Ok(mut stream) = respond.send_response(answer_head(message.len()), false) else {
            return false;
        };
        stream.send_data(Bytes::copy_from_slice(message), true).is_ok()
    }

    /// Refuses a request with this status, which is 500 if it is none.
    pub fn refuse(&mut self, id: RequestId, status: u16) {
        if let Some(mut respond) = self.waiting.remove(&id.0) {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            refuse(&mut respond, status);
        }
    }

    /// True if requests are open that have not been answered.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
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
                Poll::Ready(Err(error)) => return Err(Http2Error::of(Some(error))),
            }
        }
        loop {
            let State::Open(connection) = &mut self.state else { return Ok(()) };
            match connection.poll_accept(context) {
                Poll::Ready(Some(Ok((request, respond)))) => self.take(request, respond),
                Poll::Ready(Some(Err(error))) => return Err(Http2Error::of(Some(error))),
                Poll::Ready(None) => return Err(Http2Error::Closed),
                Poll::Pending => break,
            }
        }
        if self.read_bodies(context)
            && let State::Open(connection) = &mut self.state
            && let Poll::Ready(Err(error)) = connection.poll_closed(context)
        {
            return Err(Http2Error::of(Some(error)));
        }
        Ok(())
    }

    /// Takes a new request.
    fn take(&mut self, request: http::Request<RecvStream>, respond: SendResponse<Bytes>) {
        let refusal = match read_head(&request, &self.path) {
            Asked::Message(message) => return self.deliver(message, respond),
            Asked::Body => None,
            Asked::Refused(status) => Some(status),
        };
        let body = request.into_body();
        self.reading.push(Reading { body, message: Vec::new(), length: 0, refusal, respond });
    }

    /// Reads the bodies as far as they have come; true if that leaves something to be written.
    fn read_bodies(&mut self, context: &mut Context<'_>) -> bool {
        let (mut next, mut moved) = (0, false);
        while next < self.reading.len() {
            match self.reading[next].read(context) {
                Body::Pending => next += 1,
                Body::Whole => {
                    // Not `swap_remove`: what came first is answered first.
                    let mut reading = self.reading.remove(next);
                    match reading.refusal {
                        Some(status) => refuse(&mut reading.respond, status),
                        None => self.deliver(reading.message, reading.respond),
                    }
                    moved = true;
                }
                Body::Broken => {
                    self.reading.remove(next);
                    moved = true;
                }
            }
        }
        moved
    }

    /// Puts a whole message before whoever answers.
    fn deliver(&mut self, message: Vec<u8>, respond: SendResponse<Bytes>) {
        let id = RequestId(respond.stream_id().as_u32());
        self.waiting.insert(id.0, respond);
        self.requests.push_back(Request { id, message: message.into() });
    }
}

/// How far a body is.
enum Body {
    /// More is to come.
    Pending,
    /// All of it is there, or more than anybody wants to read.
    Whole,
    /// The client gave the request up.
    Broken,
}

impl Reading {
    /// Reads what has come.
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
                    if self.length > LONGEST_MESSAGE && self.refusal.is_none() {
                        self.refusal = Some(StatusCode::PAYLOAD_TOO_LARGE);
                        self.message = Vec::new();
                    }
                    if self.length > MOST_DROPPED {
                        return Body::Whole;
                    }
                    if self.refusal.is_none() {
                        self.message.extend_from_slice(&part);
                    }
                }
            }
        }
    }
}

/// Refuses a request. It fails when the client does not wait any more: nobody is left to tell.
fn refuse(respond: &mut SendResponse<Bytes>, status: StatusCode) {
    let _ = respond.send_response(refusal_head(status), true);
}
