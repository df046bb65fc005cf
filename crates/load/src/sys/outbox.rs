//! Messages to send as one batch.

/// Messages in one batch at most. More gains nothing: the kernel cuts one datagram into 128 at most
/// (`UDP_MAX_SEGMENTS` in `include/linux/udp.h`).
pub(crate) const BATCH: usize = 128;

/// Octets of a run at most. A group of segments is one datagram on its way to where it is cut, and
/// those have at most 65,507 octets (RFC 768 and RFC 791).
const MAX_RUN: usize = 60_000;

/// Messages end to end in one buffer.
#[derive(Default)]
pub(crate) struct Outbox {
    octets: Vec<u8>,
    ends: Vec<u32>,
}

/// Neighbours of one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run<'a> {
    /// The messages end to end.
    pub(super) octets: &'a [u8],
    /// How many.
    pub(super) count: usize,
    /// Length of each, octets.
    pub(super) length: usize,
}

impl Outbox {
    /// Forgets the messages.
    pub(crate) fn clear(&mut self) {
        self.octets.clear();
        self.ends.clear();
    }

    /// Adds the message that `write` appends to the buffer.
    #[inline]
    pub(crate) fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.octets);
        self.ends.push(self.octets.len() as u32);
    }

    /// How many messages.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The lengths of the messages in order, octets.
    pub(crate) fn lengths(&self) -> impl Iterator<Item = usize> {
        (0..self.len()).map(|number| self.end(number) - self.start(number))
    }

    /// The messages in order.
    pub(crate) fn messages(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|number| &self.octets[self.start(number)..self.end(number)])
    }

    /// The messages from number `first` on, neighbours of one length together, at most `longest` in
    /// a run.
    pub(super) fn runs(&self, first: usize, longest: usize) -> impl Iterator<Item = Run<'_>> {
        let mut next = first;
        std::iter::from_fn(move || {
            if next >= self.len() {
                return None;
            }
            let (from, length) = (next, self.end(next) - self.start(next));
            while next < self.len()
                && next - from < longest
                && (next - from + 1) * length <= MAX_RUN.max(length)
                && self.end(next) - self.start(next) == length
            {
                next += 1;
            }
            let octets = &self.octets[self.start(from)..self.end(next - 1)];
            Some(Run { octets, count: next - from, length })
        })
    }

    fn start(&self, number: usize) -> usize {
        number.checked_sub(1).map_or(0, |before| self.end(before))
    }

    fn end(&self, number: usize) -> usize {
        self.ends[number] as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_of_one_length_are_together() {
        let mut outbox = Outbox::default();
        for length in [12, 12, 12, 15, 12, 12] {
            outbox.push_with(|octets| octets.resize(octets.len() + length, 9));
        }
        let runs = |first, longest| -> Vec<(usize, usize)> {
            outbox.runs(first, longest).map(|run| (run.count, run.length)).collect()
        };
        assert_eq!(runs(0, 64), [(3, 12), (1, 15), (2, 12)]);
        assert_eq!(runs(1, 64), [(2, 12), (1, 15), (2, 12)]);
        assert_eq!(runs(0, 2), [(2, 12), (1, 12), (1, 15), (2, 12)]);
        assert_eq!(runs(6, 64), []);
        let mut large = Outbox::default();
        for _ in 0..100 {
            large.push_with(|octets| octets.resize(octets.len() + 1_232, 9));
        }
        let counts: Vec<usize> = large.runs(0, 128).map(|run| run.count).collect();
        assert_eq!(counts, [48, 48, 4]);
        assert_eq!(outbox.messages().map(<[u8]>::len).sum::<usize>(), 75);
        assert_eq!(outbox.runs(4, 64).next().unwrap().octets[..3], [9, 9, 9]);
    }
}
