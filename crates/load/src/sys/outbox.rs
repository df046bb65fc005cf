//! Messages to send as one batch.

/// Messages in one batch at most. More gains nothing (measured: 32 and 64 are alike), would delay
/// the first of the batch, and 64 segments are what older kernels cut one datagram into at most.
pub(crate) const BATCH: usize = 64;

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

    /// Adds a message with its first two octets, the id, replaced.
    #[inline]
    pub(crate) fn push(&mut self, id: u16, message: &[u8]) {
        self.octets.extend_from_slice(&id.to_be_bytes());
        self.octets.extend_from_slice(&message[2..]);
        self.ends.push(self.octets.len() as u32);
    }

    /// How many messages.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
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
            outbox.push(7, &vec![9; length]);
        }
        let runs = |first, longest| -> Vec<(usize, usize)> {
            outbox.runs(first, longest).map(|run| (run.count, run.length)).collect()
        };
        assert_eq!(runs(0, 64), [(3, 12), (1, 15), (2, 12)]);
        assert_eq!(runs(1, 64), [(2, 12), (1, 15), (2, 12)]);
        assert_eq!(runs(0, 2), [(2, 12), (1, 12), (1, 15), (2, 12)]);
        assert_eq!(runs(6, 64), []);
        assert_eq!(outbox.messages().map(<[u8]>::len).sum::<usize>(), 75);
        assert_eq!(outbox.runs(4, 64).next().unwrap().octets[..3], [0, 7, 9]);
    }
}
