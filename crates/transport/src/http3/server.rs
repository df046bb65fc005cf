//! The server side of HTTP/3.

use std::sync::Arc;

use quinn_proto::{Connection, Dir, StreamEvent, StreamId};
use rustc_hash::{FxHashMap, FxHashSet};

use super::codes::{CODES, REQUEST_REJECTED};
use super::control::Control;
use super::message::{Unanswered, push_answer, push_refusal, read_request};
use crate::doh::MAX_MESSAGE;
use crate::quic::{
    Answer, AnswerMemory, ErrorCodes, MAX_UNFINISHED, Postponed, QuicError, Reaction, Reading,
    ServerProtocol, Unwritten, code, read,
};

/// The requests of one connection.
pub(crate) struct Http3Server {
    path: Arc<str>,
    /// Unidirectional streams.
    control: Control,
    /// Requests whose end has not come yet.
    unfinished: FxHashMap<StreamId, Vec<u8>>,
    unfinished_octets: usize,
    /// Responses that flow control keeps back.
    unwritten: Unwritten,
    /// Octets of these, and of responses on their way.
    answers: AnswerMemory,
    /// Streams that are read when these are fewer.
    postponed: Postponed,
    /// Requests with the method HEAD that have not been answered (RFC 9110, section 9.3.2).
    heads: FxHashSet<StreamId>,
    request: Vec<u8>,
    message: Vec<u8>,
    /// The stream after the last that a request came on.
    next: u64,
    /// Requests from this stream on are not looked at.
    gone_away: Option<u64>,
}

/// Octets of a request at most: the longest message in base64url, and room for the rest.
const MAX_REQUEST: usize = MAX_MESSAGE * 4 / 3 + 16 * 1024;

impl Http3Server {
    pub(crate) fn new(path: Arc<str>) -> Self {
        Self {
            path,
            control: Control::default(),
            unfinished: FxHashMap::default(),
            unfinished_octets: 0,
            unwritten: Unwritten::default(),
            answers: AnswerMemory::default(),
            postponed: Postponed::default(),
            heads: FxHashSet::default(),
            request: Vec::new(),
            message: Vec::new(),
            next: 0,
            gone_away: None,
        }
    }

    /// Reads what has come on a request's stream, and answers if all of it is there.
    fn read(
        &mut self,
        connection: &mut Connection,
        id: StreamId,
        answer: Answer<'_, StreamId>,
    ) -> Result<(), QuicError> {
        if self.gone_away.is_some_and(|first| u64::from(id) >= first) {
            let _ = connection.recv_stream(id).stop(code(REQUEST_REJECTED));
            let _ = connection.send_stream(id).reset(code(REQUEST_REJECTED));
            return Ok(());
        }
        self.next = self.next.max(u64::from(id) + 4);
        if self.unwritten.is_full() {
            self.postponed.add(id);
            return Ok(());
        }
        let request = &mut self.request;
        request.clear();
        if let Some(mut before) = self.unfinished.remove(&id) {
            self.unfinished_octets -= before.len();
            request.append(&mut before);
        }
        match read(connection, id, |octets| request.extend_from_slice(octets)) {
            // Its octets were read when it was opened, before this event was looked at.
            Reading::Gone => return Ok(()),
            Reading::Reset(_) => {
                self.unwritten.forget(id);
                let _ = connection.send_stream(id).reset(code(CODES.cancelled));
                return Ok(());
            }
            Reading::Open if request.len() <= MAX_REQUEST => {
                self.unfinished_octets += request.len();
                if self.unfinished_octets > MAX_UNFINISHED {
                    return Err(QuicError::ExcessiveLoad);
                }
                let request = std::mem::take(request);
                self.unfinished.insert(id, request);
                return Ok(());
            }
            Reading::Open => {
                // The rest of it is not wanted (RFC 9114, section 4.1).
                let _ = connection.recv_stream(id).stop(code(CODES.no_error));
                self.refuse(connection, id, 413);
                return Ok(());
            }
            Reading::Finished => {}
        }
        match read_request(&mut self.request, &self.path) {
            Ok(is_head) => {
                if is_head {
                    self.heads.insert(id);
                }
                self.message.clear();
                match answer(id, &self.request, &mut self.message) {
                    Reaction::Answered => {
                        let message = std::mem::take(&mut self.message);
                        self.answer(connection, id, &message);
                        self.message = message;
                    }
                    Reaction::Later => {}
                    Reaction::Never => drop(self.heads.remove(&id)),
                    Reaction::NoQuery => {
                        self.heads.remove(&id);
                        self.refuse(connection, id, 400);
                    }
                }
            }
            Err(Unanswered::Refused(status)) => self.refuse(connection, id, status),
            Err(Unanswered::Broken(error)) => return Err(error),
        }
        Ok(())
    }

    /// Reads what was postponed, as far as the client has read its answers.
    fn go_on(
        &mut self,
        connection: &mut Connection,
        answer: Answer<'_, StreamId>,
    ) -> Result<(), QuicError> {
        while let Some(id) = self.postponed.next(&self.unwritten) {
            self.read(connection, id, answer)?;
        }
        Ok(())
    }

    fn refuse(&mut self, connection: &mut Connection, id: StreamId, status: u16) {
        let mut octets = Vec::new();
        push_refusal(&mut octets, status);
        self.unwritten.finish(connection, id, self.answers.count(octets));
    }
}

impl ServerProtocol for Http3Server {
    fn codes(&self) -> &'static ErrorCodes {
        &CODES
    }

    fn begin(&mut self, connection: &mut Connection) -> Result<(), QuicError> {
        self.control.begin(connection)
    }

    fn stream_event(
        &mut self,
        connection: &mut Connection,
        event: StreamEvent,
        answer: Answer<'_, StreamId>,
    ) -> Result<(), QuicError> {
        // A client's GOAWAY is about pushed responses, of which there are none.
        let mut go_away = |_| {};
        match event {
            StreamEvent::Opened { dir: Dir::Bi } => {
                while let Some(id) = connection.streams().accept(Dir::Bi) {
                    self.read(connection, id, answer)?;
                }
            }
            StreamEvent::Opened { dir: Dir::Uni } => {
                self.control.accept(connection, &mut go_away)?
            }
            StreamEvent::Readable { id } if id.dir() == Dir::Bi => {
                self.read(connection, id, answer)?;
            }
            StreamEvent::Readable { id } => self.control.read(connection, id, &mut go_away)?,
            StreamEvent::Writable { id } => {
                self.unwritten.resume(connection, id);
                self.go_on(connection, answer)?;
            }
            StreamEvent::Stopped { id, .. } => {
                self.unwritten.forget(id);
                self.heads.remove(&id);
                let _ = connection.send_stream(id).reset(code(CODES.cancelled));
                self.go_on(connection, answer)?;
            }
            StreamEvent::Finished { .. } | StreamEvent::Available { .. } => {}
        }
        Ok(())
    }

    fn memory(&self) -> usize {
        self.unfinished_octets + self.answers.octets()
    }

    fn unread(&self) -> usize {
        self.unfinished.len() + self.postponed.len()
    }

    fn gaps(&self) -> u64 {
        self.control.gaps()
    }

    fn answer(&mut self, connection: &mut Connection, id: StreamId, message: &[u8]) -> bool {
        let is_head = !self.heads.is_empty() && self.heads.remove(&id);
        if self.unwritten.is_full() {
            let _ = connection.send_stream(id).reset(code(CODES.excessive_load));
            return false;
        }
        let mut octets = Vec::with_capacity(message.len() + 48);
        push_answer(&mut octets, message, is_head);
        self.unwritten.finish(connection, id, self.answers.count(octets))
    }

    fn goes_away(&self) -> bool {
        true
    }

    fn go_away(&mut self, connection: &mut Connection) {
        self.gone_away = Some(self.next);
        // `stream_event` ends the connection of a client that has closed the control stream.
        let _ = self.control.go_away(connection, self.next);
    }
}
