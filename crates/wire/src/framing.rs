//! The two-octet length prefix of stream transports (RFC 1035, section 4.2.2; RFC 7766, section 8).

/// Appends `message` with its length prefix to `stream`.
///
/// # Panics
/// When the message is longer than 65,535 octets.
pub fn push_frame(stream: &mut Vec<u8>, message: &[u8]) {
    let length = u16::try_from(message.len()).expect("a DNS message fits in 65,535 octets");
    stream.extend_from_slice(&length.to_be_bytes());
    stream.extend_from_slice(message);
}

/// The whole messages at the start of some octets of a stream, in order, without their prefixes.
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    rest: &'a [u8],
}

impl<'a> Frames<'a> {
    /// Cuts `octets`, which begin with a length prefix.
    #[must_use]
    pub fn new(octets: &'a [u8]) -> Self {
        Self { rest: octets }
    }

    /// The octets behind the messages taken so far; at the end, the start of a message that is not whole yet.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let (prefix, rest) = self.rest.split_first_chunk::<2>()?;
        let (message, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*prefix)))?;
        self.rest = rest;
        Some(message)
    }
}

/// Cuts a stream of octets into messages, in place.
///
/// Read octets from the network straight into [`FrameReader::space`]. The buffer grows only when one message
/// is larger than what it holds, up to 65,537 octets.
#[derive(Debug, Default)]
pub struct FrameReader {
    buffer: Vec<u8>,
    /// First octet not yet handed out.
    start: usize,
    /// First octet not yet filled.
    end: usize,
}

const FIRST_CAPACITY: usize = 4 * 1024;

const MAX_FRAME: usize = 2 + u16::MAX as usize;

impl FrameReader {
    /// Room for more octets, never empty. Call [`FrameReader::filled`] with how many were written.
    pub fn space(&mut self) -> &mut [u8] {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
        if self.buffer.is_empty() {
            self.buffer.resize(FIRST_CAPACITY, 0);
        }
        if self.end == self.buffer.len() && self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.end == self.buffer.len() {
            let larger = (self.buffer.len() * 2).max(FIRST_CAPACITY);
            self.buffer.resize(larger, 0);
        }
        &mut self.buffer[self.end..]
    }

    /// Notes that the first `count` octets of the space were written.
    ///
    /// # Panics
    /// When the space is smaller.
    pub fn filled(&mut self, count: usize) {
        assert!(count <= self.buffer.len() - self.end, "more octets than there was space for");
        self.end += count;
    }

    /// Grows the buffer to the longest frame, for connections that carry many.
    pub fn widen(&mut self) {
        let wanted = MAX_FRAME.max(self.buffer.len());
        self.buffer.resize(wanted, 0);
    }

    /// The next whole message without its prefix, if there is one.
    pub fn next_frame(&mut self) -> Option<&[u8]> {
        let pending = &self.buffer[self.start..self.end];
        let length = usize::from(u16::from_be_bytes([*pending.first()?, *pending.get(1)?]));
        if pending.len() < 2 + length {
            return None;
        }
        let from = self.start + 2;
        self.start = from + length;
        Some(&self.buffer[from..from + length])
    }

    /// Octets of memory that the reader holds.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.buffer.len()
    }

    /// Frees memory that is only kept for later.
    pub fn release(&mut self) {
        if self.start == self.end {
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fill(reader: &mut FrameReader, mut octets: &[u8]) {
        while !octets.is_empty() {
            let space = reader.space();
            let count = space.len().min(octets.len());
            space[..count].copy_from_slice(&octets[..count]);
            reader.filled(count);
            octets = &octets[count..];
        }
    }

    #[test]
    fn memory_is_counted_and_given_back() {
        let (mut reader, mut frames) = (FrameReader::default(), Vec::new());
        assert_eq!(reader.memory(), 0);
        push_frame(&mut frames, b"some query");
        push_frame(&mut frames, &[7; 20_000]);
        let (most, last) = frames.split_at(frames.len() - 1);
        fill(&mut reader, most);
        assert_eq!(reader.memory(), 32 * 1024);
        assert_eq!(reader.next_frame().unwrap(), b"some query");
        assert_eq!(reader.next_frame(), None);
        reader.release();
        fill(&mut reader, last);
        assert_eq!(reader.next_frame().unwrap(), [7; 20_000]);
        reader.widen();
        assert_eq!(reader.memory(), 65_537);
        reader.release();
        assert_eq!(reader.memory(), 0);
    }

    proptest! {
        #[test]
        fn any_cut_gives_the_same_messages(
            messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..3000), 0..20),
            cuts in prop::collection::vec(1usize..5000, 1..50),
        ) {
            let mut stream = Vec::new();
            for message in &messages {
                push_frame(&mut stream, message);
            }
            let mut reader = FrameReader::default();
            let (mut seen, mut rest, mut cuts) = (Vec::new(), stream.as_slice(), cuts.iter().cycle());
            while !rest.is_empty() {
                let (part, behind) = rest.split_at((*cuts.next().unwrap()).min(rest.len()));
                fill(&mut reader, part);
                rest = behind;
                while let Some(message) = reader.next_frame() {
                    seen.push(message.to_vec());
                }
            }
            prop_assert_eq!(seen, messages);
        }
    }
}
