//! Octets that are not answered yet.

use dnslab_wire::FrameReader;

/// A [`FrameReader`] that knows how much memory it has.
#[derive(Default)]
pub(super) struct Input {
    reader: FrameReader,
    /// Octets of its buffer.
    size: usize,
    /// Octets of messages that were not handed out.
    pending: usize,
}

impl Input {
    pub(super) fn space(&mut self) -> &mut [u8] {
        let space = self.reader.space();
        self.size = self.size.max(self.pending + space.len());
        space
    }

    pub(super) fn filled(&mut self, count: usize) {
        self.reader.filled(count);
        self.pending += count;
    }

    pub(super) fn widen(&mut self) {
        self.reader.widen();
        self.size = self.size.max(self.reader.space().len());
    }

    pub(super) fn next_frame(&mut self) -> Option<&[u8]> {
        let frame = self.reader.next_frame()?;
        self.pending -= PREFIX + frame.len();
        Some(frame)
    }

    pub(super) fn memory(&self) -> usize {
        self.size
    }

    /// Frees memory that is only kept for later.
    pub(super) fn release(&mut self) {
        if self.pending == 0 {
            *self = Self::default();
        }
    }
}

/// Octets of the length before a message (RFC 1035, section 4.2.2).
const PREFIX: usize = 2;

#[cfg(test)]
mod tests {
    use dnslab_wire::push_frame;

    use super::*;

    fn fill(input: &mut Input, mut octets: &[u8]) {
        while !octets.is_empty() {
            let space = input.space();
            let count = space.len().min(octets.len());
            space[..count].copy_from_slice(&octets[..count]);
            input.filled(count);
            octets = &octets[count..];
        }
    }

    #[test]
    fn memory_is_counted_and_given_back() {
        let (mut input, mut frames) = (Input::default(), Vec::new());
        assert_eq!(input.memory(), 0);
        push_frame(&mut frames, b"some query");
        push_frame(&mut frames, &[7; 20_000]);
        let (most, last) = frames.split_at(frames.len() - 1);
        fill(&mut input, most);
        assert_eq!(input.memory(), 32 * 1024);
        assert_eq!(input.next_frame().unwrap(), b"some query");
        assert_eq!(input.next_frame(), None);
        input.release();
        fill(&mut input, last);
        assert_eq!(input.next_frame().unwrap(), [7; 20_000]);
        input.widen();
        assert_eq!(input.memory(), 65_537);
        input.release();
        assert_eq!(input.memory(), 0);
    }
}
