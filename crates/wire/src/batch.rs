//! Many messages in one buffer, on their way into one system call, one TLS record or one stream.

/// The most datagrams, or groups of them, that one call sends. The kernel cuts one datagram into as many
/// (`UDP_MAX_SEGMENTS` in `include/linux/udp.h`).
pub const MAX_BATCH: usize = 128;

/// Octets of a run at most. The kernel takes a group of segments as one datagram, of at most 65,507 octets
/// (RFC 768 and RFC 791).
const MAX_RUN: usize = 60_000;

/// Messages end to end in one buffer, which keeps its memory when it is cleared.
#[derive(Debug, Default)]
pub struct MessageBatch {
    octets: Vec<u8>,
    /// Where each message ends.
    ends: Vec<u32>,
}

/// Neighbours of one length in a [`MessageBatch`].
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// The messages end to end.
    pub octets: &'a [u8],
    /// How many messages there are.
    pub count: usize,
    /// Octets of each message.
    pub length: usize,
}

impl MessageBatch {
    /// Removes all messages.
    pub fn clear(&mut self) {
        self.octets.clear();
        self.ends.clear();
    }

    /// Adds the message that `write` appends to the buffer.
    #[inline]
    pub fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.octets);
        self.ends.push(self.octets.len() as u32);
    }

    /// How many messages there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// There are no messages.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The lengths of the messages in order, octets.
    pub fn lengths(&self) -> impl Iterator<Item = usize> {
        (0..self.len()).map(|number| self.end(number) - self.start(number))
    }

    /// The messages in order.
    pub fn messages(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|number| &self.octets[self.start(number)..self.end(number)])
    }

    /// The messages from number `first` on, neighbours of one length together, at most `longest` in a run.
    #[inline]
    pub fn runs(&self, first: usize, longest: usize) -> impl Iterator<Item = Run<'_>> {
        let (mut start, mut ends) = (self.start(first), self.ends.get(first..).unwrap_or_default());
        std::iter::from_fn(move || {
            let mut end = *ends.first()? as usize;
            let (length, mut count) = (end - start, 1);
            while count < longest
                && end + length <= start + MAX_RUN
                && ends.get(count).is_some_and(|next| *next as usize == end + length)
            {
                end += length;
                count += 1;
            }
            let octets = &self.octets[start..end];
            (start, ends) = (end, &ends[count..]);
            Some(Run { octets, count, length })
        })
    }

    fn start(&self, number: usize) -> usize {
        number.checked_sub(1).map_or(0, |before| self.end(before))
    }

    fn end(&self, number: usize) -> usize {
        self.ends[number] as usize
    }
}

/// The datagrams of a group that was received as one: `segment` octets each, the last may be shorter. An
/// empty group is one empty datagram.
#[inline]
pub fn datagrams(octets: &[u8], segment: usize) -> impl Iterator<Item = &[u8]> {
    let empty = octets.is_empty().then_some(octets);
    empty.into_iter().chain(octets.chunks(segment.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch_of(lengths: &[usize]) -> MessageBatch {
        let mut batch = MessageBatch::default();
        for length in lengths {
            batch.push_with(|octets| octets.resize(octets.len() + length, 9));
        }
        batch
    }

    #[test]
    fn neighbours_of_one_length_are_together() {
        let batch = batch_of(&[12, 12, 12, 15, 12, 12]);
        let runs = |first, longest| -> Vec<(usize, usize)> {
            batch.runs(first, longest).map(|run| (run.count, run.length)).collect()
        };
        assert_eq!(runs(0, 64), [(3, 12), (1, 15), (2, 12)]);
        assert_eq!(runs(1, 64), [(2, 12), (1, 15), (2, 12)]);
        assert_eq!(runs(0, 2), [(2, 12), (1, 12), (1, 15), (2, 12)]);
        assert_eq!(runs(6, 64), []);
        let counts: Vec<usize> =
            batch_of(&[1_232; 100]).runs(0, 128).map(|run| run.count).collect();
        assert_eq!(counts, [48, 48, 4]);
        assert_eq!(batch.messages().map(<[u8]>::len).sum::<usize>(), 75);
        assert_eq!(batch.runs(4, 64).next().unwrap().octets[..3], [9, 9, 9]);
    }

    #[test]
    fn a_group_is_cut_into_its_datagrams() {
        let cut = |octets, segment| datagrams(octets, segment).collect::<Vec<_>>();
        assert_eq!(cut(b"aabbc", 2), [&b"aa"[..], b"bb", b"c"]);
        assert_eq!(cut(b"", 0), [b""]);
    }
}
