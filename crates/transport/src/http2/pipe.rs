//! The octets between `h2` and whoever has the socket.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A stream of octets in memory. `h2` owns one copy and reads and writes; the other copy feeds and empties
/// it. Not for use in several threads.
#[derive(Clone, Default)]
pub(super) struct Pipe(Rc<RefCell<Ends>>);

#[derive(Default)]
struct Ends {
    incoming: Vec<u8>,
    /// How many of them `h2` has read.
    read: usize,
    /// The other side will send nothing more.
    ended: bool,
    outgoing: Vec<u8>,
}

impl Pipe {
    pub(super) fn receive(&self, octets: &[u8]) {
        let mut ends = self.0.borrow_mut();
        if ends.read == ends.incoming.len() {
            ends.incoming.clear();
            ends.read = 0;
        }
        ends.incoming.extend_from_slice(octets);
    }

    /// The other side has sent its last octet.
    pub(super) fn end(&self) {
        self.0.borrow_mut().ended = true;
    }

    pub(super) fn memory(&self) -> usize {
        let ends = self.0.borrow();
        ends.incoming.capacity() + ends.outgoing.capacity()
    }

    /// Lets `poll` write to the end of `out` without a copy, and frees the memory of what was read.
    pub(super) fn while_writing_to<T>(&self, out: &mut Vec<u8>, poll: impl FnOnce() -> T) -> T {
        {
            let mut ends = self.0.borrow_mut();
            // What was written before, the preface of a client.
            out.append(&mut ends.outgoing);
            std::mem::swap(&mut ends.outgoing, out);
        }
        let result = poll();
        let mut ends = self.0.borrow_mut();
        std::mem::swap(&mut ends.outgoing, out);
        if ends.read == ends.incoming.len() {
            // A connection that rests holds no memory.
            (ends.incoming, ends.read) = (Vec::new(), 0);
        }
        result
    }
}

impl AsyncRead for Pipe {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut ends = self.0.borrow_mut();
        let waiting = &ends.incoming[ends.read..];
        if waiting.is_empty() && !ends.ended {
            return Poll::Pending;
        }
        let count = waiting.len().min(into.remaining());
        into.put_slice(&waiting[..count]);
        ends.read += count;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        octets: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.borrow_mut().outgoing.extend_from_slice(octets);
        Poll::Ready(Ok(octets.len()))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut ends = self.0.borrow_mut();
        let before = ends.outgoing.len();
        parts.iter().for_each(|part| ends.outgoing.extend_from_slice(part));
        Poll::Ready(Ok(ends.outgoing.len() - before))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
