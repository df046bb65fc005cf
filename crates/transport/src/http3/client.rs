//! The client side of HTTP/3.

use std::sync::Arc;

use bytes::BytesMut;
use quinn_proto::{Connection, Dir, StreamEvent, StreamId};

use super::codes::{CODES, REQUEST_REJECTED};
use super::control::Control;
use super::message::{KnownHeads, Requests, Unanswered, read_response};
use crate::doh::MAX_MESSAGE;
use crate::quic::{
    ClientProtocol, ErrorCodes, Outstanding, QuicError, Reading, Unwritten, code, read,
};
use crate::{Exchange, Target};

/// The requests of one connection that wait for their response.
pub(crate) struct Http3Client {
    requests: Requests,
    /// Unidirectional streams.
    control: Control,
    /// On each stream: the number of the request, and what has come of its response.
    waiting: Outstanding<(u16, Vec<u8>)>,
    /// Requests that flow control keeps back.
    unwritten: Unwritten,
    /// Octets of requests on their way to their streams, which share this memory piece by piece.
    sending: BytesMut,
    response: Vec<u8>,
    known: KnownHeads,
    /// The server does not look at requests from this stream on.
    gone_away: Option<u64>,
}

/// Memory taken for requests at once: some hundreds of them.
const SENDING: usize = 32 * 1024;

/// Octets of a response at most: the longest message, and room for its head.
const MAX_RESPONSE: usize = MAX_MESSAGE + 32 * 1024;

impl Http3Client {
    pub(crate) fn new(target: &Arc<Target>) -> Self {
        Self {
            requests: Requests::new(target),
            control: Control::default(),
            waiting: Outstanding::default(),
            unwritten: Unwritten::default(),
            sending: BytesMut::new(),
            response: Vec::new(),
            known: KnownHeads::default(),
            gone_away: None,
        }
    }

    fn read(
        &mut self,
        connection: &mut Connection,
        id: StreamId,
        deliver: &mut dyn FnMut(Exchange<'_>),
    ) -> Result<(), QuicError> {
        let Some((request, before)) = self.waiting.get_mut(id) else {
            // Nobody waits for it any more.
            read(connection, id, |_| {});
            return Ok(());
        };
        let request = *request;
        let response = &mut self.response;
        response.clear();
        response.append(before);
        match read(connection, id, |octets| response.extend_from_slice(octets)) {
            Reading::Gone => {}
            Reading::Open if response.len() <= MAX_RESPONSE => {
                *before = std::mem::take(response);
            }
            Reading::Open => {
                let _ = connection.recv_stream(id).stop(code(CODES.cancelled));
                self.forget(id);
                deliver(Exchange::Refused { request, status: 0 });
            }
            Reading::Reset(error) => {
                self.forget(id);
                deliver(if error == u64::from(REQUEST_REJECTED) {
                    Exchange::NotProcessed { request }
                } else {
                    Exchange::Refused { request, status: 0 }
                });
            }
            Reading::Finished => match read_response(response, &mut self.known) {
                Ok(()) => {
                    response[..2].copy_from_slice(&request.to_be_bytes());
                    deliver(Exchange::Answer { request, message: response });
                    self.forget(id);
                }
                Err(Unanswered::Refused(status)) => {
                    deliver(Exchange::Refused { request, status });
                    self.forget(id);
                }
                Err(Unanswered::Broken(error)) => return Err(error),
            },
        }
        Ok(())
    }

    fn forget(&mut self, id: StreamId) {
        self.waiting.remove(id);
        self.unwritten.forget(id);
    }

    /// Looks at the streams that the server has opened, or at what has come on one of them.
    fn read_control(
        &mut self,
        connection: &mut Connection,
        id: Option<StreamId>,
        deliver: &mut dyn FnMut(Exchange<'_>),
    ) -> Result<(), QuicError> {
        let mut announced = Vec::new();
        let mut go_away = |first: u64| announced.push(first);
        match id {
            Some(id) => self.control.read(connection, id, &mut go_away)?,
            None => self.control.accept(connection, &mut go_away)?,
        }
        for first in announced {
            // Each names the stream of a request, and none a later one than the one before.
            if first % 4 != 0 || self.gone_away.is_some_and(|before| before < first) {
                return Err(QuicError::Protocol(
                    "a GOAWAY frame with a stream that it cannot have",
                ));
            }
            self.gone_away = Some(first);
            self.give_back(connection, first, deliver);
        }
        Ok(())
    }

    /// Gives back all requests from this stream on: the server does not look at them.
    fn give_back(
        &mut self,
        connection: &mut Connection,
        first: u64,
        deliver: &mut dyn FnMut(Exchange<'_>),
    ) {
        let numbered = self.waiting.iter().map(|(id, (request, _))| (id, *request));
        let unseen: Vec<_> = numbered.filter(|(id, _)| u64::from(*id) >= first).collect();
        for (id, request) in unseen {
            self.cancel(connection, id);
            deliver(Exchange::NotProcessed { request });
        }
    }

    fn cancel(&mut self, connection: &mut Connection, id: StreamId) {
        self.forget(id);
        // Either fails if its half of the stream has ended already: nothing is left to say then.
        let _ = connection.recv_stream(id).stop(code(CODES.cancelled));
        let _ = connection.send_stream(id).reset(code(CODES.cancelled));
    }
}

impl ClientProtocol for Http3Client {
    fn codes(&self) -> &'static ErrorCodes {
        &CODES
    }

    fn begin(&mut self, connection: &mut Connection) -> Result<(), QuicError> {
        self.waiting = Outstanding::default();
        self.unwritten.clear();
        self.control.forget();
        self.control.begin(connection)
    }

    fn may_send(&self) -> bool {
        // What the server does not read must wait where it can time out.
        self.unwritten.is_empty()
    }

    fn in_flight(&self) -> usize {
        self.waiting.len()
    }

    fn send(&mut self, connection: &mut Connection, id: StreamId, request: u16, message: &[u8]) {
        let space = self.requests.space(message.len());
        if self.sending.capacity() < space {
            self.sending.reserve(SENDING.max(space));
        }
        self.requests.push(message, &mut self.sending);
        let octets = self.sending.split().freeze();
        self.waiting.push(id, (request, Vec::new()));
        self.unwritten.finish(connection, id, octets);
    }

    fn give_up(&mut self, connection: &mut Connection, request: u16) {
        if let Some(id) = self.waiting.find(|(number, _)| *number == request) {
            self.cancel(connection, id);
        }
    }

    fn stream_event(
        &mut self,
        connection: &mut Connection,
        event: StreamEvent,
        deliver: &mut dyn FnMut(Exchange<'_>),
    ) -> Result<(), QuicError> {
        match event {
            StreamEvent::Readable { id } if id.dir() == Dir::Bi => {
                self.read(connection, id, deliver)?;
            }
            StreamEvent::Readable { id } => self.read_control(connection, Some(id), deliver)?,
            StreamEvent::Opened { dir: Dir::Uni } => {
                self.read_control(connection, None, deliver)?
            }
            StreamEvent::Writable { id } => self.unwritten.resume(connection, id),
            // A server may answer before it has read all, and does not want the rest then.
            StreamEvent::Stopped { id, error_code } => {
                self.unwritten.forget(id);
                let _ = connection.send_stream(id).reset(error_code);
            }
            StreamEvent::Opened { dir: Dir::Bi }
            | StreamEvent::Finished { .. }
            | StreamEvent::Available { .. } => {}
        }
        Ok(())
    }

    fn is_draining(&self) -> bool {
        self.gone_away.is_some()
    }
}
