//! Answers that are held back until they are due.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use dnslab_carrier::quic::RequestId;
use dnslab_wire::Transport;

use super::poller::ConnectionId;
use crate::sys::Peer;

/// Where a held answer goes.
#[derive(Clone, Copy)]
pub(super) enum Destination {
    /// To a UDP client, by the socket of this number.
    Datagram {
        /// The worker's socket.
        socket: u32,
        /// The client.
        peer: Peer,
    },
    /// To a connection, if it still is there.
    Stream {
        /// The connection.
        id: ConnectionId,
        /// TCP, DoT or DoH over HTTP/2, for the counters.
        transport: Transport,
        /// Over HTTP, the request that is answered; else 0.
        request: u32,
    },
    /// To a QUIC connection, if it still is there.
    Quic {
        /// The worker's QUIC socket.
        socket: u32,
        /// The connection and the stream.
        request: RequestId,
        /// DoQ or DoH3, for the counters.
        transport: Transport,
    },
}

/// An answer that is held back.
pub(super) struct Held {
    /// When it is due, in nanoseconds of the monotonic clock.
    pub(super) due_ns: u64,
    /// Where it goes.
    pub(super) destination: Destination,
    /// The message.
    pub(super) message: Vec<u8>,
}

/// A timer queue: earliest first, and in order of arrival among equals.
#[derive(Default)]
pub(super) struct DelayQueue {
    /// Due instant, serial number and place of each answer. The answers themselves stay put, so
    /// that the heap moves little.
    heap: BinaryHeap<Reverse<(u64, u64, u32)>>,
    /// The answers.
    places: Vec<Option<Held>>,
    /// Places without an answer.
    free: Vec<u32>,
    /// Buffers of answers that have left, to be used again.
    spare: Vec<Vec<u8>>,
    /// Answers ever held: the next serial number.
    serial: u64,
}

impl DelayQueue {
    /// Holds a copy of `message` until `due_ns`.
    pub(super) fn push(&mut self, due_ns: u64, destination: Destination, message: &[u8]) {
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
    }

    /// When the next answer is due, in nanoseconds of the monotonic clock.
    pub(super) fn next_due_ns(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((due_ns, ..))| *due_ns)
    }

    /// Takes the next answer if it is due.
    pub(super) fn pop_due(&mut self, now_ns: u64) -> Option<Held> {
        if self.next_due_ns()? > now_ns {
            return None;
        }
        let Reverse((_, _, place)) = self.heap.pop()?;
        self.free.push(place);
        self.places[place as usize].take()
    }

    /// Gives the buffer of an answer that has left back.
    pub(super) fn recycle(&mut self, message: Vec<u8>) {
        self.spare.push(message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_leave_in_order_and_not_early() {
        let id = ConnectionId { place: 0, generation: 0 };
        let destination = Destination::Stream { id, transport: Transport::Tcp, request: 0 };
        let mut queue = DelayQueue::default();
        for (due_ns, text) in [(30, "c"), (10, "a"), (20, "b"), (10, "A"), (40, "d")] {
            queue.push(due_ns, destination, text.as_bytes());
        }
        let mut left = |now_ns| {
            let mut texts = String::new();
            while let Some(held) = queue.pop_due(now_ns) {
                texts.push_str(std::str::from_utf8(&held.message).unwrap());
                queue.recycle(held.message);
            }
            (texts, queue.next_due_ns())
        };
        assert_eq!(left(9), (String::new(), Some(10)));
        assert_eq!(left(29), ("aAb".to_owned(), Some(30)));
        assert_eq!(left(40), ("cd".to_owned(), None));
        assert_eq!(queue.places.len(), 5);
        queue.push(1, destination, b"e");
        assert_eq!((queue.places.len(), queue.spare.len()), (5, 4));
    }
}
