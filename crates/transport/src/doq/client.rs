//! The client side of DNS over QUIC.

use bytes::{BufMut as _, BytesMut};
use quinn_proto::{Connection, StreamEvent, StreamId};

use super::codes::CODES;
use super::framing::{PREFIX, is_too_long, whole_message};
use crate::Exchange;
use crate::quic::{
    ClientProtocol, ErrorCodes, Outstanding, QuicError, Reading, Unwritten, code, read,
};

/// The queries of one connection that wait for their answer.
#[derive(Default)]
pub(crate) struct DoqClient {
    queries: Outstanding<Query>,
    /// Queries that flow control keeps back.
    unwritten: Unwritten,
    /// Octets of queries on their way to their streams, which share this memory piece by piece.
    sending: BytesMut,
    answer: Vec<u8>,
}

struct Query {
    request: u16,
    reply: Reply,
}

enum Reply {
    /// Fewer octets than the answer has.
    Part(Vec<u8>),
    /// The answer was delivered; the stream's end is still to come.
    Delivered,
}

/// Memory taken for queries at once: some hundreds of them.
const SENDING: usize = 16 * 1024;

impl DoqClient {
    /// Reads a stream. Fails if the server broke RFC 9250, section 4.3.3: that ends the connection.
    fn read(
        &mut self,
        connection: &mut Connection,
        id: StreamId,
        deliver: &mut dyn FnMut(Exchange<'_>),
    ) -> Result<(), QuicError> {
        let Some(query) = self.queries.get_mut(id) else {
            // Nobody waits for it any more.
            read(connection, id, |_| {});
            return Ok(());
        };
        let Query { request, reply } = query;
        let request = *request;
        let answer = &mut self.answer;
        answer.clear();
        if let Reply::Part(part) = reply {
            answer.append(part);
        }
        let reading = read(connection, id, |octets| answer.extend_from_slice(octets));
        let has_ended = matches!(reading, Reading::Finished | Reading::Reset(_));
        match (reading, &reply) {
            (Reading::Gone, _) => return Ok(()),
            (_, Reply::Delivered) if !answer.is_empty() => {
                return Err(QuicError::Protocol("a second message on the stream of a query"));
            }
            (_, Reply::Delivered) => {}
            // A server that cannot answer says so in this way (RFC 9250, section 4.3.2).
            (Reading::Reset(_), Reply::Part(_)) => {
                deliver(Exchange::Refused { request, status: 0 })
            }
            (Reading::Open | Reading::Finished, Reply::Part(_)) => {
                if put_id(answer, request)? {
                    deliver(Exchange::Answer { request, message: &answer[PREFIX..] });
                    *reply = Reply::Delivered;
                } else if has_ended {
                    return Err(QuicError::Protocol(
                        "the end of a stream before that of its message",
                    ));
                } else {
                    *reply = Reply::Part(std::mem::take(answer));
                }
            }
        }
        if has_ended {
            self.forget(id);
        }
        Ok(())
    }

    fn forget(&mut self, id: StreamId) {
        self.queries.remove(id);
        self.unwritten.forget(id);
    }
}

/// Writes the number of the request into its answer as the id; false if the answer is not whole yet. Fails
/// when its id is not 0 (RFC 9250, section 4.2.1), or more follows it: a query has one answer here, for none
/// asks for a zone.
fn put_id(octets: &mut [u8], request: u16) -> Result<bool, QuicError> {
    if is_too_long(octets) {
        return Err(QuicError::Protocol("a second message on the stream of a query"));
    }
    let Some(message) = whole_message(octets) else { return Ok(false) };
    if !message.starts_with(&[0, 0]) {
        return Err(QuicError::Protocol("a message id other than 0"));
    }
    octets[PREFIX..PREFIX + 2].copy_from_slice(&request.to_be_bytes());
    Ok(true)
}

impl ClientProtocol for DoqClient {
    fn codes(&self) -> &'static ErrorCodes {
        &CODES
    }

    fn begin(&mut self, _: &mut Connection) -> Result<(), QuicError> {
        self.queries = Outstanding::default();
        self.unwritten.clear();
        Ok(())
    }

    fn may_send(&self) -> bool {
        // What the server does not read must wait where it can time out.
        self.unwritten.is_empty()
    }

    fn in_flight(&self) -> usize {
        self.queries.len()
    }

    fn send(&mut self, connection: &mut Connection, id: StreamId, request: u16, message: &[u8]) {
        let length = u16::try_from(message.len()).expect("a DNS message has at most 65,535 octets");
        if self.sending.capacity() < PREFIX + message.len() {
            self.sending.reserve(SENDING.max(PREFIX + message.len()));
        }
        self.sending.put_u16(length);
        self.sending.put_u16(0);
        self.sending.put_slice(&message[2..]);
        let octets = self.sending.split().freeze();
        self.queries.push(id, Query { request, reply: Reply::Part(Vec::new()) });
        self.unwritten.finish(connection, id, octets);
    }

    fn give_up(&mut self, connection: &mut Connection, request: u16) {
        let Some(id) = self.queries.find(|query| query.request == request) else { return };
        self.forget(id);
        // Either fails if its half of the stream has ended already: nothing is left to say then.
        let _ = connection.recv_stream(id).stop(code(CODES.cancelled));
        let _ = connection.send_stream(id).reset(code(CODES.cancelled));
    }

    fn stream_event(
        &mut self,
        connection: &mut Connection,
        event: StreamEvent,
        deliver: &mut dyn FnMut(Exchange<'_>),
    ) -> Result<(), QuicError> {
        match event {
            StreamEvent::Readable { id } => self.read(connection, id, deliver)?,
            StreamEvent::Writable { id } => self.unwritten.resume(connection, id),
            // A server that does not want a query breaks the protocol (RFC 9250, section 4.3.3).
            StreamEvent::Stopped { id, .. } if self.unwritten.keeps(id) => {
                return Err(QuicError::Protocol("STOP_SENDING on the stream of a query"));
            }
            // A server that has read a query and drops the stream before its end has come says the same, but
            // still answers. What may still be on its way is not sent (RFC 9000, section 3.5); if that was a
            // part of the query, the query has no answer.
            StreamEvent::Stopped { id, error_code } => {
                let _ = connection.send_stream(id).reset(error_code);
            }
            StreamEvent::Opened { .. }
            | StreamEvent::Finished { .. }
            | StreamEvent::Available { .. } => {}
        }
        Ok(())
    }
}
