//! What a client makes of the frames that come.

use h2::Reason;

use super::client::{
    CONNECTION_WINDOW, Client, KEPT, LAST_STREAM, MAX_STREAMS, STREAM_WINDOW, Unfinished,
};
use super::error::Announced;
use super::frame::{self, Fault, HEAD, Head, MAX_PAYLOAD, flag, kind, push_number, setting};
use super::headers::{self, Fields};
use super::streams::{Place, Stream};
use crate::Exchange;
use crate::doh::{MAX_MESSAGE, is_answer};

type Deliver<'a> = &'a mut dyn FnMut(Exchange<'_>);

/// Octets of a header block at most. Those of answers have about a hundred.
const MAX_BLOCK: usize = 1 << 16;

impl Client {
    /// Reads the frames that have come whole.
    pub(super) fn read(&mut self, deliver: Deliver<'_>) -> Result<(), Fault> {
        let mut input = std::mem::take(&mut self.input);
        let mut read = 0;
        while let Some(head) = Head::read(&input[read..]) {
            if head.length > MAX_PAYLOAD {
                return Err(Fault::size("a frame that is larger than it may be"));
            }
            let begin = read + HEAD;
            let Some(payload) = input.get_mut(begin..begin + head.length) else { break };
            self.frame(head, payload, deliver)?;
            read = begin + head.length;
        }
        input.drain(..read);
        if !input.is_empty() || input.capacity() <= KEPT {
            self.input = input;
        }
        Ok(())
    }

    fn frame(&mut self, head: Head, payload: &mut [u8], deliver: Deliver<'_>) -> Result<(), Fault> {
        if !self.is_greeted && (head.kind != kind::SETTINGS || head.has(flag::ACK)) {
            return Err(Fault::protocol("a server that does not begin with its settings"));
        }
        if self.unfinished.is_some() && head.kind != kind::CONTINUATION {
            return Err(Fault::protocol("a header block that does not go on"));
        }
        match head.kind {
            kind::DATA => self.data(head, payload, deliver),
            kind::HEADERS => {
                let content = head.content(payload)?;
                let ends_stream = head.has(flag::END_STREAM);
                if head.has(flag::END_HEADERS) {
                    return self.block(head.stream, &payload[content], ends_stream, deliver);
                }
                let block = payload[content].to_vec();
                self.unfinished = Some(Unfinished { stream: head.stream, ends_stream, block });
                Ok(())
            }
            kind::CONTINUATION => self.continuation(head, payload, deliver),
            kind::RST_STREAM => self.reset_by_server(head, payload, deliver),
            kind::SETTINGS => self.settings(head, payload),
            kind::PING if head.stream != 0 => Err(Fault::protocol("a ping on a stream")),
            kind::PING if payload.len() != 8 => Err(Fault::size("a ping not of eight octets")),
            kind::PING => {
                if !head.has(flag::ACK) {
                    frame::push(&mut self.out, kind::PING, flag::ACK, 0, payload);
                }
                Ok(())
            }
            kind::GOAWAY => self.go_away(head, payload, deliver),
            kind::WINDOW_UPDATE => {
                let by = frame::number(payload)?;
                self.check_known(head.stream)?;
                self.sending.widen(head.stream, by, &mut self.out)
            }
            kind::PUSH_PROMISE => Err(Fault::protocol("a push that was ruled out")),
            kind::PRIORITY if payload.len() != 5 => Err(Fault::size("a priority of a wrong size")),
            // Unknown frames are ignored (section 5.5).
            _ => Ok(()),
        }
    }

    /// Fails if the stream was never opened; 0 is the connection.
    fn check_known(&self, stream: u32) -> Result<(), Fault> {
        let is_known = stream == 0 || (stream % 2 == 1 && stream < self.next_stream);
        if is_known {
            Ok(())
        } else {
            Err(Fault::protocol("a frame on a stream that nobody opened"))
        }
    }

    /// `None` if the stream is over: what still comes for it is ignored. Fails if it was never opened.
    fn opened(&self, stream: u32) -> Result<Option<Place>, Fault> {
        if stream == 0 {
            return Err(Fault::protocol("a frame of a stream without a stream"));
        }
        self.check_known(stream)?;
        Ok(self.streams.find(stream))
    }

    fn data(&mut self, head: Head, payload: &mut [u8], deliver: Deliver<'_>) -> Result<(), Fault> {
        self.acknowledge(payload.len());
        let Some(place) = self.opened(head.stream)? else { return Ok(()) };
        let content = head.content(payload)?;
        let ends_stream = head.has(flag::END_STREAM);
        let stream = self.streams.at(place);
        if !stream.is_answering {
            return Err(Fault::protocol("the body of an answer before its head"));
        }
        if ends_stream && stream.body.is_none() && content.len() <= MAX_MESSAGE {
            let Stream { id, request, .. } = self.streams.close(place);
            self.sending.forget(id);
            deliver_answer(request, &mut payload[content], deliver);
            return Ok(());
        }
        let counted = payload.len();
        let body = stream.body.get_or_insert_with(Box::default);
        body.counted += counted;
        body.message.extend_from_slice(&payload[content]);
        if body.message.len() > MAX_MESSAGE || body.counted > STREAM_WINDOW {
            let request = stream.request;
            self.reset(place, Reason::CANCEL);
            deliver(Exchange::Refused { request, status: 200 });
        } else if ends_stream {
            self.finish(place, deliver);
        }
        Ok(())
    }

    /// Says that octets have been read, once there are many.
    fn acknowledge(&mut self, octets: usize) {
        self.unacknowledged += octets;
        if self.unacknowledged > CONNECTION_WINDOW / 2 {
            push_number(&mut self.out, kind::WINDOW_UPDATE, 0, self.unacknowledged as u32);
            self.unacknowledged = 0;
        }
    }

    fn continuation(
        &mut self,
        head: Head,
        payload: &[u8],
        deliver: Deliver<'_>,
    ) -> Result<(), Fault> {
        let goes_on = self.unfinished.as_ref().is_some_and(|begun| begun.stream == head.stream);
        let Some(mut begun) = self.unfinished.take().filter(|_| goes_on) else {
            return Err(Fault::protocol("a header block that goes on without a beginning"));
        };
        begun.block.extend_from_slice(payload);
        if begun.block.len() > MAX_BLOCK {
            let reason = Reason::ENHANCE_YOUR_CALM;
            return Err(Fault { reason, what: "a header block without an end" });
        }
        if head.has(flag::END_HEADERS) {
            return self.block(begun.stream, &begun.block, begun.ends_stream, deliver);
        }
        self.unfinished = Some(begun);
        Ok(())
    }

    /// A whole header block: the head of an answer, or what follows its body.
    fn block(
        &mut self,
        stream: u32,
        block: &[u8],
        ends_stream: bool,
        deliver: Deliver<'_>,
    ) -> Result<(), Fault> {
        let fields = headers::read(block, &mut self.table).map_err(|_| Fault {
            reason: Reason::COMPRESSION_ERROR,
            what: "a header block that cannot be read",
        })?;
        let Some(place) = self.opened(stream)? else { return Ok(()) };
        let Stream { request, is_answering, .. } = *self.streams.at(place);
        let refused = |status| Exchange::Refused { request, status };
        let refusal = match fields {
            // Fields after the body, which say nothing about a message.
            Fields { status: None, is_malformed: false, .. } if is_answering && ends_stream => {
                self.finish(place, deliver);
                return Ok(());
            }
            Fields { is_malformed: true, .. } | Fields { status: None, .. } => refused(0),
            _ if is_answering => refused(0),
            // More is to come (RFC 9110, section 15.2).
            Fields { status: Some(100..200), .. } if !ends_stream => return Ok(()),
            Fields { status: Some(200), carries_message: true, .. } if !ends_stream => {
                self.streams.at(place).is_answering = true;
                return Ok(());
            }
            Fields { status: Some(status), .. } => refused(status),
        };
        if ends_stream {
            let stream = self.streams.close(place);
            self.sending.forget(stream.id);
        } else {
            // Whatever follows, nobody wants it.
            self.reset(place, Reason::CANCEL);
        }
        deliver(refusal);
        Ok(())
    }

    fn finish(&mut self, place: Place, deliver: Deliver<'_>) {
        let Stream { id, request, body, .. } = self.streams.close(place);
        self.sending.forget(id);
        let mut message = body.map(|body| body.message).unwrap_or_default();
        deliver_answer(request, &mut message, deliver);
    }

    pub(super) fn reset(&mut self, place: Place, reason: Reason) {
        let stream = self.streams.close(place);
        self.sending.forget(stream.id);
        push_number(&mut self.out, kind::RST_STREAM, stream.id, u32::from(reason));
    }

    fn reset_by_server(
        &mut self,
        head: Head,
        payload: &[u8],
        deliver: Deliver<'_>,
    ) -> Result<(), Fault> {
        let reason = Reason::from(frame::number(payload)?);
        let Some(place) = self.opened(head.stream)? else { return Ok(()) };
        let Stream { id, request, .. } = self.streams.close(place);
        self.sending.forget(id);
        deliver(if reason == Reason::REFUSED_STREAM {
            Exchange::NotProcessed { request }
        } else {
            Exchange::Refused { request, status: 0 }
        });
        Ok(())
    }

    fn settings(&mut self, head: Head, payload: &[u8]) -> Result<(), Fault> {
        if head.stream != 0 {
            return Err(Fault::protocol("settings of a stream"));
        }
        let is_ack = head.has(flag::ACK);
        if !payload.len().is_multiple_of(6) || is_ack && !payload.is_empty() {
            return Err(Fault::size("settings of a wrong size"));
        }
        if is_ack {
            return Ok(());
        }
        if !self.is_greeted {
            self.is_greeted = true;
            // There is no limit unless these settings name one (section 6.5.2).
            self.max_streams = MAX_STREAMS;
        }
        for (name, value) in frame::settings(payload) {
            match name {
                setting::HEADER_TABLE_SIZE => self.requests.limit_table(value),
                setting::ENABLE_PUSH if value > 0 => {
                    return Err(Fault::protocol("a server that wants to be pushed to"));
                }
                setting::MAX_CONCURRENT_STREAMS => {
                    self.max_streams = (value as usize).min(MAX_STREAMS);
                }
                setting::INITIAL_WINDOW_SIZE => self.sending.set_initial(value, &mut self.out)?,
                setting::MAX_FRAME_SIZE if !(1 << 14..1 << 24).contains(&value) => {
                    return Err(Fault::protocol("a size of frames that there is not"));
                }
                _ => {}
            }
        }
        frame::push(&mut self.out, kind::SETTINGS, flag::ACK, 0, &[]);
        Ok(())
    }

    fn go_away(&mut self, head: Head, payload: &[u8], deliver: Deliver<'_>) -> Result<(), Fault> {
        if head.stream != 0 {
            return Err(Fault::protocol("a good-bye on a stream"));
        }
        let Some(([a, b, c, d, reason @ ..], data)) = payload.split_first_chunk::<8>() else {
            return Err(Fault::size("a good-bye of less than eight octets"));
        };
        self.draining = true;
        let reason = Reason::from(u32::from_be_bytes(*reason));
        if reason != Reason::NO_ERROR {
            self.announced = Some(Announced::new(reason, data));
        }
        let last = u32::from_be_bytes([*a, *b, *c, *d]) & LAST_STREAM;
        for stream in self.streams.close_above(last) {
            self.sending.forget(stream.id);
            deliver(Exchange::NotProcessed { request: stream.request });
        }
        Ok(())
    }
}

/// Delivers a whole message, with the request's number as its id. On the wire the id must be zero; otherwise
/// the message is refused.
fn deliver_answer(request: u16, message: &mut [u8], deliver: Deliver<'_>) {
    if is_answer(message) {
        message[..2].copy_from_slice(&request.to_be_bytes());
        deliver(Exchange::Answer { request, message });
    } else {
        deliver(Exchange::Refused { request, status: 200 });
    }
}
