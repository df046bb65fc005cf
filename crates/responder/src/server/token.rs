//! What a worker's descriptors are called in epoll.

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Token {
    Stop,
    /// A delayed answer is due.
    Timer,
    /// The number of the socket.
    Datagrams(u32),
    Listener(u32),
    Connection(ConnectionId),
    Quic(u32),
    /// The counters are asked for.
    Counters,
}

/// Names one connection: a later one in the same place has another generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ConnectionId {
    /// In the worker's table.
    pub(super) place: u32,
    /// How often the place was used before, in 28 bits.
    pub(super) generation: u32,
}

/// Bits of a generation; the rest of the upper half is the kind of the token.
const GENERATION: u32 = (1 << 28) - 1;

impl ConnectionId {
    /// The next connection in the same place.
    pub(super) fn successor(self) -> Self {
        Self { generation: (self.generation + 1) & GENERATION, ..self }
    }
}

impl From<Token> for u64 {
    fn from(token: Token) -> Self {
        let (kind, generation, place) = match token {
            Token::Stop => (0, 0, 0),
            Token::Timer => (1, 0, 0),
            Token::Datagrams(number) => (2, 0, number),
            Token::Listener(number) => (3, 0, number),
            Token::Connection(id) => (4, id.generation & GENERATION, id.place),
            Token::Quic(number) => (5, 0, number),
            Token::Counters => (6, 0, 0),
        };
        Self::from(kind << 28 | generation) << 32 | Self::from(place)
    }
}

impl From<u64> for Token {
    fn from(data: u64) -> Self {
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
            assert_eq!(Token::from(u64::from(token)), token);
        }
        id = id.successor();
        assert_eq!(id.generation, 0);
    }
}
