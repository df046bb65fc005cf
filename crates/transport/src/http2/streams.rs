//! The requests that wait for their responses, by stream.

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Stream {
    /// The number of its stream, which is odd; 0 in a place where nothing is.
    pub(super) id: u32,
    pub(super) request: u16,
    /// The head of the response has come, and says that a message follows.
    pub(super) is_answering: bool,
    /// What has come of a message in several frames.
    pub(super) body: Option<Box<Body>>,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Body {
    pub(super) message: Vec<u8>,
    /// Octets that flow control has counted for the stream, padding too.
    pub(super) counted: usize,
}

/// Open streams. Numbers of streams count up, so the lowest bits of a number are its place. There is no
/// hashing, and no search but for the few that wait so long that another has come to their place.
#[derive(Debug, Default)]
pub(super) struct Streams {
    /// A power of two of places, at least twice as many as open streams; none at first.
    places: Vec<Stream>,
    /// Streams that gave way, in no order.
    overtaken: Vec<Stream>,
    count: usize,
}

/// Where a stream was found.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    Own(usize),
    Overtaken(usize),
}

/// Places that are made at first, 256 octets of them.
const FEWEST_PLACES: usize = 16;

impl Streams {
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Opens a stream, whose number none has that is open.
    pub(super) fn open(&mut self, id: u32, request: u16) {
        self.count += 1;
        if 2 * self.count > self.places.len() {
            self.grow();
        }
        self.put(Stream { id, request, ..Stream::default() });
    }

    pub(super) fn find(&self, id: u32) -> Option<Place> {
        let at = self.place_of(id);
        if self.places.get(at).is_some_and(|stream| stream.id == id) {
            return Some(Place::Own(at));
        }
        self.overtaken.iter().position(|stream| stream.id == id).map(Place::Overtaken)
    }

    pub(super) fn at(&mut self, place: Place) -> &mut Stream {
        match place {
            Place::Own(at) => &mut self.places[at],
            Place::Overtaken(at) => &mut self.overtaken[at],
        }
    }

    pub(super) fn close(&mut self, place: Place) -> Stream {
        self.count -= 1;
        match place {
            Place::Own(at) => std::mem::take(&mut self.places[at]),
            Place::Overtaken(at) => self.overtaken.swap_remove(at),
        }
    }

    pub(super) fn find_request(&self, request: u16) -> Option<Place> {
        let is_it = |stream: &Stream| stream.id != 0 && stream.request == request;
        let own = self.places.iter().position(is_it).map(Place::Own);
        own.or_else(|| self.overtaken.iter().position(is_it).map(Place::Overtaken))
    }

    /// Closes all streams whose numbers are above this one, in order.
    pub(super) fn close_above(&mut self, last: u32) -> Vec<Stream> {
        let open = self.places.iter_mut().filter(|stream| stream.id > last).map(std::mem::take);
        let mut closed: Vec<_> = open.collect();
        closed.extend(self.overtaken.extract_if(.., |stream| stream.id > last));
        self.count -= closed.len();
        closed.sort_unstable_by_key(|stream| stream.id);
        closed
    }

    /// The place of a stream's number; 0 while there are none.
    fn place_of(&self, id: u32) -> usize {
        (id >> 1) as usize & self.places.len().wrapping_sub(1)
    }

    /// Puts a stream into its place; the one that is there gives way.
    fn put(&mut self, stream: Stream) {
        let at = self.place_of(stream.id);
        let before = std::mem::replace(&mut self.places[at], stream);
        if before.id != 0 {
            self.overtaken.push(before);
        }
    }

    fn grow(&mut self) {
        let count = (2 * self.places.len()).max(FEWEST_PLACES);
        let mut streams = std::mem::take(&mut self.overtaken);
        streams.extend(self.places.drain(..).filter(|stream| stream.id != 0));
        self.places.resize_with(count, Stream::default);
        streams.into_iter().for_each(|stream| self.put(stream));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn streams_are_found(steps in prop::collection::vec((any::<bool>(), any::<u16>()), 0..600)) {
            let (mut streams, mut model) = (Streams::default(), BTreeMap::new());
            let mut next = 1;
            for (opens, number) in steps {
                if opens || model.is_empty() {
                    streams.open(next, number);
                    model.insert(next, number);
                    next += 2;
                } else {
                    // Mostly an old one, which makes the others pass it.
                    let at = model.len() - 1 - usize::from(number) % model.len().min(7);
                    let (id, request) = model.iter().nth(at).map(|(a, b)| (*a, *b)).unwrap();
                    let place = streams.find(id).unwrap();
                    prop_assert_eq!(streams.at(place).request, request);
                    prop_assert_eq!(streams.close(place).id, id);
                    model.remove(&id);
                }
                prop_assert_eq!(streams.len(), model.len());
                prop_assert!(streams.find(next).is_none());
            }
            for (id, request) in &model {
                let place = streams.find(*id).unwrap();
                prop_assert_eq!(streams.at(place).request, *request);
                let place = streams.find_request(*request).unwrap();
                prop_assert_eq!(streams.at(place).request, *request);
            }
            let last = next / 2;
            let expected: Vec<_> = model.keys().copied().filter(|id| *id > last).collect();
            let closed = streams.close_above(last);
            prop_assert_eq!(closed.iter().map(|stream| stream.id).collect::<Vec<_>>(), expected);
            prop_assert_eq!(streams.len(), model.len() - closed.len());
        }
    }
}
