//! How much we may send (RFC 9113, section 5.2), and the bodies that wait for it.

use std::collections::VecDeque;

use super::frame::{Fault, HEAD, MAX_PAYLOAD, MAX_WINDOW, flag, head, kind};

/// What both sides begin with (section 6.9.2), octets.
const FIRST_WINDOW: i64 = 65_535;

/// The windows that the server gives us.
#[derive(Debug)]
pub(super) struct Sending {
    /// What may be sent on the whole connection, octets.
    connection: i64,
    /// What may be sent on a new stream, octets.
    initial: i64,
    /// Bodies that were not sent whole, oldest first.
    waiting: VecDeque<Unsent>,
}

#[derive(Debug)]
struct Unsent {
    stream: u32,
    rest: Vec<u8>,
    /// What may be sent on its stream, octets; below 0 after a change of settings.
    window: i64,
}

impl Default for Sending {
    fn default() -> Self {
        Self { connection: FIRST_WINDOW, initial: FIRST_WINDOW, waiting: VecDeque::new() }
    }
}

impl Sending {
    /// Appends the body of a request to `out`: a message, whose id is written as zero. What the windows do
    /// not take waits.
    pub(super) fn push(&mut self, stream: u32, message: &[u8], out: &mut Vec<u8>) {
        let length = message.len() as i64;
        let fits = length <= self.initial.min(self.connection).min(MAX_PAYLOAD as i64);
        if fits && self.waiting.is_empty() {
            self.connection -= length;
            out.extend_from_slice(&head(message.len(), kind::DATA, flag::END_STREAM, stream));
            push_without_id(message, out);
            return;
        }
        let mut rest = Vec::with_capacity(message.len());
        push_without_id(message, &mut rest);
        self.waiting.push_back(Unsent { stream, rest, window: self.initial });
        self.pump(out);
    }

    /// Sends as much as it may of what waits.
    fn pump(&mut self, out: &mut Vec<u8>) {
        for unsent in &mut self.waiting {
            while !unsent.rest.is_empty() {
                let may = self.connection.min(unsent.window).min(MAX_PAYLOAD as i64);
                if may <= 0 {
                    break;
                }
                let count = unsent.rest.len().min(may as usize);
                let flags = if count == unsent.rest.len() { flag::END_STREAM } else { 0 };
                out.reserve(HEAD + count);
                out.extend_from_slice(&head(count, kind::DATA, flags, unsent.stream));
                out.extend(unsent.rest.drain(..count));
                unsent.window -= count as i64;
                self.connection -= count as i64;
            }
        }
        self.waiting.retain(|unsent| !unsent.rest.is_empty());
    }

    /// A stream is over; what waits for it is not sent.
    pub(super) fn forget(&mut self, stream: u32) {
        if !self.waiting.is_empty() {
            self.waiting.retain(|unsent| unsent.stream != stream);
        }
    }

    /// The server has made a window larger (section 6.9). Fails if by nothing, or beyond [`MAX_WINDOW`].
    pub(super) fn widen(&mut self, stream: u32, by: u32, out: &mut Vec<u8>) -> Result<(), Fault> {
        let by = i64::from(by & 0x7fff_ffff);
        if by == 0 {
            return Err(Fault::protocol("a window that grows by nothing"));
        }
        let window = if stream == 0 {
            &mut self.connection
        } else {
            match self.waiting.iter_mut().find(|unsent| unsent.stream == stream) {
                Some(unsent) => &mut unsent.window,
                // Nothing is left to be sent on this stream.
                None => return Ok(()),
            }
        };
        *window += by;
        if *window > MAX_WINDOW {
            return Err(Fault::flow_control("a window that is larger than one may be"));
        }
        self.pump(out);
        Ok(())
    }

    /// The server has changed the window of new streams, and by as much that of open ones (section 6.9.2).
    /// Fails if it is larger than a window may be.
    pub(super) fn set_initial(&mut self, size: u32, out: &mut Vec<u8>) -> Result<(), Fault> {
        let size = i64::from(size);
        if size > MAX_WINDOW {
            return Err(Fault::flow_control("an initial window that is larger than one may be"));
        }
        let by = size - self.initial;
        self.initial = size;
        self.waiting.iter_mut().for_each(|unsent| unsent.window += by);
        self.pump(out);
        Ok(())
    }
}

/// Appends a message with an id of zero.
fn push_without_id(message: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&[0, 0][..message.len().min(2)]);
    out.extend_from_slice(message.get(2..).unwrap_or_default());
}
