//! The client's end of a connection.

use std::future::Future as _;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use bytes::Bytes;
use h2::client::{Connection, ResponseFuture, SendRequest};
use h2::{Reason, RecvStream};

use super::Http2Error;
use super::message::{LONGEST_MESSAGE, Requests, TargetError, carries_message};
use super::pipe::Pipe;
use crate::{Exchange, Target};

/// One connection, from the side that asks. Queries may be sent before the server's first octet.
///
/// Octets to write come out of [`Client::poll`] alone: call it after each batch of
/// [`Client::send`] and after each [`Client::receive`].
pub struct Client {
    pipe: Pipe,
    connection: Connection<Pipe, Bytes>,
    /// `None` once we have closed.
    sender: Option<SendRequest<Bytes>>,
    requests: Requests,
    /// Requests without an end, by slot; free slots are used again.
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Slots for which something came, as `h2` says by waking them.
    woken: Arc<Woken>,
    /// The slots being looked at; kept for its memory.
    looked_at: Vec<u32>,
    /// Where an answer gets its id back; kept for its memory.
    answer: Vec<u8>,
    /// Requests were given up, and `h2` has not put that into octets.
    gave_up: bool,
    /// The server has announced its end (GOAWAY), or stream ids are used up.
    draining: bool,
    /// Streams that the server allows at once.
    most_streams: usize,
}

/// The place of one request.
struct Slot {
    request: u16,
    state: State,
    waker: Waker,
}

/// How far a request is.
enum State {
    /// Nothing is in this slot.
    Free,
    /// The head of the response has not come.
    Asked(ResponseFuture),
    /// The head said that a message follows; what came of it.
    Answering(RecvStream, Vec<u8>),
}

/// The slots that `h2` has woken.
#[derive(Default)]
struct Woken(Mutex<Vec<u32>>);

/// Wakes one slot.
struct SlotWaker {
    slot: u32,
    woken: Arc<Woken>,
}

impl Wake for SlotWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Nothing that could panic is done under the lock.
        self.woken.0.lock().unwrap_or_else(PoisonError::into_inner).push(self.slot);
    }
}

/// Octets that the server may send on the whole connection before we say that we have read them.
/// Everything is read at once, so this bounds nothing but how often we say so.
const CONNECTION_WINDOW: u32 = 16 << 20;

/// Octets that the server may send of one answer: the longest message.
const STREAM_WINDOW: u32 = LONGEST_MESSAGE as u32;

/// Streams taken to be allowed until the server's settings come: what RFC 9113, section 6.5.2,
/// recommends not to go below. A server that allows fewer refuses the rest unprocessed.
const STREAMS_AT_FIRST: usize = 100;

/// Requests given up whose late answers are passed over in silence, and for how long. The late
/// answers to others are each met with a reset, which is all the same to us: a slow server must not
/// lose its connection for them, as `h2` would have it after 1024.
const REMEMBERED_STREAMS: usize = 256;
const REMEMBERED_FOR: Duration = Duration::from_secs(5);

/// More streams than this are not used, whatever the server allows.
const MOST_STREAMS: usize = 1 << 16;

impl Client {
    /// A new connection to a target.
    ///
    /// # Errors
    /// When no request can be made of the target.
    pub fn new(target: &Target) -> Result<Self, TargetError> {
        let requests = Requests::new(target)?;
        let pipe = Pipe::default();
        let handshake = h2::client::Builder::new()
            .enable_push(false)
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .initial_max_send_streams(STREAMS_AT_FIRST)
            .max_concurrent_reset_streams(REMEMBERED_STREAMS)
            .reset_stream_duration(REMEMBERED_FOR)
            .max_local_error_reset_streams(None)
            .handshake(pipe.clone());
        let ready = pin!(handshake).poll(&mut Context::from_waker(Waker::noop()));
        let Poll::Ready(Ok((sender, connection))) = ready else {
            unreachable!("the preface is written to memory, which neither waits nor fails");
        };
        Ok(Self {
            pipe,
            connection,
            sender: Some(sender),
            requests,
            slots: Vec::new(),
            free: Vec::new(),
            woken: Arc::default(),
            looked_at: Vec::new(),
            answer: Vec::new(),
            gave_up: false,
            draining: false,
            most_streams: STREAMS_AT_FIRST,
        })
    }

    /// Sends a message as the request of this number, which no other open request must have. The
    /// first two octets of the message, its id, do not matter: zero is sent (RFC 8484, section
    /// 4.1). False if no stream is free now, or none will be because the connection is draining.
    pub fn send(&mut self, request: u16, message: &[u8]) -> bool {
        if std::mem::take(&mut self.gave_up) && self.poll_connection().is_ready() {
            self.draining = true;
        }
        if self.room() == 0 {
            return false;
        }
        let Some(sender) = &mut self.sender else { return false };
        let (head, body) = self.requests.request(message);
        let Ok((mut response, mut stream)) = sender.send_request(head, body.is_none()) else {
            // After a GOAWAY, and when all stream ids are used up.
            self.draining = true;
            return false;
        };
        if let Some(body) = body {
            // Fails only when the stream is closed, and that its response says, too.
            let _ = stream.send_data(body, true);
        }
        let slot = self.free_slot();
        let place = &mut self.slots[slot as usize];
        place.request = request;
        let context = &mut Context::from_waker(&place.waker);
        // Leaves the waker behind; nothing can have come yet but the end of the connection.
        if Pin::new(&mut response).poll(context).is_ready() {
            self.draining = true;
            self.free.push(slot);
            return false;
        }
        place.state = State::Asked(response);
        true
    }

    /// Requests that can be sent now.
    #[must_use]
    pub fn room(&self) -> usize {
        if self.draining { 0 } else { self.most_streams.saturating_sub(self.in_flight()) }
    }

    /// Requests without an end.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// True when nothing more can be sent, but answers may come.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.draining
    }

    /// Gives a request up: its stream is reset (CANCEL) with the next [`Client::poll`], and nothing
    /// is delivered for it any more.
    pub fn cancel(&mut self, request: u16) {
        let is_it = |slot: &Slot| slot.request == request && !matches!(slot.state, State::Free);
        if let Some(slot) = self.slots.iter().position(is_it) {
            self.release(slot as u32);
            // Until it has reset the stream, `h2` counts it among those that are open, and takes no
            // more requests than one beyond the limit.
            self.gave_up = true;
        }
    }

    /// Takes octets that came from the server.
    pub fn receive(&mut self, octets: &[u8]) {
        self.pipe.receive(octets);
    }

    /// The server has closed its side of the stream.
    pub fn end(&mut self) {
        self.pipe.end();
    }

    /// Appends what must be written to `out`, and delivers what has come.
    ///
    /// # Errors
    /// When the connection is over. What came before its end has been delivered; requests that are
    /// still open then have no answer.
    pub fn poll(
        &mut self,
        out: &mut Vec<u8>,
        deliver: &mut dyn FnMut(Exchange<'_>),
    ) -> Result<(), Http2Error> {
        let ended = self.flush(out);
        self.deliver_woken(deliver);
        ended
    }

    /// Appends what must be written to `out`, and delivers nothing: what has come waits for
    /// [`Client::poll`].
    ///
    /// # Errors
    /// When the connection is over.
    pub fn flush(&mut self, out: &mut Vec<u8>) -> Result<(), Http2Error> {
        if let Poll::Ready(end) = self.advance(out) {
            self.draining = true;
            return Err(Http2Error::of(end.err()));
        }
        self.most_streams = self.connection.max_concurrent_send_streams().min(MOST_STREAMS);
        let context = &mut Context::from_waker(Waker::noop());
        if let Some(sender) = &mut self.sender {
            // Ready with an error after a GOAWAY.
            self.draining |= matches!(sender.poll_ready(context), Poll::Ready(Err(_)));
        }
        Ok(())
    }

    /// Gives all requests up and appends what says good-bye (GOAWAY with NO_ERROR) to `out`. There
    /// is nothing more to be done with the connection then.
    pub fn close(&mut self, out: &mut Vec<u8>) {
        for slot in 0..self.slots.len() as u32 {
            if !matches!(self.slots[slot as usize].state, State::Free) {
                self.release(slot);
            }
        }
        self.draining = true;
        // `h2` closes a connection when nobody can ask anything on it any more, and notices that at
        // the poll after the one in which it resets the last streams.
        self.sender = None;
        let _ = self.advance(out);
        let _ = self.advance(out);
    }

    /// Lets `h2` read and write, to the end of `out`.
    fn advance(&mut self, out: &mut Vec<u8>) -> Poll<Result<(), h2::Error>> {
        let pipe = self.pipe.clone();
        pipe.while_writing_to(out, || self.poll_connection())
    }

    /// Lets `h2` read and write; what it writes outside of [`Client::advance`] waits in the pipe.
    fn poll_connection(&mut self) -> Poll<Result<(), h2::Error>> {
        Pin::new(&mut self.connection).poll(&mut Context::from_waker(Waker::noop()))
    }

    /// Looks at the slots for which something came.
    fn deliver_woken(&mut self, deliver: &mut dyn FnMut(Exchange<'_>)) {
        let mut woken = std::mem::take(&mut self.looked_at);
        std::mem::swap(
            &mut *self.woken.0.lock().unwrap_or_else(PoisonError::into_inner),
            &mut woken,
        );
        for slot in woken.drain(..) {
            self.look_at(slot, deliver);
        }
        self.looked_at = woken;
    }

    /// Takes what came for one request, and delivers it if that was all.
    fn look_at(&mut self, slot: u32, deliver: &mut dyn FnMut(Exchange<'_>)) {
        let place = &mut self.slots[slot as usize];
        let request = place.request;
        let context = &mut Context::from_waker(&place.waker);
        let progress = match &mut place.state {
            State::Free => return,
            State::Asked(response) => match Pin::new(response).poll(context) {
                Poll::Pending => return,
                Poll::Ready(Err(error)) => Progress::failed(&error),
                Poll::Ready(Ok(head)) if head.status() != http::StatusCode::OK => {
                    Progress::Refused(head.status().as_u16())
                }
                Poll::Ready(Ok(head)) if !carries_message(&head) => Progress::Refused(200),
                Poll::Ready(Ok(head)) => {
                    place.state = State::Answering(head.into_body(), Vec::new());
                    read_body(&mut place.state, context, &mut self.answer)
                }
            },
            State::Answering(..) => read_body(&mut place.state, context, &mut self.answer),
        };
        match progress {
            Progress::Pending => return,
            Progress::Whole => {
                // The id was zero on the wire, as it must be: what else has no place in a request.
                if self.answer.len() >= 2 && self.answer[..2] == [0, 0] {
                    self.answer[..2].copy_from_slice(&request.to_be_bytes());
                    deliver(Exchange::Answer { request, message: &self.answer });
                } else {
                    deliver(Exchange::Refused { request, status: 200 });
                }
            }
            Progress::Refused(status) => deliver(Exchange::Refused { request, status }),
            Progress::NotProcessed => deliver(Exchange::NotProcessed { request }),
            Progress::Lost => {}
        }
        self.release(slot);
    }

    /// A slot that nothing is in.
    fn free_slot(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            let slot = self.slots.len() as u32;
            let waker = Waker::from(Arc::new(SlotWaker { slot, woken: Arc::clone(&self.woken) }));
            self.slots.push(Slot { request: 0, state: State::Free, waker });
            slot
        })
    }

    /// Empties a slot. A stream that has not ended is reset by that.
    fn release(&mut self, slot: u32) {
        self.slots[slot as usize].state = State::Free;
        self.free.push(slot);
    }
}

/// What a look at a request found.
enum Progress {
    /// It has not ended.
    Pending,
    /// The whole message has come.
    Whole,
    /// With this status, 0 for none.
    Refused(u16),
    /// The server will not look at it.
    NotProcessed,
    /// The connection is over.
    Lost,
}

impl Progress {
    /// What the error of a stream means. `h2` gives the error of a GOAWAY to the streams above its
    /// last stream id alone.
    fn failed(error: &h2::Error) -> Self {
        match error.reason() {
            Some(Reason::REFUSED_STREAM) if error.is_remote() => Self::NotProcessed,
            _ if error.is_go_away() && error.is_remote() => Self::NotProcessed,
            _ if error.is_reset() => Self::Refused(0),
            _ => Self::Lost,
        }
    }
}

/// Reads a body as far as it has come; when it is whole, it is in `answer`.
fn read_body(state: &mut State, context: &mut Context<'_>, answer: &mut Vec<u8>) -> Progress {
    let State::Answering(body, start) = state else { return Progress::Pending };
    loop {
        let part = match body.poll_data(context) {
            Poll::Pending => return Progress::Pending,
            Poll::Ready(None) => break,
            Poll::Ready(Some(Err(error))) => return Progress::failed(&error),
            Poll::Ready(Some(Ok(part))) => part,
        };
        // Fails only when more is released than came.
        let _ = body.flow_control().release_capacity(part.len());
        if start.len() + part.len() > LONGEST_MESSAGE {
            return Progress::Refused(200);
        }
        if start.is_empty() && body.is_end_stream() {
            answer.clear();
            answer.extend_from_slice(&part);
            return Progress::Whole;
        }
        start.extend_from_slice(&part);
    }
    answer.clear();
    answer.append(start);
    Progress::Whole
}
