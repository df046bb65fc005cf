//! Which descriptor is ready: epoll, level-triggered.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io;

/// Whose descriptor it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Token {
    /// The server is to stop.
    Stop,
    /// A delayed answer is due.
    Timer,
    /// The UDP socket of this number.
    Datagrams(u32),
    /// The listener of this number.
    Listener(u32),
    /// A connection.
    Connection(ConnectionId),
    /// The QUIC socket of this number.
    Quic(u32),
    /// Somebody wants to know what was counted.
    Counters,
}

/// Names a connection, and only that one: a later one in the same place has another generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ConnectionId {
    /// Place in the worker's table.
    pub(super) place: u32,
    /// How often the place was used before, in 28 bits.
    pub(super) generation: u32,
}

/// Bits of a generation; the rest of the upper half tells the kinds of token apart.
const GENERATION: u32 = (1 << 28) - 1;

impl ConnectionId {
    /// The next connection in the same place.
    pub(super) fn successor(self) -> Self {
        Self { generation: (self.generation + 1) & GENERATION, ..self }
    }
}

impl Token {
    /// As epoll keeps it.
    fn encode(self) -> u64 {
        let (kind, generation, place) = match self {
            Self::Stop => (0, 0, 0),
            Self::Timer => (1, 0, 0),
            Self::Datagrams(number) => (2, 0, number),
            Self::Listener(number) => (3, 0, number),
            Self::Connection(id) => (4, id.generation & GENERATION, id.place),
            Self::Quic(number) => (5, 0, number),
            Self::Counters => (6, 0, 0),
        };
        u64::from(kind << 28 | generation) << 32 | u64::from(place)
    }

    /// Back from epoll.
    fn decode(data: u64) -> Self {
        let (upper, place) = ((data >> 32) as u32, data as u32);
        match upper >> 28 {
            0 => Self::Stop,
            1 => Self::Timer,
            2 => Self::Datagrams(place),
            3 => Self::Listener(place),
            4 => Self::Connection(ConnectionId { place, generation: upper & GENERATION }),
            5 => Self::Quic(place),
            _ => Self::Counters,
        }
    }
}

/// One thread's epoll instance.
pub(super) struct Poller {
    /// The instance.
    epoll: OwnedFd,
    /// What the last wait brought.
    events: Vec<Event>,
}

/// Events taken at once. More are left for the next wait, which returns at once.
const EVENTS: usize = 256;

impl Poller {
    /// Makes an instance.
    ///
    /// # Errors
    /// When the process has no descriptors left.
    pub(super) fn new() -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        Ok(Self { epoll, events: Vec::with_capacity(EVENTS) })
    }

    /// Watches a descriptor; closing it ends that.
    ///
    /// # Errors
    /// When the kernel has no memory, or the user's limit of watches is reached.
    pub(super) fn add(
        &self,
        source: impl AsFd,
        token: Token,
        interest: EventFlags,
    ) -> io::Result<()> {
        epoll::add(&self.epoll, source, EventData::new_u64(token.encode()), interest)
    }

    /// Watches a descriptor for something else.
    ///
    /// # Errors
    /// When the descriptor is not watched.
    pub(super) fn modify(
        &self,
        source: impl AsFd,
        token: Token,
        interest: EventFlags,
    ) -> io::Result<()> {
        epoll::modify(&self.epoll, source, EventData::new_u64(token.encode()), interest)
    }

    /// Waits until something is ready, at most `longest`, rounded up to milliseconds.
    ///
    /// # Errors
    /// None that is not a fault of this program; an interruption by a signal is not one.
    pub(super) fn wait(&mut self, longest: Option<Duration>) -> io::Result<()> {
        let longest = longest.map(|longest| Timespec {
            tv_sec: longest.as_secs() as i64,
            tv_nsec: longest.subsec_nanos().into(),
        });
        self.events.clear();
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), longest.as_ref()) {
            Ok(_) | Err(io::Errno::INTR) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The n-th thing that the last wait found ready.
    pub(super) fn ready(&self, number: usize) -> Option<(Token, EventFlags)> {
        let event = self.events.get(number)?;
        let (data, flags) = (event.data, event.flags);
        Some((Token::decode(data.u64()), flags))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_survive_epoll() {
        let mut id = ConnectionId { place: u32::MAX, generation: GENERATION };
        for token in [
            Token::Stop,
            Token::Timer,
            Token::Datagrams(7),
            Token::Listener(9),
            Token::Connection(id),
            Token::Quic(8),
        ] {
            assert_eq!(Token::decode(token.encode()), token);
        }
        id = id.successor();
        assert_eq!(id.generation, 0);
    }
}
