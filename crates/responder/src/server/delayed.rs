//! Answers that are held back until they are due.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use dnslab_socket::Peer;
use dnslab_transport::quic::RequestId;
use dnslab_wire::Transport;

use super::token::ConnectionId;

#[derive(Clone, Copy)]
pub(super) enum Destination {
    Datagram {
        /// Number of the worker's UDP socket.
        socket: u32,
        peer: Peer,
    },
    /// To a connection, if it is still there.
    Stream {
        id: ConnectionId,
        /// TCP, DoT or DoH over HTTP/2, for the counters.
        transport: Transport,
        /// Over HTTP, the request that is answered; otherwise 0.
        request: u32,
    },
    /// To a QUIC connection, if it is still there.
    Quic {
        /// Number of the worker's QUIC socket.
        socket: u32,
        /// The connection and the stream.
        request: RequestId,
        transport: Transport,
    },
}

pub(super) struct Held {
    /// In nanoseconds of the monotonic clock.
    pub(super) due_ns: u64,
    pub(super) destination: Destination,
    pub(super) message: Vec<u8>,
}

/// A timer queue: earliest first, and in order of arrival among equals.
#[derive(Default)]
pub(super) struct DelayQueue {
    /// Due instant, serial number and place of each answer. The answers stay where they are, so the heap
    /// moves little.
    heap: BinaryHeap<Reverse<(u64, u64, u32)>>,
    places: Vec<Option<Held>>,
    free: Vec<u32>,
    /// Buffers of answers that have left, for reuse.
    spare: Vec<Vec<u8>>,
    /// Octets of the answers that are held.
    memory: usize,
    /// Answers ever held: the next serial number.
    serial: u64,
}

/// Octets of one worker's held answers: a second and a half of 500,000 answers a second of 100 octets. Beyond
/// it an answer is not held, and so not sent.
const MAX_MEMORY: usize = 256 << 20;

/// Octets of a held answer in addition to its message: its place, its entry in the heap, and what the
/// allocator adds.
const ENTRY: usize = 192;

/// The most buffers that are kept for reuse, and the most octets of each: what a burst of long answers needed
/// is freed.
const MAX_SPARE: usize = 1 << 16;
const MAX_SPARE_OCTETS: usize = 1024;

impl DelayQueue {
    /// Holds a copy of `message` until `due_ns`; false if there is no room for it.
    pub(super) fn push(&mut self, due_ns: u64, destination: Destination, message: &[u8]) -> bool {
        self.push_within(MAX_MEMORY, due_ns, destination, message)
    }

    fn push_within(
        &mut self,
        most: usize,
        due_ns: u64,
        destination: Destination,
        message: &[u8],
    ) -> bool {
        let memory = self.memory + ENTRY + message.len();
        if memory > most {
            return false;
        }
        self.memory = memory;
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(message);
        let held = Some(Held { due_ns, destination, message: buffer });
        let place = match self.free.pop() {
            Some(place) => {
                self.places[place as usize] = held;
                place
            }
            None => {
                self.places.push(held);
                u32::try_from(self.places.len() - 1).expect("memory ends before 4 G answers")
            }
        };
        self.heap.push(Reverse((due_ns, self.serial, place)));
        self.serial += 1;
        true
    }

    pub(super) fn next_due_ns(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((due_ns, ..))| *due_ns)
    }

    pub(super) fn pop_due(&mut self, now_ns: u64) -> Option<Held> {
        if self.next_due_ns()? > now_ns {
            return None;
        }
        let Reverse((_, _, place)) = self.heap.pop()?;
        self.free.push(place);
        let held = self.places[place as usize].take()?;
        self.memory -= ENTRY + held.message.len();
        Some(held)
    }

    /// Takes the buffer of an answer that has left.
    pub(super) fn recycle(&mut self, message: Vec<u8>) {
        if message.capacity() <= MAX_SPARE_OCTETS && self.spare.len() < MAX_SPARE {
            self.spare.push(message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take_due(queue: &mut DelayQueue, now_ns: u64) -> (String, Option<u64>) {
        let mut texts = String::new();
        while let Some(held) = queue.pop_due(now_ns) {
            texts.push_str(std::str::from_utf8(&held.message).unwrap());
            queue.recycle(held.message);
        }
        (texts, queue.next_due_ns())
    }

    #[test]
    fn answers_leave_in_order_and_not_early() {
        let id = ConnectionId { place: 0, generation: 0 };
        let destination = Destination::Stream { id, transport: Transport::Tcp, request: 0 };
        let mut queue = DelayQueue::default();
        for (due_ns, text) in [(30, "c"), (10, "a"), (20, "b"), (10, "A"), (40, "d")] {
            assert!(queue.push(due_ns, destination, text.as_bytes()));
        }
        assert_eq!(take_due(&mut queue, 9), (String::new(), Some(10)));
        assert_eq!(take_due(&mut queue, 29), ("aAb".to_owned(), Some(30)));
        assert_eq!(take_due(&mut queue, 40), ("cd".to_owned(), None));
        assert_eq!(queue.places.len(), 5);
        queue.push(1, destination, b"e");
        assert_eq!((queue.places.len(), queue.spare.len()), (5, 4));
    }

    #[test]
    fn what_is_held_is_bounded() {
        let id = ConnectionId { place: 0, generation: 0 };
        let destination = Destination::Stream { id, transport: Transport::Tcp, request: 0 };
        let (mut queue, most) = (DelayQueue::default(), 10 * (ENTRY + 2000) + ENTRY + 5);
        let push = |queue: &mut DelayQueue, length: usize| {
            queue.push_within(most, 1, destination, &vec![0; length])
        };
        assert!((0..10).all(|_| push(&mut queue, 2000)));
        assert!(!push(&mut queue, 6));
        assert!(push(&mut queue, 5));
        assert!(!push(&mut queue, 0));
        // One leaves, and there is room for as much.
        let held = queue.pop_due(1).unwrap();
        queue.recycle(held.message);
        assert!(push(&mut queue, 2000));
        while let Some(held) = queue.pop_due(1) {
            queue.recycle(held.message);
        }
        assert_eq!((queue.memory, queue.spare.len()), (0, 1));
    }
}
