//! The server side of DNS over QUIC.

use quinn_proto::{Connection, Dir, StreamEvent, StreamId};
use rustc_hash::FxHashMap;

use super::codes::CODES;
use super::framing::{PREFIX, is_too_long, whole_message};
use crate::quic::{
    Answer, AnswerMemory, ErrorCodes, MAX_UNFINISHED, Postponed, QuicError, Reaction, Reading,
    ServerProtocol, Unwritten, code, read,
};

/// The streams of one connection.
#[derive(Default)]
pub(crate) struct DoqServer {
    /// Streams whose end has not come yet.
    unfinished: FxHashMap<StreamId, Asked>,
    unfinished_octets: usize,
    /// Answers that flow control keeps back.
    unwritten: Unwritten,
    /// Octets of these, and of answers on their way.
    answers: AnswerMemory,
    /// Streams that are read when these are fewer.
    postponed: Postponed,
    query: Vec<u8>,
    /// Where an answer is made, after room for its length.
    answer: Vec<u8>,
}

enum Asked {
    /// Fewer octets than the query has.
    Part(Vec<u8>),
    /// The whole query, and it was looked at.
    Whole,
}

impl DoqServer {
    /// Reads what has come on a stream, and answers the query if all of it is there.
    fn read(
        &mut self,
        connection: &mut Connection,
        id: StreamId,
        answer: Answer<'_, StreamId>,
    ) -> Result<(), QuicError> {
        if self.unwritten.is_full() {
            self.postponed.add(id);
            return Ok(());
        }
        let before = self.unfinished.remove(&id);
        let was_whole = matches!(before, Some(Asked::Whole));
        let query = &mut self.query;
        query.clear();
        if let Some(Asked::Part(mut part)) = before {
            self.unfinished_octets -= part.len();
            query.append(&mut part);
        }
        let reading = read(connection, id, |octets| query.extend_from_slice(octets));
        match reading {
            // Its octets were read when it was opened, before this event was looked at.
            Reading::Gone => return Ok(()),
            Reading::Reset(_) => {
                // The client does not want an answer (section 4.3.1).
                self.unwritten.forget(id);
                let _ = connection.send_stream(id).reset(code(CODES.cancelled));
                return Ok(());
            }
            _ if was_whole && !self.query.is_empty() => {
                return Err(QuicError::Protocol("a second message on the stream of a query"));
            }
            Reading::Finished if was_whole => return Ok(()),
            Reading::Open | Reading::Finished => {}
        }
        let is_finished = reading == Reading::Finished;
        match whole_message(&self.query) {
            _ if was_whole => {}
            // Elsewhere the client chooses the id; here it must be 0 (section 4.2.1).
            Some(message) if message.len() >= 2 && !message.starts_with(&[0, 0]) => {
                return Err(QuicError::Protocol("a message id other than 0"));
            }
            Some(message) => {
                self.answer.clear();
                self.answer.extend_from_slice(&[0; PREFIX]);
                match answer(id, message, &mut self.answer) {
                    Reaction::Answered => {
                        let octets = std::mem::take(&mut self.answer);
                        self.write(connection, id, octets);
                    }
                    Reaction::Later | Reaction::Never => {}
                    Reaction::NoQuery => {
                        return Err(QuicError::Protocol("a message that is no query"));
                    }
                }
            }
            None if is_finished || is_too_long(&self.query) => {
                return Err(QuicError::Protocol("a message of another length than stated"));
            }
            None => {
                self.unfinished_octets += self.query.len();
                if self.unfinished_octets > MAX_UNFINISHED {
                    return Err(QuicError::ExcessiveLoad);
                }
                self.unfinished.insert(id, Asked::Part(std::mem::take(&mut self.query)));
                return Ok(());
            }
        }
        if !is_finished {
            self.unfinished.insert(id, Asked::Whole);
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

    /// Sends an answer that stands after room for its length.
    fn write(&mut self, connection: &mut Connection, id: StreamId, mut octets: Vec<u8>) -> bool {
        let length = u16::try_from(octets.len() - PREFIX);
        let length = length.expect("a DNS message has at most 65,535 octets");
        octets[..PREFIX].copy_from_slice(&length.to_be_bytes());
        self.unwritten.finish(connection, id, self.answers.count(octets))
    }
}

impl ServerProtocol for DoqServer {
    fn codes(&self) -> &'static ErrorCodes {
        &CODES
    }

    fn begin(&mut self, _: &mut Connection) -> Result<(), QuicError> {
        Ok(())
    }

    fn stream_event(
        &mut self,
        connection: &mut Connection,
        event: StreamEvent,
        answer: Answer<'_, StreamId>,
    ) -> Result<(), QuicError> {
        match event {
            StreamEvent::Opened { dir: Dir::Bi } => {
                while let Some(id) = connection.streams().accept(Dir::Bi) {
                    self.read(connection, id, answer)?;
                }
            }
            StreamEvent::Readable { id } => self.read(connection, id, answer)?,
            StreamEvent::Writable { id } => {
                self.unwritten.resume(connection, id);
                self.go_on(connection, answer)?;
            }
            StreamEvent::Stopped { id, .. } => {
                self.unwritten.forget(id);
                let _ = connection.send_stream(id).reset(code(CODES.cancelled));
                self.go_on(connection, answer)?;
            }
            StreamEvent::Opened { dir: Dir::Uni }
            | StreamEvent::Finished { .. }
            | StreamEvent::Available { .. } => {}
        }
        Ok(())
    }

    fn memory(&self) -> usize {
        self.unfinished_octets + self.answers.octets()
    }

    fn unread(&self) -> usize {
        self.unfinished.len() + self.postponed.len()
    }

    fn answer(&mut self, connection: &mut Connection, id: StreamId, message: &[u8]) -> bool {
        if self.unwritten.is_full() {
            let _ = connection.send_stream(id).reset(code(CODES.excessive_load));
            return false;
        }
        let mut octets = Vec::with_capacity(PREFIX + message.len());
        octets.extend_from_slice(&[0; PREFIX]);
        octets.extend_from_slice(message);
        self.write(connection, id, octets)
    }
}
