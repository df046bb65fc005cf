//! Answers on their way to the socket, and where each of them ends.

use dnslab_wire::Transport;

/// A client with more unread answer octets is not read from until it has read them.
pub(super) const BACKLOG: usize = 256 * 1024;

pub(super) struct Unwritten {
    octets: Vec<u8>,
    /// How many have been written.
    written: usize,
    /// Where the current TLS record ends.
    record_end: usize,
    records: Records,
}

/// What a TLS record holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Records {
    /// Whatever there is, as much as a record holds.
    Packed,
    /// One message with its length (RFC 7858, section 3.3).
    Message,
    /// What comes before the end of a stream, and that end: one response (RFC 9113, section 8.1).
    Response,
}

/// Octets of the head of an HTTP/2 frame (RFC 9113, section 4.1).
const FRAME_HEAD: usize = 9;

impl Unwritten {
    /// `packs` lets several answers share a TLS record.
    pub(super) fn new(transport: Transport, packs: bool) -> Self {
        let records = match transport {
            _ if packs => Records::Packed,
            Transport::Dot => Records::Message,
            Transport::Doh2 => Records::Response,
            Transport::Udp | Transport::Tcp | Transport::Doq | Transport::Doh3 => Records::Packed,
        };
        Self { octets: Vec::new(), written: 0, record_end: 0, records }
    }

    /// For whole messages with their lengths, or whole frames.
    pub(super) fn octets_mut(&mut self) -> &mut Vec<u8> {
        &mut self.octets
    }

    pub(super) fn len(&self) -> usize {
        self.octets.len() - self.written
    }

    pub(super) fn memory(&self) -> usize {
        self.octets.capacity()
    }

    /// Frees memory that is only kept for later.
    pub(super) fn release(&mut self) {
        if self.is_empty() {
            self.octets = Vec::new();
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn all(&self) -> &[u8] {
        &self.octets[self.written..]
    }

    /// The rest of the current record, or the next one.
    pub(super) fn record(&mut self) -> &[u8] {
        if self.record_end <= self.written {
            let rest = &self.octets[self.written..];
            self.record_end = self.written + self.records.first(rest).unwrap_or(rest.len());
        }
        &self.octets[self.written..self.record_end]
    }

    pub(super) fn advance(&mut self, count: usize) {
        self.written += count;
        if self.is_empty() {
            self.octets.clear();
            (self.written, self.record_end) = (0, 0);
            // One burst must not keep its memory for the connection's life.
            self.octets.shrink_to(BACKLOG);
        } else if self.written >= BACKLOG {
            self.octets.drain(..self.written);
            self.record_end = self.record_end.saturating_sub(self.written);
            self.written = 0;
        }
    }
}

impl Records {
    /// Length of the first record; `None` if all octets are in one.
    fn first(self, octets: &[u8]) -> Option<usize> {
        match self {
            Self::Packed => None,
            Self::Message => {
                let length = octets.first_chunk().map(|length| u16::from_be_bytes(*length))?;
                Some(octets.len().min(2 + usize::from(length)))
            }
            Self::Response => {
                let mut end = 0;
                while let Some(head) = octets[end..].first_chunk::<FRAME_HEAD>() {
                    let [a, b, c, kind, flags, ..] = *head;
                    end += FRAME_HEAD + u32::from_be_bytes([0, a, b, c]) as usize;
                    if end >= octets.len() {
                        return None;
                    }
                    // DATA and HEADERS, with END_STREAM (RFC 9113, sections 6.1 and 6.2).
                    if kind <= 1 && flags & 1 != 0 {
                        return Some(end);
                    }
                }
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use dnslab_wire::push_frame;

    use super::*;

    /// Lengths of the records in which these octets leave, `most` octets at a time.
    fn records(transport: Transport, packs: bool, octets: &[u8], most: usize) -> Vec<usize> {
        let mut unwritten = Unwritten::new(transport, packs);
        unwritten.octets_mut().extend_from_slice(octets);
        let (mut lengths, mut left) = (Vec::new(), Vec::new());
        while !unwritten.is_empty() {
            let is_new = unwritten.record_end <= unwritten.written;
            let record = unwritten.record();
            let count = record.len().min(most);
            left.extend_from_slice(&record[..count]);
            if is_new {
                lengths.push(record.len());
            }
            unwritten.advance(count);
        }
        assert_eq!(left, octets);
        lengths
    }

    #[test]
    fn each_answer_has_a_record() {
        let mut messages = Vec::new();
        for length in [0, 1, 300, 65_535, 7] {
            push_frame(&mut messages, &vec![1; length]);
        }
        let mut frames = Vec::new();
        // SETTINGS; HEADERS and DATA of two streams; HEADERS alone; PING.
        for (length, kind, flags) in
            [(6, 4, 0), (9, 1, 4), (9, 1, 4), (40, 0, 1), (16_384, 0, 1), (3, 1, 5), (8, 6, 1)]
        {
            frames.extend_from_slice(&[
                0,
                (length >> 8) as u8,
                length as u8,
                kind,
                flags,
                0,
                0,
                0,
                1,
            ]);
            frames.extend(std::iter::repeat_n(0, length));
        }
        for most in [1, 7, 1000, 100_000] {
            let lengths = |transport, packs, octets| records(transport, packs, octets, most);
            assert_eq!(lengths(Transport::Dot, false, &messages), [2, 3, 302, 65_537, 9]);
            assert_eq!(lengths(Transport::Doh2, false, &frames), [100, 16_393, 12, 17]);
        }
        let all = |transport, packs, octets: &[u8]| {
            assert_eq!(records(transport, packs, octets, usize::MAX), [octets.len()]);
        };
        all(Transport::Dot, true, &messages);
        all(Transport::Doh2, true, &frames);
        all(Transport::Tcp, false, &messages);
    }
}
