//! The requests that a server has still to answer, and the answers that the clients' windows keep back.

use std::collections::{HashMap, VecDeque};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use h2::SendStream;
use h2::server::SendResponse;
use http::StatusCode;

use super::message::{answer_head, refusal_head};

/// The answers of one connection.
#[derive(Default)]
pub(super) struct Answers {
    /// A request that is never answered keeps its stream open.
    waiting: HashMap<u32, Waiting>,
    /// At so many waiting requests, those that their clients have given up are dropped.
    look_through_at: usize,
    /// Answers for which a client has opened no window, in the order in which they were given.
    unsent: VecDeque<Unsent>,
    /// Octets of memory that these hold.
    unsent_octets: usize,
}

struct Waiting {
    respond: SendResponse<Bytes>,
    /// The method was HEAD, so the answer has no body (RFC 9110, section 9.3.2).
    is_head: bool,
}

struct Unsent {
    stream: SendStream<Bytes>,
    rest: Bytes,
    /// Octets of the whole answer, which stays in memory until the last of them has left.
    length: usize,
}

/// Octets of answers that windows may keep back; beyond them no further requests are handed out.
const MAX_UNSENT: usize = 256 * 1024;

/// Octets of memory for a stream without its messages: what `h2` knows of it, and our own entry.
pub(super) const STREAM: usize = 1024;

/// Requests that were given up are dropped when the waiting ones have doubled, but not below so many.
const FEWEST_LOOKED_THROUGH: usize = 64;

impl Answers {
    /// Takes note of a request. Those that their clients gave up are dropped now and then: a client that
    /// opens and resets streams would otherwise fill the memory.
    pub(super) fn wait(&mut self, respond: SendResponse<Bytes>, is_head: bool) {
        if self.waiting.len() >= self.look_through_at.max(FEWEST_LOOKED_THROUGH) {
            let context = &mut Context::from_waker(Waker::noop());
            self.waiting.retain(|_, waiting| waiting.respond.poll_reset(context).is_pending());
            self.look_through_at = self.waiting.len() * 2;
        }
        let id = respond.stream_id().as_u32();
        self.waiting.insert(id, Waiting { respond, is_head });
    }

    /// True if this request waits for its answer. If its client has given it up, it is forgotten.
    pub(super) fn is_wanted(&mut self, id: u32, context: &mut Context<'_>) -> bool {
        let Some(waiting) = self.waiting.get_mut(&id) else { return false };
        let is_wanted = waiting.respond.poll_reset(context).is_pending();
        if !is_wanted {
            self.waiting.remove(&id);
        }
        is_wanted
    }

    pub(super) fn are_awaited(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// True if the client must open its windows before more is answered.
    pub(super) fn are_kept_back(&self) -> bool {
        self.unsent_octets >= MAX_UNSENT
    }

    /// Octets of memory of the answers that are kept back, and of all streams that are known here.
    pub(super) fn memory(&self) -> usize {
        self.unsent_octets + (self.waiting.len() + self.unsent.len()) * STREAM
    }

    /// Answers a request; false if its client does not wait any more.
    pub(super) fn answer(&mut self, id: u32, message: &[u8]) -> bool {
        let Some(Waiting { mut respond, is_head }) = self.waiting.remove(&id) else { return false };
        let Ok(mut stream) = respond.send_response(answer_head(message), is_head) else {
            return false;
        };
        if is_head {
            return true;
        }
        stream.reserve_capacity(message.len());
        let rest = Bytes::copy_from_slice(message);
        if stream.capacity() >= message.len() {
            return stream.send_data(rest, true).is_ok();
        }
        let length = rest.len();
        self.unsent_octets += length;
        self.unsent.push_back(Unsent { stream, rest, length });
        true
    }

    pub(super) fn refuse(&mut self, id: u32, status: StatusCode) {
        if let Some(mut waiting) = self.waiting.remove(&id) {
            refuse(&mut waiting.respond, status);
        }
    }

    /// Sends what the windows allow now; true if that leaves something to be written.
    pub(super) fn resume(&mut self, context: &mut Context<'_>) -> bool {
        if self.unsent.is_empty() {
            return false;
        }
        let (mut octets, mut moved) = (0, false);
        self.unsent.retain_mut(|unsent| {
            let is_kept = unsent.resume(context, &mut moved);
            octets += if is_kept { unsent.length } else { 0 };
            is_kept
        });
        self.unsent_octets = octets;
        moved
    }
}

impl Unsent {
    /// Sends what the window allows; false if nothing is left to be sent, or nobody waits for it.
    fn resume(&mut self, context: &mut Context<'_>, moved: &mut bool) -> bool {
        let room = self.stream.capacity().min(self.rest.len());
        if room == 0 {
            return matches!(self.stream.poll_reset(context), Poll::Pending);
        }
        *moved = true;
        let part = self.rest.split_to(room);
        let is_last = self.rest.is_empty();
        self.stream.send_data(part, is_last).is_ok() && !is_last
    }
}

/// Refuses a request. That fails when the client does not wait any more: nobody is left to tell.
pub(super) fn refuse(respond: &mut SendResponse<Bytes>, status: StatusCode) {
    let _ = respond.send_response(refusal_head(status), true);
}
