//! Fragments of IP put together again, in bounded memory.

use std::net::IpAddr;

use crate::generations::Generations;
use crate::ip::Fragment;
use crate::{Counts, Reason};

/// How long fragments wait for each other, at least, in nanoseconds of the capture: as in Linux (`ipfrag_time`).
/// They wait twice as long at most, which is what RFC 8200, section 4.5, says.
const PATIENCE_NS: u64 = 30_000_000_000;

/// The most datagrams that wait in one generation.
const MAX_DATAGRAMS: usize = 4_096;

/// The most octets that all datagrams together hold.
const MAX_MEMORY: usize = 16 << 20;

/// The most fragments of a datagram: 65,535 octets over the smallest MTU that IPv6 allows need 54, over the 576 of
/// IPv4 119.
const MAX_FRAGMENTS: usize = 256;

/// The longest payload of IP, octets.
const MAX_PAYLOAD: usize = 65_535;

/// What the fragments of one datagram have in common (RFC 791, section 3.2; RFC 8200, section 4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Whose {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    pub(crate) protocol: u8,
    pub(crate) id: u32,
}

/// Datagrams that are not whole yet.
#[derive(Debug)]
pub(crate) struct Fragments {
    waiting: Generations<Whose, Datagram>,
    /// Octets that they hold.
    memory: usize,
    /// When the generation began.
    turned_ns: u64,
}

#[derive(Debug, Default)]
struct Datagram {
    payload: Vec<u8>,
    /// Parts that are there, in order and apart.
    parts: Vec<(u32, u32)>,
    /// Octets of the whole payload, once the last fragment was seen.
    length: Option<u32>,
    /// Fragments taken.
    taken: u64,
    /// True if they contradict each other. It then stays so, for more of them may come.
    is_refused: bool,
}

impl Datagram {
    fn memory(&self) -> usize {
        self.payload.capacity() + self.parts.capacity() * size_of::<(u32, u32)>()
    }
}

impl Fragments {
    pub(crate) fn new() -> Self {
        Self { waiting: Generations::new(), memory: 0, turned_ns: 0 }
    }

    /// Takes a fragment and counts it. Gives the whole payload if this was the last part that it lacked; then the
    /// caller counts the packet. The fragment is not kept if it is refused.
    pub(crate) fn add(
        &mut self,
        at_ns: u64,
        whose: Whose,
        part: Fragment,
        octets: &[u8],
        counts: &mut Counts,
    ) -> Option<Vec<u8>> {
        let is_late = at_ns.saturating_sub(self.turned_ns) >= PATIENCE_NS;
        if is_late || self.waiting.young() >= MAX_DATAGRAMS {
            self.turn(counts);
            self.turned_ns = at_ns;
        }
        let end = part.offset as usize + octets.len();
        if octets.is_empty()
            || end > MAX_PAYLOAD
            || (part.has_more && !octets.len().is_multiple_of(8))
        {
            counts.skip(Reason::MalformedPacket);
            return None;
        }
        let datagram = match self.waiting.get(&whose) {
            Some(datagram) => datagram,
            None => {
                self.waiting.insert(whose, Datagram::default());
                self.waiting.get(&whose).expect("it was just inserted")
            }
        };
        let before = datagram.memory();
        let is_whole = datagram.add(part, octets, counts);
        self.memory = self.memory + datagram.memory() - before;
        if is_whole {
            let datagram = self.waiting.remove(&whose).expect("it was there just now");
            self.memory -= datagram.memory();
            return Some(datagram.payload);
        }
        while self.memory > MAX_MEMORY {
            self.turn(counts);
        }
        None
    }

    fn turn(&mut self, counts: &mut Counts) {
        for datagram in self.waiting.turn().into_values() {
            self.memory -= datagram.memory();
            counts.carried_nothing(datagram.taken, Reason::Fragment);
        }
    }

    /// Gives up what is not whole.
    pub(crate) fn finish(&mut self, counts: &mut Counts) {
        self.turn(counts);
        self.turn(counts);
    }
}

impl Datagram {
    /// True if the payload is whole. The fragment is counted if it is not.
    fn add(&mut self, part: Fragment, octets: &[u8], counts: &mut Counts) -> bool {
        let (start, end) = (part.offset, part.offset + octets.len() as u32);
        if self.is_refused {
            counts.skip(Reason::Fragment);
            return false;
        }
        // The same again says nothing new. Its octets are not compared.
        if self.parts.contains(&(start, end)) {
            counts.carriers += 1;
            self.taken += 1;
            return false;
        }
        let ends_elsewhere = |length| if part.has_more { end >= length } else { end != length };
        let last = self.parts.last().map_or(0, |(_, end)| *end);
        let place = self.parts.partition_point(|(other, _)| *other < start);
        // Whoever overlaps may hide something (RFC 5722; RFC 8200, section 4.5).
        let overlaps = (place > 0 && self.parts[place - 1].1 > start)
            || self.parts.get(place).is_some_and(|(other, _)| *other < end);
        if overlaps
            || self.length.is_some_and(ends_elsewhere)
            || (!part.has_more && last > end)
            || self.parts.len() == MAX_FRAGMENTS
        {
            self.refuse(counts);
            return false;
        }
        if !part.has_more {
            self.length = Some(end);
        }
        self.parts.insert(place, (start, end));
        let (start, end) = (start as usize, end as usize);
        if self.payload.len() < end {
            self.payload.resize(end, 0);
        }
        self.payload[start..end].copy_from_slice(octets);
        let there: u32 = self.parts.iter().map(|(start, end)| end - start).sum();
        if self.length == Some(there) {
            return true;
        }
        counts.carriers += 1;
        self.taken += 1;
        false
    }

    fn refuse(&mut self, counts: &mut Counts) {
        counts.skip(Reason::Fragment);
        counts.carried_nothing(self.taken, Reason::Fragment);
        *self = Self { is_refused: true, ..Self::default() };
    }
}
