//! Length prefixes (RFC 1035, section 4.2.2; RFC 7766, section 8), also over nothing: plain TCP.

use dnslab_wire::MessageBatch;
use dnslab_wire::{Frames, push_frame};

use super::stream::{BATCH, Layer};
use super::{ConnectionEnd, Delivery, Handshake, Received};
use crate::time::Nanos;

/// What lies below the length prefixes.
pub(crate) trait Below {
    /// Octets pass unchanged in both directions.
    const IS_NOTHING: bool;

    /// How a batch travels, for the record.
    fn send_path(&self) -> &'static str;

    /// See [`Layer::begin`].
    fn begin(&mut self, write: &mut Vec<u8>);

    /// See [`Layer::is_established`].
    fn is_established(&self) -> bool;

    /// See [`Layer::may_send`].
    fn may_send(&self) -> bool;

    /// Appends the octets that carry `plain`, which are whole messages with their prefixes, to `write`.
    fn seal(&mut self, plain: &[u8], write: &mut Vec<u8>) -> Result<(), ConnectionEnd>;

    /// Appends what `read` carries to `plain`, and what must go out in return to `write`.
    fn open(
        &mut self,
        read: &[u8],
        plain: &mut Vec<u8>,
        write: &mut Vec<u8>,
    ) -> Result<(), ConnectionEnd>;

    /// See [`Layer::close`].
    fn close(&mut self, write: &mut Vec<u8>);

    /// See [`Layer::handshake`].
    fn handshake(&self, duration: Nanos) -> Option<Handshake>;
}

pub(crate) struct Framed<B> {
    below: B,
    /// The beginning of a message whose rest has not come yet: at most 65,537 octets. Usually empty and
    /// without memory.
    partial: Vec<u8>,
}

impl<B> Framed<B> {
    pub(super) fn over(below: B) -> Self {
        Self { below, partial: Vec::new() }
    }

    /// Delivers the whole messages among `octets`, and keeps the rest.
    fn cut(&mut self, octets: &[u8], at: Nanos, deliver: &mut dyn FnMut(Delivery<'_>)) {
        let mut frames = Frames::new(octets);
        for octets in frames.by_ref() {
            deliver(Delivery::Message(Received { octets, at }));
        }
        self.partial = frames.rest().to_vec();
    }
}

impl<B: Below> Layer for Framed<B> {
    fn send_path(&self) -> &'static str {
        self.below.send_path()
    }

    fn begin(&mut self, write: &mut Vec<u8>) {
        self.below.begin(write);
    }

    fn is_established(&self) -> bool {
        self.below.is_established()
    }

    fn may_send(&self) -> bool {
        self.below.may_send()
    }

    fn batch_limit(&self) -> usize {
        BATCH
    }

    fn seal(
        &mut self,
        outbox: &MessageBatch,
        plain: &mut Vec<u8>,
        write: &mut Vec<u8>,
    ) -> Result<usize, ConnectionEnd> {
        let framed = if B::IS_NOTHING { &mut *write } else { &mut *plain };
        for message in outbox.messages() {
            push_frame(framed, message);
        }
        if !B::IS_NOTHING {
            self.below.seal(plain, write)?;
        }
        Ok(outbox.len())
    }

    fn open(
        &mut self,
        read: &[u8],
        at: Nanos,
        plain: &mut Vec<u8>,
        write: &mut Vec<u8>,
        deliver: &mut dyn FnMut(Delivery<'_>),
    ) -> Result<(), ConnectionEnd> {
        if B::IS_NOTHING && self.partial.is_empty() {
            self.cut(read, at, deliver);
            return Ok(());
        }
        plain.append(&mut self.partial);
        let opened = self.below.open(read, plain, write);
        self.cut(plain, at, deliver);
        opened
    }

    fn close(&mut self, _: &mut Vec<u8>, write: &mut Vec<u8>) {
        self.below.close(write);
    }

    fn handshake(&self, duration: Nanos) -> Option<Handshake> {
        self.below.handshake(duration)
    }
}

/// Nothing below the length prefixes: plain TCP (RFC 7766).
pub(crate) struct Nothing;

impl Below for Nothing {
    const IS_NOTHING: bool = true;

    fn send_path(&self) -> &'static str {
        "one write per batch; a connection per client"
    }

    fn begin(&mut self, _: &mut Vec<u8>) {}

    fn is_established(&self) -> bool {
        true
    }

    fn may_send(&self) -> bool {
        true
    }

    fn seal(&mut self, plain: &[u8], write: &mut Vec<u8>) -> Result<(), ConnectionEnd> {
        write.extend_from_slice(plain);
        Ok(())
    }

    fn open(
        &mut self,
        read: &[u8],
        plain: &mut Vec<u8>,
        _: &mut Vec<u8>,
    ) -> Result<(), ConnectionEnd> {
        plain.extend_from_slice(read);
        Ok(())
    }

    fn close(&mut self, _: &mut Vec<u8>) {}

    fn handshake(&self, _: Nanos) -> Option<Handshake> {
        None
    }
}
