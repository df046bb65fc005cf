//! A part of a stream of octets in memory.

use std::io::{self, BufRead, Read};

/// The octets of a reader that are looked at now, in one piece, and where in the stream they are.
///
/// What was consumed stays in the buffer until more is read.
#[derive(Debug)]
pub(crate) struct Window<R> {
    reader: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Octets of the stream before `start`.
    offset: u64,
    state: State,
    /// The error of the reader, while a decoder above carries another one in its place.
    failure: Option<io::Error>,
    asked_beyond_end: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    Ended,
    /// The reader said that octets are missing at its end.
    Cut,
}

impl<R: Read> Window<R> {
    /// A window that reads at most `capacity` octets at once, as long as nobody needs more in one piece.
    pub(crate) fn new(reader: R, capacity: usize) -> Self {
        Self {
            reader,
            buffer: vec![0; capacity],
            start: 0,
            end: 0,
            offset: 0,
            state: State::Open,
            failure: None,
            asked_beyond_end: false,
        }
    }

    /// The octets that are there.
    #[inline]
    pub(crate) fn data(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// The place of the next octet in [`Window::buffer`].
    #[inline]
    pub(crate) fn start(&self) -> usize {
        self.start
    }

    /// All octets in memory, also those consumed since the last reading.
    #[inline]
    pub(crate) fn buffer(&self) -> &[u8] {
        &self.buffer
    }

    /// The place of the next octet in the stream.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// True if the stream ended before its own end, as far as the reader knows.
    pub(crate) fn is_cut(&self) -> bool {
        self.state == State::Cut
    }

    /// Waits until `count` octets are there; false if the stream ends before.
    #[inline]
    pub(crate) fn fill(&mut self, count: usize) -> io::Result<bool> {
        if self.end - self.start >= count { Ok(true) } else { self.fill_more(count) }
    }

    #[cold]
    fn fill_more(&mut self, count: usize) -> io::Result<bool> {
        if self.buffer.len() - self.start < count {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
            if self.buffer.len() < count {
                self.buffer.resize(count, 0);
            }
        }
        while self.end - self.start < count {
            let read = self.read_some(self.end)?;
            if read == 0 {
                return Ok(false);
            }
            self.end += read;
        }
        Ok(true)
    }

    fn read_some(&mut self, at: usize) -> io::Result<usize> {
        if self.state != State::Open {
            return Ok(0);
        }
        loop {
            match self.reader.read(&mut self.buffer[at..]) {
                Ok(0) => self.state = State::Ended,
                Ok(read) => return Ok(read),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    self.state = State::Cut;
                }
                Err(error) => return Err(error),
            }
            return Ok(0);
        }
    }

    /// Goes on by `count` octets that are there.
    #[inline]
    pub(crate) fn consume(&mut self, count: usize) {
        debug_assert!(count <= self.end - self.start);
        self.start += count;
        self.offset += count as u64;
    }

    /// Goes on by `count` octets that need not be in memory; false if the stream ends before.
    pub(crate) fn skip(&mut self, mut count: u64) -> io::Result<bool> {
        loop {
            let there = (self.end - self.start).min(usize::try_from(count).unwrap_or(usize::MAX));
            self.consume(there);
            count -= there as u64;
            if count == 0 {
                return Ok(true);
            }
            if !self.fill(1)? {
                return Ok(false);
            }
        }
    }

    /// True if a decoder asked for more octets than there are.
    pub(crate) fn was_asked_beyond_end(&self) -> bool {
        self.asked_beyond_end
    }

    /// The error that made a decoder fail, if the reader had one.
    pub(crate) fn take_failure(&mut self) -> Option<io::Error> {
        self.failure.take()
    }

    /// Keeps the error and makes another of the same kind, for a decoder that may wrap it.
    fn keep(&mut self, error: io::Error) -> io::Error {
        let kind = error.kind();
        self.failure = Some(error);
        kind.into()
    }
}

/// For decoders.
impl<R: Read> BufRead for Window<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match self.fill(1) {
            Ok(is_there) => self.asked_beyond_end |= !is_there,
            Err(error) => return Err(self.keep(error)),
        }
        Ok(self.data())
    }

    fn consume(&mut self, count: usize) {
        Window::consume(self, count);
    }
}

impl<R: Read> Read for Window<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let there = self.fill_buf()?;
        let count = there.len().min(to.len());
        to[..count].copy_from_slice(&there[..count]);
        Window::consume(self, count);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A reader that gives one to three octets at a time, and is interrupted in between.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            self.1 += 1;
            if self.1.is_multiple_of(4) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let count = (1 + self.1 % 3).min(to.len()).min(self.0.len());
            self.0.read(&mut to[..count])
        }
    }

    proptest! {
        #[test]
        fn octets_come_in_order_whatever_is_asked(
            octets in prop::collection::vec(any::<u8>(), 0..400),
            steps in prop::collection::vec((0usize..40, any::<bool>()), 1..40),
            capacity in 1usize..20,
        ) {
            let mut window = Window::new(Slow(&octets, 0), capacity);
            let mut at = 0;
            for (count, is_skipped) in steps {
                prop_assert_eq!(window.offset(), at as u64);
                let is_there = at + count <= octets.len();
                if is_skipped {
                    prop_assert_eq!(window.skip(count as u64).unwrap(), is_there);
                    at = (at + count).min(octets.len());
                } else {
                    prop_assert_eq!(window.fill(count).unwrap(), is_there);
                    let until = (at + count).min(octets.len());
                    prop_assert_eq!(&window.data()[..until - at], &octets[at..until]);
                    if is_there {
                        window.consume(count);
                        at += count;
                    }
                }
            }
        }
    }
}
