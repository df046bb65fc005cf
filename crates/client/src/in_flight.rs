//! The queries of one client that wait for their answer.

use std::collections::VecDeque;

use crate::attempts::Attempts;
use crate::time::Nanos;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) due: Nanos,
    pub(crate) sent: Nanos,
    /// Its place in the query list.
    pub(crate) query: u32,
    pub(crate) sent_before: u8,
    /// Which of its client's attempts it is, from 0.
    pub(crate) attempt: u8,
}

/// The state of the query that last had a message id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    InFlight(Entry),
    /// A further answer is a duplicate.
    Answered(Entry),
    /// An answer now is late.
    TimedOut(Entry),
    /// No query had that id lately.
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Never,
    InFlight,
    Answered,
    TimedOut,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    entry: Entry,
    id: u16,
    state: State,
}

/// Message ids and their queries, unique among the queries in flight on one socket.
///
/// The low bits of an id are the number of a slot. The high bits count the uses of the slot. Slots are used
/// in turn, oldest first. So an id comes back as late as possible, and an answer that comes after its
/// time-out, or a second time, is still recognised.
#[derive(Debug)]
pub(crate) struct InFlightTable {
    slots: Vec<Slot>,
    /// A ring of free slots: `free_count` numbers from `free_first` on.
    free: Vec<u16>,
    free_first: usize,
    free_count: usize,
    /// Ids of the queries that timed out last, oldest first, with their places in the query list. Their slots
    /// are soon used again while others are answered. Empty and without memory if nothing times out.
    timed_out: VecDeque<(u16, u32)>,
    /// The id that was taken last.
    last: u16,
}

/// Timed-out queries that are remembered beyond the use of their slots.
const REMEMBERED: usize = 256;

/// Slots per expected query. While a query waits for its time-out at a server that does not answer, the
/// window's later queries take slots in turn. With four times the window, an answer is still recognised as
/// late within three further time-outs.
const PAST: usize = 4;

/// Ids are 16 bits wide (RFC 1035, section 4.1.1).
const MAX_IDS: usize = 1 << 16;

impl InFlightTable {
    /// Without memory until the first query.
    pub(crate) const fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            free_first: 0,
            free_count: 0,
            timed_out: VecDeque::new(),
            last: 0,
        }
    }

    /// Makes room for `expected` queries in flight, and for the past of three times as many.
    pub(crate) fn expect(&mut self, expected: usize) {
        let size = expected.saturating_mul(PAST).clamp(1, MAX_IDS).next_power_of_two();
        if size > self.slots.len() {
            self.grow_to(size);
        }
    }

    /// Gives the memory back. No query may be in flight.
    pub(crate) fn release(&mut self) {
        debug_assert_eq!(self.len(), 0, "queries in flight would be lost");
        *self = Self::new();
    }

    /// Queries in flight.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free_count
    }

    /// Takes a free id for a query; `None` when all 65,536 are in flight.
    #[inline]
    pub(crate) fn insert(&mut self, entry: Entry) -> Option<u16> {
        if self.free_count == 0 {
            if self.slots.len() == MAX_IDS {
                return None;
            }
            self.grow_to((self.slots.len() * 2).max(PAST));
        }
        let number = self.free[self.free_first];
        self.free_first = (self.free_first + 1) & (self.free.len() - 1);
        self.free_count -= 1;
        let step = self.slots.len() as u32;
        let slot = &mut self.slots[usize::from(number)];
        // The next use of the slot: same low bits, high bits one further (wrapping).
        slot.id = u32::from(slot.id).wrapping_add(step) as u16;
        slot.entry = entry;
        slot.state = State::InFlight;
        self.last = slot.id;
        Some(slot.id)
    }

    /// Corrects when a query in flight was due and sent.
    pub(crate) fn stamp_again(&mut self, id: u16, due: Nanos, sent: Nanos) {
        let number = usize::from(id) & self.slots.len().wrapping_sub(1);
        if let Some(slot) = self.slots.get_mut(number).filter(|slot| slot.id == id) {
            slot.entry.due = due;
            slot.entry.sent = sent;
        }
    }

    #[inline]
    pub(crate) fn look_up(&self, id: u16) -> Known {
        let Some(slot) = self.slots.get(usize::from(id) & self.slots.len().wrapping_sub(1)) else {
            return Known::Nothing;
        };
        if slot.id != id {
            return self.look_up_timed_out(id);
        }
        match slot.state {
            State::Never => self.look_up_timed_out(id),
            State::InFlight => Known::InFlight(slot.entry),
            State::Answered => Known::Answered(slot.entry),
            State::TimedOut => Known::TimedOut(slot.entry),
        }
    }

    /// For an id whose slot another query has used since.
    fn look_up_timed_out(&self, id: u16) -> Known {
        let remembered = self.timed_out.iter().rev().find(|(its, _)| *its == id);
        remembered.map_or(Known::Nothing, |(_, query)| {
            Known::TimedOut(Entry { due: 0, sent: 0, query: *query, sent_before: 0, attempt: 0 })
        })
    }

    #[inline]
    pub(crate) fn answered(&mut self, id: u16) {
        self.end(id, State::Answered);
    }

    pub(crate) fn timed_out(&mut self, id: u16) {
        if let Known::InFlight(entry) = self.look_up(id) {
            if self.timed_out.len() == REMEMBERED {
                self.timed_out.pop_front();
            }
            self.timed_out.push_back((id, entry.query));
        }
        self.end(id, State::TimedOut);
    }

    /// Undoes an insert: the query was not sent after all.
    pub(crate) fn take_back(&mut self, id: u16) {
        self.end(id, State::Never);
    }

    /// Ends every query that has waited at `now` for as long as its attempt waits, and passes each with its
    /// id to `ended`. Returns when the next of the others has waited for so long. Without an instant no query
    /// ends.
    pub(crate) fn expire(
        &mut self,
        now: Option<Nanos>,
        attempts: &Attempts,
        ended: impl FnMut(u16, Entry),
    ) -> Option<Nanos> {
        if attempts.has_next(0) {
            let end = |entry: &Entry| entry.sent.saturating_add(attempts.wait(entry.attempt));
            return self.expire_by(end, now, ended);
        }
        // All wait for the same time: it is taken off once.
        let wait = attempts.wait(0);
        let sent_until = now.and_then(|now| now.checked_sub(wait));
        let oldest = self.expire_by(|entry| entry.sent, sent_until, ended);
        oldest.map(|sent| sent.saturating_add(wait))
    }

    /// Ends every query whose instant is not after `last`. Returns the first instant of the others.
    #[inline]
    fn expire_by(
        &mut self,
        instant: impl Fn(&Entry) -> Nanos,
        last: Option<Nanos>,
        mut ended: impl FnMut(u16, Entry),
    ) -> Option<Nanos> {
        let mut next = None;
        for number in 0..self.slots.len() {
            let Slot { entry, id, state } = self.slots[number];
            if state != State::InFlight {
                continue;
            }
            let at = instant(&entry);
            if last.is_some_and(|last| at <= last) {
                self.timed_out(id);
                ended(id, entry);
            } else {
                next = Some(next.map_or(at, |next: Nanos| next.min(at)));
            }
        }
        next
    }

    /// Ends every query in flight, because the connection is gone, and passes each to `ended`.
    pub(crate) fn drain(&mut self, mut ended: impl FnMut(Entry)) {
        for number in 0..self.slots.len() {
            if self.slots[number].state == State::InFlight {
                ended(self.slots[number].entry);
                self.end(self.slots[number].id, State::Never);
            }
            // On the next connection no old id means anything.
            self.slots[number].state = State::Never;
        }
        self.timed_out.clear();
    }

    #[inline]
    fn end(&mut self, id: u16, state: State) {
        let number = usize::from(id) & (self.slots.len() - 1);
        let slot = &mut self.slots[number];
        debug_assert!(slot.id == id && slot.state == State::InFlight, "id {id} is not in flight");
        slot.state = state;
        let last = (self.free_first + self.free_count) & (self.free.len() - 1);
        self.free[last] = number as u16;
        self.free_count += 1;
    }

    /// Grows to `size` slots, a power of two. Queries in flight keep their ids: ids with different low bits
    /// before have different low bits after. The ids of new slots lie beyond all that were taken lately.
    /// Otherwise a late or second answer to one of those would count for a new query.
    fn grow_to(&mut self, size: usize) {
        let nothing = Entry { due: 0, sent: 0, query: 0, sent_before: 0, attempt: 0 };
        let old = std::mem::take(&mut self.slots);
        // In serial number arithmetic (RFC 1982).
        let taken = old.iter().filter(|slot| slot.state != State::Never).map(|slot| slot.id);
        let furthest = taken.max_by_key(|id| id.wrapping_sub(self.last).cast_signed());
        // The first use of a slot is one step further.
        let base = usize::from(furthest.unwrap_or(self.last)) & !(size - 1);
        let ids = (0..size).map(|number| (base | number) as u16);
        self.slots = ids.map(|id| Slot { entry: nothing, id, state: State::Never }).collect();
        for slot in old {
            if slot.state != State::Never {
                self.slots[usize::from(slot.id) & (size - 1)] = slot;
            }
        }
        let is_free = |number: &u16| self.slots[usize::from(*number)].state != State::InFlight;
        self.free = (0..size).map(|number| number as u16).filter(is_free).collect();
        self.free_first = 0;
        self.free_count = self.free.len();
        self.free.resize(size, 0);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    fn entry(query: u32) -> Entry {
        Entry { due: 1, sent: 2, query, sent_before: 0, attempt: 0 }
    }

    fn table(expected: usize) -> InFlightTable {
        let mut table = InFlightTable::new();
        table.expect(expected);
        table
    }

    #[test]
    fn a_table_has_memory_only_while_it_is_used() {
        let mut table = InFlightTable::new();
        assert_eq!(table.look_up(7), Known::Nothing);
        assert_eq!(table.len(), 0);
        let id = table.insert(entry(1)).unwrap();
        assert_eq!(table.look_up(id), Known::InFlight(entry(1)));
        table.answered(id);
        table.release();
        assert_eq!((table.slots.capacity(), table.free.capacity()), (0, 0));
        table.drain(|_| panic!("nothing is in flight"));
    }

    #[test]
    fn what_is_older_than_the_time_out_expires() {
        let mut table = table(4);
        let sent_at = |sent| Entry { sent, ..entry(sent as u32) };
        let ids: Vec<u16> = [30, 10, 20].map(|at| table.insert(sent_at(at)).unwrap()).to_vec();
        let mut ended = Vec::new();
        let once = Attempts::at_one_server(1, 100, 1);
        assert_eq!(table.expire(Some(105), &once, |_, entry| ended.push(entry.sent)), Some(110));
        assert_eq!(table.expire(Some(120), &once, |_, entry| ended.push(entry.sent)), Some(130));
        ended.sort_unstable();
        assert_eq!(ended, [10, 20]);
        assert_eq!(table.look_up(ids[1]), Known::TimedOut(sent_at(10)));
        assert_eq!(table.expire(None, &once, |_, _| {}), Some(130));
        assert_eq!(table.expire(Some(130), &once, |_, _| {}), None);
        assert_eq!(table.len(), 0);
    }

    #[test]
    fn a_later_attempt_waits_longer() {
        let mut table = table(4);
        let twice = Attempts::at_one_server(2, 100, 3);
        for attempt in 0..2 {
            table.insert(Entry { sent: 10, attempt, ..entry(1) }).unwrap();
        }
        let mut ended = Vec::new();
        assert_eq!(
            table.expire(Some(110), &twice, |_, entry| ended.push(entry.attempt)),
            Some(310)
        );
        assert_eq!(table.expire(Some(310), &twice, |_, entry| ended.push(entry.attempt)), None);
        assert_eq!(ended, [0, 1]);
    }

    #[test]
    fn a_query_in_flight_can_be_stamped_again() {
        let mut table = table(4);
        let (a, b) = (table.insert(entry(1)).unwrap(), table.insert(entry(2)).unwrap());
        table.stamp_again(a, 7, 8);
        table.stamp_again(a ^ 0x8000, 9, 9);
        assert_eq!(table.look_up(a), Known::InFlight(Entry { due: 7, sent: 8, ..entry(1) }));
        assert_eq!(table.look_up(b), Known::InFlight(entry(2)));
    }

    /// Found by the simulation: the ids of new slots were those that had been taken a moment before.
    #[test]
    fn a_table_that_grows_takes_no_id_that_was_taken_lately() {
        let mut table = InFlightTable::new();
        let mut taken = std::collections::HashSet::new();
        // Each time, all are answered but those that make the table grow the next time.
        for in_flight in [3, 10, 40, 200, 1_000, 5_000] {
            for _ in 0..3 {
                let ids: Vec<u16> =
                    (0..in_flight).map(|_| table.insert(entry(1)).unwrap()).collect();
                for id in ids {
                    assert!(taken.insert(id), "{id} again with {in_flight} in flight");
                    table.answered(id);
                }
            }
        }
    }

    #[test]
    fn the_past_of_an_id_is_remembered() {
        let mut table = table(4);
        let (a, b) = (table.insert(entry(1)).unwrap(), table.insert(entry(2)).unwrap());
        table.answered(a);
        table.timed_out(b);
        assert_eq!(table.look_up(a), Known::Answered(entry(1)));
        assert_eq!(table.look_up(b), Known::TimedOut(entry(2)));
        assert_eq!(table.look_up(a ^ 0x8000), Known::Nothing);
        assert_eq!(table.len(), 0);
    }

    #[test]
    fn a_timed_out_id_is_remembered_while_others_are_answered() {
        let mut table = table(4);
        let slow = table.insert(entry(7)).unwrap();
        table.timed_out(slow);
        for number in 0..1_000 {
            let id = table.insert(entry(number)).unwrap();
            table.answered(id);
        }
        assert!(matches!(table.look_up(slow), Known::TimedOut(Entry { query: 7, .. })));
        table.drain(|_| {});
        assert_eq!(table.look_up(slow), Known::Nothing);
    }

    #[test]
    fn all_ids_can_be_in_flight_and_no_more() {
        let mut table = table(1);
        let ids: std::collections::HashSet<u16> =
            (0..MAX_IDS as u32).map(|n| table.insert(entry(n)).unwrap()).collect();
        assert_eq!(ids.len(), MAX_IDS);
        assert_eq!(table.insert(entry(0)), None);
        table.answered(17);
        assert_eq!(table.insert(entry(0)), Some(17));
        let mut ended = 0;
        table.drain(|_| ended += 1);
        assert_eq!((ended, table.len()), (MAX_IDS, 0));
    }

    proptest! {
        /// Against a plain map: ids are unique in flight, and each gives back what was put in.
        #[test]
        fn agrees_with_a_map(steps in prop::collection::vec((any::<u8>(), any::<u16>()), 0..3000)) {
            let mut table = InFlightTable::new();
            let mut model: HashMap<u16, Entry> = HashMap::new();
            for (number, (kind, pick)) in steps.into_iter().enumerate() {
                let chosen = model.keys().nth(usize::from(pick) % model.len().max(1)).copied();
                match (kind % 5, chosen) {
                    (0, Some(id)) => { table.answered(id); model.remove(&id); }
                    (1, Some(id)) => { table.timed_out(id); model.remove(&id); }
                    _ => {
                        let id = table.insert(entry(number as u32)).unwrap();
                        prop_assert_eq!(model.insert(id, entry(number as u32)), None);
                    }
                }
                prop_assert_eq!(table.len(), model.len());
                for (id, entry) in &model {
                    prop_assert_eq!(table.look_up(*id), Known::InFlight(*entry));
                }
            }
        }
    }
}
