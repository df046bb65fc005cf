//! What waits on the streams that a client has opened.

use std::collections::VecDeque;

use quinn_proto::{Dir, Side, StreamId};

/// Something for each bidirectional stream of a client that has not ended.
///
/// Streams are numbered as they are opened, and most end in about that order: a window over the numbers finds
/// each without a search. The window begins at the oldest stream that is left. One that nobody gives up would
/// let it grow, but a load gives up every query at its time-out.
pub(crate) struct Outstanding<T> {
    /// The index of the first stream in the window.
    first: u64,
    /// What is on the streams from there on; `None` where one has ended.
    entries: VecDeque<Option<T>>,
    /// How many have not ended.
    count: usize,
}

impl<T> Default for Outstanding<T> {
    fn default() -> Self {
        Self { first: 0, entries: VecDeque::new(), count: 0 }
    }
}

impl<T> Outstanding<T> {
    /// Adds what is on the stream that was opened last. Panics if that does not follow the last one added.
    pub(crate) fn push(&mut self, id: StreamId, entry: T) {
        let next = self.first + self.entries.len() as u64;
        assert_eq!(id.index(), next, "streams are opened one after the other");
        self.entries.push_back(Some(entry));
        self.count += 1;
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn get_mut(&mut self, id: StreamId) -> Option<&mut T> {
        let place = usize::try_from(id.index().checked_sub(self.first)?).ok()?;
        self.entries.get_mut(place)?.as_mut()
    }

    pub(crate) fn remove(&mut self, id: StreamId) -> Option<T> {
        let place = usize::try_from(id.index().checked_sub(self.first)?).ok()?;
        let entry = self.entries.get_mut(place)?.take();
        self.count -= usize::from(entry.is_some());
        while self.entries.front().is_some_and(Option::is_none) {
            self.entries.pop_front();
            self.first += 1;
        }
        entry
    }

    /// The oldest stream for which this is true. What has timed out is the oldest, so it is found soon.
    pub(crate) fn find(&self, mut is_wanted: impl FnMut(&T) -> bool) -> Option<StreamId> {
        self.iter().find(|(_, entry)| is_wanted(entry)).map(|(id, _)| id)
    }

    /// All streams, oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (StreamId, &T)> {
        let name = |index| StreamId::new(Side::Client, Dir::Bi, index);
        let entries = (self.first..).zip(&self.entries);
        entries.filter_map(move |(index, entry)| Some((name(index), entry.as_ref()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_moves_with_the_oldest() {
        let id = |index| StreamId::new(Side::Client, Dir::Bi, index);
        let mut outstanding = Outstanding::default();
        (0..6).for_each(|index| outstanding.push(id(index), index * 10));
        assert_eq!(outstanding.remove(id(1)), Some(10));
        assert_eq!(outstanding.remove(id(1)), None);
        assert_eq!(outstanding.len(), 5);
        assert_eq!((outstanding.first, outstanding.entries.len()), (0, 6));
        assert_eq!(outstanding.remove(id(0)), Some(0));
        assert_eq!((outstanding.first, outstanding.entries.len()), (2, 4));
        assert_eq!(outstanding.get_mut(id(0)), None);
        assert_eq!(outstanding.get_mut(id(3)), Some(&mut 30));
        assert_eq!(outstanding.get_mut(id(6)), None);
        assert_eq!(outstanding.find(|entry| *entry > 35), Some(id(4)));
        (2..6).for_each(|index| assert!(outstanding.remove(id(index)).is_some()));
        assert!(outstanding.iter().next().is_none());
        assert_eq!(outstanding.len(), 0);
        outstanding.push(id(6), 60);
        assert_eq!(outstanding.iter().collect::<Vec<_>>(), [(id(6), &60)]);
    }
}
