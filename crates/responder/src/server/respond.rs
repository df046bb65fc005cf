//! From a received message to an answer that leaves now, later or never, for every transport.

use std::net::IpAddr;
use std::time::Duration;

use dnslab_internet::Scratch;
use dnslab_socket::{Group, ReceiveBatch, SendBatch};
use dnslab_wire::Transport;

use super::busy::Busy;
use super::clock;
use super::delayed::{DelayQueue, Destination};
use super::hold::Hold;
use crate::content::{Content, Found};
use crate::counters::Counters;
use crate::program::{Fate, Player};

/// What one worker answers with. It knows no socket.
pub(super) struct Responder {
    content: Content,
    /// Of [`Content::Internet`].
    scratch: Scratch,
    pub(super) player: Player,
    busy: Busy,
    hold: Hold,
    pub(super) delayed: DelayQueue,
    pub(super) counters: Counters,
    /// Where an answer is made; 65,535 octets.
    answer: Box<[u8]>,
    /// Octets from the socket of a TLS connection.
    pub(super) received: Box<[u8]>,
}

/// How a message came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) transport: Transport,
    /// The address of this host that it came to, where that is known.
    pub(super) local: Option<IpAddr>,
}

/// What a connection must know about one of its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reaction {
    /// Nothing: the answer is written, or lost.
    Done,
    /// One more answer of this many octets is held back.
    Held(usize),
    /// It was no query: the peer does not speak DNS.
    NoQuery,
}

/// Octets read from a TLS connection at once: four records of the largest size.
const TLS_READ: usize = 64 * 1024;

impl Responder {
    pub(super) fn new(content: Content, player: Player, busy: Busy, hold: Hold) -> Self {
        Self {
            content,
            scratch: Scratch::default(),
            player,
            busy,
            hold,
            delayed: DelayQueue::default(),
            counters: Counters::default(),
            answer: vec![0; usize::from(u16::MAX)].into_boxed_slice(),
            received: vec![0; TLS_READ].into_boxed_slice(),
        }
    }

    /// Whether answers keep their thread, so that one that is read with others would hold them up.
    pub(super) fn holds(&self) -> bool {
        !self.hold.is_none()
    }

    /// Answers one message of a connection: at once with `put`, later to `destination`, or never.
    pub(super) fn message(
        &mut self,
        query: &[u8],
        Arrival { transport, local }: Arrival,
        destination: Destination,
        put: impl FnOnce(&[u8]),
    ) -> Reaction {
        let messages = self.counters.messages_mut(transport);
        messages.received += 1;
        let (scratch, out) = (&mut self.scratch, &mut self.answer);
        let (length, conduct) = match self.content.find(local, query, transport, scratch, out) {
            Found::Answer(length, conduct) => (length, conduct),
            Found::Silence => {
                messages.lost_by_program += 1;
                return Reaction::Done;
            }
            Found::NoQuery => {
                messages.ignored += 1;
                return Reaction::NoQuery;
            }
        };
        let octets = &self.answer[..length];
        let fate = self.player.next_fate(conduct);
        if fate != Fate::Lost {
            messages.busy_steps += self.busy.spend();
            self.hold.spend();
        }
        match fate {
            Fate::AtOnce => {
                messages.answered += 1;
                put(octets);
            }
            Fate::Lost => messages.lost_by_program += 1,
            Fate::After(delay) => {
                let due_ns = due_ns(clock::now_ns(), delay);
                if self.delayed.push(due_ns, destination, octets) {
                    return Reaction::Held(length);
                }
                messages.unsent += 1;
            }
        }
        Reaction::Done
    }

    /// What leaves now is put into `answers`.
    pub(super) fn datagrams(
        &mut self,
        queries: &ReceiveBatch,
        answers: &mut SendBatch,
        socket: u32,
    ) {
        let mut arrived_ns = None;
        for Group { octets: query, peer, .. } in queries.groups() {
            self.counters.udp.received += 1;
            let (scratch, out, local) = (&mut self.scratch, &mut self.answer, peer.local());
            let found = self.content.find(local, query, Transport::Udp, scratch, out);
            let (length, conduct) = match found {
                Found::Answer(length, conduct) => (length, conduct),
                Found::Silence => {
                    self.counters.udp.lost_by_program += 1;
                    continue;
                }
                Found::NoQuery => {
                    self.counters.udp.ignored += 1;
                    continue;
                }
            };
            let octets = &self.answer[..length];
            let fate = self.player.next_fate(conduct);
            if fate != Fate::Lost {
                self.counters.udp.busy_steps += self.busy.spend();
                self.hold.spend();
            }
            match fate {
                Fate::AtOnce => answers.push_to(peer, octets),
                Fate::Lost => self.counters.udp.lost_by_program += 1,
                Fate::After(delay) => {
                    let arrived_ns = *arrived_ns.get_or_insert_with(clock::now_ns);
                    let destination = Destination::Datagram { socket, peer };
                    if !self.delayed.push(due_ns(arrived_ns, delay), destination, octets) {
                        self.counters.udp.unsent += 1;
                    }
                }
            }
        }
    }
}

fn due_ns(arrived_ns: u64, delay: Duration) -> u64 {
    arrived_ns.saturating_add(u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX))
}
